"""Attributes of scikit-learn's machines, in its order, shapes and types, read off the model.

The model's own form stays as it is: ``basis_vectors_`` and ``basis_coef_``, with a column for each output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators._shared.pairwise import lines_of_pairs
from slimsvm.lazy import made_once
from slimsvm.model import columns_between
from slimsvm.rows import as_csr, is_sparse

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion

Array = np.ndarray

# Of the exact machine with a free intercept each column of coefficients adds up to 0, but for this share of its size.
BALANCE = 1e-6


class Trained(NamedTuple):
    """Rows that a model is trained on: positions in X, and the numbers of their classes where they have one."""

    index: Any
    codes: Array | None = None


@dataclass(frozen=True, eq=False)
class Support:
    """Basis vectors that are training rows.

    Parameters
    ----------
    model : KernelExpansion
    rows : ndarray of shape (n_basis,) or None
        Positions in X; None where a file does not say.
    classes : ndarray of shape (n_basis,) or None
        Number of each vector's class, where rows have one.
    """

    model: KernelExpansion
    rows: Array | None
    classes: Array | None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("model", "rows", "classes")}

    @made_once
    def order(self) -> Array:
        """Vectors by class, those of a class by row."""
        n = self.model.n_basis
        keys = [key for key in (self.rows, self.classes) if key is not None]
        return np.lexsort(keys) if keys else np.arange(n)

    @made_once
    def vectors(self) -> Any:
        """The vectors in this order; none of a precomputed kernel, whose rows are kernel values."""
        if not self.model.kernel.has_features:
            return np.empty((0, 0))
        basis = self.model.basis[self.order]
        return as_sparse(basis.astype(np.float64)) if is_sparse(basis) else np.asarray(basis, np.float64)

    @made_once
    def coef(self) -> Array:
        """A line for each output."""
        return np.ascontiguousarray(self.model.coef[self.order].T)

    @made_once
    def pairs(self) -> Array | None:
        """LIBSVM's table for pairs of classes; None where it cannot hold the coefficients."""
        assert self.classes is not None
        return lines_of_pairs(self.coef.T, self.classes[self.order])


def is_balanced(model: KernelExpansion) -> bool:
    """Whether coefficients are those of an exact machine with a free intercept, which no other model's are."""
    coef = model.coef
    return bool((np.abs(coef.sum(axis=0)) <= BALANCE * np.abs(coef).sum(axis=0)).all())


def support_by_sign(model: KernelExpansion, n_classes: int | None) -> Support:
    """The support vectors of the exact machine of classes, or of a regression (None), by their coefficients alone.

    The coefficient of a row is positive for the first class of a pair, and for the second of two classes.
    """
    coef = model.coef
    if n_classes is None:
        return Support(model, None, None)
    if n_classes == 2:
        return Support(model, None, (coef[:, 0] > 0).astype(np.uint8))
    first, second = np.triu_indices(n_classes, 1)
    pair = np.argmax(coef != 0, axis=1)
    classes = np.where(coef[np.arange(len(coef)), pair] > 0, first[pair], second[pair])
    return Support(model, None, classes.astype(np.min_scalar_type(n_classes)))


def as_sparse(matrix: Any) -> Any:
    """A CSR matrix of the kind that scikit-learn returns."""
    kind = sp.csr_array if get_config().get("sparse_interface", "spmatrix") == "sparray" else sp.csr_matrix
    return kind(as_csr(matrix))


class LikeScikitLearn:
    """Attributes by which code for scikit-learn's machines knows a model."""

    _support: Support | None

    def _supported(self: Any, name: str) -> Support:
        check_is_fitted(self, "model_")
        support = getattr(self, "_support", None)
        if support is None:
            raise AttributeError(
                f"{name} exists where the basis vectors are training rows, which those of this model are not: "
                "basis_vectors_ and basis_coef_ have them"
            )
        return support

    @property
    def support_(self: Any) -> Array:
        """Positions in X of the support vectors, grouped by class."""
        support = self._supported("support_")
        if support.rows is None:
            raise AttributeError("support_ is not known: the model's file does not say which rows the vectors are")
        rows = support.rows[support.order]
        return rows.astype(np.int32) if rows.max(initial=0) <= np.iinfo(np.int32).max else rows

    @property
    def support_vectors_(self: Any) -> Any:
        """The support vectors, in the order of ``support_``."""
        return self._supported("support_vectors_").vectors

    @property
    def n_support_(self: Any) -> Array:
        """Number of support vectors of each class."""
        support, classes = self._supported("n_support_"), getattr(self, "classes_", None)
        if classes is None:
            return np.array([support.model.n_basis], np.int32)
        if support.classes is None:
            raise AttributeError("n_support_ counts vectors of each class, and rows of this model have more than one")
        return np.bincount(support.classes, minlength=len(classes)).astype(np.int32)

    @property
    def dual_coef_(self: Any) -> Any:
        """Coefficients of the support vectors, in the order of ``support_``: one line, or for pairs of classes a line
        for each class but one.
        """
        support = self._supported("dual_coef_")
        is_of_pairs = getattr(self, "multi_class_", None) == "ovo" and support.classes is not None
        dual = support.coef if len(support.coef) == 1 else support.pairs if is_of_pairs else None
        if dual is None:
            raise AttributeError(
                "dual_coef_ has LIBSVM's coefficients for two classes and for pairs of classes (multi_class='ovo'), "
                f"which this model's {len(support.coef)} outputs are not: basis_coef_ has a column for each of them"
            )
        if not getattr(self, "_sparse", False):
            return dual
        k, n = dual.shape
        return as_sparse(sp.csr_array((dual.ravel(), np.tile(np.arange(n), k), n * np.arange(k + 1)), shape=(k, n)))

    @property
    def coef_(self: Any) -> Any:
        """Weights of the features, for the linear kernel, shape (n_outputs, n_features), CSR after a fit of sparse
        rows; it cannot be written to. There is one line for two classes and for regression, otherwise one for each
        class or pair of classes, as ``basis_coef_`` has columns.
        """
        check_is_fitted(self, "model_")
        if not self.model_.kernel.has_weights:
            raise AttributeError(f"coef_ exists only for kernel='linear', found {self.kernel_!r}")
        columns = columns_between(self.model_)
        if columns is not None:
            narrow = np.asarray(self.model_.coef.T @ columns.narrow(self.model_.basis))
            found = as_sparse(columns.widen(narrow))
            found.data.flags.writeable = False
            return found
        coef = np.asarray(self.model_.coef.T @ self.model_.basis)
        if getattr(self, "_sparse", False):
            found = as_sparse(sp.csr_array(coef))
            found.data.flags.writeable = False
            return found
        coef.flags.writeable = False
        return coef

    @property
    def fit_status_(self: Any) -> int:
        """0 if the fit met its tolerance, 1 if something else ended it (see ``status_``)."""
        check_is_fitted(self, "model_")
        return int(self.status_ not in ("converged", "compressed"))

    # Names within scikit-learn by which programs that write its models in other languages read them.

    @property
    def _dual_coef_(self: Any) -> Any:
        return -self.dual_coef_ if len(getattr(self, "classes_", ())) == 2 else self.dual_coef_

    @property
    def _intercept_(self: Any) -> Array:
        check_is_fitted(self, "model_")
        return -self.intercept_ if len(getattr(self, "classes_", ())) == 2 else self.intercept_

    @property
    def _n_support(self: Any) -> Array:
        return self.n_support_

    @property
    def _gamma(self: Any) -> float:
        check_is_fitted(self, "model_")
        gamma = getattr(self.kernel_, "gamma", 0.0)
        if np.ndim(gamma):
            raise AttributeError("_gamma is one number, and each feature of this model has a gamma of its own: kernel_")
        return float(gamma)
