"""The sources of rows: arrays, CSR, memory-mapped files, blocks of any of these. Only this part knows them."""

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
    check_mask,
    files_of,
    find_not_finite,
    in_pieces,
    is_sparse,
    is_text,
    parts_of,
    plain_floats,
    say_not_finite,
    taken,
)
from slimsvm.rows.blocks import Blocks
from slimsvm.rows.columns import ColumnSums, keep_sums, sums_of
from slimsvm.rows.labels import check_one_kind, first_missing

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
    "check_mask",
    "check_one_kind",
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
    "taken",
]
