"""Experiments with structured outputs: handwritten words, chunks of text, measures over all rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.svm import SVC as TheirSVC

from benchmarks.structured.chunking import FeatureTable, chunk_f1, with_ends, without_ends
from slimsvm import BCFW, SVC, ExactCuts, Refine, SequenceSVM
from slimsvm.datasets import load

Array = np.ndarray
Record = dict[str, Any]

# One sentence in so many validates C.
EVERY = 4
CHUNKING_C: tuple[float, ...] = (0.025, 0.05, 0.1)
CHUNKING_TRIAL_GAP, CHUNKING_GAP = 0.03, 1e-3
LETTERS = {"ocr-letters-small": "small", "ocr-letters": "large"}
LETTERS_GAMMA, LEARNED_GAMMA = 0.06, 0.08
WARM_UP_WORDS = 10
# Kernel and its gamma of each unbalanced set.
UNBALANCED: dict[str, dict[str, Any]] = {
    "money-fx": {"kernel": "linear"},
    "ijcnn1": {"kernel": "rbf", "gamma": 2.0},
    "adult": {"kernel": "rbf", "gamma": 2.0**-7},
}
# Wide enough that no method's best C is the first or the last.
MEASURE_C: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
FOLDS = 4
ERROR_RATE, CLASS_WEIGHTS = "error rate", "scikit-learn SVC, balanced"


def timed(estimator: Any, *data: Any) -> tuple[Any, float]:
    """An estimator fitted to the data, and its seconds; limits are in its record."""
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(*data)
    return estimator, time.perf_counter() - begun


def of_fit(fitted: Any, seconds: float) -> Record:
    """What a fit of ours says of itself."""
    bound, objective = fitted.lower_bound_, fitted.objective_
    return {
        "C": fitted.C,
        "seconds": seconds,
        "iterations": int(np.sum(fitted.n_iter_)),
        "n_vectors": fitted.n_basis_,
        "objective": objective,
        "gap": None if bound is None else (objective - bound) / objective,
        "status": fitted.status_,
    }


# ---- handwritten words


def letters(name: str, seed: int, max_basis: int, max_seconds: float | None, n_jobs: int | None) -> Iterator[Record]:
    """A linear chain and an RBF chain by blocks and by exact cuts to the same gaps, and few learned vectors."""
    data: Any = load(name)
    train, test = np.diff(data.train_offsets), np.diff(data.test_offsets)
    common: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs, "max_seconds": max_seconds}
    estimators = {
        "linear chain, BCFW": SequenceSVM(kernel="linear", C=0.1, tol=1e9, solver=BCFW(1e-3), **common),
        "linear chain, exact cuts": SequenceSVM(kernel="linear", C=0.1, tol=1e9, solver=ExactCuts(1e-3), **common),
        "RBF chain, BCFW": SequenceSVM(C=1.0, gamma=LETTERS_GAMMA, tol=1e9, solver=BCFW(1e-2), **common),
        "RBF chain, exact cuts": SequenceSVM(C=1.0, gamma=LETTERS_GAMMA, tol=1e9, solver=ExactCuts(1e-2), **common),
        f"RBF chain, {max_basis} vectors": SequenceSVM(
            C=10.0, gamma=LEARNED_GAMMA, solver=Refine(max_basis, learn_metric=True, rate=0.2), **common
        ),
    }
    few = train[:WARM_UP_WORDS]
    n = int(sum(few))
    for method, estimator in estimators.items():
        # The seconds that are reported are without those of the compiler.
        first = clone(estimator).set_params(max_iter=2, max_seconds=None)
        timed(first, data.X_train[:n], data.y_train[:n], few)
        fitted, seconds = timed(estimator, data.X_train, data.y_train, train)
        error = 1 - fitted.score(data.X_test, data.y_test, test)
        record = {"part": "letters", "data": name, "method": method, "seed": seed, "measure": "letter error"}
        yield record | {"value": error} | of_fit(fitted, seconds)


# ---- chunks of text


def chunking(data: Any, seed: int, C_values: tuple[float, ...], n_jobs: int | None) -> Iterator[Record]:
    """A linear chain over binary features of the text, by blocks and by exact cuts to the same gap.

    The chain's labels are IOBES tags. C is chosen by chunk F1 on a part of the training sentences.
    """
    begun = time.perf_counter()
    table = FeatureTable()
    train = table.rows(data.X_train, data.train_offsets, learn=True)
    test = table.rows(data.X_test, data.test_offsets, learn=False)
    features = {"n_features": train.shape[1], "feature_seconds": time.perf_counter() - begun}
    offsets, chosen, best, trials = data.train_offsets, C_values[0], -1.0, []
    labels = with_ends(data.y_train, offsets)
    held = np.arange(len(offsets) - 1) % EVERY == EVERY - 1
    by_row = np.repeat(held, np.diff(offsets))
    lengths = np.diff(offsets)
    begun = time.perf_counter()
    for C in C_values if len(C_values) > 1 else ():
        clf = chain(C, BCFW(CHUNKING_TRIAL_GAP), seed, n_jobs)
        timed(clf, train[~by_row], labels[~by_row], lengths[~held])
        found = without_ends(clf.predict(train[by_row], lengths[held]))
        value = chunk_f1(found, data.y_train[by_row], np.concatenate([[0], np.cumsum(lengths[held])]))
        trials.append({"C": C, "f1": value})
        if value > best:
            chosen, best = C, value
    choosing = time.perf_counter() - begun
    for method, solver in {"BCFW": BCFW(CHUNKING_GAP), "exact cuts": ExactCuts(CHUNKING_GAP)}.items():
        clf = chain(chosen, solver, seed, n_jobs)
        _, seconds = timed(clf, train, labels, lengths)
        found = without_ends(clf.predict(test, np.diff(data.test_offsets)))
        value = chunk_f1(found, data.y_test, data.test_offsets)
        record = {"part": "chunking", "data": "conll2000", "method": f"linear chain, {method}", "seed": seed}
        record |= {"measure": "chunk F1", "value": value, "trials": trials, "choosing_seconds": choosing}
        yield record | features | of_fit(clf, seconds)


def chain(C: float, solver: Any, seed: int, n_jobs: int | None) -> SequenceSVM:
    """A linear chain, to the solver's relative gap."""
    return SequenceSVM(kernel="linear", C=C, tol=1e9, solver=solver, random_state=seed, n_jobs=n_jobs)


# ---- measures over all rows


def break_even(truth: Array, scores: Array) -> float:
    """Precision among the rows of highest scores, as many as are positive."""
    top = np.argsort(scores, kind="stable")[len(scores) - np.count_nonzero(truth > 0) :]
    return float(np.mean(truth[top] > 0))


MEASURES: dict[str, Callable[[Array, Array], float]] = {
    "roc_auc": lambda truth, scores: float(roc_auc_score(truth, scores)),
    "f1": lambda truth, scores: float(f1_score(truth > 0, scores > 0)),
    "prbep": break_even,
}


def measures(
    name: str, data: tuple[Any, Array, Any, Array], seed: int, C_values: tuple[float, ...], max_seconds: float,
    n_jobs: int | None, wanted: Sequence[str] = tuple(MEASURES), peers: bool = True,
) -> Iterator[Record]:  # fmt: skip
    """Training for a measure against training for errors and class weights: C of each chosen by that measure.

    C is that of the highest mean over `FOLDS` parts of the rows, each in turn held out.
    """
    X, y, X_test, y_test = data
    settings = UNBALANCED[name]

    def estimator(method: str, C: float) -> Any:
        if method == CLASS_WEIGHTS:
            return TheirSVC(C=C, class_weight="balanced", **settings)
        loss = "hinge" if method == ERROR_RATE else method
        # The optimum for every loss: "auto" would look for few vectors where training is for errors.
        solver = ExactCuts()
        return SVC(C=C, loss=loss, solver=solver, random_state=seed, n_jobs=n_jobs, max_seconds=max_seconds, **settings)

    for method in (ERROR_RATE, *((CLASS_WEIGHTS,) if peers else ()), *wanted):
        judged = tuple(wanted) if method in (ERROR_RATE, CLASS_WEIGHTS) else (method,)
        trials = Trials(partial(estimator, method), X, y, folds_of(y, seed), judged)
        fits: dict[float, tuple[Any, float]] = {}
        for measure in judged:
            C = trials.best(measure, C_values)
            if C not in fits:
                fits[C] = timed(estimator(method, C), X, y)
            clf, seconds = fits[C]
            record = {"part": "measures", "data": name, "seed": seed, "measure": measure}
            record |= {"method": method if method in (ERROR_RATE, CLASS_WEIGHTS) else f"trained for {method}"}
            record["value"] = MEASURES[measure](y_test, clf.decision_function(X_test))
            record["trials"] = [{"C": C, "value": values[measure]} for C, values in sorted(trials.tried.items())]
            own = {"C": C, "seconds": seconds, "n_vectors": len(getattr(clf, "support_", []))}
            yield record | (own if method == CLASS_WEIGHTS else of_fit(clf, seconds))


@dataclass
class Trials:
    """One method at several values of C: means of measures over parts of the rows, each in turn held out."""

    estimator: Callable[[float], Any]
    X: Any
    y: Array
    fold: Array
    judged: tuple[str, ...]
    tried: dict[float, dict[str, float]] = field(default_factory=dict)

    def at(self, C: float) -> dict[str, float]:
        """The measures at a value of C."""
        if C not in self.tried:
            values = []
            for k in range(FOLDS):
                held = self.fold == k
                clf, _ = timed(self.estimator(C), self.X[~held], self.y[~held])
                scores = clf.decision_function(self.X[held])
                values.append([MEASURES[measure](self.y[held], scores) for measure in self.judged])
            self.tried[C] = dict(zip(self.judged, np.mean(values, axis=0).tolist()))
        return self.tried[C]

    def best(self, measure: str, C_values: tuple[float, ...]) -> float:
        """The best of the values of C, or half way to one of its neighbours; of equal ones the lowest."""

        def value(C: float) -> float:
            return self.at(C)[measure]

        coarse = max(C_values, key=value)
        at = C_values.index(coarse)
        beside = *C_values[max(0, at - 1) : at], *C_values[at + 1 : at + 2]
        near = [float(np.sqrt(coarse * other)) for other in beside]
        return max(sorted([coarse, *near]), key=value)


def folds_of(y: Array, seed: int) -> Array:
    """Number of the part of every row; each part has its share of every class."""
    fold = np.empty(len(y), dtype=np.int64)
    for label in np.unique(y):
        index = np.random.default_rng(seed).permutation(np.flatnonzero(y == label))
        fold[index] = np.arange(len(index)) % FOLDS
    return fold


def unbalanced(name: str, max_rows: int, seed: int) -> tuple[Any, Array, Any, Array]:
    """Rows and labels of a set, at most so many (drawn at random) of each part."""
    data: Any = load(name)
    parts: list[Any] = []
    both: Any = ((data.X_train, data.y_train), (data.X_test, data.y_test))
    for X, y in both:
        if len(y) > max_rows:
            index = np.sort(np.random.default_rng(seed).choice(len(y), max_rows, replace=False))
            X, y = X[index], y[index]
        if not isinstance(X, np.ndarray):  # scikit-learn's SVC takes no other indices
            X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        parts += [X, y]
    return parts[0], parts[1], parts[2], parts[3]
