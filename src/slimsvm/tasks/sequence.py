"""Sequence labelling by a linear chain: kernelised emissions, plain parameters for transitions, start and end.

Altun, Tsochantaridis, Hofmann, "Hidden Markov Support Vector Machines", ICML 2003; Taskar, Guestrin, Koller,
"Max-Margin Markov Networks", NIPS 2003. One example is one sequence of rows x_1 .. x_L with labels y_1 .. y_L:

    ⟨w, Ψ(x, y)⟩ = start[y_1] + Σ_t ⟨w_{y_t}, φ(x_t)⟩ + Σ_t T[y_t, y_{t+1}] + end[y_L].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import Augmented, Task, as_floats, pieces

Array = np.ndarray

CHAIN_LOSSES = {"hamming": core.HAMMING, "zero-one": core.ZERO_ONE}
# The transitions between labels in one call: some 20 ms.
STEPS_PER_CALL = 30_000_000


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
    has_class_scores = is_compiled = True

    def __post_init__(self):
        if self.n_labels < 2:
            raise ValueError(f"n_labels must be at least 2, found {self.n_labels}")
        if self.loss not in CHAIN_LOSSES:
            raise ValueError(f"loss must be 'hamming' or 'zero-one', found {self.loss!r}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return self.n_labels

    @property
    def n_plain(self) -> int:  # type: ignore[override]
        """Return the number of plain parameters: transitions, start and end."""
        return self.n_labels**2 + 2 * self.n_labels

    def encode(self, y: Any, sample_weight=None) -> Examples:
        """Encode a list of sequences of label codes, and a weight for each sequence."""
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

    def core_loss(self, examples: Examples):
        return core.SequenceLoss(
            code=CHAIN_LOSSES[self.loss],
            n_classes=self.n_labels,
            per_row=examples.n_examples / examples.n_rows,
            classes=np.ascontiguousarray(examples.labels, np.int64),
            weights=examples.weights[examples.example_of_rows()],
        )

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Return the loss-augmented argmax. Ties: the lowest label in the first row, then in the second, and so on."""
        delta, coef = np.empty(examples.n_examples), np.empty((examples.n_rows, self.n_labels))
        part = np.empty((examples.n_examples, self.n_plain))
        augment = core.augment_chains.prepare(
            loss=CHAIN_LOSSES[self.loss],
            labels=examples.labels,
            offsets=examples.row_offsets,
            scores=as_floats(scores),
            plain=as_floats(plain),
            delta=delta,
            coef=coef,
            part=part,
        )
        for first, last in self._pieces(examples.row_offsets):
            augment(first=first, last=last)
        return Augmented(delta, coef, part)

    def along(self, base, direction, k, examples: Examples, n_jobs=1):
        along = core.chains_along.prepare(
            loss=CHAIN_LOSSES[self.loss],
            labels=examples.labels,
            offsets=examples.row_offsets,
            weights=examples.weights,
            base=as_floats(base[0]),
            base_plain=as_floats(base[1]),
            direction=as_floats(direction[0]),
            direction_plain=as_floats(direction[1]),
            step=k,
            n_threads=n_jobs,
        )
        found = [along(first=first, last=last) for first, last in self._pieces(examples.row_offsets)]
        return sum(value for value, _ in found), sum(slope for _, slope in found)

    def decode(self, scores, plain, examples=None):
        """Return the labels of the greatest score of every sequence; without examples all rows are one."""
        labels = np.empty(len(scores), dtype=np.int64)
        offsets = np.array([0, len(scores)]) if examples is None else examples.row_offsets
        decode = core.decode_chains.prepare(
            offsets=offsets, scores=as_floats(scores), plain=as_floats(plain), labels=labels
        )
        for first, last in self._pieces(offsets):
            decode(first=first, last=last)
        return labels

    def n_best(self, scores: Array, plain: Array, n: int) -> tuple[Array, Array]:
        """Return the labellings of the `n` greatest scores of one sequence.

        The recursion runs from the end, as in `decode`, and keeps the n best continuations of every label.

        Returns
        -------
        labels : int64 ndarray of shape (m, length)
            m is n, or the number of all labellings where there are fewer. Best first; ties as in `augment`.
        scores : float64 ndarray of shape (m,)
        """
        if not len(scores):
            return np.zeros((1, 0), np.int64), np.zeros(1)
        steps, start, end = self.parts(plain)
        value = (scores[-1] + end)[:, None]
        choices = []
        for row in scores[-2::-1]:
            after = (steps[:, :, None] + value).reshape(self.n_labels, -1)
            order = np.argsort(-after, axis=1, kind="stable")[:, :n]
            choices.append((order, value.shape[1]))
            value = row[:, None] + np.take_along_axis(after, order, axis=1)
        total = (value + start[:, None]).ravel()
        best = np.argsort(-total, kind="stable")[:n]
        labels = np.empty((len(best), len(scores)), np.int64)
        labels[:, 0], rank = np.divmod(best, value.shape[1])
        for t, (order, width) in enumerate(reversed(choices), 1):
            labels[:, t], rank = np.divmod(order[labels[:, t - 1], rank], width)
        return labels, total[best]

    def margins(self, scores: Array, plain: Array) -> Array:
        """Return by how much the best labelling with a label in a row beats the best with another label there.

        Returns
        -------
        float64 ndarray of shape (length, n_labels)
            At most one entry of a row is above 0: that of the label which `decode` has there.
        """
        if not len(scores):
            return np.zeros((0, self.n_labels))
        steps, start, end = self.parts(plain)
        before, after = [start + scores[0]], [end]
        for row in scores[1:]:
            before.append((before[-1][:, None] + steps).max(axis=0) + row)
        for row in scores[:0:-1]:
            after.append((steps + (row + after[-1])).max(axis=1))
        through = np.array(before) + np.array(after[::-1])
        two = -np.partition(-through, 1, axis=1)[:, :2]
        is_best = np.zeros(through.shape, bool)
        is_best[np.arange(len(through)), through.argmax(axis=1)] = True
        return through - np.where(is_best, two[:, 1:], two[:, :1])

    def parts(self, plain: Array) -> tuple[Array, Array, Array]:
        """Split plain parameters into transitions, start and end."""
        k = self.n_labels
        return plain[: k * k].reshape(k, k), plain[k * k : k * k + k], plain[k * k + k :]

    def _pieces(self, offsets: Array) -> list[tuple[int, int]]:
        return pieces(offsets, max(1, STEPS_PER_CALL // self.n_labels**2))

    def error(self, predicted, examples: Examples) -> float:
        """Return the weighted share of wrong labels, or of sequences with any wrong label for the 0/1 loss."""
        if self.loss == "hamming":
            return super().error(predicted, examples)
        wrong = np.add.reduceat(np.asarray(predicted) != examples.labels, examples.row_offsets[:-1]) > 0
        return float(np.average(wrong, weights=examples.weights))
