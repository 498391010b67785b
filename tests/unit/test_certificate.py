"""Certificates: bounds that hold, come close, and need nothing but the model and the data."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_regressor
from sklearn.metrics.pairwise import rbf_kernel

import naive
import slimsvm
from pairwise import crossed
from slimsvm import SVC, SVR, NuSVR, OneClassSVM, SequenceSVM
from slimsvm.parts.certificate import certify
from slimsvm.parts.dual_ascent import block_ascent
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from tasks_for_tests import CASES

KINDS = pytest.mark.parametrize("kind", ["classes", "costs", "targets"])
INTERCEPTS = pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
COST = [[0.0, 0.5], [2.0, 0.0]]


def data(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    if kind == "targets":
        return X, 5.0 + np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    y = np.where(X[:, 0] * X[:, 1] + 0.6 * rng.normal(size=n) > 0.2, 1, -1)
    y[:2] = -1, 1
    return X, y


def estimator_of(kind, **options):
    if kind == "targets":
        return SVR(epsilon=0.1, gamma=0.5, random_state=0, **options)
    return SVC(cost_matrix=COST if kind == "costs" else None, gamma=0.5, random_state=0, **options)


def optimum_of(kind, X, y, C, intercept):
    """The dual optimum; for a free intercept that of the exact solver, to a tolerance far below the tests'."""
    if intercept == "free":
        return estimator_of(kind, C=C, solver="exact", intercept="free", tol=1e-9).fit(X, y).objective_
    if kind == "targets":
        written_out = [naive.regression_options(target, 0.1) for target in y - (y.mean() * (intercept != "none"))]
    else:
        costs = (0.5, 2.0) if kind == "costs" else (1.0, 1.0)
        written_out = [naive.binary_options(label, *costs) for label in y]
    parts = [(np.array([i]), options, 1.0) for i, options in enumerate(written_out)]
    return naive.optimum(naive.kernel_matrix(slimsvm.kernels.RBF(0.5), X, X), parts, C, intercept == "regularized")[0]


@INTERCEPTS
@KINDS
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_never_exceeds_the_optimum_and_comes_close(kind, intercept, seed):
    """Also for models that are nothing like the optimum."""
    rng = np.random.default_rng(seed)
    X, y = data(kind, 40, seed)
    C = float(10 ** rng.uniform(-1, 1.5))
    best = optimum_of(kind, X, y, C, intercept)
    good = estimator_of(kind, C=C, solver="exact", intercept=intercept).fit(X, y)
    for scale in (1.0, -1.0, 0.1, 1e6):
        good.model_ = slimsvm.KernelExpansion(
            X[good.support_], scale * good.dual_coef_.T, good.intercept_, np.zeros(0), good.kernel_, "float64"
        )
        found = good.certificate(X, y)
        assert 0.99 * best <= found.lower_bound <= best * (1 + 1e-8)
        assert found.lower_bound <= found.objective
        assert found.gap == pytest.approx(1 - found.lower_bound / found.objective)


@KINDS
def test_the_objective_is_that_of_the_fit(kind):
    X, y = data(kind, 120)
    weights = np.random.default_rng(1).integers(0, 3, 120).astype(float)
    for solver in ("exact", "exact-cuts", "violated-cuts", "refine"):
        capped = {"max_basis": 10} if solver == "refine" else {}
        model = estimator_of(kind, C=3.0, solver=solver, intercept="regularized", **capped).fit(X, y, weights)
        found = model.certificate(X, y, weights)
        assert found.objective == pytest.approx(model.objective_, rel=1e-8)
        assert solver != "exact" or (found.n_passes, found.kernel_evals) == (0, 0)  # its own point closes the gap
        assert solver != "refine" or found.n_passes >= 1
        if found.n_passes:
            assert found.kernel_evals >= np.count_nonzero(weights) ** 2


@INTERCEPTS
@KINDS
def test_exact_models_are_certified_to_a_thousandth_and_all_others_to_nine_tenths(kind, intercept):
    X, y = data(kind, 1300)
    exact = estimator_of(kind, C=5.0, solver="exact", intercept=intercept, tol=1e-5).fit(X, y)
    found = exact.certificate(X, y)
    assert found.gap <= 1e-3
    solvers = ["refine"] if intercept == "free" else ["violated-cuts", "cpsp", "refine"]
    for solver in solvers:
        capped = {} if solver == "violated-cuts" else {"max_basis": 15}
        model = estimator_of(kind, C=5.0, solver=solver, intercept=intercept, **capped).fit(X, y)
        other = model.certificate(X, y)
        assert 0.99 * exact.lower_bound_ <= other.lower_bound <= exact.objective_ * (1 + 1e-9)
        assert other.n_passes <= 10


def test_float32_fits_are_certified_in_float64():
    X, y = data("classes", 600)
    model = SVC(C=100.0, gamma=0.5, solver="exact", precision="float32", intercept="regularized", tol=1e-4).fit(X, y)
    K = rbf_kernel(X, gamma=0.5) + 1.0
    v = np.zeros(600)
    v[model.support_] = model.dual_coef_[0]
    primal = 0.5 * v @ K @ v + 100.0 * np.maximum(0, 1 - y * (K @ v)).sum()
    found = model.certificate(X, y)
    assert found.objective == pytest.approx(primal, rel=1e-7)  # its intercept is the sum of v to float32
    assert found.gap < 1e-3


def test_the_models_own_dual_is_the_start_even_with_equal_rows(monkeypatch):
    """Without a single pass the exact solver's own point is found again from vectors that occur several times."""
    monkeypatch.setattr(block_ascent.DualAscent, "climb", lambda self: None)
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (200, 3)).astype(float)
    y = np.where(X.sum(axis=1) + rng.normal(size=200) > 0, 1, -1)
    for container in (np.asarray, sp.csr_array):
        model = SVC(C=2.0, gamma=0.5, solver="exact", tol=1e-8).fit(container(X), y)
        found = model.certificate(container(X), y)
        assert found.n_passes == 0
        assert found.gap <= 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_precomputed_kernels(weighted):
    X, y = data("classes", 150)
    K = rbf_kernel(X, gamma=0.5)
    weights = np.random.default_rng(0).integers(0, 3, 150) if weighted else None
    model = SVC(kernel="precomputed", C=3.0).fit(K, y, weights)
    found = model.certificate(K, y, weights)
    assert found.objective == pytest.approx(model.objective_, rel=1e-9)
    assert found.gap <= 1e-6
    if weighted:
        with pytest.raises(ValueError, match="sample_weight is 0 for rows of the model"):
            model.certificate(K, y, np.where(np.arange(150) == model.support_[0], 0, 1))


def test_from_a_file_with_class_weights(tmp_path):
    X, y = data("classes", 200)
    labels = np.array(["no", "yes"])[(y > 0).astype(int)]
    model = SVC(C=2.0, class_weight="balanced", gamma=0.5).fit(X, labels)
    model.save(tmp_path / "model.slim")
    found = slimsvm.load(tmp_path / "model.slim").certificate(X, labels)
    assert found.objective == pytest.approx(model.objective_, rel=1e-9)
    assert found.gap <= 1e-6


def test_same_bits_for_any_number_of_threads():
    X, y = data("classes", 900)
    model = SVC(max_basis=10, gamma=0.5, random_state=0).fit(X, y)
    found = [model.set_params(n_jobs=n_jobs).certificate(X, y) for n_jobs in (1, 3)]
    assert found[0].lower_bound == found[1].lower_bound
    assert found[0].objective == found[1].objective


def test_no_time_at_all_still_bounds():
    X, y = data("classes", 300)
    for max_basis, least in ((None, 0.999), (15, 0.0)):  # the dual point of all vectors costs no time
        found = SVC(gamma=0.5, max_basis=max_basis, random_state=0).fit(X, y).certificate(X, y, max_seconds=1e-9)
        assert least * found.objective <= found.lower_bound <= found.objective * (least > 0)
        assert found.n_passes == 0


@INTERCEPTS
@KINDS
def test_more_time_never_lowers_the_bound_and_some_of_the_rows_are_a_dual_point(
    kind, intercept, monkeypatch, settings_of_estimators
):
    """Time ends at one look at the clock after the other: after the sample, between parts of the rows, in a pass."""
    settings_of_estimators(block_ascent.BlockSettings(sample=60, stride=50, block=100))
    X, y = data(kind, 300)
    best = optimum_of(kind, X, y, 3.0, intercept)
    model = estimator_of(kind, C=3.0, intercept=intercept, max_basis=10).fit(X, y)
    bounds = []
    for n_looks in (0, 1, 2, 4, 6, 7, 8, 9, 20):
        looks = iter(range(n_looks))
        monkeypatch.setattr(block_ascent.DualAscent, "out_of_time", property(lambda ascent: next(looks, None) is None))  # noqa: B023
        bounds.append(model.certificate(X, y).lower_bound)
    assert bounds[0] == 0
    assert 0 < bounds[1] < bounds[-1] <= best * (1 + 1e-9)
    assert np.diff(bounds).min() >= -1e-9 * best
    assert bounds[1] < bounds[3] < bounds[6]  # the parts count
    assert bounds[-1] > 0.9 * best


@INTERCEPTS
@KINDS
def test_exact_models_need_no_time(kind, intercept):
    """Also where what rounding left of the sum of all coefficients has to be taken off some row."""
    X, y = data(kind, 400)
    model = estimator_of(kind, C=30.0, solver="exact", intercept=intercept, tol=1e-5).fit(X, y)
    for shift in (0.0, 1e-9, -1e-9):
        good = model.model_
        inside = np.argmin(np.abs(np.abs(good.coef[:, 0]) - 15.0))
        good.coef[inside] += shift
        found = model.certificate(X, y, max_seconds=1e-9)
        assert 0 <= found.gap <= 1e-3
        assert found.kernel_evals <= 2 * 400


def test_progress_is_shown_when_asked_for_only(capfd):
    X, y = data("classes", 100)
    model = SVC(gamma=0.5, max_basis=5, random_state=0).fit(X, y)
    model.certificate(X, y)
    assert capfd.readouterr() == ("", "")
    model.set_params(verbose=1).certificate(X, y)
    assert "certificate, pass 1" in capfd.readouterr().err


def test_bad_input_is_named():
    X, y = data("classes", 60)
    model = SVC(gamma=0.5).fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold the classes \[-1, 1\]; found .*7"):
        model.certificate(X, np.full(60, 7))
    with pytest.raises(ValueError, match="max_seconds"):
        model.certificate(X, y, max_seconds=-1)
    sequences = SequenceSVM(gamma=0.5).fit([X[:3], X[3:5]], [["a", "b", "a"], ["b", "b"]])
    with pytest.raises(ValueError, match=r"y must hold the labels \['a', 'b'\]; found .*c"):
        sequences.certificate([X[:2]], [["a", "c"]])
    with pytest.raises(ValueError, match="max_seconds"):
        sequences.certificate([X[:2]], [["a", "b"]], max_seconds=0)


# ---- every task that has a slow truth


def random_model(rng, task, X, kernel):
    """Rows of X and other vectors, with coefficients that fit nothing."""
    basis = np.vstack([X[rng.choice(len(X), 4)], rng.normal(size=(3, X.shape[1]))]).astype(float)
    coef = rng.normal(size=(7, task.n_outputs)) * 10 ** rng.uniform(-1, 1)
    plain = rng.normal(size=task.n_plain)
    return slimsvm.KernelExpansion(basis, coef, rng.normal(size=task.n_outputs), plain, kernel, "float64")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(sorted(CASES)),
    seed=st.integers(0, 1000),
    log_C=st.floats(-2, 1.5),
    intercept=st.sampled_from(["regularized", "none"]),
)
def test_no_bound_exceeds_the_optimum_of_a_qp_solver(name, seed, log_C, intercept):
    """Whatever the loss, C, the weights and the model."""
    case = CASES[name]
    task, X, _, examples = case.problem(seed, 14 if task_is_wide(case) else 25)
    kernel, C = slimsvm.kernels.RBF(0.3), 10.0**log_C
    K = naive.kernel_matrix(kernel, X, X)
    primal, dual = naive.optimum(K, case.written_out(examples), C, intercept == "regularized")
    model = random_model(np.random.default_rng(seed), task, X, kernel)
    problem = Problem(as_rows(X), examples, task, kernel, C=C, intercept=intercept, random_state=0)
    if intercept == "none":
        model = replace(model, intercept=np.zeros(task.n_outputs))
    found = certify(problem, model)
    assert 0.9 * dual - 1e-9 <= found.lower_bound <= primal * (1 + 1e-8) + 1e-12
    K_basis = naive.kernel_matrix(kernel, model.basis, model.basis)
    parts = K_basis, naive.kernel_matrix(kernel, X, model.basis), model.coef, model.intercept, model.plain
    assert found.objective == pytest.approx(naive.objective(*parts, case.written_out(examples), C), rel=1e-9)


def task_is_wide(case):
    return case.max_rows < 20


# ---- several classes


def three_classes(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] > 0.2).astype(int) + (X[:, 2] + 0.4 * rng.normal(size=n) > 0)


@lru_cache
def optimum_of_three_classes(n, C, intercept, costs):
    X, y = three_classes(n)
    cost = THREE_COSTS if costs else None
    return SVC(C=C, gamma=0.5, solver="exact-cuts", intercept=intercept, cost_matrix=cost).fit(X, y)


THREE_COSTS = [[0.0, 1.0, 2.5], [0.5, 0.0, 0.1], [1.0, 3.0, 0.0]]
CAPPED = {"cpsp", "refine", "low-rank", "bsca", "bsgd"}


AXES = {
    "solver": ["exact-cuts", "violated-cuts", "uniform-cuts", *sorted(CAPPED)],
    "intercept": ["regularized", "none"],
    "costs": [False, True],
}


@crossed(AXES)
def test_several_classes_are_certified_whatever_the_solver(solver, intercept, costs):
    X, y = three_classes(600)
    best = optimum_of_three_classes(600, 3.0, intercept, costs)
    model = best
    if solver != "exact-cuts":
        capped = {"max_basis": 15} if solver in CAPPED else {}
        cost = THREE_COSTS if costs else None
        options = {"intercept": intercept, "cost_matrix": cost, "random_state": 0, "tol": 0.02}
        model = SVC(C=3.0, gamma=0.5, solver=solver, **options, **capped).fit(X, y)
    found = model.certificate(X, y)
    assert found.objective == pytest.approx(model.objective_, rel=1e-8)
    assert 0.99 * best.objective_ <= found.lower_bound <= best.objective_ * (1 + 1e-9)
    assert found.n_passes <= 10
    if solver == "exact-cuts":
        assert found.gap <= 1e-6


def test_equal_rows_of_several_classes_are_found_again(monkeypatch):
    """Without a pass, the dual point of the model's own coefficients is near the optimum: none is counted twice."""
    monkeypatch.setattr(block_ascent.DualAscent, "climb", lambda self: None)
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (80, 3)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=80) > 0).astype(int) + (X[:, 0] > 1)
    repeated, labels = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    for container in (np.asarray, sp.csr_array):
        model = SVC(C=2.0, gamma=0.5, solver="exact-cuts").fit(container(repeated), labels)
        found = model.certificate(container(repeated), labels)
        assert found.n_passes == 0
        assert found.gap <= 0.01


def test_several_classes_from_a_file_with_weights_and_threads(tmp_path):
    X, y = three_classes(400)
    labels, weights = np.array(["a", "b", "c"])[y], np.random.default_rng(0).integers(0, 3, 400)
    model = SVC(C=2.0, class_weight="balanced", max_basis=10, gamma=0.5, random_state=0).fit(X, labels, weights)
    model.save(tmp_path / "model.slim")
    read = slimsvm.load(tmp_path / "model.slim")
    found = [read.set_params(n_jobs=n_jobs).certificate(X, labels, weights) for n_jobs in (1, 3)]
    assert found[0].objective == pytest.approx(model.objective_, rel=1e-9)
    assert found[0].lower_bound == found[1].lower_bound
    assert 0.5 < found[0].lower_bound / found[0].objective < 1


# ---- losses over all rows, and sequences


@pytest.mark.parametrize("solver", ["exact-cuts", "violated-cuts", "cpsp"])
@pytest.mark.parametrize("loss", ["f1", "roc_auc", "prbep", "error_rate"])
def test_losses_over_all_rows_are_certified(loss, solver):
    X, y = data("classes", 300)
    exact = SVC(C=2.0, gamma=0.5, loss=loss, solver="exact-cuts").fit(X, y)
    capped = {"max_basis": 15} if solver == "cpsp" else {}
    model = SVC(C=2.0, gamma=0.5, loss=loss, solver=solver, random_state=0, **capped).fit(X, y)
    found = model.certificate(X, y)
    assert found.objective == pytest.approx(model.objective_, rel=1e-6)
    assert 0.99 * exact.objective_ <= found.lower_bound <= exact.objective_ * (1 + 1e-9)
    assert found.kernel_evals <= 3 * 300**2  # of cuts that share the kernel matrix
    if solver == "exact-cuts":
        assert found.gap <= 1e-3


@pytest.mark.parametrize("solver", ["exact-cuts", "violated-cuts", "cpsp"])
@pytest.mark.parametrize("loss", ["hamming", "zero-one"])
def test_sequences_are_certified(loss, solver, tmp_path):
    rng = np.random.default_rng(0)
    labels = [np.cumsum(rng.integers(0, 2, 4)) % 3 for _ in range(40)]
    X = [own[:, None] + 0.8 * rng.normal(size=(4, 2)) for own in labels]
    weights = rng.choice([1.0, 2.0], 40)
    exact = SequenceSVM(C=2.0, gamma=0.5, loss=loss, solver="exact-cuts").fit(X, labels, sample_weight=weights)
    capped = {"max_basis": 10} if solver == "cpsp" else {}
    model = SequenceSVM(C=2.0, gamma=0.5, loss=loss, solver=solver, random_state=0, **capped)
    model.fit(X, labels, sample_weight=weights).save(tmp_path / "model.slim")
    found = slimsvm.load(tmp_path / "model.slim").certificate(X, labels, sample_weight=weights)
    assert found.objective == pytest.approx(model.objective_, rel=1e-8)
    assert 0.99 * exact.objective_ <= found.lower_bound <= exact.objective_ * (1 + 1e-9)
    if solver == "exact-cuts":
        assert found.gap <= 1e-3
    assert model.certificate(X, labels, sample_weight=weights, max_seconds=1e-9).lower_bound == 0


def test_the_bar_of_cuts_says_what_it_is_of(capsys):
    X = np.random.default_rng(0).normal(size=(60, 2))
    clf = SVC(loss="f1").fit(X, X[:, 0] > 0.3).set_params(verbose=1)
    clf.certificate(X, X[:, 0] > 0.3, max_seconds=5)
    assert "certificate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("estimator", "others"),
    [
        (SVC(), {"loss": "squared_hinge", "C": 30.0, "gamma": 2.0, "class_weight": "balanced"}),
        (SVR(), {"loss": "squared", "epsilon": 1.0, "intercept": "none"}),
        (SVR(loss="quantile", quantile=0.2), {"quantile": 0.9}),
        (OneClassSVM(nu=0.3), {"nu": 0.9}),
        (NuSVR(), {"nu": 0.1, "C": 9.0}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_certificate_is_of_the_parameters_of_the_fit(estimator, others, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] * X[:, 1]
    y = y if is_regressor(estimator) else (y > 0).astype(int)
    found = clone(estimator).fit(X, y)
    before = found.certificate(X, y)
    found.set_params(**others)
    found.save(tmp_path / "model.slim")
    for after in (found, slimsvm.load(tmp_path / "model.slim")):
        again = after.certificate(X, y)
        assert (again.objective, again.lower_bound) == (before.objective, before.lower_bound)
    assert found.get_params().items() >= others.items()
