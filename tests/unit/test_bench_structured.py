"""The benchmark of structured outputs: chunks and features by hand, and a quick run."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.command_line import main
from benchmarks.structured import command, experiments
from benchmarks.structured.chunking import (
    FeatureTable,
    chunk_f1,
    chunks,
    token_features,
    with_ends,
    without_ends,
    word_shape,
)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", set()),
        ("O O", set()),
        ("B-NP I-NP O", {(0, 2, "NP")}),
        ("B-NP B-NP", {(0, 1, "NP"), (1, 2, "NP")}),
        ("I-NP I-NP", {(0, 2, "NP")}),  # an I after nothing begins a chunk
        ("B-NP I-VP I-VP", {(0, 1, "NP"), (1, 3, "VP")}),  # so does one of another kind
        ("O I-PP O B-NP", {(1, 2, "PP"), (3, 4, "NP")}),
        ("B-NP I-NP B-NP I-NP", {(0, 2, "NP"), (2, 4, "NP")}),
    ],
)
def test_chunks_are_those_of_conlleval(tags, expected):
    assert chunks(tags.split()) == expected


def test_chunk_f1_by_hand():
    truth = np.array(["B-NP", "I-NP", "O", "B-VP", "B-NP", "I-NP"])
    guess = np.array(["B-NP", "I-NP", "O", "B-VP", "B-NP", "B-NP"])  # 2 of 3 found, 2 of 4 right
    offsets = np.array([0, 4, 6])
    assert chunk_f1(guess, truth, offsets) == pytest.approx(4 / 7)
    assert chunk_f1(truth, truth, offsets) == 1.0
    assert chunk_f1(np.full(6, "O"), np.full(6, "O"), offsets) == 0.0
    # A chunk does not run over the end of a sentence.
    assert chunk_f1(np.full(2, "I-NP"), np.array(["I-NP", "B-NP"]), np.array([0, 1, 2])) == 1.0


def test_tags_with_ends():
    tags = np.array(["B-NP", "I-NP", "B-NP", "O", "B-VP", "B-NP", "I-NP", "I-NP"])
    ends = with_ends(tags, np.array([0, 5, 8]))
    assert ends.tolist() == ["B-NP", "E-NP", "S-NP", "O", "S-VP", "B-NP", "I-NP", "E-NP"]
    np.testing.assert_array_equal(without_ends(ends), tags)
    # A chunk ends with its sentence.
    assert with_ends(np.array(["B-NP", "I-NP"]), np.array([0, 1, 2])).tolist() == ["S-NP", "E-NP"]


def test_features_of_a_token():
    assert word_shape("McDonald-90") == "XxXx-d"
    first, second = token_features(["The", "cats"], ["DT", "NNS"])
    for name in ("w0=the", "w-1=<1", "w1=cats", "ww0=the|cats", "pp-1=<1|DT", "ppp0=DT|NNS|>1", "s=Xx", "suf=he"):
        assert name in first
    assert "pre=cats" not in second
    assert "pre=cat" in second
    assert "wp-1=cats|DT" in second


def test_features_that_were_not_seen_are_left_out():
    table, tokens = FeatureTable(), np.array([["a", "DT"], ["dog", "NN"], ["b", "DT"]])
    X = table.rows(tokens[:2], np.array([0, 2]), learn=True)
    n = len(table.column)
    other = table.rows(tokens[2:], np.array([0, 1]), learn=False)
    assert X.shape == (2, n)
    assert other.shape == (1, n)
    assert len(table.column) == n
    assert 0 < other.nnz < X[[0]].nnz
    assert other.has_sorted_indices


# ---- the benchmark


def words(n_words, rng):
    """Words of letters a, b, c whose pixels are noisy."""
    lengths = rng.integers(2, 6, n_words)
    codes = rng.integers(0, 3, lengths.sum())
    X = np.eye(3)[codes] + 0.2 * rng.normal(size=(len(codes), 3))
    return X, np.array(["a", "b", "c"])[codes], np.concatenate([[0], np.cumsum(lengths)])


def sentences(n_sentences, rng):
    """Noun phrases `the X` among verbs."""
    tokens, tags, lengths = [], [], []
    for _ in range(n_sentences):
        n = int(rng.integers(1, 4))
        tokens += [("the", "DT"), (f"thing{rng.integers(9)}", "NN"), ("runs", "VBZ")] * n
        tags += ["B-NP", "I-NP", "B-VP"] * n
        lengths.append(3 * n)
    return np.array(tokens), np.array(tags), np.concatenate([[0], np.cumsum(lengths)])


def rows(n, rng):
    """A fifth positive, by two features with noise."""
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 1.0, 1, -1), None


def stand_in(name):
    """Something small of the kind."""
    rng = np.random.default_rng(0)
    make, n = (words, 40) if "ocr" in name else (sentences, 30) if "conll" in name else (rows, 300)
    (X, y, offsets), (X_test, y_test, test_offsets) = make(n, rng), make(n, rng)
    return SimpleNamespace(
        X_train=X, y_train=y, X_test=X_test, y_test=y_test, train_offsets=offsets, test_offsets=test_offsets
    )


def test_a_quick_run_measures_and_draws(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(experiments, "load", stand_in)
    monkeypatch.setattr(command, "load", stand_in)
    argv = ["structured", "--quick", "--max-basis", "5", "--output", str(tmp_path), "--n-jobs", "1"]
    assert main(argv) == 0
    records = json.loads((tmp_path / "structured.json").read_text())["records"]
    by_method = {(r["data"], r["measure"], r["method"]): r for r in records}
    assert len(by_method) == len(records) == 5 + 2 + 9
    for method in ("linear chain, BCFW", "linear chain, exact cuts"):
        chunked = by_method["conll2000", "chunk F1", method]
        assert chunked["value"] == 1.0
        assert 0 <= chunked["gap"] <= 1e-3
    for method in ("linear chain, BCFW", "linear chain, exact cuts", "RBF chain, BCFW", "RBF chain, exact cuts"):
        record = by_method["ocr-letters-small", "letter error", method]
        assert record["value"] < 0.1
        assert record["iterations"] > 0
    for measure in experiments.MEASURES:
        for method in (experiments.ERROR_RATE, experiments.CLASS_WEIGHTS, f"trained for {measure}"):
            record = by_method["money-fx", measure, method]
            assert 0.5 < record["value"] <= 1
            tried = {trial["C"]: trial["value"] for trial in record["trials"]}
            assert set(tried) == {1.0, np.sqrt(10.0), 10.0}
            assert tried[record["C"]] == max(tried.values())
    assert (tmp_path / "structured-measures.png").stat().st_size > 0
    assert "trained for roc_auc" in capsys.readouterr().out


def test_break_even_by_hand():
    truth, scores = np.array([1, 1, -1, -1]), np.array([3.0, 0.0, 2.0, -1.0])
    assert experiments.break_even(truth, scores) == 0.5
    assert experiments.break_even(truth, truth) == 1.0


def test_the_best_C_is_looked_for_around_the_best_of_a_grid(monkeypatch):
    """Means over parts that are held out; every part has its share of every class."""
    y = np.repeat([0, 1], [40, 8])
    fold = experiments.folds_of(y, 0)
    for label, share in ((0, 10), (1, 2)):
        np.testing.assert_array_equal(np.bincount(fold[y == label]), share)
    seen = []

    class Machine:
        def __init__(self, C):
            self.C = C

        def fit(self, X, y):
            seen.append((self.C, len(X)))

        def decision_function(self, X):
            return np.full(len(X), -abs(np.log(self.C / 40)))

    monkeypatch.setitem(experiments.MEASURES, "f1", lambda truth, scores: float(scores[0]))
    trials = experiments.Trials(Machine, np.zeros((48, 1)), y, fold, ("f1",))
    assert trials.best("f1", (1.0, 10.0, 100.0)) == pytest.approx(1000**0.5)
    assert trials.tried[10.0]["f1"] == pytest.approx(-np.log(4))
    assert {n for _, n in seen} == {36}
    assert len(seen) == 4 * len(trials.tried) == 4 * 4
    assert trials.best("f1", (100.0, 1000.0)) == 100.0  # nothing beyond the grid's ends, but inside them


def test_means_over_seeds_have_standard_errors_and_gains_are_seed_by_seed():
    common = {"data": "d", "measure": "f1", "C": 1.0, "seconds": 1.0}
    values = {experiments.ERROR_RATE: (0.5, 0.7), "trained for f1": (0.6, 0.7)}
    records = [common | {"method": m, "seed": i, "value": v} for m, vs in values.items() for i, v in enumerate(vs)]
    errors, trained = command.summary(records)
    assert (errors["value %"], errors["±"], errors.get("gain")) == (60.0, 10.0, None)
    assert (trained["value %"], trained["gain"], trained["gain ±"]) == (65.0, 5.0, 5.0)
    assert command.summary(records[:1])[0]["±"] is None
