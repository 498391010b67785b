"""The command line on data that are read in blocks: Parquet, folders of it, patterns of names."""

import gzip
import json

import numpy as np
import pytest

import slimsvm
from slimsvm import SVR, Checkpoint
from slimsvm.cli import main

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

FEW = ["--max-basis", "10", "--random-state", "0", "--max-iter", "3", "--quiet"]
# Megabytes of which a quarter does not hold the rows here: these are read in blocks.
BLOCKWISE = ["--memory-limit", "0.05"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)).round(3)
    return X, np.where(X[:, 0] * X[:, 1] > 0, "in", "out")


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def write_parquet(path, X, **others):
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])} | others
    parquet.write_table(pyarrow.table(columns), path, row_group_size=100)


def test_parquet_and_folders_of_it(rows, tmp_path, capsys):
    X, y = rows
    (tmp_path / "folder").mkdir()
    write_parquet(tmp_path / "all.parquet", X, kind=y)
    for i, part in enumerate(np.array_split(np.arange(900), 3)):
        write_parquet(tmp_path / "folder" / f"{i}.parquet", X[part], kind=y[part])
    write_parquet(tmp_path / "new.parquet", X)
    models = []
    for source in ("all.parquet", "folder"):
        model = tmp_path / f"{source}.slim"
        code, out, err = run(capsys, "train", tmp_path / source, model, "--label", "kind", "--json", *FEW)
        assert code == 0, err
        assert json.loads(out)["n_rows"] == 900
        models.append(model.read_bytes())
    assert models[0] == models[1]
    found = []
    for source in ("all.parquet", "new.parquet"):
        out = tmp_path / "out.txt"
        code, _, err = run(capsys, "predict", model, tmp_path / source, "--output", out, "--label", "kind", "--quiet")
        assert code == 0, err
        found.append(out.read_text().split())
    assert found[0] == found[1]
    assert (np.array(found[0]) == y).mean() > 0.9


def test_what_is_read_is_shown(rows, tmp_path, capsys):
    X, y = rows
    write_parquet(tmp_path / "rows.parquet", X, kind=y)
    data, model = tmp_path / "rows.parquet", tmp_path / "model.slim"
    for command in (
        ["train", data, model, "--label", "kind", *BLOCKWISE, *FEW[:-1]],
        ["predict", model, data, "--label", "kind"],
    ):
        code, _, err = run(capsys, *command)
        assert code == 0, err
        assert "reading rows: " in err
        assert "of 9 blocks" in err
        code, _, err = run(capsys, *command, "--quiet")
        assert code == 0
        assert "reading" not in err


def test_patterns_of_libsvm_text(rows, tmp_path, capsys):
    X, y = rows
    lines = [
        f"{1 if y[i] == 'in' else 2} " + " ".join(f"{j + 1}:{X[i, j]}" for j in range(3)) + "\n" for i in range(900)
    ]
    (tmp_path / "all.libsvm").write_text("".join(lines))
    for i in range(3):
        with gzip.open(tmp_path / f"part-{i}.libsvm.gz", "wt") as file:
            file.writelines(lines[300 * i : 300 * i + 300])
    errors = []
    for source in ("all.libsvm", "part-*.libsvm.gz"):
        code, out, err = run(capsys, "train", tmp_path / source, tmp_path / "model.slim", "--json", *FEW)
        assert code == 0, err
        report = json.loads(out)
        assert (report["n_rows"], report["n_features"]) == (900, 3)
        code, out, err = run(capsys, "predict", tmp_path / "model.slim", tmp_path / source, "--json")
        assert code == 0, err
        errors.append(report["objective"])
    assert errors[0] == pytest.approx(errors[1], rel=0.02)  # one is made dense, the other stays sparse


def test_what_is_missing_is_named(rows, tmp_path, capsys):
    X, y = rows
    write_parquet(tmp_path / "a.parquet", X, kind=y)
    (tmp_path / "b.txt").write_text("1 1:1\n")
    for arguments, message in (
        ([tmp_path / "a.parquet"], "which column holds the labels? Give it by --label NAME"),
        ([tmp_path / "a.parquet", "--label", "sort"], "sort"),
        ([tmp_path / "c*.parquet"], "no file matches this pattern"),
        ([tmp_path / "*"], "some files are Parquet"),
        ([tmp_path / "a.parquet", "--label", "kind", "--task", "ranking"], "queries are read from one text file"),
    ):
        source, *others = arguments
        code, _, err = run(capsys, "train", source, tmp_path / "model.slim", *others, *FEW)
        assert code != 0
        assert message in err
        assert not (tmp_path / "model.slim").exists()


class Killed(BaseException):
    pass


def test_a_fit_that_was_killed_goes_on(rows, tmp_path, capsys, monkeypatch):
    X, y = rows
    write_parquet(tmp_path / "rows.parquet", X, kind=y)
    saved, models = tmp_path / "run.slim", [tmp_path / f"{i}.slim" for i in range(2)]
    command = ["train", tmp_path / "rows.parquet", models[0], "--label", "kind", *BLOCKWISE, *FEW[:-1]]
    command += ["--solver", "refine"]
    assert run(capsys, *command)[0] == 0

    written = Checkpoint.on_fit_task_end

    def killed(self, estimator, context, *, fitted_estimator):
        written(self, estimator, context, fitted_estimator=fitted_estimator)
        if context.task_name == "step" or context.task_id == 2:
            raise Killed

    command[2:3] = [models[1], "--checkpoint", saved]
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "on_fit_task_end", killed)
        with pytest.raises(Killed):
            run(capsys, *command)
    assert saved.exists()
    assert not models[1].exists()
    code, _, err = run(capsys, *command)
    assert code == 0
    assert "run.slim: the fit continues from this checkpoint" in err
    assert not saved.exists()
    one, other = (slimsvm.load(model) for model in models)
    assert other.basis_coef_.tobytes() == one.basis_coef_.tobytes()
    assert (other.objective_, repr(other)) == (one.objective_, repr(one))


def test_a_checkpoint_of_something_else_is_refused(rows, tmp_path, capsys):
    X, y = rows
    write_parquet(tmp_path / "rows.parquet", X, kind=y)
    SVR(max_basis=2).fit(X[:50], X[:50, 0]).save(tmp_path / "run.slim")
    model = tmp_path / "model.slim"
    command = ["train", tmp_path / "rows.parquet", model, "--label", "kind", "--checkpoint"]
    for path, message in (
        (tmp_path / "run.slim", "run.slim: is a checkpoint of SVR, this fit is one of SVC"),
        (tmp_path / "nowhere" / "run.slim", "there is no folder"),
        ("a-{iteration}", "path without braces"),
    ):
        code, _, err = run(capsys, *command, path, *FEW)
        assert code != 0
        assert message in err
    assert not model.exists()


@pytest.mark.parametrize("limit", [[], BLOCKWISE])
@pytest.mark.parametrize("scale", ["standard", "minmax", "maxabs"])
def test_rows_of_parquet_are_scaled(rows, tmp_path, capsys, limit, scale):
    X, y = rows
    X = X * [1, 100, 1e4] + [0, 1000, 5]
    write_parquet(tmp_path / "a.parquet", X, kind=y)
    lines = [",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), y.tolist())]
    (tmp_path / "a.csv").write_text("\n".join(["f0,f1,f2,kind", *lines]) + "\n")
    found = []
    for data in ("a.parquet", "a.csv"):
        model = tmp_path / f"{data}.slim"
        code, _, err = run(capsys, "train", tmp_path / data, model, "--label", "kind", "--scale", scale, *limit, *FEW)
        assert code == 0, err
        for other in ("a.parquet", "a.csv"):
            code, out, err = run(capsys, "predict", model, tmp_path / other, "--quiet", "--label", "kind")
            assert code == 0, err
            found.append(np.array(out.split()))
    assert all((labels == found[0]).mean() > 0.98 for labels in found)
    assert (found[0] == y).mean() > 0.75


def test_small_parquet_needs_no_option(rows, tmp_path, capsys):
    """Any solver trains on it, its labels may be whole numbers of any type, and a pattern of text is no other."""
    X, y = rows
    X, y = X[:200], y[:200]
    for name, labels in (("texts", y), ("floats", (y == "in").astype(float)), ("whole", (y == "in").astype(np.int8))):
        write_parquet(tmp_path / f"{name}.parquet", X, label=labels)
        model = tmp_path / "model.slim"
        code, out, err = run(capsys, "train", tmp_path / f"{name}.parquet", model, "--json", "--quiet")
        assert code == 0, err
        assert json.loads(out)["solver"] == "Exact"
    for i in range(2):
        lines = [f"{int(y[k] == 'in')} 1:{X[k, 0]} 2:{X[k, 1]} 3:{X[k, 2]}\n" for k in range(100 * i, 100 * i + 100)]
        (tmp_path / f"part-{i}.txt").write_text("".join(lines))
    code, out, err = run(capsys, "train", tmp_path / "part-*.txt", tmp_path / "model.slim", "--json", "--quiet")
    assert code == 0, err
    assert json.loads(out)["n_rows"] == 200
