"""Kernels of the inner product: linear, polynomial, sigmoid. Python knows of them only what their classes say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from slimsvm import core
from slimsvm.docstrings import described
from slimsvm.kernels.kernel import (
    FoldedKernel,
    Folding,
    Functions,
    check_degree,
    check_finite,
    check_gamma,
    largest_norm,
    squared_norms,
)

if TYPE_CHECKING:
    from slimsvm.rows import Rows


class InnerProduct(FoldedKernel):
    """The base class of kernels of gamma <x, z> + coef0, where they have these.

    Parameters
    ----------
    gamma : float
        Positive.
    coef0 : float
    """

    form: ClassVar[str] = "products"

    def folding(self, n_features: int) -> Folding:
        """Scale the points by gamma, and add coef0 to every inner product."""
        parameters = vars(self)
        return Folding(getattr(core, self.map), point_scale=parameters.get("gamma", 1.0),
                       degree=parameters.get("degree", 1), shift=parameters.get("coef0", 0.0))  # fmt: skip


@dataclass(frozen=True)
class Linear(InnerProduct):
    """k(x, z) = <x, z>.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Linear
    >>> Linear().block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name: ClassVar[str] = "linear"
    has_gradient: ClassVar[bool] = True
    has_weights: ClassVar[bool] = True
    map: ClassVar[str] = "IDENTITY"

    def formula(self, z: Any, f: Functions) -> Any:
        """Return the number z itself."""
        return z

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return ``|x|^2``."""
        return squared_norms(X).astype(dtype)

    def largest(self, rows: Rows) -> float:
        """Return the greatest ``|x|^2``."""
        return largest_norm(rows)


@described(InnerProduct.__doc__)
@dataclass(frozen=True)
class Polynomial(InnerProduct):
    """k(x, z) = (gamma <x, z> + coef0)**degree.

    Parameters
    ----------
    degree : int
        At least 1.
    gamma, coef0

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0, coef0=1.0).block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0
    name: ClassVar[str] = "poly"
    map: ClassVar[str] = "POWER"
    has_gradient: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "degree", check_degree(self.degree))
        object.__setattr__(self, "gamma", check_gamma(self.gamma, per_feature=False))
        object.__setattr__(self, "coef0", check_finite("coef0", self.coef0))

    def formula(self, z: Any, f: Functions) -> Any:
        """Return the power ``z^degree``."""
        return f.power(z, self.degree)

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return ``(gamma |x|^2 + coef0)^degree``."""
        return ((self.gamma * squared_norms(X) + self.coef0) ** self.degree).astype(dtype)

    def largest(self, rows: Rows) -> float:
        """Return the same power of gamma times the greatest ``|x|^2`` plus the magnitude of coef0."""
        with np.errstate(over="ignore"):
            return float(np.float64(self.gamma * largest_norm(rows) + abs(self.coef0)) ** self.degree)


@described(InnerProduct.__doc__)
@dataclass(frozen=True)
class Sigmoid(InnerProduct):
    """k(x, z) = tanh(gamma <x, z> + coef0); not positive semidefinite in general.

    If it is not, problems are not convex, and ``lower_bound_`` and certificates are not bounds.

    Parameters
    ----------
    gamma, coef0

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Sigmoid
    >>> Sigmoid(gamma=0.5).block(np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]]))
    array([[0.]])
    """

    gamma: float = 1.0
    coef0: float = 0.0
    name: ClassVar[str] = "sigmoid"
    map: ClassVar[str] = "TANH"
    has_gradient: ClassVar[bool] = True
    is_inner_product: ClassVar[bool] = False

    def __post_init__(self):
        object.__setattr__(self, "gamma", check_gamma(self.gamma, per_feature=False))
        object.__setattr__(self, "coef0", check_finite("coef0", self.coef0))

    def formula(self, z: Any, f: Functions) -> Any:
        """Return the hyperbolic tangent of z."""
        return f.tanh(z)

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return ``tanh(gamma |x|^2 + coef0)``."""
        return np.tanh(self.gamma * squared_norms(X) + self.coef0).astype(dtype)

    def largest(self, rows: Rows) -> float:
        """Return 1, or infinity if an inner product is not finite."""
        return 1.0 if np.isfinite(self.gamma * largest_norm(rows)) else np.inf


KERNELS = Polynomial, Linear, Sigmoid
