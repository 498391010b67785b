"""Steps of pipelines as data: what fitted encoders of scikit-learn do, and transformers that do it without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.utils.validation import check_is_fitted

from slimsvm.deploy.rows import Scaling
from slimsvm.deploy.steps import (
    Columns,
    Encoding,
    Filled,
    Flagged,
    InTurn,
    Replaced,
    Scaled,
    SideBySide,
    Step,
    matrix_of,
    plain_level,
)
from slimsvm.sparse_parts import WIDE_FEATURES

Array = np.ndarray
Steps = Sequence[tuple[str, Any]]

SCALERS: dict[str, type] = {
    cls.__name__: cls for cls in (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)
}  # fmt: skip
# Rows that a step of many features encodes at a time.
BLOCK_ROWS = 1024


# -- scalers ----------------------------------------------------------------------------------------------------------


def scaling_of(scalers: Sequence[Any]) -> Scaling:
    """The scaling of several fitted scalers, one after the other, in one step.

    Each is x ↦ clip((x − offset) · factor) with a positive factor, and so are two of them.
    """
    n_features = scalers[0].n_features_in_
    offset, factor = np.zeros(n_features), np.ones(n_features)
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    for scaler in scalers:
        next_offset, next_factor, bounds = _affine(scaler)
        low, high = (np.clip((bound - next_offset) * next_factor, *bounds) for bound in (low, high))
        offset, factor = offset + next_offset / factor, factor * next_factor
    is_clipped = np.isfinite(low).any() or np.isfinite(high).any()
    return Scaling(offset, factor, low if is_clipped else None, high if is_clipped else None)


def _affine(scaler: Any) -> tuple[Array | float, Array | float, tuple[float, float]]:
    """Offset, factor and bounds of one scaler."""
    bounds = -np.inf, np.inf
    if isinstance(scaler, MinMaxScaler):
        low, high = scaler.feature_range
        bounds = (low, high) if scaler.clip else bounds
        return _doubles(scaler.data_min_) - low / _doubles(scaler.scale_), _doubles(scaler.scale_), bounds
    if isinstance(scaler, MaxAbsScaler):
        bounds = (-1.0, 1.0) if getattr(scaler, "clip", False) else bounds
        return 0.0, 1.0 / _doubles(scaler.scale_), bounds
    is_standard = isinstance(scaler, StandardScaler)
    moves = scaler.with_mean if is_standard else scaler.with_centering
    stretches = scaler.with_std if is_standard else scaler.with_scaling
    offset = _doubles(scaler.mean_ if is_standard else scaler.center_) if moves else 0.0
    return offset, 1.0 / _doubles(scaler.scale_) if stretches else 1.0, bounds


def _doubles(values: Any) -> Array:
    return np.asarray(values, np.float64)


# -- what each transformer does ---------------------------------------------------------------------------------------


def step_of(transformer: Any) -> Step:
    """What a fitted transformer does, as data; a TypeError names one, or an option of it, that files do not know."""
    if transformer in (None, "passthrough"):
        return InTurn(())
    if hasattr(transformer, "_as_step"):
        check_is_fitted(transformer)
        step: Step = transformer._as_step()
        return step
    if type(transformer) not in STEPS:
        raise TypeError(
            f"a file holds the last step of a pipeline and known steps before it ({', '.join(KNOWN)}), found a "
            f"{type(transformer).__name__}: slimsvm.save(pipeline[-1], path) saves the last step, for rows that the "
            "other steps have transformed; joblib.dump(pipeline, path) keeps the whole pipeline"
        )
    if not isinstance(transformer, Pipeline | FeatureUnion | FunctionTransformer):
        check_is_fitted(transformer)
    return STEPS[type(transformer)](transformer)


def _of_scaler(scaler: Any) -> Step:
    return Scaled(*scaling_of([scaler]))


def _of_imputer(imputer: SimpleImputer) -> Step:
    missing = plain_level("missing_values", imputer.missing_values)
    statistics = np.asarray(imputer.statistics_, object)
    # Without any value a column of training is left out.
    values = tuple(plain_level("statistics_", value) for value in statistics)
    flagged = tuple(map(int, imputer.indicator_.features_)) if imputer.add_indicator else ()
    return Filled(missing, values, flagged)


def _levels(categories: Any) -> tuple[Any, ...]:
    found = tuple(plain_level("categories_", level) for level in categories)
    if len(set(found)) < len(found):
        raise TypeError("a file holds one missing level of a column, found None and NaN in categories_")
    return found


def _rare_levels(encoder: Any, j: int) -> set[Any]:
    """The levels of column j that have one place together."""
    has_rare = encoder.min_frequency is not None or encoder.max_categories is not None
    rare = encoder.infrequent_categories_[j] if has_rare else None
    return set() if rare is None else set(map(partial(plain_level, "categories_"), rare))


def _places_of(levels: tuple[Any, ...], rare: set[Any]) -> tuple[Array, int]:
    """The place of each level, those of rare ones being the last; the number of places."""
    is_rare = np.array([level in rare for level in levels], bool)
    n_common = int(np.count_nonzero(~is_rare))
    return np.where(is_rare, n_common, np.cumsum(~is_rare) - 1), n_common + bool(rare)


def _of_one_hot(encoder: OneHotEncoder) -> Step:
    levels, all_places, widths = tuple(map(_levels, encoder.categories_)), [], []
    for j, of_column in enumerate(levels):
        rare = _rare_levels(encoder, j)
        places, width = _places_of(of_column, rare)
        other = width - 1 if rare and encoder.handle_unknown in ("infrequent_if_exist", "warn") else -1
        places = np.append(places, other)
        dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[j]
        if dropped is not None:
            gone = places[int(dropped)]
            places = np.where(places == gone, -1, places - (places > gone))
            width -= 1
        all_places.append(places)
        widths.append(width)
    return Flagged(levels, encoder.handle_unknown == "error", tuple(all_places), tuple(widths))


def _of_ordinal(encoder: OrdinalEncoder) -> Step:
    levels, found, refuses = tuple(map(_levels, encoder.categories_)), [], encoder.handle_unknown == "error"
    other = np.nan if refuses else float(encoder.unknown_value)
    for j, of_column in enumerate(levels):
        present = tuple(level for level in of_column if level is not None)
        number_of = dict(zip(present, _places_of(present, _rare_levels(encoder, j))[0].tolist(), strict=True))
        numbers = [encoder.encoded_missing_value if level is None else number_of[level] for level in of_column]
        found.append(np.array([*numbers, other], np.float64)[:, None])
    return Replaced(levels, refuses, tuple(found))


def _of_target_encoder(encoder: TargetEncoder) -> Step:
    means = np.atleast_1d(_doubles(encoder.target_mean_))
    columns = np.split(np.arange(len(encoder.encodings_)), len(encoder.categories_))
    numbers = tuple(
        np.vstack([np.column_stack([_doubles(encoder.encodings_[k]) for k in own]), means]) for own in columns
    )
    return Replaced(tuple(map(_levels, encoder.categories_)), False, numbers)


def _of_columns(transformer: ColumnTransformer) -> Step:
    if transformer.transformer_weights:
        raise TypeError("a file cannot hold transformer_weights of a ColumnTransformer")
    names = list(getattr(transformer, "feature_names_in_", ()))
    columns, steps = [], []
    for name, step, chosen in transformer.transformers_:
        found = _places(chosen, names, transformer.n_features_in_)
        if (isinstance(step, str) and step == "drop") or not found:
            continue
        columns.append(found)
        steps.append(_named(name, step))
    return SideBySide(tuple(columns), tuple(steps))


def _places(chosen: Any, names: list[str], n_columns: int) -> tuple[int, ...]:
    """The places of the columns that one transformer of several takes."""
    if isinstance(chosen, slice):
        if isinstance(chosen.start, str) or isinstance(chosen.stop, str):
            start = None if chosen.start is None else names.index(chosen.start)
            stop = None if chosen.stop is None else names.index(chosen.stop) + 1
            chosen = slice(start, stop, chosen.step)
        return tuple(range(n_columns)[chosen])
    chosen = [chosen] if isinstance(chosen, str | int | np.integer) else list(chosen)
    if len(chosen) == n_columns and all(isinstance(each, bool | np.bool_) for each in chosen):
        return tuple(int(j) for j in np.flatnonzero(chosen))
    return tuple(names.index(each) if isinstance(each, str) else int(each) % n_columns for each in chosen)


def _of_union(union: FeatureUnion) -> Step:
    if union.transformer_weights:
        raise TypeError("a file cannot hold transformer_weights of a FeatureUnion")
    steps = [(name, step) for name, step in union.transformer_list if not (isinstance(step, str) and step == "drop")]
    every = tuple(range(union.n_features_in_))
    return SideBySide((every,) * len(steps), tuple(_named(name, step) for name, step in steps))


def _of_pipeline(pipeline: Pipeline) -> Step:
    return InTurn(tuple(_named(name, step) for name, step in pipeline.steps))


def _of_function(transformer: FunctionTransformer) -> Step:
    if transformer.func is not None:
        raise TypeError("a file holds no function of a FunctionTransformer, as nothing in a file is executed")
    return InTurn(())


def _named(name: str, step: Any) -> Step:
    """`step_of`, whose errors name the step."""
    try:
        return step_of(step)
    except TypeError as error:
        raise TypeError(f"step {name!r}: {error}") from None


STEPS: dict[type, Callable[[Any], Step]] = dict.fromkeys(SCALERS.values(), _of_scaler) | {
    SimpleImputer: _of_imputer,
    OneHotEncoder: _of_one_hot,
    OrdinalEncoder: _of_ordinal,
    TargetEncoder: _of_target_encoder,
    ColumnTransformer: _of_columns,
    FeatureUnion: _of_union,
    Pipeline: _of_pipeline,
    FunctionTransformer: _of_function,
}
KNOWN = [cls.__name__ for cls in STEPS if cls not in (Pipeline, FunctionTransformer)] + ["NormalRanks", "LearnedAxes"]


def encoding_of(steps: Steps) -> Encoding:
    """The first steps of a pipeline as data; a TypeError names a step that files do not know."""
    first = steps[0][1]
    names = getattr(first, "feature_names_in_", None)
    classes = [step.of_class if isinstance(step, FittedStep) else type(step).__name__ for _, step in steps]
    packed = tuple((name, of_class, _named(name, step)) for (name, step), of_class in zip(steps, classes, strict=True))
    return Encoding(None if names is None else tuple(map(str, names)), int(first.n_features_in_), packed)


# -- transformers from files ------------------------------------------------------------------------------------------


class FittedStep(TransformerMixin, BaseEstimator):
    """A step of a pipeline that was read from a file: it transforms as it did when it was saved, and learns no more.

    ``encoding`` is of this step alone, ``of_class`` the class that it had.
    """

    def __init__(self, encoding, of_class):
        self.encoding, self.of_class = encoding, of_class
        self.n_features_in_ = encoding.n_columns
        if encoding.names is not None:
            self.feature_names_in_ = np.array(encoding.names, dtype=object)

    def __sklearn_is_fitted__(self):
        return True

    def __repr__(self, N_CHAR_MAX=700):
        return f"<{self.of_class} from a file>"

    def fit(self, X, y=None):
        """Refuse: a file holds what the step does, not how it was learned."""
        raise TypeError(f"this {self.of_class} was read from a file, and cannot be fitted again: make a new one")

    def transform(self, X):
        """Columns as the saved step made them: an array, sparse where there are many features."""
        step, columns = self._as_step(), self.encoding.columns(X)
        if step.n_outputs(len(columns)) <= WIDE_FEATURES:
            return _joined(step.take(columns))
        n = len(columns[0][1])
        blocks = [[(name, values[lo : lo + BLOCK_ROWS]) for name, values in columns] for lo in range(0, n, BLOCK_ROWS)]
        return sp.vstack([sp.csr_array(matrix_of(step.take(block))) for block in blocks], format="csr")

    def _as_step(self):
        ((_, _, step),) = self.encoding.steps
        return step


def _joined(columns: Columns) -> Array:
    """Columns side by side: numbers, or objects if some are texts."""
    if any(values.dtype.kind == "O" for _, values in columns):
        return np.column_stack([values.astype(object) for _, values in columns])
    return matrix_of(columns)


def steps_from(encoding: Encoding, known: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The transformers of a pipeline that an encoding describes; ``known`` are classes that are made again."""
    steps, names, n_columns = [], encoding.names, encoding.n_columns
    for name, of_class, step in encoding.steps:
        alone = Encoding(names, n_columns, ((name, of_class, step),))
        if of_class in known:
            transformer: Any = known[of_class]._from_step(step)
            transformer.n_features_in_ = n_columns
            if names is not None:
                transformer.feature_names_in_ = np.array(names, dtype=object)
        else:
            transformer = FittedStep(alone, of_class)
        steps.append((name, transformer))
        names, n_columns = None, step.n_outputs(n_columns)
    return steps
