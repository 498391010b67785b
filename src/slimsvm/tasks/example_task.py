"""A user's own task, written example by example in Python."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from slimsvm.core.clock import check_time
from slimsvm.tasks.known_labellings import Known, known_by
from slimsvm.tasks.task import Augmented, Examples, Task, unit_weights

Array = np.ndarray


class ExampleTask(Task):
    """Base of a user's own task: what a labelling is, what it costs, which one is best.

    A labelling is any Python object: a number, a tuple, an array. Its score is the sum of ``features(y)`` times the
    scores of the example's rows (and times the plain parameters, where there are some). A subclass sets ``n_outputs``
    (and ``n_plain``), and defines `features`, `loss`, and `labels` or `best`; `slimsvm.check_task` says whether they
    belong together. What they return must depend on their arguments alone: a fit asks once for the features of a
    labelling and for the loss of a pair, and keeps up to 64 MB of the answers.

    Where `StructuredSVM.fit` is given ``structure`` (one object per example: a shape, a list of edges), all four get
    the example's own as a keyword argument ``structure``.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import ExampleTask
    >>> class Grades(ExampleTask):
    ...     n_outputs = 4
    ...     def features(self, y):
    ...         return np.eye(4)[[y]]
    ...     def loss(self, y, other):
    ...         return abs(y - other)
    ...     def labels(self, n_rows):
    ...         return range(4)
    >>> task = Grades()
    >>> task.augment(np.zeros((1, 4)), np.zeros(0), task.encode([1])).coef
    array([[ 0.,  1.,  0., -1.]])
    """

    has_object_labels = True

    def features(self, y: Any) -> Any:
        """What the labelling y makes of the rows: coefficients (n_rows, n_outputs); with plain parameters a pair of
        these and coefficients (n_plain,).
        """
        raise TypeError(f"{type(self).__name__} must define features(y)")

    def loss(self, y: Any, other: Any) -> float:
        """What it costs to say ``other`` where y is right: at least 0, and 0 for y itself."""
        raise TypeError(f"{type(self).__name__} must define loss(y, other)")

    def labels(self, n_rows: int) -> Iterable[Any]:
        """All labellings of ``n_rows`` rows, lowest first. Needed without `best`; with it, for `check_task` only."""
        raise TypeError(f"{type(self).__name__} must define labels(n_rows), or best(scores, plain, y=None)")

    def best(self, scores: Array, plain: Array, y: Any = None, **structure: Any) -> Any:
        """The labelling of the greatest score; where y is given, of the greatest score plus ``loss(y, labelling)``.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_outputs)
            Of one example's rows.
        plain : ndarray of shape (n_plain,)
        y : labelling or None
        **structure
            The example's ``structure``, where `StructuredSVM.fit` is given one.

        Notes
        -----
        Unless overridden it tries all `labels`; of equal ones the first is taken.
        """
        return known_by(self).find(self, scores, plain, structure, y)

    # -- what the library asks ------------------------------------------------------------------------------------

    def encode(self, y: Any, sample_weight=None, structure: Any = None) -> Examples:
        """A list of labellings, one per example; a weight, and a structure, for each."""
        labellings = list(y)
        if not labellings:
            raise ValueError("y must hold at least one example, found none")
        per_example = {"y": as_objects(labellings)}
        if structure is not None:
            per_example["structure"] = as_objects(list(structure))
            if len(per_example["structure"]) != len(labellings):
                raise ValueError(
                    f"structure must have one entry per example: {len(labellings)} examples, found {len(structure)}"
                )
        known, lengths = Known(), []
        for e, labelling in enumerate(labellings):
            known.add_name(labelling)
            coef, _ = known.parts(self, labelling, keywords_of(per_example, e), f"example {e}: ")
            lengths.append(len(coef))
        return Examples(
            labels=np.zeros(sum(lengths), dtype=np.int8),
            weights=unit_weights(sample_weight, len(labellings)),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            per_example=per_example,
            shared={"known": known},
        )

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """See `Task.augment`: by `best`, `loss` and `features` of every example."""
        delta, coef = np.empty(examples.n_examples), np.empty((examples.n_rows, self.n_outputs))
        part = np.empty((examples.n_examples, self.n_plain)) if self.n_plain else None
        known = known_of(examples)
        for e, (lo, hi) in enumerate(bounds_of(examples)):
            y, keywords = examples.per_example["y"][e], keywords_of(examples.per_example, e)
            other = self.find(scores[lo:hi], plain, keywords, y, known)
            own, wrong = known.parts(self, y, keywords), known.parts(self, other, keywords)
            delta[e] = known.loss(self, y, other, keywords)
            coef[lo:hi] = own[0] - wrong[0]
            if part is not None:
                part[e] = own[1] - wrong[1]
        return Augmented(delta, coef, part)

    def decode(self, scores, plain, examples=None):
        """The best labelling of every example, an object ndarray (n_examples,)."""
        if examples is None:
            return as_objects([self.find(scores, plain, {})])
        known = known_of(examples)
        return as_objects(
            [
                self.find(scores[lo:hi], plain, keywords_of(examples.per_example, e), known=known)
                for e, (lo, hi) in enumerate(bounds_of(examples))
            ]
        )

    def error(self, predicted, examples: Examples) -> float:
        """Weighted mean of the losses of predicted labellings."""
        known = known_of(examples)
        costs = [
            known.loss(self, y, other, keywords_of(examples.per_example, e))
            for e, (y, other) in enumerate(zip(examples.per_example["y"], predicted))
        ]
        return float(np.average(costs, weights=examples.weights))

    # -- one example ------------------------------------------------------------------------------------------------

    def find(
        self, scores: Array, plain: Array, keywords: dict[str, Any], y: Any = None, known: Known | None = None
    ) -> Any:
        """`best` of one example."""
        check_time()
        with (Known() if known is None else known).of(self):
            return self.best(scores, plain, y=y, **keywords)

    def worth(self, other: Any, scores: Array, plain: Array, keywords: dict[str, Any], y: Any = None) -> float:
        """Score of a labelling, plus its loss where y is given."""
        coef, part = self.parts(other, keywords)
        cost = 0.0 if y is None else self.loss(y, other, **keywords)
        return float(np.sum(coef * scores) + part @ plain) + cost

    def parts(self, y: Any, keywords: dict[str, Any], where: str = "") -> tuple[Array, Array]:
        """`features` as a pair of arrays, checked."""
        found = self.features(y, **keywords)
        coef, part = found if self.n_plain else (found, np.zeros(0))
        coef, part = np.asarray(coef, dtype=np.float64), np.asarray(part, dtype=np.float64)
        if coef.ndim != 2 or coef.shape[1] != self.n_outputs or part.shape != (self.n_plain,):
            raise ValueError(
                f"{where}features({y!r}) must have shape (n_rows, {self.n_outputs})"
                + (f" and ({self.n_plain},)" if self.n_plain else "")
                + f", found {coef.shape}"
                + (f" and {part.shape}" if self.n_plain else "")
            )
        return coef, part


def as_objects(items: list[Any]) -> Array:
    """A 1-D array of any objects, arrays among them."""
    out = np.empty(len(items), dtype=object)
    for k, item in enumerate(items):
        out[k] = item
    return out


def known_of(examples: Examples) -> Known:
    """What a task has said about the labellings of these examples."""
    known: Known = examples.shared.setdefault("known", Known())
    return known


def bounds_of(examples: Examples) -> list[tuple[int, int]]:
    """First and last row of every example."""
    return list(pairwise(range(examples.n_rows + 1) if examples.offsets is None else examples.offsets.tolist()))


def keywords_of(per_example: Any, e: int) -> dict[str, Any]:
    """The keyword arguments of example e."""
    return {"structure": per_example["structure"][e]} if "structure" in per_example else {}
