"""Several labels per row: a hinge for each, over one basis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm import core
from slimsvm.tasks.task import Examples, SmoothRowLoss, as_floats, unit_weights


@dataclass(frozen=True)
class Multilabel(SmoothRowLoss):
    """Ψ(x, y) = Σ_l ½ y_l φ(x) ⊗ e_l with y_l = ±1, and ℓ = Σ_l max(0, 1 − y_l s_l): Δ is the number of wrong labels.

    Parameters
    ----------
    n_labels : int
        Number of labels, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Multilabel
    >>> task = Multilabel(2)
    >>> examples = task.encode(np.array([[1, 0], [1, 1]]))
    >>> task.augment(np.array([[2.0, 0.5], [0.5, 2.0]]), np.zeros(0), examples).coef
    array([[ 0., -1.],
           [ 1.,  0.]])
    """

    n_labels: int

    def __post_init__(self):
        if self.n_labels < 1:
            raise ValueError(f"n_labels must be at least 1, found {self.n_labels}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One score column per label."""
        return self.n_labels

    def encode(self, y, sample_weight=None) -> Examples:
        """An indicator matrix (n, n_labels) of 0 and 1 (or −1 and +1), and weights of its rows."""
        y = np.asarray(y)
        if y.ndim != 2 or y.shape[1] != self.n_labels:
            raise ValueError(f"labels must be an indicator matrix of shape (n, {self.n_labels}), found shape {y.shape}")
        unknown = ~np.isin(y, (-1, 0, 1))
        if unknown.any():
            raise ValueError(f"an indicator matrix holds 0 and 1 (or -1 and +1), found {y[unknown][0]!r}")
        return Examples(np.where(y > 0, 1, -1).astype(np.int8), unit_weights(sample_weight, len(y)))

    def core_loss(self, examples: Examples):
        """See `Task.core_loss`."""
        return core.RowLoss(
            code=core.MULTILABEL,
            n_outputs=self.n_labels,
            n_classes=0,
            signs=np.ascontiguousarray(examples.labels).reshape(-1),
            weights=as_floats(examples.weights),
        )

    def decode(self, scores, plain, examples=None):
        """+1 where a score is positive, −1 elsewhere, (n, n_labels)."""
        return np.where(scores > 0, 1, -1)

    def error(self, predicted, examples: Examples) -> float:
        """Hamming loss: weighted share of wrong labels."""
        wrong = (np.asarray(predicted) > 0) != (examples.labels > 0)
        return float(np.average(wrong.mean(axis=1), weights=examples.weights))
