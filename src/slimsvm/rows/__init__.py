"""Where rows come from: arrays, CSR, memory-mapped files, blocks of any of these. No other part asks."""

from slimsvm.rows.arrays import (
    FLOATS,
    MAX_SPARSE_FEATURES,
    Block,
    ChosenRows,
    DenseRows,
    Rows,
    SparseRows,
    as_csr,
    as_rows,
    find_not_finite,
    in_pieces,
    is_sparse,
    is_text,
    parts_of,
    plain_floats,
    say_not_finite,
)
from slimsvm.rows.blocks import Blocks
from slimsvm.rows.column_sums import ColumnSums, keep_sums, sums_of
from slimsvm.rows.missing import first_missing
from slimsvm.rows.sources import files_of

__all__ = [
    "FLOATS",
    "MAX_SPARSE_FEATURES",
    "Block",
    "Blocks",
    "ChosenRows",
    "ColumnSums",
    "DenseRows",
    "Rows",
    "SparseRows",
    "as_csr",
    "as_rows",
    "files_of",
    "find_not_finite",
    "first_missing",
    "in_pieces",
    "is_sparse",
    "is_text",
    "keep_sums",
    "parts_of",
    "plain_floats",
    "say_not_finite",
    "sums_of",
]
