"""The benchmark of probabilities beside scikit-learn's, and the sets of packages that it reads."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.command_line import main
from benchmarks.shared import package_sets


@pytest.fixture
def made_up(monkeypatch):
    """A settling set of numbers, a category and gaps, a copy of it, and another one."""

    def table(seed):
        rng = np.random.default_rng(seed)
        size, color = rng.normal(size=300), rng.choice(["red", "blue", "green"], 300)
        y = np.where(size + (color == "red") + 0.5 * rng.normal(size=300) > 0, "b", "a")
        y[:3] = "rare"
        gaps = pd.Series(size).mask(rng.random(300) < 0.1)
        names = [f"row {i}" for i in range(300)]
        return pd.DataFrame({"name": names, "size": size, "gaps": gaps, "color": color, "y": y})

    report = {"copy": lambda: table(0).sample(frac=1.0, random_state=0), "other": lambda: table(1)}
    monkeypatch.setattr(package_sets, "SETTLE", {"own": lambda: table(0)})
    monkeypatch.setitem(package_sets.SIDES, "settle", package_sets.SETTLE)
    monkeypatch.setitem(package_sets.SIDES, "report", report)
    package_sets.rows_of.cache_clear()
    yield
    package_sets.rows_of.cache_clear()


def test_tables_become_numbers(made_up):
    X, y = package_sets.read("settle", "own")
    # Names and the rare class are gone; gaps have the median, and a column that says so; each color is a column.
    assert X.shape == (297, 6)
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(np.unique(y), [0, 1])
    assert set(np.unique(X[:, 2])) == {0.0, 1.0}
    np.testing.assert_array_equal(X[:, 3:].sum(axis=1), 1.0)
    assert package_sets.copies("copy") == ["own"]
    assert package_sets.copies("other") == []


def test_heads_spaces_and_gaps_of_files(tmp_path):
    (tmp_path / "a.dat").write_text("@relation a\n% words\n1, <null>, x\n 2,3 ,y\n\n")
    assert package_sets.lines_of(tmp_path / "a.dat").astype(object).values.tolist()[1] == ["2", "3", "y"]
    assert package_sets.lines_of(tmp_path / "a.dat").isna().sum().sum() == 1
    (tmp_path / "c.dat").write_text("@attribute a {1, 2}\n@attribute b real [0, 1]\n@attribute y {u, v}\n1, 0.5, u\n")
    assert package_sets.lines_of(tmp_path / "c.dat").attrs["categories"] == [0, 2]
    (tmp_path / "b.dat").write_text("A_B  0.1  0.2  cp\nC_D  0.3  0.4  im\n")
    assert package_sets.lines_of(tmp_path / "b.dat").shape == (2, 4)


def test_every_machine_has_its_line(made_up, tmp_path, capsys):
    argv = ["probabilities", "--side", "report", "--splits", "1", "--max-rows", "150", "--output", str(tmp_path)]
    assert main(argv) == 0
    found = json.loads((tmp_path / "probabilities.json").read_text())
    assert found["copies"] == {"copy": ["own"]}
    assert [line["set"] for line in found["sets"]] == ["other"] * 3
    assert all(0.1 < line["log_loss"] < 0.7 for line in found["sets"])
    ours = found["table"][0]
    assert ours["machine"] == "SVC(probability=True)"
    assert ours["log_loss_ratio"] == ours["brier_ratio"] == 1.0
    assert [line["log_loss_rank"] for line in found["table"][:3]] != [1.0, 1.0, 1.0]
    assert "time_of_plain" in capsys.readouterr().out
