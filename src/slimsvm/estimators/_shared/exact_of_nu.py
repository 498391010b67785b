r"""The exact SVM with a given ν in place of C, or of ε: Schölkopf's ν-SVM.

Its dual is that of the exact SVM with one more sum that is kept:

    max_v  Σ t_i v_i − ½ v'Kv,    lo ≤ v ≤ hi,    Σ v_i = 0,    Σ |v_i| = ν C Σ ω_i.

The multiplier of the last sum is ε. Of a regression that is the tube. Two classes have t = 0 and C = 1, and ρ = −ε is
the margin: v / ρ solves the exact SVM with C = 1/ρ, which is how LIBSVM does it. Steps on pairs whose v_i stand on the
same side of 0 keep both sums; all else is the exact solver's (`solvers.exact`). The tolerance is LIBSVM's, in units of
ν's problem: with C = 1/ρ it is tol · C. Several classes are pairs, each with a ρ of its own.

A regression whose ε would be below 0 has so large a ν that no tube has its share: it gets that of ε = 0. Classes whose
ρ would be 0 or below overlap so much that no C has so small a share: they get the least C that ``tol`` tells from
infinity.

Schölkopf, Smola, Williamson, Bartlett, "New Support Vector Algorithms", Neural Computation 2000; Chang, Lin, "Training
ν-Support Vector Classifiers: Theory and Algorithms", Neural Computation 2001; Chang, Lin, "Training ν-Support Vector
Regression: Theory and Algorithms", Neural Computation 2002.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.estimators._shared.input_checks import is_chosen
from slimsvm.kernels import KernelRows
from slimsvm.parts.dual_ascent.dual import LAST, Dual, DualState, Tolerance, level
from slimsvm.parts.dual_ascent.one_vs_one import OneVsOneRun, PairFit
from slimsvm.parts.dual_ascent.pair_sets import PairRows, PairSets, SharedKernelRun
from slimsvm.parts.problem import RANDOM_ACCESS, Kept, Problem, check_needs
from slimsvm.parts.run import GAP_WORTH_SAYING, Fit, Status
from slimsvm.parts.solver import Callback
from slimsvm.rows import as_rows
from slimsvm.solvers import Exact
from slimsvm.solvers.exact import SEED, ExactRun
from slimsvm.tasks import Examples, OneVsOne, Regression

Array = np.ndarray

# What rounding does to shares of weights; the largest C.
ROUNDING, LARGEST_C = 1e-12, 1e10
# The C of classes that overlap too much, in units of 1 / tol, beyond which margins cannot be told from 0.
LARGE_C = 0.1


@dataclass(frozen=True)
class NuSettings:
    """Where many rows begin; docs/experiments/exact_solver.md, "ν in place of C", has what it saves."""

    # From more rows than ``many_rows`` on the first point is that of the exact SVM which has ν in so many rows, if its
    # C, in units of that of a row's kernel value, is no larger than ``largest_C``.
    many_rows: int = 8192
    sample_rows: int = 2000
    largest_C: float = 100.0


def dual_of_nu(problem: Problem, nu: float) -> Dual:
    """Return the dual of two classes or of a regression with Σ |v| kept."""
    dual = Dual.of(problem)
    target = dual.target if problem.task.has_targets else np.zeros(len(dual.target))
    return replace(dual, target=target, epsilon=0.0, balanced=2, mass=nu * problem.C1)


def has_room(problem: Problem, nu: float) -> bool:
    """Return whether a regression has a tube: Σ |v| is that of ν, with no row at 0, nor all at their bounds."""
    dual = dual_of_nu(problem, nu)
    return nu < 1 and bool(np.abs(dual.outermost(dual.target)).sum() >= dual.mass * (1.0 - ROUNDING * len(dual.target)))


class NuRun(ExactRun):
    """The run of two classes or of a regression; in the end it is that of the exact SVM with the C or ε found."""

    doing = "exact SVM of nu"
    has_said_of_gap = True  # `ExactOfNu` does

    def __init__(self, problem: Problem, state: DualState | None, nu: float):
        self.nu = nu
        super().__init__(problem, None, state)
        self.tol = self.tolerance()
        self.level()

    def tolerance(self) -> Tolerance:
        """Return LIBSVM's tolerance, of two classes lowered where kernel values are small.

        Few rows go on while the gap is wide, as in the exact SVM, of a regression only if that takes little time: ε may
        be far below tol. Many go on only while D, which is half of the objective or more at the optimum, is below 0.
        """
        own, problem = self.tol, self.problem
        if problem.task.has_targets:
            few = replace(own, settings=replace(own.settings, more_steps=0))
            return few if problem.is_small else replace(own, gap=1.0)
        tol = problem.tol * min(1.0, size_of(self.kernel_rows))
        if not problem.is_small:
            return replace(own, tol=tol, gap=1.0)
        return replace(own, tol=tol, least_steps=own.settings.at_once // problem.rows.n_rows)

    def dual_of(self, problem: Problem) -> Dual:
        """Return the problem's dual, with Σ |v| kept."""
        return dual_of_nu(problem, self.nu)

    def go_on(self, state: DualState) -> None:
        """Start from another fit's dual point, with the sums of this one."""
        C = self.problem.C
        self.v = np.clip(state.v * (C / state.C), self.dual.lo, self.dual.hi)
        scores = state.scores_at(self.v, C, self.kept.get(LAST))
        g = self.gradient() if scores is None else self.dual.target - scores
        self.begin(self.dual.with_mass(self.v, g))

    def level(self) -> None:
        """Take the ε that is best for v."""
        dual = self.dual
        self.dual = replace(dual, epsilon=level(self.v, self.g, dual.lo, dual.hi, by_free=True))
        self.value = self.dual.value(self.v, self.g)

    @property
    def margin(self) -> float:
        """ρ of two classes, 1 of a regression: what one is in units of ν's problem."""
        return 1.0 if self.problem.task.has_targets else max(-self.dual.epsilon, 1.0 / LARGEST_C)

    def evaluate(self, at_best: bool) -> tuple[float, float]:
        """Return objective and intercept, for the best ε."""
        if self.dual.mass:
            self.level()
        return super().evaluate(at_best)

    def step(self) -> dict[str, Any]:
        """Take a step; its record is in units of the exact SVM."""
        record, unit = super().step(), self.margin**2
        for name in ("objective", "lower_bound", "gap"):
            record[name] = None if record[name] is None else record[name] / unit
        return record

    def become_usual(self) -> None:
        """Become the run of the exact SVM with the C or ε found, at its dual point."""
        problem, before = self.problem, self.dual
        if problem.task.has_targets:
            self.problem = replace(problem, task=Regression(max(before.epsilon, 0.0)))
        else:
            self.problem = replace(problem, C=problem.C / self.margin)
        self.dual, ratio = Dual.of(self.problem), self.problem.C / problem.C

        def scaled(g: Array, rows: Any = slice(None)) -> Array:
            return self.dual.target[rows] + ratio * (g - before.target[rows])

        self.active.g = scaled(self.active.g, self.active.rows)
        if self.checked is not None:
            self.checked = self.dual.feasible(ratio * self.checked[0]), scaled(self.checked[1])
        self.v, self.g = self.dual.feasible(ratio * self.v), scaled(self.g)

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model and the problem that it solves."""
        if self.g_of_all:
            self.level()
        self.become_usual()
        return replace(super().finish(status, history), solved=self.problem)


class NuPairsRun(OneVsOneRun):
    """The run of several classes: pairs, each with a C of its own."""

    has_said_of_gap = True  # the pairs' fits have

    def two_classes(self, k: int) -> Problem:
        """Return the problem of pair k; of few rows it is solved as two classes of few rows are."""
        found = super().two_classes(k)
        return replace(found, precision="auto") if self.problem.is_small else found

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return one model of all pairs and the problem that it solves."""
        factors = tuple(1.0 if state is None else state.C for state in self.states)
        classes: Any = self.problem.task
        task = OneVsOne(classes.n_classes, factors=factors)
        return replace(super().finish(status, history), solved=replace(self.problem, task=task))


class NuPairSets(PairSets):
    """The problems of ν of some pairs, side by side, with the ρ of each as ``margin``; once solved they are those of
    the exact SVM, each with its C.
    """

    def __init__(self, nu: float, problem: Problem, pairs: list[PairRows], K: Array, kept: Kept):
        self.margin = np.zeros(len(pairs))
        super().__init__(problem, pairs, [None] * len(pairs), K, kept)
        self.mass = nu * self.sums(self.dual.hi - self.dual.lo)
        sizes = [size_of_values(K[pair.places, pair.places]) for pair in pairs]
        self.tol = [
            replace(tol, tol=problem.tol * min(1.0, size), least_steps=tol.settings.at_once // n)
            for tol, size, n in zip(self.tol, sizes, self.sizes.tolist(), strict=True)
        ]
        for k in range(len(pairs)):
            self.begin(k)

    def dual_of(self, weighted: Examples) -> Dual:
        """Return the dual of all pairs, with Σ |v| kept."""
        dual = super().dual_of(weighted)
        return replace(dual, target=np.zeros(len(dual.target)), balanced=2)

    def of_pair(self, k: int) -> Dual:
        """Return the dual of pair k."""
        found = super().of_pair(k)
        return replace(found, mass=float(self.mass[k])) if self.dual.balanced == 2 else found

    def begin(self, k: int) -> None:
        """Start pair k with the rows at their bounds that are least like their own class."""
        part, dual, K = self.part(k), self.of_pair(k), self.values(k)
        above = dual.hi > 0
        likeness = K @ np.where(above, 1.0, -float(above.sum()) / max(1.0, float((~above).sum())))
        self.v[part] = v = dual.outermost(-likeness)
        self.g[part] = -(K @ v)

    def middles(self, is_own: Array) -> Array:
        """Return each pair's mean g of the free rows of one side, or the middle of what its other rows allow."""
        v, g, lo, hi, starts = self.v, self.g, self.dual.lo, self.dual.hi, self.starts[:-1]
        rises, falls = is_own & (v < hi), is_own & (v > lo)
        free = rises & falls
        n_free, total = self.sums(free.astype(np.float64)), self.sums(np.where(free, g, 0.0))
        highest = np.maximum.reduceat(np.where(rises, g, -np.inf), starts)
        lowest = np.minimum.reduceat(np.where(falls, g, np.inf), starts)
        highest, lowest = (np.where(np.isfinite(a), a, b) for a, b in ((highest, lowest), (lowest, highest)))
        return np.where(n_free > 0, total / np.maximum(n_free, 1.0), 0.5 * (highest + lowest))

    def update_bounds(self) -> None:
        """Compute ρ, intercept, objective and D of every pair."""
        if self.dual.balanced < 2:
            super().update_bounds()
            return
        v, g, dual = self.v, self.g, self.dual
        first, second = self.middles(dual.hi > 0), self.middles(dual.hi <= 0)
        self.margin, self.intercept = 0.5 * (second - first), 0.5 * (first + second)
        margin, off = np.repeat(self.margin, self.sizes), g - np.repeat(self.intercept, self.sizes)
        losses = dual.hi * np.maximum(off + margin, 0.0) - dual.lo * np.maximum(margin - off, 0.0)
        self.objective = self.sums(losses - 0.5 * v * g)
        self.lower_bound = np.minimum(self.sums(0.5 * v * g + margin * np.abs(v)), self.objective)

    def solve(self, workspace: Array) -> list[Status]:
        """Take steps until no pair needs more, or a limit is reached; return each pair's status."""
        found = super().solve(workspace)
        self.become_usual()
        return found

    def become_usual(self) -> None:
        """Become the problems of the exact SVM with the C of each pair, at its dual point."""
        self.update_bounds()
        self.margin = np.maximum(self.margin, 1.0 / LARGEST_C)
        by_row = np.repeat(1.0 / self.margin, self.sizes)
        self.C, self.middle = self.C / self.margin, self.intercept / self.margin
        weighted = replace(self.examples, weights=self.examples.weights * by_row)
        self.dual = super().dual_of(weighted)
        self.v, self.g = self.v * by_row, self.dual.target + self.g * by_row
        self.update_bounds()

    def is_found(self, k: int) -> bool:
        """Return whether pair k has a C, and no gap worth saying."""
        gap = self.objective[k] - self.lower_bound[k]
        return bool(self.C[k] < LARGEST_C and self.lower_bound[k] > 0 and gap <= GAP_WORTH_SAYING * self.objective[k])


class NuSharedRun(NuPairsRun, SharedKernelRun):
    """The run of several classes of few rows: pairs side by side; those that find no C so are solved for alone."""

    def __init__(self, problem: Problem, solver: ExactOfNu):
        super().__init__(problem, solver, None)
        self.nu = solver.nu

    def sets_of(self, pairs: list[PairRows], states: list[Any], K: Array) -> NuPairSets:
        """Return the problems of some pairs."""
        return NuPairSets(self.nu, self.problem, pairs, K, self.kept)

    def fit_of(self, sets: PairSets, k: int, status: Status) -> PairFit:
        """Return the fit of the next pair, which is number k of the sets."""
        assert isinstance(sets, NuPairSets)
        if status is not Status.CONVERGED or sets.is_found(k):
            return super().fit_of(sets, k, status)
        fit = self.fit_pair(len(self.fits))
        sets.lower_bound[k] = 0.0
        self.sure += max(0.0, fit.lower_bound)
        return fit


class ExactOfNu(Exact):
    """The exact SVM of ν: see the module's text."""

    def __init__(self, nu: float = 0.5) -> None:
        super().__init__()
        self.nu = nu

    def solve(self, problem: Problem, state: Any = None, callbacks: Iterable[Callback] = ()) -> Fit:
        """Solve for ν; ``Fit.solved`` has the C, the C of each pair or the ε that were found."""
        if isinstance(state, DualState):
            state = replace(state, task=problem.task)  # a dual point of one ε is one of any
        if problem.task.has_targets and not has_room(problem, self.nu):
            return self._without_tube(problem, callbacks)
        if state is None and problem.rows.n_rows > problem.settings_of(NuSettings).many_rows:
            problem, state = self._near(problem)
        fit = super().solve(problem, state, callbacks)
        if fit.solved is None or fit.status not in (Status.CONVERGED, Status.GAP) or problem.task.class_pairs():
            return fit
        problem = replace(problem, kept=fit.kept if problem.kept is None else problem.kept)
        if problem.task.has_targets:
            found: Any = fit.solved.task
            if not found.epsilon > 0:
                return self._without_tube(problem, callbacks)
            warn_of_gap(
                fit, problem, f"the tube of nu={self.nu!r} is so narrow, epsilon={found.epsilon:.3g}, that", "lower tol"
            )
            return fit
        if fit.history[-1]["lower_bound"] > 0 and fit.solved.C < LARGEST_C:
            what = f"nu={self.nu!r} is small for classes that overlap: C is {fit.solved.C:.3g}, and"
            warn_of_gap(fit, problem, what, "raise nu, or lower tol")
            return fit
        overlapping = replace(problem, C=LARGE_C * problem.C / (problem.tol * size_of(problem.bind())))
        fit = Exact().solve(overlapping, callbacks=callbacks)
        warn_of_overlap(self.nu, fit)
        return replace(fit, solved=overlapping)

    def _near(self, problem: Problem) -> tuple[Problem, DualState | None]:
        """Return a dual point of all rows of the exact SVM that has ν in a sample, and the problem that keeps values.

        There is none where the sample's C is large, whose SVM would take long.
        """
        own = problem.settings_of(NuSettings)
        sample = sample_of(problem, own.sample_rows)
        if problem.task.class_pairs() or problem.max_iter is not None or not is_feasible(self.nu, sample):
            return problem, None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = self.solve(sample).solved
            if found is None or found.C * size_of(sample.bind()) > own.largest_C * problem.C:
                return problem, None
            shared = replace(problem, kept=problem.kept or Kept(problem.room))
            share = 1.0 if problem.task.has_targets else sample.examples.total_weight / problem.examples.total_weight
            whole = replace(shared, C=found.C * share, task=found.task, to_compare=True, verbose=0)
            state = Exact().solve(whole).state
        return shared, None if state is None else replace(state, task=problem.task)

    def _without_tube(self, problem: Problem, callbacks: Iterable[Callback]) -> Fit:
        """Return the fit of ε = 0; where its share is above ν after all, that of ν from there."""
        bare = replace(problem, task=Regression(0.0))
        fit = Exact().solve(bare, callbacks=callbacks)
        if fit.state is None or not has_room(problem, self.nu):
            return replace(fit, solved=bare)
        if np.abs(fit.state.v).sum() <= self.nu * problem.C1 * (1.0 + problem.tol):
            return replace(fit, solved=bare)
        return super().solve(problem, replace(fit.state, task=problem.task), callbacks)

    def start(self, problem: Problem, state: Any = None) -> NuRun | NuPairsRun:
        """Check that ν is feasible, and set the run up."""
        check_needs("nu", problem, RANDOM_ACCESS)
        if problem.task.has_targets:
            return NuRun(problem, state, self.nu)
        check_feasible(self.nu, problem)
        if problem.task.class_pairs():
            is_shared = problem.is_small and state is None
            return NuSharedRun(problem, self) if is_shared else NuPairsRun(problem, self, state)
        return NuRun(problem, state, self.nu)


def size_of(kernel_rows: KernelRows) -> float:
    """Return the mean K_ii, which margins are measured in."""
    return size_of_values(kernel_rows.diag())


def size_of_values(diagonal: Array) -> float:
    """Return the mean of K_ii; 1 if it is 0."""
    size = float(diagonal.mean())
    return size if size > 0 else 1.0


def warn_of_gap(fit: Fit, problem: Problem, what: str, advice: str) -> None:
    """Say that tol is coarse for what was found."""
    assert fit.lower_bound is not None
    gap = (fit.objective - fit.lower_bound) / abs(fit.objective)
    if fit.status is Status.GAP and gap > GAP_WORTH_SAYING and not problem.to_compare:
        warnings.warn(
            f"{what} tol={problem.tol:g} leaves a gap of {100 * gap:.0f} % of the objective; {advice}",
            ConvergenceWarning,
            stacklevel=5,
        )


def warn_of_overlap(nu: float, fit: Fit) -> None:
    """Say that ν cannot be reached."""
    if fit.state is None:
        return
    share = float(np.abs(fit.state.v).sum()) / (fit.state.C * fit.state.examples.total_weight)
    warnings.warn(
        f"nu={nu!r} is too small for classes that overlap: even at C={fit.state.C:.3g} their dual variables have the "
        f"share {share:.3g}; raise nu, or take a kernel that separates the classes better",
        ConvergenceWarning,
        stacklevel=5,
    )


def sample_of(problem: Problem, size: int) -> Problem:
    """Return the problem of some rows, drawn at random, as many of each of two classes."""
    seed = SEED if problem.random_state is None else problem.random_state
    rng, examples = replace(problem, random_state=seed).generator(), problem.examples
    classes = np.zeros(problem.rows.n_rows) if problem.task.has_targets else examples.labels
    parts = [np.flatnonzero(classes == c) for c in np.unique(classes)]
    n = problem.rows.n_rows
    index = np.sort(np.concatenate([rng.choice(part, -(-size * len(part) // n), replace=False) for part in parts]))
    block = problem.rows.take(index, problem.rows.exact_dtype)
    block = block if problem.kernel.has_features else block[:, index]
    some = problem.task.encode(examples.labels[index], examples.weights[index])
    return replace(problem, rows=as_rows(block), examples=some, kept=None, verbose=0, precision="auto")


def largest_nu(problem: Problem) -> float:
    """Return the largest ν for which no class has too little weight; 1 of a regression."""
    if problem.task.has_targets:
        return 1.0
    labels, weights = problem.examples.labels, problem.examples.weights
    totals = [float(weights[labels == c].sum()) for c in np.unique(labels)]
    pairs = problem.task.class_pairs() or [(0, 1)]
    return min(2.0 * min(totals[a], totals[b]) / (totals[a] + totals[b]) for a, b in pairs)


def is_feasible(nu: float, problem: Problem) -> bool:
    """Return whether every pair of classes has weight enough for ν."""
    return nu <= largest_nu(problem) * (1.0 + ROUNDING)


def check_feasible(nu: float, problem: Problem) -> None:
    """Refuse a ν for which a class has too little weight."""
    if not is_feasible(nu, problem):
        lowest = largest_nu(problem)
        raise ValueError(
            f"specified nu is infeasible: of two classes nu is at most twice the share that the rarer one has of "
            f"their weight, here {lowest:.4g}; found nu={nu!r}"
        )


def check_nu(estimator: Any) -> float:
    """The estimator's ν, and no choice that other estimators make by labels held out."""
    for name in ("C", "gamma"):
        if is_chosen(getattr(estimator, name)) or (name == "gamma" and estimator._learns_metric):
            found = getattr(estimator, name)
            raise ValueError(f"{name}={found!r} goes with SVC and SVR; {type(estimator).__name__} takes numbers for it")
    nu = estimator.nu
    if isinstance(nu, bool) or not (isinstance(nu, Real) and 0 < float(nu) <= 1):
        raise ValueError(f"nu must be a number in (0, 1], found {nu!r}")
    return float(nu)
