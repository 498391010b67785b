"""Handwritten words (OCR letters): chains with learned vectors beside cuts, subspace pursuit and a linear chain.

    python benchmarks/ocr_letters.py                              # everything on the small protocol, 3 seeds
    python benchmarks/ocr_letters.py large --methods learned      # 6,251 words to train, 626 to test
    python benchmarks/ocr_letters.py --quick                      # 60 words, to see that it runs

The small protocol trains on the 626 words of fold 0 and tests on the others, the large one the other way round. Prints
a line for every method, with means over the seeds, and writes every run with --json FILE.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm import CPSP, ExactCuts, Refine, SequenceSVM, ViolatedCuts, datasets

SETS = {"small": "ocr-letters-small", "large": "ocr-letters"}
VECTORS = {"small": 1000, "large": 1500}
QUICK_WORDS, QUICK_VECTORS = 60, 50
GAMMA, NOISE_GAMMA = 0.08, 0.12


@dataclass(frozen=True)
class Words:
    """Rows, labels and lengths to train on and to test on."""

    train: tuple
    test: tuple

    def first(self, n_words: int) -> "Words":
        """Only the first words."""

        def cut(part: tuple) -> tuple:
            n_rows = int(part[2][:n_words].sum())
            return part[0][:n_rows], part[1][:n_rows], part[2][:n_words]

        return Words(cut(self.train), cut(self.test))


def load(protocol: str) -> Words:
    """The words of a protocol, "small" or "large"."""
    data = datasets.load(SETS[protocol])
    return Words(
        (data.X_train, data.y_train, np.diff(data.train_offsets)),
        (data.X_test, data.y_test, np.diff(data.test_offsets)),
    )


# What a method makes of the number of vectors.
METHODS: dict[str, Callable[[int], SequenceSVM]] = {
    "learned": lambda k: SequenceSVM(C=10, gamma=GAMMA, solver=Refine(k)),
    "learned with metric": lambda k: SequenceSVM(C=10, gamma=GAMMA, solver=Refine(k, learn_metric=True, rate=0.2)),
    "learned with metric and noise": lambda k: SequenceSVM(
        C=10, gamma=NOISE_GAMMA, solver=Refine(k, learn_metric=True, rate=0.2, noise=1.0)
    ),
    "learned, gamma='learn'": lambda k: SequenceSVM(C=10, gamma="learn", max_basis=k),
    "exact cuts": lambda k: SequenceSVM(C=1, gamma=0.06, solver=ExactCuts()),
    "sampled cuts": lambda k: SequenceSVM(C=1, gamma=0.06, solver=ViolatedCuts()),
    "cpsp": lambda k: SequenceSVM(C=10, gamma=GAMMA, solver=CPSP(k, vectors_per_cut=10)),
    "linear chain": lambda k: SequenceSVM(C=0.1, kernel="linear", solver=ExactCuts()),
}


def run(words: Words, method: str, max_basis: int, seed: int = 0, n_jobs: int | None = None, **options) -> dict:
    """One fit: letter error in percent on the test words, seconds, vectors and gap."""
    clf = METHODS[method](max_basis).set_params(random_state=seed, n_jobs=n_jobs, **options)
    X, y, lengths = words.train
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y, lengths=lengths)
    seconds = time.perf_counter() - begun
    X, y, lengths = words.test
    bound = clf.counters_.get("bound_in_basis") if clf.lower_bound_ is None else clf.lower_bound_
    return {
        "method": method, "seed": seed, "n_jobs": n_jobs, "error": 100 * (1 - clf.score(X, y, lengths=lengths)),
        "seconds": seconds, "n_basis": clf.n_basis_, "iterations": clf.n_iter_, "objective": clf.objective_,
        "gap": None if bound is None else 1 - bound / clf.objective_, "status": clf.status_,
    }  # fmt: skip


def line(runs: list[dict]) -> str:
    """Means over the seeds of one method."""
    mean = {key: np.mean([run[key] for run in runs]) for key in ("error", "seconds", "n_basis", "iterations")}
    gaps = [run["gap"] for run in runs if run["gap"] is not None]
    gap = f"{100 * np.mean(gaps):6.2f} %" if gaps else "    none"
    return (
        f"{runs[0]['method']:<30}{mean['error']:7.2f} %{mean['seconds']:9.1f} s{mean['n_basis']:8.0f} vectors"
        f"{mean['iterations']:7.0f} iterations   gap{gap}   ({len(runs)} seeds)"
    )


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("protocol", nargs="?", default="small", choices=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--vectors", type=int, help="default: 1000 (small), 1500 (large)")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--seconds", type=float, help="limit for every fit")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", help="file for every run")
    args = parser.parse_args()
    words, k = load(args.protocol), args.vectors or VECTORS[args.protocol]
    if args.quick:
        words, k, args.seeds = words.first(QUICK_WORDS), QUICK_VECTORS, 1
    done: list[dict] = []
    for method in args.methods:
        found = [
            run(words, method, k, seed, args.jobs, max_seconds=args.seconds) | {"protocol": args.protocol}
            for seed in range(args.seeds)
        ]
        done += found
        print(line(found), flush=True)
        if args.json:
            with open(args.json, "w") as file:
                json.dump(done, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
