"""What learned bases reach: test errors of `Refine`'s defaults on the benchmark sets, one row per set and setting.

    python benchmarks/learned_bases.py                            # everything that is quick, 5 seeds
    python benchmarks/learned_bases.py ijcnn1 cod-rna --seeds 2   # some sets
    python benchmarks/learned_bases.py covtype checkerboard --jobs 4
    python benchmarks/learned_bases.py --curve --seeds 1          # covtype: error against vectors, beside trees

Prints a table and, with --json FILE, writes every run. C and gamma are those of the papers' tables, or C = 10 from
gamma = "scale" where no search is the point.
"""

import argparse
import json
import sys
import time
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SVC, Refine, datasets

# Set, number of vectors, C, gamma, whether the metric is learned, and the error in percent that was asked for.
SETTINGS = [
    ("ijcnn1", 100, 32, 2.0, False, 1.1),
    ("ijcnn1", 50, 32, 2.0, True, 1.2),
    ("ijcnn1", 100, 10, "scale", True, 1.2),
    ("cod-rna", 50, 32, 0.125, False, 3.55),
    ("cod-rna", 50, 32, 0.125, True, 3.5),
    ("cod-rna", 50, 10, "scale", True, 3.6),
    ("adult", 20, 32, 2**-7, False, 14.9),
    ("mnist-38", 100, 10, 0.02, False, 0.5),
    ("mnist-38", 50, 10, 0.02, True, 0.5),
    ("covtype", 200, 10, 8.0, True, 12.0),
    ("covtype", 1000, 10, 8.0, True, 8.5),
    ("covtype", 1000, 10, 8.0, False, 14.0),
    ("covtype", 1000, 10, "scale", True, 9.5),
    ("mnist", 500, 10, 0.02, False, 1.6),
    ("mnist", 500, 10, 0.02, True, 1.6),
    ("checkerboard", 100, 1, 10.0, False, 1.0),
]
QUICK = ("ijcnn1", "cod-rna", "adult", "mnist-38")
CHECKERBOARD_ROWS, CHECKERBOARD_FLIPS = 800_000, 0.2
# The curve of covtype: numbers of vectors (learned metric, from gamma = "scale"), and of trees.
CURVE_VECTORS, CURVE_TREES = (50, 100, 200, 500, 1000, 2000), (100, 300, 1000, 2000)


def load(name: str) -> tuple:
    """X, y, X_test, y_test; covtype's first 100,000 training rows."""
    if name == "checkerboard":
        X, y = datasets.checkerboard(CHECKERBOARD_ROWS, noise=0, flip=CHECKERBOARD_FLIPS, random_state=0)
        return X, y, *datasets.checkerboard(100_000, noise=0, random_state=1)
    data = datasets.load(name)
    X, X_test = (
        np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float32) for X in (data.X_train, data.X_test)
    )
    n = 100_000 if name == "covtype" else len(X)
    return X[:n], data.y_train[:n], X_test, data.y_test


def run(parts: tuple, setting: tuple, seed: int, n_jobs: int) -> dict:
    """One fit: error in percent, seconds, objective and gap within the basis."""
    X, y, X_test, y_test = parts
    name, k, C, gamma, learn_metric, target = setting
    solver = Refine(k, learn_metric=learn_metric)
    clf = SVC(C=C, gamma=gamma, solver=solver, random_state=seed, n_jobs=n_jobs)
    begun = time.perf_counter()
    clf.fit(X, y)
    seconds = time.perf_counter() - begun
    error = 100 * float(np.mean(clf.predict(X_test) != y_test))
    gap = 1 - clf.counters_["bound_in_basis"] / clf.objective_
    return {
        "set": name, "max_basis": k, "C": C, "gamma": gamma, "learn_metric": learn_metric, "target": target,
        "seed": seed, "n_jobs": n_jobs, "error": error, "seconds": seconds, "objective": clf.objective_, "gap": gap,
        "epochs": clf.n_iter_,
    }  # fmt: skip


def trees(parts: tuple, n_trees: int, seed: int) -> dict:
    """scikit-learn's gradient-boosted trees on the same rows, with their defaults but for the number of trees."""
    X, y, X_test, y_test = parts
    clf = HistGradientBoostingClassifier(max_iter=n_trees, early_stopping=False, random_state=seed)
    begun = time.perf_counter()
    clf.fit(X, y)
    seconds = time.perf_counter() - begun
    error = 100 * float(np.mean(clf.predict(X_test) != y_test))
    return {"set": "covtype", "trees": n_trees, "seed": seed, "error": error, "seconds": seconds}


def curve(sizes: list[int], seeds: range, n_jobs: int) -> list[dict]:
    """Error on covtype against the number of vectors, then against the number of trees."""
    parts, runs = load("covtype"), []
    print("covtype                      error    seconds")
    for what, counts in (("vectors", sizes), ("trees", CURVE_TREES)):
        for count in counts:
            if what == "vectors":
                setting = ("covtype", count, 10, "scale", True, None)
                found = [run(parts, setting, seed, n_jobs) for seed in seeds]
            else:
                found = [trees(parts, count, seed) for seed in seeds]
            error, seconds = (np.mean([one[key] for one in found]) for key in ("error", "seconds"))
            print(f"{count:>10} {what:<15} {error:7.3f} {seconds:10.1f}", flush=True)
            runs += found
    return runs


def main() -> int:
    """Run the settings asked for and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help=f"any of {', '.join(dict.fromkeys(s[0] for s in SETTINGS))}")
    parser.add_argument("--vectors", type=int, help="only the settings with so many vectors")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", help="file for every run")
    parser.add_argument("--curve", action="store_true", help="covtype's error against vectors, and against trees")
    args = parser.parse_args()
    if args.curve:
        sizes = list(CURVE_VECTORS) if args.vectors is None else [args.vectors]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            runs = curve(sizes, range(args.first_seed, args.first_seed + args.seeds), args.jobs)
        if args.json:
            with open(args.json, "w") as file:
                json.dump(runs, file, indent=1)
        return 0
    runs, parts = [], {}
    print(f"{'set':<13}{'k':>5}{'C':>5}{'gamma':>9} metric  error (se)       target   seconds ({args.jobs} threads)")
    for setting in SETTINGS:
        name, k, C, gamma, learn_metric, target = setting
        if name not in (args.sets or QUICK) or args.vectors not in (None, k):
            continue
        if name not in parts:
            parts = {name: load(name)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = [
                run(parts[name], setting, seed, args.jobs)
                for seed in range(args.first_seed, args.first_seed + args.seeds)
            ]
        runs += found
        errors, seconds = ([run[key] for run in found] for key in ("error", "seconds"))
        spread = f"({np.std(errors, ddof=1) / np.sqrt(len(errors)):.3f})" if len(errors) > 1 else "(one run)"
        width = gamma if isinstance(gamma, str) else f"{gamma:.4g}"
        what = f"{name:<13}{k:>5}{C:>5}{width:>9} {'yes' if learn_metric else 'no':<6}"
        print(f"{what} {np.mean(errors):6.3f} {spread:<10} {target:>6}   {np.mean(seconds):7.2f}", flush=True)
        if args.json:
            with open(args.json, "w") as file:
                json.dump(runs, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
