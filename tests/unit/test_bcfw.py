"""Block-coordinate Frank-Wolfe, with kernels and with explicit weights."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import naive
from block_cases import DECOMPOSING, check_warm_start, optimum, problem_of
from pairwise import crossed
from slimsvm import BCFW, SVC, ExactCuts, SequenceSVM, load
from slimsvm.kernels import RBF, FeatureRows, KernelRows, Linear
from slimsvm.model import LinearModel
from slimsvm.parts.cuts.plane_store import Planes, Step, WeightBook
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Augmented, Chain
from tasks_for_tests import CASES

FEW = ["binary", "multiclass-costs", "regression", "sequence"]
VARIANTS = {
    "corrective": BCFW(),
    "line-search": BCFW(tol_relative=0.02, step="line-search", cached_passes=0),
    "average": BCFW(tol_relative=0.02, step="line-search", cached_passes=0, averaging=True),
}


@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize("weights", [False, True], ids=["expansion", "weights"])
@pytest.mark.parametrize("name", FEW)
def test_every_step_comes_to_the_reference_optimum(name, weights, variant):
    """The gap is true and never negative, whatever the step, and both forms of an estimator are the same one."""
    problem, X, case = problem_of(name, Linear() if weights else RBF(0.3))
    solver = clone(VARIANTS[variant]).set_params(weights=weights)
    fit = solver.solve(problem)
    primal, dual = optimum(problem, X, case)
    assert fit.lower_bound <= primal * (1 + 1e-9)
    assert dual * (1 - 1e-9) <= fit.objective <= primal * 1.0205
    assert all(record["gap"] is None or record["gap"] >= 0 for record in fit.history)
    assert fit.objective - fit.lower_bound <= solver.tol_relative * fit.objective


CONTAINERS = {"dense": np.asarray, "csr": sp.csr_array}
AXES = {"intercept": ["regularized", "none"], "container": sorted(CONTAINERS), "name": DECOMPOSING}


@crossed(AXES)
def test_explicit_weights_are_the_expansion(intercept, container, name):
    problem, X, _ = problem_of(name, Linear(), 1, intercept=intercept, precision="float64")
    problem = replace(problem, rows=as_rows(CONTAINERS[container](X.astype(float))))
    fits = [BCFW(1e-7, weights=weights).solve(problem) for weights in (False, True)]
    assert isinstance(fits[1].model, LinearModel)
    assert fits[1].objective == pytest.approx(fits[0].objective, rel=1e-6)
    scores = [fit.model.scores(problem.rows.slice(0, len(X), np.float64)) for fit in fits]
    np.testing.assert_allclose(*scores, atol=5e-3)
    w = [fit.model.basis.T @ fit.model.coef for fit in fits]
    np.testing.assert_allclose(*w, atol=5e-3)
    assert fits[1].model.norm_squared() == pytest.approx(fits[0].model.norm_squared(), abs=1e-2)


@pytest.mark.parametrize("name", sorted(CASES))
def test_exact_cuts_in_weights_are_those_of_the_expansion(name):
    """Losses over all rows as well; without a kernel evaluation."""
    problem, _, _ = problem_of(name, Linear(), 1, precision="float64", C=2.0)
    fits = [ExactCuts(1e-8, weights=weights, slacks="one").solve(problem) for weights in (False, True)]
    assert isinstance(fits[1].model, LinearModel)
    assert fits[1].counters["kernel_evals"] == 0
    assert fits[1].objective == pytest.approx(fits[0].objective, rel=1e-6)
    assert 0 <= fits[1].objective - fits[1].lower_bound <= 1e-6 * fits[1].objective
    np.testing.assert_allclose(*(fit.model.basis.T @ fit.model.coef for fit in fits), atol=2e-3)


@pytest.mark.parametrize("step", ["line-search", "full"])
def test_cuts_in_weights_go_on_from_an_earlier_fit(step):
    problem, _, _ = problem_of("sequence", Linear(), precision="float64")
    solver = ExactCuts(1e-6, step=step, weights=True, slacks="one")
    state = solver.solve(problem).state
    other = replace(problem, C=1.1)
    cold, warm = solver.solve(other), solver.solve(other, state=state)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-5)
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("name", FEW)
def test_the_same_optimum_as_exact_cuts(name):
    problem, _, _ = problem_of(name, RBF(0.3), C=3.0, precision="float64")
    cuts, blocks = ExactCuts(1e-9).solve(problem), BCFW(1e-5).solve(problem)
    assert blocks.objective == pytest.approx(cuts.objective, rel=2e-5)
    assert blocks.lower_bound <= cuts.objective * (1 + 1e-12)


def test_corrective_steps_take_fewer_passes():
    problem, _, _ = problem_of("sequence", RBF(0.3))
    n = [BCFW(0.02, step, cached_passes=0).solve(problem).n_iter for step in ("corrective", "line-search")]
    assert 3 * n[0] <= n[1]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("change", [{"C": 1.5}, {"C": 0.3}])
def test_a_warm_start_goes_on_from_the_dual_point(weights, change):
    solver = BCFW(1e-4, weights=weights)
    problem, _, _, state = check_warm_start(solver, change, rel=2e-4)
    again = solver.solve(problem, state=state)
    assert again.n_iter == 1
    assert solver.solve(problem, state=state).objective == again.objective  # the state was not changed


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_have_the_same_bits_for_any_number_of_threads(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 70)) * (rng.random((2500, 70)) < 0.2)
    labels = [rng.integers(0, 3, 5) for _ in range(500)]
    task = Chain(3)
    fits = [
        BCFW(0.2).solve(
            Problem(as_rows(sp.csr_array(X) if sparse else X), task.encode(labels), task, Linear(), C=0.01,
                    random_state=0, n_jobs=n_jobs)
        )
        for n_jobs in (1, 2, 4)
    ]  # fmt: skip
    assert isinstance(fits[0].model, LinearModel)
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.model.coef, fits[0].model.coef)
        np.testing.assert_array_equal(fit.model.plain, fits[0].model.plain)
        assert (fit.objective, fit.lower_bound) == (fits[0].objective, fits[0].lower_bound)


def test_planes_without_weight_are_forgotten_and_room_is_made():
    problem, _, _ = problem_of("sequence", Linear(), C=5.0)
    run = BCFW(1e-6, weights=True).start(problem)
    most = 0
    for _ in range(60):
        most = max(most, run.step()["n_planes"])
    assert run.planes.n[0] < most
    coef, plain = run.planes.coefficients(run.examples, run.task)
    np.testing.assert_allclose(run.book.features.gather(coef), run.book.weights, atol=1e-9)
    np.testing.assert_allclose(plain, run.book.plain, atol=1e-9)
    assert run.planes.alpha[: run.planes.n[0]].min() >= 0


def test_an_interrupt_while_room_is_made_leaves_whole_planes():
    """Ctrl-C in any line of it: arrays of planes are all of the old length, or all of the new one."""

    def interrupting(planes, line):
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            if frame.f_code is not Planes._reserve.__code__:
                return None
            lines += event == "line"
            if event == "line" and lines == line:
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            planes._reserve(("following", "where", "idle", "constant", "alpha"), 5)
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    line, lengths = 1, set()
    while interrupting(planes := Planes(3), line):
        assert planes.compiled is not None
        line, lengths = line + 1, lengths | {len(planes.alpha)}
    assert line > 10
    assert lengths == {1}
    assert len(planes.alpha) == len(planes.where) == 10


def test_products_of_rows_too_many_to_keep_are_computed_each_time():
    problem, _, _ = problem_of("sequence", Linear())
    kept = BCFW(weights=True).solve(problem)
    run = BCFW(weights=True).start(replace(problem, memory_limit=1000))
    assert run.book.grams is None
    while not run.converged:
        record = run.step()
    assert record["objective"] == pytest.approx(kept.objective, rel=1e-10)


def test_one_example_solved_exactly():
    """Against every face of the simplex: planes over plain parameters alone."""
    rng = np.random.default_rng(0)
    kernel_rows, examples = KernelRows(Linear(), as_rows(np.zeros((2, 1)))), Chain(3).encode([[0, 1]])
    for _ in range(20):
        Z = rng.normal(size=(4, 15))
        H, s = Z @ Z.T, rng.normal(size=4)
        book = WeightBook(kernel_rows, examples, np.array([0.8]), Chain(3), False, 1 << 20)
        planes = Planes(1)
        for c, part in zip(s, Z):
            planes.add(np.array([0]), examples, Augmented(np.array([c]), np.zeros((2, 3)), part[None]))
        book.step(planes, np.array([0]), Step(is_corrective=True, tol=1e-12))
        a = planes.alpha[:4]
        best = naive.simplex_qp(H, s, 0.8)
        assert s @ a - 0.5 * a @ H @ a == pytest.approx(s @ best - 0.5 * best @ H @ best, abs=1e-9)
        np.testing.assert_allclose(book.plain, Z.T @ a, atol=1e-12)


# ---- the model of weights, as users meet it


def text(n_sequences=700, seed=0):
    """Sequences of sparse binary rows; labels that a few features betray."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, n_sequences)
    n = lengths.sum()
    X, codes = (rng.random((n, 40)) < 0.1).astype(float), rng.integers(0, 3, n)
    X[:, :3] = np.eye(3)[codes]
    return sp.csr_array(X), np.array(["a", "b", "c"])[codes], lengths


def test_sequences_of_many_sparse_rows_have_weights(tmp_path):
    X, y, lengths = text()
    clf = SequenceSVM(kernel="linear", C=0.1, random_state=0).fit(X, y, lengths)
    assert isinstance(clf.solver_, BCFW)
    assert isinstance(clf.model_, LinearModel)
    assert clf.objective_ - clf.lower_bound_ <= 0.01 * clf.objective_
    assert clf.score(X, y, lengths) > 0.9
    clf.save(tmp_path / "model.slim")
    again = load(tmp_path / "model.slim")
    assert isinstance(again.model_, LinearModel)
    np.testing.assert_array_equal(again.decision_function(X, lengths), clf.decision_function(X, lengths))
    assert (again.predict(X, lengths) == clf.predict(X, lengths)).all()
    np.testing.assert_array_equal(again.model_.weights, clf.model_.weights)


@pytest.mark.parametrize("loss", ["hinge", "f1", "roc_auc"])
def test_classes_of_many_rows_have_weights(loss, tmp_path):
    rng = np.random.default_rng(0)
    X = sp.csr_array((rng.random((2500, 30)) < 0.2) * 1.0)
    y = np.where(X[:, [0]].toarray()[:, 0] + X[:, [1]].toarray()[:, 0] > 1, "yes", "no")
    clf = SVC(kernel="linear", C=1.0, loss=loss, solver="exact-cuts").fit(X, y)
    assert isinstance(clf.model_, LinearModel)
    assert isinstance(clf.solver_, ExactCuts)
    assert clf.n_kernel_evals_ == 0
    assert clf.score(X, y) > 0.95
    clf.save(tmp_path / "model.slim")
    np.testing.assert_array_equal(load(tmp_path / "model.slim").predict(X), clf.predict(X))
    kept = SVC(kernel="linear", C=1.0, loss=loss, solver=ExactCuts(weights=False)).fit(X, y)
    assert kept.objective_ == pytest.approx(clf.objective_, rel=0.02)


def test_feature_products():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 90)) * (rng.random((700, 90)) < 0.3)
    W, coef, bias = rng.normal(size=(90, 4)), rng.normal(size=(700, 4)), rng.normal(size=4)
    coef[::3] = 0
    for container in (X, sp.csr_array(X), np.asfortranarray(X), sp.csr_array(X.astype(np.float32))):
        rows = FeatureRows(container, 2)
        tolerance = 1e-10 if container.dtype == np.float64 else 1e-4
        np.testing.assert_allclose(rows.scores(W, bias), X @ W + bias, atol=tolerance)
        np.testing.assert_allclose(rows.gather(coef), X.T @ coef, atol=tolerance)
        np.testing.assert_array_equal(FeatureRows(container[:5], 1).scores(W), rows.scores(W)[:5])


def test_a_model_of_weights_says_what_does_not_fit():
    model = LinearModel.of_weights(np.ones((3, 1)), np.zeros(1), np.zeros(0), "float64")
    with pytest.raises(ValueError, match="the rows have 2 features, the basis has shape"):
        model.scores(np.zeros((1, 2)))
    header, arrays = model.to_file_parts()
    with pytest.raises(ValueError, match="features must be increasing numbers from 0 to 2"):
        LinearModel.from_file_parts(header, arrays | {"features": np.array([0, 2, 1])})


# ---- parameters


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (BCFW(tol_relative=0), "tol_relative must be a positive number or None, found 0"),
        (BCFW(step="half"), "step must be 'corrective' or 'line-search', found 'half'"),
        (BCFW(cached_passes=-1), "cached_passes must be an integer >= 1, found -1"),
        (BCFW(weights="yes"), "weights must be 'auto', True or False, found 'yes'"),
        (BCFW(weights=True), "weights=True needs kernel='linear', found RBF"),
    ],
)
def test_bad_parameters_are_named(solver, message):
    problem, _, _ = problem_of("binary", RBF(0.3))
    with pytest.raises(ValueError, match=message):
        solver.solve(problem)


def test_losses_over_all_rows_are_refused():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match="BCFW needs a loss that is a sum over examples, found ROCArea"):
        SVC(loss="roc_auc", solver="bcfw").fit(X, y)
