"""Solvers with the parameters that small problems want, what each refuses, and problems for them."""

import warnings
from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import naive
from kernel_cases import NO_DERIVATIVE, with_metric
from slimsvm.kernels import RBF, Laplacian, Linear, Polynomial
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.solvers import SOLVERS, ExactCuts, UniformCuts, ViolatedCuts
from tasks_for_tests import CASES

# Small samples where the defaults would take every row; further variants of the same class.
PARAMETERS = {"uniform-cuts": {"sample_size": 20}, "violated-cuts": {"sample_size": 20}, "cpsp": {"max_basis": 12}}
PARAMETERS |= {"refine": {"max_basis": 12, "epochs": 6}, "exact": {"working_set_size": 4}}
PARAMETERS |= {"low-rank": {"max_basis": 12}}
PARAMETERS |= {name: {"max_basis": 12, "epochs": 6} for name in ("bsca", "bsgd")}
VARIANTS = {name: solver(**PARAMETERS.get(name, {})) for name, solver in SOLVERS.items()}
# CPSP's fixed point is for RBF kernels; the best of random rows serves every kernel.
VARIANTS["cpsp-rows"] = SOLVERS["cpsp"](max_basis=12, preimage="training-rows")
VARIANTS["exact-cuts-full"] = ExactCuts(step="full")
VARIANTS["violated-cuts-full"] = ViolatedCuts(sample_size=20, step="full", tol_relative=None)
# With room for every row these are plain dual coordinate ascent.
VARIANTS["bsca-room"] = SOLVERS["bsca"](max_basis=500)
VARIANTS["bsca-plain"] = SOLVERS["bsca"](max_basis=12, epochs=6, finish=False, maintenance="project")
VARIANTS["bsgd-plain"] = SOLVERS["bsgd"](max_basis=12, epochs=6, finish=False, maintenance="remove")
# Explicit weights are for the linear kernel alone.
WEIGHTS = {"bcfw-weights": SOLVERS["bcfw"](weights=True), "exact-cuts-weights": ExactCuts(weights=True, slacks="one")}
WEIGHTS["example-cuts-weights"] = ExactCuts(weights=True, slacks="each")
PAPERS_CUTS = (ExactCuts, ViolatedCuts, UniformCuts)
CUT_SOLVERS = sorted(name for name, solver in VARIANTS.items() if isinstance(solver, PAPERS_CUTS))
EXACT = sorted(name for name, solver in VARIANTS.items() if isinstance(solver, ExactCuts))
KERNELS = {**with_metric(0.3), "laplacian": Laplacian(0.4), "linear": Linear(), "poly": Polynomial(2, 0.5, 1.0)}
# What a solver cannot do, by task or kernel, and what it says instead.
NO_SUM = "needs a loss that is a sum over examples; that of "
OVER_ALL_ROWS = sorted(name for name, case in CASES.items() if not case.make().decomposes)
WITH_PLAIN = sorted(name for name, case in CASES.items() if case.make().n_plain)
REFUSED = {"refine": dict.fromkeys(OVER_ALL_ROWS, NO_SUM) | {"laplacian": NO_DERIVATIVE + " Laplacian"}}
ONE_OUTPUT = (
    "Exact solves problems of two classes, of pairs of classes, of one against the rest, of several labels, "
    "regression and one class, found "
)
TWO_CLASSES = "solves two-class problems, found "
REFUSED["lasvm"] = {name: TWO_CLASSES for name in sorted(CASES) if not name.startswith("binary")}
REFUSED |= {name: REFUSED["lasvm"] | {"binary-costs": TWO_CLASSES} for name in ("cvm", "bvm")}
NO_SMOOTH = "needs a task with a smoothed loss"
WITHOUT_SMOOTH = sorted(name for name, case in CASES.items() if not case.make().is_smoothable)
SOLVED = ("binary", "regression", "multilabel")
REFUSED["exact"] = {name: ONE_OUTPUT for name in sorted(CASES) if not name.startswith(SOLVED)}
REFUSED["low-rank"] = dict.fromkeys(WITHOUT_SMOOTH, NO_SMOOTH)
NO_BOX, NO_MERGE = "or one target with loss='epsilon_insensitive', found", "and needs kernel='rbf' for that; found"
NO_COSTS = "trains each class against the rest, without costs; found a cost matrix"
BOXED = ("binary", "multiclass", "regression")
for budgeted in ("bsca", "bsgd", "bsca-room", "bsca-plain", "bsgd-plain"):
    REFUSED[budgeted] = {name: NO_BOX for name in sorted(CASES) if not name.startswith(BOXED)}
    REFUSED[budgeted] |= {"multiclass-costs": NO_COSTS} if budgeted.endswith("plain") else {}
for merging in ("bsca", "bsgd"):
    REFUSED[merging] |= dict.fromkeys(sorted(set(KERNELS) - {"rbf"}), NO_MERGE)
NO_BLOCKS = "BCFW needs a loss that is a sum over examples"
BLOCKS = sorted(name for name in VARIANTS | WEIGHTS if name.startswith("bcfw"))
for block in BLOCKS:
    REFUSED[block] = dict.fromkeys(OVER_ALL_ROWS, NO_BLOCKS)
REFUSED["example-cuts-weights"] = dict.fromkeys(OVER_ALL_ROWS, "slacks='each' needs a loss that is a sum over examples")

NOT_LINEAR = dict.fromkeys(sorted(set(KERNELS) - {"linear"}), "weights=True needs kernel='linear'")
for name in WEIGHTS:
    REFUSED[name] = REFUSED.get(name, {}) | NOT_LINEAR

AXES = {
    "solver": sorted(VARIANTS | WEIGHTS),
    "task": sorted(CASES),
    "container": ["C", "F", "csr", "csr64", "memmap"],
    "dtype": ["float32", "float64", "int8"],
    "precision": ["float64", "float32"],
    "intercept": ["regularized", "none"],
    "kernel": sorted(KERNELS),
}


def contain(X, container, dtype, folder):
    """The same numbers in another container."""
    X = np.asarray(X, dtype=dtype)
    if container == "F":
        return np.asfortranarray(X)
    if container == "memmap":
        np.save(folder / "rows.npy", X)
        return np.load(folder / "rows.npy", mmap_mode="r")
    if container.startswith("csr"):
        X = sp.csr_array(X)
        if container == "csr64":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return X
    return X


@lru_cache
def optimum(task_name, kernel_name, intercept, C, seed):
    """(primal, dual) of the slow truth."""
    _, X, _, examples = CASES[task_name].problem(seed)
    K = naive.kernel_matrix(KERNELS[kernel_name], X, X)
    return naive.optimum(K, CASES[task_name].written_out(examples), C, intercept == "regularized")


def true_objective(model, X, case, examples, C):
    """The objective of a model, from nothing but its arrays."""
    basis = model.basis.toarray() if sp.issparse(model.basis) else model.basis
    K_basis = naive.kernel_matrix(model.kernel, basis, basis)
    K_rows = naive.kernel_matrix(model.kernel, X, basis)
    if not len(basis):
        K_basis, K_rows = np.zeros((0, 0)), np.zeros((len(X), 0))
    parts = case.written_out(examples)
    return naive.objective(K_basis, K_rows, model.coef, model.intercept, model.plain, parts, C)


def problem_of(task_name, seed=0, n=None, **options):
    """(problem, X, case) with the usual settings."""
    case = CASES[task_name]
    task, X, _, examples = case.problem(seed, n)
    settings = {"kernel": RBF(0.3), "C": 1.0, "random_state": 0} | options
    return Problem(as_rows(X), examples, task, **settings), X, case


def solve_anyhow(solver, problem, **options):
    """The fit, whether or not it warns of a limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.solve(problem, **options)


def richest_task(solver_name):
    """The task of several outputs where the solver takes it."""
    return "binary" if "multiclass" in REFUSED.get(solver_name, ()) else "multiclass"


def refuses(row):
    """Whether the row's solver refuses one of its other options."""
    return not REFUSED.get(row.get("solver"), {}).keys().isdisjoint(row.values())


def able(*tasks, but=()):
    """Each solver with each of the tasks that it does not refuse."""
    pairs = [(solver, task) for solver in sorted(set(VARIANTS) - set(but)) for task in tasks]
    return [(solver, task) for solver, task in pairs if not refuses({"solver": solver, "task": task})]


def is_refused(solver_name, problem, *choices):
    """Whether the solver cannot do one of the choices; then it must say so before any work."""
    messages = [REFUSED[solver_name][name] for name in choices if name in REFUSED.get(solver_name, ())]
    if messages:
        with pytest.raises(ValueError, match="|".join(messages)):
            (VARIANTS | WEIGHTS)[solver_name].solve(problem)
    return bool(messages)


def check_fit(fit, problem, X, case, tolerance):
    """Objective, model, history and counters of one finished fit."""
    assert fit.objective == pytest.approx(
        true_objective(fit.model, X, case, problem.examples, problem.C), rel=tolerance
    )
    model = fit.model
    assert model.coef.shape == (model.n_basis, problem.task.n_outputs)
    assert model.plain.shape == (problem.task.n_plain,)
    assert np.isfinite(model.coef).all()
    if problem.intercept == "none":
        assert not model.intercept.any()
    if fit.basis_rows is not None:
        basis = model.basis.toarray() if sp.issparse(model.basis) else model.basis
        np.testing.assert_array_equal(basis, X[fit.basis_rows])
        assert len(np.unique(fit.basis_rows)) == model.n_basis
    assert fit.n_iter == len(fit.history) > 0
    assert fit.counters["kernel_evals"] == fit.history[-1]["kernel_evals"] or "report_kernel_evals" in fit.counters
    check_history(fit)


def check_history(fit):
    """Every record has what it should, time and evaluations never go back, bounds never fall."""
    for record in fit.history:
        assert {"seconds", "kernel_evals", "objective", "lower_bound", "gap", "n_basis", "training_error"} <= set(
            record
        )
        if record["lower_bound"] is None:
            assert record["gap"] is None
        elif record["objective"] is not None:
            assert record["gap"] == pytest.approx(record["objective"] - record["lower_bound"])
    for name in ("seconds", "kernel_evals"):
        values = [record[name] for record in fit.history]
        assert values == sorted(values)
    bounds = [record["lower_bound"] for record in fit.history if record["lower_bound"] is not None]
    assert bounds == sorted(bounds)
    assert (fit.lower_bound is None) == (fit.history[-1]["lower_bound"] is None)
