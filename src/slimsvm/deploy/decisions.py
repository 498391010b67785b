"""Rules that turn scores into labels, decision values and probabilities, one for each kind of model, for arrays, nodes
and C. `kind_of` says of what kind a model is, a fitted estimator's and a file's.

The runtime (core/predict/outputs.cc) has the same rules as loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from slimsvm.deploy.plain_model import PlainModel

Array = np.ndarray

# One-class scores of at most this share of the offset are 0: free support vectors lie on the boundary but for rounding.
ON_BOUNDARY = 1e-8
# Two classes: log odds have the sign of the score. Their constant counts at most as much as the rest, and they are at
# least LEAST_SHARE of that. Chosen: how steep p is at 1/2 changes next to no log loss.
LEAST_SHARE = 1e-3
TIES_OF_PAIRS = "break_ties must be False when decision_function_shape is 'ovo'"
# Parameters (u, w, c, b) of scores that are log odds as they are.
AS_THEY_ARE = (1.0, 1.0, 0.0, 0.0)
# Numbers that coupling of many classes takes at a time.
BLOCK_NUMBERS = 1 << 22
# The library's estimators, by the names of their classes, which files have. What a classifier's or a regression's
# scores mean depends on the fit, too.
CLASSIFIERS = "SVC", "NuSVC", "CrossTrainedSVC"
KINDS = {"NuSVR": "regression", "SVR": "regression", "OneClassSVM": "one class", "OrdinalSVC": "ordinal",
         "RankSVM": "ranking", "SequenceSVM": "sequences"}  # fmt: skip
ESTIMATORS = (*CLASSIFIERS, *KINDS)


def kind_of(name: str, params: Any, fitted: Any, classes: Array | None, n_outputs: int) -> str:
    """The kind of decision, a key of `DECISIONS`, that a fitted estimator of a class (one of ``ESTIMATORS``) makes.

    Of its parameters and the attributes of its fit only those that a file has are read. ``n_outputs`` are scores of a
    row.
    """
    if name in CLASSIFIERS:
        if fitted.get("multilabel_"):
            return "labels"
        if classes is None or len(classes) == 2:
            return "binary"
        return "pairs" if multi_class_of(params, fitted) == "ovo" else "classes"
    if name not in KINDS:
        raise ValueError(
            f"the file holds a {name}, whose labellings come from a task in Python: slimsvm.load reads it. Without "
            f"training code there are {', '.join(ESTIMATORS)}"
        )
    if KINDS[name] != "regression":
        return KINDS[name]
    if params.get("loss") == "poisson":
        return "counts"
    if params.get("loss") == "quantile" and np.ndim(quantiles_of(params)):
        return "quantiles"
    return "regression" if n_outputs == 1 else "targets"


def quantiles_of(params: Any) -> Any:
    """The parameter ``quantile``, a number or several; a file has an array as a dictionary."""
    quantile = params.get("quantile", 0.5)
    return quantile["array"] if isinstance(quantile, dict) else quantile


def multi_class_of(params: Any, fitted: Any) -> str:
    """The resolved ``multi_class``. A file without it has pairs of classes if the exact solver trained it."""
    if "multi_class_" in fitted:
        return fitted["multi_class_"]
    solver, given = params["solver"], params.get("multi_class", "auto")
    is_exact = (solver["solver"] if isinstance(solver, dict) else solver) in ("exact", "Exact")
    return ("ovo" if is_exact else "crammer-singer") if given == "auto" else given


class Outputs(NamedTuple):
    """What a decision has to know of a fitted estimator; `PlainModel` has it of a file."""

    kind: str
    classes: Array | None
    options: Mapping[str, Any]  # with others that no decision reads
    intercept: Array
    plain: Array
    calibration: Array | None

    @property
    def n_outputs(self) -> int:
        """Number of scores of a row."""
        return len(self.intercept)


class Decision:
    """The number itself: regression and ranking; sequences have their own way to labels.

    ``f`` are functions of scores: `OfArrays`, or those that onnx_graph.py and c_text.py have for nodes and C.
    """

    def __init__(self, model: PlainModel | Outputs, f: Any) -> None:
        self.model, self.f = model, f
        self.n_classes = 0 if model.classes is None else len(model.classes)
        self.wants_pairs = model.options.get("decision_function_shape") == "ovo"
        # Models of tables: the class with the highest probability, whatever the score's sign.
        self.by_probability = model.options.get("by_probability", False)

    @property
    def labels(self) -> Array | None:
        """The labels that codes point to; None where codes are the prediction."""
        return self.model.classes

    @property
    def n_values(self) -> int:
        """Decision values of a row."""
        return self.model.n_outputs

    def values(self, scores: Any) -> Any:
        """Decision values (n, n_values), as the estimator has them."""
        return scores

    def codes(self, scores: Any) -> Any:
        """The prediction, or its places among the labels."""
        return self.f.column(scores)

    def predicted(self, scores: Any) -> Any:
        """What ``predict`` returns for rows of these scores."""
        codes = self.codes(scores)
        return codes if self.labels is None else self.labels[codes]

    def shown(self, scores: Any) -> Any:
        """What ``decision_function`` returns: the decision values, (n,) where a row has only one."""
        values = self.values(scores)
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def is_single(self) -> bool:
        """Whether a row has one prediction."""
        return True

    @property
    def has_probabilities(self) -> bool:
        """Whether the model was calibrated."""
        return self.model.calibration is not None

    def probabilities(self, scores: Any) -> Any:
        """Probabilities (n, n_classes) of the classes, or (n, n_labels) that a row has the labels."""
        raise ValueError("only a calibrated classifier has probabilities")

    def margins(self, scores: Any) -> Any:
        """Scores as `misfit` takes them."""
        return scores

    def misfit(self, margins: Any) -> Any:
        """How badly each class fits, (n, n_classes)."""
        raise ValueError("only classes have misfits")

    least = -np.inf  # no number that is predicted is below

    def numbers(self, scores: Any) -> Any:
        """The numbers that are predicted, (n, n_values)."""
        return scores

    def interval(self, scores: Any, half: float) -> Any:
        """Where an interval begins and ends that is wider than the prediction by ``half`` on both sides, (n, 2)."""
        return self.f.widened(self.numbers(scores), self.n_values, half, self.least)


class Counts(Decision):
    """Exponentials of the scores."""

    @property
    def is_single(self) -> bool:
        """Whether there is one target."""
        return self.n_values == 1

    def codes(self, scores: Any) -> Any:
        """Numbers, (n,) of one target or (n, n_outputs) of several."""
        found = self.numbers(scores)
        return self.f.column(found) if self.is_single else found

    least = 0.0

    def numbers(self, scores: Any) -> Any:
        """The exponentials."""
        return self.f.exponential(scores)


class Targets(Decision):
    """Several numbers: the scores."""

    is_single = False

    def codes(self, scores: Any) -> Any:
        """The scores as they are."""
        return scores


class Quantiles(Decision):
    """Several quantiles of a number: the scores, sorted, so that they do not cross."""

    is_single = False

    def codes(self, scores: Any) -> Any:
        """The scores of every row in rising order, as they are predicted."""
        return self.numbers(scores)

    def numbers(self, scores: Any) -> Any:
        """The scores of every row in rising order."""
        return self.f.sorted(scores, self.n_values)


class Binary(Decision):
    """The second of two classes where the score is positive."""

    def codes(self, scores: Any) -> Any:
        """1, the second class, where the score is positive, or with ``by_probability`` the log odds are; else 0."""
        return self.f.column(self.f.above(self._log_odds(scores) if self.by_probability else scores))

    def probabilities(self, scores: Any) -> Any:
        """Of the first class and the second, which has more than 1/2 where `codes` says so."""
        return self.f.both_sides(self._log_odds(scores))

    def _log_odds(self, scores: Any) -> Any:
        return self.f.log_odds(scores, self.model.calibration, keeps_sign=not self.by_probability)

    def misfit(self, margins: Any) -> Any:
        """How far the score is on the wrong side."""
        return self.f.either_sign(margins)


class Classes(Decision):
    """A score for each class: the greatest one's, the first of equals."""

    @property
    def n_values(self) -> int:
        """One value per class, or one per pair of classes with ``decision_function_shape="ovo"``."""
        return self.n_classes * (self.n_classes - 1) // 2 if self.wants_pairs else self.n_classes

    def values(self, scores: Any) -> Any:
        """The scores, or their differences for each pair of classes."""
        return self.f.differences(scores, self.n_classes) if self.wants_pairs else scores

    def codes(self, scores: Any) -> Any:
        """The class with the greatest score."""
        return self.f.greatest(scores)

    def pair_scores(self, scores: Any) -> Any:
        """A column for each pair of classes, positive for the first."""
        return self.f.differences(scores, self.n_classes)

    def probabilities(self, scores: Any) -> Any:
        """Coupled from the odds of every pair of classes."""
        log_odds = self.f.log_odds(self.pair_scores(scores), self.model.calibration, keeps_sign=False)
        return self.f.coupled(log_odds, self.n_classes)

    def misfit(self, margins: Any) -> Any:
        """The probability of the others."""
        return self.f.others(self.probabilities(margins))


class Pairs(Classes):
    """A score for each pair of classes, positive for the first: most votes, the lowest class of equals."""

    def pair_scores(self, scores: Any) -> Any:
        """The scores as they are."""
        return scores

    def values(self, scores: Any) -> Any:
        """The scores of the pairs, or scikit-learn's confidence of each class."""
        return scores if self.wants_pairs else pair_confidences(self.f, scores, self.n_classes)

    def codes(self, scores: Any) -> Any:
        """The class with most votes, or with ``break_ties`` the one with the greatest confidence, or with
        ``by_probability`` with the greatest probability.
        """
        if self.by_probability:
            return self.f.greatest(self.probabilities(scores))
        if not self.model.options.get("break_ties"):
            return self.f.greatest(self.f.votes(self.f.above(scores), self.n_classes))
        if self.wants_pairs:
            raise ValueError(TIES_OF_PAIRS)
        return self.f.greatest(pair_confidences(self.f, scores, self.n_classes))


def pair_confidences(f: Any, scores: Any, n_classes: int) -> Any:
    """scikit-learn's decision values of pairs: votes, and less than half a vote for the sum of a class's scores."""
    sums = f.pair_sums(scores, n_classes)
    return f.votes(f.at_least(scores, 0.0), n_classes) + sums / (3.0 * (1.0 + f.magnitude(sums)))


class Labels(Decision):
    """A score for each label; a row has the labels with positive scores."""

    labels = None
    is_single = False

    def shown(self, scores: Any) -> Any:
        """The scores, of a single label, too, (n, n_labels)."""
        return scores

    def codes(self, scores: Any) -> Any:
        """1 for each label with a positive score, else 0."""
        return self.f.above(scores)

    def probabilities(self, scores: Any) -> Any:
        """Of each label, more than 1/2 where its score is positive."""
        return self.f.logistic(self.f.log_odds(scores, self.model.calibration, keeps_sign=True))


class OneClass(Decision):
    """+1 inside and on the boundary, −1 outside."""

    labels = np.array([-1, 1])

    @property
    def boundary(self) -> float:
        """The largest magnitude of a score that counts as 0."""
        return ON_BOUNDARY * abs(float(self.model.intercept[0]))

    def values(self, scores: Any) -> Any:
        """Scores; rows on the boundary have 0."""
        return self.f.zero_within(scores, self.boundary)

    def codes(self, scores: Any) -> Any:
        """1 inside and on the boundary, else 0."""
        return self.f.column(self.f.at_least(scores, -self.boundary))


class Ordinal(Decision):
    """Ordered classes: the class c of the greatest Σ_{j<c} (f − θ_j), the lowest of equals."""

    @property
    def n_values(self) -> int:
        """One value for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    def values(self, scores: Any) -> Any:
        """The score above its threshold, or for each class its sum over the thresholds below it."""
        above = self.f.less(scores, self.model.plain)
        return above if self.n_classes == 2 else self.f.running_sums(above, self.n_classes)

    def codes(self, scores: Any) -> Any:
        """The class with the greatest sum of score − threshold."""
        return self.f.greatest(self.f.running_sums(self.f.less(scores, self.model.plain), self.n_classes))

    def probabilities(self, scores: Any) -> Any:
        """Differences of the probabilities of a class above each threshold, which are calibrated alike."""
        above = self.f.less(scores, np.sort(self.model.plain))
        log_odds = self.f.log_odds(above, self.model.calibration, keeps_sign=self.n_classes == 2)
        return self.f.between(self.f.logistic(log_odds), self.n_classes)

    def margins(self, scores: Any) -> Any:
        """The score less each threshold, in rising order."""
        return self.f.less(scores, np.sort(self.model.plain))

    def misfit(self, margins: Any) -> Any:
        """How far the score is outside of the class's thresholds: sets have no gaps so."""
        return self.f.outside(margins, self.n_classes)


DECISIONS: dict[str, type[Decision]] = {
    "binary": Binary,
    "classes": Classes,
    "pairs": Pairs,
    "labels": Labels,
    "regression": Decision,
    "counts": Counts,
    "targets": Targets,
    "quantiles": Quantiles,
    "one class": OneClass,
    "ordinal": Ordinal,
    "ranking": Decision,
    "sequences": Decision,
}


# Kinds whose predictions are numbers.
NUMBERS = "regression", "counts", "targets", "quantiles", "ranking"


def are_lines(calibration: Array) -> bool:
    """Whether log odds are Platt's lines u s + b, which pairs of classes have."""
    u, w, c, _ = calibration.T
    return bool((u == w).all() and not c.any())


def calibration_terms(scores: Array) -> Array:
    """What log odds are linear in, shape (4, …): log(1 + eˢ) − log 2, which is steep for positive scores s, the same of
    −s with both signs changed, sign(s) log(1 + |s|), and 1.
    """
    size, sign = np.abs(scores), np.where(scores < 0, -1.0, 1.0)
    steep = np.logaddexp(0.0, size) - np.log(2.0)
    flat = size - steep
    is_negative = scores < 0
    up, down = np.where(is_negative, -flat, steep), np.where(is_negative, -steep, flat)
    return np.stack([up, down, sign * np.log1p(size), np.ones_like(size)])


@lru_cache(maxsize=4)
def signs_of_pairs(n_classes: int) -> Array:
    """A row for each pair of classes (0, 1), (0, 2), …: 1 for the first, −1 for the second, 0 for others.

    It is smaller than the model's coefficients, which have a row for a vector of each class at least.
    """
    first, second = np.triu_indices(n_classes, 1)
    classes = np.arange(n_classes)
    return (first[:, None] == classes) - 1.0 * (second[:, None] == classes)


class OfArrays:
    """Functions of arrays of scores."""

    def column(self, scores: Array) -> Array:
        """The only column."""
        return scores[:, 0]

    def exponential(self, scores: Array) -> Array:
        """E to the scores."""
        return np.exp(scores)

    def sorted(self, scores: Array, n: int) -> Array:
        """The scores of every row in rising order."""
        return np.sort(scores, axis=1)

    def above(self, scores: Array) -> Array:
        """1 where a score is positive, else 0."""
        return (scores > 0).astype(np.int64)

    def at_least(self, scores: Array, least: float) -> Array:
        """1 where a score is no less, else 0."""
        return (scores >= least).astype(np.int64)

    def less(self, scores: Array, thresholds: Array) -> Array:
        """A column for each threshold, which is taken off."""
        return scores - thresholds

    def magnitude(self, scores: Array) -> Array:
        """Absolute values."""
        return np.abs(scores)

    def zero_within(self, scores: Array, bound: float) -> Array:
        """Scores, or 0 where they are within the bound."""
        return np.where(np.abs(scores) <= bound, 0.0, scores)

    def greatest(self, values: Array) -> Array:
        """The column of each row's greatest value, the first of equals."""
        return np.argmax(values, axis=1)

    def running_sums(self, values: Array, n_classes: int) -> Array:
        """Sums of no column, the first, the first two, …"""
        return np.cumsum(np.column_stack([np.zeros(len(values)), values]), axis=1)

    def log_odds(self, scores: Array, calibration: Array, keeps_sign: bool) -> Array:
        """Log odds of columns of scores with their parameters (u, w, c, b), see `calibration_terms`; with
        ``keeps_sign`` those have the sign of the score, and the constant counts as far as it leaves it.
        """
        u, w, c, b = calibration.T
        if not keeps_sign and are_lines(calibration):
            return u * scores + b
        if not keeps_sign:
            up, down, log, _ = calibration_terms(scores)
            return u * up + w * down + c * log + b
        size, sign = np.abs(scores), np.where(scores < 0, -1.0, 1.0)
        up, down, log, _ = calibration_terms(size)
        far = np.where(scores < 0, w * up + u * down, u * up + w * down) + c * log
        own = sign * b
        odds = far + np.minimum(own, far)
        return sign * np.maximum(odds, LEAST_SHARE * far)

    def logistic(self, log_odds: Array) -> Array:
        """Probabilities of log odds."""
        return np.exp(-np.logaddexp(0.0, -log_odds))

    def both_sides(self, log_odds: Array) -> Array:
        """Two columns, of −z and of z, for the log odds z of one."""
        return self.logistic(np.column_stack([-log_odds, log_odds]))

    def coupled(self, log_odds: Array, n_classes: int) -> Array:
        """p_i ∝ 1 / (1 + Σ_j e^{−z_ij}), z_ij the log odds of class i against j."""
        n, step = len(log_odds), max(1, BLOCK_NUMBERS // n_classes**2)
        found = np.empty((n, n_classes))
        first, second = np.triu_indices(n_classes, 1)
        for lo in range(0, n, step):
            z = log_odds[lo : lo + step]
            against = np.zeros((len(z), n_classes, n_classes))  # −z_ij, and 0 for the 1
            against[:, first, second], against[:, second, first] = -z, z
            most = against.max(axis=2)
            cost = most + np.log(np.exp(against - most[:, :, None]).sum(axis=2))
            share = np.exp(cost.min(axis=1, keepdims=True) - cost)
            found[lo : lo + step] = share / share.sum(axis=1, keepdims=True)
        return found

    def between(self, above: Array, n_classes: int) -> Array:
        """Differences of 1, the columns and 0."""
        n = len(above)
        return np.maximum(-np.diff(np.column_stack([np.ones(n), above, np.zeros(n)]), axis=1), 0.0)

    def either_sign(self, scores: Array) -> Array:
        """Two columns, of one and of it with the other sign."""
        return np.column_stack([scores[:, 0], -scores[:, 0]])

    def others(self, probabilities: Array) -> Array:
        """What is left to 1."""
        return 1.0 - probabilities

    def outside(self, above: Array, n_classes: int) -> Array:
        """The greater of how far a class's lower threshold is above the score, and its upper one below it."""
        none = np.full((len(above), 1), -np.inf)
        return np.maximum(np.hstack([none, -above]), np.hstack([above, none]))

    def differences(self, scores: Array, n_classes: int) -> Array:
        """A column for each pair of classes."""
        return np.stack([scores[:, a] - scores[:, b] for a, b in combinations(range(n_classes), 2)], axis=1)

    def votes(self, is_first: Array, n_classes: int) -> Array:
        """Votes (n, n_classes) of the pairs (0, 1), (0, 2), …: 1 is one for the first class, 0 for the second."""
        n, signs = len(is_first), signs_of_pairs(n_classes)
        votes, step = np.empty((n, n_classes)), max(1, BLOCK_NUMBERS // len(signs))
        for lo in range(0, n, step):
            votes[lo : lo + step] = is_first[lo : lo + step] @ signs + np.arange(n_classes)
        return votes

    def pair_sums(self, scores: Array, n_classes: int) -> Array:
        """Sums of a class's scores, with the sign changed where it is a pair's second."""
        sums = np.zeros((len(scores), n_classes))
        for column, (a, b) in enumerate(combinations(range(n_classes), 2)):
            sums[:, a] += scores[:, column]
            sums[:, b] -= scores[:, column]
        return sums


ARRAYS = OfArrays()
