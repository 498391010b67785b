"""The benchmark of data that nobody scaled."""

import json

from benchmarks.command_line import main


def test_both_machines_are_told_apart_by_set(tmp_path, capsys):
    assert main(["unscaled", "--quick", "--fits", "1", "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "unscaled.json").read_text())
    (line,) = found["table"]
    assert (line["set"], line["fits"], line["converged"], line["sklearn_converged"]) == ("wine", 1, 1, 1)
    assert line["score_below"] <= 0.005
    assert line["seconds_ratio"] == round(found["records"][0]["seconds"] / found["records"][0]["sklearn_seconds"], 3)
    assert "largest_ratio" in capsys.readouterr().out


def test_fits_that_the_limit_ends_are_not_compared(tmp_path):
    options = ["--sets", "diabetes", "--kernels", "linear", "--C", "1", "--limit", "1000", "--fits", "1"]
    assert main(["unscaled", *options, "--output", str(tmp_path)]) == 0
    (line,) = json.loads((tmp_path / "unscaled.json").read_text())["table"]
    assert (line["converged"], line["sklearn_converged"], line["seconds_ratio"]) == (1, 0, None)
