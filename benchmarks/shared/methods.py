"""The methods that are compared: ours by solver, scikit-learn's SVC, Intel's, and trees."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.svm import SVC as SklearnSVC

from benchmarks.shared.trials import Array, Method, Problem, hinge_objective
from slimsvm import SVC, Exact, ExactCuts, LowRank, Refine, UniformCuts, ViolatedCuts
from slimsvm.kernels import RBF
from slimsvm.parts.problem import SMALL_N
from slimsvm.parts.solver import Solver
from slimsvm.rows import is_sparse

# Megabytes of kernel rows that scikit-learn's SVC may keep: as much as our solvers may take.
SVC_CACHE = 2000
N_TREES = 100
AUTOMATIC = 'max_basis="auto"'


def violated(sample_size: int, paper: bool) -> Method:
    """`ViolatedCuts`, with the paper's steps and stopping rule or ours."""
    if paper:
        solver = ViolatedCuts(sample_size, "all", None, "full", keep="last")
        return _cuts(f"violated r={sample_size}, paper's steps", solver, "violated", sample_size, "paper")
    return _cuts(f"violated r={sample_size}", ViolatedCuts(sample_size), "violated", sample_size, "ours")


def uniform(sample_size: int) -> Method:
    """`UniformCuts`, which are the paper's; the objective is computed after the clock has stopped."""
    solver = UniformCuts(sample_size, final_objective=False)
    return _cuts(f"uniform r={sample_size}, paper's steps", solver, "uniform", sample_size, "paper")


def exact() -> Method:
    """`ExactCuts`, to a computed gap of 1 %."""
    return _cuts("exact", ExactCuts(), "exact", None, "ours")


def decomposition() -> Method:
    """`Exact`, to LIBSVM's tolerance."""
    return _fit("decomposition", Exact(), {"sample_size": None})


def learned(max_basis: int) -> Method:
    """`Refine`: vectors learned by descent."""
    return _fit(f"learned, {max_basis} vectors", Refine(max_basis), {"sample_size": None, "max_basis": max_basis})


def automatic() -> Method:
    """As few learned vectors as do as well as the exact SVM on rows held out."""
    return _fit(AUTOMATIC, "auto", {"sample_size": None})


def cholesky(rank: int) -> Method:
    """The paper's baseline: a random sample of rows spans the model, in which the linear problem is solved."""
    return _fit(f"Cholesky({rank})", LowRank(rank, "nystrom"), {"sample_size": None, "max_basis": rank})


def fit_of(name: str, solver: Solver) -> Method:
    """Any solver of ours."""
    return _fit(name, solver, {"sample_size": None})


def _fit(name: str, solver: Solver | str, settings: dict[str, Any], report: Any = None) -> Method:
    def make(problem: Problem, seed: int, max_seconds: float | None) -> SVC:
        return make_svc(solver, problem, seed, max_seconds)

    return Method(name, make, lambda clf, problem, X: clf.decision_function(X), report or report_fit, settings)


def _cuts(name: str, solver: Solver, oracle: str, sample_size: int | None, steps: str) -> Method:
    return _fit(name, solver, {"oracle": oracle, "sample_size": sample_size, "steps": steps}, _report_cuts)


def make_svc(solver: Solver | str, problem: Problem, seed: int, max_seconds: float | None) -> SVC:
    """Our estimator with a solver and the problem's settings, on one core as the others are."""
    # Up to SMALL_N rows "auto" would solve in float64 to 1e-10: another task than the one of larger sets.
    precision = "float32" if problem.n_train <= SMALL_N else "auto"
    return SVC(
        C=problem.C,
        gamma=problem.gamma,
        intercept=problem.intercept,
        solver=solver,
        max_basis="auto" if solver == "auto" else None,
        precision=precision,
        random_state=seed,
        max_seconds=max_seconds,
        n_jobs=1,
    )


def report_fit(clf: Any, problem: Problem, train_scores: Array) -> dict[str, Any]:
    """What any fit of ours tells of itself."""
    objective = clf.objective_
    if not np.isfinite(objective):
        norm_squared = clf.model_.norm_squared() + float(clf.intercept_[0]) ** 2
        objective = hinge_objective(problem, train_scores, norm_squared)
    return {
        "status": clf.status_,
        "iterations": int(np.sum(clf.n_iter_)),
        "kernel_evals": clf.n_kernel_evals_,
        "n_vectors": clf.n_basis_,
        "objective": objective,
        "lower_bound": clf.lower_bound_,
        "precision": clf.precision_,
    }


def _report_cuts(clf: SVC, problem: Problem, train_scores: Array) -> Mapping[str, Any]:
    return {
        **report_fit(clf, problem, train_scores),
        "qp_seconds": float(sum(record["qp_seconds"] for record in clf.history_)),
    }


def svc(cache_size: float = SVC_CACHE) -> Method:
    """scikit-learn's SVC."""

    def make(problem: Problem, seed: int, max_seconds: float | None) -> SklearnSVC:
        return SklearnSVC(C=problem.C, gamma=problem.gamma, cache_size=cache_size)

    settings = {"intercept": "free", "cache_size": cache_size}
    return Method("scikit-learn SVC", make, svc_scores, _report_svc, settings, seeded=False, capped=True)


def svc_scores(clf: Any, problem: Problem, X: Array) -> Array:
    """What its ``decision_function`` gives, by our kernel products in float64: the same to rounding, in less time."""
    coef = np.ascontiguousarray(dual_coef(clf).T)
    return RBF(problem.gamma).scores(X, clf.support_vectors_, coef)[:, 0] + float(np.ravel(clf.intercept_)[0])


def dual_coef(clf: Any) -> Array:
    """Its coefficients (1, n_vectors), which are a sparse matrix where the rows are."""
    return clf.dual_coef_.toarray() if is_sparse(clf.dual_coef_) else np.asarray(clf.dual_coef_)


def _report_svc(clf: Any, problem: Problem, train_scores: Array) -> Mapping[str, Any]:
    on_vectors = train_scores[clf.support_] - float(np.ravel(clf.intercept_)[0])
    norm_squared = float(np.ravel(dual_coef(clf)) @ on_vectors)
    return {
        "iterations": int(np.sum(clf.n_iter_)),
        "n_vectors": len(clf.support_),
        "objective": hinge_objective(problem, train_scores, norm_squared),
    }


def intelex() -> Method:
    """scikit-learn-intelex's SVC, where it is installed."""

    def make(problem: Problem, seed: int, max_seconds: float | None) -> Any:
        return import_module("sklearnex.svm").SVC(C=problem.C, gamma=problem.gamma)

    missing = None if find_spec("sklearnex") else "scikit-learn-intelex is not installed"
    settings = {"intercept": "free"}
    return Method("scikit-learn-intelex SVC", make, svc_scores, _report_svc, settings, seeded=False, missing=missing)


def trees() -> Method:
    """What users of tables would take instead: gradient boosting of `N_TREES` trees."""

    def make(problem: Problem, seed: int, max_seconds: float | None) -> Any:
        boosting = import_module("sklearn.ensemble").HistGradientBoostingClassifier
        return boosting(max_iter=N_TREES, early_stopping=False, random_state=seed)

    return Method(
        f"{N_TREES} boosted trees",
        make,
        lambda clf, problem, X: clf.predict(X).astype(np.float64),
        lambda clf, problem, train_scores: {"iterations": N_TREES},
        {"intercept": None},
    )
