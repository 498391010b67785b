"""The command line on queries to rank and sequences to label; the reader of columns."""

import bz2
import json

import numpy as np
import pytest

import slimsvm
from slimsvm.cli import main
from slimsvm.datasets import DataError, hash_columns, read_columns, read_data

WORDS = {"the": "D", "a": "D", "dog": "N", "cats": "N", "runs": "V", "sleep": "V", "John": "P", "2010": "C"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of queries and of sequences, to train on and to test on."""
    path, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    for name, n in (("train", 160), ("test", 80)):
        X = rng.normal(size=(n, 3)).round(3)
        grades = np.digitize(X[:, 0] + 0.1 * rng.normal(size=n), [-0.5, 0.5])
        query = np.sort(rng.integers(1, 10, n))
        lines = [f"{g} qid:{q} 1:{a} 2:{b} 3:{c}\n" for g, q, (a, b, c) in zip(grades, query, X.tolist())]
        (path / f"{name}.txt").write_text("".join(lines))
        text = ""
        for _ in range(n // 5):
            for word in rng.choice(list(WORDS), rng.integers(1, 6)):
                text += f"{word} {len(word)} {WORDS[word]}\n"
            text += "\n"
        (path / f"{name}.conll").write_text(text)
        (path / f"{name}.bare").write_text("".join(line.rsplit(" ", 1)[0] + "\n" for line in text.split("\n")[:-1]))
    return path


def run(capsys, *argv):
    assert main([*map(str, argv)]) == 0
    return capsys.readouterr()


def run_json(capsys, *argv):
    return json.loads(run(capsys, *argv, "--json").out)


@pytest.mark.parametrize("loss", ["swaps", "average_precision"])
def test_rankings(folder, tmp_path, capsys, loss):
    model = tmp_path / "model.slim"
    trained = run_json(
        capsys, "train", folder / "train.txt", model, "--task", "ranking", "--loss", loss, "-C", 10, "--quiet",
        "--test", folder / "test.txt",
    )  # fmt: skip
    assert (trained["estimator"], trained["n_rows"], trained["n_queries"]) == ("RankSVM", 160, 9)
    X, y, groups = read_data(folder / "test.txt", query_id=True)
    clf = slimsvm.load(model)
    value = clf.score(X.toarray(), y, groups=groups)
    name = "share_in_order" if loss == "swaps" else "average_precision"
    assert trained["test"][name] == pytest.approx(value)
    assert value > 0.9
    assert trained["test"]["ndcg"] == pytest.approx(clf.ndcg(X.toarray(), y, groups=groups))
    out, err = run(capsys, "predict", model, folder / "test.txt")
    np.testing.assert_allclose([float(line) for line in out.split()], clf.predict(X.toarray()))
    assert ("of the pairs of a query in order" if loss == "swaps" else "mean average precision") in err
    assert f"NDCG {trained['test']['ndcg']:.4f}" in err
    found = run_json(capsys, "info", model, folder / "train.txt", "--certificate")
    assert found["certificate"]["gap"] < 0.01
    assert "RankSVM" in run(capsys, "info", model).out


def test_rows_that_name_their_queries_are_ranked(folder, tmp_path, capsys):
    compressed = tmp_path / "train.txt.bz2"
    compressed.write_bytes(bz2.compress(b"# grades\n" + (folder / "train.txt").read_bytes()))
    for data in (folder / "train.txt", compressed):
        out, err = run(capsys, "train", data, tmp_path / "model.slim")
        assert "its rows have qid:, so they are ranked; --task classification" in err
        assert "9 queries" in out
    trained = run_json(capsys, "train", data, tmp_path / "model.slim", "--task", "classification", "--quiet")
    assert trained["estimator"] == "SVC"
    plain = tmp_path / "plain.txt"
    plain.write_text("1 1:2 # qid:3\n0 1:3\n")
    assert run_json(capsys, "train", plain, tmp_path / "model.slim", "--quiet")["estimator"] == "SVC"
    negative = tmp_path / "negative.txt"
    negative.write_text("1 qid:1 1:2\n-1 qid:1 1:3\n")
    assert "ndcg" not in run_json(capsys, "train", negative, tmp_path / "m", "--test", negative, "--quiet")["test"]


def test_scores_need_no_queries(folder, tmp_path, capsys):
    model = tmp_path / "model.slim"
    run(capsys, "train", folder / "train.txt", model, "--quiet")
    plain = tmp_path / "plain.txt"
    plain.write_text("0 1:0.5\n0 3:-1\n")
    out, err = run(capsys, "predict", model, plain)
    assert len(out.split()) == 2
    assert err == ""
    plain.write_text("1 qid:1 1:0.5\n2 qid:2 3:-1\n")  # nothing to rank: scores, and why no quality is told
    alone, err = run(capsys, "predict", model, plain)
    assert alone == out
    assert "no query has two rows of different labels" in err


def test_sequences(folder, tmp_path, capsys):
    model = tmp_path / "model.slim"
    train = ["train", folder / "train.conll", model, "--task", "sequence", "--kernel", "linear", "-C", 10, "--quiet"]
    trained = run_json(capsys, *train, "--test", folder / "test.conll")
    assert (trained["n_sequences"], trained["n_features"]) == (32, 1 << 18)
    assert trained["classes"] == ["C", "D", "N", "P", "V"]
    assert trained["test"]["error_rate"] < 0.1
    assert trained["test"]["n_sequences"] == 16
    out, err = run(capsys, "predict", model, folder / "test.conll")
    labels = [sequence.split("\n") for sequence in out.strip("\n").split("\n\n")]
    _, y, lengths = read_columns(folder / "test.conll")
    assert [len(sequence) for sequence in labels] == lengths.tolist()
    wrong = np.mean(np.concatenate(labels) != y)
    assert wrong == pytest.approx(trained["test"]["error_rate"])
    assert f"error {100 * wrong:.2f} %" in err
    assert run(capsys, "predict", model, folder / "test.bare", "--unlabelled").out == out
    assert run_json(capsys, "info", model)["parameters"]["window"] == 1
    found = run_json(capsys, "info", model, folder / "train.conll", "--certificate")["certificate"]
    assert found["objective"] == pytest.approx(trained["objective"], rel=1e-6)
    assert 0 <= found["gap"] < 0.01
    other = run_json(capsys, *train, "--window", 0, "--loss", "zero-one")
    assert other["estimator"] == "SequenceSVM"
    assert (slimsvm.load(model).window, slimsvm.load(model).loss) == (0, "zero-one")


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["train.txt", "--window", "2"], 2, "--window is for --task sequence only"),
        (["train.txt", "--task", "ranking", "--epsilon", "1"], 2, "--epsilon is for --task regression only"),
        (
            ["train.txt", "--task", "regression", "--loss", "f1"],
            1,
            "loss must be one of 'epsilon_insensitive', 'quantile'",
        ),
        (["train.txt", "--task", "ranking", "--loss", "ndcg"], 1, "loss must be one of 'swaps', 'average_precision'"),
        (["train.conll", "--task", "sequence", "--window", "-1"], 2, "must be an integer >= 0, found '-1'"),
        (["train.conll", "--task", "ranking"], 1, "where the label, a number, belongs"),
        (["noqid.txt", "--task", "ranking"], 1, "noqid.txt, line 1: qid: is missing"),
        (["ragged.conll", "--task", "sequence"], 1, "line 3: found 1 columns, the first line has 3"),
        (["banana", "--task", "ranking"], 1, "has no queries to rank|is not on this machine"),
        (["missing.conll", "--task", "sequence"], 1, "there is no such file"),
    ],
)
def test_what_is_wrong_is_said(folder, tmp_path, capsys, monkeypatch, argv, code, message):
    import re

    (folder / "noqid.txt").write_text("1 1:2\n0 1:3\n")
    (folder / "ragged.conll").write_text("a b c\n\nd\n")
    monkeypatch.chdir(folder)
    assert main(["train", argv[0], str(tmp_path / "model.slim"), "--quiet", *argv[1:]]) == code
    assert re.search(message, capsys.readouterr().err)


# ---- columns


def test_columns_of_any_blanks_and_compressed(tmp_path):
    path = tmp_path / "words.txt.bz2"
    path.write_bytes(bz2.compress("\n\nZürich\tNE  B\n is V O\n\n\n\nja I O".encode()))
    columns, y, lengths = read_columns(path)
    assert columns.tolist() == [["Zürich", "NE"], ["is", "V"], ["ja", "I"]]
    assert y.tolist() == ["B", "O", "O"]
    assert lengths.tolist() == [2, 1]
    columns, y, _ = read_columns(path, labels=False)
    assert columns.shape == (3, 3)
    assert y is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b\n\nc\n", "words, line 3: found 1 columns, the first line has 2"),
        (b"a\nb\n", "words, line 1: found the one column 'a'; a word and a label are needed"),
        (b"\xff a\n", "words: not UTF-8 text"),
        (b"\n \n", "the file is empty"),
    ],
)
def test_bad_columns_are_named(tmp_path, content, message):
    path = tmp_path / "words"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_columns(path)


def test_hashed_words():
    columns = np.array([["Dogs", "N"], ["dogs", "N"], ["1999", "C"], ["Dogs", "N"]])
    X = hash_columns(columns, 1 << 16)
    assert X.shape == (4, 1 << 16)
    assert X.dtype == np.float32
    np.testing.assert_allclose(np.sqrt((X.toarray() ** 2).sum(axis=1)), 1, rtol=1e-6)
    products = (X @ X.T).toarray()
    assert products[0, 3] == pytest.approx(1, rel=1e-6)
    assert products[0, 1] > 0.3 > 0.1 > products[0, 2]
    alone = hash_columns(columns[2:3], 1 << 16)
    np.testing.assert_array_equal(alone.toarray()[0], X.toarray()[2])
