"""Ranking the rows of queries: swapped pairs, average precision.

Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002; Yue, Finley, Radlinski, Joachims, "A Support
Vector Method for Optimizing Average Precision", SIGIR 2007. One example is one query, the rows among which to rank.
With the pairs (i, j) in which i should stand above j, and ȳ_ij = ±1 for whether it does,

    Ψ = 1/(number of pairs) Σ_{(i, j)} ½ ȳ_ij (φ(x_i) − φ(x_j)),

so that a query's loss is of the size of Δ in [0, 1] whatever its length. A query without a pair (one row, or rows that
are all alike) has no loss. (Yue et al. have no ½: their C is four times ours.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import Augmented, Task, as_floats, pieces

Array = np.ndarray

ROWS_PER_CALL = 200_000  # some 20 ms


class Ranking(Task):
    """The base class of losses over the rankings of queries."""

    has_threshold = False

    def encode(self, y: Any, sample_weight=None) -> Examples:
        """Encode a list of queries, each the labels of its rows, and a weight for each query."""
        queries = [np.asarray(labels) for labels in y]
        if not queries:
            raise ValueError("y must hold at least one query, found none")
        for q, labels in enumerate(queries):
            if labels.ndim != 1 or labels.dtype.kind not in "biuf":
                raise ValueError(
                    f"every query must be a 1-D list of numbers, one per row; query {q} has shape {labels.shape} and "
                    f"type {labels.dtype}"
                )
            if not np.isfinite(labels).all():
                raise ValueError(f"labels must be finite; found {labels[~np.isfinite(labels)][0]} in query {q}")
        offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in queries])]).astype(np.int64)
        if offsets[-1] == 0:
            raise ValueError("y must hold at least one row, found empty queries only")
        return Examples(
            labels=self.grades(np.concatenate(queries), offsets),
            weights=unit_weights(sample_weight, len(queries)),
            offsets=offsets,
        )

    def grades(self, y: Array, offsets: Array) -> Array:
        """Return labels as compiled code has them: integers from 0 on, the higher the better."""
        raise TypeError(f"{type(self).__name__} must define grades(y, offsets)")

    def decode(self, scores, plain, examples=None):
        """Return the scores themselves: the prediction is a ranking."""
        return scores[:, 0]

    def measures(self, predicted: Array, examples: Examples) -> Array:
        """Return 1 − Δ of the ranking of each query by predicted scores; NaN for queries without a pair."""
        raise TypeError(f"{type(self).__name__} must define measures(predicted, examples)")

    def error(self, predicted, examples: Examples) -> float:
        """Return the weighted mean of Δ over the queries with a pair; 0 if there is none."""
        values = self.measures(np.asarray(predicted, dtype=np.float64), examples)
        counted = ~np.isnan(values)
        if not counted.any():
            return 0.0
        return float(np.average(1.0 - values[counted], weights=examples.weights[counted]))


class Swaps(Ranking):
    """Share of a query's pairs that are swapped: the mean hinge max(0, 1 − (s_i − s_j)) over its pairs.

    Labels are relevance grades, any numbers: of two rows of a query the one of the higher grade should stand above.
    Found in O(n log n) for any number of grades.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Swaps
    >>> task = Swaps()
    >>> examples = task.encode([[2, 1, 0], [1]])
    >>> task.augment(np.array([[3.0], [3.5], [0.0], [9.0]]), np.zeros(0), examples).delta
    array([0.33333333, 0.        ])
    """

    def grades(self, y, offsets):
        """Return the grades of each query as 0, 1, 2, ..., none left out."""
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.lexsort((y, query))
        risen = np.concatenate([[False], (y[order][1:] > y[order][:-1]) & (query[order][1:] == query[order][:-1])])
        steps = np.cumsum(risen)
        filled = np.flatnonzero(np.diff(offsets))
        codes = np.empty(len(y), dtype=np.int64)
        codes[order] = steps - np.repeat(steps[offsets[filled]], np.diff(offsets)[filled])
        return codes

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Return the loss-augmented argmax. A pair is swapped if s_i − s_j ≤ 1: its labels −1 and +1 tie at 1."""
        delta, coef, scores = np.empty(examples.n_examples), np.empty((examples.n_rows, 1)), as_floats(scores)
        offsets, order = order_of(scores[:, 0], examples)
        given = {"grades": examples.labels, "offsets": offsets, "order": order, "scores": scores}
        call_in_pieces(core.augment_swaps.prepare(**given, delta=delta, coef=coef), offsets)
        return Augmented(delta, coef)

    def measures(self, predicted, examples: Examples):
        """Return the share of the pairs of each query that are ranked the right way round, ties half."""
        shares = np.empty(examples.n_examples)
        offsets, order = order_of(predicted, examples)
        given = {"grades": examples.labels, "offsets": offsets, "order": order, "predicted": as_floats(predicted)}
        call_in_pieces(core.swapped_shares.prepare(**given, shares=shares), offsets)
        return 1.0 - shares


class AveragePrecision(Ranking):
    """1 − AP, AP the mean over a query's relevant rows of the precision among the rows down to there.

    Rows of label > 0 are relevant, the others are not. The argmax takes O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import AveragePrecision
    >>> task = AveragePrecision()
    >>> examples = task.encode([[1, 0, 1]])
    >>> task.measures(np.array([3.0, 2.0, 1.0]), examples)
    array([0.83333333])
    """

    def grades(self, y, offsets):
        """Return 1 for relevant rows, 0 for the others."""
        return (y > 0).astype(np.int64)

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Return the loss-augmented argmax. Ties: the fewest swapped pairs; rows of equal scores keep their order."""
        delta, coef, scores = np.empty(examples.n_examples), np.empty((examples.n_rows, 1)), as_floats(scores)
        offsets, order = order_of(-scores[:, 0], examples, kind="stable")
        given = {"relevance": examples.labels, "offsets": offsets, "order": order, "scores": scores}
        call_in_pieces(core.augment_average_precision.prepare(**given, delta=delta, coef=coef), offsets)
        return Augmented(delta, coef)

    def measures(self, predicted, examples: Examples):
        """Return AP of each query; rows of equal scores stand together, as in
        `sklearn.metrics.average_precision_score`.
        """
        values, offsets = np.full(examples.n_examples, np.nan), examples.row_offsets
        query = examples.example_of_rows()
        order = np.lexsort((-predicted, query))
        relevant = examples.labels[order]
        ends = (np.diff(predicted[order]) != 0) | (np.diff(query) != 0)
        ends = np.append(np.flatnonzero(ends), len(order) - 1)
        last = np.repeat(ends, np.diff(ends, prepend=-1))
        first = np.repeat(offsets[:-1], np.diff(offsets))
        total = np.append(0, np.cumsum(relevant))
        sums = np.append(0.0, np.cumsum(relevant * (total[last + 1] - total[first]) / (last + 1 - first)))
        n_relevant = np.diff(total[offsets])
        counted = (n_relevant > 0) & (n_relevant < np.diff(offsets))
        values[counted] = np.diff(sums[offsets])[counted] / n_relevant[counted]
        return values


def call_in_pieces(call: Any, offsets: Array) -> None:
    """Call a function of the core for some queries at a time, so that Ctrl-C is heard."""
    for first, last in pieces(offsets, ROWS_PER_CALL):
        call(first=first, last=last)


def order_of(scores: Array, examples: Examples, kind: Any = None) -> tuple[Array, Array]:
    """Return the offsets of queries, and the rows of each query by rising score."""
    offsets, order = examples.row_offsets, np.argsort(scores, kind=kind)
    if examples.n_examples == 1:
        return offsets, order
    out = np.empty_like(order)
    place, query = np.empty(examples.n_examples, np.int64), examples.example_of_rows()
    core.order_in_queries(order=order, query=query, offsets=offsets, place=place, out=out)
    return offsets, out
