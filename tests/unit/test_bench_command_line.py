"""``python -m benchmarks``: names, help, errors, what is printed and written."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest

import slimsvm
from benchmarks.command_line import main
from benchmarks.shared import registry
from benchmarks.shared.registry import BENCHES


@pytest.fixture
def toy_bench(monkeypatch):
    """A benchmark that needs no time."""

    def add_arguments(parser):
        parser.add_argument("--n", type=int, default=3)

    def run(args):
        return {"table": [{"n": n, "square": n * n} for n in range(args.n)], "note": np.float64(0.5)}

    def plot(result, folder):
        (folder / "toy.png").write_bytes(b"")
        return [folder / "toy.png"]

    module = types.SimpleNamespace(__doc__="A toy.", add_arguments=add_arguments, run=run, plot=plot)
    monkeypatch.setitem(sys.modules, "toy_bench", module)
    monkeypatch.setitem(BENCHES, "toy", registry.Bench("toy_bench", "squares"))
    return module


def test_bench_prints_a_table_and_writes_everything(capsys, tmp_path, toy_bench):
    assert main(["toy", "--n", "2", "--output", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert out == "n  square\n0       0\n1       1\n"
    assert [line.split(": ")[1] for line in err.splitlines()] == ["written"] * 2
    record = json.loads((tmp_path / "out" / "toy.json").read_text())
    assert record["table"] == [{"n": 0, "square": 0}, {"n": 1, "square": 1}]
    assert (record["bench"], record["note"], record["options"]["n"]) == ("toy", 0.5, 2)
    assert record["machine"]["slimsvm"] == slimsvm.__version__
    assert (tmp_path / "out" / "toy.png").exists()
    assert main(["toy", "--output", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["table"]) == 3


def test_bench_without_matplotlib_says_so(capsys, tmp_path, toy_bench, monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert main(["toy", "--output", str(tmp_path)]) == 0
    assert "no plots: matplotlib is not installed" in capsys.readouterr().err
    assert not (tmp_path / "toy.png").exists()


@pytest.mark.parametrize("name", BENCHES)
def test_every_benchmark_is_there_and_has_help(capsys, name):
    assert main([name, "--help"]) == 0
    assert f"usage: python -m benchmarks {name}" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["x"], ["exact", "--nothing"]])
def test_wrong_usage(capsys, argv):
    assert main(argv) == 2
    assert "usage: python -m benchmarks" in capsys.readouterr().err


def test_failed_work_is_one_sentence(capsys, tmp_path, toy_bench):
    toy_bench.run = lambda args: 1 / 0
    assert main(["toy", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_package_is_the_program(pytestconfig):
    """From the root of a checkout, where it lies."""
    command = [sys.executable, "-m", "benchmarks", "--help"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=pytestconfig.rootpath).stdout
    assert all(name in out for name in BENCHES)
