"""Columns of a table are matched by their names, wherever they stand; what has no name goes by its place."""

import json

import numpy as np
import pytest

import slimsvm
from slimsvm import SVC
from slimsvm.cli import main

NAMES = ["pclass", "age", "fare"]


@pytest.fixture(scope="module")
def table():
    """Rows whose columns are of very different sizes, and labels that depend on two of them."""
    X = np.random.default_rng(0).normal(size=(120, 3)).round(3) * [1, 5, 30]
    return X, np.where(X[:, 0] + X[:, 1] / 50 > 0, "yes", "no")


def write(path, columns, separator=","):
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()))
    path.write_text("\n".join(separator.join(map(str, row)) for row in [list(columns), *rows]) + "\n")
    return path


def columns_of(X, **others):
    return dict(zip(NAMES, X.T)) | others


@pytest.fixture(scope="module", params=["plain", "standard"])
def trained(request, table, tmp_path_factory):
    """A model with or without a scaler, its training file, and what it predicts for it."""
    X, y = table
    folder = tmp_path_factory.mktemp("trained")
    data = write(folder / "train.csv", columns_of(X, kind=y))
    scale = [] if request.param == "plain" else ["--scale", request.param]
    assert main(["train", str(data), str(folder / "m.slim"), "--quiet", *scale]) == 0
    return folder / "m.slim", data


def run(capsys, *argv):
    code = main(list(map(str, argv)))
    shown = capsys.readouterr()
    return code, shown.out.splitlines(), shown.err


def predicted(capsys, model, data, *options):
    code, out, err = run(capsys, "predict", model, data, "--quiet", *options)
    assert code == 0, err
    return out, err


@pytest.mark.turns("order")
@pytest.mark.parametrize("order", [["fare", "pclass", "age", "kind"], ["kind", "age", "fare", "pclass"], NAMES[::-1]])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_order_of_columns_does_not_matter(capsys, tmp_path, table, trained, order, separator):
    model, data = trained
    expected, err = predicted(capsys, model, data)
    assert err == ""
    columns = columns_of(table[0], kind=table[1])
    found, err = predicted(capsys, model, write(tmp_path / "other.csv", {k: columns[k] for k in order}, separator))
    assert found == expected
    assert err == ""


def test_labels_are_found_by_the_name_of_training(capsys, tmp_path, table, trained):
    model, data = trained
    expected = run(capsys, "predict", model, data)[2].partition(": error")[2]
    columns = {"kind": table[1], **columns_of(table[0])}
    assert run(capsys, "predict", model, write(tmp_path / "first.csv", columns))[2].endswith(f": error{expected}")
    columns = {"sort": table[1], **columns_of(table[0])}
    code, _, err = run(capsys, "predict", model, write(tmp_path / "named.csv", columns), "--target", "sort")
    assert code == 0
    assert err.endswith(f": error{expected}")


@pytest.mark.parametrize("lacking", [["pclass"], ["age", "fare"]])
def test_a_missing_column_is_named(capsys, tmp_path, table, trained, lacking):
    columns = {name: values for name, values in columns_of(table[0], kind=table[1]).items() if name not in lacking}
    path = write(tmp_path / "lacking.csv", columns)
    for argv in (["predict", trained[0], path], ["info", trained[0], path, "--certificate"]):
        code, out, err = run(capsys, *argv)
        assert code == 1
        assert not out
        assert "lacks the column" in err
        assert all(repr(name) in err for name in lacking)


def test_other_columns_are_ignored_with_a_word(capsys, tmp_path, table, trained):
    model, data = trained
    X, y = table
    texts = np.full(120, "a name, not a number")
    columns = {"id": np.arange(120), **columns_of(X), "name": [f'"{text}"' for text in texts], "kind": y}
    found, err = predicted(capsys, model, write(tmp_path / "more.csv", columns))
    assert found == predicted(capsys, model, data)[0]
    assert "'id', 'name' are ignored" in err
    assert err.count("\n") == 1


def test_a_test_file_goes_by_names(capsys, tmp_path, table, trained):
    X, y = table
    other = write(tmp_path / "test.csv", {"kind": y, "x": y, **{k: columns_of(X)[k] for k in NAMES[::-1]}})
    model = tmp_path / "m.slim"
    code, out, err = run(capsys, "train", trained[1], model, "--test", other, "--json", "--quiet")
    assert code == 0
    assert "the column 'x' is ignored" in err
    code, out_same, _ = run(capsys, "train", trained[1], model, "--test", trained[1], "--json", "--quiet")
    rates = [json.loads(lines[0])["test"]["error_rate"] for lines in (out, out_same)]
    assert rates[0] == rates[1] < 0.5
    lacking = write(tmp_path / "lacking.csv", {"age": X[:, 1], "fare": X[:, 2], "kind": y})
    code, _, err = run(capsys, "train", trained[1], tmp_path / "new.slim", "--test", lacking, "--quiet")
    assert code == 1
    assert "'pclass'" in err
    assert not (tmp_path / "new.slim").exists()


def test_rows_of_an_export_go_by_names(capsys, tmp_path, table, trained):
    X = table[0]
    one = write(tmp_path / "one.csv", columns_of(X))
    other = write(tmp_path / "other.csv", {k: columns_of(X)[k] for k in NAMES[::-1]})
    headers = []
    for rows in (one, other):
        argv = ["export", trained[0], "--to", "c", "--output", tmp_path / "m.h", "--rows", rows, "--type", "float32"]
        assert run(capsys, *argv)[0] == 0
        headers.append((tmp_path / "m.h").read_text())
    assert headers[0] == headers[1]


def test_info_and_python_know_the_names(capsys, table, trained):
    model = slimsvm.load(trained[0])
    assert getattr(model, "steps", [("", model)])[0][1].feature_names_in_.tolist() == NAMES
    assert json.loads(run(capsys, "info", trained[0], "--json")[1][0])["feature_names"] == NAMES
    assert any("3: pclass, age, fare" in line for line in run(capsys, "info", trained[0])[1])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table[0], columns=NAMES)
    assert model.predict(frame).tolist() == predicted(capsys, *trained)[0]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[NAMES[::-1]])


def test_models_of_frames_that_python_saved(capsys, tmp_path, table):
    pandas = pytest.importorskip("pandas")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame = pandas.DataFrame(table[0], columns=NAMES)
    other = write(tmp_path / "other.csv", {k: columns_of(table[0])[k] for k in NAMES[::-1]})
    for model in (SVC(), make_pipeline(StandardScaler(), SVC())):
        slimsvm.save(model.fit(frame, table[1]), tmp_path / "m.slim")
        assert predicted(capsys, tmp_path / "m.slim", other)[0] == model.predict(frame).tolist()


def test_models_without_names_go_by_place(capsys, tmp_path, table, trained):
    X, y = table
    model = SVC().fit(X, y)
    model.save(tmp_path / "m.slim")
    assert predicted(capsys, tmp_path / "m.slim", trained[1])[0] == model.predict(X).tolist()
    other = write(tmp_path / "other.csv", {f"other{k}": X[:, k] for k in range(3)})
    assert predicted(capsys, tmp_path / "m.slim", other) == (model.predict(X).tolist(), "")


@pytest.mark.parametrize("name", ["rows.txt", "rows.npz"])
def test_files_without_names_go_by_place(capsys, tmp_path, table, trained, name):
    X, y = table
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    rows = (" ".join(f"{j + 1}:{value}" for j, value in enumerate(row)) for row in X.tolist())
    (tmp_path / "rows.txt").write_text("".join(f"1 {row}\n" for row in rows))
    assert predicted(capsys, trained[0], tmp_path / name)[0] == predicted(capsys, trained[0], trained[1])[0]


@pytest.mark.parametrize("has_labels", [False, True])
def test_rows_without_a_header_for_a_model_with_names(capsys, tmp_path, table, trained, has_labels):
    lines = trained[1].read_text().splitlines()[1:]
    lines = lines if has_labels else [line.rpartition(",")[0] for line in lines]
    (tmp_path / "bare.csv").write_text("\n".join(lines) + "\n")
    found, err = predicted(capsys, trained[0], tmp_path / "bare.csv")
    assert found == predicted(capsys, trained[0], trained[1])[0]
    assert "has no header, so its columns are taken in the order of training: 'pclass', 'age', 'fare'" in err


def test_parquet_goes_by_names(capsys, tmp_path, table, trained):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = table
    columns = columns_of(X, kind=y)
    for name, order in (("a", list(columns)), ("b", ["fare", "kind", "age", "pclass"]), ("c", ["age", "kind", "fare"])):
        parquet.write_table(pyarrow.table({k: columns[k] for k in order}), tmp_path / f"{name}.parquet")
    parquet.write_table(pyarrow.table(columns | {"note": y}), tmp_path / "more.parquet")
    assert run(capsys, "train", tmp_path / "a.parquet", tmp_path / "m.slim", "--label", "kind", "--quiet")[0] == 0
    for model in (tmp_path / "m.slim", trained[0]):
        expected = predicted(capsys, model, trained[1])[0]
        for name in ("a", "b"):
            assert predicted(capsys, model, tmp_path / f"{name}.parquet") == (expected, "")
        found, err = predicted(capsys, model, tmp_path / "more.parquet")
        assert found == expected
        assert "the column 'note' is ignored" in err
        code, _, err = run(capsys, "predict", model, tmp_path / "c.parquet")
        assert code == 1
        assert "lacks the column 'pclass'" in err


def test_an_index_without_a_name_is_no_feature(capsys, tmp_path, table):
    X, y = table
    shuffled = np.random.default_rng(1).permutation(120)
    for name, numbers in (("", np.arange(120)), ("Unnamed: 0", np.arange(120)), ("", shuffled)):
        data = write(tmp_path / "rows.csv", {name: numbers, **columns_of(X, kind=y)})
        code, out, err = run(capsys, "train", data, tmp_path / "m.slim", "--json", "--quiet")
        assert code == 0
        assert json.loads(out[0])["n_features"] == 3
        assert f"the column {name!r} without a name numbers the rows and is ignored" in err
        assert len(predicted(capsys, tmp_path / "m.slim", write(tmp_path / "bare.csv", columns_of(X)))[0]) == 120
    data = write(tmp_path / "rows.csv", {"": X[:, 0], "a": X[:, 1], "kind": y})
    assert json.loads(run(capsys, "train", data, tmp_path / "m.slim", "--json", "--quiet")[1][0])["n_features"] == 2


def test_an_index_without_a_name_in_parquet(capsys, tmp_path, table):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = table
    parquet.write_table(pyarrow.table({"Unnamed: 0": np.arange(120), **columns_of(X, label=y)}), tmp_path / "a.parquet")
    code, out, err = run(capsys, "train", tmp_path / "a.parquet", tmp_path / "m.slim", "--json", "--quiet")
    assert code == 0
    assert json.loads(out[0])["n_features"] == 3
    assert "'Unnamed: 0' without a name numbers the rows" in err
