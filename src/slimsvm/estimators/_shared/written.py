"""A fitted estimator as a file: of this library, or for others to predict with."""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from slimsvm.rows import files_of


def remember_files(estimator: Any, X: Any) -> None:
    """Have an estimator know the files that its rows are read from."""
    estimator.__dict__.pop("_read_from", None)
    if files := files_of(X):
        estimator._read_from = files


def check_target(estimator: Any, path: Any) -> None:
    """Refuse to write a model onto a file of the rows that it was trained on.

    Raises
    ------
    ValueError
        The path leads to such a file, under whatever name.
    """
    for file in getattr(estimator, "_read_from", ()):
        if os.path.exists(path) and os.path.exists(file) and os.path.samefile(path, file):
            raise ValueError(f"{os.fspath(path)} is the file {file} that the rows are read from, which would be lost: "
                             "give another path")  # fmt: skip


class Written:
    """What the scikit-learn faces write: `slimsvm.load` reads the one, the others are for C, ONNX and JSON."""

    def save(self, path) -> None:
        """Write the fitted model to one file of arrays and a JSON header; `slimsvm.save` says more.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced only once the new one is complete.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        TypeError
            The kernel is the user's function, which a file of data cannot hold.
        ValueError
            The file is one that the rows of training are read from: a memory map, or one of `Blocks`.
        OSError
            The file cannot be written; an older file of that name is left as it was.
        """
        from slimsvm.estimators._shared.estimator_files import save

        check_is_fitted(self, "model_")
        save(self, path)

    def to_c(self, path, name=None, dtype="auto", rows=None) -> None:
        """Write the fitted model as one C99 header: no allocation, no library; docs/deploy/c.md shows its use.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced only once the new one is complete.
        name : str or None, default=None
            What the names in C begin with; None: the file's name without its ending.
        dtype : {"auto", "float32", "float64", "int16"}, default="auto"
            Of rows, scores and all between. "auto" is float32 where scores are right to 5e-6 of the largest one, as
            measured on rows near the vectors, else float64: large coefficients cancel. int16 is fixed point, for the
            RBF kernel and the Laplacian one, half as large, with rows and scores in float32. What the type does to
            scores is measured and written into the header.
        rows : array-like of shape (n_rows, n_features), or a sparse matrix, default=None
            Rows that this is measured on; None takes some near the vectors.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            A header has no such kernel or no such labels: matrices of kernel values, sequences, ``break_ties``; other
            kernels in fixed point.
        """
        self._export("c", path, name=name, dtype=dtype, rows=rows)

    def to_onnx(self, path, dtype="auto") -> None:
        """Write the fitted model as an ONNX graph of standard operators; docs/deploy/onnx.md shows its use.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced only once the new one is complete.
        dtype : {"auto", "float32", "float64"}, default="auto"
            Type of rows and of what is computed. "auto" is float32 with as much float64 as gets scores right to 5e-6 of
            the largest one; rows are float64 where float32 does not hold their digits. Where coefficients cancel,
            float32 is up to four times as fast, and scores are off by 1e-5 and more of the largest.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ImportError
            The package onnx is not installed: ``pip install 'slimsvm[onnx]'``.
        ValueError
            The model labels sequences, or by a task in Python; there is no such dtype; or float32 cannot hold the rows,
            or int64 the labels.
        """
        self._export("onnx", path, dtype=dtype)

    def to_wasm(self, path) -> None:
        """Write the fitted model as one ES module, with the C runtime as WebAssembly in it, for browsers and Node;
        docs/deploy/wasm.md shows its use.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced only once the new one is complete.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        FileNotFoundError
            The package came without the compiled runtime: ``make wasm`` makes it in a checkout, wheels have it.
        ValueError
            The model labels by a task in Python.
        """
        self._export("wasm", path)

    def to_json(self, path) -> None:
        """Write the fitted model's numbers as JSON, for a predictor of one's own; docs/deploy/json.md is the schema.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced only once the new one is complete.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            The model labels by a task in Python.
        """
        self._export("json", path)

    def _export(self, target: str, path: Any, **options: Any) -> None:
        from slimsvm.deploy import writer_of
        from slimsvm.estimators._shared.pipelines import plain_model_of

        check_target(self, path)
        writer_of(target)(plain_model_of(self), path, **options)
