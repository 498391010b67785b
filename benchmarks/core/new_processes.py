"""What a user meets first, beside scikit-learn: new processes, the import, fits and predictions of small sets.

As a script, the process that is measured: ``new_processes.py import``, or ``sets ROUNDS``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

IRIS = "from sklearn.datasets import load_iris; X, y = load_iris(return_X_y=True); "
PROGRAMS = {
    "scikit-learn's SVC": IRIS + "from sklearn.svm import SVC; SVC().fit(X, y).predict(X)",
    "SVC()": IRIS + "import sklearn.svm; from slimsvm import SVC; SVC().fit(X, y).predict(X)",
    "SVC(max_basis=20)": IRIS + "import sklearn.svm; from slimsvm import SVC; SVC(max_basis=20).fit(X, y).predict(X)",
}
SETS = ("iris", "wine", "breast_cancer", "digits")
# Seconds that a turn of one call on a small set takes at least.
TURN_SECONDS = 0.05


def run(python: str, rounds: int) -> list[dict[str, Any]]:
    """Everything, as rows of a table; medians of turns.

    Returns
    -------
    list of dict
        ``what``, ``slimsvm ms``, ``scikit-learn ms``, ``more ms`` (how much longer), ``ratio`` (slimsvm's part of
        scikit-learn's).
    """
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode as an installation has it, which may be read-only; the first turns write it.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        start = partial(subprocess.run, check=True, env=environment | {"PYTHONPYCACHEPREFIX": folder})
        parts = (rows(start, python, rounds) for rows in (new_process_rows, import_rows, set_rows))
        return [row for part in parts for row in part]


def line(what: str, ours: float, theirs: float) -> dict[str, Any]:
    """Seconds as a row of the table."""
    return {
        "what": what, "slimsvm ms": round(1e3 * ours, 3), "scikit-learn ms": round(1e3 * theirs, 3),
        "more ms": round(1e3 * (ours - theirs), 3), "ratio": round(ours / theirs, 3),
    }  # fmt: skip


def new_process_rows(start: Callable[..., Any], python: str, rounds: int) -> list[dict[str, Any]]:
    """Wall time of whole processes; the first of each, which may write bytecode, does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for k in range(rounds + 1):
        for name, program in PROGRAMS.items():
            begun = time.perf_counter()
            start([python, "-W", "ignore", "-c", program])
            if k:
                seconds[name].append(time.perf_counter() - begun)
    theirs, *ours = (statistics.median(each) for each in seconds.values())
    return [
        line(f"new process, iris, {name}", mine, theirs) for name, mine in zip(list(PROGRAMS)[1:], ours, strict=True)
    ]


def import_rows(start: Callable[..., Any], python: str, rounds: int) -> list[dict[str, Any]]:
    """`from slimsvm import SVC` after `import sklearn.svm`, and the latter."""
    pairs = [answer(start, python, "import") for _ in range(rounds + 1)][1:]
    ours, theirs = (statistics.median(pair[key] for pair in pairs) for key in ("ours", "theirs"))
    return [line("import of SVC after sklearn.svm, and that", ours, theirs)]


def set_rows(start: Callable[..., Any], python: str, rounds: int) -> list[dict[str, Any]]:
    """Fits and predictions of `SVC(solver="exact")` in one process."""
    return [line(each["what"], each["ours"], each["theirs"]) for each in answer(start, python, "sets", str(rounds))]


def answer(start: Callable[..., Any], python: str, *arguments: str) -> Any:
    """What this script prints in a new process."""
    done = start([python, __file__, *arguments], capture_output=True, text=True)
    return json.loads(done.stdout)


# -- in the new process -----------------------------------------------------------------------------------------------


def import_seconds() -> dict[str, float]:
    """Seconds of both imports."""
    begun = time.perf_counter()
    import sklearn.svm  # noqa: F401

    middle = time.perf_counter()
    from slimsvm import SVC  # noqa: F401

    return {"theirs": middle - begun, "ours": time.perf_counter() - middle}


def set_seconds(rounds: int) -> list[dict[str, Any]]:
    """Median seconds of a fit and of a prediction of all rows, in turns with scikit-learn."""
    from sklearn import datasets, svm

    from slimsvm import SVC

    found = []
    for name in SETS:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        machines = SVC(solver="exact"), svm.SVC()
        for what in ("fit", "predict"):
            calls = [
                partial(machine.fit, X, y) if what == "fit" else partial(machine.predict, X) for machine in machines
            ]
            seconds = [[seconds_of(call) for call in calls] for _ in range(rounds + 1)][1:]
            ours, theirs = map(statistics.median, zip(*seconds, strict=True))
            found.append({"what": f"{what}, {name}, {len(y)} rows", "ours": ours, "theirs": theirs})
    return found


def seconds_of(call: Callable[[], Any]) -> float:
    """Mean seconds of a call over a turn."""
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < TURN_SECONDS:
        call()
        count += 1
    return (time.perf_counter() - begun) / count


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))
    print(json.dumps(import_seconds() if sys.argv[1] == "import" else set_seconds(int(sys.argv[2]))))
