"""The demonstration, on few rows: its table, its files, and that it needs no data folder."""

import json

import numpy as np

from slimsvm.cli import demo
from slimsvm.datasets import find


def run(capsys, tmp_path):
    """The table of few rows to test on, without a fit that takes long."""
    settings = demo.Settings(test_rows=200, fit_seconds=5)
    assert demo.main(["--rows", "150", "--output", str(tmp_path / "out")], settings) == 0
    out, err = capsys.readouterr()
    return out, err, json.loads((tmp_path / "out" / "demo.json").read_text())


def test_without_a_data_folder(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "find", lambda name: None)
    out, err, record = run(capsys, tmp_path)
    solvers = [*demo.SOLVERS, demo.PEER]
    assert [(row["data"], row["solver"]) for row in record["rows"]] == [
        (name, solver) for name in ("digits", "checkerboard") for solver in solvers
    ]
    for row in record["rows"]:
        assert row["n_train"] == 150
        assert row["error_rate"] < 0.5
        assert row["n_vectors"] > 0
        peer = row["solver"] == demo.PEER
        assert (row["n_kernel_evals"] is None) == peer
        # Of few rows, few vectors come with the exact SVM's bound.
        has_gap = row["solver"] in ("SVC()", "SVC(max_basis=100)")
        assert (row["relative_gap"] is None) != has_gap
        line = next(line for line in out.splitlines() if line.startswith(row["data"]) and row["solver"] in line)
        assert f"  {100 * row['error_rate']:.2f}  " in line
        assert str(row["n_vectors"]) in line.split()
    assert "adult: not found, left out" in err
    assert "certificate of SVC(max_basis=100) on checkerboard: its objective is" in out
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert out.splitlines()[-1] == f"written: {tmp_path / 'out' / 'demo.json'}, {tmp_path / 'out' / 'demo.png'}"


def test_with_a_data_folder(capsys, tmp_path, monkeypatch, data):
    monkeypatch.setattr(demo, "load", lambda name, download: data(name))
    if not all(map(find, demo.SETS)):
        data(next(name for name in demo.SETS if find(name) is None))
    _, _, record = run(capsys, tmp_path)
    assert list(dict.fromkeys(row["data"] for row in record["rows"])) == ["digits", "checkerboard", *demo.SETS]


def test_without_matplotlib(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "find", lambda name: None)
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    out, err, _ = run(capsys, tmp_path)
    assert "no plot: matplotlib is not installed" in err
    assert out.splitlines()[-1] == f"written: {tmp_path / 'out' / 'demo.json'}"


def test_parts_are_the_same_random_rows_each_time():
    X = np.arange(1000.0)[:, None]
    arrays = (X, np.arange(1000), X, np.arange(1000))
    a, b = (demo.part("x", {}, arrays, 50, 200) for _ in range(2))
    assert (len(a.y_train), len(a.y_test)) == (50, 200)
    np.testing.assert_array_equal(a.y_train, b.y_train)
    np.testing.assert_array_equal(a.X_train[:, 0], a.y_train)
    assert a.y_train.max() > 500
    assert len(demo.part("x", {}, arrays, 5000, 200).y_train) == 1000


def test_a_fit_that_a_limit_ended_is_marked(capsys):
    row = {"data": "x", "n_train": 5, "solver": "s", "error_rate": 0.5, "fit_seconds": 1.0, "predict_seconds": 0.1}
    row |= {"n_vectors": 3, "n_kernel_evals": 7, "relative_gap": None}
    assert demo.printed({**row, "status": "time limit"})["ended by"] == "time limit"
    assert "ended by" not in demo.printed({**row, "status": "converged"})


def test_the_sets_of_the_demo_exist():
    for name in demo.SETS:
        find(name)
