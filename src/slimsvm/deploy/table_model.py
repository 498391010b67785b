"""A file of `TableClassifier` or `TableRegressor` without training code: encoders, and a mean of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.deploy.conformal import intervals_of, sets_of_table
from slimsvm.deploy.decisions import ARRAYS
from slimsvm.deploy.plain_model import KERNELS, PlainModel
from slimsvm.deploy.predictors import Predictor
from slimsvm.tables import TableEncoding, table_of
from slimsvm.tables.splines import N_SPLINES, AdditiveModel

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class TableModel:
    """Encoders, and models of encoded rows whose predictions are averaged."""

    encoding: TableEncoding
    # Weights, models, and (u, w, c, b) of `OfArrays.log_odds` for two classes, or each pair of several.
    members: list[tuple[float, Any, Array]]
    classes: Array | None
    mean: float  # of the training rows' numbers, of which models predict deviates
    spread: float
    misfits: Array  # how badly rows held out fit, ascending
    misfits_of_classes: list[Array]  # the same of each class

    @property
    def n_outputs(self) -> int:
        """Scores of a row by each model."""
        k = 0 if self.classes is None else len(self.classes)
        return k * (k - 1) // 2 if k else 1

    def predictions(self, X: Array) -> Array:
        """Probabilities (n, n_classes), or numbers (n, 1), of encoded rows."""
        n_classes = 0 if self.classes is None else len(self.classes)
        found: Any = sum(
            weight * predictions_of(part.scores(X[:, : part.n_features]), lines, n_classes)
            for weight, part, lines in self.members
        )
        if self.classes is None:
            return np.asarray(self.mean + self.spread * found)
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def predictions_of(scores: Array, lines: Array, n_classes: int) -> Array:
    """What one model predicts: probabilities (n, n_classes), or without classes the scores.

    The best log odds have another sign than the score here and there: a rare class's rows are on the wrong side.
    """
    if not n_classes:
        return scores
    log_odds = ARRAYS.log_odds(scores, lines, keeps_sign=False)
    return ARRAYS.both_sides(log_odds) if n_classes == 2 else ARRAYS.coupled(log_odds, n_classes)


def table_model(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> TableModel:
    """The model that the parts of a file describe; an error if they contradict each other."""
    encoding, classes = TableEncoding.unpack(header["table"], arrays), arrays.get("classes")
    if classes is not None and header["classes_are_objects"]:
        classes = classes.astype(object)
    numbers = header["numbers"]
    of_classes = [] if classes is None else misfits_of_classes(arrays)
    model = TableModel(encoding, [], classes, numbers.get("mean_y_", 0.0), numbers.get("spread_y_", 1.0),
                       checked_misfits(arrays), of_classes)  # fmt: skip
    vectors, n_seen = unpack_vectors(encoding.are_flags, arrays), len(encoding.are_flags)
    n_lines = 0 if classes is None else model.n_outputs
    for j, fact in enumerate(header["machines"]):
        own = own_arrays(j, arrays)
        part: Any = model_without_kernel(fact, own, encoding) if "weights" in own else None
        coef = dense_coef(fact, own) if part is None else part.weights
        if coef.shape[1:] != (model.n_outputs,) or own["intercept"].shape != (model.n_outputs,):
            raise ValueError(f"model {j} has coefficients of shape {coef.shape} for {model.n_outputs} scores")
        if own["calibration"].shape != (n_lines, 4) or not 0 < fact["weight"] <= 1:
            raise ValueError(f"model {j} has a calibration of shape {own['calibration'].shape}")
        if part is None:
            kernel = KERNELS[fact["kernel"]["kernel"]].from_header(fact["kernel"], own)
            basis = vectors[own["rows"]].astype(np.float64)
            part = model_of_table(kernel, n_seen, basis, coef, own["intercept"], classes)
        model.members.append((float(fact["weight"]), part, own["calibration"]))
    if not model.members:
        raise ValueError("there is no model")
    return model


def model_of_table(
    kernel: Any, n_features: int, vectors: Any, coef: Array, intercept: Array, classes: Array | None
) -> PlainModel:
    """Make one of a table's models, whose class is the one with the highest probability, whatever the score's sign."""
    kind = "regression" if classes is None else "binary" if len(classes) == 2 else "pairs"
    how = {} if classes is None else {"by_probability": True}
    return PlainModel(kind, kernel, n_features, vectors, coef, intercept, np.zeros(0), classes, how)


def checked_misfits(arrays: Mapping[str, Array], name: str = "misfits") -> Array:
    """How badly rows held out fit; a ValueError if they are not finite numbers in order."""
    misfits = arrays[name]
    if misfits.ndim != 1 or not np.isfinite(misfits).all():
        raise ValueError(f"{name} of rows held out must be finite numbers")
    return misfits


def misfits_of_classes(arrays: Mapping[str, Array]) -> list[Array]:
    """How badly the rows of each class that were held out fit."""
    misfits, sizes = checked_misfits(arrays, "misfits_of_classes"), arrays["n_misfits"]
    if sizes.shape != arrays["classes"].shape or sizes.dtype.kind != "u" or sizes.sum() != len(misfits):
        raise ValueError("misfits_of_classes do not fit the classes")
    return np.split(misfits, np.cumsum(sizes)[:-1].astype(np.int64))


def counted(models: list[Any]) -> str:
    """How many models there are, in words."""
    return "1 model" if len(models) == 1 else f"{len(models)} models"


def own_arrays(j: int, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of model j, by their names."""
    start = f"machine{j}_"
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def model_without_kernel(fact: Mapping[str, Any], own: Mapping[str, Array], encoding: TableEncoding) -> AdditiveModel:
    """The additive model of a file, or the linear one, which sees all features, and each as it is."""
    is_linear = fact["recipe"][0] == "linear"
    as_they_are = np.ones(encoding.n_features, bool) if is_linear else encoding.are_flags
    weights, n_flags = own["weights"].astype(np.float64), int(np.count_nonzero(as_they_are))
    n_rows = n_flags + N_SPLINES * (len(as_they_are) - n_flags)
    if weights.ndim != 2 or len(weights) != n_rows:
        raise ValueError(f"a model without a kernel has weights of shape {weights.shape} for {n_rows} rows")
    return AdditiveModel(weights, own["intercept"], as_they_are)


def dense_coef(fact: Mapping[str, Any], own: Mapping[str, Array]) -> Array:
    """Coefficients (n_vectors, n_outputs) of a model, which files hold row by row without zeros."""
    data, indices, indptr = own["coef"], own["indices"].astype(np.int64), own["indptr"].astype(np.int64)
    n, n_outputs = len(own["rows"]), fact["n_outputs"]
    is_right = len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == len(data) == len(indices)
    if not (is_right and (np.diff(indptr) >= 0).all() and (indices < n_outputs).all()):
        raise ValueError(f"the coefficients of a model are not {n} rows of {n_outputs}")
    found = np.zeros((n, n_outputs))
    np.add.at(found, (np.repeat(np.arange(n), np.diff(indptr)), indices), data.astype(np.float64))
    return found


def unpack_vectors(are_flags: Array, arrays: Mapping[str, Array]) -> Array:
    """All models' vectors; learned ones have no flags apart."""
    if "vector_flags" not in arrays:
        return arrays["vectors"].astype(np.float32)
    n, n_flags = len(arrays["vectors"]), int(np.count_nonzero(are_flags))
    if arrays["vector_flags"].shape != (n, -(-n_flags // 8)):
        raise ValueError("the vectors' flags do not go with the columns")
    vectors = np.zeros((n, len(are_flags)), np.float32)
    vectors[:, ~are_flags] = arrays["vectors"]
    vectors[:, are_flags] = np.unpackbits(arrays["vector_flags"], axis=1, count=n_flags)
    return vectors


class TablePredictor(Predictor):
    """A `TableClassifier` or `TableRegressor` without its training code; `slimsvm.load_predictor` returns one.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray
        Their names, where the training table had names.
    classes_ : ndarray
        Only of a classifier.
    """

    def __init__(self, model: TableModel) -> None:
        self._table = model
        self.n_features_in_ = len(model.encoding.encoders)
        if model.encoding.has_names:
            self.feature_names_in_ = np.array([each.name for each in model.encoding.encoders], dtype=object)
        if model.classes is not None:
            self.classes_ = model.classes

    def tried(self) -> TablePredictor:
        """The predictor itself; an error if it cannot predict a row without values."""
        encoders = self._table.encoding.encoders
        nothing = {each.name: [None] for each in encoders} if hasattr(self, "feature_names_in_") else None
        self.predict([[None] * len(encoders)] if nothing is None else nothing)
        return self

    def __repr__(self) -> str:
        return f"<slimsvm predictor: a table of {self.n_features_in_} columns, {counted(self._table.members)}>"

    def predict(self, X: Any) -> Array:
        """The classes with the highest probabilities, or numbers.

        Parameters
        ----------
        X : as in `TableClassifier.predict_proba`

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        ValueError
            A column is missing, or has values of another kind; it is named.
        """
        found = self._predictions(X)
        return found[:, 0] if self._table.classes is None else self._table.classes[found.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, shape (n_rows, n_classes).

        Parameters
        ----------
        X : as in ``predict``

        Raises
        ------
        AttributeError
            The model predicts numbers.
        """
        if self._table.classes is None:
            raise AttributeError("a model of numbers has no probabilities")
        return self._predictions(X)

    def predict_set(self, X: Any, alpha: float = 0.1, class_conditional: bool = False) -> Array:
        """Sets of classes, as `TableClassifier.predict_set` has them.

        Raises
        ------
        AttributeError
            The model predicts numbers.
        """
        table = self._table
        return sets_of_table(1.0 - self.predict_proba(X), table.misfits, table.misfits_of_classes, alpha,
                             class_conditional)  # fmt: skip

    def predict_interval(self, X: Any, alpha: float = 0.1) -> Array:
        """Intervals, as `TableRegressor.predict_interval` has them.

        Raises
        ------
        AttributeError
            The model predicts classes.
        """
        if self._table.classes is not None:
            raise AttributeError("a model of classes has no intervals")
        misfits = self._table.spread * self._table.misfits.astype(np.float64)
        return intervals_of(self.predict(X), misfits, alpha, -np.inf)

    def _predictions(self, X: Any) -> Array:
        encoding = self._table.encoding
        table = table_of(X, needed=encoding.needed)
        if not (encoding.has_names and table.has_names) and len(table.columns) != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} columns as in training, found {len(table.columns)}")
        return self._table.predictions(encoding.features(table).astype(np.float64))
