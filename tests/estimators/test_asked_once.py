"""A fit asks an `ExampleTask` once for each labelling's features and each pair's loss, and stops at ``tol``."""

import itertools
import pickle
import tracemalloc
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_digits

from slimsvm import CPSP, SVC, ExactCuts, RankSVM, Refine, SequenceSVM, StructuredSVM, ViolatedCuts, check_task
from slimsvm.tasks import Examples, ExampleTask, TaskError

SOLVERS = ["auto", ViolatedCuts(8), CPSP(10), Refine(5, epochs=5), "uniform-cuts", "bcfw", ExactCuts(slacks="each")]


class Counting(ExampleTask):
    """Grades 0 to 3, whose labellings a subclass writes as it likes; `made` and `read` go there and back."""

    n_outputs = 4
    made, read = staticmethod(int), staticmethod(int)

    def __init__(self):
        self.calls = Counter()

    def features(self, y):
        self.calls["features"] += 1
        return np.eye(4)[[self.read(y)]]

    def loss(self, y, other):
        self.calls["loss"] += 1
        return abs(self.read(y) - self.read(other))

    def labels(self, n_rows):
        self.calls["labels"] += 1
        return map(self.made, range(4))


@dataclass
class Grade:
    value: int


class Named:
    """A class of the user's own, of which nobody else can say when two are the same."""

    def __init__(self, value):
        self.value = value


def labelled(made, read):
    return type("Labelled", (Counting,), {"made": staticmethod(made), "read": staticmethod(read)})


class Reused(Counting):
    """One array for all labellings."""

    read = staticmethod(lambda y: int(y[0]))
    made = staticmethod(lambda grade: np.array([grade]))

    def labels(self, n_rows):
        self.calls["labels"] += 1
        buffer = np.zeros(1, int)
        for grade in range(4):
            buffer[:] = grade
            yield buffer


class OwnSearch(Counting):
    def best(self, scores, plain, y=None):
        self.calls["best"] += 1
        return int(np.argmax(scores[0] + (0 if y is None else np.abs(np.arange(4) - y))))


class OwnSearchOfLists(labelled(lambda grade: [grade], lambda y: y[0])):
    def best(self, scores, plain, y=None):
        return [int(np.argmax(scores[0] + (0 if y is None else np.abs(np.arange(4) - y[0]))))]


class Parents(Counting):
    def best(self, scores, plain, y=None):
        self.calls["best"] += 1
        return super().best(scores, plain, y)


KINDS = {
    "numbers": Counting,
    "texts": labelled(str, int),
    "tuples": labelled(lambda grade: (grade, "x"), lambda y: y[0]),
    "lists": labelled(lambda grade: [grade], lambda y: y[0]),
    "lists of lists": labelled(lambda grade: [[grade]], lambda y: y[0][0]),
    "arrays": labelled(lambda grade: np.array([[grade]]), lambda y: int(y[0, 0])),
    "dicts": labelled(lambda grade: {"grade": grade}, lambda y: y["grade"]),
    "sets": labelled(lambda grade: {grade}, lambda y: next(iter(y))),
    "dataclasses": labelled(Grade, lambda y: y.value),
    "objects": labelled(Named, lambda y: y.value),
    "one array": Reused,
    "own search": OwnSearch,
    "own search of lists": OwnSearchOfLists,
    "the parent's search": Parents,
}


def grades(n=12, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.clip((2 + X[:, 0] + X[:, 1]).astype(int), 0, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_labelling_is_asked_for_once(kind):
    X, y = grades()
    task = KINDS[kind]()
    clf = StructuredSVM(task, gamma=0.5, n_jobs=1).fit(list(X[:, None]), [task.made(grade) for grade in y])
    n_right = len(y) if kind == "objects" else 4
    assert task.calls["features"] <= 4 + n_right
    assert task.calls["loss"] <= 4 * n_right
    assert task.calls["labels"] <= 1
    task.calls.clear()
    predicted = clf.predict(list(X[:, None]))
    assert task.calls["features"] <= 4
    assert task.calls["labels"] <= 1
    plain = StructuredSVM(Counting(), gamma=0.5, n_jobs=1).fit(X, y)
    assert [task.read(labelling) for labelling in predicted] == plain.predict(X).tolist()
    assert clf.objective_ == plain.objective_


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_every_solver_asks_once(solver):
    X, y = grades(12)
    task = Counting()
    StructuredSVM(task, gamma=0.5, solver=solver, random_state=0, n_jobs=2).fit(X, y.tolist())
    assert task.calls["features"] == 4
    assert task.calls["loss"] <= 16
    assert task.calls["labels"] == 1


def test_choosing_and_certificates_ask_once_each():
    X, y = grades(10)
    task = Counting()
    clf = StructuredSVM(task, kernel="linear", C="validate", random_state=0).fit(X, y.tolist())
    assert (task.calls["features"], task.calls["labels"]) == (4, 1)
    clf.certificate(X, y.tolist())
    assert (task.calls["features"], task.calls["labels"]) == (8, 2)


class Chains(ExampleTask):
    """Several rows; the features of a labelling are also those of the example's structure, where there is one."""

    n_outputs, n_plain = 2, 4

    def __init__(self):
        self.calls = Counter()

    def features(self, y, structure=1.0):
        self.calls[y, structure] += 1
        plain = np.zeros(4)
        for a, b in itertools.pairwise(y):
            plain[2 * a + b] += structure
        return np.eye(2)[list(y)], plain

    def loss(self, y, other, structure=1.0):
        self.calls[y, other, structure] += 1
        return structure * sum(a != b for a, b in zip(y, other))

    def labels(self, n_rows, structure=1.0):
        self.calls[n_rows, structure] += 1
        return itertools.product(range(2), repeat=n_rows)


class Plainly(Chains):
    """The same, by a search that asks anew."""

    def best(self, scores, plain, y=None, **structure):
        best, most = None, -np.inf
        for other in self.labels(len(scores), **structure):
            coef, part = self.features(other, **structure)
            worth = float(np.sum(coef * scores) + part @ plain)
            worth += 0.0 if y is None else self.loss(y, other, **structure)
            if worth > most:
                best, most = other, worth
        return best


@pytest.mark.parametrize("with_structure", [False, True])
@pytest.mark.parametrize("solver", ["auto", ViolatedCuts(4), "bcfw"], ids=str)
def test_examples_of_several_rows_and_their_structure_to_the_same_bits(solver, with_structure):
    rng = np.random.default_rng(0)
    y = [tuple(rng.integers(0, 2, n).tolist()) for n in (1, 2, 3, 3, 2, 3)]
    X = [rng.normal(size=(len(labels), 2)) + np.eye(2)[list(labels)] for labels in y]
    further = {"structure": [0.5, 1.5, 1.5, 0.25, 1.5, 2.5]} if with_structure else {}
    fits = []
    for task in (Chains(), Plainly()):
        clf = StructuredSVM(task, C=2.0, gamma=0.5, solver=solver, random_state=0, n_jobs=1).fit(X, y, **further)
        fits.append((clf.objective_, clf.basis_coef_.tobytes(), clf.plain_.tobytes()))
        if type(task) is Chains:
            assert max(task.calls.values()) == 1
        fits[-1] += tuple(clf.predict(X, **further))
    assert fits[0] == fits[1]


def test_predictions_are_the_users_own():
    task = KINDS["arrays"]()
    X, y = grades()
    clf = StructuredSVM(task, gamma=0.5).fit(list(X[:, None]), [task.made(grade) for grade in y])
    first = clf.predict(list(X[:, None]))
    wanted = [labelling.copy() for labelling in first]
    for labelling, right in zip(first, wanted, strict=True):
        np.testing.assert_array_equal(labelling, right)
        labelling[:] = -1
    np.testing.assert_array_equal(clf.predict(list(X[:, None])), wanted)


def test_a_task_that_has_changed_is_asked_again():
    X, y = grades()
    task = Counting()
    first = StructuredSVM(task, gamma=0.5).fit(X, y.tolist())
    twice = StructuredSVM(task, gamma=0.5)
    task.loss = lambda one, other: 2.0 * abs(one - other)
    assert twice.fit(X, y.tolist()).objective_ > 1.2 * first.objective_
    assert -twice.score(X, y.tolist()) == pytest.approx(-2 * first.score(X, y.tolist()), abs=1.0)


def test_pickles_hold_no_answers():
    X, y = grades()
    clf = StructuredSVM(Counting(), gamma=0.5, warm_start=True).fit(X, y.tolist())
    again = pickle.loads(pickle.dumps(clf))
    again.task.calls.clear()
    assert again.fit(X, y.tolist()).objective_ == pytest.approx(clf.objective_, rel=0.01)
    assert again.task.calls["features"] == 4


class Wide(ExampleTask):
    """Labellings whose features take 2 MB each."""

    n_outputs = 250_000

    def __init__(self):
        self.n_calls = 0

    def features(self, y):
        self.n_calls += 1
        row = np.zeros((1, self.n_outputs))
        row[0, y] = 1.0
        return row

    def labels(self, n_rows):
        return range(60)


def test_no_more_is_kept_than_64_megabytes():
    task = Wide()
    scores = np.zeros((2, task.n_outputs))
    scores[0, 3], scores[1, 59] = 1.0, 2.0
    examples = Examples(np.zeros(2, np.int8), np.ones(2))
    tracemalloc.start()
    try:
        assert task.decode(scores, np.zeros(0), examples).tolist() == [3, 59]
        assert tracemalloc.get_traced_memory()[1] < 150e6
    finally:
        tracemalloc.stop()
    assert 60 < task.n_calls < 120


# ---- check_task


def test_checks_ask_little():
    task = Counting()
    check_task(task, [0, 1, 2, 3])
    assert task.calls["labels"] <= 5


@pytest.mark.parametrize("method", ["features", "loss"])
def test_answers_that_change_are_a_fault(method):
    class Changing(Counting):
        def features(self, y):
            return super().features(y) * (1 + (method == "features") * self.calls["features"])

        def loss(self, y, other):
            return super().loss(y, other) * (1 + (method == "loss") * self.calls["loss"])

    with pytest.raises(TaskError, match=f"{method} of .* changes from call to call: it must depend on its arguments"):
        check_task(Changing(), [0, 1, 2, 3])


def test_labellings_of_other_lengths_are_named():
    class Longer(Counting):
        def features(self, y):
            return np.eye(4)[[y] * (1 + (y == 3))]

    with pytest.raises(ValueError, match=r"features\(3\) has 2 rows, the example 1"):
        StructuredSVM(Longer()).fit(np.eye(2), [0, 1])


# ---- where fits stop


def machine(kind, **params):
    """A machine by cuts of at most 2,000 rows, fitted, and C times its weights."""
    X, y = grades(36)
    if kind == "sequence":
        return SequenceSVM(C=2.0, gamma=0.5, solver="exact-cuts", **params).fit([X[k : k + 4] for k in range(0, 36, 4)],
            [y[k : k + 4] for k in range(0, 36, 4)]), 18.0  # fmt: skip
    if kind == "rank":
        return RankSVM(C=2.0, gamma=0.5, **params).fit(X, y, groups=np.arange(36) // 6), 12.0
    if kind == "structured":
        return StructuredSVM(Counting(), C=2.0, gamma=0.5, **params).fit(X[:14], y[:14].tolist()), 28.0
    if kind == "crammer-singer":
        return SVC(C=2.0, gamma=0.5, solver="exact-cuts", multi_class=kind, **params).fit(X, y), 72.0
    if kind == "hinge":
        return SVC(C=2.0, gamma=0.5, solver="exact-cuts", **params).fit(X, y > 1), 72.0
    return SVC(C=2.0, gamma=0.5, loss=kind, **params).fit(X, y > 1), 72.0


@pytest.mark.parametrize("kind", ["structured", "sequence", "rank", "crammer-singer", "hinge", "f1", "roc_auc"])
def test_a_larger_tol_is_obeyed_on_few_rows(kind):
    (loose, C1), (usual, _), (tight, _) = (machine(kind, tol=tol) for tol in (0.1, 1e-3, 1e-9))
    gaps = [clf.objective_ - clf.lower_bound_ for clf in (loose, usual, tight)]
    assert loose.n_iter_ < tight.n_iter_
    assert loose.lower_bound_ <= tight.objective_ * (1 + 1e-12)
    assert gaps[0] <= 0.1 * C1
    assert gaps[2] <= 1e-9 * C1
    if kind == "structured":
        assert 1e-7 * usual.objective_ < gaps[1] <= 1e-3 * C1
    else:
        assert gaps[1] <= 1e-10 * usual.objective_


def test_a_smaller_tol_is_obeyed_where_rows_times_outputs_are_many():
    X, y = load_digits(return_X_y=True)
    X, y = X[:210] / 16, y[:210]
    clf = SVC(C=1.0, solver="exact-cuts", multi_class="crammer-singer", tol=1e-5).fit(X, y)
    assert clf.objective_ - clf.lower_bound_ <= 1e-5 * len(y)
