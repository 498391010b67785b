"""How good predictions are, for numbers and for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.cli.data import Part
from slimsvm.estimators import RankSVM, SequenceSVM


def predict(estimator: Any, part: Part) -> np.ndarray:
    """Predictions for the rows of a part."""
    if isinstance(estimator, SequenceSVM):
        return estimator.predict(part.X, lengths=part.extra["lengths"])
    return estimator.predict(part.X)


def quality(estimator: Any, part: Part, predicted: np.ndarray) -> dict[str, Any]:
    """What is said of predictions: error rate of a classifier, of a sequence labeller also of whole sequences; the
    measure of a ranking and its NDCG (where no label is negative); mean absolute and root mean squared error of a
    regression.

    Parameters
    ----------
    estimator : SVC, SVR, RankSVM or SequenceSVM
    part : Part
        With its true labels, as a file gave them.
    predicted : ndarray of shape (n,)
    """
    y = part.y
    if isinstance(estimator, RankSVM):
        value = estimator.score(part.X, y, **part.extra)
        values = {"share_in_order" if estimator.loss == "swaps" else "average_precision": value}
        return values | ({"ndcg": estimator.ndcg(part.X, y, **part.extra)} if y.min() >= 0 else {})
    if not hasattr(estimator, "classes_"):
        residual = np.asarray(y, dtype=np.float64) - predicted
        return {
            "mean_absolute_error": float(np.abs(residual).mean()),
            "root_mean_squared_error": float(np.sqrt(np.square(residual).mean())),
        }
    wrong = predicted != as_classes(y, estimator.classes_)
    n_wrong = int(np.count_nonzero(wrong))
    values = {"error_rate": n_wrong / len(y), "n_wrong": n_wrong}
    if "lengths" in part.extra:
        ends = np.cumsum(part.extra["lengths"])
        of_sequence = np.diff(np.cumsum(np.append(0, wrong))[np.append(0, ends)]) > 0
        values |= {"n_sequences_wrong": int(of_sequence.sum()), "n_sequences": len(ends)}
    return values


def as_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels in the type of the classes: 1 and 2 in a test file mean "1" and "2" where training had texts too."""
    return y.astype(str) if classes.dtype.kind in "OU" and y.dtype.kind not in "OU" else y


def as_numbers(y: np.ndarray) -> np.ndarray:
    """Labels as numbers where all are: 007 is a number where numbers are predicted."""
    try:
        return y.astype(np.float64) if y.dtype.kind in "OU" else y
    except ValueError:
        return y


def describe_quality(values: dict[str, Any]) -> str:
    """The values of `quality` with `n_rows`, in words."""
    if "error_rate" in values:
        wrong = f"{values['n_wrong']:,} of {values['n_rows']:,} wrong"
        if "n_sequences" in values:
            wrong += f"; {values['n_sequences_wrong']:,} of {values['n_sequences']:,} sequences"
        return f"error {100 * values['error_rate']:.2f} % ({wrong})"
    gain = f", NDCG {values['ndcg']:.4f}" if "ndcg" in values else ""
    if "share_in_order" in values:
        return f"{100 * values['share_in_order']:.2f} % of the pairs of a query in order, on average{gain}"
    if "average_precision" in values:
        return f"mean average precision {values['average_precision']:.4f}{gain}"
    return (
        f"mean absolute error {values['mean_absolute_error']:.4g}, "
        f"root mean squared error {values['root_mean_squared_error']:.4g} ({values['n_rows']:,} rows)"
    )
