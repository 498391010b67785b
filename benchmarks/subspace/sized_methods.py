"""The ways to a model of at most k vectors that the subspace bench compares, and models of full size beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.shared import methods
from benchmarks.shared.trials import Array, Method, Problem
from slimsvm import BVM, CPSP, CVM, LASVM, SVC, LowRank, Refine
from slimsvm.kernels import RBF
from slimsvm.parts.solver import Solver
from slimsvm.rows import is_sparse

# Gap of every fit, as a share of its objective: objectives are compared.
TOL_RELATIVE = 1e-3
# The paper's algorithm, which ends where a cut is violated by no more than the ε of the mean loss.
PAPERS_FORM: dict[str, Any] = {
    "vectors_per_cut": 1,
    "method": "cutting-planes",
    "tol_relative": None,
    "fill_basis": False,
}
PAPERS_TOL = 0.01
# Megabytes for LASVM, CVM and BVM: LASVM keeps the values between all its vectors, more than 17,000 on Adult.
FULL_SIZE_MEMORY = 8000
# Rows whose prediction is timed.
PREDICTED_ROWS = 2000
EXACT, LINEAR, AUTOMATIC = "scikit-learn SVC", "linear SVM", methods.AUTOMATIC
METRIC = f"{AUTOMATIC}, metric learned"
LINEAR_C = 1.0


class TwoStages:
    """CPSP, then a descent on what it found; seconds are those of both."""

    def __init__(self, make: Callable[[Solver, float | None], SVC], k: int, max_seconds: float | None):
        self.make, self.k, self.max_seconds = make, k, max_seconds

    def fit(self, X: Any, y: Array) -> TwoStages:
        """Fit one after the other, the second in what time the first left."""
        begun = time.perf_counter()
        half = None if self.max_seconds is None else 0.5 * self.max_seconds
        first = self.make(CPSP(self.k), half).fit(X, y)
        left = None if self.max_seconds is None else max(1.0, self.max_seconds - (time.perf_counter() - begun))
        self.clf = self.make(Refine(self.k, initial=first.model_, tol_relative=TOL_RELATIVE), left).fit(X, y)
        self.n_kernel_evals_ = first.n_kernel_evals_ + self.clf.n_kernel_evals_
        return self

    def __getattr__(self, name: str) -> Any:
        """What else is asked for is the second stage's."""
        if name == "clf":
            raise AttributeError(name)
        return getattr(self.clf, name)


def cpsp(k: int) -> Method:
    """Subspace pursuit with vectors anywhere."""
    return _ours("CPSP", CPSP(k, tol_relative=TOL_RELATIVE), k)


def cpsp_paper(k: int) -> Method:
    """The paper's Algorithm 2: cutting planes with full steps, a vector for each, its own end, the last iterate."""
    return _papers("CPSP (paper's)", CPSP(k, **PAPERS_FORM, step="full", keep="last"), k)


def cpsp_paper_line(k: int) -> Method:
    """The same with a line search between cuts, with which it errs as the authors' program does."""
    return _papers("CPSP (paper's, line search)", CPSP(k, **PAPERS_FORM), k)


def cpsp_rows(k: int) -> Method:
    """Subspace pursuit with training rows, the paper's CPSP(tr), to our end."""
    return _ours("CPSP (training rows)", CPSP(k, "training-rows", tol_relative=TOL_RELATIVE), k)


def cpsp_paper_rows(k: int) -> Method:
    """The paper's Algorithm 2 with training rows."""
    return _papers(
        "CPSP (paper's, training rows)", CPSP(k, "training-rows", **PAPERS_FORM, step="full", keep="last"), k
    )


def cpsp_refined(k: int) -> Method:
    """Subspace pursuit, then all vectors and coefficients moved together."""

    def make(problem: Problem, seed: int, max_seconds: float | None) -> TwoStages:
        return TwoStages(lambda solver, seconds: methods.make_svc(solver, problem, seed, seconds), k, max_seconds)

    return _method("CPSP + refinement", make, k)


def learned(k: int) -> Method:
    """Learned vectors from a k-means start."""
    return _ours("learned", Refine(k, tol_relative=TOL_RELATIVE), k)


def learned_metric(k: int) -> Method:
    """The same with one γ per feature; its objective is that of another kernel."""
    method = _ours("learned with metric", Refine(k, learn_metric=True, tol_relative=TOL_RELATIVE), k)
    return replace(method, settings={**method.settings, "own_kernel": True}, dense=True)


def fixed_basis(basis: str, name: str, seeded: bool = True) -> Callable[[int], Method]:
    """A basis chosen beforehand, and the convex problem in its coefficients."""

    def method(k: int) -> Method:
        return replace(_ours(name, LowRank(k, basis, tol_relative=TOL_RELATIVE), k), seeded=seeded)

    return method


SIZED: dict[str, Callable[[int], Method]] = {
    "cpsp": cpsp,
    "cpsp-paper": cpsp_paper,
    "cpsp-paper-line": cpsp_paper_line,
    "cpsp-tr": cpsp_rows,
    "cpsp-paper-tr": cpsp_paper_rows,
    "cpsp-refine": cpsp_refined,
    "learned": learned,
    "learned-metric": learned_metric,
    "nystrom": fixed_basis("nystrom", "Nyström"),
    "kmeans": fixed_basis("kmeans", "k-means"),
    "cholesky": fixed_basis("incomplete-cholesky", "incomplete Cholesky", seeded=False),
}


def exact(cache_size: float = methods.SVC_CACHE) -> Method:
    """scikit-learn's SVC: what the others are measured by."""
    return _of_full_size(methods.svc(cache_size))


def automatic() -> Method:
    """As few learned vectors as do."""
    return _of_full_size(methods.automatic())


def automatic_metric() -> Method:
    """The same with a metric of its own, learned from the problem's γ; its objective is that of another kernel."""

    def make(problem: Problem, seed: int, max_seconds: float | None) -> SVC:
        clf = methods.make_svc("auto", problem, seed, max_seconds)
        return clf.set_params(kernel=RBF(problem.gamma), gamma="learn")

    own = {"own_kernel": True}
    method = Method(METRIC, make, lambda clf, problem, X: clf.decision_function(X), methods.report_fit, own, dense=True)
    return _of_full_size(method)


def intelex() -> Method:
    """scikit-learn-intelex's SVC, where it is installed."""
    return _of_full_size(methods.intelex())


def ours_of_full_size(name: str, solver: Solver) -> Callable[[], Method]:
    """A solver of ours whose vectors are rows, as many as it takes."""

    def make(problem: Problem, seed: int, max_seconds: float | None) -> SVC:
        return methods.make_svc(solver, problem, seed, max_seconds).set_params(memory_limit=FULL_SIZE_MEMORY)

    return lambda: _of_full_size(replace(methods.fit_of(name, solver), make=make))


def linear() -> Method:
    """A linear SVM, at C = `LINEAR_C`."""

    def make(problem: Problem, seed: int, max_seconds: float | None) -> LinearSVC:
        return LinearSVC(C=LINEAR_C, loss="hinge", random_state=seed)

    method = Method(
        LINEAR,
        make,
        lambda clf, problem, X: clf.decision_function(X),
        lambda clf, problem, train_scores: {"iterations": int(np.max(clf.n_iter_))},
        {"intercept": "regularized"},
        seeded=False,
    )
    return _of_full_size(method)


FULL_SIZE: dict[str, Callable[[], Method]] = {
    "exact": exact,
    "intelex": intelex,
    "lasvm": ours_of_full_size("LASVM", LASVM()),
    "cvm": ours_of_full_size("CVM", CVM()),
    "bvm": ours_of_full_size("BVM", BVM()),
    "automatic": automatic,
    "automatic-metric": automatic_metric,
    "linear": linear,
}


def _of_full_size(method: Method) -> Method:
    report = method.report

    def timed(clf: Any, problem: Problem, train_scores: Array) -> Mapping[str, Any]:
        return {**report(clf, problem, train_scores), "predict_us": prediction_us(clf, problem)}

    return replace(method, report=timed, settings={**method.settings, "max_basis": None})


def _ours(name: str, solver: Solver, k: int) -> Method:
    return _method(name, lambda problem, seed, max_seconds: methods.make_svc(solver, problem, seed, max_seconds), k)


def _papers(name: str, solver: Solver, k: int) -> Method:
    """To the paper's ε."""

    def make(problem: Problem, seed: int, max_seconds: float | None) -> SVC:
        return methods.make_svc(solver, problem, seed, max_seconds).set_params(tol=PAPERS_TOL)

    return _method(name, make, k)


def _method(name: str, make: Callable[[Problem, int, float | None], Any], k: int) -> Method:
    return Method(name, make, lambda clf, problem, X: clf.decision_function(X), _report, {"max_basis": k})


def _report(clf: Any, problem: Problem, train_scores: Array) -> Mapping[str, Any]:
    return {**methods.report_fit(clf, problem, train_scores), "predict_us": prediction_us(clf, problem)}


def prediction_us(clf: Any, problem: Problem) -> float:
    """Microseconds for one row, of its own ``decision_function`` on many test rows."""
    rows = problem.X_test[: min(PREDICTED_ROWS, problem.X_test.shape[0])]
    clf.decision_function(rows[:10])
    begun = time.perf_counter()
    clf.decision_function(rows)
    return 1e6 * (time.perf_counter() - begun) / rows.shape[0]


def suits(method: Method, problem: Problem) -> Method:
    """The method, or the same with the reason why it cannot run on these rows."""
    if method.dense and is_sparse(problem.X_train):
        return replace(method, missing="needs dense rows")
    return method
