"""C and gamma that an estimator chooses by itself, on rows held out."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SVC, SVR, CrossTrainedSVC, OneClassSVM, RankSVM, Refine, SequenceSVM, StructuredSVM
from slimsvm.estimators._shared import validating
from slimsvm.estimators._shared.validating import TrialSettings, evenly
from slimsvm.kernels import Laplacian
from slimsvm.parts.run import Status
from slimsvm.parts.values_of_C import VALUES_OF_C
from slimsvm.tasks import ExampleTask, FBeta

# ---- C="validate"


@pytest.mark.parametrize("flip", [0.0, 0.4])
def test_validated_C_follows_the_noise(flip):
    """Many labels turned round ask for a small C, none for a large one; the model is that of this C."""
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
    """Small squares ask for a narrow kernel; the model is that of this gamma and C."""
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

    monkeypatch.setattr(validating._Trials, "one", one)
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
def test_trials_of_the_exact_svm_end_at_a_wider_tolerance(estimator, tols, monkeypatch):
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
def test_parts_hold_the_same_shares(labels):
    own = TrialSettings(most_training=400, most_validation=100)
    training, held = validating._parts(labels, np.random.default_rng(0), len(labels), own)
    assert len(training) == 400
    assert len(held) == 100
    assert not set(training) & set(held)
    assert labels[held].mean() == pytest.approx(labels.mean(), abs=0.02)
    assert labels[training].mean() == pytest.approx(labels.mean(), abs=0.01)
    few = training[evenly(400, 100)]
    assert labels[few].mean() == pytest.approx(labels.mean(), abs=0.02)


@pytest.mark.parametrize(
    ("y", "few"),
    [([50, 50], 50), ([95, 5], 100), ([996, 3, 1], 800), ([10] * 25, 125), (None, 50)],
    ids=["even", "rare", "very rare", "many classes", "targets"],
)
def test_so_many_rows_train_that_the_rarest_class_has_enough(y, few, settings_of_estimators):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    labels = X[:, 0] if y is None else np.resize(np.repeat(np.arange(len(y)), y), 1000)
    settings_of_estimators(TrialSettings(few_training=50, rarest=5))
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
def test_narrower_kernels_are_tried_again_with_more_rows(
    few, all_rows, tried, best, monkeypatch, settings_of_estimators
):
    X, y = make_moons(300, random_state=0)
    scale, found = 1 / (2 * X.var()), []
    settings_of_estimators(TrialSettings(few_training=100, rarest=10))

    def one(self, problem, state):
        n_rows, factor = problem.rows.n_rows, round(float(problem.kernel.gamma / scale), 6)
        if n_rows == 240:
            found.append((factor, problem.C))
        error = {100: few, 240: all_rows}[n_rows].get(factor, 0.9) + abs(np.log10(problem.C) - 1)  # best at C = 10
        return {"C": problem.C, "gamma": problem.kernel.gamma, "error": error}, None

    monkeypatch.setattr(validating._Trials, "one", one)
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
def test_values_of_C_near_the_best_are_tried_again_with_more_rows(
    few, all_rows, tried, best, monkeypatch, settings_of_estimators
):
    X, y = make_moons(300, random_state=0)
    found = []
    settings_of_estimators(TrialSettings(few_training=100, rarest=10))

    def one(self, problem, state):
        if problem.rows.n_rows == 240:
            found.append(problem.C)
        return {"C": problem.C, "error": {100: few, 240: all_rows}[problem.rows.n_rows].get(problem.C, 0.9)}, None

    monkeypatch.setattr(validating._Trials, "one", one)
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
    ("estimator", "error"),
    [(SequenceSVM, sequence_error), (RankSVM, ranking_error), (StructuredSVM, own_error)],
    ids=["sequences", "queries", "own"],
)
def test_whole_examples_are_held_out(estimator, error, monkeypatch):
    """The errors of the trials are those of models trained by hand on the other sequences, queries or examples."""
    X, y, lengths = chains(30, 2 if estimator is StructuredSVM else 5, np.random.default_rng(0))
    seen = []

    def parts(*args, real=validating._parts):
        seen.append(real(*args))
        return seen[-1]

    monkeypatch.setattr(validating, "_parts", parts)
    own = {"task": Bit()} if estimator is StructuredSVM else {}
    common = {"gamma": 0.5, "solver": "exact-cuts", "tol": 0.01} | own

    def fitted(C, rows, lengths):
        clf, X_, y_ = estimator(C=C, **common), X[rows], y[rows]
        if estimator is RankSVM:
            return clf.fit(X_, y_, groups=np.repeat(np.arange(len(lengths)), lengths))
        return clf.fit(X_, np.split(y_, np.cumsum(lengths)[:-1]) if estimator is StructuredSVM else y_, lengths)

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
    assert clf.C_ in VALUES_OF_C
    assert -clf.score(X, 2 * y - 1) < 0.5


def test_validation_keeps_to_the_time(noisy_moons):
    X, y = noisy_moons[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = SVC(C="validate", max_seconds=2.0, solver=Refine(5, epochs=1_000_000), random_state=0).fit(X, y)
    assert clf.status_ in ("converged", "time limit")
    assert len(clf.validation_) >= 3


def test_a_search_for_C_shows_how_far_it_is(capfd):
    X, y = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % 2
    SVC(C="validate").fit(X, y)
    assert capfd.readouterr().err == ""
    SVC(C="validate", verbose=1).fit(X, y)
    assert "values of C on rows held out: " in capfd.readouterr().err
