"""Fits that are killed and go on from a checkpoint: the same bits as those that nothing interrupted."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

import slimsvm
from block_rows_cases import in_blocks
from slimsvm import SVC, SVR, Checkpoint, LowRank, Refine, modelfile
from slimsvm.parts.descent.first_basis import SampleSettings

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, FEW = 6_000, Refine(8, epochs=4)
CASES = {
    "sweeps of Refine": lambda: SVC(solver=FEW, random_state=0),
    "directions": lambda: SVC(solver=Refine(8, epochs=4, directions=2), random_state=0),
    "metric": lambda: SVC(solver=FEW, gamma="learn", random_state=0),
    "steps of LowRank": lambda: SVC(solver=LowRank(12), C=10.0, random_state=0),
    "free intercept": lambda: SVC(solver=LowRank(12), intercept="free", C=1e5, random_state=0),
    "classes": lambda: SVC(solver=FEW, random_state=np.random.RandomState(3)),
    "regression": lambda: SVR(solver=FEW, random_state=0),
    "sparse": lambda: SVC(solver=FEW, random_state=0),
}


def rows():
    X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
    return X, X[:, 0] * X[:, 1] + 0.3 * np.random.default_rng(1).normal(size=N)


def data_of(name):
    X, y = rows()
    if name == "classes":
        return in_blocks(X, 5), np.digitize(y, [-0.5, 0.5])
    X = in_blocks(sp.csr_array(X) if name == "sparse" else X, 5)
    return X, y if name == "regression" else np.where(y > 0, "in", "out")


class Killed(BaseException):
    pass


class Kill:
    """Ends the fit after the k-th time that there was something to write."""

    def __init__(self, at, end):
        self.left, self.end = at, end

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context):
        self.left -= context.task_name in ("iteration", "step")
        if self.left == 0:
            self.end()


def raise_killed():
    raise Killed


def writings(estimator, X, y):
    """How many times there is something to write."""
    counting = Kill(10**9, raise_killed)
    estimator.set_callbacks(counting).fit(X, y)
    return 10**9 - counting.left


def bits_of(estimator):
    model = estimator.model_
    basis = model.basis.toarray() if sp.issparse(model.basis) else model.basis
    values = (basis, model.coef, model.intercept, np.float64(estimator.objective_), np.asarray(model.kernel.gamma))
    return [np.asarray(value).tobytes() for value in values]


@pytest.fixture(autouse=True)
def a_sample(settings_of_estimators):
    """Vectors are learned from a sample, as of very many rows."""
    settings_of_estimators(SampleSettings(most_rows=4_000))


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_wherever_a_fit_was_cut_off(name, tmp_path):
    X, y = data_of(name)
    whole, path = CASES[name]().fit(X, y), tmp_path / "run.slim"
    n = writings(CASES[name](), X, y)
    for at in sorted({1, 2, n // 2, n - 2, n - 1} - {0, -1}):
        with pytest.raises(Killed):
            CASES[name]().set_callbacks(Checkpoint(path), Kill(at, raise_killed)).fit(X, y)
        cut = slimsvm.load(path)
        assert cut.predict(X).shape == (N,)
        X, y = data_of(name)
        assert bits_of(cut.set_params(warm_start=True).fit(X, y)) == bits_of(whole), at


def test_vectors_of_all_rows_and_cut_off_twice(tmp_path, settings_of_estimators):
    settings_of_estimators()
    X, y = data_of("")
    make, path = CASES["sweeps of Refine"], tmp_path / "run.slim"
    whole, n = make().fit(X, y), writings(make(), X, y)
    estimator = make()
    for at in (n // 3, n // 3, n // 3):
        with pytest.raises(Killed):
            estimator.set_callbacks(Checkpoint(path), Kill(at, raise_killed)).fit(X, y)
        estimator = slimsvm.load(path).set_params(warm_start=True)
    assert bits_of(estimator.fit(X, y)) == bits_of(whole)


CHILD = """
import os, signal, sys
from test_resuming import *
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
KernelEstimator._settings = (SampleSettings(most_rows=4_000),)
name, path, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
X, y = data_of(name)
estimator = slimsvm.load(path).set_params(warm_start=True) if os.path.exists(path) else CASES[name]()
estimator.set_callbacks(Checkpoint(path), Kill(at, lambda: os.kill(os.getpid(), signal.SIGKILL))).fit(X, y)
estimator.set_params(warm_start=False).save(path + ".end")
"""


def run_child(name, path, at=0):
    folders = os.pathsep.join([os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))])
    environment = os.environ | {"PYTHONPATH": folders + os.pathsep + os.environ.get("PYTHONPATH", "")}
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", CHILD, name, str(path), str(at)], env=environment)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on this system")
@pytest.mark.parametrize("name", ["sweeps of Refine", "steps of LowRank"])
def test_processes_that_are_killed(name, tmp_path):
    X, y = data_of(name)
    whole, path = CASES[name]().fit(X, y), tmp_path / "run.slim"
    n = writings(CASES[name](), X, y)
    assert run_child(name, path, n // 2).wait() == -signal.SIGKILL
    child, before = run_child(name, path), path.stat().st_mtime_ns
    while child.poll() is None and path.stat().st_mtime_ns == before:  # in the middle of something
        time.sleep(0.001)
    child.kill()
    assert child.wait() in (0, -signal.SIGKILL)
    slimsvm.load(path)  # whole
    assert run_child(name, path).wait() == 0
    assert bits_of(slimsvm.load(f"{path}.end")) == bits_of(whole)


def cut_off(path, X, y, at=2):
    with pytest.raises(Killed):
        CASES["steps of LowRank"]().set_callbacks(Checkpoint(path), Kill(at, raise_killed)).fit(X, y)
    return slimsvm.load(path).set_params(warm_start=True)


def test_what_has_changed_is_named(tmp_path, settings_of_estimators):
    X, y = data_of("")
    n = writings(CASES["steps of LowRank"](), X, y)
    cut = cut_off(tmp_path / "run.slim", X, y, n - 1)
    plain, others = rows()[0], y.copy()
    others[:3] = ["out", "in", "out"]
    for changed, message in (
        ((plain[:-1], y[:-1]), f"number of rows: found {N - 1}, was {N}"),
        ((plain[::-1], y), "rows: these are others"),
        ((plain, others), "labels: these are others"),
        ((plain, y, np.r_[2.0, np.ones(N - 1)]), "weights: these are others"),
    ):
        with pytest.raises(ValueError, match=f"a fit that was cut off goes on with the same rows.*; {message}"):
            cut.fit(*changed)
    with pytest.raises(ValueError, match=r"C: found 3\.0, was 10\.0"):
        cut.set_params(C=3.0).fit(X, y)
    with pytest.raises(ValueError, match=r"solver: found LowRank\(.*max_basis=11.*was LowRank\(.*max_basis=12"):
        cut.set_params(C=10.0, solver__max_basis=11).fit(X, y)
    settings_of_estimators()
    with pytest.raises(ValueError, match=r"settings: found None, was \(SampleSettings\(most_rows=4000"):
        cut.set_params(solver__max_basis=12).fit(X, y)


def test_a_checkpoint_of_an_earlier_version_goes_on(tmp_path):
    X, y = data_of("")
    path = tmp_path / "run.slim"
    cut_off(path, X, y)
    header, arrays = modelfile.read_model(path)
    header["halfway"] = header.pop("run_state") | {"known": "Halfway"}
    modelfile.write_model(path, header, arrays)
    again = slimsvm.load(path).set_params(warm_start=True).fit(X, y)
    assert bits_of(again) == bits_of(CASES["steps of LowRank"]().fit(X, y))


def test_a_checkpoint_is_no_larger_than_it_says(tmp_path):
    X, y = data_of("")
    n = writings(CASES["sweeps of Refine"](), X, y)
    path = tmp_path / "run.slim"
    for at, bytes_of_a_row in ((1, 0), (n - 1, 8)):
        with pytest.raises(Killed):
            CASES["sweeps of Refine"]().set_callbacks(Checkpoint(path), Kill(at, raise_killed)).fit(X, y)
        assert 0 <= os.path.getsize(path) - bytes_of_a_row * N < 20_000
    header, arrays = modelfile.read_model(path)
    assert header["run_state"]["known"] == "RunState"
    assert max(array.size for array in arrays.values()) == N
