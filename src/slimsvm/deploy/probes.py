"""Rows near a model's own vectors: what a shipped form's errors are measured on where there are no others.

They also say whether rows in float32 are good enough: what these lose goes by the magnitude of features, which the
vectors have, against 1 / gamma.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slimsvm.deploy.conformal import steepness_of
from slimsvm.deploy.decisions import ARRAYS, DECISIONS, NUMBERS
from slimsvm.deploy.plain_model import PROBES, PlainModel, of_term

Array = np.ndarray

# What errors of scores are promised to be over the largest score. On test rows of the benchmark's sets they were up to
# 1.7 times those of the rows here, so these must be better.
PROMISED_SHARE, GOOD_SHARE = 5e-6, 2.5e-6
# By so many times the largest error on the rows here the bounds of sets and intervals are widened.
TIMES_OF_PROBES = 2.0
# And what errors of probabilities are promised to be.
PROMISED_OF_PROBABILITIES = 1e-5
# Rows in float32 that were asked for are refused where they change scores by more.
LOST_SHARE = 1e-3
# And scores in float32 where they are off by more: of smaller errors a sentence tells.
WRONG_SHARE = 0.1
# Scores of classifiers are margins, 2.7 to 6.5 at most on test rows of the benchmark's sets, but 15 on the rows here.
MARGINS, LARGEST_MARGIN = ("binary", "classes", "pairs", "labels", "ordinal", "ranking"), 4.0
# Rows whose scores are all smaller than this share of the others' are not judged by their own largest one.
LEAST_SHARE = 0.1


def probes(model: PlainModel) -> list[Array]:
    """Rows before any scaling: at most `PROBES` vectors, as many a step aside, as many halfway to the mean.

    On a vector and near it its kernel value is the largest, and so is that one's error; in the middle many are large at
    a time. Of weights alone the rows are normal numbers about the point nearest to 0 that lies between the classes.
    """
    if model.vectors is None:
        if model.examples is not None:
            return [model.unscaled(model.examples)]
        rows = np.random.default_rng(0).standard_normal((PROBES, model.n_features))
        return [model.unscaled(rows + _between_classes(model))]
    if not len(model.coef):
        return []
    every, vectors = slice(None, None, -(-len(model.coef) // PROBES)), model.dense_vectors()
    groups = vectors, vectors + _step_aside(model), 0.5 * (vectors + vectors.mean(axis=0))
    return [model.unscaled(rows[every]) for rows in groups]


def share_of_error(model: PlainModel, scores: Callable[[Array], Array], rows: type = np.float32) -> float:
    """The largest error of these scores of `probes`, in this type, over the largest score that these and real rows
    have; of a calibrated model also that of probabilities.
    """
    if model.kind == "targets":  # each has a range of its own
        parts = ((_of_column(model, c), _column_of(scores, c)) for c in range(model.n_outputs))
        return max(share_of_error(part, own, rows) for part, own in parts)
    errors = errors_on(model, scores, probes(model), rows)
    if model.kind == "counts":  # whose error is a share of their exponential
        return max((found.error for found in errors), default=0.0)
    if model.kind in ("regression", "quantiles"):  # of large numbers those digits count that change
        largest = _range_of_numbers(np.concatenate([model.scores(found.rows) for found in errors])) if errors else 0.0
        return max((found.error for found in errors), default=0.0) / largest if largest > 0 else 0.0
    least = LEAST_SHARE * max((found.largest for found in errors), default=0.0)
    shares = [found.error / max(found.largest, least) for found in errors]
    shares += [found.share_of_probabilities for found in errors]
    if model.calibration is not None:  # the worst that may happen: as good as the promise is good enough
        change = change_at_borders(model, max((found.error for found in errors), default=0.0))
        shares.append(change * (GOOD_SHARE / PROMISED_OF_PROBABILITIES))
    if model.kind in MARGINS:
        shares += [found.error / LARGEST_MARGIN for found in errors if found.largest > LARGEST_MARGIN]
    return max(shares, default=0.0)


def _of_column(model: PlainModel, c: int) -> PlainModel:
    """The model of one target."""
    return replace(model, kind="regression", coef=model.coef[:, [c]], intercept=model.intercept[[c]])


def _column_of(scores: Callable[[Array], Array], c: int) -> Callable[[Array], Array]:
    """The scores of one target."""
    return lambda X: scores(X)[:, [c]]


class Errors(NamedTuple):
    """The largest error of some scores, the largest score, the rows in float64, and the largest error of probabilities,
    0 without any.
    """

    error: float
    largest: float
    rows: Array
    of_probabilities: float

    @property
    def share_of_probabilities(self) -> float:
        """The error of probabilities, with `PROMISED_SHARE` for the one that is promised."""
        return self.of_probabilities * (PROMISED_SHARE / PROMISED_OF_PROBABILITIES)


def errors_on(
    model: PlainModel, scores: Callable[[Array], Array], groups: list[Array], rows_type: type = np.float32
) -> list[Errors]:
    """Compute the errors of these scores, for each group of rows in this type."""
    out, decision = [], DECISIONS[model.kind](model, ARRAYS)
    for rows in groups:
        with np.errstate(over="ignore"):
            rows = rows.astype(rows_type).astype(np.float64)
        exact, of_probabilities = model.scores(rows), 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            found = scores(rows)
            error = largest_difference(found, exact)
            if decision.has_probabilities:
                of_probabilities = largest_difference(*(decision.probabilities(each) for each in (found, exact)))
        largest = max(float(np.abs(exact).max()), np.finfo(np.float64).tiny)
        out.append(Errors(error, largest, rows, of_probabilities))
    return out


def change_at_borders(model: PlainModel, error: float) -> float:
    """Compute what an error of one score does to probabilities between classes, where those of two are steepest."""
    decision, columns = DECISIONS[model.kind](model, ARRAYS), np.eye(model.n_outputs)
    border = model.plain[:, None, None] if model.kind == "ordinal" else np.zeros((1, 1, model.n_outputs))
    moved = decision.probabilities((border + error * np.concatenate([columns, -columns])).reshape(-1, model.n_outputs))
    before = decision.probabilities(border.reshape(-1, model.n_outputs))
    return largest_difference(moved.reshape(len(before), -1, before.shape[1]), before[:, None])


def error_of_misfits(model: PlainModel, scores: Callable[[Array], Array], rows_type: type) -> float:
    """What these scores of rows in this type do to misfits: some times the largest error of `probes`, as they are."""
    numbers = DECISIONS[model.kind](model, ARRAYS).numbers if model.kind in NUMBERS else np.asarray
    worst = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in probes(model):
            exact, found = (numbers(own) for own in (model.scores(rows), scores(rows.astype(rows_type).astype(float))))
            rounding = float(np.finfo(np.float32).eps * np.abs(exact).max())
            worst = max(worst, largest_difference(found.astype(np.float32), exact) + rounding)
    return TIMES_OF_PROBES * worst * steepness_of(model.kind, model.calibration)


def largest_difference(a: Array, b: Array) -> float:
    """The largest |a − b|, infinite where one is no number."""
    return float(np.nan_to_num(np.abs(a - b), nan=np.inf).max())


def share_lost_by_rows(model: PlainModel) -> float:
    """The change of scores of `probes` if values move half way to the next float32, as a share of half their range.

    Of two neighbours in float32 a value may lie in the middle, as values between the vectors do. Numbers to be
    predicted are rounded, too: of large ones float32 may hold no digit that changes.
    """
    if model.kind == "targets":
        return max(share_lost_by_rows(_of_column(model, c)) for c in range(model.n_outputs))
    groups, is_number = probes(model), model.kind in ("regression", "quantiles")
    if not groups:
        return 0.0
    rng, before, after = np.random.default_rng(0), [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in groups:
            step = 0.5 * np.spacing(np.abs(rows).astype(np.float32)).astype(np.float64)
            before.append(model.scores(rows))
            after.append(model.scores(rows + step * rng.choice([-1.0, 1.0], rows.shape)))
        exact, moved = np.concatenate(before), np.concatenate(after)
        error = np.abs((moved.astype(np.float32) if is_number else moved) - exact).max()
    largest = _range_of_numbers(exact) if is_number else min(_half_range(exact), LARGEST_MARGIN)
    largest = 1.0 if model.kind == "counts" else largest
    if not np.isfinite(error):
        return np.inf
    return float(error) / largest if largest > 0 else 0.0


def _half_range(scores: Array) -> float:
    """Half of what lies between the smallest score and the largest."""
    return 0.5 * float(np.ptp(scores, axis=0).max())


def _range_of_numbers(predicted: Array) -> float:
    """Half the range of numbers that are predicted; of one number alone its magnitude."""
    return _half_range(predicted) or float(np.abs(predicted).max())


def rows_type(model: PlainModel) -> type:
    """float32 for rows where it is good enough, else float64; of kernel values, whose range nothing tells, float64."""
    if model.kernel.form == "columns" or share_lost_by_rows(model) > PROMISED_SHARE:
        return np.float64
    return np.float32


def check_rows_in_float32(model: PlainModel) -> None:
    """An error where rows in float32, which somebody asked for, lose too much."""
    if model.kernel.form != "columns" and LOST_SHARE < (lost := share_lost_by_rows(model)) < np.inf:
        raise ValueError(
            f"float32 cannot hold the rows of this model: their rounding changes scores by {lost:.1g} of their range. "
            "Take float64 rows, or subtract an offset from the features before training"
        )


def check_scores_in_float32(model: PlainModel, scores: Callable[[Array], Array]) -> None:
    """An error where these scores in float32, which somebody asked for, say nothing of the model's own."""
    if WRONG_SHARE < (lost := share_of_error(model, scores)) < np.inf:
        raise ValueError(
            f"float32 is too coarse for this model: its scores are off by {lost:.1g} of the largest. "
            "Take float64, or scale the features before training"
        )


def _between_classes(model: PlainModel) -> Array:
    """The point nearest to 0 where all scores of weights are 0; 0 where scores are no margins."""
    if model.kind not in (*MARGINS, "one class"):
        return np.zeros(model.n_features)
    return np.linalg.lstsq(model.coef.T, -model.intercept, rcond=None)[0]


def folded(model: PlainModel) -> tuple[Array, Array, Array]:
    """Scale, centre and vectors such that the kernel's z is −|x' − z'|²/2 or −|x' − z'|₁, x' = scale x − centre."""
    Z, scale = model.dense_vectors(), model.kernel.unit * model.kernel.gamma * np.ones(model.n_features)
    if model.kernel.form == "squares":
        scale = np.sqrt(scale)
    centre = (Z * scale).mean(axis=0)
    return scale, centre, Z * scale - centre


def _step_aside(model: PlainModel) -> Array:
    """A step of about length 1 as the kernel measures it, or of a thousandth of each feature's mean magnitude."""
    d = model.n_features
    if model.kernel.form == "terms":
        step = np.zeros(d)
        for term in reversed(model.kernel.terms(d)):  # the product comes first: steps of single terms replace its own
            step[term.columns] = _step_aside(of_term(model, term))
        return step
    signs = 1.0 - 2.0 * (np.arange(d) % 2)
    if model.kernel.form == "products":
        return 1e-3 * signs * np.abs(model.dense_vectors()).mean(axis=0)
    scale, _, _ = folded(model)
    return signs / scale / (d if model.kernel.form == "absolute" else np.sqrt(d))
