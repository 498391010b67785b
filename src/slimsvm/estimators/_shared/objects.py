"""Rows that are no numbers: texts, lists, graphs, whatever a user's kernel function takes.

As in scikit-learn the function gets them as they are, and the machine gets the matrix of its values; new rows are
compared with all rows of the fit. (There are functions that know no others, for they have looked these up.) A machine
of few vectors keeps these, and new rows are compared with them alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, check_X_y
from sklearn.utils.validation import _num_samples

from slimsvm.kernels import CallableKernel, Kernel
from slimsvm.kernels.user_kernels import CallableValues
from slimsvm.rows import Rows

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion

Array = np.ndarray


def are_objects(kernel: Any, X: Any) -> bool:
    """Whether a kernel function is to get the rows as they are: they are no table of numbers."""
    if not callable(kernel) or isinstance(kernel, Kernel) or isinstance(X, Rows) or sp.issparse(X):
        return False
    try:
        table = np.asarray(X)
    except (TypeError, ValueError):  # lists of different lengths
        return True
    if table.ndim != 2:
        return True
    if table.dtype.kind != "O":
        return table.dtype.kind not in "biuf"
    try:
        table.astype(np.float64)
    except (TypeError, ValueError):
        return True
    return False


@dataclass(frozen=True)
class Objects:
    """Rows, and the function that compares others with them.

    Parameters
    ----------
    rows : sequence
        In the container they came in.
    kernel : CallableKernel
    are_vectors : bool, default=False
        Whether they are a model's vectors alone, not all rows of its fit.
    """

    rows: Any
    kernel: CallableKernel
    are_vectors: bool = False

    def values(self, X: Any, name: str) -> Array:
        """The kernel's values between rows and these."""
        shape = n_rows(X, name), n_rows(self.rows, name)
        return self.kernel.checked(self.kernel.function(X, self.rows), shape)

    @property
    def kernel_of_values(self) -> CallableValues:
        """The kernel of a machine that gets the matrix of values."""
        return CallableValues(self.kernel.function)

    def of_basis(self, model: KernelExpansion) -> tuple[Objects, KernelExpansion]:
        """The rows that are the model's vectors, and the model over them alone."""
        positions = np.asarray(model.basis)[:, 0]
        own = np.arange(len(positions))[:, None]
        return Objects(_safe_indexing(self.rows, positions), self.kernel, True), replace(model, basis=own)


def n_rows(X: Any, name: str) -> int:
    """Number of rows, of which there must be one."""
    n = _num_samples(X)
    if not n:
        raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required by {name}.")
    return n


def target_of(y: Any, n: int, is_numeric: bool, several: bool) -> Any:
    """Labels or targets of n rows, checked as those of rows of numbers are."""
    return check_X_y(np.zeros((n, 1)), y, y_numeric=is_numeric, multi_output=several)[1]
