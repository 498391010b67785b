"""The benchmark of sets, intervals and p-values."""

import json

import numpy as np
import pytest

from benchmarks import guarantees
from benchmarks.command_line import main


def made_up_sets(side, wanted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    sets = [
        ("three", "classes", X, np.digitize(X[:, 0] + 0.5 * rng.normal(size=300), [-0.5, 0.5])),
        ("line", "numbers", X, 100.0 * (X[:, 0] + 0.5 * rng.normal(size=300))),
        ("cloud", "one class", X, np.zeros(300)),
    ]
    return [each for each in sets if wanted is None or each[0] in wanted]


def run(tmp_path, *arguments):
    assert main(["guarantees", "--splits", "3", *arguments, "--output", str(tmp_path)]) == 0
    return {line["set"]: line for line in json.loads((tmp_path / "guarantees.json").read_text())["table"]}


def test_shares_are_counted_without_a_peer(tmp_path, monkeypatch):
    monkeypatch.setattr(guarantees, "sets_of", made_up_sets)
    monkeypatch.setattr(guarantees, "find_spec", lambda name: "here")
    lines = run(tmp_path, "--sets", "cloud", "--alpha", "0.2")
    assert 0.6 < lines["cloud"]["right"] < 0.95
    assert lines["all 1"]["right"] == lines["cloud"]["right"]


def test_sizes_are_beside_mapies(tmp_path, monkeypatch):
    pytest.importorskip("mapie")
    monkeypatch.setattr(guarantees, "sets_of", made_up_sets)
    lines = run(tmp_path)
    assert 0.7 < lines["three"]["ratio"] < 1.3
    assert lines["line"]["ratio"] == pytest.approx(1.0, abs=0.01)  # the same machine, and the same rows held out
    assert lines["line"]["size"] < 4.0  # in standard deviations


@pytest.mark.parametrize(("file", "head"), [("s.dat", "@relation s\n#@data\n"), ("s.csv", "a;b;c;y\n")])
def test_a_table_with_categories(file, head, tmp_path, monkeypatch):
    (tmp_path / file).write_text(f"{head}1, red, 3, 0.5\n 2, blue, 5, 1.5\n3; red; 7; 2\n4 blue 7 2\n")
    monkeypatch.setattr(guarantees, "file_of", lambda package, file: tmp_path / file)
    X, y = guarantees.numbers(file)
    np.testing.assert_array_equal(X, [[1, 0, 1, 3], [2, 1, 0, 5], [3, 0, 1, 7], [4, 1, 0, 7]])
    assert y.tolist() == [0.5, 1.5, 2.0, 2.0]


def test_without_mapie_the_error_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(guarantees, "find_spec", lambda name: None)
    assert main(["guarantees", "--output", str(tmp_path)]) != 0
    assert "pip install mapie" in capsys.readouterr().err
