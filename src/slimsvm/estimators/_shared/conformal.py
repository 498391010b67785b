"""Sets of classes, intervals and p-values that are right with a chosen probability: conformal prediction.

Of every row that nothing was learned from, take how badly its label fits the model (its nonconformity), m numbers in
all. That of a new row, drawn as these were, takes any place among them with the same probability. So it is at most the
⌈(m + 1)(1 − α)⌉-th of them with a probability of at least 1 − α, and labels that fit no worse are the prediction. Where
m is so small that there is no such number, all labels are.

Nonconformity is 1 − p of a class, p its calibrated probability; of two classes and of ordered ones how far the score
is on the wrong side; of targets |y − f(x)|; of rows without labels how far they are outside.
docs/experiments/guarantees.md compares others.

Papadopoulos, Proedrou, Vovk, Gammerman, "Inductive confidence machines for regression", ECML 2002 (rows held out);
Sadinle, Lei, Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", JASA 2019 (1 − p).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.metaestimators import available_if

from slimsvm.core.clock import OutOfTimeError, no_limit
from slimsvm.deploy.conformal import check_alpha, ends_of, intervals_of, p_values_of, sets_of, steepness_of
from slimsvm.docstrings import described
from slimsvm.estimators._shared.calibrating import FEW_ROWS, scores_of
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit
from slimsvm.rows import is_sparse

Array = np.ndarray

# What ``guarantee_`` says of rows that were held out, and of rows that were not.
HELD_OUT, NONE = "1 - alpha", "none"
# What ``calibration_size`` is for rows that are trained on all the same.
OUT_OF_FOLD = "out-of-fold"
# Rows, and numbers in them, that tell how far apart scores of equal rows are; and what these differences, and the least
# ones of sums, are multiplied by. Of six kernels sums were up to 3.8 roundings apart, and other rows 2.6 times as far.
ROUNDED_ROWS, ROUNDED_NUMBERS, ROUNDINGS, TIMES_APART = 100, 1 << 20, 16.0, 4.0


class HeldOut(NamedTuple):
    """Rows that nothing is learned from: some, chosen at random, of all that are held out."""

    X: Any
    y: Array
    lent: Array  # labels of rows that were held out and are trained on after all, as their classes had no others


class Unseen(NamedTuple):
    """Scores of rows by about a model that was not trained on them, and their labels."""

    scores: Array  # of shape (n, n_outputs); of ordered classes less each threshold
    labels: Array
    lent: Array  # as in `HeldOut`
    guarantee: str
    rounding: float = 0.0  # how far apart scores of equal rows may be


# -- rows that are held out -------------------------------------------------------------------------------------------


def rows_held(size: Any, n: int) -> int | None:
    """How many of n rows ``calibration_size`` holds out; None where it names none."""
    if size is None or (isinstance(size, str) and size == OUT_OF_FOLD):
        return None
    is_number = isinstance(size, Real) and not isinstance(size, bool | np.bool_)
    if is_number and isinstance(size, Integral) and int(size) >= 1:
        count = int(size)
    elif is_number and not isinstance(size, Integral) and 0 < float(size) < 1:
        count = math.ceil(n * Fraction(str(float(size))))
    else:
        raise ValueError(
            f"calibration_size must be a share of the rows in (0, 1), a number of rows >= 1, {OUT_OF_FOLD!r} or None, "
            f"found {size!r}"
        )
    if count >= n:
        raise ValueError(f"calibration_size={size!r} holds out {count} of {n} rows, which leaves none to train on")
    return count


def hold_out(count: int, n: int, labels: Array | None, random_state: Any) -> tuple[Array, Array, Array]:
    """Positions to train on, ascending, and, in an order of chance, to hold out; and those among the latter that are
    the only ones left of their class, the first of each, which are trained on.

    ``random_state`` counts where it is a number: other generators go on as if no rows were held out.
    """
    seed = int(random_state) if isinstance(random_state, Integral) else 0
    order = np.random.default_rng(seed).permutation(n)
    held, train, lent = order[:count], order[count:], order[:0]
    if labels is not None:
        codes = np.unique(labels, return_inverse=True)[1]
        lacking = np.flatnonzero(np.bincount(codes[train], minlength=int(codes.max()) + 1) == 0)
        first = [int(np.argmax(codes[held] == c)) for c in lacking]
        lent, held = held[first], np.delete(held, first)
    return np.sort(np.concatenate([train, lent])), held, lent


def scores_held_out(fit: Fit, problem: Problem, held: HeldOut) -> tuple[Array, Array]:
    """Scores and labels of the rows held out; of few of them where there is no time for more."""
    try:
        return scores_of(fit, problem, held.X), held.y
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        message = f"interrupted: predictions are calibrated on {FEW_ROWS} of the rows held out"
        warnings.warn(message, ConvergenceWarning, stacklevel=6)
    with no_limit():
        few = np.sort(np.random.default_rng(0).permutation(len(held.y))[:FEW_ROWS])
        return scores_of(fit, problem, held.X[few]), held.y[few]


def rounding_of(fit: Fit, problem: Problem, rows: Any) -> float:
    """How far apart scores of equal rows may be: dense, sparse, or predicted from a file by another program.

    Sums of kernel values are rounded. What distances of rows far from 0 lose is seen where dense rows are scored as
    sparse ones, or the other way round.
    """
    model, n_rows = fit.model, max(1, min(ROUNDED_ROWS, ROUNDED_NUMBERS // max(1, rows.shape[1])))
    some = rows[:n_rows]
    other = some.toarray() if is_sparse(some) else sp.csr_array(some) if model.kernel.has_formula else some
    sizes = replace(model, coef=np.abs(model.coef), intercept=np.zeros_like(model.intercept))
    with no_limit():
        size = np.abs(sizes.scores(some, problem.n_jobs)).max(initial=0.0)
        apart = np.abs(model.scores(some, problem.n_jobs) - model.scores(other, problem.n_jobs)).max(initial=0.0)
    rounding = np.finfo(model.dtype).eps * size + np.finfo(np.float64).eps * np.abs(model.intercept).max(initial=0.0)
    return float(ROUNDINGS * rounding + TIMES_APART * apart)


# -- the estimators ---------------------------------------------------------------------------------------------------


# What the docstrings of its methods share.
PREDICTING = """
Parameters
----------
X : array-like or sparse matrix of shape (n_samples, n_features)

Raises
------
AttributeError
    ``calibration_size`` is None.
NotFittedError
    Before ``fit``, or ``fit`` was without ``calibration_size``.
ValueError
    A value in X, or alpha, is out of range.
"""


def has_guarantee(estimator: Any) -> bool:
    """Whether ``calibration_size`` asks for sets, intervals or p-values; an AttributeError otherwise, so that `hasattr`
    is False.
    """
    if estimator.calibration_size is None:
        raise AttributeError(
            f"{type(estimator).__name__} has no {estimator._promising} without calibration_size: give 0.2, for a fifth "
            f"of the rows that nothing is learned from, or {OUT_OF_FOLD!r}"
        )
    return True


class Conformal:
    """Mixin of estimators with ``calibration_size``."""

    # The method that predicts.
    _promising: str

    @property
    def _sets_need_odds(self: Any) -> bool:
        """Whether nonconformity is one of calibrated probabilities."""
        return False

    def _conform(self: Any, found: Unseen) -> None:
        """Keep how badly labels fit, in ascending order."""
        own = self._nonconformity(found.scores, found.labels, found.rounding)
        own = np.concatenate([own, np.full(len(found.lent), np.inf)])
        order = np.argsort(own, kind="stable")
        self.nonconformity_, self.guarantee_ = own[order], found.guarantee
        if hasattr(self, "classes_"):
            codes = codes_of(self.classes_, np.concatenate([found.labels, found.lent]))
            self.nonconformity_classes_ = codes[order].astype(np.min_scalar_type(len(self.classes_)))

    def _check_conformed(self: Any) -> None:
        """Raise a NotFittedError before a fit with ``calibration_size``."""
        self._check_fitted()
        if getattr(self, "nonconformity_", None) is None:
            raise NotFittedError(
                f"{self._promising} needs a fit with calibration_size, which this model does not come from: give 0.2, "
                "and fit again"
            )


def codes_of(classes: Array, labels: Array) -> Array:
    """Places of labels in classes of any order."""
    sorter = np.argsort(classes)
    codes: Array = sorter[np.searchsorted(classes, labels, sorter=sorter)]
    return codes


class PredictsSets(Conformal):
    """Mixin of classifiers with ``calibration_size``."""

    _promising = "predict_set"

    @property
    def _sets_need_odds(self: Any) -> bool:
        return len(self.classes_) > 2

    def _nonconformity(self: Any, scores: Array, labels: Array, rounding: float) -> Array:
        found: Array = self._decision().misfit(scores)[np.arange(len(labels)), codes_of(self.classes_, labels)]
        return found + rounding * steepness_of(self._kind(), getattr(self, "calibration_", None))

    @available_if(has_guarantee)
    @described(PREDICTING)
    def predict_set(self: Any, X: Any, alpha: float = 0.1, class_conditional: bool = False) -> Array:
        """Sets of classes that contain the right class with a probability of at least 1 − alpha.

        This holds with a number as ``calibration_size`` (``guarantee_`` is "1 - alpha"), for rows drawn like those of
        the fit, on average over fits and rows. Sample and class weights affect the fit only: the probability counts
        every row once. It is no promise for a single row, nor for each class unless ``class_conditional`` is True. With
        "out-of-fold" there is no guarantee (``guarantee_`` is "none"); the share is usually within a point of
        1 − alpha, unless C or gamma are so large that the model fits noise.

        If the model errs less often than alpha, sets of rows that fit no class are empty. If fewer than 1/alpha − 1
        rows were held out, all sets contain all classes.

        Parameters
        ----------
        X
        alpha : float, default=0.1
            How often the right class may be missing.
        class_conditional : bool, default=False
            Whether that is to hold among the rows of each class, whose sets are larger. Each class needs rows held out.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), bool
            Whether each class is in the set; columns in the order of ``classes_``.

        References
        ----------
        Sadinle, Lei, Wasserman: Least Ambiguous Set-Valued Classifiers with Bounded Error Levels, JASA 2019. Vovk,
        Gammerman, Shafer: Algorithmic Learning in a Random World, 2005.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from slimsvm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = SVC(calibration_size=0.4, random_state=0).fit(X, y)
        >>> clf.predict_set(X[[0, 70]], alpha=0.03).astype(int)
        array([[1, 0, 0],
               [0, 1, 1]])
        """
        check_alpha(alpha)
        self._check_conformed()
        rule = self._decision()
        misfit = rule.misfit(rule.margins(self._scores(X)))
        codes = self.nonconformity_classes_ if class_conditional else None
        return sets_of(misfit, self.nonconformity_, codes, alpha)


class PredictsIntervals(Conformal):
    """Mixin of regressions with ``calibration_size``."""

    _promising = "predict_interval"

    def _nonconformity(self: Any, scores: Array, labels: Array, rounding: float) -> Array:
        low, high = ends_of(self._decision().predicted(scores))
        rounding = rounding * np.abs(high) if self._kind() == "counts" else rounding
        # Sums of the prediction and this number are rounded, and must not end short of the label.
        of_sums = 2.0 * np.finfo(np.float64).eps * (np.maximum(np.abs(low), np.abs(high)) + np.abs(labels))
        found: Array = np.maximum(low - labels, labels - high) + of_sums + rounding
        return found

    @available_if(has_guarantee)
    @described(PREDICTING)
    def predict_interval(self: Any, X: Any, alpha: float = 0.1) -> Array:
        """Intervals that contain the target with a probability of at least 1 − alpha.

        They are symmetric around the prediction and all have the same width. With a list of quantiles they reach from
        the lowest to the highest quantile, plus or minus the same amount on both sides, so they are wider where targets
        vary more.

        This holds with a number as ``calibration_size`` (``guarantee_`` is "1 - alpha"), for rows drawn like those of
        the fit, on average over fits and rows. Sample weights affect the fit only: the probability counts every row
        once. It is no promise for a single row. With "out-of-fold" there is no guarantee (``guarantee_`` is "none");
        the share is usually within a point of 1 − alpha, unless C or gamma are so large that the model fits noise.

        If fewer than 1/alpha − 1 rows were held out, intervals are infinite. Intervals of counts (``loss="poisson"``)
        do not go below 0.

        Parameters
        ----------
        X
        alpha : float, default=0.1
            How often the target may be outside.

        Returns
        -------
        ndarray of shape (n_samples, 2), float64
            Where each interval begins and ends.

        References
        ----------
        Papadopoulos, Proedrou, Vovk, Gammerman: Inductive Confidence Machines for Regression, ECML 2002. Romano,
        Patterson, Candès: Conformalized Quantile Regression, NeurIPS 2019.

        Examples
        --------
        >>> import numpy as np
        >>> from slimsvm import SVR
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-3, 3, size=(400, 1))
        >>> y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=400)
        >>> SVR(calibration_size=0.25).fit(X[:300], y[:300]).predict_interval([[0.0]], alpha=0.1).round(1)
        array([[-0.3,  0.3]])
        """
        check_alpha(alpha)
        self._check_conformed()
        least = 0.0 if self._kind() == "counts" else -np.inf  # counts are none below 0
        return intervals_of(self.predict(X), self.nonconformity_, alpha, least)


class PredictsPValues(Conformal):
    """Mixin of novelty detectors with ``calibration_size``."""

    _promising = "p_values"

    def _nonconformity(self: Any, scores: Array, labels: Array, rounding: float) -> Array:
        return rounding - scores[:, 0]

    @available_if(has_guarantee)
    @described(PREDICTING)
    def p_values(self: Any, X: Any) -> Array:
        """p-values for the hypothesis that a row was drawn like the rows of the fit.

        Of such rows, at most a share α has a p-value of α or less, on average over fits and rows. This holds with a
        number as ``calibration_size`` (``guarantee_`` is "1 - alpha"), whatever ν and the kernel are. Sample weights
        affect the fit only. With "out-of-fold" there is no guarantee (``guarantee_`` is "none"); the share is usually
        within a point of α.

        If m rows were held out, the p-value is (1 + the number of these that are at least as far outside) / (m + 1).

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Small for novelties.

        Raises
        ------
        AttributeError
        NotFittedError
        ValueError
            A value in X is out of range.

        References
        ----------
        Bates, Candès, Lei, Romano, Sesia: Testing for Outliers with Conformal p-Values, Annals of Statistics 2023.

        Examples
        --------
        >>> import numpy as np
        >>> from slimsvm import OneClassSVM
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> clf = OneClassSVM(gamma=0.1, nu=0.1, calibration_size=99).fit(X)
        >>> clf.p_values([[0.0, 0.0], [4.0, 4.0]]).round(2)
        array([1.  , 0.01])
        """
        self._check_conformed()
        return p_values_of(-self._scores(X)[:, 0], self.nonconformity_)
