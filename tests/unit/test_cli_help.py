"""The command line: bench, help, printing."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest

import slimsvm
from slimsvm import ExactCuts
from slimsvm.cli import COMMANDS, bench, main
from slimsvm.cli.output import count, plain, size, table
from slimsvm.kernels import KERNELS
from slimsvm.solvers import SOLVERS


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
    monkeypatch.setitem(bench.BENCHES, "toy", bench.Bench("toy_bench", "squares"))
    return module


def test_bench_prints_a_table_and_writes_everything(capsys, tmp_path, toy_bench):
    assert main(["bench", "toy", "--n", "2", "--output", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert out == "n  square\n0       0\n1       1\n"
    assert [line.split(": ")[1] for line in err.splitlines()] == ["written"] * 2
    record = json.loads((tmp_path / "out" / "toy.json").read_text())
    assert record["table"] == [{"n": 0, "square": 0}, {"n": 1, "square": 1}]
    assert (record["bench"], record["note"], record["options"]["n"]) == ("toy", 0.5, 2)
    assert record["machine"]["slimsvm"] == slimsvm.__version__
    assert (tmp_path / "out" / "toy.png").exists()
    assert main(["bench", "toy", "--output", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["table"]) == 3


def test_bench_without_matplotlib_says_so(capsys, tmp_path, toy_bench, monkeypatch):
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    assert main(["bench", "toy", "--output", str(tmp_path)]) == 0
    assert "no plots: matplotlib is not installed" in capsys.readouterr().err
    assert not (tmp_path / "toy.png").exists()


# -- help and printing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys, command):
    assert main([command, "--help"]) == 0
    assert f"usage: slimsvm {command}" in capsys.readouterr().out


def test_help_of_train_names_every_kernel_and_every_solver_with_its_parameters(capsys):
    main(["train", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    for name in set(KERNELS) - {"callable"}:
        assert name in out
    for name, solver in SOLVERS.items():
        parameters = solver().get_params(deep=False)
        assert f"{name} {', '.join(f'{key}={value}' for key, value in parameters.items())}" in out


@pytest.mark.parametrize("name", bench.BENCHES)
def test_every_benchmark_is_there_and_has_help(capsys, name):
    assert main(["bench", name, "--help"]) == 0
    assert f"usage: slimsvm bench {name}" in capsys.readouterr().out


def test_help_of_bench_names_every_benchmark(capsys):
    main(["bench", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for name in bench.BENCHES)


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"slimsvm {slimsvm.__version__}\n"


def test_the_package_is_the_program():
    command = [sys.executable, "-m", "slimsvm", "--version"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"slimsvm {slimsvm.__version__}\n"
    )


def test_the_help_loads_nothing_that_takes_long():
    code = "import sys; from slimsvm.cli import main; main(['--help']); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numba", "numpy", "scipy", "sklearn", "matplotlib"} & set(out.splitlines()[-1].split())


def test_plain_has_no_value_that_json_lacks():
    value = {"a": np.float64("nan"), 1: (np.int64(2), np.inf), "c": np.arange(2), "d": None, "e": ExactCuts}
    assert plain(value) == {"a": None, "1": [2, None], "c": [0, 1], "d": None, "e": str(ExactCuts)}


def test_table_aligns_numbers_to_the_right():
    rows = [{"name": "a", "n": 5, "x": 0.12345}, {"name": "bcd", "n": None, "x": 123456.0, "more": "z"}]
    assert table(rows).splitlines() == [
        "name  n         x  more",
        "a     5    0.1235  -",
        "bcd   -  1.23e+05  z",
    ]


@pytest.mark.parametrize(("number", "text"), [(999_999, "999,999"), (1_000_000, "1e+06"), (6.82e7, "6.82e+07")])
def test_count(number, text):
    assert count(number) == text


@pytest.mark.parametrize(
    ("n", "text"), [(999, "999 bytes"), (1000, "1 kB"), (66_300, "66.3 kB"), (2_500_000, "2.5 MB")]
)
def test_size(n, text):
    assert size(n) == text
