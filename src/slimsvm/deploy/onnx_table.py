"""A table's encoders and models as one ONNX graph, with an input for each column.

    columns (n,) -> features (n, n_features) -> scores of each model -> weighted mean of predictions

Numbers are float64 with NaN where missing, levels are texts, times are days since 1970-01-01 in UTC. Ranks, and the
year of a time, are looked up by counting the values that are not above a number; texts by ``LabelEncoder``, the one
operator of ``ai.onnx.ml``. The additive model's splines are sums of powers: exact, as numbers end at `END`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from slimsvm.deploy.onnx_graph import (
    NODES,
    OPSET,
    Graph,
    Node,
    add_scores,
    check_dtype,
    check_installed,
    plain_labels,
    save_graph,
)
from slimsvm.deploy.onnx_numbers import DOUBLE, ONE_TYPE, numbers_for
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.deploy.table_model import TableModel, counted
from slimsvm.tables.containers import MISSING_TEXTS
from slimsvm.tables.encoders import DAYS_OF_YEAR, Encoder, Levels, ManyLevels, Numbers, Times, places_of
from slimsvm.tables.splines import DEGREE, END, KNOTS, N_SPLINES, AdditiveModel, every_spline, spline_values

Array = np.ndarray

OUTPUTS = "prediction", "probabilities"
# Years whose beginnings a graph knows; times before and after are in the first and the last one.
YEARS = np.arange("1800", "2300", dtype="datetime64[Y]").astype("datetime64[D]").astype(np.float64)
# Ways in which one text stands for a missing value.
CASES = str, str.upper, str.capitalize


def write_table_onnx(model: TableModel, path: Any, dtype: str = "auto", alpha: Any = None) -> str:
    """Write encoders and models as an ONNX file; say what was written.

    ``dtype`` is that of what models compute: "auto" is the cheapest mixture that is right for each model. A ValueError
    says that no column has features, that a column is named as an output, or that alpha is given.
    """
    encoders = [encoder for encoder in model.encoding.encoders if encoder.width]
    if not encoders:
        raise ValueError("a graph of ONNX needs a column with features: here all columns are left out")
    if taken := [encoder.name for encoder in encoders if encoder.name in ("", *OUTPUTS)]:
        raise ValueError(f"a graph of ONNX has outputs of the name {taken[0]!r}, or none: rename the column")
    check_dtype(dtype)
    if alpha is not None:
        raise ValueError(f"alpha={alpha!r}: the graph of a table has no sets or intervals; load_predictor has them")
    check_installed()
    start = "/" * (1 + max(len(encoder.name) for encoder in encoders))  # a name that no column has
    graph = Graph(DOUBLE, np.float64, named=lambda name: start + name)
    found = [_features(graph, each) for each in encoders]
    found += [_straight(graph, each) for each in encoders if isinstance(each, Numbers) and each.straight]
    rows = graph.cast(graph.op("Concat", *found, axis=1), np.float32)
    mean = _mean(graph, model, Node(graph, graph.cast(rows, np.float64), np.float64), dtype)
    outputs = _predicted(graph, model, mean)
    inputs = {e.name: (np.float64 if isinstance(e, Numbers | Times) else "str", ["n"]) for e in encoders}
    said = f"a table of {len(encoders)} columns, {counted(model.members)}"
    n_bytes = save_graph(graph, inputs, outputs, said, path)
    return f"{path}: ONNX graph of opset {OPSET}, {said}, {n_bytes:,} bytes"


# -- columns -----------------------------------------------------------------------------------------------------------


def _features(graph: Graph, encoder: Encoder) -> str:
    """The features of a column (n, width)."""
    if isinstance(encoder, Numbers | Times):
        return _of_numbers(graph, encoder)
    assert isinstance(encoder, Levels | ManyLevels)
    n = len(encoder.levels)
    codes = Node(graph, _codes(graph, encoder.name, encoder.levels), np.int64)
    if isinstance(encoder, ManyLevels):
        return graph.op("Gather", graph.constant(encoder.features_of_levels), codes.name, axis=0)
    column = codes.op("Unsqueeze", codes, np.array([1]))
    return graph.cast(column.op("Equal", column, np.arange(n)).name, np.float64)


def _codes(graph: Graph, name: str, levels: tuple[str | None, ...]) -> str:
    """Places of texts among the levels; their number for others."""
    places = {level: place for level, place in places_of(levels).items() if level is not None}
    missing = {case(text) for text in MISSING_TEXTS for case in CASES} | {"NaN", "NaT"}
    places = dict.fromkeys(sorted(missing), levels.index(None) if None in levels else len(levels)) | places
    keys = {"keys_strings": list(places), "values_int64s": list(places.values()), "default_int64": len(levels)}
    return graph.op("LabelEncoder", name, domain="ai.onnx.ml", **keys)


def _of_numbers(graph: Graph, encoder: Numbers | Times) -> str:
    """The rank of a number or a time, the waves of a time's cycles, and the flag of a missing one."""
    given = Node(graph, encoder.name, np.float64)
    is_missing = given.op("IsNaN", given)
    value = given.op("Where", is_missing, np.float64(encoder.values[0]), given)
    found = [_interpolated(value, encoder.values, encoder.deviates)]
    if isinstance(encoder, Times):
        start = _looked_up(_place(value, YEARS[1:]), YEARS)
        turns = {"year": (value - start) * (1.0 / DAYS_OF_YEAR), "week": value * (1.0 / 7.0), "day": value}
        for cycle in encoder.cycles:
            angle = (turns[cycle] - value.op("Floor", turns[cycle])) * (2.0 * np.pi)
            found += [value.op("Sin", angle), value.op("Cos", angle)]
    found = [value.op("Where", is_missing, 0.0, each) for each in found]
    if encoder.flags_missing:
        found.append(Node(graph, graph.cast(is_missing.name, np.float64), np.float64))
    columns = [value.op("Unsqueeze", each, np.array([1])).name for each in found]
    return graph.op("Concat", *columns, axis=1)


def _straight(graph: Graph, encoder: Numbers) -> str:
    """The number itself (n, 1), as linear models see it."""
    given = Node(graph, encoder.name, np.float64)
    value = given.op("Where", given.op("IsNaN", given), np.float64(encoder.middle), given)
    return value.op("Unsqueeze", _interpolated(value, *encoder.line), np.array([1])).name


def _interpolated(x: Node, values: Array, deviates: Array) -> Node:
    """`numpy.interp` of numbers (n,)."""
    if len(values) == 1:
        return x * 0.0 + float(deviates[0])
    x = x.op("Min", x.op("Max", x, float(values[0])), float(values[-1]))
    slopes, place = np.diff(deviates) / np.diff(values), _place(x, values[1:-1])
    return _looked_up(place, slopes) * (x - _looked_up(place, values)) + _looked_up(place, deviates)


def _place(x: Node, borders: Array) -> Node:
    """How many of the borders are not above each number (n,)."""
    not_above = x.op("GreaterOrEqual", x.op("Unsqueeze", x, np.array([1])), borders)
    counts = x.graph.op("ReduceSum", x.graph.cast(not_above.name, np.int64), x.graph.constant([1]), keepdims=0)
    return Node(x.graph, counts, x.dtype)


def _looked_up(place: Node, values: Array) -> Node:
    return place.op("Gather", np.asarray(values, np.float64), place)


# -- models ------------------------------------------------------------------------------------------------------------


def _mean(graph: Graph, model: TableModel, rows: Node, dtype: str) -> Node:
    """The weighted mean of the models' probabilities (n, n_classes), or numbers (n, 1)."""
    found, seen_by_all = list[Node](), rows
    if (n := len(model.encoding.are_flags)) < model.encoding.n_features:
        seen_by_all = rows.op("Slice", rows, np.array([0]), np.array([n]), np.array([1]))
    for weight, part, lines in model.members:
        is_kernel = isinstance(part, PlainModel)
        scores = _kernel_scores(graph, part, lines, seen_by_all, dtype) if is_kernel else _additive_scores(part, rows)
        found.append(_predictions(scores, lines, model.classes) * weight)
    return reduce(Node.__add__, found)


def _kernel_scores(graph: Graph, part: PlainModel, lines: Array, rows: Node, dtype: str) -> Node:
    """Scores of a kernel model, in float64."""
    part = replace(part, calibration=lines) if len(lines) else part
    numbers = ONE_TYPE[dtype] if dtype in ONE_TYPE else numbers_for(part)
    return Node(graph, add_scores(graph.in_numbers(numbers), part, rows.name), np.float64)


def _additive_scores(part: AdditiveModel, rows: Node) -> Node:
    """Scores of an additive or linear model: what is taken as it is, and powers of numbers, times weights."""
    flags, numbers = np.flatnonzero(part.are_flags), np.flatnonzero(~part.are_flags)
    weights = list(part.weights[: len(flags)])
    parts = [rows.op("Gather", rows, flags, axis=1)] if len(flags) else []
    if len(numbers):
        x = rows.op("Min", rows.op("Max", rows.op("Gather", rows, numbers, axis=1), -END), END)
        parts += list(_powers(x, lambda z: z.op("Max", z, 0.0)))
        of_numbers = part.weights[len(flags) :].reshape(len(numbers), N_SPLINES, -1)
        weights += list(np.concatenate(np.swapaxes(POWERS_OF_SPLINES @ of_numbers, 0, 1)))
    return rows.op("MatMul", rows.op("Concat", *parts, axis=1), np.array(weights)) + part.intercept


def _powers(x: Any, positive: Any) -> Iterator[Any]:
    """1, x, x², x³, and the cubes of what is beyond each inner knot: what cubic splines are sums of."""
    yield from (x * 0.0 + 1.0, x, x * x, x * x * x)
    for knot in KNOTS[DEGREE + 1 : -DEGREE - 1]:
        beyond = positive(x - knot)
        yield beyond * beyond * beyond


def _powers_of_splines() -> Array:
    """The sums that splines are: powers times this are splines."""
    x = END * np.cos(np.pi * (np.arange(4 * N_SPLINES) + 0.5) / (4 * N_SPLINES))
    powers = np.column_stack(list(_powers(x, lambda z: np.maximum(z, 0.0))))
    return np.linalg.lstsq(powers, every_spline(*spline_values(x)), rcond=None)[0]


POWERS_OF_SPLINES = _powers_of_splines()


def _predictions(scores: Node, lines: Array, classes: Array | None) -> Node:
    """`slimsvm.deploy.table_model.predictions_of`, of nodes."""
    if classes is None:
        return scores
    log_odds = NODES.log_odds(scores, lines, False)
    return NODES.both_sides(log_odds) if len(classes) == 2 else NODES.coupled(log_odds, len(classes))


def _predicted(graph: Graph, model: TableModel, mean: Node) -> dict[str, tuple[Any, list]]:
    """Add the outputs; their types and shapes by name."""
    if model.classes is None:
        number = mean.op("Squeeze", mean, np.array([1])) * model.spread + model.mean
        graph.op("Identity", number.name, named="prediction")
        return {"prediction": (np.float64, ["n"])}
    total = Node(graph, graph.reduced("ReduceSum", mean.name, 1), mean.dtype)
    graph.op("Identity", (mean / total).name, named="probabilities")
    labels = plain_labels(model.classes)
    places = mean.op("ArgMax", mean, axis=1, keepdims=0)
    graph.op("Gather", graph.constant(labels, as_it_is=True), places.name, named="prediction")
    kind = "str" if labels.dtype.kind == "O" else labels.dtype
    return {"prediction": (kind, ["n"]), "probabilities": (np.float64, ["n", len(model.classes)])}
