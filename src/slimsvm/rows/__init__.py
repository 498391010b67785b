"""Where rows come from: arrays, CSR, memory-mapped files. No other part asks."""

from slimsvm.rows.arrays import (
    FLOATS,
    MAX_SPARSE_FEATURES,
    Block,
    DenseRows,
    Rows,
    SparseRows,
    as_csr,
    as_rows,
    in_pieces,
    is_sparse,
    is_text,
    plain_floats,
)

__all__ = [
    "FLOATS",
    "MAX_SPARSE_FEATURES",
    "Block",
    "DenseRows",
    "Rows",
    "SparseRows",
    "as_csr",
    "as_rows",
    "in_pieces",
    "is_sparse",
    "is_text",
    "plain_floats",
]
