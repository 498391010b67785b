"""The command line: help, printing."""

import subprocess
import sys

import numpy as np
import pytest

import slimsvm
from slimsvm import ExactCuts
from slimsvm.cli import COMMANDS, main
from slimsvm.cli.output import count, plain, size, table
from slimsvm.kernels import KERNELS
from slimsvm.solvers import SOLVERS


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


def test_bench_says_where_the_benchmarks_went(capsys):
    assert main(["bench", "exact", "--quick"]) == 2
    assert "`python -m benchmarks exact --quick`" in capsys.readouterr().err


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
