"""``python -m benchmarks blocks``: the same model from memory and Parquet; what is measured is kept, and what fails."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest

from benchmarks.blocks import command, fits
from benchmarks.blocks.sources import file_of
from benchmarks.command_line import main

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def in_this_process(call, **options):
    with redirect_stdout(io.StringIO()) as said:
        fits.main(call[-1])
    return subprocess.CompletedProcess(call, 0, said.getvalue(), "")


def test_models_are_the_same_and_what_is_done_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(command.subprocess, "run", in_this_process)
    monkeypatch.setitem(fits.FITS, "dask", fits.ours)  # starts processes of its own
    argv = ["blocks", "--rows", "3000", "--max-basis", "5", "--parts", "files"]
    argv += ["--output", str(tmp_path), "--folder", str(tmp_path / "sets")]
    assert main(argv) == 0
    first = json.loads((tmp_path / "blocks.json").read_text())["records"]
    assert [record["fit"] for record in first] == ["memory", "parquet", "dask"] * 2
    assert {record["status"] for record in first} == {"done"}
    assert len({record["model"] for record in first}) == len({record["file"] for record in first}) == 1
    assert all(record["peak_bytes"] > 0 and record["test_error"] < 0.5 for record in first)
    assert main(argv) == 0
    assert json.loads((tmp_path / "blocks.json").read_text())["records"] == first


def test_dask_arrays_have_the_rows_of_the_file(tmp_path):
    path = str(file_of("checkerboard", 1_000, tmp_path))
    X, y = fits.in_memory(path)
    lazy = fits.lazy(path)
    np.testing.assert_array_equal(lazy[0].compute(scheduler="synchronous"), X)
    np.testing.assert_array_equal(lazy[1].compute(scheduler="synchronous"), y)


def test_what_workers_import_is_little():
    code = "import sys, benchmarks.blocks.groups; print({'slimsvm', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_fit_that_fails_is_a_record(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "file_of", lambda *of: tmp_path / "none")
    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nOSError: no such file")
    monkeypatch.setattr(command.subprocess, "run", lambda *call, **options: failed)
    assert main(["blocks", "--quick", "--parts", "files", "--output", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "blocks.json").read_text())["records"][0]
    assert (record["status"], record["said"]) == ("failed", "OSError: no such file")
