"""Numbers beyond what float64, or float32, can hold are an error that names their cause, whatever the solver."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from contracts.solver_cases import VARIANTS, WEIGHTS, problem_of
from slimsvm import BSGD, LASVM, SVC, SVR, CrossTrainedSVC, OneClassSVM, OrdinalSVC
from slimsvm.kernels import RBF, CallableKernel, Linear, Polynomial, Sigmoid
from slimsvm.parts.run import Fit, Status, finite
from slimsvm.rows import as_rows
from slimsvm.solvers import SOLVERS

FAR, HEAVY = "features of X 2.*e\\+150", "C=1 times the sum of sample weights is (inf|.*e\\+)"
CAUSES = {
    "features": ({"kernel": Linear(), "scale": 1e150}, FAR),
    "features that have no square": ({"kernel": Linear(), "scale": 1e200}, "reach inf, features of X"),
    "features in float32": (
        {"kernel": Linear(), "scale": 1e30, "precision": "float32"},
        "features of X .*e\\+30; accepted are values of at most 1e\\+30 in float32",
    ),
    "features in tanh": ({"kernel": Sigmoid(1.0), "scale": 1e200}, "Sigmoid.* reach inf"),
    "features in a power": ({"kernel": Polynomial(3, 1.0, 0.0), "scale": 1e60}, "degree=3, .* reach inf"),
    "coef0": ({"kernel": Polynomial(3, 1.0, 1e300)}, "coef0=1e\\+300.* reach inf"),
    "coef0 below 0": ({"kernel": Polynomial(3, 1.0, -1e300)}, "coef0=-1e\\+300.* reach inf"),
    "degree": ({"kernel": Polynomial(1000, 1.0, 1.0)}, "degree=1000.* reach inf"),
    "weights": ({"weight": 1e308}, HEAVY),
    "weights with a kernel of large values": ({"kernel": Linear(), "weight": 1e140, "scale": 1e20}, HEAVY),
    "C": ({"C": 1e300}, "C=1e\\+300 times the sum of sample weights is .*e\\+301, kernel values reach 1;"),
}


def problem_with(kernel=RBF(0.3), scale=1.0, weight=1.0, **options):  # noqa: B008
    problem, X, _ = problem_of("binary", kernel=kernel, **options)
    weights = weight * problem.examples.weights
    return replace(problem, rows=as_rows(scale * X), examples=replace(problem.examples, weights=weights))


def test_every_registered_solver_is_among_the_variants():
    assert {type(solver) for solver in VARIANTS.values()} == {SOLVERS[name] for name in SOLVERS}


@pytest.mark.turns("cause")
@pytest.mark.parametrize("cause", sorted(CAUSES))
@pytest.mark.parametrize("solver", sorted(VARIANTS | WEIGHTS))
def test_every_solver_names_what_is_too_large(solver, cause):
    options, message = CAUSES[cause]
    with pytest.raises(ValueError, match=message):
        (VARIANTS | WEIGHTS)[solver].solve(problem_with(**options))


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_large_numbers_that_can_be_worked_with(solver):
    """Features of 1e6, and a C for a hard margin, are a problem like others: with float64, finite."""
    problem = problem_with(weight=1e12, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = VARIANTS[solver].solve(problem)
    assert np.isfinite(fit.objective)


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_values_that_only_a_function_knows(solver):
    """A kernel of the user's can return 1e200: whatever the solver makes of it, no model or objective is not finite."""
    huge = CallableKernel(lambda X, Z: 1e200 * (np.asarray(X) @ np.asarray(Z).T))
    problem = problem_with(kernel=huge, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit = VARIANTS[solver].solve(problem)
        except (ValueError, IndexError):
            return
    assert np.isfinite(fit.objective)
    assert np.isfinite(fit.model.coef).all()


@pytest.mark.parametrize("part", ["coef", "intercept", "objective"])
def test_a_fit_that_is_not_finite_is_an_error(part):
    problem = problem_with(C=1e3)
    fit = VARIANTS["exact"].solve(problem)
    assert finite(fit, problem) is fit
    if part == "objective":
        fit.objective = np.inf
    else:
        fit.model = replace(fit.model, **{part: np.nan * getattr(fit.model, part)})
    with pytest.raises(ValueError, match="Kernel values reach 1, C=1000 times the largest weight is 1e\\+03, RBF"):
        finite(fit, problem)


def test_an_objective_that_was_not_asked_for_is_no_error():
    problem = problem_with()
    fit = SOLVERS["uniform-cuts"](sample_size=20, final_objective=False).solve(problem)
    assert isinstance(fit, Fit)
    assert np.isnan(fit.objective)
    assert fit.status == Status.CONVERGED


X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
ESTIMATORS = {
    "auto": SVC(kernel="linear"),
    "learned vectors": SVC(kernel="poly", gamma=1.0, max_basis=5, solver="cpsp"),
    "pairs of classes": SVC(kernel="linear", solver="exact", multi_class="ovo"),
    "classes at once": SVC(kernel="linear", solver="exact-cuts"),
    "regression": SVR(kernel="linear"),
    "one class": OneClassSVM(kernel="linear"),
    "cross-training": CrossTrainedSVC(kernel="linear"),
    "ramp": SVC(kernel="linear", loss="ramp"),
    "f1": SVC(kernel="linear", loss="f1"),
}


@pytest.mark.turns("container")
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_way_to_train_names_features_that_are_too_large(name, container):
    classes = np.arange(60) % 3 if "classes" in name else Y
    with pytest.raises(ValueError, match="features of X"):
        ESTIMATORS[name].fit(container(1e150 * X), classes)


@pytest.mark.parametrize("solver", [BSGD(10, maintenance="remove"), LASVM()])
def test_chunks_too(solver):
    clf = SVC(kernel="linear", solver=solver, intercept="none", random_state=0)
    clf.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"features of X .*e\+150"):
        clf.partial_fit(1e150 * X, Y)


def test_a_certificate_too():
    clf = SVC(kernel="linear").fit(X, Y)
    with pytest.raises(ValueError, match=r"features of X .*e\+150"):
        clf.certificate(1e150 * X, Y)


MOVING = {
    "two classes": (SVC(gamma=0.5, max_basis=5, solver="refine", random_state=0), Y),
    "log odds": (SVC(gamma=0.5, max_basis=5, loss="logistic", random_state=0), Y),
    "another kernel": (SVC(gamma=0.5, max_basis=5, kernel="matern32", solver="refine", random_state=0), Y),
    "several labels": (SVC(gamma=0.5, max_basis=5, random_state=0), np.stack([Y, 1 - Y[::-1]], axis=1)),
    "targets": (SVR(gamma=0.5, max_basis=5, solver="refine", random_state=0), X[:, 0]),
    "ordered": (OrdinalSVC(gamma=0.5, max_basis=5, random_state=0), np.digitize(X[:, 0], [-0.4, 0.4])),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(MOVING))
def test_vectors_that_moved_to_where_there_are_no_numbers_are_an_error(name):
    estimator, target = MOVING[name]
    with pytest.raises(ValueError, match=r"basis vectors that are NaN or infinite.*scale X"):
        estimator.fit(1e160 * X, target)


# ---- scores


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["poly", "linear"])
def test_scores_that_are_not_finite_are_an_error(kernel, container):
    clf = SVC(kernel=kernel, solver="exact", gamma=1.0, precision="float32").fit(X, Y)
    far = X.copy()
    far[7] = 1e30
    if kernel == "linear":
        far[7] = 3e38
    for ask in (clf.predict, clf.decision_function):
        with pytest.raises(ValueError, match=r"the scores of row 7 of X, whose features"):
            ask(container(far))
        assert len(ask(container(X))) == len(X)


def test_weights_of_a_linear_estimator_score_up_to_float64():
    many = np.random.default_rng(0).normal(size=(2100, 3))
    clf = SVC(kernel="linear", solver="exact-cuts").fit(many, (many[:, 0] > 0).astype(int))
    far = X.copy()
    far[3] = 1.5e308
    far[3, 1] = -1.5e308
    clf.predict(1e150 * X)
    with pytest.raises(ValueError, match="the scores of row 3 of X"):
        clf.decision_function(far)


def test_far_rows_of_an_rbf_estimator_have_scores():
    clf = SVC(solver="exact").fit(X, Y)
    far = X.copy()
    far[7] = 1e200
    assert clf.decision_function(far)[7] == pytest.approx(clf.intercept_[0])
    assert len(clf.predict(far)) == len(X)
