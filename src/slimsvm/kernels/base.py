"""What a kernel is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from slimsvm.kernels.operands import Folding


class Kernel(ABC):
    """A function k(x, z) of two rows, seen block by block.

    A kernel of your own is one class with `block`; everything else has a default that calls it.

    >>> import numpy as np
    >>> from slimsvm.kernels import Kernel
    >>> class Cosine(Kernel):
    ...     name = "cosine"
    ...     def block(self, X, Z, dtype=np.float64):
    ...         X = X / np.linalg.norm(X, axis=1, keepdims=True)
    ...         Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    ...         return (X @ Z.T).astype(dtype)
    >>> Cosine().diag(np.array([[3.0, 4.0]]))
    array([1.])
    """

    name: ClassVar[str]

    @abstractmethod
    def block(self, X: Any, Z: Any, dtype: Any = np.float64) -> np.ndarray:
        """Kernel values k(x_i, z_j).

        Parameters
        ----------
        X : ndarray or CSR of shape (b, d)
        Z : ndarray or CSR of shape (k, d)
        dtype : float32 or float64
            Type computed in and returned.

        Returns
        -------
        ndarray of shape (b, k)
        """

    def scores(
        self, X: Any, Z: Any, coef: np.ndarray, dtype: Any = np.float64, n_jobs: int | None = None
    ) -> np.ndarray:
        """sum_j k(x_i, z_j) coef[j, c], the block of kernel values never stored whole.

        Parameters
        ----------
        X : ndarray or CSR of shape (b, d)
        Z : ndarray or CSR of shape (k, d)
        coef : ndarray of shape (k, m) or (k,)
        dtype : float32 or float64
            Type kernel values are computed in, and that of the result.
        n_jobs : int or None
            Threads; the result does not depend on it.

        Returns
        -------
        ndarray of shape (b, m), or (b,) for 1-D ``coef``
        """
        from slimsvm.kernels.kernel_rows import KernelRows

        coef = np.asarray(coef)
        table = coef[:, None] if coef.ndim == 1 else coef
        rows = KernelRows.for_basis(self, X, Z, dtype=dtype, n_jobs=n_jobs)
        result = rows.scores(rows.points_of(Z), table)
        return result[:, 0] if coef.ndim == 1 else result

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """k(x_i, x_i), shape (b,)."""
        return np.array([self.block(X[i : i + 1], X[i : i + 1], dtype)[0, 0] for i in range(X.shape[0])], dtype)

    def folding(self, n_features: int) -> Folding | None:
        """How the kernel reads from folded rows; None where only `block` knows."""
        return None

    def to_header(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Parameters as (JSON values with the kernel's name, arrays), from which `from_header` makes the kernel again."""
        raise TypeError(f"the kernel {self!r} cannot be saved: {type(self).__name__} does not define to_header")

    @classmethod
    def from_header(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kernel:
        """The kernel that `to_header` described."""
        raise TypeError(f"{cls.__name__} does not define from_header")


class FoldedKernel(Kernel):
    """A kernel that is a function of inner products or of |x - z|_1: fast, dense and CSR, by its `folding`."""

    @abstractmethod
    def folding(self, n_features: int) -> Folding:
        """How the kernel reads from folded rows."""

    def block(self, X: Any, Z: Any, dtype: Any = np.float64) -> np.ndarray:
        from slimsvm.kernels.kernel_rows import KernelRows

        rows = KernelRows.for_basis(self, X, Z, dtype=dtype, n_jobs=None)
        return rows.block(rows.points_of(Z))

    def to_header(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header: dict[str, Any] = {"kernel": self.name}
        arrays = {}
        for key, value in vars(self).items():
            if isinstance(value, tuple):
                arrays[f"kernel_{key}"] = np.array(value)
            else:
                header[key] = value
        return header, arrays

    @classmethod
    def from_header(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kernel:
        values = {key: value for key, value in header.items() if key != "kernel"}
        values |= {key.removeprefix("kernel_"): value for key, value in arrays.items() if key.startswith("kernel_")}
        return cls(**values)


def squared_norms(X: Any) -> np.ndarray:
    """|x_i|^2 in float64."""
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64)
        return np.asarray(X.multiply(X).sum(axis=1), np.float64).reshape(-1)
    X = np.asarray(X, np.float64)
    return np.einsum("ij,ij->i", X, X)
