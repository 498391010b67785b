"""A command never writes onto what it reads, under whatever name, and nothing is written before that is known."""

import os

import numpy as np
import pytest

from slimsvm import SVC
from slimsvm.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with data and a model of them."""
    X = np.random.default_rng(0).normal(size=(40, 2)).round(3)
    y = (X[:, 0] > 0).astype(int)
    lines = "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X.tolist(), y.tolist()))
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("u,v,label\n" + lines)
    SVC().fit(X, y).save(tmp_path / "m.slim")
    (tmp_path / "folder").mkdir()
    os.link(tmp_path / "a.csv", tmp_path / "hard.csv")
    os.symlink(tmp_path / "a.csv", tmp_path / "soft.csv")
    os.symlink(tmp_path, tmp_path / "round")
    os.link(tmp_path / "m.slim", tmp_path / "hard.slim")
    os.symlink("m.slim", tmp_path / "soft.h")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SPELLINGS = ["a.csv", "./a.csv", "folder/../a.csv", "hard.csv", "soft.csv", "round/a.csv"]
CHECKPOINT = "--solver refine --max-basis 5 --checkpoint"


@pytest.mark.parametrize(
    "command",
    [
        *(f"train a.csv {name}" for name in SPELLINGS),
        *(f"predict m.slim a.csv --output {name}" for name in [*SPELLINGS, "m.slim", "hard.slim", "round/m.slim"]),
        "train a.csv b.csv --test b.csv",
        "train soft.csv a.csv",
        "train a.csv new.slim --test b.csv --checkpoint b.csv",
        f"train a.csv new.slim {CHECKPOINT} a.csv",
        f"train a.csv new.slim {CHECKPOINT} hard.csv",
        f"train a.csv m.slim {CHECKPOINT} m.slim",
        f"train a.csv m.slim {CHECKPOINT} hard.slim",
        f"train a.csv new.slim {CHECKPOINT} new.slim",
        f"train a.csv new.slim {CHECKPOINT} folder/../new.slim",
        "train ?.csv b.csv",
        "export m.slim --to json --output m.slim",
        "export m.slim --to json --output hard.slim",
        "export m.slim --to c --output soft.h",
        "export m.slim --to c --rows a.csv --output a.csv",
        "export m.slim --to c --rows a.csv --output hard.csv",
    ],
)
def test_no_output_is_an_input(capsys, here, command):
    before = contents(here)
    assert main(command.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "would overwrite an input" in err or "are the same output file" in err
    assert err.count("\n") == 1
    assert contents(here) == before


def test_files_of_folders_and_of_sets(capsys, here, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(
        pyarrow.table({"u": [0.0, 1.0, 2.0, 3.0], "label": [0, 1, 0, 1]}), here / "folder" / "p.parquet"
    )
    monkeypatch.setenv("SLIMSVM_DATA", str(here / "folder"))
    (here / "folder" / "mnist.npz").write_bytes(b"PK and so on")
    before = contents(here)
    for command in (
        "train folder folder/p.parquet",
        "train folder/*.parquet folder/p.parquet",
        "train mnist folder/mnist.npz",
        "demo --web folder/mnist.npz",
    ):
        assert main(command.split()) == 1
        assert "would overwrite an input" in capsys.readouterr().err
        assert contents(here) == before


def test_other_files_are_written(capsys, here):
    (here / "out.txt").write_text("older")
    for command in (
        "predict m.slim a.csv --output out.txt --quiet",
        "train a.csv m.slim --test b.csv --quiet",
        "export m.slim --to json --output m.json",
    ):
        assert main(command.split()) == 0
    assert len((here / "out.txt").read_text().split()) == 40
    capsys.readouterr()
