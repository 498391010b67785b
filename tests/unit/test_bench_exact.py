import json
import sys
from argparse import Namespace
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.command_line import main
from benchmarks.exact import command, other_packages


def run(folder, *options):
    assert main(["exact", "--quick", "--output", str(folder), *options]) == 0
    return json.loads((folder / "exact.json").read_text())


def test_both_solvers_come_to_the_same_machine(tmp_path, capsys):
    result = run(tmp_path, "--threads", "1", "2")
    found = {(r["method"], r["threads"]): r for r in result["records"]}
    theirs = found["scikit-learn", 1]
    for threads in (1, 2):
        ours = found["slimsvm", threads]
        assert ours["dual"] == pytest.approx(theirs["dual"], rel=1e-5)
        assert ours["same"] > 0.99
        assert ours["seconds"] > 0
    assert found["slimsvm", 1]["dual"] == found["slimsvm", 2]["dual"]
    assert theirs["same"] == 1.0
    assert (tmp_path / "exact.png").stat().st_size > 0
    assert "below best" in capsys.readouterr().out


def test_absent_comparators_are_said_to_be(tmp_path):
    """The other packages' interpreter has none of them."""
    bare = tmp_path / "bare.py"
    bare.write_text(
        "import runpy, sys\n"
        "sys.modules |= dict.fromkeys(['sklearnex', 'daal4py', 'thundersvm', 'libsvm'])\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {bare} "$@"\n')
    python.chmod(0o755)
    result = run(tmp_path, "--threads", "1", "--peers-python", str(python))
    assert {r["method"]: r["absent"] for r in result["records"]} == {
        "scikit-learn": None, "libsvm-official": "not installed", "scikit-learn-intelex": "not installed",
        "thundersvm": "not installed", "slimsvm": None,
    }  # fmt: skip
    assert [line["seconds"] for line in result["table"]].count("not installed") == 3


@pytest.mark.parametrize(("program", "said"), [("echo 1>&2 no memory; exit 1", "failed: no memory"), ("sleep 9", None)])
def test_packages_that_fail_or_take_too_long_are_reported(program, said, tmp_path):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    options = (
        "--methods",
        "thundersvm",
        "--threads",
        "1",
        "--peers-python",
        str(python),
        "--limit",
        "0.2" if said is None else "60",
    )
    assert run(tmp_path, *options)["records"][0]["absent"] == (said or "more than 0.2 s")


def test_slow_ones_are_left_out_where_rows_are_many(tmp_path):
    result = run(tmp_path, "--methods", "scikit-learn", "--slow-max-n", "999")
    assert result["records"][0]["absent"] == "more than 999 rows"


def test_libsvms_interface(monkeypatch):
    """What it is asked for, and what is made of its answers; the package itself may be absent."""
    X, y = np.arange(6.0).reshape(3, 2), np.array([-1, 1, 1])
    asked = []

    class Model:
        get_sv_indices = staticmethod(lambda: [1, 3])
        get_sv_coef = staticmethod(lambda: [(-0.5,), (0.5,)])

    util = ModuleType("libsvm.svmutil")
    util.svm_train = lambda labels, rows, options: asked.append(options) or Model()
    util.svm_predict = lambda labels, rows, model, options: ([1.0] * len(rows), None, None)
    package = ModuleType("libsvm")
    package.svmutil = util
    monkeypatch.setitem(sys.modules, "libsvm", package)
    monkeypatch.setitem(sys.modules, "libsvm.svmutil", util)
    clf = other_packages.PEERS["libsvm-official"](2.0, 0.5, 1).fit(X, y)
    assert asked[0].startswith("-t 2 -c 2.0 -g 0.5 -e 0.001")
    assert clf.support_.tolist() == [0, 2]
    np.testing.assert_array_equal(clf.dual_coef_, [[-0.5, 0.5]])
    assert clf.predict(X).tolist() == [1.0, 1.0, 1.0]


def test_dual_objective_as_written():
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(20, 3)), rng.normal(size=20)
    assert command.dual_objective(X, v, 0.3) == pytest.approx(
        np.abs(v).sum() - 0.5 * v @ rbf_kernel(X, gamma=0.3) @ v, rel=1e-9
    )


def test_sparse_rows_go_to_every_solver(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    rows = other_packages.narrow(wide)
    assert (rows.indices.dtype, rows.indptr.dtype) == (np.int32, np.int32)
    np.testing.assert_array_equal(rows.toarray(), X)
    problem = command.Problem("sparse", rows, y, rows, y, 1.0, 0.5)
    args = Namespace(peers_python=sys.executable, limit=60.0)
    duals = [
        command.figures_of(command.measure(name, problem, 1, args), problem)["dual"]
        for name in ("scikit-learn", "slimsvm")
    ]
    assert duals[1] == pytest.approx(duals[0], rel=1e-4)
