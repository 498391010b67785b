"""Kernels of the difference x - z: RBF, Matérn 3/2, rational quadratic, Laplacian.

All that Python knows of one is its class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slimsvm import core
from slimsvm.docstrings import described
from slimsvm.kernels.kernel import FoldedKernel, Folding, Functions, check_gamma, feature_gamma

LOG2_E = 1.4426950408889634


@dataclass(frozen=True, eq=False, repr=False)
class ShiftInvariant(FoldedKernel):
    """The base class of kernels of x - z that are 1 at 0, with one gamma or one for each feature.

    Arrays of gammas have no hash, and their == is no single truth value: this class defines both for its kernels.

    Parameters
    ----------
    gamma : float, or array of shape (d,)
        Positive; an array is kept as a copy that cannot be written to.
    """

    gamma: float | np.ndarray = 1.0
    form: ClassVar[str] = "squares"

    def __post_init__(self):
        object.__setattr__(self, "gamma", check_gamma(self.gamma, per_feature=True))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and np.array_equal(self.gamma, other.gamma)

    def __hash__(self) -> int:
        return hash((type(self), np.asarray(self.gamma).tobytes()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(gamma={np.asarray(self.gamma).tolist()})"

    def folding(self, n_features: int) -> Folding:
        """Scale rows and points by gamma, or by its root if z is a squared distance."""
        base = LOG2_E if self.is_exponential else 1.0
        scale = self.unit * base * feature_gamma(self.gamma, n_features)
        if self.form == "absolute":
            return Folding(getattr(core, self.map), row_scale=scale, point_scale=scale, manhattan=True)
        scale = np.sqrt(scale)
        return Folding(getattr(core, self.map), row_scale=scale, point_scale=scale, norms=True)

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return 1 for every row."""
        return np.ones(X.shape[0], dtype)

    def largest(self, rows: Any) -> float:
        """Return 1: no value is larger."""
        return 1.0


@described(ShiftInvariant.__doc__)
@dataclass(frozen=True, eq=False, repr=False)
class RBF(ShiftInvariant):
    """``k(x, z) = exp(-gamma |x - z|^2)``, or ``exp(-sum_c gamma_c (x_c - z_c)^2)``.

    Computed as ``2**(<x', z'> - |x'|^2 / 2 - |z'|^2 / 2)`` with ``x' = x sqrt(2 gamma log2 e)``. In float32 the error
    grows with ``gamma |x|^2`` (see ``KernelRows.radius``).

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import RBF
    >>> RBF(gamma=np.log(2)).block(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])).round(12)
    array([[0.25]])
    """

    name: ClassVar[str] = "rbf"
    has_gradient: ClassVar[bool] = True
    has_metric: ClassVar[bool] = True
    is_gaussian: ClassVar[bool] = True
    unit: ClassVar[float] = 2.0
    map: ClassVar[str] = "EXP2"

    def formula(self, z: Any, f: Functions) -> Any:
        """Return e^z."""
        return f.exp(z)


@described(ShiftInvariant.__doc__)
@dataclass(frozen=True, eq=False, repr=False)
class Matern32(ShiftInvariant):
    """``k(x, z) = (1 + s) exp(-s)`` with ``s^2 = 6 gamma |x - z|^2``, or ``6 sum_c gamma_c (x_c - z_c)^2``.

    The Matérn kernel with nu = 3/2, between RBF, whose functions are smooth everywhere, and Laplacian. With
    ``gamma = 1 / (2 l^2)`` its length scale is l, ``s = sqrt(3) |x - z| / l``, as in scikit-learn's Gaussian
    processes. The RBF kernel of this gamma has the same length scale.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Matern32
    >>> Matern32(gamma=1 / 6).block(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(4)  # 6 exp(-5)
    array([[0.0404]])
    """

    name: ClassVar[str] = "matern32"
    has_gradient: ClassVar[bool] = True
    has_metric: ClassVar[bool] = True
    unit: ClassVar[float] = 6.0
    map: ClassVar[str] = "MATERN32"

    def formula(self, z: Any, f: Functions) -> Any:
        """Return (1 + s) e^-s, where s is the scaled distance."""
        s = f.sqrt(-2.0 * z)
        return (1.0 + s) * f.exp(-s)


@described(ShiftInvariant.__doc__)
@dataclass(frozen=True, eq=False, repr=False)
class RationalQuadratic(ShiftInvariant):
    """``k(x, z) = 1 / (1 + gamma |x - z|^2)``, or ``1 / (1 + sum_c gamma_c (x_c - z_c)^2)``.

    A mixture of RBF kernels with all values of gamma, which falls off more slowly than any of them. The usual form is
    ``(1 + gamma |x - z|^2 / alpha)^-alpha``, which is RBF where alpha is large; here alpha is 1. With ``gamma = 1 / (2
    l^2)`` its length scale is l, as in scikit-learn's Gaussian processes.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import RationalQuadratic
    >>> RationalQuadratic(gamma=1.5).block(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]]))
    array([[0.25]])
    """

    name: ClassVar[str] = "rational_quadratic"
    has_gradient: ClassVar[bool] = True
    has_metric: ClassVar[bool] = True
    unit: ClassVar[float] = 2.0
    map: ClassVar[str] = "RATIONAL"

    def formula(self, z: Any, f: Functions) -> Any:
        """Return 1 / (1 - z)."""
        return 1.0 / (1.0 - z)


@described(ShiftInvariant.__doc__)
@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(ShiftInvariant):
    """``k(x, z) = exp(-gamma |x - z|_1)``, or ``exp(-sum_c gamma_c |x_c - z_c|)``.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Laplacian
    >>> Laplacian(gamma=np.log(2)).block(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])).round(12)
    array([[0.25]])
    """

    name: ClassVar[str] = "laplacian"
    form: ClassVar[str] = "absolute"
    map: ClassVar[str] = "EXP2"

    def formula(self, z: Any, f: Functions) -> Any:
        """Return e^z."""
        return f.exp(z)


KERNELS = RBF, Matern32, RationalQuadratic, Laplacian
