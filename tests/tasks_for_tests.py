"""A small task that the library does not have, to prove that its protocol carries it: sequences.

`CASES` has one entry for every task that the contract suites run over, the library's own included.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import naive
from slimsvm import tasks
from slimsvm.tasks import (
    TASKS,
    Augmented,
    AveragePrecision,
    Binary,
    ErrorRate,
    Examples,
    FBeta,
    Multiclass,
    Multilabel,
    Ordinal,
    PrecisionAtK,
    RecallAtK,
    Regression,
    ROCArea,
    Swaps,
    Task,
)


@dataclass(frozen=True)
class Chain(Task):
    """Sequences of labels with kernelised emissions and plain transition parameters; Hamming loss."""

    k: int

    @property
    def n_outputs(self):
        return self.k

    @property
    def n_plain(self):
        return self.k**2

    def encode(self, y, sample_weight=None):
        """`y` is a list of sequences of labels 0, …, k - 1."""
        lengths = [len(sequence) for sequence in y]
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Examples(labels=np.concatenate(y).astype(np.int64), weights=weights, offsets=offsets)

    def best(self, scores, plain):
        """Viterbi from the end, so that ties go to the lowest label from the first row on."""
        transitions = plain.reshape(self.k, self.k)
        rest, choice = scores[-1], []
        for row in scores[-2::-1]:
            ahead = transitions + rest
            choice.append(ahead.argmax(axis=1))
            rest = row + ahead.max(axis=1)
        labels = [int(rest.argmax())]
        for best_next in choice[::-1]:
            labels.append(int(best_next[labels[-1]]))
        return np.array(labels)

    def augment(self, scores, plain, examples):
        delta, coef = np.zeros(examples.n_examples), np.zeros((examples.n_rows, self.k))
        plain_part = np.zeros((examples.n_examples, self.k**2))
        for e, (lo, hi) in enumerate(zip(examples.offsets[:-1], examples.offsets[1:])):
            y = examples.labels[lo:hi]
            guess = self.best(scores[lo:hi] + 1.0 - np.eye(self.k)[y], plain)
            emissions, counts = naive.chain_features(y, self.k)
            other, other_counts = naive.chain_features(guess, self.k)
            delta[e], coef[lo:hi], plain_part[e] = np.sum(guess != y), emissions - other, counts - other_counts
        return Augmented(delta, coef, plain_part)

    def decode(self, scores, plain, examples=None):
        bounds = zip(examples.offsets[:-1], examples.offsets[1:])
        return np.concatenate([self.best(scores[lo:hi], plain) for lo, hi in bounds])


@dataclass(frozen=True)
class Case:
    """A task with random data for it and its losses written out."""

    make: Callable[[], Task]
    labels: Callable[[np.random.Generator, int], Any]
    options: Callable[[Any], tuple]
    max_rows: int = 60
    # Whether equal labellings are told apart by their labels, row by row, or any of the best will do.
    lowest_labels: bool = True

    def problem(self, seed, n=None):
        """(task, rows X of small integers, y, examples): integers, so that every container holds the same numbers."""
        rng = np.random.default_rng(seed)
        n = self.max_rows if n is None else min(n, self.max_rows)
        task = self.make()
        X = rng.integers(-2, 3, (n, 3))
        y = self.labels(rng, n)
        weights = None
        if task.decomposes:
            weights = rng.choice([0.5, 1.0, 2.0], len(y)) if seed % 2 else None
        return task, X, y, task.encode(y, weights)

    def written_out(self, examples):
        """(rows, options, weight) of every example, for `naive.optimum` and `naive.objective`."""
        bounds = np.arange(examples.n_rows + 1) if examples.offsets is None else examples.offsets
        parts = []
        for e, (lo, hi) in enumerate(pairwise(bounds)):
            label = examples.labels[lo] if examples.offsets is None else examples.labels[lo:hi]
            parts.append((np.arange(lo, hi), self.options(label), examples.weights[e]))
        return parts


def both_signs(rng, n):
    y = rng.choice([-1, 1], n)
    y[:2] = -1, 1
    return y


def two_positive(rng, n):
    y = np.full(n, -1)
    y[[1, int(rng.integers(2, n))]] = 1
    return y


def over_all_rows(make, options):
    return Case(make, both_signs, options, max_rows=8, lowest_labels=False)


def every_class(k, rng, n):
    return np.append(np.arange(k), rng.integers(0, k, n - k))


def sequences(k, rng, n):
    """Sequences of one to four labels, the first of length 1."""
    lengths = [1]
    while sum(lengths) < n:
        lengths.append(min(int(rng.integers(1, 5)), n - sum(lengths)))
    return [rng.integers(0, k, length) for length in lengths]


def queries(n_grades, rng, n):
    """Queries of one to four rows, the first of one row, the second of equal rows."""
    labels = sequences(n_grades, rng, n - 2)
    return [labels[0], np.array([1, 1]), *labels[1:]]


COST = np.array([[0.0, 1.0, 2.5], [0.5, 0.0, 0.0], [1.0, 3.0, 0.0]])

CASES = {
    "binary": Case(Binary, both_signs, naive.binary_options),
    "binary-costs": Case(
        partial(Binary, 0.5, 2.0), both_signs, partial(naive.binary_options, cost_negative=0.5, cost_positive=2.0)
    ),
    "multiclass": Case(
        partial(Multiclass, 3), partial(every_class, 3), partial(naive.multiclass_options, cost=1 - np.eye(3))
    ),
    "multiclass-costs": Case(
        partial(Multiclass, 3, COST), partial(every_class, 3), partial(naive.multiclass_options, cost=COST)
    ),
    "regression": Case(
        partial(Regression, 0.25),
        lambda rng, n: rng.integers(-8, 9, n) / 4,
        partial(naive.regression_options, epsilon=0.25),
    ),
    "sequence": Case(
        partial(tasks.Chain, 3), partial(sequences, 3), partial(naive.bounded_chain_options, k=3), max_rows=16
    ),
    "sequence-zero-one": Case(
        partial(tasks.Chain, 3, "zero-one"),
        partial(sequences, 3),
        partial(naive.bounded_chain_options, k=3, zero_one=True),
        max_rows=16,
    ),
    "chain": Case(partial(Chain, 3), partial(sequences, 3), partial(naive.chain_options, k=3), max_rows=16),
    "error-rate": over_all_rows(ErrorRate, partial(naive.all_rows_options, loss=naive.error_rate)),
    "f1": over_all_rows(FBeta, partial(naive.all_rows_options, loss=naive.f1_loss)),
    "f2": over_all_rows(
        partial(FBeta, 2.0), partial(naive.all_rows_options, loss=partial(naive.f_beta_loss, beta=2.0))
    ),
    "break-even": over_all_rows(PrecisionAtK, naive.at_k_options),
    "precision-at-3": over_all_rows(partial(PrecisionAtK, 3), partial(naive.at_k_options, k=lambda n: 3)),
    "recall-at-share": over_all_rows(
        partial(RecallAtK, 0.25), partial(naive.at_k_options, k=lambda n: max(1, round(n / 4)), recall=True)
    ),
    "roc-area": Case(ROCArea, two_positive, naive.ranking_options, max_rows=6),
    "multilabel": Case(partial(Multilabel, 3), lambda rng, n: rng.integers(0, 2, (n, 3)), naive.multilabel_options),
    "ordinal": Case(partial(Ordinal, 4), partial(every_class, 4), partial(naive.ordinal_options, n_classes=4)),
    "swaps": Case(Swaps, partial(queries, 3), naive.swap_options, max_rows=16, lowest_labels=False),
    "average-precision": Case(
        AveragePrecision, partial(queries, 2), naive.average_precision_options, max_rows=16, lowest_labels=False
    ),
}


def missing_cases():
    """Names of registered tasks that `CASES` leaves out."""
    tested = {type(case.make()) for case in CASES.values()}
    return sorted(name for name, task in TASKS.items() if task not in tested)


# Solvers that do not train what an estimator is for: other losses than that of two classes, thresholds.
TWO_CLASSES = {"bvm", "cvm", "lasvm"}
NOT_FOR = {"SVC": set(), "SVR": TWO_CLASSES, "OrdinalSVC": TWO_CLASSES | {"bsca", "bsgd", "exact", "low-rank"}}
