"""``slimsvm train --task table``: a CSV file with texts, dates and gaps, from the command line to probabilities."""

import gzip
import json
import os
import threading

import numpy as np
import pytest

import slimsvm
from slimsvm.cli import build_parser, main
from slimsvm.cli.tables import is_table, labels_of, read_csv
from slimsvm.datasets.csv_tables import Asked, parse_csv


def run(capsys, *argv):
    code = main(list(map(str, argv)))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    lines = ["name,sex,age,fare,survived"]
    for k in range(300):
        sex, age = rng.choice(["male", "female"]), rng.integers(1, 80)
        survived = "yes" if (sex == "female") != (rng.random() < 0.1) else "no"
        lines.append(f'"Smith, {k}",{sex},{age if k % 5 else ""},"{rng.integers(1, 9000):,}",{survived}')
    path = tmp_path_factory.mktemp("tables") / "ship.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def model(data):
    path = data.parent / "ship.slim"
    assert main(["train", str(data), str(path), "--task", "table", "--label", "survived", "--quiet"]) == 0
    return path


def test_training_says_what_columns_are_and_how_good_it_is(capsys, data, tmp_path):
    code, out, err = run(
        capsys, "train", data, tmp_path / "m.slim", "--task", "table", "--label", "survived", "--quiet"
    )
    assert (code, err) == (0, "")
    for part in ("label 'survived': 2 classes", "name: left out", "sex: category of 2 levels", "fare: numbers",
                 "60 rows held out: error", "log loss", "AUC", "with the largest class for all rows"):  # fmt: skip
        assert part in out


def test_prediction_finds_columns_by_name(capsys, data, model, tmp_path):
    (tmp_path / "new.csv").write_text("sex;age;more;fare\nmale;3;x;3\nfemale;;x;1,000\nother;?;x;\n")
    code, out, _ = run(capsys, "predict", model, tmp_path / "new.csv", "--probabilities")
    lines = [line.split("\t") for line in out.splitlines()]
    assert (code, lines[0], len(lines)) == (0, ["label", "no", "yes"], 4)
    assert all(abs(float(no) + float(yes) - 1) < 1e-9 for _, no, yes in lines[1:])
    code, out, _ = run(capsys, "predict", model, data, "--json")
    assert (code, json.loads(out)["test"]["error_rate"] < 0.15) == (0, True)
    (tmp_path / "less.csv").write_text("sex,name\nmale,x\n")
    code, _, err = run(capsys, "predict", model, tmp_path / "less.csv")
    assert (code, "missing: 'age', 'fare'" in err) == (1, True)


def test_info_tells_columns_and_importances(capsys, model):
    code, out, _ = run(capsys, "info", model, "--json")
    found = json.loads(out)
    assert code == 0
    assert max(found["importances"], key=found["importances"].get) == "sex"
    assert "importances of columns" in run(capsys, "info", model)[1]
    assert slimsvm.load(model).label_name_ == "survived"


def test_numbers_are_predicted_and_a_useless_model_is_said(capsys, data, tmp_path):
    code, out, err = run(capsys, "train", data, tmp_path / "m.slim", "--task", "table", "--label", "fare", "--json")
    assert (code, "no better than one constant prediction" in err) == (0, not json.loads(out)["test"]["is_better"])
    code, _, err = run(capsys, "predict", tmp_path / "m.slim", data, "--probabilities")
    assert (code, "predicts numbers" in err) == (1, True)


def test_labels_of_a_file_to_predict_are_those_of_the_model(capsys, data, model, tmp_path):
    train(capsys, tmp_path, "x,y", [(k % 7, k) for k in range(60)])
    for values in ((3, 4), (3, "4.5")):  # few whole numbers look like classes
        code, out, _ = predict_json(capsys, tmp_path, "x,y", [(k, value) for k, value in enumerate(values)])
        assert (code, out["test"]["n_rows"]) == (0, 2)
    train(capsys, tmp_path, "x,y", [(k / 60, int(k > 30)) for k in range(60)])
    for labels in (("0.0", "1.0"), ("0", "1")):  # as pandas writes whole numbers where some are missing
        code, out, _ = predict_json(capsys, tmp_path, "x,y", [(0.1, labels[0]), (0.9, labels[1])])
        assert (code, out["test"]["error_rate"]) == (0, 0.0)
    code, out, _ = predict_json(capsys, tmp_path, "x,y", [(0.1, ""), (0.9, "1")])
    assert (code, out["predictions"], "test" in out) == (0, ["0", "1"], False)
    train(capsys, tmp_path, "x,y", [(k / 60, "unknown" if k % 15 == 0 else k % 2) for k in range(60)])
    assert slimsvm.load(tmp_path / "m.slim").classes_.tolist() == ["0", "1", "unknown"]


def train(capsys, folder, names, rows):
    (folder / "data.csv").write_text("\n".join([names, *(",".join(map(str, row)) for row in rows)]))
    code, _, err = run(capsys, "train", folder / "data.csv", folder / "m.slim", "--task", "table", "--json")
    return code, err


def predict_json(capsys, folder, names, rows):
    (folder / "new.csv").write_text("\n".join([names, *(",".join(map(str, row)) for row in rows)]))
    code, out, err = run(capsys, "predict", folder / "m.slim", folder / "new.csv", "--json")
    return code, json.loads(out or "{}"), err


@pytest.mark.parametrize(
    ("names", "rows", "message"),
    [
        ("x,y", [(1, "a"), (2, "b")], "has 2 rows, too few to hold some out: give --test FILE"),
        ("y", [("a",), ("b",)] * 9, "has no column besides the label 'y'"),
        ("x,y", [(k, "none known" if k == 33 else k) for k in range(60)], "row 35: the label 'y' is 'none known'"),
    ],
)
def test_a_file_that_says_too_little_is_refused(capsys, tmp_path, names, rows, message):
    code, err = train(capsys, tmp_path, names, rows)
    assert (code, message in err) == (1, True), err


def test_a_file_may_be_a_pipe(data, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(data.read_text()), daemon=True)
    writer.start()
    columns = read_csv(str(tmp_path / "pipe"))
    writer.join()
    assert (list(columns), len(columns["sex"])) == (["name", "sex", "age", "fare", "survived"], 300)


def test_a_file_with_texts_is_a_table_without_being_told(capsys, data, tmp_path):
    code, out, err = run(capsys, "train", data, tmp_path / "m.slim", "--label", "survived", "--cv", "3")
    assert (code, "taken as a table" in err) == (0, True)
    assert "300 rows held out, means of 3 folds: error" in out
    code, _, err = run(capsys, "train", data, tmp_path / "m.slim", "--label", "survived", "--kernel", "linear")
    assert (code, "`slimsvm train --task table`" in err) == (1, True)


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        ("a,b\n1,2\n3,4\n", None, False),
        ("a,b\n1,\n3,4\n", "b", False),
        ("a,b\n1,x\n3,y\n", None, False),  # the label is the last
        ("a,b\n1,x\n3,y\n", "a", True),
        ("a,b,y\n1,,0\n3,4,1\n", None, True),
        ("a;b;y\n1;2,5;0\n3;4,5;1\n", None, True),
        ("1,x,0\n2,y,1\n", None, False),  # no names
        ("", None, False),
    ],
)
def test_what_is_taken_as_a_table(tmp_path, text, label, expected):
    (tmp_path / "data.csv").write_text(text)
    argv = ["train", str(tmp_path / "data.csv"), "m.slim", *([] if label is None else ["--label", label])]
    args = build_parser(argv).parse_args(argv)
    assert is_table(args) is expected


def test_folds_are_for_tables(capsys, data, tmp_path):
    (tmp_path / "numbers.csv").write_text("a,y\n1,0\n2,1\n")
    code, _, err = run(capsys, "train", tmp_path / "numbers.csv", tmp_path / "m.slim", "--cv", "3")
    assert (code, "--cv is for --task table only" in err) == (2, True)
    code, _, err = run(capsys, "train", data, tmp_path / "m.slim", "--label", "survived", "--cv", "3", "--test", data)
    assert (code, "--cv and --test" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "which column is the label? Give it by --label NAME, one of 'name', 'sex'"),
        (["--label", "nope"], "has no column 'nope'"),
        (["--label", "age"], "row 2: the label 'age' is missing"),
        (["--label", "survived", "--kernel", "linear"], "--kernel does not go with --task table"),
    ],
)
def test_what_is_unclear_is_asked_for_at_once(capsys, data, tmp_path, options, message):
    code, _, err = run(capsys, "train", data, tmp_path / "m.slim", "--task", "table", *options)
    assert code in (1, 2)
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "holds no rows"),
        ("a,label\nx\0,p\ny,q\n", "found a zero byte, which no text has"),
        ("a,a\n1,2\n", "found more than once: 'a'"),
        ("a,b\n1,2\n3\n", "row 3: found 1 values"),
        ("a,,,label\n1,2,u,p\n3,4,u,q\n", "columns 2, 3 have no name"),
        ("a,label\n1,p\n2,p\n", "bad.csv: the label 'label' is 'p' in all rows"),
    ],
)
def test_files_that_are_no_tables_are_refused(capsys, tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    code, _, err = run(capsys, "train", tmp_path / "bad.csv", tmp_path / "m.slim", "--task", "table")
    assert (code, message in err) == (1, True), err


@pytest.mark.filterwarnings("default")
def test_empty_columns_at_the_right_edge_are_none_and_a_warning_is_said_once(capsys, tmp_path):
    rows = "".join(f"{'inf' if k == 5 else k},{'uv'[k % 2]},{'pq'[k % 2]},,\n" for k in range(40))
    (tmp_path / "data.csv").write_text("a,b,label,,\n" + rows)
    code, out, err = run(capsys, "train", tmp_path / "data.csv", tmp_path / "m.slim", "--quiet")
    assert (code, "40 rows, 2 columns" in out) == (0, True)
    assert err.count("texts such as 'inf'") == 1
    assert run(capsys, "predict", tmp_path / "m.slim", tmp_path / "data.csv")[0] == 0


HEAD, ROWS = ["size", "kind", "label"], [[f"{k * k % 17}.5", "uv"[k % 2], "yes" if k % 3 else "no"] for k in range(40)]


def written(tmp_path, names=HEAD, rows=ROWS, separator=",", name="data.csv", start="", encoding="utf-8"):
    text = start + "".join(separator.join(row) + "\n" for row in [names, *rows])
    path = tmp_path / name
    path.write_bytes((gzip.compress if name.endswith(".gz") else bytes)(text.encode(encoding)))
    return path


@pytest.mark.parametrize(
    "form",
    [
        {"encoding": "utf-8-sig"},
        {"encoding": "utf-16", "separator": "\t"},
        {"separator": ";", "rows": [[row[0].replace(".", ","), *row[1:]] for row in ROWS]},
        {"separator": "\t"},
        {"start": "sep=;\n", "separator": ";"},
        {"name": "data.csv.gz"},
    ],
)
def test_files_as_programs_write_them_hold_the_same(tmp_path, form):
    columns = read_csv(str(written(tmp_path, **form)))
    assert {name: [value.replace(",", ".") for value in values] for name, values in columns.items()} == {
        name: [row[at] for row in ROWS] for at, name in enumerate(HEAD)
    }
    argv = ["train", str(written(tmp_path, **form)), "m.slim"]
    args = build_parser(argv).parse_args(argv)
    assert is_table(args)


@pytest.mark.parametrize(
    ("names", "rows", "told"),
    [
        (["1", "2", "label"], ROWS, ["1: numbers", "2: category"]),
        (["", "kind", "label"], ROWS, ["(no name): numbers", "kind: category"]),
        (["", "kind", "label"], [[str(k), *row[1:]] for k, row in enumerate(ROWS)], ["(no name): left out: an index"]),
        (HEAD, [[f"{row[0]}%", "$5" if k % 2 else "$7", row[2]] for k, row in enumerate(ROWS)],
         ["size: numbers", "kind: numbers"]),
        (HEAD, [["27.11.2026" if k % 2 else "3.1.2026", *row[1:]] for k, row in enumerate(ROWS)],
         ["size: times with the week, written day.month.year"]),
        (HEAD, [["true" if k % 2 else "false", f"level {k}", row[2]] for k, row in enumerate(ROWS)],
         ["size: category of 2 levels", "kind: left out: no text occurs more than once"]),
    ],
)  # fmt: skip
def test_awkward_columns_are_taken_for_what_they_are(capsys, tmp_path, names, rows, told):
    path = written(tmp_path, names, rows)
    code, out, _ = run(capsys, "train", path, tmp_path / "m.slim", "--task", "table", "--quiet")
    assert (code, [part for part in told if part not in out]) == (0, [])
    assert run(capsys, "predict", tmp_path / "m.slim", path)[0] == 0


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"names": ["size", "size", "label"]}, "found more than once: 'size'"),
        ({"rows": [*ROWS, ["1", "u", ""]]}, "row 42: the label 'label' is missing"),
        ({"encoding": "cp1252", "start": "é"}, "is no CSV file in UTF-8 or UTF-16"),
        ({"rows": [*ROWS, ["1", "u"]]}, "row 42: found 2 values, the first line has 3 names"),
        ({"rows": [[*row[:2], "yes"] for row in ROWS]}, "at least two classes"),
    ],
)
def test_awkward_files_are_refused_by_name(capsys, tmp_path, form, message):
    code, _, err = run(capsys, "train", written(tmp_path, **form), tmp_path / "m.slim", "--task", "table", "--quiet")
    assert (code, message in err) == (1, True), err


def test_commas_in_quoted_names_separate_nothing(tmp_path):
    names = ['"weight, kg"', '"height, cm, in socks"', "label"]
    path = written(tmp_path, names, ROWS, separator=";")
    assert list(read_csv(str(path))) == ["weight, kg", "height, cm, in socks", "label"]
    assert parse_csv(b'"a, b";"c, d";y\n1;2;0\n3;4;1\n', "rows.csv", Asked()).names == ["a, b", "c, d"]


def test_a_file_cut_short_is_refused(capsys, tmp_path):
    path = written(tmp_path, name="data.csv.gz")
    path.write_bytes(path.read_bytes()[:-20])
    code, _, err = run(capsys, "train", path, tmp_path / "m.slim", "--task", "table", "--quiet")
    assert (code, "is no CSV file" in err) == (1, True), err


def test_labels_with_a_sign_stay_what_they_are(tmp_path):
    assert labels_of(["10%", "20%", "10%"], "label", "file").tolist() == ["10%", "20%", "10%"]
    assert labels_of(["10.0", "20", "10"], "label", "file").tolist() == ["10", "20", "10"]


def test_sets_and_intervals_of_tables(capsys, data, model, tmp_path):
    code, out, _ = run(capsys, "predict", model, data, "--alpha", "0.2", "--quiet")
    lines = [line.split("\t") for line in out.splitlines()]
    assert (code, lines[0]) == (0, ["label", "no", "yes"])
    assert {cell for line in lines[1:] for cell in line[1:]} == {"0", "1"}
    path = written(tmp_path, rows=[[*row[:2], row[0]] for row in ROWS])
    assert run(capsys, "train", path, tmp_path / "n.slim", "--task", "table", "--quiet")[0] == 0
    code, out, _ = run(capsys, "predict", tmp_path / "n.slim", path, "--alpha", "0.2", "--quiet")
    lines = [line.split("\t") for line in out.splitlines()]
    assert (code, lines[0]) == (0, ["label", "low", "high"])
    assert all(float(low) <= float(mean) <= float(high) for mean, low, high in lines[1:])
