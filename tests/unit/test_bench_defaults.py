"""The benchmark of the defaults beside scikit-learn's."""

import json

from benchmarks.command_line import main


def test_every_machine_has_its_line(tmp_path, capsys):
    sets = ["moons", "friedman 1"]
    assert main(["defaults", "--sets", *sets, "--max-rows", "400", "--output", str(tmp_path)]) == 0
    lines = json.loads((tmp_path / "defaults.json").read_text())["table"]
    machines = [(line["set"], line["machine"]) for line in lines]
    theirs = ["scikit-learn, tol=1e-6", "scikit-learn"]
    classes = [("moons", name) for name in (*theirs, "SVC()", 'SVC(max_basis="auto")')]
    assert machines == [*classes, *(("friedman 1", name) for name in (*theirs, "SVR()"))]
    by_name = {(line["set"], line["machine"]): line for line in lines}
    assert by_name["moons", "scikit-learn"]["ratio"] == by_name["friedman 1", "scikit-learn"]["ratio"] == 1.0
    assert by_name["moons", "scikit-learn, tol=1e-6"]["other"] == by_name["moons", "SVC()"]["other"] == 0
    assert by_name["moons", 'SVC(max_basis="auto")']["of_exact"] > 0
    assert by_name["friedman 1", "SVR()"]["R2_apart"] < 1e-3
    assert "of_exact" in capsys.readouterr().out
