"""A kernel that is a sum of terms, each a shift-invariant kernel of some columns, plus a share of their product.

Its `terms` are kernels of `shift_invariant` with their shares and columns, of which every form that a model is shipped
in is made. The core adds all of them up while a value is in registers (core/scores/terms.cc).

`TermPoints` are points in the form that the terms take. A distance in one column is a difference of two numbers: there
are no norms, and nothing cancels that both of them hold. Sparse rows and points are made dense here, some at a time,
since columns where both are 0 count, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slimsvm import core
from slimsvm.core import aligned_zeros, panel_of
from slimsvm.core.products import in_calls
from slimsvm.core.threads import resolve_n_jobs
from slimsvm.kernels import shift_invariant
from slimsvm.kernels.kernel import Folding, ParametricKernel, check_gamma, feature_gamma
from slimsvm.kernels.operands import WORK_PER_MICROSECOND, DenseFolder
from slimsvm.kernels.shift_invariant import ShiftInvariant
from slimsvm.rows import FLOATS, as_csr, in_pieces, is_sparse

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


SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
# About the multiply-adds that take as long as the map of a term.
MAP_WORK = 24
# The numbers of sparse rows or points that are made dense together.
DENSE_NUMBERS = 1 << 20
# Folded points beyond this are compared in float64: float32 would lose digits of differences. Chosen, not measured.
FAR = 1024.0
# Folded numbers are cut at this, so that differences are finite.
LARGEST = {SINGLE: 1e18, DOUBLE: 1e150}


@dataclass(frozen=True, eq=False)
class TermPoints:
    """The points, centred and scaled, in panels.

    Parameters
    ----------
    folding : Folding
        Units of the columns.
    centre : float64 ndarray of shape (d,)
    dtype : numpy.dtype
        The type in which values are computed.
    panels : list of (int, ndarray)
        Numbers of points, and these points side by side.
    call : dict
        The other arguments of the core.
    """

    folding: Folding
    centre: np.ndarray
    dtype: np.dtype
    panels: list[tuple[int, np.ndarray]]
    call: dict[str, Any]

    @classmethod
    def of(cls, kernel: Additive, Z: Any, dtype: np.dtype) -> TermPoints:
        """Make the points of some vectors in this type, or in float64 if they are far from each other."""
        n_features = Z.shape[1]
        offsets = kernel.offsets(n_features)
        n_terms = len(offsets) - 1
        folding, centre = kernel.of_terms(n_terms).folding(n_features), _centre(Z)
        parts = [_folded(folding, centre, part, DOUBLE) for part in _dense_parts(Z)]
        if any(part.size and np.abs(part).max() > FAR for part in parts):
            dtype = DOUBLE
        panels = []
        for part in parts:
            n_slots = -(-len(part) // panel_of(dtype)) * panel_of(dtype)
            panels.append((len(part), aligned_zeros(n_slots * n_features, dtype)))
            core.pack_dense(values=part.astype(dtype), panels=panels[-1][1])
        call = {
            "is_absolute": int(folding.manhattan), "code": folding.code, "offsets": offsets,
            "shares": kernel.term_shares(n_terms), "whole": kernel.interaction, "ratio": 1.0 / max(1, n_terms),
        }  # fmt: skip
        return cls(folding, centre, dtype, panels, call)

    def fill(self, X: Any, out: np.ndarray, n_jobs: int | None) -> None:
        """Set out, of the type that the points are in, to kernel values of rows."""
        row_work, threads, first = len(self.centre) + MAP_WORK * len(self.call["shares"]), resolve_n_jobs(n_jobs), 0
        for part in _dense_parts(X):
            rows, at = _folded(self.folding, self.centre, part, self.dtype), 0
            for k, panels in self.panels:
                per_row = k * row_work / WORK_PER_MICROSECOND
                for some in in_calls(len(rows), per_row):
                    values = out[first + some.start : first + some.stop, at : at + k]
                    core.sum_terms(rows=rows[some], panels=panels, out=values, n_threads=threads,
                                   microseconds=per_row * len(values), **self.call)  # fmt: skip
                at += k
            first += len(rows)


def _dense_parts(X: Any) -> Iterator[np.ndarray]:
    """Yield rows as dense arrays of floats, part by part."""
    if not is_sparse(X):
        yield _floats(X)
        return
    X = as_csr(X)
    for part in in_pieces(X.shape[0], max(1, DENSE_NUMBERS // max(1, X.shape[1]))):
        yield _floats(X[part].toarray())


def _floats(X: Any) -> np.ndarray:
    X = np.asarray(X)
    return np.ascontiguousarray(X, X.dtype if X.dtype in FLOATS else np.float64)


def _centre(Z: Any) -> np.ndarray:
    """Return the mean of dense points. Folded numbers about it are small if the points are near each other."""
    if is_sparse(Z) or not len(Z):
        return np.zeros(Z.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.mean(Z, axis=0, dtype=np.float64)
    return np.where(np.isfinite(mean), mean, 0.0)


def _folded(folding: Folding, centre: np.ndarray, part: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return rows centred, scaled, and cut at `LARGEST`."""
    folder = DenseFolder(Folding(core.IDENTITY, row_scale=folding.row_scale), centre, len(part), dtype)
    folder.add(part, 0)
    return np.clip(folder.values, -LARGEST[dtype], LARGEST[dtype], out=folder.values)
