"""Several classes as all pairs of them, as LIBSVM has it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from slimsvm.deploy.decisions import ARRAYS
from slimsvm.tasks.multiclass import Multiclass
from slimsvm.tasks.task import Augmented, Examples, Task, unit_weights


@dataclass(frozen=True)
class OneVsOne(Task):
    """A score for each pair of classes (a, b), a < b, positive for a; a row's loss is its pairs' hinge losses.

    The pairs share nothing but rows: each is a two-class problem of its own. Predicted is the class with the most
    votes, of equals the lowest.

    Parameters
    ----------
    n_classes : int
    or_scores : bool, default=False
        Whether a solver may take one score for each class instead (`Multiclass`).

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import OneVsOne
    >>> OneVsOne(3).decode(np.array([[1.0, 1.0, -1.0], [-1.0, 2.0, 3.0]]), np.zeros(0))
    array([0, 1])
    """

    n_classes: int = 2
    or_scores: bool = False

    def __post_init__(self):
        if not (isinstance(self.n_classes, int | np.integer) and self.n_classes >= 2):
            raise ValueError(f"n_classes must be an integer >= 2, found {self.n_classes!r}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Number of pairs."""
        return self.n_classes * (self.n_classes - 1) // 2

    def class_pairs(self):
        """See `Task.class_pairs`."""
        return list(combinations(range(self.n_classes), 2))

    def in_scores(self):
        """See `Task.in_scores`."""
        return Multiclass(self.n_classes) if self.or_scores else None

    def encode(self, y, sample_weight=None) -> Examples:
        """Codes 0, 1, … of the classes and weights as one-row examples."""
        y = np.asarray(y)
        is_whole = y.dtype.kind in "biu" or (y.dtype.kind == "f" and bool((y == np.rint(y)).all()))
        if y.ndim != 1 or not is_whole or (len(y) and not 0 <= y.min() <= y.max() < self.n_classes):
            raise ValueError(f"labels must be 0 to {self.n_classes - 1}, one per row")
        return Examples(labels=y.astype(np.int64), weights=unit_weights(sample_weight, len(y)))

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """See `Task.augment`."""
        signs = np.zeros(scores.shape)
        for column, (a, b) in enumerate(self.class_pairs()):
            signs[:, column] = (examples.labels == a) - 1.0 * (examples.labels == b)
        within = (signs != 0) & (signs * scores < 1)
        return Augmented(delta=within.sum(axis=1).astype(np.float64), coef=np.where(within, signs, 0.0))

    def decode(self, scores, plain, examples=None):
        """Codes of the classes with the most votes."""
        return ARRAYS.greatest(ARRAYS.votes(ARRAYS.above(scores), self.n_classes))
