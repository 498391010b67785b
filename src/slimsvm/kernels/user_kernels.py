"""Kernels of the user's: precomputed values, or a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from slimsvm.kernels.kernel import Kernel, largest_entry

if TYPE_CHECKING:
    from slimsvm.rows import Rows


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Rows are rows of a kernel matrix: X[i, t] = k(x_i, t-th training row).

    A basis vector is a training row's position, kept as an array of shape (k, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Precomputed
    >>> Precomputed().block(np.array([[1.0, 0.2, 0.3]]), np.array([[2], [0]]))
    array([[0.3, 1. ]])
    """

    name: ClassVar[str] = "precomputed"
    has_features: ClassVar[bool] = False
    has_formula: ClassVar[bool] = False
    form: ClassVar[str | None] = "columns"

    def block(self, X: Any, Z: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return the columns of X at the positions Z."""
        positions = self.check_basis(Z, X.shape[1])[:, 0]
        values = X[:, positions]
        return (values.toarray() if hasattr(values, "toarray") else np.asarray(values)).astype(dtype)

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return the diagonal of the square matrix X."""
        return self.diag_at(X, np.arange(X.shape[0])).astype(dtype)

    def diag_at(self, X: Any, index: np.ndarray) -> np.ndarray:
        """Return k(x_i, x_i) of training rows X, which are at the positions ``index``."""
        if index.size and index.max() >= X.shape[1]:
            raise ValueError(f"a precomputed kernel has a diagonal for training rows only: row {index.max()} is none")
        return np.asarray(X[np.arange(X.shape[0]), index], np.float64).reshape(-1)

    def largest(self, rows: Rows) -> float:
        """Return the greatest magnitude of the matrix's values."""
        return largest_entry(rows)

    def basis(self, rows: Rows, index: np.ndarray) -> np.ndarray:
        """Return the positions as an array of shape (k, 1)."""
        return index[:, None].copy()

    def check_basis(self, basis: Any, n_features: int) -> np.ndarray:
        """Return the positions as int64; raise an error if they are none."""
        positions = np.asarray(basis).astype(np.int64)
        if positions.ndim != 2 or positions.shape[1] != 1:
            raise ValueError(f"a precomputed kernel's basis must have shape (k, 1), got {positions.shape}")
        if positions.size and not (positions.min() >= 0 and positions.max() < n_features):
            raise ValueError(
                f"a precomputed kernel's basis must be positions in 0..{n_features - 1} (the columns of the kernel "
                f"matrix), got {positions.min()}..{positions.max()}"
            )
        return positions

    def to_header(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the name alone: there are no parameters."""
        return {"kernel": self.name}, {}

    @classmethod
    def from_header(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Precomputed:
        """Make a kernel, which has no parameters."""
        return cls()


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """The user's own function of two blocks of rows.

    A row's scores have the same bits in any block only if the function's values have.

    Parameters
    ----------
    function : callable (X, Z) -> array of shape (len(X), len(Z))
        Called once per block of rows, with arrays, or with ``scipy.sparse.csr_array`` if the data are sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import CallableKernel
    >>> CallableKernel(lambda X, Z: (X @ Z.T) ** 2).block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[121.]])
    """

    function: Callable[[Any, Any], Any]
    name: ClassVar[str] = "callable"
    has_formula: ClassVar[bool] = False

    def __post_init__(self):
        if not callable(self.function):
            raise TypeError(f"the function of a CallableKernel must be callable, got {self.function!r}")

    def block(self, X: Any, Z: Any, dtype: Any = np.float64) -> np.ndarray:
        """Call the function and check its values."""
        return self.checked(self.function(X, Z), (X.shape[0], Z.shape[0])).astype(dtype)

    def checked(self, values: Any, expected: tuple[int, int]) -> np.ndarray:
        """Return the function's values as an array; raise an error unless they are finite numbers of this shape."""
        values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
        if values.shape != expected:
            raise ValueError(f"the kernel function must return an array of shape {expected}, got {values.shape}")
        if values.dtype.kind not in "buif":
            raise TypeError(f"the kernel function must return real numbers, got dtype {values.dtype}")
        if not np.isfinite(values).all():
            raise ValueError("the kernel function must return finite numbers, got NaN or infinity")
        return values

    def to_header(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Refuse: a model file holds no code."""
        raise TypeError("a model whose kernel is a function of yours cannot be saved: a model file holds no code")


@dataclass(frozen=True)
class CallableValues(Precomputed):
    """The values of a user's function between rows that are not numbers; a vector is a row's position."""

    function: Callable[[Any, Any], Any]

    def to_header(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Raise the error of `CallableKernel.to_header`."""
        return CallableKernel(self.function).to_header()


KERNELS = Precomputed, CallableKernel
