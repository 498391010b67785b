"""Where rows come from: arrays, CSR, memory-mapped files. No other part asks."""

from slimsvm.rows.arrays import DenseRows, Rows, SparseRows, as_rows

__all__ = ["DenseRows", "Rows", "SparseRows", "as_rows"]
