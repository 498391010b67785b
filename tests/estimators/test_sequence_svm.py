"""`SequenceSVM`: sequences in, sequences out."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import slimsvm
from slimsvm import CPSP, SVC, SequenceSVM, ViolatedCuts
from slimsvm.tasks import Chain

PARAMETERS = {"C": 5.0, "gamma": 0.5}


def weather(n=25, seed=0, names=("dry", "rain", "snow")):
    """Labels that mostly stay as they are, seen through noise: transitions help."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = [int(rng.integers(3))]
        for _ in range(int(rng.integers(0, 7))):
            labels.append(labels[-1] if rng.random() < 0.85 else int(rng.integers(3)))
        X.append(rng.normal(size=(len(labels), 3)) + 1.3 * np.eye(3)[labels])
        y.append([names[label] for label in labels])
    return X, y


def flat(X, y):
    return np.concatenate(X), np.concatenate(y), [len(labels) for labels in y]


def test_it_learns_transitions_and_certifies():
    X, y = weather(40)
    clf = SequenceSVM(**PARAMETERS).fit(X, y)
    assert 0 <= clf.objective_ - clf.lower_bound_ <= 1e-8 * clf.objective_
    assert clf.classes_.tolist() == ["dry", "rain", "snow"]
    assert clf.transitions_.shape == (3, 3)
    assert clf.start_.shape == clf.end_.shape == (3,)
    assert (np.diag(clf.transitions_) > clf.transitions_.max(axis=1) - 1e-12).all()
    X_test, y_test = weather(200, seed=1)
    alone = SVC(C=5.0, gamma=0.5).fit(*flat(X, y)[:2]).score(*flat(X_test, y_test)[:2])
    assert clf.score(X_test, y_test) > alone + 0.03


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("sparse", [False, True])
def test_lists_and_lengths_are_the_same(kernel, sparse):
    X, y = weather()
    if sparse:
        X = [sp.csr_array(sequence) for sequence in X]
    rows = sp.vstack(X, format="csr") if sparse else np.concatenate(X)
    labels, lengths = np.concatenate(y), [len(sequence) for sequence in y]
    one = SequenceSVM(kernel=kernel, **PARAMETERS).fit(X, y)
    other = SequenceSVM(kernel=kernel, **PARAMETERS).fit(rows, labels, lengths=lengths)
    assert one.objective_ == other.objective_
    np.testing.assert_array_equal(np.concatenate(one.predict(X)), other.predict(rows, lengths=lengths))
    np.testing.assert_array_equal(
        np.concatenate(one.decision_function(X)), other.decision_function(rows, lengths=lengths)
    )
    assert [len(labels) for labels in one.predict(X)] == lengths
    assert one.score(X, y) == other.score(rows, labels, lengths=lengths)


@pytest.mark.parametrize("loss", ["hamming", "zero-one"])
@pytest.mark.parametrize("solver", [ViolatedCuts(10), CPSP(20), "uniform-cuts"], ids=["violated", "cpsp", "uniform"])
def test_solvers_files_and_pickles(solver, loss, tmp_path):
    X, y = weather()
    clf = clone(SequenceSVM(solver=solver, loss=loss, window=1, random_state=0, **PARAMETERS)).fit(X, y)
    assert clf.score(X, y) > 0.6
    clf.save(tmp_path / "model.slim")
    for again in (slimsvm.load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(again.transitions_, clf.transitions_)
        for mine, theirs in zip(again.predict(X), clf.predict(X), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_predictions_are_the_best_of_all_labellings():
    X, y = weather()
    clf = SequenceSVM(**PARAMETERS).fit(X, y)
    for sequence, predicted in list(zip(X, clf.predict(X)))[:10]:
        f = clf.decision_function([sequence])[0]

        def total(labels, f=f):
            steps = sum(clf.transitions_[a, b] for a, b in itertools.pairwise(labels))
            return clf.start_[labels[0]] + clf.end_[labels[-1]] + steps + f[np.arange(len(f)), list(labels)].sum()

        best = max(itertools.product(range(3), repeat=len(sequence)), key=total)
        np.testing.assert_array_equal(predicted, clf.classes_[list(best)])


@pytest.mark.parametrize("sparse", [False, True])
def test_windows_are_neighbours_of_the_same_sequence(sparse):
    from slimsvm.estimators.sequence_svm import _with_window

    X = np.arange(1.0, 11).reshape(5, 2)
    out = _with_window(sp.csr_array(X) if sparse else X, np.array([0, 3, 3, 5]), 1)
    out = out.toarray() if sparse else out
    zero = np.zeros(2)
    before = [zero, X[0], X[1], zero, X[3]]
    after = [X[1], X[2], zero, X[4], zero]
    np.testing.assert_array_equal(out, np.hstack([before, X, after]))


def test_empty_sequences_are_predicted_empty():
    X, y = weather()
    clf = SequenceSVM(**PARAMETERS).fit(X, y)
    predicted = clf.predict([X[0], np.zeros((0, 3)), X[1]])
    assert [len(labels) for labels in predicted] == [len(X[0]), 0, len(X[1])]
    np.testing.assert_array_equal(predicted[2], clf.predict([X[1]])[0])
    assert [len(labels) for labels in clf.predict([np.zeros((0, 3))])] == [0]
    assert [labels.shape for labels in clf.decision_function([[]])] == [(0, 3)]


def test_labels_never_seen_count_as_wrong():
    X, y = weather()
    clf = SequenceSVM(**PARAMETERS).fit(X, y)
    assert clf.score(X, [["hail"] * len(labels) for labels in y]) == 0


def test_weights_are_repeats():
    X, y = weather(12)
    weights = np.arange(12) % 3 + 1.0
    repeated = np.repeat(np.arange(12), weights.astype(int))
    one = SequenceSVM(**PARAMETERS).fit(X, y, sample_weight=weights)
    other = SequenceSVM(**PARAMETERS).fit([X[e] for e in repeated], [y[e] for e in repeated])
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)


def test_limits_and_warm_starts():
    X, y = weather(40)
    clf = SequenceSVM(C=50.0, gamma=0.5, max_iter=3, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="stopped at the iteration limit"):
        clf.fit(X, y)
    objective = clf.objective_
    assert clf.set_params(max_iter=-1).fit(X, y).objective_ < objective


GOOD = weather(3)


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([], [], {}, "X must hold at least one sequence, found none"),
        ([[]], [[]], {}, "X must hold at least one row, found empty sequences only"),
        ([[[0.0]], []], [["a"], []], {}, "sequence 1 is empty; every sequence needs a row to fit"),
        (np.zeros((2, 1)), ["a", "b"], {}, "or one array together with lengths; found one array alone"),
        ([[0.0, 1.0]], [["a", "b"]], {}, r"sequence 0 has \(2,\)"),
        ([[[0.0]], [[0.0, 1.0]]], [["a"], ["b"]], {}, "sequence 1 has 2 features, found 1 before"),
        ([[[0.0]]], [["a"], ["b"]], {}, "one entry per sequence: 1 sequences, found 2"),
        ([[[0.0]]], [["a", "b"]], {}, r"sequence 0 has 1 rows, found shape \(2,\)"),
        ([[[0.0], [1.0]]], [["a", "a"]], {}, "at least two labels, found 1: a"),
        ([[[0.0], [np.nan]]], [["a", "b"]], {}, "X contains NaN at row 1, column 0"),
        ([[0.0], [1.0]], ["a", "b"], {"lengths": [1, 2]}, "lengths must add up to the rows of X, 2; found 3"),
        ([[0.0], [1.0]], ["a", "b"], {"lengths": [1.0, 1.0]}, "lengths must be integers >= 0"),
        ([[0.0], [1.0]], ["a"], {"lengths": [1, 1]}, r"one label per row: 2 rows, found shape \(1,\)"),
        (*GOOD, {"sample_weight": [1.0]}, "one entry per sequence: 3 sequences, found 1 weights"),
        (*GOOD, {"sample_weight": [1.0, 0.0, 1.0]}, "must be finite and > 0; found 0.0 at sequence 1"),
        (GOOD[0], None, {}, "y must hold a label for every row, found None"),
        ([[[0.0], [1.0]]], [["a", None]], {}, "y must hold a label for every row; found None in row 1"),
        ([[[0.0], [1.0]]], [[1.0, np.nan]], {}, "y must hold a label for every row; found nan in row 1"),
        ([[[0.0]], [[1.0]]], [["a"], [1]], {}, "y must hold strings or numbers; found both"),
        ([[[0.0]], [[1.0]]], [np.array(["a"], object), np.array([1], object)], {}, "strings or numbers; found both"),
        ([np.eye(2), np.eye(2)], ["a", "b"] * 2, {"lengths": [2, 2]}, "found a list and lengths"),
        (np.eye(3), [["a", "b"], ["b"]], {"lengths": [2, 1]}, "one label per row: 3 rows, found a list of sequences"),
    ],
)
def test_bad_input_is_named(X, y, options, message):
    with pytest.raises(ValueError, match=message):
        SequenceSVM().fit(X, y, **options)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "edit"}, "loss must be one of 'hamming', 'zero-one'; found 'edit'"),
        ({"window": -1}, "window must be an integer >= 0, found -1"),
        ({"C": "best"}, "C must be a positive number or 'validate', found 'best'"),
        ({"C": "validate"}, "a fifth of the examples .* needs at least 10, found"),
        ({"kernel": "precomputed"}, "kernel='precomputed' is not for sequences"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        SequenceSVM(**params).fit(*GOOD)


def test_rows_beside_lengths_of_0():
    """They were passed over."""
    clf = SequenceSVM(window=1).fit(*GOOD)
    assert clf.predict(np.zeros((0, clf.n_features_in_)), lengths=[0, 0]).shape == (0,)
    for rows in (GOOD[0][0], np.asarray(GOOD[0][0]).tolist()):
        with pytest.raises(ValueError, match="lengths must add up to the rows of X"):
            clf.predict(rows, lengths=[0, 0])


def test_before_fit():
    with pytest.raises(NotFittedError):
        SequenceSVM().predict(GOOD[0])
    with pytest.raises(NotFittedError):
        SequenceSVM().transitions_  # noqa: B018


def test_no_row_has_no_score():
    clf = SequenceSVM().fit(*GOOD)
    with pytest.raises(ValueError, match="score needs at least one row, found empty sequences only"):
        clf.score([[], []], [[], []])


# ---------------------------------------------------------------- n best labellings, margins


def scored_labellings(clf, sequence):
    """All labellings of a sequence with their scores, best first; ties in the order of labels."""
    emissions = clf.decision_function([sequence])[0]
    codes = np.array(list(itertools.product(range(len(clf.classes_)), repeat=len(sequence))))
    scores = clf.start_[codes[:, 0]] + clf.end_[codes[:, -1]] + emissions[np.arange(len(sequence)), codes].sum(axis=1)
    scores += clf.transitions_[codes[:, :-1], codes[:, 1:]].sum(axis=1)
    order = np.argsort(-scores, kind="stable")
    return codes[order], scores[order]


@pytest.fixture(scope="module")
def forecaster():
    X, y = weather(30)
    return SequenceSVM(**PARAMETERS).fit(X, y)


@pytest.mark.parametrize("n", [1, 2, 5, 1000])
def test_n_best_labellings_are_those_of_all(forecaster, n):
    X, _ = weather(12, seed=3)
    predicted = forecaster.predict(X)
    for sequence, best, (labels, scores) in zip(X, predicted, forecaster.predict_n_best(X, n=n), strict=True):
        codes, all_scores = scored_labellings(forecaster, sequence)
        assert len(labels) == len(scores) == min(n, len(codes))
        np.testing.assert_allclose(scores, all_scores[:n], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(labels[0], best)
        assert len({tuple(labelling) for labelling in labels}) == len(labels)


def test_of_equal_labellings_the_lowest_labels_come_first():
    labels, scores = Chain(2).n_best(np.zeros((3, 2)), np.zeros(8), 5)
    assert labels.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert scores.tolist() == [0.0] * 5


def test_margins_are_differences_of_best_labellings(forecaster):
    X, _ = weather(12, seed=4)
    stacked = forecaster.margins(np.concatenate(X), lengths=list(map(len, X)))
    margins = forecaster.margins(X)
    np.testing.assert_array_equal(np.concatenate(margins), stacked)
    for sequence, found, predicted in zip(X, margins, forecaster.predict(X), strict=True):
        codes, scores = scored_labellings(forecaster, sequence)
        for t, label in itertools.product(range(len(sequence)), range(3)):
            there = codes[:, t] == label
            assert found[t, label] == pytest.approx(scores[there].max() - scores[~there].max(), abs=1e-12)
        assert ((found > 0).sum(axis=1) == 1).all()
        np.testing.assert_array_equal(forecaster.classes_[found.argmax(axis=1)], predicted)


def test_empty_sequences_have_one_labelling(forecaster):
    (labels, scores), other = forecaster.predict_n_best([np.zeros((0, 3)), np.ones((1, 3))], n=9)
    assert labels.shape == (1, 0)
    assert scores.tolist() == [0.0]
    assert other[0].shape == (3, 1)
    assert forecaster.margins([np.zeros((0, 3))])[0].shape == (0, 3)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, None])
def test_n_is_a_positive_integer(forecaster, n):
    with pytest.raises(ValueError, match=f"n must be an integer >= 1, found {n}"):
        forecaster.predict_n_best([np.ones((2, 3))], n=n)


# ---------------------------------------------------------------- dictionaries of features


WORDS = [["the", "cat", "sat"], ["a", "dog"], ["the", "dog", "ran", "off"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V", "P"]]


def features(sentence, i):
    return {
        "word": sentence[i],
        "first": i == 0,
        "length": len(sentence[i]),
        "ends": [sentence[i][-1], sentence[i][-2:]],
        "next": {"word": sentence[i + 1]} if i + 1 < len(sentence) else {},
    }


def tokens(sentences, as_features=features):
    return [[as_features(sentence, i) for i in range(len(sentence))] for sentence in sentences]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_dictionaries_are_rows_of_named_columns(tmp_path, kernel):
    clf = SequenceSVM(kernel=kernel, C=10.0).fit(tokens(WORDS), TAGS)
    names = clf.feature_names_in_.tolist()
    assert names == sorted(names)
    assert {"word=the", "first", "length", "ends:at", "next:word=cat"} <= set(names)
    assert [labels.tolist() for labels in clf.predict(tokens(WORDS))] == TAGS

    plain = np.zeros((9, len(names)))
    for row, token in zip(plain, itertools.chain.from_iterable(tokens(WORDS))):
        row[names.index("word=" + token["word"])] = 1
        row[names.index("first")] = token["first"]
        row[names.index("length")] = token["length"]
        for end in set(token["ends"]):
            row[names.index(f"ends:{end}")] += token["ends"].count(end)
        if token["next"]:
            row[names.index("next:word=" + token["next"]["word"])] = 1
    same = SequenceSVM(kernel=kernel, C=10.0).fit(sp.csr_array(plain), np.concatenate(TAGS), lengths=[3, 2, 4])
    assert same.objective_ == clf.objective_
    stacked = list(itertools.chain.from_iterable(tokens(WORDS)))
    np.testing.assert_array_equal(clf.predict(stacked, lengths=[3, 2, 4]), same.predict(plain, lengths=[3, 2, 4]))

    unknown = tokens([["the", "zebra"]])
    clf.save(tmp_path / "tags.slim")
    again = slimsvm.load(tmp_path / "tags.slim")
    np.testing.assert_array_equal(again.predict(unknown)[0], clf.predict(unknown)[0])
    assert [len(labels) for labels in clf.predict([[], unknown[0]])] == [0, 2]
    assert clf.certificate(tokens(WORDS), TAGS).gap < 1e-2


@pytest.mark.parametrize("window", [0, 1])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_predictor_takes_the_dictionaries_of_training(tmp_path, kernel, window):
    clf = SequenceSVM(kernel=kernel, C=10.0, window=window).fit(tokens(WORDS), TAGS)
    clf.save(tmp_path / "tags.slim")
    predictor = slimsvm.load_predictor(tmp_path / "tags.slim")
    new = [*tokens([["the", "zebra", "ran"], ["a", "cat"]]), []]
    for found, expected in zip(predictor.predict(new), clf.predict(new), strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(predictor.decision_function(new), clf.decision_function(new), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    stacked = list(itertools.chain.from_iterable(new))
    np.testing.assert_array_equal(predictor.predict(stacked, lengths=[3, 2]), clf.predict(stacked, lengths=[3, 2]))
    with pytest.raises(ValueError, match="must be a number, a text"):
        predictor.predict([[{"word": None}]])


@pytest.mark.parametrize("window", [0, 1])
def test_a_predictor_takes_sparse_sequences(tmp_path, window):
    X, y = [sp.csr_array(np.eye(4)[[0, 1, 2]]), sp.csr_array(np.eye(4)[[3, 1]])], [["a", "b", "a"], ["b", "b"]]
    clf = SequenceSVM(kernel="linear", window=window).fit(X, y)
    clf.save(tmp_path / "sparse.slim")
    predictor = slimsvm.load_predictor(tmp_path / "sparse.slim")
    for sequences in (X, [rows.tocoo() for rows in X], [rows.toarray() for rows in X]):
        assert [labels.tolist() for labels in predictor.predict(sequences)] == [
            each.tolist() for each in clf.predict(X)
        ]
    both = sp.vstack(X)
    np.testing.assert_array_equal(predictor.predict(both, lengths=[3, 2]), clf.predict(both, lengths=[3, 2]))


def test_lists_and_sets_of_names_are_rows_too():
    lists = tokens(WORDS, lambda sentence, i: [sentence[i], f"place {i}"])
    sets = tokens(WORDS, lambda sentence, i: {sentence[i], f"place {i}"})
    one, other = SequenceSVM(kernel="linear").fit(lists, TAGS), SequenceSVM(kernel="linear").fit(sets, TAGS)
    assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()
    assert one.objective_ == other.objective_


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"word": None}, "feature 'word' of row 1 must be a number, a text"),
        ({3: "word"}, "names of features must be texts, found 3 in row 1"),
        (["word", 3], "names of features must be texts, found 3 in row 1"),
        ("word", "row 1 must be a dictionary of features or a list of their names, found 'word'"),
        ({"a": {"b": [None]}}, "names of features must be texts, found None in row 1"),
        ({"length": np.nan}, "NaN"),
        ({"length": np.inf}, "infinity"),
    ],
)
def test_bad_dictionaries_are_named(row, message):
    with pytest.raises(ValueError, match=message):
        SequenceSVM().fit([[{"word": "the"}, row]], [["D", "N"]])
    clf = SequenceSVM().fit(tokens(WORDS), TAGS)
    with pytest.raises(ValueError, match=message):
        clf.predict([[{"word": "the"}, row]])


def test_dictionaries_need_names_from_training(forecaster):
    with pytest.raises(ValueError, match="the training rows had no names"):
        forecaster.predict(tokens(WORDS))
    with pytest.raises(ValueError, match="must have a feature, found empty dictionaries only"):
        SequenceSVM().fit([[{}, {}]], [["D", "N"]])
    clf = SequenceSVM().fit(tokens(WORDS), TAGS)
    assert not hasattr(clf.fit(*weather()), "feature_names_in_")
