import json
import os
import subprocess
import sys
import time

import pytest

from benchmarks.command_line import main
from benchmarks.kernels import best_of_turns
from benchmarks.shared.timing import Elsewhere


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_bench_kernels_reports_every_shape(tmp_path, capsys, kernel):
    argv = [
        "kernels",
        "--kernel",
        kernel,
        "--features",
        "2",
        "8",
        "--points",
        "3",
        "64",
        "--threads",
        "1",
        "2",
    ]
    assert main([*argv, "--seconds", "1e-3", "--output", str(tmp_path)]) == 0
    table = json.loads((tmp_path / "kernels.json").read_text())["table"]
    assert [(row["d"], row["k"], row["threads"]) for row in table] == [
        (d, k, threads) for d in (2, 8) for k in (3, 64) for threads in (1, 2)
    ]
    for row in table:
        assert row["of limit"] == pytest.approx(row["limit ns"] / row["ns"], rel=0.1, abs=0.01)
        assert (row["threads"] == 1) <= (row["speed-up"] == 1)
    assert (tmp_path / "kernels.png").stat().st_size > 0
    assert "1e9 evals/s" in capsys.readouterr().out


def test_calls_take_turns():
    order = []
    best = best_of_turns([lambda: order.append("a"), lambda: order.append("b")], 0.0)
    assert order[:4] == ["a", "a", "b", "b"]
    assert all(seconds > 0 for seconds in best)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/stat")
def test_what_other_processes_do_is_seen():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        time.sleep(0.5)
        elsewhere = Elsewhere()
        time.sleep(0.5)
        cores = elsewhere.cores()
        other.kill()
    assert 0.3 <= cores <= os.cpu_count() + 0.1
