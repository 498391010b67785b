"""A kernel that is a sum of terms, each a shift-invariant kernel of some columns, plus a share of their product.

Its `terms` are kernels of `shift_invariant` with their shares and columns, of which every form that a model is shipped
in is made. The core adds all of them up while a value is in registers (core/scores/terms.cc).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from slimsvm.kernels import shift_invariant
from slimsvm.kernels.kernel import ParametricKernel, check_gamma, feature_gamma
from slimsvm.kernels.shift_invariant import ShiftInvariant

if TYPE_CHECKING:
    from slimsvm.kernels.term_points import TermPoints

FAMILIES: dict[str, type[ShiftInvariant]] = {kernel.name: kernel for kernel in shift_invariant.KERNELS}
# The most columns of rows: every column costs time and memory, even if a sparse row has 0 there. Chosen, not measured.
MOST_FEATURES = 1 << 14


class Term(NamedTuple):
    """One term of the sum: a share of a kernel of some columns."""

    share: float
    columns: slice
    kernel: ShiftInvariant


@dataclass(frozen=True, eq=False, repr=False)
class Additive(ParametricKernel):
    """A sum over columns: ``k(x, z) = (1 - a) sum_t s_t k_t(x, z) + a k_0(x, z)``, with shares s_t that add up to 1.

    A term's ``k_t`` is a kernel of the family in the columns of the term alone: of one column, or of several side by
    side. ``k_0`` is the product kernel, of all columns, and ``a`` its share, ``interaction``. Functions of such a
    kernel are sums of a curve for each column (`slimsvm.plots.CurvesDisplay`), an additive model, and with a share of
    the product also of an interaction of all columns. ``k(x, x)`` is 1.

    A categorical column is a term of its one-hot columns: its kernel has one value where levels are equal, another one
    where they are not.

    Parameters
    ----------
    gamma : float or array of shape (d,), default=1.0
        That of the product kernel, positive. Each of m terms has m times this gamma: what is right for a product of m
        columns is right for the sum, too, and ``gamma="scale"`` makes terms as wide as their columns.
    family : {"rbf", "matern32", "rational_quadratic", "laplacian"}, default="rbf"
        The kernel of each term, and of the product.
    widths : array of shape (m,), default=None
        Numbers of columns of the terms, from left to right; None: each column is a term.
    shares : array of shape (m,), default=None
        The shares of the terms, from 0 on, not all 0; they are divided by their sum. None: all alike.
    interaction : float, default=0.0
        Share of the product kernel, from 0 to 1.

    Notes
    -----
    A kernel value takes a map for each term, where other kernels take one: with 20 columns 5 ns in float32 and 13 in
    float64 (RBF: 0.6 and 1.3). Sparse rows are made dense, some at a time; there are at most 16,384 columns. Solvers
    that move vectors need a derivative, which this kernel does not have.

    References
    ----------
    Stone, "Additive regression and other nonparametric models", Annals of Statistics 1985. Wahba, *Spline models for
    observational data*, SIAM 1990; Wahba, Wang, Gu, Klein and Klein, "Smoothing spline ANOVA for exponential families",
    Annals of Statistics 1995. Duvenaud, Nickisch and Rasmussen, "Additive Gaussian processes", NIPS 2011. Durrande,
    Ginsbourger and Roustant, "Additive covariance kernels for high-dimensional Gaussian process modeling", Annales de
    la Faculté des Sciences de Toulouse 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Additive
    >>> half = Additive(gamma=np.log(2) / 2)  # of each of two terms twice this gamma
    >>> half.block(np.array([[0.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 9.0]])).round(12)
    array([[0.75, 0.5 , 0.5 ]])
    >>> one_hot = Additive(gamma=[0.5, 5.0, 5.0, 5.0], family="laplacian", widths=[1, 3], shares=[1, 3])
    >>> one_hot.block(np.array([[2.0, 1, 0, 0]]), np.array([[2.0, 1, 0, 0], [2.0, 0, 1, 0]])).round(6)
    array([[1.  , 0.25]])
    """

    gamma: float | np.ndarray = 1.0
    family: str = "rbf"
    widths: np.ndarray | None = None
    shares: np.ndarray | None = None
    interaction: float = 0.0
    name: ClassVar[str] = "additive"
    form: ClassVar[str | None] = "terms"

    def __post_init__(self):
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(map(repr, FAMILIES))}, got {self.family!r}")
        object.__setattr__(self, "gamma", check_gamma(self.gamma, per_feature=True))
        object.__setattr__(self, "widths", _check_widths(self.widths))
        object.__setattr__(self, "shares", _check_shares(self.shares))
        object.__setattr__(self, "interaction", _check_share(self.interaction))
        widths, shares = self.widths, self.shares
        if widths is not None and shares is not None and len(widths) != len(shares):
            raise ValueError(f"shares must be one for each term: {len(widths)} widths, {len(shares)} shares")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        values = {field.name: np.asarray(getattr(self, field.name)).tolist() for field in fields(self)}
        said = [
            f"{field.name}={values[field.name]!r}"
            for field in fields(self)
            if field.name == "gamma" or values[field.name] != field.default
        ]
        return f"Additive({', '.join(said)})"

    def _key(self) -> tuple:
        return tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in vars(self).values())

    @property
    def is_exponential(self) -> bool:
        """Whether every term is a product over its columns."""
        return FAMILIES[self.family].map == "EXP2"

    def of_terms(self, n_terms: int) -> ShiftInvariant:
        """Make the family's kernel in the units of its terms: each term is that kernel of its columns alone."""
        return FAMILIES[self.family](max(1, n_terms) * np.asarray(self.gamma))

    @property
    def base(self) -> ShiftInvariant:
        """Return the product kernel: of the family, with this gamma."""
        return FAMILIES[self.family](self.gamma)

    def offsets(self, n_features: int) -> np.ndarray:
        """Return the first column of each term, then the number of columns, which must be ``n_features``."""
        if n_features > MOST_FEATURES:
            raise ValueError(
                f"the additive kernel sums over the columns of rows, at most {MOST_FEATURES:,}, found {n_features:,}: "
                "take a kernel of all columns together"
            )
        offsets = np.arange(n_features + 1)
        if self.widths is not None:
            offsets = np.concatenate([[0], np.cumsum(self.widths)])
            if offsets[-1] != n_features:
                raise ValueError(f"widths add up to {offsets[-1]} columns, the rows have {n_features} features")
        if self.shares is not None and len(self.shares) != len(offsets) - 1:
            raise ValueError(f"there are {len(self.shares)} shares for {len(offsets) - 1} terms")
        return offsets

    def term_shares(self, n_terms: int) -> np.ndarray:
        """Return the shares of the terms; with ``interaction`` they add up to 1."""
        shares = np.ones(n_terms) if self.shares is None else self.shares
        return (1.0 - self.interaction) * (shares / shares.sum())

    def terms(self, n_features: int) -> list[Term]:
        """Return the terms, then the product kernel if it has a share."""
        whole = Term(self.interaction, slice(0, n_features), self.base)
        return [*self.single_terms(n_features), *([whole] if self.interaction else [])]

    def single_terms(self, n_features: int) -> list[Term]:
        """Return the terms with a share above 0."""
        offsets, of_family = self.offsets(n_features), FAMILIES[self.family]
        gamma = np.broadcast_to(np.asarray(feature_gamma(self.gamma, n_features), np.float64), (n_features,))
        n_terms = len(offsets) - 1
        return [
            Term(float(share), slice(lo, hi), of_family(_alike(n_terms * gamma[lo:hi])))
            for share, lo, hi in zip(self.term_shares(n_terms), offsets.tolist(), offsets[1:].tolist())
            if share > 0.0
        ]

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return 1 for every row."""
        return np.ones(X.shape[0], dtype)

    def largest(self, rows: Any) -> float:
        """Return 1: no value is larger."""
        return 1.0

    def block(self, X: Any, Z: Any, dtype: Any = np.float64) -> np.ndarray:
        """Compute kernel values in the core."""
        out = np.empty((X.shape[0], Z.shape[0]), dtype)
        self.fill(X, self.prepared(Z, dtype), out, None)
        return out

    def prepared(self, Z: Any, dtype: Any) -> TermPoints:
        """Fold the points, in panels."""
        from slimsvm.kernels.term_points import TermPoints

        return TermPoints.of(self, Z, np.dtype(dtype))

    def fill(self, X: Any, points: TermPoints, out: np.ndarray, n_jobs: int | None) -> None:
        """Set out to `block` of rows and prepared points."""
        if out.dtype == points.dtype:
            points.fill(X, out, n_jobs)
            return
        exact = np.empty(out.shape, points.dtype)
        points.fill(X, exact, n_jobs)
        out[:] = exact


def _alike(gamma: np.ndarray) -> float | np.ndarray:
    """Return one number if all are equal, otherwise the array."""
    return float(gamma[0]) if len(gamma) and (gamma == gamma[0]).all() else gamma


def _read_only(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


def _check_widths(widths: Any) -> np.ndarray | None:
    if widths is None:
        return None
    found = np.asarray(widths)
    if found.ndim != 1 or not found.size or found.dtype.kind not in "iu" or (found < 1).any():
        raise ValueError(f"widths must be numbers of columns of the terms, at least 1 each, got {widths!r}")
    if found.max() > MOST_FEATURES:
        raise ValueError(f"widths must be at most {MOST_FEATURES:,}, found {found.max():,}")
    return _read_only(found.astype(np.int64))


def _check_shares(shares: Any) -> np.ndarray | None:
    if shares is None:
        return None
    try:
        found = np.asarray(shares, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or not found.size or not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise ValueError(f"shares must be finite numbers of the terms, at least 0 and not all 0, got {shares!r}")
    return _read_only(found)


def _check_share(interaction: Any) -> float:
    try:
        share = float(interaction)
    except (TypeError, ValueError):
        share = np.nan
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"interaction must be a share from 0 to 1, got {interaction!r}")
    return share


KERNELS = (Additive,)
