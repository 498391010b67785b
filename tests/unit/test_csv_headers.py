"""The first line of a CSV file: names of columns or a row; and labels that no number says as their texts do."""

import warnings

import numpy as np
import pytest

from slimsvm.cli import main
from slimsvm.datasets import DataWarning, read_data, read_libsvm_blocks


def read(tmp_path, text, name="rows.csv", **options):
    """Rows and labels, and whether something was said."""
    (tmp_path / name).write_text(text)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        X, y = read_data(tmp_path / name, **options)
    assert all(issubclass(warning.category, DataWarning) for warning in said)
    return X, y, [str(warning.message) for warning in said]


ROWS = "0.9,-1.4,pos\n-0.6,-0.2,neg\n-1.1,0.3,neg\n0.7,0.1,pos\n"


@pytest.mark.parametrize(
    ("text", "n", "labels"),
    [
        (ROWS, 4, {"pos", "neg"}),
        (ROWS.replace(",", ";"), 4, {"pos", "neg"}),
        (ROWS.replace(",", "\t"), 4, {"pos", "neg"}),
        ("\n" + ROWS.replace("\n", "\r\n"), 4, {"pos", "neg"}),
        ("0.5,0.5,pos\n-0.6,-0.2,neg\n0.1,1,pos\n", 3, {"pos", "neg"}),
        ("pos,0.9,-1.4\nneg,-0.6,-0.2\npos,1,1\n", 3, {"pos", "neg"}),
        ("pos,0.5,0.5\nneg,-0.6,-0.2\npos,1,1\n", 3, {"pos", "neg"}),
        ("5.1,3.5,1.4,0\n4.9,3.0,1.5,1\n6.0,3.0,1.5,0\n", 3, {0, 1}),
        ("5.1,3.5,1.4,0.25\n4.9,3.0,1.5,1.5\n", 2, {0.25, 1.5}),
        ("1,2,007\n5,2,501\n7,2,007\n", 3, {"007", "501"}),
    ],
)
def test_a_row_is_no_header(tmp_path, text, n, labels):
    X, y, said = read(tmp_path, text)
    assert len(X) == len(y) == n
    assert set(y.tolist()) == labels
    assert said == []


@pytest.mark.parametrize(
    ("text", "is_certain"),
    [
        ("400,402,404,label\n0.1,0.2,0.3,a\n0.2,0.1,0.1,b\n", True),
        ("404,400,402,kind\n0.1,0.2,0.3,1\n0.2,0.1,0.1,2\n", True),
        ("0.5,1.5,2.5,kind\n0.1,0.2,0.3,a\n0.2,0.1,0.1,b\n", False),
        ("0,1,2,3\n0.1,0.2,0.3,0\n0.2,0.1,0.1,3\n", False),
        ("2001,2002,2003,2004\n0.1,0.2,0.3,0\n0.2,0.1,0.1,1\n", False),
        ("0,1,2,kind\n0.1,0.2,0.3,a\n0.2,0.1,0.1,b\n", False),
        ("a,b,c,pos\n0.1,0.2,0.3,pos\n0.2,0.1,0.1,neg\n", True),
    ],
)
def test_names_that_are_numbers_stay_names(tmp_path, text, is_certain):
    X, y, said = read(tmp_path, text)
    assert X.shape == (2, 3)
    assert len(y) == 2
    assert len(said) == (not is_certain)
    assert all(
        "line 1: " in text and "is taken for names of columns" in text and "header=False" in text for text in said
    )
    if not is_certain:
        X, y, said = read(tmp_path, text, header=False)
        assert X.shape == (3, 3)
        assert said == []
    assert read(tmp_path, text, header=True)[2] == []


def test_a_row_with_a_label_of_its_own_is_taken_with_a_word(tmp_path):
    X, _, said = read(tmp_path, "0.9,-1.4,rare\n-0.6,-0.2,neg\n-1.1,0.3,pos\n")
    assert len(X) == 3
    assert "line 1: '0.9,-1.4,rare' is taken for a row; if it is names of columns, say so (--header" in said[0]
    X, _, said = read(tmp_path, "1,2,3\n4,5,6\n")
    assert len(X) == 2


def test_without_a_header_the_label_is_a_number_of_a_column(tmp_path):
    text = "1,0.5,7\n0,0.25,9\n1,0.125,8\n"
    X, y, _ = read(tmp_path, text, target="1", header=False)
    assert y.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(X[:, 1], [7, 9, 8])
    with pytest.raises(ValueError, match="target must be the number of the label's column, from 1 to 3; found 'kind'"):
        read(tmp_path, text, target="kind", header=False)
    with pytest.raises(ValueError, match=r"line 2, column 3: found 'x' where a number belongs"):
        read(tmp_path, "0.5,1,1,a\n0.5,1,x,a\n")


def test_the_command_line_predicts_as_many_as_there_are(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare.csv").write_text(ROWS * 5)
    (tmp_path / "named.csv").write_text("u,v,kind\n" + ROWS * 5)
    (tmp_path / "spectra.csv").write_text("402,400,label\n" + ROWS * 5)
    found = {}
    for data in ("bare", "named", "spectra"):
        assert main(["train", f"{data}.csv", f"{data}.slim", "--quiet"]) == 0
        capsys.readouterr()
        for other in ("bare", "named") if data != "spectra" else ("spectra", "bare"):
            assert main(["predict", f"{data}.slim", f"{other}.csv", "--quiet"]) == 0
            found[data, other] = capsys.readouterr().out.split()
    assert {len(labels) for labels in found.values()} == {20}
    assert len({tuple(labels) for labels in found.values()}) == 1
    (tmp_path / "lone.csv").write_text("0.9,-1.4,rare\n" + ROWS)
    for option, n in ((None, 5), ("--header", 4), ("--no-header", 5)):
        assert main(["train", "lone.csv", "m.slim", "--json", "--quiet", *([option] if option else [])]) == 0
        out, err = capsys.readouterr()
        assert f'"n_rows": {n}' in out
        assert ("lone.csv, line 1" in err) == (option is None)


# -- labels ----------------------------------------------------------------------------------------------------------

SAME = [
    (["0501", "501", "007"], ["0501", "501", "007"], False),
    (["00", "0"], ["00", "0"], False),
    (["-01", "-2"], ["-01", "-2"], False),
    (["+1", "1", "2"], ["+1", "1", "2"], True),
    (["1e3", "1000"], ["1e3", "1000"], True),
    (["9007199254740993", "9007199254740992"], [9007199254740993, 9007199254740992], False),
    (["-9223372036854775808", "9223372036854775807"], [-(2**63), 2**63 - 1], False),
    (["18446744073709551615", "18446744073709551614"], ["18446744073709551615", "18446744073709551614"], False),
    (["+1", "-1"], [1, -1], False),
    (["1.0", "2.0", "1"], [1, 2, 1], False),
    (["1e3", "5"], [1000, 5], False),
    (["0.50", "0.5"], [0.5, 0.5], False),
]


@pytest.mark.turns("form")
@pytest.mark.parametrize(("labels", "expected", "has_word"), SAME)
@pytest.mark.parametrize("form", ["csv", "libsvm", "blocks"])
def test_labels_stay_apart(tmp_path, labels, expected, has_word, form):
    lines = [f"{k},{label}" if form == "csv" else f"{label} 1:{k}" for k, label in enumerate(labels)]
    text = "\n".join(["a,label", *lines][form != "csv" :]) + "\n"
    if form == "blocks":
        (tmp_path / "rows.txt").write_text(text)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            y = read_libsvm_blocks(tmp_path / "rows.txt", block_bytes=8)[1]
    else:
        _, y, said = read(tmp_path, text, "rows.csv" if form == "csv" else "rows.txt")
    assert y.tolist() == expected
    assert y.dtype.kind == np.array(expected).dtype.kind
    assert bool(said) == has_word


@pytest.mark.parametrize("name", ["rows.csv", "rows.txt"])
@pytest.mark.parametrize("labels", [["0501", "501", "007"], ["9007199254740993", "9007199254740992"], ["+1", "1"]])
def test_predictions_are_the_labels_of_the_file(capsys, tmp_path, name, labels):
    each = [labels[k % len(labels)] for k in range(24)]
    rows = [(3 * (k % len(labels)) + 0.1 * (k % 5), 0.1 * (k % 7)) for k in range(24)]
    lines = [f"{a},{b},{label}" if name == "rows.csv" else f"{label} 1:{a} 2:{b}" for (a, b), label in zip(rows, each)]
    data, model = tmp_path / name, tmp_path / "m.slim"
    data.write_text("\n".join(["a,b,label", *lines][name != "rows.csv" :]) + "\n")
    assert main(["train", str(data), str(model), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(data)]) == 0
    out, err = capsys.readouterr()
    assert out.split() == each
    assert "error 0.00 %" in err


def test_padded_numbers_are_numbers_where_numbers_are_predicted(capsys, tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"{k},{k:03d}\n" for k in range(20)))
    argv = ["train", tmp_path / "a.csv", tmp_path / "m.slim", "--task", "regression", "--quiet"]
    assert main(list(map(str, argv))) == 0
    assert main(["predict", str(tmp_path / "m.slim"), str(tmp_path / "a.csv"), "--json"]) == 0
    assert "mean_absolute_error" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.csv", "a,b,y\n1,2,0\n9007199254740993,2,1\n", "line 3, column 'a': 9007199254740993 is rounded"),
        ("a.txt", "1 1:2\n2 1:3 2:9007199254740993\n", "line 2: the value 9007199254740993 of feature 2 is rounded"),
    ],
)
def test_features_that_lose_digits(tmp_path, name, text, word):
    said = read(tmp_path, text, name)[2]
    assert len(said) == 1
    assert word in said[0]
    assert read(tmp_path, text.replace("9007199254740993", "9007199254740994"), name)[2] == []
