"""Handwritten words (OCR letters): chains with learned vectors beside cuts, subspace pursuit and a linear chain.

    python -m benchmarks ocr-letters                              # everything on the small protocol, 3 seeds
    python -m benchmarks ocr-letters large --methods learned      # 6,251 words to train, 626 to test
    python -m benchmarks ocr-letters large --methods "learned with metric, second order" --vectors 300
    python -m benchmarks ocr-letters large --methods "learned with metric, smoothed" --vectors 1000
    python -m benchmarks ocr-letters --quick                      # 60 words, to see that it runs

The small protocol trains on the 626 words of fold 0 and tests on the others, the large one the other way round. Results
are on disk after every method.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.exceptions import ConvergenceWarning

from benchmarks.shared.results import save
from slimsvm import CPSP, ExactCuts, Refine, SequenceSVM, ViolatedCuts, datasets
from slimsvm.cli import options
from slimsvm.cli.output import say

SETS = {"small": "ocr-letters-small", "large": "ocr-letters"}
VECTORS = {"small": 1000, "large": 1500}
QUICK_WORDS, QUICK_VECTORS = 60, 50
GAMMA, NOISE_GAMMA = 0.08, 0.12
N_LETTERS = 26
SECOND_ORDER = "learned with metric, second order"
# Smoothed pixels have a third of the variance, so gamma is three times as large.
SMOOTHED, SMOOTHED_GAMMA = "learned with metric, smoothed", 0.24
IMAGE, SMOOTHING = (16, 8), 0.7  # pixels of a letter, and the standard deviation of the Gaussian in pixels


@dataclass(frozen=True)
class Words:
    """Rows, labels and lengths to train on and to test on."""

    train: tuple
    test: tuple

    def first(self, n_words: int) -> Words:
        """Only the first words."""

        def cut(part: tuple) -> tuple:
            n_rows = int(part[2][:n_words].sum())
            return part[0][:n_rows], part[1][:n_rows], part[2][:n_words]

        return Words(cut(self.train), cut(self.test))


def load(protocol: str) -> Words:
    """The words of a protocol, "small" or "large"."""
    data: Any = datasets.load(SETS[protocol])
    return Words(
        (data.X_train, data.y_train, np.diff(data.train_offsets)),
        (data.X_test, data.y_test, np.diff(data.test_offsets)),
    )


def with_letter_before(letters: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Labels of a chain of second order: each letter with the one before it, or with none; modulo 26 the letter."""
    before = np.append(-1, letters[:-1])
    before[np.cumsum(lengths)[:-1]] = -1
    return N_LETTERS * (before + 1) + letters


def smoothed(rows: np.ndarray) -> np.ndarray:
    """Images whose pixels are weighted means of their neighbours, so that strokes a pixel apart are similar."""
    images = rows.reshape(-1, *IMAGE)
    return gaussian_filter(images, (0, SMOOTHING, SMOOTHING), mode="constant").reshape(rows.shape)


# What a method makes of the number of vectors.
METHODS: dict[str, Callable[[int], SequenceSVM]] = {
    "learned": lambda k: SequenceSVM(C=10, gamma=GAMMA, solver=Refine(k)),
    "learned with metric": lambda k: SequenceSVM(C=10, gamma=GAMMA, solver=Refine(k, learn_metric=True, rate=0.2)),
    "learned with metric and noise": lambda k: SequenceSVM(
        C=10, gamma=NOISE_GAMMA, solver=Refine(k, learn_metric=True, rate=0.2, noise=1.0)
    ),
    SECOND_ORDER: lambda k: SequenceSVM(
        C=10, gamma=GAMMA, solver=Refine(k, learn_metric=True, rate=0.2, epochs=60, finish=False)
    ),
    SMOOTHED: lambda k: SequenceSVM(
        C=10, gamma=SMOOTHED_GAMMA, solver=Refine(k, learn_metric=True, rate=0.2, epochs=60, finish=False)
    ),
    "learned, gamma='learn'": lambda k: SequenceSVM(C=10, gamma="learn", max_basis=k),
    "exact cuts": lambda k: SequenceSVM(C=1, gamma=0.06, solver=ExactCuts()),
    "sampled cuts": lambda k: SequenceSVM(C=1, gamma=0.06, solver=ViolatedCuts()),
    "cpsp": lambda k: SequenceSVM(C=10, gamma=GAMMA, solver=CPSP(k, vectors_per_cut=10)),
    "linear chain": lambda k: SequenceSVM(C=0.1, kernel="linear", solver=ExactCuts()),
}


def fit(words: Words, method: str, max_basis: int, seed: int, n_jobs: int | None, max_seconds: float | None) -> dict:
    """One fit: letter error in percent on the test words, seconds, vectors and gap."""
    clf = METHODS[method](max_basis).set_params(random_state=seed, n_jobs=n_jobs, max_seconds=max_seconds)
    X, y, lengths = words.train
    seen = smoothed if method == SMOOTHED else np.asarray
    labels = with_letter_before(y, lengths) if method == SECOND_ORDER else y
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(seen(X), labels, lengths=lengths)
    seconds = time.perf_counter() - begun
    X, y, lengths = words.test
    error = 100 * float(np.mean(clf.predict(seen(X), lengths=lengths) % N_LETTERS != y))
    bound = clf.counters_.get("bound_in_basis") if clf.lower_bound_ is None else clf.lower_bound_
    return {
        "method": method, "seed": seed, "n_jobs": n_jobs, "error": error,
        "seconds": seconds, "n_basis": clf.n_basis_, "iterations": clf.n_iter_, "objective": clf.objective_,
        "gap": None if bound is None else 1 - bound / clf.objective_, "status": clf.status_,
    }  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks ocr-letters``."""
    parser.add_argument("protocol", nargs="?", default="small", choices=list(SETS), help="default: %(default)s")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD")
    parser.add_argument("--seeds", type=options.positive_integer, default=3, help="runs (default: %(default)s)")
    parser.add_argument(
        "--vectors", type=options.positive_integer, metavar="K", help="learned (default: 1000 small, 1500 large)"
    )
    parser.add_argument("--n-jobs", type=options.jobs, default=None, metavar="T", help="threads (default: all)")
    parser.add_argument(
        "--max-seconds", type=options.positive_or_none, default=None, metavar="S", help="of a fit (default: none)"
    )
    parser.add_argument("--quick", action="store_true", help="60 words, 50 vectors, one seed")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit every method asked for.

    Returns
    -------
    dict
        ``records``, one for each fit, and ``table``: means over the seeds.
    """
    words, k, seeds = load(args.protocol), args.vectors or VECTORS[args.protocol], args.seeds
    if args.quick:
        words, k, seeds = words.first(QUICK_WORDS), QUICK_VECTORS, 1
    result: dict[str, Any] = {"records": [], "table": []}
    for method in args.methods:
        found = [
            fit(words, method, k, seed, args.n_jobs, args.max_seconds) | {"protocol": args.protocol}
            for seed in range(seeds)
        ]
        row = mean(found)
        say(f"{method}: {row['error %']} % of letters in {row['seconds']} s")
        result["records"] += found
        result["table"].append(row)
        save(result, Path(args.output) / "ocr-letters.json")
    return result


def mean(records: list[dict]) -> dict[str, Any]:
    """Means over the seeds of one method; error and gap in percent."""
    names = {"error %": "error", "seconds": "seconds", "vectors": "n_basis", "iterations": "iterations"}
    row = {shown: round(float(np.mean([record[name] for record in records])), 2) for shown, name in names.items()}
    gaps = [record["gap"] for record in records if record["gap"] is not None]
    return {
        "method": records[0]["method"], **row, "gap %": round(100 * float(np.mean(gaps)), 2) if gaps else None,
        "seeds": len(records),
    }  # fmt: skip
