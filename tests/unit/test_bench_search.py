"""``python -m benchmarks search``: the table of a small run."""

import argparse

from benchmarks import search


def test_both_searches_find_the_same_scores(monkeypatch):
    monkeypatch.setattr(search, "GRID", {"C": [0.1, 1.0], "gamma": [0.01, 0.1]})
    parser = argparse.ArgumentParser()
    search.add_arguments(parser)
    arguments = [
        "--sets",
        "wine",
        "breast-cancer",
        "--threads",
        "1",
        "--drawn",
        "3",
        "--max-rows",
        "150",
        "--early-stopping",
    ]
    table = search.run(parser.parse_args(arguments))["table"]
    assert [row["set"] for row in table] == ["wine", "breast-cancer"]
    for row in table:
        assert row["rows"] == 150
        assert row["sklearn candidates"] == 3
        assert row["scores apart, points"] < 1.5
        assert row["best of theirs %"] > 90
        assert row["early stopping s"] > 0
