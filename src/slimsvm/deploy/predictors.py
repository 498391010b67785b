"""Prediction with NumPy alone: `slimsvm.load_predictor`, and an object for each kind of model."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from slimsvm.deploy.conformal import check_alpha, intervals_of, p_values_of, sets_of
from slimsvm.deploy.decisions import ARRAYS, DECISIONS
from slimsvm.deploy.plain_model import PlainModel, plain_model_of_parts
from slimsvm.deploy.rows import CsrRows, as_rows, check_finite, check_names, dense_rows, sequences_of
from slimsvm.modelfile import damage_named, read_model
from slimsvm.sparse_parts import WIDE_FEATURES

Array = np.ndarray

# After reading, a file is tried on one row if it has at most this number of features.
TRIED_FEATURES = WIDE_FEATURES


def load_predictor(path: Any) -> Predictor:
    """Read a model for prediction only, with NumPy and this package's files, without SciPy and scikit-learn.

    Parameters
    ----------
    path : str or path-like
        A file that ``save`` of an estimator, or ``slimsvm train``, wrote.

    Returns
    -------
    Predictor
        It has ``predict`` and ``decision_function`` as the estimator has them, ``predict_proba`` if it was fitted with
        ``probability=True``, ``predict_set``, ``predict_interval`` or ``p_values`` if it was with ``calibration_size``,
        and ``classes_`` if there are any. Of a `TableClassifier` or `TableRegressor` it takes tables, and has
        ``predict`` and ``predict_proba``.
        Scores are computed in float64. A float32 estimator's scores differ by its rounding: by at most 5e-6 of
        the largest score, unless coefficients are so much larger than scores that they cancel.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is not a model, or was truncated or altered.
    ValueError
        The model is a `StructuredSVM`: its task is a class in Python, which is not in the file.

    Examples
    --------
    >>> import slimsvm, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.slim")
    >>> slimsvm.SVC().fit([[0.0], [1.0]], ["no", "yes"]).save(path)
    >>> slimsvm.load_predictor(path).predict([[0.9]]).tolist()
    ['yes']
    """
    header, arrays = read_model(path)
    if "table" in header:
        from slimsvm.deploy.table_model import TablePredictor, table_model

        with damage_named(f"{path}: not a model this version knows"):
            return TablePredictor(table_model(header, arrays)).tried()
    model = plain_model_of_parts(path, header, arrays, by_columns=True)
    with damage_named(f"{path}: not a model this version knows"):
        predictor = class_of(model)(model)
        if model.encoding is None and predictor.n_features_in_ <= TRIED_FEATURES:
            try_row(predictor.predict, np.zeros((1, predictor.n_features_in_)), model.kind == "sequences")
        return predictor


def class_of(model: PlainModel) -> type[Predictor]:
    """The predictor that has the methods of the model's estimator."""
    if model.nonconformity is None:
        return PREDICTORS[model.kind] if model.calibration is None else CalibratedPredictor
    if model.classes is not None:
        return SetPredictor if model.calibration is None else CalibratedSetPredictor
    return PValuePredictor if model.kind == "one class" else IntervalPredictor


def try_row(predict: Callable[[Any], Any], row: Any, is_sequence: bool) -> None:
    """Let predict meet one row. Errors that it has for users are not of the file."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with contextlib.suppress(ValueError):
            predict([row] if is_sequence else row)


class Predictor:
    """A model without its training code; `load_predictor` returns one.

    Besides ``predict`` it has the estimator's ``decision_function``: (n,) or (n, n_outputs) numbers for the
    same X, and ``predict_proba`` where the estimator had it.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of a row, before any scaling that the file contains.
    feature_names_in_ : ndarray of shape (n_features,)
        Only of a model whose training rows had names. A data frame must have the same columns in the same order.
    classes_ : ndarray
        Only for classifiers.

    Examples
    --------
    >>> import slimsvm, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.slim")
    >>> slimsvm.SVR().fit([[0.0], [1.0]], [0.0, 5.0]).save(path)
    >>> predictor = slimsvm.load_predictor(path)
    >>> isinstance(predictor, slimsvm.Predictor), predictor.n_features_in_
    (True, 1)
    """

    def __init__(self, model: PlainModel) -> None:
        self._model, self._decision = model, DECISIONS[model.kind](model, ARRAYS)
        self.n_features_in_ = model.row_features if model.encoding is None else model.encoding.n_columns
        names = model.feature_names if model.encoding is None else model.encoding.names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        if model.classes is not None:
            self.classes_ = model.classes

    def __repr__(self) -> str:
        model = self._model
        return f"<slimsvm predictor: {model.kind}, kernel {model.kernel.name}, {self.n_features_in_} features>"

    def predict(self, X: Any) -> Array:
        """Labels or numbers, as the estimator predicts them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a sparse matrix

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels) of an indicator matrix, or of several numbers a row

        Raises
        ------
        ValueError
            X has another number of features, other columns, or a value that is not finite.
        """
        return self._decision.predicted(self._scores(X))

    def _scores(self, X: Any) -> Array:
        """All scores (n, n_outputs), block by block."""
        model, encoding = self._model, self._model.encoding
        if encoding is not None:
            columns = encoding.columns(X)
            n, features = len(columns[0][1]), partial(encoding.features, columns)
        else:
            rows = as_rows(X)
            check_names(X, model.feature_names)
            if rows.shape[1] != model.row_features:
                raise ValueError(f"X must have {model.row_features} features as in training, found {rows.shape[1]}")
            n, features = rows.shape[0], partial(finite_rows, model.seen(rows))
        scores, step = np.empty((n, model.n_outputs)), model.block_rows
        for lo in range(0, n, step):
            block = features(lo, min(lo + step, n))
            with np.errstate(over="ignore", invalid="ignore"):
                scores[lo : lo + step] = model.scores(block)
        is_finite = np.isfinite(scores).all(axis=1)
        if not is_finite.all():
            raise ValueError(
                f"the scores of row {np.argmin(is_finite)} of X are beyond float64: scale X as in training"
            )
        return scores


def finite_rows(rows: Array | CsrRows, lo: int, hi: int) -> Array:
    """Rows lo, …, hi − 1 as one dense array, or an error that names a value that is not finite."""
    block = dense_rows(rows, lo, hi)
    check_finite(block, first_row=lo)
    return block


class ScoringPredictor(Predictor):
    """A predictor whose scores mean something beside the prediction, which they are for rankings."""

    def decision_function(self, X: Any) -> Array:
        """Scores, in the estimator's form.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a sparse matrix

        Returns
        -------
        float64 ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._decision.shown(self._scores(X))


class CalibratedPredictor(ScoringPredictor):
    """A classifier that was fitted with ``probability=True``."""

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, as the estimator has them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a sparse matrix

        Returns
        -------
        float64 ndarray of shape (n_samples, n_classes), or (n_samples, n_labels) of an indicator matrix
        """
        return self._decision.probabilities(self._scores(X))


def nonconformity_of(model: PlainModel) -> Array:
    """The nonconformity of the rows held out, which the model of such a predictor has."""
    assert model.nonconformity is not None
    return model.nonconformity


class SetPredictor(ScoringPredictor):
    """A classifier that was fitted with ``calibration_size``."""

    def predict_set(self, X: Any, alpha: float = 0.1, class_conditional: bool = False) -> Array:
        """Sets of classes, as the estimator has them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a sparse matrix
        alpha : float, default=0.1
        class_conditional : bool, default=False

        Returns
        -------
        bool ndarray of shape (n_samples, n_classes)
        """
        check_alpha(alpha)
        model, rule = self._model, self._decision
        misfit = rule.misfit(rule.margins(self._scores(X)))
        return sets_of(
            misfit, nonconformity_of(model), model.nonconformity_classes if class_conditional else None, alpha
        )


class CalibratedSetPredictor(SetPredictor, CalibratedPredictor):
    """A classifier that was fitted with both, or whose sets come of probabilities."""


class IntervalPredictor(Predictor):
    """A regression that was fitted with ``calibration_size``."""

    def predict_interval(self, X: Any, alpha: float = 0.1) -> Array:
        """Intervals, as the estimator has them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a sparse matrix
        alpha : float, default=0.1

        Returns
        -------
        float64 ndarray of shape (n_samples, 2)
        """
        least = 0.0 if self._model.kind == "counts" else -np.inf
        return intervals_of(self.predict(X), nonconformity_of(self._model), alpha, least)


class PValuePredictor(ScoringPredictor):
    """A novelty detector that was fitted with ``calibration_size``."""

    def p_values(self, X: Any) -> Array:
        """p-values, as the estimator has them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a sparse matrix

        Returns
        -------
        float64 ndarray of shape (n_samples,)
        """
        return p_values_of(-self._scores(X)[:, 0], nonconformity_of(self._model))


class SequencesPredictor(ScoringPredictor):
    """Labels of the rows of sequences: the best path by Viterbi's recursion, which runs from the end."""

    def __init__(self, model: PlainModel) -> None:
        super().__init__(model)
        k = len(self.classes_)
        self._after, self._start, self._end = np.split(model.plain, [k * k, k * k + k])
        self._window = int(model.options.get("window", 0))
        self.n_features_in_ = model.row_features // (2 * self._window + 1)

    def decision_function(self, X: Any, lengths: Any = None) -> Any:  # an own form of X
        """Scores of every row and label, without transitions.

        Parameters
        ----------
        X : list of arrays (length, n_features), or one of shape (n_rows, n_features) with ``lengths``
            Sequences may be lists of dictionaries of features, as in training.
        lengths : array-like of shape (n_sequences,) or None, default=None

        Returns
        -------
        list of ndarrays (length, n_labels), or one of shape (n_rows, n_labels)
            In the form of X.
        """
        scores = [self._emissions(rows) for rows in sequences_of(X, lengths, self._model.feature_names)]
        return scores if lengths is None else np.concatenate(scores)

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The best labelling of every sequence, of equals the lowest labels from the first row on.

        Parameters
        ----------
        X, lengths
            As in `decision_function`.

        Returns
        -------
        list of ndarrays (length,), or one of shape (n_rows,)
            In the form of X.
        """
        sequences = sequences_of(X, lengths, self._model.feature_names)
        labels = [self.classes_[self._best_path(self._emissions(rows))] for rows in sequences]
        return labels if lengths is None else np.concatenate(labels)

    def _emissions(self, rows: Any) -> Array:
        """Scores of the rows of one sequence, with the features of their neighbours where the model has a window."""
        n, w = rows.shape[0], self._window
        if n == 0:
            return np.zeros((0, len(self.classes_)))
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"every sequence must have {self.n_features_in_} features, found {rows.shape[1]}")
        if not w:
            return self._scores(rows)
        own = dense_rows(rows, 0, n)
        padded = np.concatenate([np.zeros((w, own.shape[1])), own, np.zeros((w, own.shape[1]))])
        return self._scores(np.hstack([padded[step : step + n] for step in range(2 * w + 1)]))

    def _best_path(self, scores: Array) -> Array:
        """Codes of the labels of one sequence."""
        n, k = scores.shape
        after, best = self._after.reshape(k, k), np.empty(n, np.int64)
        if not n:
            return best
        choice, value = np.empty((n, k), np.int64), scores[-1] + self._end
        for t in range(n - 2, -1, -1):
            onward = after + value
            choice[t] = np.argmax(onward, axis=1)
            value = scores[t] + onward[np.arange(k), choice[t]]
        best[0] = np.argmax(self._start + value)
        for t in range(1, n):
            best[t] = choice[t - 1, best[t - 1]]
        return best


PREDICTORS: dict[str, type[Predictor]] = dict.fromkeys(DECISIONS, ScoringPredictor) | {
    "regression": Predictor,
    "counts": Predictor,
    "targets": Predictor,
    "quantiles": Predictor,
    "sequences": SequencesPredictor,
}
