"""Several classes: as one problem (Crammer and Singer), as all pairs (LIBSVM's way), or in order.

Crammer and Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", JMLR 2001. Ordered
classes: Chu and Keerthi, "New Approaches to Support Vector Ordinal Regression", ICML 2005, with implicit constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.deploy.decisions import ARRAYS
from slimsvm.tasks.binary_and_regression import Binary
from slimsvm.tasks.examples import Examples
from slimsvm.tasks.task import (
    Augmented,
    RowLoss,
    SeveralClasses,
    Task,
    as_floats,
    coded_examples,
    row_loss,
    signs_of_classes,
)


@dataclass(frozen=True, eq=False)
class Multiclass(SeveralClasses):
    """Ψ(x, y) = φ(x) ⊗ e_y and ℓ = max_c [cost[y, c] + s_c − s_y].

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2. (Two classes at C are the binary problem at 2C; estimators always use `Binary`
        for two.)
    cost : array-like of shape (n_classes, n_classes) or None, default=None
        Δ(y, ŷ) ≥ 0 with a zero diagonal; None is 0/1.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Multiclass
    >>> task = Multiclass(3)
    >>> examples = task.encode(np.array([2, 0]))
    >>> task.augment(np.array([[0.0, 0.5, 1.0], [3.0, 0.0, 0.0]]), np.zeros(0), examples).coef
    array([[ 0., -1.,  1.],
           [ 0.,  0.,  0.]])
    """

    n_classes: int
    cost: Any = None
    has_share = has_class_scores = is_compiled = True
    step_loss = core.ONE_VS_REST
    bounded_by = "classes"

    def __post_init__(self):
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, found {self.n_classes}")
        k = self.n_classes
        cost = 1.0 - np.eye(k) if self.cost is None else np.array(self.cost, dtype=np.float64)
        if cost.shape != (k, k):
            raise ValueError(f"cost must have shape ({k}, {k}), found {cost.shape}")
        if not np.all(np.isfinite(cost)) or np.any(cost < 0) or np.any(np.diag(cost) != 0):
            raise ValueError("cost must hold finite numbers >= 0 with a zero diagonal")
        object.__setattr__(self, "cost", cost)

    @property
    def has_costs(self) -> bool:  # type: ignore[override]
        return not np.array_equal(self.cost, 1.0 - np.eye(self.n_classes))

    def in_pairs(self):
        """Return the task of the same classes in pairs; None with costs."""
        return None if self.has_costs else OneVsOne(self.n_classes)

    def core_loss(self, examples: Examples):
        return row_loss(
            core.MULTICLASS,
            examples,
            self.n_classes,
            self.n_classes,
            classes=np.ascontiguousarray(examples.labels),
            cost=np.ascontiguousarray(self.cost, np.float64).reshape(-1),
        )


@lru_cache(maxsize=1)
def _all_pairs(n_classes: int) -> tuple[tuple[int, int], ...]:
    """Return all pairs of classes: asked for so often that hundreds of classes would take minutes to count."""
    return tuple(combinations(range(n_classes), 2))


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
    factors : tuple of float or None, default=None
        The factor of C of each pair; None: 1. A warm start may come from other factors.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import OneVsOne
    >>> OneVsOne(3).decode(np.array([[1.0, 1.0, -1.0], [-1.0, 2.0, 3.0]]), np.zeros(0))
    array([0, 1])
    """

    n_classes: int = 2
    or_scores: bool = False
    factors: tuple[float, ...] | None = field(default=None, compare=False)

    def __post_init__(self):
        if not (isinstance(self.n_classes, int | np.integer) and self.n_classes >= 2):
            raise ValueError(f"n_classes must be an integer >= 2, found {self.n_classes!r}")
        if self.factors is not None and not (len(self.factors) == self.n_outputs and min(self.factors) > 0):
            raise ValueError(f"factors must be {self.n_outputs} positive numbers, found {self.factors!r}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return self.n_classes * (self.n_classes - 1) // 2

    def class_pairs(self):
        """Return all pairs of classes, (0, 1), (0, 2), …"""
        return _all_pairs(self.n_classes)

    def pair_factor(self, k):
        return 1.0 if self.factors is None else float(self.factors[k])

    def pair_factors(self):
        return np.ones(self.n_outputs) if self.factors is None else np.array(self.factors, np.float64)

    def in_scores(self):
        """Return the task of the same classes with a score each, if ``or_scores`` allows it."""
        return Multiclass(self.n_classes) if self.or_scores else None

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode codes 0, 1, … of the classes and weights as one-row examples."""
        return coded_examples(y, self.n_classes, sample_weight)

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        pairs, classes = np.array(self.class_pairs()), np.arange(self.n_classes)[:, None]
        signs = ((pairs[:, 0] == classes) - 1.0 * (pairs[:, 1] == classes))[examples.labels]
        counts = np.where((signs != 0) & (signs * scores < 1), self.pair_factors(), 0.0)
        return Augmented(delta=counts.sum(axis=1), coef=counts * signs)

    def decode(self, scores, plain, examples=None):
        """Return the codes of the classes with the most votes."""
        return ARRAYS.greatest(ARRAYS.votes(ARRAYS.above(scores), self.n_classes))


@dataclass(frozen=True)
class HingeOneVsRest(SeveralClasses):
    """A score for each class, positive for it: a row's loss is the sum of the hinge losses of all of them.

    Each class against the rest is a two-class problem of its own. Predicted is the class of the greatest score.

    Parameters
    ----------
    n_classes : int

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import HingeOneVsRest
    >>> task = HingeOneVsRest(3)
    >>> task.augment(np.array([[0.5, -2.0, 0.0]]), np.zeros(0), task.encode(np.array([0]))).coef
    array([[ 1.,  0., -1.]])
    """

    n_classes: int
    has_class_scores = has_columns = True
    step_loss = core.ONE_VS_REST

    def __post_init__(self):
        if not (isinstance(self.n_classes, int | np.integer) and self.n_classes >= 2):
            raise ValueError(f"n_classes must be an integer >= 2, found {self.n_classes!r}")

    def columns(self, examples: Examples):
        task = Binary()
        return [
            (task, task.encode(np.where(examples.labels == c, 1, -1), examples.weights)) for c in range(self.n_classes)
        ]

    def core_loss(self, examples: Examples):
        """Return the loss with labels and weights, as the core has it: that of an indicator matrix."""
        return row_loss(
            core.HINGE, examples, self.n_classes, signs=signs_of_classes(examples, self.n_classes), cost=np.ones(2)
        )


@dataclass(frozen=True)
class Ordinal(RowLoss):
    """ℓ = Σ_j max(0, 1 − y_j (f(x) − θ_j)), y_j = +1 for classes above the threshold j, else −1.

    One function f, and a threshold between any two neighbours: every row asks every threshold to be on its side of
    f(x), by 1. At the optimum the thresholds are in order by themselves. They are the n_classes − 1 plain parameters,
    regularised like the rest of w; there is no other intercept. Δ is the number of thresholds on the wrong side: how
    many classes off the prediction is.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Ordinal
    >>> task = Ordinal(3)
    >>> task.decode(np.array([[-2.0], [0.0], [5.0]]), np.array([-1.0, 1.0]))
    array([0, 1, 2])
    """

    n_classes: int
    has_threshold = False

    def __post_init__(self):
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, found {self.n_classes}")

    @property
    def n_plain(self) -> int:  # type: ignore[override]
        """Return the number of thresholds, one between any two neighbours."""
        return self.n_classes - 1

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode class codes 0 .. n_classes − 1, lowest first, and weights as one-row examples."""
        return coded_examples(y, self.n_classes, sample_weight)

    def core_loss(self, examples: Examples):
        return row_loss(core.ORDINAL, examples, 1, self.n_classes, classes=np.ascontiguousarray(examples.labels))

    def decode(self, scores, plain, examples=None):
        """Return the class c with the greatest Σ_{j<c} (f − θ_j), the lowest among equals: rising θ_j are counted."""
        codes = np.empty(len(scores), dtype=np.int64)
        core.decode_ordinal(scores=as_floats(scores), thresholds=as_floats(plain), codes=codes)
        return codes

    def error(self, predicted, examples: Examples) -> float:
        """Return the weighted mean of how many classes off the predictions are."""
        return float(np.average(np.abs(predicted - examples.labels), weights=examples.weights))
