"""``python -m benchmarks scaling``: seconds of growing parts of a set, and their exponents."""

import json

from benchmarks.command_line import main
from benchmarks.peers.scaling import exponent


def test_every_size_is_measured_and_drawn(tmp_path):
    argv = ["scaling", "--sets", "checkerboard", "--sizes", "300", "600", "--output", str(tmp_path)]
    assert main([*argv, "--methods", "max_basis=10", "SVC on 500 rows"]) == 0
    found = json.loads((tmp_path / "scaling.json").read_text())
    assert [(record["rows"], record["status"]) for record in found["records"]] == [(300, "done")] * 2 + [
        (600, "done")
    ] * 2
    assert [line["method"] for line in found["table"]] == ["max_basis=10", "SVC on 500 rows"]
    assert (tmp_path / "scaling-checkerboard.png").stat().st_size > 1000


def test_a_method_that_reached_the_limit_is_not_fitted_to_more_rows(tmp_path):
    argv = ["scaling", "--sets", "checkerboard", "--sizes", "300", "600", "--output", str(tmp_path)]
    assert main([*argv, "--methods", "HistGradientBoosting, 300", "--max-seconds", "0.001"]) == 0
    assert [record["status"] for record in json.loads((tmp_path / "scaling.json").read_text())["records"]] == [
        "time limit"
    ]


def test_the_exponent_is_that_of_what_takes_long_enough():
    def record(rows, seconds, status="done"):
        return {"rows": rows, "seconds": seconds, "status": status}

    squares = [record(n, 1e-7 * n**2) for n in (1000, 2000, 4000, 8000)]
    assert exponent([record(500, 0.09), *squares]) == 2.0
    assert exponent(squares[:2]) is None
    assert exponent([*squares[:2], {"rows": 4000, "status": "time limit"}]) is None
