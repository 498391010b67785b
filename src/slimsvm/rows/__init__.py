"""Where rows come from: arrays, CSR, memory-mapped files. No other part asks."""

from slimsvm.rows.arrays import (
    FLOATS,
    Block,
    DenseRows,
    Rows,
    SparseRows,
    as_csr,
    as_rows,
    in_pieces,
    is_sparse,
    plain_floats,
)

__all__ = [
    "FLOATS",
    "Block",
    "DenseRows",
    "Rows",
    "SparseRows",
    "as_csr",
    "as_rows",
    "in_pieces",
    "is_sparse",
    "plain_floats",
]
