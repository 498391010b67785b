"""`ExampleTask`, `check_task` and `StructuredSVM`: tasks of the user's own."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import slimsvm
from slimsvm import CPSP, SVC, Refine, SequenceSVM, StructuredSVM, ViolatedCuts, check_task
from slimsvm.tasks import Augmented, Chain, ErrorRate, ExampleTask, FBeta, Multiclass, Regression, TaskError
from slimsvm.tasks.examples import same_fields
from tasks_for_tests import CASES


class Grades(ExampleTask):
    """One row, one of four grades, a loss of how far off."""

    n_outputs = 4

    def features(self, y):
        return np.eye(4)[[y]]

    def loss(self, y, other):
        return abs(y - other)

    def labels(self, n_rows):
        return range(4)


class OwnChain(ExampleTask):
    """The library's chain, written by hand; a labelling is a tuple."""

    n_outputs, n_plain = 2, 8

    def features(self, y):
        plain = np.zeros(8)
        for a, b in itertools.pairwise(y):
            plain[2 * a + b] += 1
        plain[4 + y[0]] += 1
        plain[6 + y[-1]] += 1
        return np.eye(2)[list(y)], plain

    def loss(self, y, other):
        return sum(a != b for a, b in zip(y, other))

    def labels(self, n_rows):
        return itertools.product(range(2), repeat=n_rows)


class Partner(ExampleTask):
    """Rows matched in pairs that the structure allows: its edges are known when predicting too."""

    n_outputs = 1

    def features(self, y, structure):
        return np.array([[1.0 if k in y else 0.0] for k in range(max(map(max, structure)) + 1)])

    def loss(self, y, other, structure):
        return float(y != other)

    def labels(self, n_rows, structure):
        return structure


def sequences(n=10, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = [int(rng.integers(2))]
        for _ in range(int(rng.integers(0, 4))):
            labels.append(labels[-1] if rng.random() < 0.8 else 1 - labels[-1])
        X.append(rng.normal(size=(len(labels), 2)) + np.eye(2)[labels])
        y.append(tuple(labels))
    return X, y


# ---- check_task


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_fault_is_found_in_the_librarys_own_tasks(name):
    _, _, _, examples = CASES[name].problem(0, 12)
    report = check_task(CASES[name].make(), examples)
    assert report.faults == []
    assert report.n_labellings > 0


def test_what_is_reported():
    report = check_task(Grades(), [0, 3, 1], n_points=5)
    assert (report.n_examples, report.n_points, report.n_labellings, report.exhaustive) == (3, 5, 12, True)
    assert str(report) == ("3 examples at 5 points each: no fault found. Compared with 12 labellings (all there are).")
    assert "so that a fault may have escaped" in str(check_task(Multiclass(3), [0, 1]))


def faulty(base, **methods):
    return type("Faulty", (base,), methods)()


def without_labels(self, scores, plain, y=None):
    worth = scores[0] + (0 if y is None else np.abs(np.arange(4) - y))
    return int(worth.argmax()) if y is None else int(scores[0].argmax())


FAULTY = {
    "the argmax forgets the loss": (
        faulty(Grades, best=lambda self, scores, plain, y=None: int(scores[0].argmax())),
        r"example 0 \(y = 0\): best\(scores, plain, y\) gives \d of score \+ loss .*, but 3 has ",
    ),
    "the argmax is another's": (
        faulty(Grades, best=lambda self, scores, plain, y=None: int(scores[0].argmin())),
        r"example 0 \(y = 0\): best\(scores, plain\) gives \d of score ",
    ),
    "the argmax forgets the loss, nothing to enumerate": (
        faulty(Grades, best=without_labels, labels=ExampleTask.labels),
        r"example \d .*best\(scores, plain, y\) gives",
    ),
    "the loss of the truth": (
        faulty(Grades, loss=lambda self, y, other: 1 + abs(y - other)),
        r"example 0 \(y = 0\): loss\(y, y\) must be 0, found 1",
    ),
    "a negative loss": (
        faulty(Grades, loss=lambda self, y, other: y - other),
        r"loss\(y, 1\) must be a number >= 0, found -1",
    ),
    "a transposed transition": (
        faulty(OwnChain, best=lambda self, scores, plain, y=None: Transposed().best(scores, plain, y)),
        r"best\(scores, plain, y\) gives \(.*\) of score \+ loss .*, but \(.*\) has",
    ),
}


class Transposed(OwnChain):
    def features(self, y):
        coef, plain = super().features(y)
        return coef, np.concatenate([plain[:4].reshape(2, 2).T.ravel(), plain[4:]])


@pytest.mark.parametrize("name", FAULTY)
def test_faults_of_methods_are_named(name):
    task, message = FAULTY[name]
    examples = [(0, 1, 1), (1,), (1, 0)] if isinstance(task, OwnChain) else [0, 3, 1]
    with pytest.raises(TaskError, match=message):
        check_task(task, examples)


class Wrong(Chain):
    """The library's chain, broken in one place."""

    fault = ""

    def augment(self, scores, plain, examples):
        right = super().augment(scores, plain, examples)
        delta, coef, part = right.delta, right.coef, right.plain
        if self.fault == "argmax":
            return super().augment(np.round(scores / 2), plain, examples)
        if self.fault == "coefficients":
            coef = 0.5 * coef
        if self.fault == "plain":
            part = -part
        if self.fault == "delta":
            delta = delta - 1
        if self.fault == "shape":
            coef = coef[:, :1]
        if self.fault == "company":
            delta = delta + 0.001 * examples.n_examples
        if self.fault == "infinite":
            delta = delta * np.inf
        return Augmented(delta, coef, part)

    def along(self, base, direction, k, examples, n_jobs=1):
        value, slope = super().along(base, direction, k, examples, n_jobs)
        if self.fault == "value":
            return 1.01 * value, slope
        return value, -slope if self.fault == "slope" else slope


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("argmax", r"example \d: at point \d+ augment finds a labelling worth .*, but the one found at point \d+"),
        ("coefficients", "example|coefficients and loss do not belong together"),
        ("plain", "example|coefficients and loss do not belong together"),
        ("delta", "the loss must be at least 0, that of the right labelling"),
        ("shape", r"augment: coef must have shape \(5, 2\), found \(5, 1\)"),
        ("company", r"example 0: alone it has another labelling .* examples must not depend on each other"),
        ("infinite", "augment: delta must be finite, found inf|augment: delta must be finite, found nan"),
        ("value", r"along: the loss at k = 0.5 is .*, by augment it is"),
        ("slope", "coefficients and loss do not belong together"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_faults_of_any_task_are_named(fault, message):
    task = Wrong(2)
    object.__setattr__(task, "fault", fault)
    with pytest.raises(TaskError, match=message):
        check_task(task, [[0, 1, 1], [1, 0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Grades().encode([]), "y must hold at least one example, found none"),
        (lambda: Grades().encode([0], structure=[1, 2]), "one entry per example: 1 examples, found 2"),
        (lambda: faulty(Grades, features=lambda self, y: np.eye(4)[y]).encode([1]),
            r"example 0: features\(1\) must have shape \(n_rows, 4\), found \(4,\)"),
        (lambda: faulty(OwnChain, features=lambda self, y: (np.eye(2)[list(y)], np.zeros(3))).encode([(0,)]),
            r"shape \(n_rows, 2\) and \(8,\), found \(1, 2\) and \(3,\)"),
        (lambda: faulty(Grades, labels=lambda self, n: ()).decode(np.zeros((1, 4)), np.zeros(0)), "has no labelling"),
    ],
)  # fmt: skip
def test_bad_tasks_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_only_tasks_are_checked():
    with pytest.raises(TypeError, match=r"task must be an object of a class derived from .* found <class"):
        check_task(Grades, [0])


@pytest.mark.parametrize("method", ["features", "loss", "labels"])
def test_what_is_missing_is_named(method):
    task = faulty(Grades, **{method: getattr(ExampleTask, method)})
    with pytest.raises(TypeError, match=f"Faulty must define {method}"):
        check_task(task, [0, 1])


# ---- special cases that must coincide


def test_a_chain_of_ones_own_is_the_librarys():
    X, y = sequences()
    own = StructuredSVM(OwnChain(), C=2.0, gamma=0.5, tol=1e-10).fit(X, y)
    library = SequenceSVM(C=2.0, gamma=0.5).fit(X, y)
    assert own.objective_ == pytest.approx(library.objective_, rel=1e-8)
    np.testing.assert_allclose(own.plain_[:4], library.transitions_.ravel(), atol=1e-4)
    assert [list(labels) for labels in own.predict(X)] == [labels.tolist() for labels in library.predict(X)]
    given = StructuredSVM(Chain(2), C=2.0, gamma=0.5).fit(X, y)
    assert given.objective_ == library.objective_
    for mine, theirs in zip(given.predict(X), library.predict(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_grades_are_multiclass_with_costs():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 2)), np.arange(24) % 4
    cost = np.abs(np.arange(4)[:, None] - np.arange(4))
    own = StructuredSVM(Grades(), gamma=0.5, tol=1e-10).fit(X, y)
    theirs = SVC(cost_matrix=cost, gamma=0.5).fit(X, y)
    assert own.objective_ == pytest.approx(theirs.objective_, rel=1e-8)
    np.testing.assert_array_equal(own.predict(X), theirs.predict(X))
    assert own.score(X, y) == pytest.approx(-np.mean(cost[y, theirs.predict(X)]))
    assert StructuredSVM(FBeta(), gamma=0.5).fit(X, y > 1).objective_ == pytest.approx(
        SVC(loss="f1", gamma=0.5).fit(X, y > 1).objective_, rel=1e-8
    )


# ---- the estimator


@pytest.mark.turns("sparse")
@pytest.mark.parametrize("solver", ["auto", ViolatedCuts(8), CPSP(15), Refine(8, epochs=20), "uniform-cuts"], ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_solvers_containers_and_pickles(solver, sparse):
    X, y = sequences(12)
    data = [sp.csr_array(rows) for rows in X] if sparse else X
    preimage = {"solver": CPSP(15, preimage="training-rows")} if sparse and isinstance(solver, CPSP) else {}
    clf = clone(StructuredSVM(OwnChain(), solver=solver, C=5.0, random_state=0).set_params(**preimage)).fit(data, y)
    assert clf.score(data, y) > -0.8
    lengths = [len(labels) for labels in y]
    rows = sp.vstack(data, format="csr") if sparse else np.concatenate(X)
    assert clf.predict(rows, lengths=lengths) == clf.predict(data)
    np.testing.assert_array_equal(np.concatenate(clf.decision_function(data)), clf.decision_function(rows, lengths))
    assert pickle.loads(pickle.dumps(clf)).predict(data) == clf.predict(data)
    assert (clf.gap_ is None) == (solver != "auto")


def test_files_hold_no_python(tmp_path):
    X, y = sequences()
    clf = StructuredSVM(OwnChain()).fit(X, y)
    clf.save(tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    with pytest.raises(
        ValueError, match=r"task must be an object .* found None; a file holds no Python: say set_params"
    ):
        again.predict(X)
    assert again.set_params(task=OwnChain()).predict(X) == clf.predict(X)
    StructuredSVM(Chain(2, "zero-one")).fit(X, y).save(tmp_path / "model.slim")
    assert slimsvm.load(tmp_path / "model.slim").task == Chain(2, "zero-one")


def test_structure_is_known_when_predicting():
    rng = np.random.default_rng(0)
    X, y, edges = [], [], []
    for _ in range(30):
        rows = rng.normal(size=(4, 1))
        allowed = [(0, 1), (2, 3), (1, 2), (0, 3)][: int(rng.integers(2, 5))]
        X.append(rows), edges.append(allowed)
        y.append(max(allowed, key=lambda edge: rows[list(edge), 0].sum()))
    task = Partner()
    examples = task.encode(y, structure=[[*e[:1], (2, 3), *e[1:]] for e in edges])
    assert check_task(task, examples).exhaustive
    full = [[*allowed, (2, 3)] for allowed in edges]
    clf = StructuredSVM(task, kernel="linear", C=10.0).fit(X, y, structure=full)
    assert set(clf.predict(X, structure=[[(0, 3)]] * 30)) == {(0, 3)}
    assert clf.score(X, y, structure=full) > -0.2
    with pytest.raises(ValueError, match="structure must have one entry per example: 30, found 1"):
        clf.predict(X, structure=[[(0, 1)]])


def test_weights_are_repeats_and_certificates_hold():
    X, y = sequences(8)
    weights = np.arange(8) % 3 + 1.0
    repeated = np.repeat(np.arange(8), weights.astype(int))
    one = StructuredSVM(OwnChain(), gamma=0.5, tol=1e-8).fit(X, y, sample_weight=weights)
    other = StructuredSVM(OwnChain(), gamma=0.5, tol=1e-8).fit([X[e] for e in repeated], [y[e] for e in repeated])
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    found = one.certificate(X, y, sample_weight=weights)
    assert found.objective == pytest.approx(one.objective_, rel=1e-9)
    assert one.lower_bound_ * 0.999 <= found.lower_bound <= one.objective_ * (1 + 1e-9)


def test_warm_starts_know_the_labellings():
    X, y = sequences(12)
    examples, same, other = (OwnChain().encode(labels) for labels in (y, list(y), [(0,) * len(labels) for labels in y]))
    assert same_fields(examples, same)
    assert not same_fields(examples, other)
    clf = StructuredSVM(OwnChain(), warm_start=True).fit(X, y)
    n_iter = clf.n_iter_
    assert clf.fit(X, y).n_iter_ < n_iter
    with pytest.raises(ValueError, match="warm start: labels, weights or the loss are not those"):
        clf.fit(X, [tuple(1 - label for label in labels) for labels in y])


def test_empty_examples_and_single_rows():
    X, y = sequences()
    clf = StructuredSVM(OwnChain()).fit(X, y)
    assert len(clf.predict([X[0][:1]])[0]) == 1
    assert clf.decision_function([np.zeros((0, 2)), X[0]])[0].shape == (0, 2)
    chain = StructuredSVM(Chain(2)).fit(X, y)
    assert [len(labels) for labels in chain.predict([X[0], np.zeros((0, 2))])] == [len(X[0]), 0]


GOOD = sequences(4)


@pytest.mark.parametrize(
    ("params", "X", "y", "options", "message"),
    [
        ({"task": None}, *GOOD, {}, "task must be an object of a class derived from .* found None"),
        ({"task": "chain"}, *GOOD, {}, "found 'chain'"),
        ({"task": Grades}, *GOOD, {}, "found <class"),
        ({"C": 0}, *GOOD, {}, "C must be a positive number or 'validate', found 0"),
        ({"C": "validate"}, *GOOD, {}, "a fifth of the examples .* needs at least 10, found 4"),
        ({"kernel": "precomputed"}, *GOOD, {}, "kernel='precomputed' is not for examples of rows"),
        ({}, [], [], {}, "X must hold at least one example, found none"),
        ({}, GOOD[0][:3], GOOD[1], {}, r"y is for \d+ rows, X has \d+"),
        ({}, [np.zeros((1, 2)), np.zeros((2, 2))], [(0, 1), (1,)], {}, "example 0: y is for 2 rows, X has 1"),
        ({}, [np.zeros((3, 2))], [(0, 1), (1,)], {}, "y has 2 examples, X has 1"),
        ({}, [np.zeros((1, 2)), np.zeros((1, 3))], [(0,), (1,)], {}, "example 1 has 3 features, found 2 before"),
        ({}, [[[np.nan, 0]]], [(0,)], {}, "X contains NaN at row 0"),
        ({}, np.zeros((2, 2)), [(0,), (1,)], {"lengths": [1, 2]}, "lengths must add up to the rows of X, 2; found 3"),
        ({}, np.zeros((2, 2)), [(0,), (1,)], {"lengths": [0.5, 1]}, "lengths must be integers >= 0"),
        ({}, *GOOD, {"sample_weight": [1.0]}, "4 examples, found 1 weights"),
        ({"task": Chain(2)}, *GOOD, {"structure": [1] * 4}, "structure is for tasks derived from ExampleTask"),
        ({"solver": "refine", "task": FBeta()}, np.eye(2), [0, 1], {}, "needs a loss that is a sum over examples"),
        (
            {"solver": "exact"},
            *GOOD,
            {},
            "regression and one class, found OwnChain",
        ),
    ],
)
def test_bad_input_is_named(params, X, y, options, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(**{"task": OwnChain()} | params).fit(X, y, **options)


def test_before_fit():
    for call in (StructuredSVM(OwnChain()).predict, StructuredSVM(OwnChain()).decision_function):
        with pytest.raises(NotFittedError):
            call(GOOD[0])


def test_losses_of_one_output_take_all_containers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    assert StructuredSVM(Regression(0.1)).fit(X, X[:, 0]).score(X, X[:, 0]) > -0.2
    assert StructuredSVM(ErrorRate()).fit(X.tolist(), X[:, 0] > 0).score(X, X[:, 0] > 0) > -0.1
