"""A kernel that is a sum of terms, each a kernel of x - z of some columns, and a share of the product over all columns.

Its `terms` are kernels of `shift_invariant` with their shares and columns, of which every form that a model is shipped
in is made. The core adds all of them up while a value is in registers (core/scores/terms.cc).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slimsvm import core
from slimsvm.kernels import shift_invariant
from slimsvm.kernels.kernel import ParametricKernel, check_gamma, feature_gamma
from slimsvm.kernels.kernel_form import Folding
from slimsvm.kernels.shift_invariant import ShiftInvariant

FAMILIES: dict[str, type[ShiftInvariant]] = {kernel.name: kernel for kernel in shift_invariant.KERNELS}
# Multiply-adds that take as long as the map of a term, and those of one thread in a microsecond, about.
MAP_WORK, WORK_PER_MICROSECOND = 24, 40_000
# Numbers of sparse rows or points that are made dense at a time.
DENSE_NUMBERS = 1 << 20
# Columns of rows: all of them cost time and memory, those that are 0 in a sparse row, too. Chosen, not measured.
MOST_FEATURES = 1 << 14
# Folded points beyond this are compared in float64: float32 would lose digits of differences. Chosen, not measured.
FAR = 1024.0
# Folded numbers stay below it: differences are then finite.
LARGEST = {np.dtype(np.float32): 1e18, np.dtype(np.float64): 1e150}


class Term(NamedTuple):
    """A share of a kernel of some columns."""

    share: float
    columns: slice
    kernel: ShiftInvariant


@dataclass(frozen=True, eq=False, repr=False)
class Additive(ParametricKernel):
    """A sum over columns: ``k(x, z) = (1 - a) sum_t s_t k_t(x, z) + a k_0(x, z)``, with shares s_t that add up to 1.

    A term's ``k_t`` is a kernel of the family in the columns of the term alone: of one column, or of several side by
    side. ``k_0`` is the product kernel, of all columns, and ``a`` its share, ``interaction``. Functions of such a
    kernel are sums of a curve for each column (`slimsvm.plots.plot_curves`), an additive model, and with a share of
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
        Of the terms, from 0 on, not all 0; they are divided by their sum. None: all alike.
    interaction : float, default=0.0
        Share of the product kernel, from 0 to 1.

    Notes
    -----
    A kernel value takes a map for each term, about 0.5 ns, where other kernels take one: with 20 columns and float32 it
    is some 10 ns. Learned vectors need a derivative, which there is none of.

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

    @property
    def base(self) -> ShiftInvariant:
        """The product kernel: of the family, with this gamma."""
        return FAMILIES[self.family](self.gamma)

    def offsets(self, n_features: int) -> np.ndarray:
        """The first column of each term, and the number of all; an error where terms do not have so many columns."""
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
        """Shares of the terms, which with ``interaction`` add up to 1."""
        shares = np.ones(n_terms) if self.shares is None else self.shares
        return (1.0 - self.interaction) * (shares / shares.sum())

    def terms(self, n_features: int) -> list[Term]:
        """The terms, and last the product kernel, if it has a share."""
        whole = Term(self.interaction, slice(0, n_features), self.base)
        return [*self.single_terms(n_features), *([whole] if self.interaction else [])]

    def single_terms(self, n_features: int) -> list[Term]:
        """The terms with a share above 0."""
        offsets, of_family = self.offsets(n_features), FAMILIES[self.family]
        gamma = np.broadcast_to(np.asarray(feature_gamma(self.gamma, n_features), np.float64), (n_features,))
        n_terms = len(offsets) - 1
        return [
            Term(float(share), slice(lo, hi), of_family(_alike(n_terms * gamma[lo:hi])))
            for share, lo, hi in zip(self.term_shares(n_terms), offsets.tolist(), offsets[1:].tolist())
            if share > 0.0
        ]

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """1 for every row."""
        return np.ones(X.shape[0], dtype)

    def largest(self, rows: Any) -> float:
        """1: no value is larger."""
        return 1.0

    def block(self, X: Any, Z: Any, dtype: Any = np.float64) -> np.ndarray:
        """Kernel values, computed by the core."""
        return self.values(X, self.prepared(Z, dtype), dtype, None)

    def prepared(self, Z: Any, dtype: Any) -> FoldedPoints:
        """The points folded, in panels."""
        return FoldedPoints.of(self, Z, np.dtype(dtype))

    def values(self, X: Any, points: FoldedPoints, dtype: Any, n_jobs: int | None) -> np.ndarray:
        """`block` of rows and prepared points."""
        return points.values(X, n_jobs).astype(dtype, copy=False)


@dataclass(frozen=True, eq=False)
class FoldedPoints:
    """Points as a term's distances are computed from them: centred, scaled, in panels.

    Parameters
    ----------
    folding : Folding
        Units of the columns in the terms; distances are differences, so that there are no norms.
    centre : float64 ndarray of shape (d,)
    dtype : numpy.dtype
        What values are computed in.
    panels : list of (int, ndarray)
        Numbers of points, and these points side by side.
    call : dict
        What the core asks for beside them.
    """

    folding: Folding
    centre: np.ndarray
    dtype: np.dtype
    panels: list[tuple[int, np.ndarray]]
    call: dict[str, Any]

    @classmethod
    def of(cls, kernel: Additive, Z: Any, dtype: np.dtype) -> FoldedPoints:
        """Those of some vectors, in this type or, where they are far from each other, in float64."""
        from slimsvm.core import aligned_zeros, panel_of

        n_features = Z.shape[1]
        offsets = kernel.offsets(n_features)
        n_terms, of_family = len(offsets) - 1, FAMILIES[kernel.family]
        folding = of_family(max(1, n_terms) * np.asarray(kernel.gamma)).folding(n_features)
        centre = _centre(Z)
        parts = [_folded(folding, centre, part, np.dtype(np.float64)) for part in _dense_parts(Z)]
        if max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0) > FAR:
            dtype = np.dtype(np.float64)
        panels = []
        for part in parts:
            n_slots = -(-len(part) // panel_of(dtype)) * panel_of(dtype)
            panels.append((len(part), aligned_zeros(n_slots * n_features, dtype)))
            core.pack_dense(values=np.clip(part, -LARGEST[dtype], LARGEST[dtype]).astype(dtype), panels=panels[-1][1])
        call = {
            "is_absolute": int(folding.manhattan), "code": folding.code, "offsets": offsets,
            "shares": kernel.term_shares(n_terms), "whole": kernel.interaction, "ratio": 1.0 / max(1, n_terms),
        }  # fmt: skip
        return cls(folding, centre, dtype, panels, call)

    def values(self, X: Any, n_jobs: int | None) -> np.ndarray:
        """Kernel values of rows, in the type that the points are in."""
        from slimsvm.core.products import in_calls
        from slimsvm.core.threads import resolve_n_jobs

        dtype, n_points, threads = self.dtype, sum(k for k, _ in self.panels), resolve_n_jobs(n_jobs)
        out, first = np.empty((X.shape[0], n_points), dtype), 0
        for part in _dense_parts(X):
            rows = np.clip(_folded(self.folding, self.centre, part, dtype), -LARGEST[dtype], LARGEST[dtype])
            work, at = rows.shape[1] + MAP_WORK * len(self.call["shares"]), 0
            for k, panels in self.panels:
                per_row = k * work / WORK_PER_MICROSECOND
                for some in in_calls(len(rows), per_row):
                    values = np.empty((some.stop - some.start, k), dtype)
                    core.sum_terms(rows=rows[some], panels=panels, out=values, n_threads=threads,
                                   microseconds=per_row * len(values), **self.call)  # fmt: skip
                    out[first + some.start : first + some.stop, at : at + k] = values
                at += k
            first += len(rows)
        return out


def _dense_parts(X: Any) -> Iterator[np.ndarray]:
    """Rows as dense arrays of floats; sparse ones some at a time."""
    from slimsvm.rows import FLOATS, as_csr, in_pieces, is_sparse

    if is_sparse(X):
        X = as_csr(X)
        for part in in_pieces(X.shape[0], max(1, DENSE_NUMBERS // max(1, X.shape[1]))):
            yield X[part].toarray()
        return
    X = np.asarray(X)
    yield np.ascontiguousarray(X, X.dtype if X.dtype in FLOATS else np.float64)


def _centre(Z: Any) -> np.ndarray:
    """The mean of dense points: what folded numbers are small about, if the points are near each other."""
    from slimsvm.rows import is_sparse

    if is_sparse(Z) or not len(Z):
        return np.zeros(Z.shape[1])
    with np.errstate(over="ignore"):
        mean = np.mean(Z, axis=0, dtype=np.float64)
    return np.where(np.isfinite(mean), mean, 0.0)


def _folded(folding: Folding, centre: np.ndarray, part: np.ndarray, dtype: np.dtype) -> np.ndarray:
    from slimsvm.kernels.operands import DenseFolder

    folder = DenseFolder(Folding(core.IDENTITY, row_scale=folding.row_scale), centre, len(part), dtype)
    folder.add(part, 0)
    return folder.values


def _alike(gamma: np.ndarray) -> float | np.ndarray:
    """One number where all are the same."""
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
