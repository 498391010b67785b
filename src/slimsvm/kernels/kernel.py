"""What a kernel is, and the form that compiled code computes its values in.

`Folding` says how rows and points are folded so that a kernel value is a map of an inner product and two numbers.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from math import inf
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from slimsvm import core

if TYPE_CHECKING:
    from slimsvm.rows import Rows


class Functions(Protocol):
    """The functions that `FoldedKernel.formula` may use beside ``+ - * /``."""

    def exp(self, z: Any) -> Any:
        """Return e^z."""

    def sqrt(self, z: Any) -> Any:
        """Return the square root, or 0 if rounding left z below 0."""

    def tanh(self, z: Any) -> Any:
        """Return the hyperbolic tangent."""

    def power(self, z: Any, degree: int) -> Any:
        """Return z^degree."""


# `Functions` for arrays.
NUMPY: Any = SimpleNamespace(exp=np.exp, sqrt=lambda z: np.sqrt(np.maximum(z, 0.0)), tanh=np.tanh, power=operator.pow)


@dataclass(frozen=True)
class Folding:
    """k(x, z) = map(<x', z'> + h(x') + h(z')) with x' = (x - centre) * row_scale, z' = (z - centre) * point_scale.

    Attributes
    ----------
    code : int
        Map: one of those that slimsvm.h lists, by its name in `slimsvm.core`.
    row_scale, point_scale : float or ndarray of shape (d,)
        Factors of each feature.
    degree : int
        The degree of the map POWER.
    norms : bool
        Whether h(v) = -|v|^2 / 2 on both sides; otherwise h is 0 for rows and ``shift`` for points.
    shift : float
        Constant added to every inner product.
    manhattan : bool
        Whether -|x' - z'|_1 stands in place of the inner product and h.
    """

    code: int
    row_scale: float | np.ndarray = 1.0
    point_scale: float | np.ndarray = 1.0
    degree: int = 1
    norms: bool = False
    shift: float = 0.0
    manhattan: bool = False

    @property
    def metric(self) -> float | np.ndarray:
        """Return the weight of each raw feature in the folded product: the derivative in z_c is slope · metric_c · x_c.

        With ``norms`` the derivative is slope · metric_c · (x_c - z_c).
        """
        return self.row_scale * self.point_scale

    def map_with_slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the map of any numbers z, and its derivatives there; float64, C-contiguous."""
        values, slopes = np.empty_like(z), np.empty_like(z)
        core.map_with_slopes(
            code=self.code, degree=self.degree, z=z.reshape(-1), values=values.reshape(-1), slopes=slopes.reshape(-1)
        )
        return values, slopes

    @property
    def steepness(self) -> float:
        """Return the slope of the map at 0; with ``norms`` it is the greatest, since no z is above 0."""
        return float(self.map_with_slopes(np.zeros(1))[1][0])

    @property
    def slope_is_value(self) -> bool:
        """Whether the slope is `steepness` times the kernel value, wherever z is."""
        return self.code == core.EXP2

    @property
    def shift_invariant(self) -> bool:
        """Whether centring leaves the kernel as it is."""
        return self.norms or self.manhattan


NO_INDEX = np.empty(0, np.int64)


@dataclass(frozen=True)
class Selection:
    """A choice of rows: the rows at ``index``, or, if that is empty, ``n`` consecutive rows from ``first``."""

    n: int
    first: int = 0
    index: np.ndarray = field(default_factory=NO_INDEX.view)


class Expression(ABC):
    """A number of `FoldedKernel.formula` that is no array; two methods define what ``+ - * /`` and minus make."""

    @abstractmethod
    def joined(self, sign: str, left: Any, right: Any) -> Any:
        """Return ``left sign right``; one of the two may be a float."""

    @abstractmethod
    def __neg__(self) -> Any: ...

    def __add__(self, other: Any) -> Any:
        return self.joined("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.joined("+", self, other)

    def __sub__(self, other: Any) -> Any:
        return self.joined("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.joined("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.joined("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.joined("*", self, other)

    def __truediv__(self, other: Any) -> Any:
        return self.joined("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.joined("/", other, self)


def check_gamma(gamma: Any, per_feature: bool) -> float | np.ndarray:
    """Return gamma as a float or a read-only array (one per feature), or raise an error. 0 makes a kernel constant."""
    if isinstance(gamma, float) and 0.0 <= gamma < inf:
        return float(gamma)
    kind = "a positive finite number" + (", or a 1-D array of them (one per feature)" if per_feature else "")
    try:
        values = np.asarray(gamma, np.float64)
    except (TypeError, ValueError):
        values = None
    if values is None or gamma is None:
        raise TypeError(f"gamma must be {kind}, got {gamma!r}")
    if values.ndim > per_feature or values.size == 0:
        raise ValueError(f"gamma must be {kind}, got an array of shape {values.shape}")
    wrong = ~(np.isfinite(values) & ((values >= 0) if not values.ndim else (values > 0)))
    if wrong.any():
        found = float(values.flat[np.argmax(wrong)])
        where = f" for feature {int(np.argmax(wrong))}" if values.ndim else ""
        raise ValueError(f"gamma must be {kind}, got {found!r}{where or '; one number may be 0, too'}")
    if not values.ndim:
        return float(values)
    values = values.copy()
    values.flags.writeable = False
    return values


def feature_gamma(gamma: float | np.ndarray, n_features: int) -> float | np.ndarray:
    """Return gamma as a float or array, checked against the number of features."""
    if isinstance(gamma, float):
        return gamma
    if len(gamma) != n_features:
        raise ValueError(f"gamma has {len(gamma)} values, the rows have {n_features} features")
    return gamma


def check_finite(name: str, value: Any) -> float:
    """Return a value as a float; raise an error that names the parameter if it is not a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a finite number, got {value!r}") from None
    if not np.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {number!r}")
    return number


def check_degree(degree: Any) -> int:
    """Return the degree as an int of at least 1."""
    try:
        whole = not isinstance(degree, bool) and int(degree) == degree
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole or degree < 1:
        raise ValueError(f"degree must be an integer of at least 1, got {degree!r}")
    if degree > 1000:  # a power takes one product per degree
        raise ValueError(f"degree must be at most 1000, got {degree!r}")
    return int(degree)


NORM_ROWS = 1 << 12  # rows whose norms are computed together

DIAGONAL_BLOCK = 16  # rows per call of `block` if there is nothing else: few calls, little work thrown away


class Kernel(ABC):
    """A function k(x, z) of two rows, evaluated block by block.

    A kernel of your own is one class with `block`; everything else has a default that calls it.

    Attributes
    ----------
    has_gradient : bool
        Whether the derivative with respect to a vector is known (`FoldedKernel.block_with_slopes`), so that vectors
        can be moved along it.
    has_metric : bool
        Whether it is a function of sum_c gamma_c (x_c - z_c)^2 with an attribute ``gamma``, so that the gamma_c can be
        learned.
    has_features : bool
        False if a row holds kernel values and a vector is the position of a training row (`Precomputed`). Then rows
        cannot be trained on separately, and there are no new vectors.
    has_formula : bool
        False if values are known only for the given rows; rows that come later do not fit.
    has_weights : bool
        Whether a model can be stored as weights of the features instead of coefficients of vectors (`Linear`).
    is_gaussian : bool
        Whether it is exp(-sum_c gamma_c (x_c - z_c)^2). Two vectors then merge into one on the line between them, and a
        preimage is a fixed point.
    is_inner_product : bool
        False if it need not be positive semidefinite, so that models have no distance (`Sigmoid`).
    form : {"products", "squares", "absolute", "columns", "terms"} or None
        What values come of where a model is scored without this class: see `FoldedKernel`; "columns" are values
        themselves (`Precomputed`), "terms" sums of kernels with one of the other forms (`Additive`). None: only `block`
        knows.

    Examples
    --------
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
    has_gradient: ClassVar[bool] = False
    has_metric: ClassVar[bool] = False
    has_features: ClassVar[bool] = True
    has_formula: ClassVar[bool] = True
    has_weights: ClassVar[bool] = False
    is_gaussian: ClassVar[bool] = False
    is_inner_product: ClassVar[bool] = True
    form: ClassVar[str | None] = None
    gamma: Any  # the gamma of kernels that have one
    degree: int
    coef0: float

    @abstractmethod
    def block(self, X: Any, Z: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return kernel values k(x_i, z_j).

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

    def prepared(self, Z: Any, dtype: Any) -> Any:
        """Return what `fill` takes of the vectors Z; this does the work that is the same for all rows."""
        return Z

    def fill(self, X: Any, points: Any, out: np.ndarray, n_jobs: int | None) -> None:
        """Set out to `block` of rows and of what `prepared` made of vectors, with so many threads."""
        out[:] = self.block(X, points, out.dtype)

    def scores(
        self, X: Any, Z: Any, coef: np.ndarray, dtype: Any = np.float64, n_jobs: int | None = None
    ) -> np.ndarray:
        """Return sum_j k(x_i, z_j) coef[j, c], without storing the whole block of kernel values.

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
        """Return k(x_i, x_i), shape (b,)."""
        out = np.empty(X.shape[0], dtype)
        for lo in range(0, len(out), DIAGONAL_BLOCK):
            part = X[lo : lo + DIAGONAL_BLOCK]
            out[lo : lo + DIAGONAL_BLOCK] = np.diagonal(self.block(part, part, dtype))
        return out

    def diag_at(self, X: Any, index: np.ndarray) -> np.ndarray:
        """Return k(x_i, x_i) in float64 of rows X that are at the positions ``index`` of the whole."""
        return self.diag(X)

    def largest(self, rows: Rows) -> float:
        """Return a bound on the magnitude of kernel values between rows, infinite beyond float64; 0 if unknown."""
        return 0.0

    def basis(self, rows: Rows, index: np.ndarray) -> Any:
        """Return the rows at ``index`` in the form that a model stores."""
        return rows.take(index, rows.exact_dtype)

    def check_basis(self, basis: Any, n_features: int) -> Any:
        """Return vectors of a basis as a float array or CSR with ``n_features`` columns, or raise an error."""
        from slimsvm.rows import as_csr, is_sparse

        basis = as_csr(basis) if is_sparse(basis) else np.asarray(basis)
        if basis.ndim != 2 or basis.shape[1] != n_features:
            raise ValueError(f"the rows have {n_features} features, the basis has shape {basis.shape}")
        dtype = np.float32 if basis.dtype == np.float32 else np.float64
        return basis.astype(dtype, copy=False) if is_sparse(basis) else np.ascontiguousarray(basis, dtype)

    def folding(self, n_features: int) -> Folding | None:
        """Return the map and the scales by which the core evaluates the kernel; None if only `block` can."""
        return None

    def to_header(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the parameters as JSON values and arrays, from which `from_header` makes the kernel again."""
        raise TypeError(f"the kernel {self!r} cannot be saved: {type(self).__name__} does not define to_header")

    @classmethod
    def from_header(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kernel:
        """Make the kernel that `to_header` described."""
        raise TypeError(f"{cls.__name__} does not define from_header")


class ParametricKernel(Kernel):
    """The base class of kernels whose numbers, texts and arrays are all that a model file needs."""

    def to_header(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return numbers and texts as JSON values, and arrays named ``kernel_*``; None is left out."""
        header: dict[str, Any] = {"kernel": self.name}
        arrays = {}
        for key, value in vars(self).items():
            if isinstance(value, np.ndarray):
                arrays[f"kernel_{key}"] = value
            elif value is not None:
                header[key] = value
        return header, arrays

    @classmethod
    def from_header(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kernel:
        """Make the kernel with these parameters."""
        values = {key: value for key, value in header.items() if key != "kernel"}
        values |= {key.removeprefix("kernel_"): value for key, value in arrays.items() if key.startswith("kernel_")}
        return cls(**values)


class FoldedKernel(ParametricKernel):
    """The base class of kernels that map one number z: the core evaluates their `folding`, exports use their `formula`.

    Attributes
    ----------
    form : {"products", "squares", "absolute"}
        What z is: ``gamma <x, z> + coef0``, ``-unit / 2 sum_c gamma_c (x_c - z_c)^2``, or ``-unit sum_c gamma_c
        |x_c - z_c|``.
    unit : float
        The number that leaves the map without a parameter.
    map : str
        Name in slimsvm.h of the core's map of z, which core/kernels/maps.h has with its derivative. Of "EXP2" the core
        has z log2(e).
    """

    unit: ClassVar[float] = 1.0
    map: ClassVar[str]

    @property
    def is_exponential(self) -> bool:
        """Whether it is e^z, and so with distances a product over features."""
        return self.map == "EXP2"

    @abstractmethod
    def formula(self, z: Any, f: Functions) -> Any:
        """Return the kernel value as a formula in z, from which every exported form is made.

        Parameters
        ----------
        z : ndarray, or another kind of number
            A number or an array with ``+ - * /``, also with floats.
        f : Functions
            Functions of such numbers: exp, sqrt, tanh, power.
        """

    @abstractmethod
    def folding(self, n_features: int) -> Folding:
        """Return the map and the scales by which the core evaluates the kernel."""

    def block(self, X: Any, Z: Any, dtype: Any = np.float64) -> np.ndarray:
        """Compute kernel values of folded rows in the core."""
        from slimsvm.kernels.kernel_rows import KernelRows

        rows = KernelRows.for_basis(self, X, Z, dtype=dtype, n_jobs=None)
        return rows.block(rows.points_of(Z))

    def block_with_slopes(self, X: Any, Z: Any, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return kernel values k(x_i, z_j) and their derivatives in the folded product (for z_j: `Folding.metric`).

        Parameters
        ----------
        X : ndarray or CSR of shape (b, d)
        Z : ndarray or CSR of shape (k, d)

        Returns
        -------
        (values, slopes) : float64 ndarrays of shape (b, k)
        """
        from slimsvm.kernels.kernel_rows import KernelRows

        rows = KernelRows.for_basis(Unmapped(self), X, Z, dtype=np.float64, n_jobs=n_jobs)
        return self.folding(X.shape[1]).map_with_slopes(rows.block(rows.points_of(Z)))


@dataclass(frozen=True)
class Unmapped(FoldedKernel):
    """A kernel that returns the number z that another kernel maps."""

    kernel: FoldedKernel
    name: ClassVar[str] = "unmapped"

    map: ClassVar[str] = "IDENTITY"

    def formula(self, z: Any, f: Functions) -> Any:
        """Return the number z itself."""
        return z

    def folding(self, n_features: int) -> Folding:
        """Return the kernel's folding with the identity as its map."""
        return replace(self.kernel.folding(n_features), code=core.IDENTITY, degree=1)


def largest_entry(rows: Rows) -> float:
    """Return the greatest magnitude among the features of all rows, read in blocks."""
    parts = (rows.slice(lo, hi, rows.exact_dtype) for lo, hi in rows.blocks(NORM_ROWS))
    return max((float(max(X.max(), -X.min())) for X in parts if 0 not in X.shape), default=0.0)


def largest_norm(rows: Rows) -> float:
    """Return the greatest ``|x_i|^2``, infinite beyond float64; one pass in blocks, however often it is called."""
    if rows.largest_norm is None:
        with np.errstate(over="ignore"):
            parts = (rows.slice(lo, hi, rows.exact_dtype) for lo, hi in rows.blocks(NORM_ROWS))
            rows.largest_norm = float(max((squared_norms(X).max(initial=0.0) for X in parts), default=0.0))
    return rows.largest_norm


def squared_norms(X: Any) -> np.ndarray:
    """Return ``|x_i|^2`` in float64."""
    from slimsvm.rows import as_csr, is_sparse

    if is_sparse(X):
        X = as_csr(X).astype(np.float64)
        return np.asarray(X.multiply(X).sum(axis=1)).reshape(-1)
    X = np.ascontiguousarray(X, np.float64)  # so that every memory order has one order of summation
    return np.einsum("ij,ij->i", X, X)
