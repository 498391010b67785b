"""Where rows come from: arrays, CSR, memory-mapped files. No other part asks."""

from slimsvm.rows.arrays import Block, DenseRows, Rows, SparseRows, as_csr, as_rows, is_sparse

__all__ = ["Block", "DenseRows", "Rows", "SparseRows", "as_csr", "as_rows", "is_sparse"]
