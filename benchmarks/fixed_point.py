"""C headers in int16 fixed point beside the model in Python: test errors, and how far scores move.

The header's arithmetic is repeated in NumPy, bit for bit but for the last float32 operations (a test compiles headers
and compares them). docs/deploy/microcontroller.md has the table.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from slimsvm import SVC
from slimsvm.cli import options
from slimsvm.datasets import load
from slimsvm.deploy.c_fixed_point import fixed_point
from slimsvm.deploy.predictors import PREDICTORS
from slimsvm.estimators._shared.saving import plain_model_of

SETS: dict[str, dict[str, float]] = {
    "adult": {"C": 1.0, "gamma": 0.05},
    "ijcnn1": {"C": 32.0, "gamma": 2.0},
    "mnist-38": {"C": 10.0, "gamma": 0.02},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks fixed-point``."""
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="benchmark sets")
    parser.add_argument("--vectors", type=options.positive_integer, default=50, help="in a model (%(default)s)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Train a model on each set, and predict its test part in both ways.

    Returns
    -------
    dict
        ``table``: one row per set.
    """
    return {"table": [measure(name, args.vectors) for name in args.sets]}


def measure(name: str, n_vectors: int) -> dict[str, Any]:
    """Test errors in percent, predictions that are others, and the largest error of a score."""
    data = load(name)
    X, X_test = (
        np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float32) for X in (data.X_train, data.X_test)
    )
    clf = SVC(max_basis=n_vectors, random_state=0, **SETS[name]).fit(X, data.y_train)
    fixed = fixed_point(plain_model_of(clf))
    exact, found = clf.decision_function(X_test), fixed.scores(X_test)[:, 0]
    labels, others = clf.predict(X_test), PREDICTORS["binary"](fixed).predict(X_test)
    return {
        "set": name,
        "test_rows": len(X_test),
        "error": round(100 * float(np.mean(labels != data.y_test)), 3),
        "error_int16": round(100 * float(np.mean(others != data.y_test)), 3),
        "other_predictions": int(np.sum(labels != others)),
        "score_error": f"{np.abs(found - exact).max() / np.abs(exact).max():.1e}",
    }
