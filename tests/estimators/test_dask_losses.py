"""`slimsvm.dask` where workers or the scheduler are lost, or are not alike."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

import slimsvm
from slimsvm.core import isa

pytest.importorskip("distributed")
from distributed import Client, LocalCluster

import dask_cases
from dask_cases import SETTINGS, bits, dask_array, fitted
from slimsvm.dask import SVC

# Clusters leave sockets to the garbage collector, those above all whose other end was killed.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed (socket|transport|event loop):ResourceWarning")
small_parts, data = dask_cases.small_parts, dask_cases.data


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


def test_a_worker_with_other_instructions_is_named(cluster, data):
    X, y = data
    lowest = os.environ | {"SLIMSVM_ISA": "baseline"}
    of_worker = ["worker", cluster.scheduler_address, "--no-nanny", "--no-dashboard", "--nthreads", "1"]
    with Client(cluster) as client, subprocess.Popen([sys.executable, "-m", "dask", *of_worker], env=lowest) as worker:
        try:
            n_workers = len(client.scheduler_info()["workers"])
            client.wait_for_workers(n_workers + 1, timeout=60)
            found = client.run(isa)
            others = [address for address, own in found.items() if own != isa()]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted(SVC, dask_array(X, 20), y)
            said = [str(warning.message) for warning in caught if "instruction set" in str(warning.message)]
            assert len(said) == bool(others)
            assert all(f"baseline on {address}" in said[0] and "SLIMSVM_ISA" in said[0] for address in others)
        finally:
            worker.terminate()


ALIKE = """
import os, sys, warnings
import pytest
from dask_cases import bits, dask_array, fitted, in_small_parts, rows_and_labels

if __name__ == "__main__":
    import slimsvm
    from distributed import Client, LocalCluster
    from slimsvm.core import isa
    from slimsvm.dask import SVC

    in_small_parts(pytest.MonkeyPatch())
    X, y = rows_and_labels()
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        assert set(client.run(isa).values()) == {isa()} == {os.environ["SLIMSVM_ISA"]}
        warnings.simplefilter("error", UserWarning)
        assert bits(fitted(SVC, dask_array(X, 7), y)) == bits(fitted(slimsvm.SVC, X, y))
"""


@pytest.mark.parametrize("name", ["baseline", "avx2"])
def test_the_same_instructions_everywhere_when_asked_for(name):
    """Whatever the processors have: client and workers take what SLIMSVM_ISA says, to the bits of a local fit."""
    environment = os.environ | {"SLIMSVM_ISA": name, "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    known = [sys.executable, "-c", "from slimsvm.core import isa; isa()"]
    if subprocess.run(known, env=environment, capture_output=True, check=False).returncode:
        pytest.skip(f"this processor has no {name}")
    done = subprocess.run([sys.executable, "-c", ALIKE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_killed_worker_changes_nothing(cluster, data):
    X, y = data
    expected = bits(fitted(slimsvm.SVC, X, y))
    with Client(cluster):
        for i, delay in enumerate((0.05, 0.4)):
            fit: dict = {}
            run = threading.Thread(target=lambda fit=fit: fit.update(bits=bits(fitted(SVC, dask_array(X, 7), y))))
            run.start()
            time.sleep(delay)
            os.kill(list(cluster.workers.values())[i].pid, signal.SIGKILL)
            run.join(120)
            assert fit["bits"] == expected


SCHEDULER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    options = {'processes': False, 'protocol': 'tcp://', 'dashboard_address': ':0', 'scheduler_port': int(sys.argv[1])}
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, **options)
    print(cluster.scheduler_address, flush=True)
    time.sleep(300)
"""


def scheduler(port):
    command = [sys.executable, "-W", "ignore", "-c", SCHEDULER, str(port)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("then", ["nothing", "another"])
def test_a_scheduler_that_is_gone_is_one_clear_error(then, data):
    X, y = data
    processes, client = [scheduler(0)], None
    try:
        address = processes[0].stdout.readline().strip()
        client = Client(address, set_as_default=False, timeout=60)
        clf = SVC(client=client, **SETTINGS)
        failed: list[Exception] = []
        begun = threading.Event()

        def fit():
            try:
                while True:  # until there is no scheduler
                    clf.fit(dask_array(X, 5), y)
                    begun.set()
            except Exception as error:
                failed.append(error)

        run = threading.Thread(target=fit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run.start()
            begun.wait(60)
            processes[0].kill()
            if then == "another":
                processes[0].wait()
                processes.append(scheduler(address.rpartition(":")[2]))
            run.join(60)
        assert not run.is_alive()
        assert isinstance(failed[0], ConnectionError)
        assert "the Dask scheduler" in str(failed[0])
    finally:
        for process in processes:
            process.kill()
            process.stdout.close()
            process.wait()
        if client is not None:
            client.close(timeout=1)
