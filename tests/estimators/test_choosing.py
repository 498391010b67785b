"""What an estimator chooses by itself: the metric (``gamma="learn"``) and C and gamma on a validation part."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from kernel_cases import NO_METRIC
from slimsvm import BSCA, SVC, SVR, CrossTrainedSVC, OneClassSVM, RankSVM, Refine, SequenceSVM, StructuredSVM
from slimsvm.estimators._shared import choosing
from slimsvm.kernels import RBF, Laplacian
from slimsvm.solvers.base import Status
from slimsvm.tasks import ExampleTask, FBeta


@pytest.fixture(scope="module")
def noisy_moons():
    """Two features that matter and six that do not: (X, y) for training, (X, y) for testing."""
    X, y = make_moons(5000, noise=0.25, random_state=0)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 6))])
    return X[:1000], y[:1000], X[1000:], y[1000:]


# ---- gamma="learn"


def test_a_learned_metric_needs_no_search(noisy_moons, tmp_path):
    X, y, X_test, y_test = noisy_moons
    learned = SVC(gamma="learn", max_basis=10, random_state=0).fit(X, y)
    assert isinstance(learned.solver_, Refine)
    assert learned.n_basis_ <= 10
    gamma = np.array(learned.kernel_.gamma)
    assert gamma.shape == (8,)
    assert gamma[:2].min() > 3 * gamma[2:].max()
    best = max(
        SVC(gamma=gamma, solver="refine", max_basis=10, random_state=0).fit(X, y).score(X_test, y_test)
        for gamma in (0.03, 0.1, 0.3, 1.0)
    )
    assert learned.score(X_test, y_test) > best + 0.02
    learned.save(tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    assert again.gamma == "learn"
    assert again.kernel_ == learned.kernel_
    np.testing.assert_array_equal(again.decision_function(X_test), learned.decision_function(X_test))


def test_the_start_may_be_given(noisy_moons):
    X, y = noisy_moons[:2]
    solver = Refine(5, rate=1e-9, epochs=1)
    for kernel, start in (("rbf", 1 / (8 * X.var())), (RBF(0.7), 0.7)):
        clf = SVC(kernel=kernel, gamma="learn", solver=solver, random_state=0).fit(X, y)
        np.testing.assert_allclose(clf.kernel_.gamma, start, rtol=1e-5)
    assert solver.learn_metric is False  # the user's object is as it was
    same = SVC(kernel=RBF(0.7), solver=Refine(5, epochs=3, learn_metric=True), random_state=0).fit(X, y)
    learned = SVC(kernel=RBF(0.7), gamma="learn", solver=Refine(5, epochs=3), random_state=0).fit(X, y)
    np.testing.assert_array_equal(learned.decision_function(X), same.decision_function(X))


def test_regression_learns_a_metric_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1500, 4))
    y = np.sin(3 * X[:, 1]) + 0.05 * rng.normal(size=1500)
    reg = SVR(gamma="learn", C=10.0, max_basis=12, random_state=0).fit(X, y)
    gamma = np.array(reg.kernel_.gamma)
    assert gamma[1] > 5 * np.delete(gamma, 1).max()
    assert np.abs(reg.predict(X) - np.sin(3 * X[:, 1])).mean() < 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "poly"}, f"{NO_METRIC} Polynomial"),
        ({"kernel": Laplacian(1.0)}, f"{NO_METRIC} Laplacian.*; solver='exact' takes scales"),
        ({"kernel": "precomputed"}, f"{NO_METRIC} Precomputed"),
        (
            {"solver": "exact", "kernel": "poly"},
            "a solver that learns no vectors needs kernel='rbf', .* found Polynomial",
        ),
        ({"solver": "exact-cuts", "loss": "f1"}, "gamma='learn' needs a loss that is a sum over examples, found FBeta"),
    ],
    ids=repr,
)
def test_what_cannot_learn_a_metric_says_so(parameters, message):
    X, y = np.eye(30), np.arange(30) % 2
    with pytest.raises(ValueError, match=message):
        SVC(gamma="learn", **parameters).fit(X, y)


@pytest.mark.parametrize("solver", ["auto", "exact"])
def test_a_metric_of_sparse_rows_is_refused(solver):
    with pytest.raises(ValueError, match="gamma='learn' needs dense rows, found a sparse matrix"):
        SVC(gamma="learn", solver=solver).fit(sp.csr_array(np.eye(4)), [0, 1, 0, 1])


# ---- gamma="learn" with solvers that learn no vectors


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "laplacian"])
@pytest.mark.parametrize("solver", ["exact", "low-rank", BSCA(max_basis=200, maintenance="project")], ids=repr)
def test_scales_are_learned_before(noisy_moons, kernel, solver, tmp_path):
    X, y, X_test, y_test = noisy_moons
    plain = SVC(kernel=kernel, solver=solver, random_state=0).fit(X, y)
    learned = SVC(kernel=kernel, solver=solver, gamma="learn", random_state=0).fit(X, y)
    gamma = learned.kernel_.gamma
    assert gamma.shape == (8,)
    assert gamma[:2].min() > 1.5 * gamma[2:].max()
    assert learned.score(X_test, y_test) > plain.score(X_test, y_test) + 0.005
    slimsvm.save(learned, tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    np.testing.assert_array_equal(again.decision_function(X_test), learned.decision_function(X_test))


@pytest.mark.parametrize(("kernel", "power"), [("rbf", 0.5), ("matern32", 0.5), ("laplacian", 1.0)])
def test_the_machine_is_that_of_scaled_features(noisy_moons, kernel, power):
    X, y, X_test, _ = noisy_moons
    learned = SVC(kernel=kernel, gamma="learn", solver="exact", random_state=0).fit(X, y)
    scales = learned.kernel_.gamma**power
    scales /= np.sqrt(np.mean(scales**2))
    same = SVC(kernel=kernel).fit(X * scales, y)
    np.testing.assert_allclose(learned.decision_function(X_test), same.decision_function(X_test * scales), atol=5e-3)


@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.3), RBF(np.full(8, 0.3))], ids=repr)
def test_the_mean_of_the_gammas_may_be_given(noisy_moons, kernel):
    X, y = noisy_moons[:2]
    learned = SVC(kernel=kernel, gamma="learn", solver="exact", random_state=0).fit(X, y)
    assert np.mean(learned.kernel_.gamma) == pytest.approx(0.3)
    assert np.ptp(learned.kernel_.gamma) > 0.1


def test_scales_of_pairs_of_classes_and_of_regression():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (900, 4))
    codes = np.digitize(np.sin(3 * X[:, 1]), [-0.5, 0.5])
    clf = SVC(gamma="learn", solver="exact", random_state=0).fit(X, codes)
    assert clf.multi_class_ == "ovo"
    reg = SVR(gamma="learn", solver="exact", random_state=0).fit(X, np.sin(3 * X[:, 1]))
    for gamma in (clf.kernel_.gamma, reg.kernel_.gamma):
        assert gamma[1] > 2 * np.delete(gamma, 1).max()


def test_scales_and_a_price_on_rows_held_out(noisy_moons):
    X, y = noisy_moons[:2]
    clf = SVC(C="validate", gamma="learn", solver="exact", random_state=0).fit(X, y)
    assert len(clf.validation_) >= 3
    assert clf.C_ in [trial["C"] for trial in clf.validation_]
    assert clf.kernel_.gamma.shape == (8,)


def test_scales_are_not_learned_from_a_chunk():
    with pytest.raises(ValueError, match=r"gamma='learn' finds scales .* partial_fit never sees"):
        SVC(gamma="learn", solver="bsca").partial_fit(np.eye(4), [0, 1, 0, 1], classes=[0, 1])


def test_ctrl_c_while_scales_are_learned_ends_the_fit(noisy_moons, monkeypatch):
    X, y = noisy_moons[:2]
    solve = Refine.solve
    monkeypatch.setattr(Refine, "solve", lambda self, problem: replace(solve(self, problem), status=Status.INTERRUPTED))
    with pytest.raises(KeyboardInterrupt):
        SVC(gamma="learn", solver="exact", random_state=0).fit(X, y)


def test_time_for_scales_is_part_of_max_seconds(noisy_moons, monkeypatch):
    X, y = noisy_moons[:2]
    seen, solve = [], Refine.solve

    def watched(self, problem):
        seen.append(problem.max_seconds)
        return solve(self, problem)

    monkeypatch.setattr(Refine, "solve", watched)
    SVC(gamma="learn", solver="exact", max_seconds=100.0, random_state=0).fit(X, y)
    assert seen == [30.0]


# ---- C="validate"


@pytest.mark.parametrize("flip", [0.0, 0.4])
def test_validated_C_follows_the_noise(flip):
    """Many labels turned round ask for a low price, none for a high one; the model is that of this price."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, (600, 2))
    y = (np.floor(X).sum(axis=1) % 2).astype(int)
    y = np.where(rng.random(600) < flip, 1 - y, y)
    clf = SVC(C="validate", gamma=3.0, random_state=0).fit(X, y)
    assert clf.C_ >= 10 if flip == 0 else clf.C_ <= 1
    np.testing.assert_array_equal(
        clf.decision_function(X), SVC(C=clf.C_, gamma=3.0, random_state=0).fit(X, y).decision_function(X)
    )
    errors = [trial["error"] for trial in clf.validation_]
    assert clf.validation_[int(np.argmin(errors))]["C"] == clf.C_
    assert min(errors) < 0.1 + flip
    assert SVC(gamma=3.0).fit(X, y).validation_ == []


@pytest.mark.parametrize("solver", ["exact", "refine", "lasvm", "uniform-cuts"])
def test_an_interrupt_ends_the_search(solver, monkeypatch):
    """A solver ends an interrupted trial with what it has, which is no reason to go on with the next one."""
    begun, (X, y) = [], make_moons(60, noise=0.25, random_state=0)

    def interrupted(self, problem, *arguments, **more):
        begun.append(problem.C)
        solved = own(self, problem, *arguments, **more)
        return replace(solved, status=Status.INTERRUPTED) if len(begun) == 2 else solved

    estimator = SVC(C="validate", solver=solver, max_basis=10 if solver == "refine" else None, random_state=0)
    kind = type(clone(estimator).set_params(C=1.0).fit(X, y).solver_)
    own = kind.solve
    monkeypatch.setattr(kind, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, y)
    assert begun == [0.1, 1.0]
    assert not hasattr(estimator, "model_")


# ---- gamma="validate"


@pytest.mark.parametrize("C", [10.0, "validate"])
def test_validated_gamma_follows_the_pattern(C):
    """Small squares ask for a narrow kernel; the model is that of this width and price."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (800, 2))
    y = (np.floor(X).sum(axis=1) % 2).astype(int)
    clf = SVC(C=C, gamma="validate", random_state=0).fit(X, y)
    scale = 1 / (2 * X.var())
    assert clf.kernel_.gamma >= 4 * scale * (1 - 1e-9)
    again = SVC(C=clf.C_, gamma=clf.kernel_.gamma, random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.decision_function(X), again.decision_function(X))
    errors = [trial["error"] for trial in clf.validation_]
    best = clf.validation_[int(np.argmin(errors))]
    assert (best["C"], best["gamma"]) == (clf.C_, clf.kernel_.gamma)
    tried = list(dict.fromkeys(trial["gamma"] for trial in clf.validation_))
    np.testing.assert_allclose(tried, scale * np.array([1, 4, 16, 1 / 4]))
    assert {trial["C"] for trial in clf.validation_} == ({10.0} if C == 10.0 else {0.1, 1.0, 10.0, 100.0, 1000.0})


@pytest.mark.parametrize(
    ("errors", "tried"),
    [
        ({1: 0.20, 4: 0.22, 1 / 4: 0.22}, [1, 4, 1 / 4]),
        ({1: 0.20, 4: 0.10, 16: 0.15, 1 / 4: 0.20}, [1, 4, 16, 1 / 4]),
        ({1: 0.20, 4: 0.205, 16: 0.05, 1 / 4: 0.30}, [1, 4, 16, 1 / 4]),
        ({1: 0.20, 4: 0.30, 1 / 4: 0.19, 1 / 16: 0.18}, [1, 4, 1 / 4, 1 / 16]),
        ({1: 0.0, 4: 0.0, 16: 0.0, 1 / 4: 0.0, 1 / 16: 0.0}, [1, 4, 16, 1 / 4, 1 / 16]),
    ],
    ids=str,
)
def test_widths_are_tried_outwards_while_their_errors_are_near_the_lowest(errors, tried, monkeypatch):
    X, y = make_moons(60, random_state=0)
    scale, found = 1 / (2 * X.var()), []

    def one(self, problem, state):
        factor = problem.kernel.gamma / scale
        found.append(factor)
        nearest = min(errors, key=lambda known: abs(np.log(known / factor)))
        return {"C": problem.C, "gamma": problem.kernel.gamma, "error": errors[nearest], "seconds": 0.0}, None

    monkeypatch.setattr(choosing._Trials, "one", one)
    clf = SVC(gamma="validate", random_state=0).fit(X, y)
    np.testing.assert_allclose(found, tried)
    assert clf.kernel_.gamma == pytest.approx(scale * min(errors, key=lambda factor: (errors[factor], factor != 1)))


@pytest.mark.parametrize(
    ("estimator", "tols"),
    [
        (SVC(C="validate"), {0.03, 1e-3}),
        (SVC(C="validate", tol=1e-6), {0.03, 1e-6}),
        (SVC(C="validate", tol=0.1), {0.1}),
        (SVR(C="validate"), {1e-3}),  # in the targets' unit
        (SVC(C="validate", solver="exact-cuts", intercept="regularized"), {1e-3}),
    ],
    ids=repr,
)
def test_trials_of_the_exact_machine_end_at_a_wider_tolerance(estimator, tols, monkeypatch):
    X, y = make_moons(60, noise=0.2, random_state=0)
    kind = type(clone(estimator).set_params(C=1.0).fit(X, y).solver_)
    own, seen = kind.solve, set()

    def watched(self, problem, *arguments, **more):
        seen.add(problem.tol)
        return own(self, problem, *arguments, **more)

    monkeypatch.setattr(kind, "solve", watched)
    estimator.fit(X, y)
    assert seen == tols


def test_a_kernel_object_is_validated_from_its_own_gamma():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    reg = SVR(kernel=Laplacian((0.5, 1.0)), gamma="validate", C=10.0).fit(X, np.sin(3 * X[:, 0]))
    ratio = np.array(reg.kernel_.gamma) / [0.5, 1.0]
    assert ratio[0] == ratio[1]
    assert ratio[0] in (1 / 16, 1 / 4, 1, 4, 16)
    assert SVC(kernel="poly", gamma="validate").fit(X, X[:, 0] > 0).kernel_.degree == 3


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVC(kernel="linear", gamma="validate"), "gamma='validate' needs a kernel with a gamma, found Linear"),
        (
            SVC(kernel="precomputed", gamma="validate"),
            "needs a kernel with a gamma, found Precomputed",
        ),
        (OneClassSVM(gamma="validate"), "gamma='validate' needs labels to validate by"),
        (OneClassSVM(gamma="learn"), "gamma='learn' needs labels to learn from"),
        (CrossTrainedSVC(gamma="validate"), "gamma='validate' is not offered with cross-training"),
        (SVC(gamma="best"), "gamma must be one of 'scale', 'auto', 'learn', 'validate'"),
    ],
    ids=["linear", "matrix", "one class", "one class learns", "cross-training", "best"],
)
def test_gamma_that_cannot_be_validated(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(np.eye(30), np.arange(30) % 2)


def test_gamma_is_validated_on_rows_enough_and_never_in_chunks():
    with pytest.raises(ValueError, match="gamma='validate' needs at least 20 rows, found 4"):
        SVC(gamma="validate").fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="gamma='validate' tries values on all rows"):
        SVC(gamma="validate", solver="bsgd").partial_fit(np.eye(4), [0, 1, 0, 1])


def test_one_call_without_any_search(noisy_moons):
    X, y, X_test, y_test = noisy_moons
    clf = SVC(C="validate", gamma="learn", max_basis=10, random_state=0).fit(X, y)
    assert clf.score(X_test, y_test) > 0.92
    reg = SVR(C="validate", solver="refine", max_basis=5, random_state=0).fit(X[:, :1], np.sin(X[:, 0]))
    assert np.abs(reg.predict(X[:, :1]) - np.sin(X[:, 0])).mean() < 0.1


@pytest.mark.parametrize("labels", [np.repeat([0, 1, 2], [900, 60, 40]), np.linspace(0, 1, 1000)])
def test_parts_hold_the_same_shares(labels, monkeypatch):
    monkeypatch.setattr(choosing, "MAX_TRAINING", 400)
    monkeypatch.setattr(choosing, "MAX_VALIDATION", 100)
    training, held = choosing._parts(labels, np.random.default_rng(0), len(labels))
    assert len(training) == 400
    assert len(held) == 100
    assert not set(training) & set(held)
    assert labels[held].mean() == pytest.approx(labels.mean(), abs=0.02)
    assert labels[training].mean() == pytest.approx(labels.mean(), abs=0.01)
    few = training[choosing._evenly(400, 100)]
    assert labels[few].mean() == pytest.approx(labels.mean(), abs=0.02)


@pytest.mark.parametrize(
    ("y", "few"),
    [([50, 50], 50), ([95, 5], 100), ([996, 3, 1], 800), ([10] * 25, 125), (None, 50)],
    ids=["even", "rare", "very rare", "many classes", "targets"],
)
def test_so_many_rows_train_that_the_rarest_class_has_enough(y, few, monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    labels = X[:, 0] if y is None else np.resize(np.repeat(np.arange(len(y)), y), 1000)
    monkeypatch.setattr(choosing, "FEW_TRAINING", 50)
    monkeypatch.setattr(choosing, "RAREST", 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = (SVR if y is None else SVC)(C="validate", solver="exact", max_iter=1).fit(X, labels)
    assert fitted.validation_[0]["n_rows"] == few
    assert {trial["n_rows"] for trial in fitted.validation_} <= {few, 800}


@pytest.mark.parametrize(
    ("few", "all_rows", "tried", "best"),
    [
        ({1: 0.2, 4: 0.1}, {4: 0.10, 16: 0.15}, [4, 16], 4),
        ({1: 0.1}, {1: 0.10, 4: 0.20, 16: 0.05}, [1, 4], 1),
        ({1: 0.1}, {1: 0.10, 4: 0.05, 16: 0.01}, [1, 4, 16], 16),
        ({4: 0.2, 16: 0.1}, {}, [], 16),
    ],
    ids=["as few rows have it", "not beyond a worse one", "the narrowest", "none is narrower"],
)
def test_narrower_kernels_are_tried_again_with_more_rows(few, all_rows, tried, best, monkeypatch):
    X, y = make_moons(300, random_state=0)
    scale, found = 1 / (2 * X.var()), []
    monkeypatch.setattr(choosing, "FEW_TRAINING", 100)
    monkeypatch.setattr(choosing, "RAREST", 10)

    def one(self, problem, state):
        n_rows, factor = problem.rows.n_rows, round(float(problem.kernel.gamma / scale), 6)
        if n_rows == 240:
            found.append((factor, problem.C))
        error = {100: few, 240: all_rows}[n_rows].get(factor, 0.9) + abs(np.log10(problem.C) - 1)  # best at C = 10
        return {"C": problem.C, "gamma": problem.kernel.gamma, "error": error}, None

    monkeypatch.setattr(choosing._Trials, "one", one)
    clf = SVC(C="validate", gamma="validate", random_state=0).fit(X, y)
    assert found == [(factor, 10.0) for factor in tried]
    assert (clf.C_, clf.kernel_.gamma) == (10.0, pytest.approx(scale * best))


@pytest.mark.parametrize(
    ("few", "all_rows", "tried", "best"),
    [
        ({1.0: 0.104, 10.0: 0.1, 100.0: 0.2}, {1.0: 0.1, 10.0: 0.2}, [1.0, 10.0], 1.0),
        ({1.0: 0.106, 10.0: 0.1, 100.0: 0.101}, {10.0: 0.1, 100.0: 0.2}, [10.0, 100.0], 10.0),
        ({10.0: 0.1}, {}, [], 10.0),
    ],
    ids=["lower", "higher", "alone"],
)
def test_prices_near_the_best_are_tried_again_with_more_rows(few, all_rows, tried, best, monkeypatch):
    X, y = make_moons(300, random_state=0)
    found = []
    monkeypatch.setattr(choosing, "FEW_TRAINING", 100)
    monkeypatch.setattr(choosing, "RAREST", 10)

    def one(self, problem, state):
        if problem.rows.n_rows == 240:
            found.append(problem.C)
        return {"C": problem.C, "error": {100: few, 240: all_rows}[problem.rows.n_rows].get(problem.C, 0.9)}, None

    monkeypatch.setattr(choosing._Trials, "one", one)
    clf = SVC(C="validate", random_state=0).fit(X, y)
    assert (found, clf.C_) == (tried, best)


def test_validation_that_cannot_be():
    with pytest.raises(ValueError, match="C='validate' needs at least 20 rows, found 4"):
        SVC(C="validate").fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"C='validate' cuts the rows in two .* found kernel='precomputed'"):
        SVC(C="validate", kernel="precomputed").fit(np.eye(30), np.arange(30) % 2)
    with pytest.raises(ValueError, match="C must be a positive number or 'validate', found 'best'"):
        SVC(C="best").fit(np.eye(4), [0, 1, 0, 1])


def chains(n_sequences, longest, rng):
    """Sequences of 2 features: (rows, labels, lengths)."""
    lengths = rng.integers(1, longest + 1, n_sequences)
    y = rng.integers(0, 2, lengths.sum())
    return y[:, None] + 0.7 * rng.normal(size=(len(y), 2)), y, lengths


class Bit(ExampleTask):
    """Two labels, as the user would write them."""

    n_outputs = 2

    def features(self, y):
        return np.eye(2)[list(y)]

    def loss(self, y, other):
        return float(np.sum(np.array(y) != other))

    def labels(self, n_rows):
        return [np.array(bits) for bits in np.ndindex(*[2] * n_rows)]


def sequence_error(clf, X, y, lengths):
    return 1 - clf.score(X, y, lengths)


def ranking_error(clf, X, y, lengths):
    return 1 - clf.score(X, y, groups=np.repeat(np.arange(len(lengths)), lengths))


def own_error(clf, X, y, lengths):
    return -clf.score(X, np.split(y, np.cumsum(lengths)[:-1]), lengths)


@pytest.mark.parametrize(
    ("machine", "error"),
    [(SequenceSVM, sequence_error), (RankSVM, ranking_error), (StructuredSVM, own_error)],
    ids=["sequences", "queries", "own"],
)
def test_whole_examples_are_held_out(machine, error, monkeypatch):
    """The errors of the trials are those of machines trained by hand on the other sequences, queries or examples."""
    X, y, lengths = chains(30, 2 if machine is StructuredSVM else 5, np.random.default_rng(0))
    seen = []

    def parts(*args, real=choosing._parts):
        seen.append(real(*args))
        return seen[-1]

    monkeypatch.setattr(choosing, "_parts", parts)
    monkeypatch.setattr(choosing, "PRICES", (0.01, 1.0))
    common = {"gamma": 0.5, "solver": "exact-cuts", "tol": 0.01} | ({"task": Bit()} if machine is StructuredSVM else {})

    def fitted(C, rows, lengths):
        clf, X_, y_ = machine(C=C, **common), X[rows], y[rows]
        if machine is RankSVM:
            return clf.fit(X_, y_, groups=np.repeat(np.arange(len(lengths)), lengths))
        return clf.fit(X_, np.split(y_, np.cumsum(lengths)[:-1]) if machine is StructuredSVM else y_, lengths)

    clf = fitted("validate", np.ones(len(y), bool), lengths)
    training, held = map(np.sort, seen[0])
    assert len(held) == 6
    np.testing.assert_array_equal(np.sort(np.append(training, held)), np.arange(30))
    of_rows = np.isin(np.repeat(np.arange(30), lengths), training)
    for trial in clf.validation_:
        by_hand = fitted(trial["C"], of_rows, lengths[training])
        assert trial["error"] == pytest.approx(error(by_hand, X[~of_rows], y[~of_rows], lengths[held]), abs=1e-12)
    errors = [trial["error"] for trial in clf.validation_]
    assert clf.validation_[int(np.argmin(errors))]["C"] == clf.C_
    assert clf.objective_ == fitted(clf.C_, np.ones(len(y), bool), lengths).objective_


def test_examples_that_can_have_no_loss_are_not_counted():
    """Two queries in which something is to be ranked, among many of one row, choose nothing."""
    groups = np.append(np.repeat([0, 1], 3), np.arange(2, 40))
    X, y = np.random.default_rng(0).normal(size=(len(groups), 2)), np.arange(len(groups)) % 3
    with pytest.raises(ValueError, match="needs at least 10, found 40, and only 2 that can have a loss"):
        RankSVM(C="validate").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match=r"needs at least 10, found 1$"):
        RankSVM(C="validate").fit(X, y, groups=np.zeros(len(y)))


def test_a_loss_over_all_rows_of_ones_own_holds_rows_out():
    X, y, _ = chains(40, 5, np.random.default_rng(0))
    clf = StructuredSVM(FBeta(), C="validate", gamma=0.5).fit(X, 2 * y - 1)
    assert clf.C_ in choosing.PRICES
    assert -clf.score(X, 2 * y - 1) < 0.5


def test_validation_keeps_to_the_time(noisy_moons):
    X, y = noisy_moons[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = SVC(C="validate", max_seconds=2.0, solver=Refine(5, epochs=1_000_000), random_state=0).fit(X, y)
    assert clf.status_ in ("converged", "time limit")
    assert len(clf.validation_) >= 3


def test_a_search_for_a_price_shows_how_far_it_is(capfd):
    X, y = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % 2
    SVC(C="validate").fit(X, y)
    assert capfd.readouterr().err == ""
    SVC(C="validate", verbose=1).fit(X, y)
    assert "values of C on rows held out: " in capfd.readouterr().err
