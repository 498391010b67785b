r"""The exact SVM with a given ν in place of C, or of ε: Schölkopf's ν-SVM.

Of two classes the dual variables of the exact SVM with this C add up to the share

    ν(C) = Σ |v_i| / (C Σ ω_i),

which never rises with C. The SVM of ν is the one with ν(C) = ν: LIBSVM solves for it with the variables scaled by
1/C, and divides its scores by ρ = 1/C in the end. Of a regression C is given, and the share falls as ε grows. So log C
or log ε is the root of a falling function of one number, found by secants within a bracket. Fits share kernel values,
and each begins where the one before ended, which makes the later ones short: all take one and a half to three times the
first (docs/experiments/exact_solver.md, "ν in place of C"). Several classes are pairs, each with a root of its own; a
fit solves for all pairs at their next C.

Schölkopf, Smola, Williamson, Bartlett, "New Support Vector Algorithms", Neural Computation 2000; Chang, Lin, "Training
ν-Support Vector Classifiers: Theory and Algorithms", Neural Computation 2001 (ν(C)); Chang, Lin, "Training ν-Support
Vector Regression: Theory and Algorithms", Neural Computation 2002.
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
from slimsvm.parts.dual_ascent.dual import DualState
from slimsvm.parts.dual_ascent.one_vs_one import last_point
from slimsvm.parts.dual_ascent.sweeps import Root
from slimsvm.parts.problem import RANDOM_ACCESS, Kept, Problem, check_needs
from slimsvm.parts.run import Fit, Status
from slimsvm.parts.solver import Callback
from slimsvm.solvers import Exact
from slimsvm.tasks import Binary, OneVsOne, Regression

Array = np.ndarray

# What rounding does to shares of weights; the largest C that is tried, and one over the smallest.
ROUNDING, LARGEST_C = 1e-12, 1e10
# By how much log C is raised first for each unit that log ν(C) is to fall.
FIRST_STEP = 2.0


@dataclass(frozen=True)
class NuSettings:
    """How C or ε is searched for. Chosen, not measured."""

    # The share of ν that may be missing, in units of tol: what tol leaves of the solution itself is more. Few rows are
    # solved for far below tol, and an ε or C that is nearly right may leave out a support vector there.
    accuracy: float = 0.1
    accuracy_of_few: float = 0.02
    # A bracket of log C, or of ε as a share of its range, that tells nothing more of few rows.
    narrowest: float = 1e-10
    # A dual variable this close to a bound, as a share of it, is there.
    at_bound: float = 1e-3
    # The least tube, as a share of the range: the dual variables of narrower ones are beyond tol. The longest step of
    # log ε.
    least_tube: float = 1e-6
    narrower: float = 2.5
    # Most fits, and the most that log C changes from one to the next.
    most_fits: int = 60
    longest: float = 5.0
    # Where log C rose by ``far`` and log ν(C) fell by no more than ``flat``, no larger C will do: classes overlap.
    far: float = 9.0
    flat: float = 0.01


def accuracy(problem: Problem) -> tuple[float, float]:
    """The share of ν that may be missing, and a bracket of log C, or of ε by its range, that is narrow."""
    own = problem.settings_of(NuSettings)
    if problem.is_small:
        return own.accuracy_of_few * problem.tol, own.narrowest
    return own.accuracy * problem.tol, own.accuracy * problem.tol


def between(margins: Array, share: Array, is_own: Array, at_bound: float) -> tuple[float, bool]:
    """What free support vectors of one side have as margin, and whether there are any.

    Where there are none, the middle of what the others allow, as LIBSVM has it: rows at their bounds have no more, and
    rows without a coefficient no less.
    """
    low, high = share <= at_bound, share >= 1.0 - at_bound
    free = is_own & ~low & ~high
    if free.any():
        return float(margins[free].mean()), True
    most, least = margins[is_own & high].max(initial=-np.inf), margins[is_own & low].min(initial=np.inf)
    return 0.5 * float(most + least), False


class SearchOfC:
    """The C of every pair of classes, or of two, at which the dual variables add up to the share ν.

    Parameters
    ----------
    problem : Problem
        Its C is ignored.
    nu : float
    """

    def __init__(self, problem: Problem, nu: float):
        self.problem, self.nu, self.own = problem, nu, problem.settings_of(NuSettings)
        labels, weights = problem.examples.labels, problem.examples.weights
        totals = [float(weights[labels == c].sum()) for c in np.unique(labels)]
        self.n_classes = len(totals)
        pairs = problem.task.class_pairs() or [(0, 1)]
        self.sides = [(totals[a], totals[b]) for a, b in pairs]
        if any(nu * (a + b) > 2.0 * min(a, b) * (1.0 + ROUNDING) for a, b in self.sides):
            lowest = min(2.0 * min(a, b) / (a + b) for a, b in self.sides)
            raise ValueError(
                f"specified nu is infeasible: of two classes nu is at most twice the share that the rarer one has of "
                f"their weight, here {lowest:.4g}; found nu={nu!r}"
            )
        size = float(problem.bind().diag().mean())
        begin, far = -np.log(size) if size > 0 else 0.0, np.log(LARGEST_C)
        self.roots = [Root(begin, -far, far, self.own.longest, FIRST_STEP) for _ in pairs]
        self.is_open = [True] * len(pairs)

    @property
    def asked(self) -> Problem:
        """The problem to solve next."""
        values = [float(np.exp(root.x)) for root in self.roots]
        if isinstance(self.problem.task, Binary):
            return replace(self.problem, C=values[0])
        return replace(self.problem, C=1.0, task=OneVsOne(self.n_classes, factors=tuple(values)))

    def is_met(self, fit: Fit) -> bool:
        """Whether the fit of what was asked has the share ν; the next problem is asked otherwise."""
        states = [fit.state] if isinstance(self.problem.task, Binary) else fit.state.states
        for k, (root, state) in enumerate(zip(self.roots, states, strict=True)):
            if not self.is_open[k]:
                continue
            share = float(np.abs(state.v).sum()) / (state.C * sum(self.sides[k]))
            value = float(np.log(share / self.nu)) if share > 0 else -np.inf
            least, narrowest = accuracy(self.problem)
            is_last = value > least and (root.x >= root.highest or self.is_flat(root, value, k))
            if is_last:
                warn_of_overlap(self.nu, share)
            self.is_open[k] = not (is_last or root.is_met(value, least, narrowest))
        if any(self.is_open):
            return False
        for k, (root, state) in enumerate(zip(self.roots, states, strict=True)):
            root.x -= np.log(self.margin(k, state))
        return True

    def margin(self, k: int, state: DualState) -> float:
        """LIBSVM's ρ of a pair of classes, in units of 1/C: 1 but where a class has no free support vector.

        Then many C have the share ν, and the variables of all are the same but for scale. ρ is the middle of what such
        a class allows.
        """
        sign, size = state.examples.labels, state.C * state.examples.weights
        scores = state.scores_at(state.v, state.C, last_point(self.problem, k))
        if scores is None:
            return 1.0
        share, margins = np.abs(state.v) / size, sign * scores
        sides = [between(margins, share, is_own, self.own.at_bound) for is_own in (sign > 0, sign < 0)]
        found = 1.0 if all(has_free for _, has_free in sides) else 0.5 * sum(middle for middle, _ in sides)
        return found if np.isfinite(found) and found > 0 else 1.0

    def is_flat(self, root: Root, value: float, k: int) -> bool:
        """Whether the share stays above ν however large C is."""
        own, top = self.own, np.log(2.0 * min(self.sides[k]) / (self.nu * sum(self.sides[k])))
        has_fallen = [x for x, earlier in root.asked if value > 0 and earlier - value <= own.flat < top - earlier]
        return bool(has_fallen) and root.x - min(has_fallen) >= own.far


class SearchOfEpsilon:
    """The ε of a regression at which the dual variables add up to the share ν.

    The share is nearly linear in log ε, and the narrower the tube, the longer the fit: log ε is searched from above, by
    steps that are not too long. A root below the least tube is that tube.

    Parameters
    ----------
    problem : Problem
    nu : float
    """

    def __init__(self, problem: Problem, nu: float):
        self.problem, self.nu, self.own = problem, nu, problem.settings_of(NuSettings)
        y = problem.examples.labels
        self.range = 0.5 * float(y.max() - y.min())
        begin = 0.5 * float(np.quantile(np.abs(y - np.median(y)), 1.0 - nu)) / (self.range or 1.0)
        known = [(0.0, -nu)] if begin < 1.0 else []  # no row is outside of a tube as wide as the range
        start, lowest = np.log(max(begin, self.own.least_tube)), np.log(self.own.least_tube)
        self.root = Root(float(start), float(lowest), 0.0, self.own.narrower, 0.0, most=0.0, asked=known)
        self.epsilon = self.range * float(np.exp(self.root.x))

    @property
    def asked(self) -> Problem:
        """The problem to solve next."""
        return replace(self.problem, task=Regression(self.epsilon))

    def is_met(self, fit: Fit) -> bool:
        """Whether the fit of what was asked has the share ν; the next problem is asked otherwise."""
        value = float(np.abs(fit.state.v).sum()) / self.problem.C1 - self.nu
        least, narrowest = accuracy(self.problem)
        is_met = self.root.is_met(value, least * self.nu, narrowest / float(np.exp(self.root.x)))
        self.epsilon = self.range * float(np.exp(self.root.x))
        if is_met:
            self.epsilon = self.tube(fit.state)
        return is_met

    def tube(self, state: DualState) -> float:
        """The ε found; where a side of the tube has no free support vector, the middle of those that are as good."""
        scores = state.scores_at(state.v, state.C, last_point(self.problem, 0))
        if scores is None:
            return self.epsilon
        off, size = state.examples.labels - scores, state.C * state.examples.weights
        every = np.ones(len(off), bool)
        above, below = (
            between(-sign * off, np.maximum(sign * state.v, 0.0) / size, every, self.own.at_bound) for sign in (1, -1)
        )
        found = -0.5 * (above[0] + below[0])
        is_other = not (above[1] and below[1]) and np.isfinite(found)
        return float(np.clip(found, 0.0, self.range)) if is_other else self.epsilon


def warn_of_overlap(nu: float, share: float) -> None:
    """Say that ν cannot be reached."""
    warnings.warn(
        f"nu={nu!r} is less than classes that overlap allow, however large C is: their dual variables have the share "
        f"{share:.3g}; raise nu, or take a kernel that separates them better",
        ConvergenceWarning,
        stacklevel=7,
    )


def begun_at(state: Any, problem: Problem) -> Any:
    """A state to begin with: a regression's dual point of one ε is one of any."""
    return replace(state, task=problem.task) if isinstance(state, DualState) else state


class ExactOfNu(Exact):
    """The exact SVM of ν: see the module's text.

    Parameters
    ----------
    working_set_size : int or None, default=None
    nu : float, default=0.5
    """

    def __init__(self, working_set_size: Any = None, nu: float = 0.5) -> None:
        super().__init__(working_set_size)
        self.nu = nu

    def solve(self, problem: Problem, state: Any = None, callbacks: Iterable[Callback] = ()) -> Fit:
        """Solve for ν; ``Fit.solved`` has the C, the C of each pair or the ε that were found."""
        check_needs("nu", problem, RANDOM_ACCESS)
        exact = Exact(self.working_set_size)
        kept = Kept(problem.room) if problem.kept is None else problem.kept
        shared = replace(problem, kept=kept, to_compare=True, verbose=0)
        search = (SearchOfEpsilon if problem.task.has_targets else SearchOfC)(shared, self.nu)
        own: dict[str, Any] = {name: getattr(problem, name) for name in ("kept", "to_compare", "verbose")}
        for _ in range(problem.settings_of(NuSettings).most_fits):
            trial = search.asked
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", ConvergenceWarning)
                fit = exact.solve(trial, begun_at(state, trial))
            if fit.state is None or fit.status not in (Status.CONVERGED, Status.GAP):
                for each in said:
                    warnings.warn(each.message, ConvergenceWarning, stacklevel=5)
                return replace(fit, lower_bound=None, solved=replace(trial, **own))
            state = fit.state
            if search.is_met(fit):
                break
        solved = replace(search.asked, **own)
        fit = exact.solve(replace(solved, kept=kept), begun_at(fit.state, solved), callbacks)
        return replace(fit, solved=solved)


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
