"""The small quadratic programme over the live cuts, kept ready to be solved again.

    max_a  h'a - 1/2 a'G a    subject to  a >= 0,  sum(a) <= C

is the dual of  min_{w, xi}  1/2 ||w||^2 + C xi  s.t.  h_j - <w, g_j> <= xi,  xi >= 0,  with G_jk = <g_j, g_k>
(Yu and Joachims 2008, the problem solved in every iteration of Algorithms 1 to 4). `core/cuts/active_set.cc` has the
method.
"""

from typing import Any, NamedTuple

import numpy as np

from slimsvm import core

_NOT_FINITE = "the cuts' inner products, constants and multipliers must be finite; found NaN or infinity"
_PIVOTS_PER_COORDINATE = 20  # at most 4 were seen: this bound makes the method end
_MAX_WORK = 50_000_000  # multiply-adds of one call of compiled code: below 50 ms
_SLACK = 0  # the coordinate that stands for C - sum(a) in compiled code; cut j is coordinate j + 1


class QPSolution(NamedTuple):
    """The result of `SimplexQP.solve`, beside `alpha` itself.

    Attributes
    ----------
    xi : float
        Multiplier of sum(alpha) <= C: max(0, max_j (h - G alpha)_j).
    kkt : float
        KKT residual reached: the largest xi - (h - G alpha)_j over alpha_j > 0 (and xi itself where sum(alpha) < C),
        as a share of max(max|h|, max|G alpha|). The other conditions hold by construction.
    n_pivots : int
        Number of times a coordinate became free or left the free set.
    """

    xi: float
    kkt: float
    n_pivots: int


class SimplexQP:
    """max_a h'a - 1/2 a'G a over a >= 0, sum(a) <= C, for a set of cuts that grows and shrinks between solutions.

    Keeps the last solution and its Cholesky factor, so that solving again after one cut was appended costs a few
    triangular solves. State is plain arrays: copies and pickles.

    Parameters
    ----------
    tol : float, default=1e-10
        KKT residual to reach (see `QPSolution`), where rounding allows it.
    capacity : int, default=64
        Number of cuts to make room for; it doubles when it is exceeded.
    max_work : int
        Multiply-adds of one call of compiled code.

    Examples
    --------
    >>> qp = SimplexQP()
    >>> qp.append([], 2.0, 1.0)
    >>> qp.append([1.0], 2.0, 0.5)
    >>> solution = qp.solve(10.0)
    >>> qp.alpha
    array([0.5, 0. ])
    >>> solution.kkt < 1e-10
    True
    """

    def __init__(self, tol: float = 1e-10, capacity: int = 64, max_work: int = _MAX_WORK):
        self.tol, self.max_work = tol, max_work
        self._n = 1  # coordinates in use: the slack and the cuts
        self._arrays = _arrays(capacity + 1)
        self._bind()

    @classmethod
    def from_gram(cls, G: Any, h: Any, alpha: Any = None, tol: float = 1e-10, max_work: int = _MAX_WORK) -> "SimplexQP":
        """Return the problem with t cuts given at once.

        Parameters
        ----------
        G : array-like (t, t)
            Gram matrix of the cuts, symmetric.
        h : array-like (t,)
            The constants of the cuts.
        alpha : array-like (t,), optional
            The point at which the next solution starts; zero by default.
        tol, max_work
            The same as for the class.

        Raises
        ------
        ValueError
            If the shapes do not match or a number is not finite.
        """
        h = np.asarray(h, dtype=np.float64)
        t = len(h)
        G = np.asarray(G, dtype=np.float64)
        alpha = np.zeros(t) if alpha is None else np.asarray(alpha, dtype=np.float64)
        if G.shape != (t, t) or alpha.shape != (t,):
            raise ValueError(
                f"{t} constants need G of shape ({t}, {t}) and {t} multipliers, got {G.shape}, {alpha.shape}"
            )
        if not (np.isfinite(G).all() and np.isfinite(h).all() and np.isfinite(alpha).all()):
            raise ValueError(_NOT_FINITE)
        qp = cls(tol, max(t, 1), max_work)
        qp._n = t + 1
        qp.G[:] = G
        qp.h[:] = h
        qp._a[1 : t + 1] = alpha
        return qp

    def _bind(self) -> None:
        """Hand the arrays to compiled code; they stay where they are until `_resize`."""
        self._compiled = core.SimplexQp(**self._arrays)
        self._maximise = core.maximise_on_simplex.prepare(qp=self._compiled, max_work=self.max_work)
        self._G, self._h, self._a = (self._arrays[name] for name in "Gha")

    def __getstate__(self) -> dict[str, Any]:
        """Return the arrays, without the structure that holds their addresses."""
        return {"tol": self.tol, "max_work": self.max_work, "_n": self._n, "_arrays": self._arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Bind arrays of its own."""
        vars(self).update(state)
        self._bind()

    def __len__(self) -> int:
        """Return the number of cuts."""
        return self._n - 1

    @property
    def G(self) -> np.ndarray:
        """Return the Gram matrix of the cuts, (t, t) float64; a view."""
        return self._G[1 : self._n, 1 : self._n]

    @property
    def h(self) -> np.ndarray:
        """Return the constants of the cuts, (t,) float64; a view."""
        return self._h[1 : self._n]

    @property
    def alpha(self) -> np.ndarray:
        """Return the last solution, 0 for cuts appended since, (t,) float64; a copy."""
        return self._a[1 : self._n].copy()

    @property
    def value(self) -> float:
        """Return the objective h'a - 1/2 a'G a at `alpha`."""
        alpha = self.alpha
        return float(alpha @ self.h - 0.5 * alpha @ (self.G @ alpha))

    def append(self, row: Any, diagonal: float, c: float, alpha: float = 0.0) -> None:
        """Append a cut.

        Parameters
        ----------
        row : array-like (t,)
            Inner products of its g with those of the t cuts there are.
        diagonal : float
            The squared norm of its g.
        c : float
            The constant h_t of the cut.
        alpha : float, default=0.0
            Its value when the next solution starts.

        Raises
        ------
        ValueError
            If `row` has not t entries or a number is not finite.
        """
        row = np.asarray(row, dtype=np.float64)
        n = self._n
        if row.shape != (n - 1,):
            raise ValueError(f"row must hold one inner product per cut, {n - 1} in all; its shape is {row.shape}")
        if not (np.isfinite(row).all() and np.isfinite([diagonal, c, alpha]).all()):
            raise ValueError(_NOT_FINITE)
        if n == len(self._h):
            self._resize(2 * n)
        self._G[1:n, n] = self._G[n, 1:n] = row
        self._G[n, n] = diagonal
        self._h[n] = c
        self._a[n] = alpha
        self._n = n + 1

    def _resize(self, capacity: int) -> None:
        larger = _arrays(capacity)
        for name, array in self._arrays.items():
            larger[name][tuple(slice(length) for length in array.shape)] = array
        self._arrays = larger
        self._bind()

    def keep(self, index: Any) -> None:
        """Forget all cuts but `index`.

        Parameters
        ----------
        index : int array (k,)
            Increasing positions of the cuts to keep. The others' multipliers go to the slack at the next solution.

        Raises
        ------
        ValueError
            If the positions do not increase, or there are no cuts at them.
        """
        kept = np.append(_SLACK, np.asarray(index, dtype=np.int64) + 1)
        if not (np.all(np.diff(kept) > 0) and kept[-1] < self._n):
            raise ValueError(f"index must hold increasing positions among the {len(self)} cuts, got {index}")
        core.keep_on_simplex(qp=self._compiled, n=self._n, kept=kept)
        self._n = len(kept)

    def merge(self, index: Any) -> np.ndarray:
        """Replace some cuts by one, their mean weighted by alpha, appended at the end: the value stays as it is.

        Parameters
        ----------
        index : int array (k,)
            Positions of the cuts to merge.

        Returns
        -------
        weights : ndarray (k,)
            Weights of the mean, sum 1; equal ones where all of alpha is zero.
        """
        index = np.asarray(index, dtype=np.int64)
        alpha = self.alpha[index]
        total = alpha.sum()
        weights = alpha / total if total > 0 else np.full(len(index), 1.0 / len(index))
        row = weights @ self.G[index]
        diagonal = float(row[index] @ weights)
        c = float(weights @ self.h[index])
        others = np.setdiff1d(np.arange(len(self)), index)
        self.keep(others)
        self.append(row[others], diagonal, c, total)
        return weights

    def solve(self, C: float) -> QPSolution:
        """Solve from the last solution, made feasible for C; `alpha` then holds the result.

        Always ends, at a feasible point whose value is not below that of the start. The KKT residual falls below `tol`
        unless rounding forbids it: G alpha cannot be told better than 1e-16 times |G| alpha, which exceeds G alpha by
        far where the g cancel (C so large that the loss hardly counts, norms of many orders of magnitude).

        Raises
        ------
        ValueError
            If C is not positive and finite.
        """
        if not (np.isfinite(C) and C > 0):
            raise ValueError(f"C must be positive and finite, got {C}")
        max_pivots, is_start, is_done = _PIVOTS_PER_COORDINATE * self._n + 100, 1, 0
        while not is_done:
            is_done, n_pivots, xi, kkt = self._maximise(
                n=self._n, C=C, tol=self.tol, max_pivots=max_pivots, is_start=is_start
            )
            is_start = 0
        return QPSolution(xi, kkt, n_pivots)


def _arrays(capacity: int) -> dict[str, np.ndarray]:
    """Return arrays for a ``struct slimsvm_simplex_qp`` of this capacity."""
    squares = {name: np.zeros((capacity, capacity)) for name in "GR"}
    return squares | {
        "h": np.zeros(capacity),
        "a": np.zeros(capacity),
        "V": np.zeros((2, capacity)),
        "kappa": np.ones(1),
        "free": np.zeros(capacity, np.int64),
        "state": np.zeros(6, np.int64),
        "vectors": np.zeros((3, capacity)),
        "marks": np.zeros(capacity, np.int64),
    }
