"""Sequence labelling by a linear chain: kernelised emissions, plain parameters for transitions, start and end.

Altun, Tsochantaridis, Hofmann, "Hidden Markov Support Vector Machines", ICML 2003; Taskar, Guestrin, Koller,
"Max-Margin Markov Networks", NIPS 2003. One example is one sequence of rows x_1 .. x_L with labels y_1 .. y_L:

    ⟨w, Ψ(x, y)⟩ = start[y_1] + Σ_t ⟨w_{y_t}, φ(x_t)⟩ + Σ_t T[y_t, y_{t+1}] + end[y_L].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.numerics.chain import (
    CHAIN_LOSSES,
    EXAMPLES_PER_TILE,
    chain_along,
    chain_augment,
    chain_decode,
)
from slimsvm.numerics.threads import run_tiles
from slimsvm.tasks.base import Augmented, Examples, Task, unit_weights

Array = np.ndarray


@dataclass(frozen=True)
class Chain(Task):
    """Sequences of labels 0 .. n_labels − 1.

    The plain parameters are T (n_labels², row by row), start and end (n_labels each).

    Parameters
    ----------
    n_labels : int
        Number of labels, at least 2.
    loss : {"hamming", "zero-one"}, default="hamming"
        Δ: the number of wrong labels of a sequence, or 1 if any is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Chain
    >>> task = Chain(2)
    >>> examples = task.encode([[0, 1, 1], [1]])
    >>> augmented = task.augment(np.zeros((4, 2)), np.zeros(8), examples)
    >>> augmented.delta
    array([3., 1.])
    >>> augmented.plain[1]
    array([ 0.,  0.,  0.,  0., -1.,  1., -1.,  1.])
    """

    n_labels: int
    loss: str = "hamming"

    def __post_init__(self):
        if self.n_labels < 2:
            raise ValueError(f"n_labels must be at least 2, found {self.n_labels}")
        if self.loss not in CHAIN_LOSSES:
            raise ValueError(f"loss must be 'hamming' or 'zero-one', found {self.loss!r}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One score column per label."""
        return self.n_labels

    @property
    def n_plain(self) -> int:  # type: ignore[override]
        """Transitions, start and end."""
        return self.n_labels**2 + 2 * self.n_labels

    def encode(self, y: Any, sample_weight=None) -> Examples:
        """A list of sequences of label codes, and a weight for each sequence."""
        sequences = [np.asarray(labels) for labels in y]
        if not sequences:
            raise ValueError("y must hold at least one sequence, found none")
        for e, labels in enumerate(sequences):
            if labels.ndim != 1 or not len(labels):
                raise ValueError(f"every sequence must be 1-D and hold a label; sequence {e} has shape {labels.shape}")
            bad = ~np.isin(labels, np.arange(self.n_labels))
            if bad.any():
                raise ValueError(
                    f"label codes must be integers from 0 to {self.n_labels - 1}; found {labels[bad][0]!r} in "
                    f"sequence {e}"
                )
        return Examples(
            labels=np.concatenate(sequences).astype(np.int64),
            weights=unit_weights(sample_weight, len(sequences)),
            offsets=np.concatenate([[0], np.cumsum([len(labels) for labels in sequences])]).astype(np.int64),
        )

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """See `Task.augment`. Ties: the lowest label in the first row, then in the second, and so on."""
        delta, coef = np.empty(examples.n_examples), np.zeros((examples.n_rows, self.n_labels))
        part = np.zeros((examples.n_examples, self.n_plain))
        where = (examples.labels, examples.row_offsets, *_as_floats(scores, plain), CHAIN_LOSSES[self.loss])
        chain_augment(*where, delta, coef, part, 0, _n_tiles(examples.row_offsets))
        return Augmented(delta, coef, part)

    def along(self, base, direction, k, examples: Examples, n_jobs=1):
        """See `Task.along`."""
        out = np.empty((_n_tiles(examples.row_offsets), 2))
        where = (examples.labels, examples.row_offsets, examples.weights, *_as_floats(*base), *_as_floats(*direction))
        run_tiles(lambda lo, hi: chain_along(*where, float(k), CHAIN_LOSSES[self.loss], out, lo, hi), len(out), n_jobs)
        loss, gain = out.sum(axis=0)
        return float(loss), -float(gain)

    def decode(self, scores, plain, examples=None):
        """Labels of the greatest score of every sequence; without examples all rows are one."""
        labels = np.empty(len(scores), dtype=np.int64)
        offsets = np.array([0, len(scores)]) if examples is None else examples.row_offsets
        chain_decode(offsets, *_as_floats(scores, plain), labels, 0, _n_tiles(offsets))
        return labels

    def error(self, predicted, examples: Examples) -> float:
        """Weighted share of wrong labels, or of sequences with any wrong label for the 0/1 loss."""
        if self.loss == "hamming":
            return super().error(predicted, examples)
        wrong = np.add.reduceat(np.asarray(predicted) != examples.labels, examples.row_offsets[:-1]) > 0
        return float(np.average(wrong, weights=examples.weights))


def _n_tiles(offsets: Array) -> int:
    return -(-(len(offsets) - 1) // EXAMPLES_PER_TILE)


def _as_floats(scores: Array, plain: Array) -> tuple[Array, Array]:
    """The arrays as compiled code has them."""
    return np.ascontiguousarray(scores, dtype=np.float64), np.ascontiguousarray(plain, dtype=np.float64)
