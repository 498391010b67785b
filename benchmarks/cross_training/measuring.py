"""Methods beside cross-training, and what is measured of each on the same rows."""

from __future__ import annotations

import base64
import os
import time
import warnings
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks.cross_training.compared_solvers import COMPARATORS
from benchmarks.cross_training.experiments import Case, Trial
from benchmarks.shared.cross_trained_rows import Record, identity
from benchmarks.shared.trials import runs_by_seconds
from slimsvm import SVC, CrossTrainedSVC
from slimsvm.editing.cross_training_stages import is_worse
from slimsvm.parts.values_of_C import VALUES_OF_C, AlongC

# The exact SVM; cross-training as it is by default and as published; its first SVMs alone; the ramp loss.
METHODS = ("exact", "paper", "default", "bagging", "ramp")
# Above so many rows only the methods that the paper's tables compare are run.
MOST_ROWS_OF_OTHERS = 50_000
OTHERS = ("bagging", "ramp")
# The exact SVM's C is chosen on so many of the rows, at most.
SEARCH_ROWS, FOLDS = 20_000, 5
WARM_UP_ROWS = 600
COMPARATOR_SECONDS = 100.0  # limit on a comparator's fit
PAPERS = {"variances": 1.0, "max_basis": None, "deviations": 0.0, "rejoin": False}


class Search(NamedTuple):
    """C of the exact SVM, and the rows and the seconds that choosing it took."""

    C: float
    rows: int = 0
    seconds: float = 0.0


class Bench:
    """Runs the cases that are not known yet.

    Parameters
    ----------
    seeds : int or None
        Runs of every case; None: by the seconds of the slowest method (`runs_by_seconds`).
    hear : callable (record) -> None
        Called with every record as soon as it is there.
    known : sequence of dict
        Records of a run that ended early: they are not measured again.
    """

    def __init__(self, seeds: int | None, hear: Any, known: Sequence[Record] = ()):
        self.seeds, self.hear = seeds, hear
        self.known = {identity(record): record for record in known}
        self._warm: set[tuple[str, str]] = set()

    def runs_of(self, part: str, case: Case) -> int:
        """How often a case is run; once as long as there is no record of its first run."""
        if self.seeds is not None:
            return self.seeds
        first = [self.known.get(self._identity(part, case, method, 0)) for method in methods_of(part, case)]
        return runs_by_seconds(max(record["seconds"] for record in first if record)) if any(first) else 1

    def compare(self, part: str, case: Case, seed: int) -> None:
        """Measure every method on one drawing of a case, as far as it is not known."""
        lacking = [
            method for method in methods_of(part, case) if self._identity(part, case, method, seed) not in self.known
        ]
        if not lacking:
            return
        trial = case.draw(seed)
        for method in lacking:
            exact = self.known.get(self._identity(part, case, "exact", seed))
            self.warm_up(part, trial, method)
            record = {"part": part, **case.key, "n_test": len(trial.y_test), "method": method, "seed": seed}
            record |= measure(part, trial, method, seed, exact)
            self.known[identity(record)] = record
            self.hear(record)

    def warm_up(self, part: str, trial: Trial, method: str) -> None:
        """Fit a few rows once for each part and method, so that no timing includes compilation or imports."""
        few = trial.head(WARM_UP_ROWS)
        if (part, method) not in self._warm and min(np.sum(few.y > 0), np.sum(few.y < 0)) > FOLDS:
            self._warm.add((part, method))
            fit(part, few, method, 0, Search(few.C or 1.0))

    @staticmethod
    def _identity(part: str, case: Case, method: str, seed: int) -> tuple[Any, ...]:
        return identity({"part": part, **case.key, "method": method, "seed": seed})


def methods_of(part: str, case: Case) -> list[str]:
    """The methods of a case; the exact SVM, beside which the others are tested, is the first."""
    if part == "comparators":
        return list(COMPARATORS)
    is_large = case.key["n_train"] > MOST_ROWS_OF_OTHERS
    return [method for method in METHODS if not (is_large and method in OTHERS)]


def make(part: str, trial: Trial, method: str, seed: int, C: float) -> Any:
    """The estimator of a method."""
    shared = {**trial.kernel, "n_jobs": 1, "random_state": seed, "precision": "float32"}
    if part == "comparators":
        return COMPARATORS[method](C=C, max_seconds=COMPARATOR_SECONDS, **shared)
    shared["intercept"] = "free"
    if method in ("exact", "ramp"):
        return SVC(C=C, solver="exact", loss="ramp" if method == "ramp" else "hinge", **shared)
    if method == "default":
        return CrossTrainedSVC(**shared)
    subsets = {"n_subsets": trial.n_subsets, "subset_size": trial.subset_size}
    return CrossTrainedSVC(second_stage=method == "paper", **subsets, **PAPERS, **shared)


def fit(part: str, trial: Trial, method: str, seed: int, search: Search) -> Any:
    """The fitted estimator of a method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record has the status
        return make(part, trial, method, seed, search.C).fit(trial.X, trial.y)


def search_C(trial: Trial, seed: int) -> Search:
    """The exact SVM's C: the lowest with the fewest errors in cross-validation, of the values of cross-training.

    The search ends as that of cross-training's first SVMs does: after two values without a gain beyond chance.
    """
    begun, X, y = time.perf_counter(), trial.X[:SEARCH_ROWS], trial.y[:SEARCH_ROWS]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    errors: list[np.ndarray] = []
    along_C, gained = AlongC(VALUES_OF_C, "values of C"), None
    for C in along_C:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            errors.append(cross_val_predict(make("", trial, "exact", seed, C), X, y, cv=folds) != y)
        has_gained = gained is None or is_worse(gained, errors[-1])
        gained = errors[-1] if has_gained else gained
        along_C.judge(has_gained)
    best = VALUES_OF_C[int(np.argmin([wrong.sum() for wrong in errors]))]
    return Search(best, len(y), time.perf_counter() - begun)


def measure(part: str, trial: Trial, method: str, seed: int, exact: Record | None) -> Record:
    """Fit once, and judge; ``exact`` is the exact SVM's record on the same rows.

    ``seconds`` and ``cpu_seconds`` include the search for C; ``fit_seconds`` of the exact SVM and of the ramp are
    those of the fit alone. The ramp takes the exact SVM's C, and its search counts.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    begun_cpu, searched = time.process_time(), method in ("exact", "ramp") and trial.C is None
    if searched and exact is not None:
        search = Search(exact["C"], exact["search_rows"], exact["search_seconds"])
    else:
        search = search_C(trial, seed) if searched else Search(trial.C or 1.0)
    begun = time.perf_counter()
    clf = fit(part, trial, method, seed, search)
    fit_seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - begun_cpu
    predicted = clf.predict(trial.X_test)
    wrong = predicted != trial.y_test
    record = {
        "test_error": float(wrong.mean()),
        "clean_error": float(np.mean(predicted != trial.clean)),
        "seconds": search.seconds + fit_seconds,
        "fit_seconds": fit_seconds if method in ("exact", "ramp") else None,
        "cpu_seconds": cpu_seconds,
        "load": load,
        "search_seconds": search.seconds,
        "search_rows": search.rows,
        "status": clf.status_,
        **what_was_learned(clf, search.C),
    }
    if method == "exact":
        record["wrong_rows"] = packed(wrong)
    elif exact is not None:
        record |= beside(unpacked(exact["wrong_rows"], len(wrong)), wrong, trial)
    return record


def what_was_learned(clf: Any, C: float) -> Record:
    """Vectors, values of C and objectives of a fitted estimator; of cross-training the rows that it kept, too."""
    C = getattr(clf, "C_", C)
    record = {
        "C": C,
        "n_vectors": clf.n_basis_,
        "n_bounded": int(np.sum(np.abs(clf.basis_coef_[:, 0]) >= 0.999 * C)),
        "objective": None if isinstance(clf, CrossTrainedSVC) else clf.objective_,
        "own_objective": clf.counters_.get("own_objective"),
        "own_lower_bound": clf.counters_.get("own_lower_bound"),
    }
    if isinstance(clf, CrossTrainedSVC):
        kept = clf.sample_indices_
        record |= {
            "first_C": clf.first_C_,
            "n_kept": len(kept),
            "n_kept_wrong": int(np.sum(clf.margin_mean_[kept] < 0)),
        }
        record["tried"] = [[trial["C"], trial["error"], trial["n_basis"]] for trial in clf.validation_]
    return record


def beside(wrong_of_exact: np.ndarray, wrong: np.ndarray, trial: Trial) -> Record:
    """Numbers of test rows on which only one machine errs, and McNemar's test; of the labels as they are and clean."""
    turned = trial.y_test != trial.clean
    record: Record = {}
    for name, change in (("", np.zeros_like(turned)), ("clean_", turned)):
        one, other = wrong_of_exact ^ change, wrong ^ change
        record[f"{name}only_exact_wrong"] = int(np.sum(one & ~other))
        record[f"{name}only_this_wrong"] = int(np.sum(other & ~one))
        record[f"{name}p_value"] = mcnemar(one, other)
    return record


def mcnemar(one: np.ndarray, other: np.ndarray) -> float:
    """Exact two-sided McNemar test: the chance of so uneven a split of the rows on which just one errs, if both err
    alike.
    """
    only_one, only_other = int(np.sum(one & ~other)), int(np.sum(other & ~one))
    return 1.0 if only_one + only_other == 0 else float(binomtest(only_one, only_one + only_other).pvalue)


def packed(mask: np.ndarray) -> str:
    """A mask of rows as text."""
    return base64.b64encode(zlib.compress(np.packbits(mask).tobytes(), 9)).decode()


def unpacked(text: str, n: int) -> np.ndarray:
    """The mask of n rows that `packed` wrote."""
    bits = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.unpackbits(bits, count=n).astype(bool)
