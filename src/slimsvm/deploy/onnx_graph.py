"""A model as an ONNX graph of standard operators: products, exponentials and sums, none of ``ai.onnx.ml``.

    X (n, d) -> kernel values (n, n_vectors) -> scores (n, n_outputs) -> prediction, decision values, probabilities

Opset 13: the first where ``ReduceSum`` takes its axes as an input, as all later ones have it; ONNX Runtime reads it
since 1.7 (2021), and every release for Python 3.11 does. Kernels of x − z centre the rows and use |x − z|² =
|x|² + |z|² − 2⟨x, z⟩, so that a batch is one product of two matrices: the rows and the vectors, each with two columns
more. Numbers are float32 if that is good enough for this model, else float64 (onnx_numbers.py); the same holds for
rows (probes.py) and outputs.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from functools import partial, reduce
from importlib.util import find_spec
from itertools import combinations
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from slimsvm.deploy.conformal import bound_for_export
from slimsvm.deploy.decisions import DECISIONS, LEAST_SHARE, NUMBERS, are_lines
from slimsvm.deploy.onnx_numbers import (
    DOUBLE,
    ONE_TYPE,
    Distances,
    Numbers,
    check_in_float32,
    distances_of,
    numbers_for,
    parts_of,
    parts_of_sums,
    points_of,
    said_of_errors,
    scores_in,
)
from slimsvm.deploy.plain_model import PlainModel, describe, of_term, texts, whole_numbers
from slimsvm.deploy.probes import error_of_misfits, rows_type
from slimsvm.deploy.steps import FORMS_WITH_STEPS, refuse
from slimsvm.kernels.kernel import Expression
from slimsvm.whole_file import write_whole

Array = np.ndarray

OPSET, IR_VERSION = 13, 7
# Versions of the sets of operators; tables look texts up by one of ai.onnx.ml.
OPSETS = {"": OPSET, "ai.onnx.ml": 2}


def write_onnx(model: PlainModel, path: Any, dtype: str = "auto", alpha: Any = None) -> str:
    """Write a model as an ONNX file; say in a sentence what was written. `Fitted.to_onnx` has parameters and errors."""
    refuse(
        model.encoding,
        "an ONNX graph",
        f"skl2onnx converts many pipelines (slimsvm.onnx.register); or {FORMS_WITH_STEPS}",
    )
    check_rows(model)
    check_dtype(dtype)
    check_installed()
    if dtype == "float32":
        check_in_float32(model)
    rows = rows_type(model) if dtype == "auto" else np.dtype(dtype).type
    numbers = ONE_TYPE[dtype] if dtype in ONE_TYPE else numbers_for(model, rows)
    graph = Graph(numbers, rows)
    error = partial(error_of_misfits, model, partial(scores_in, model, numbers=numbers), rows)
    is_double = rows == np.float64 and numbers == DOUBLE
    outputs = add_prediction(graph, model, "X", rows, bound_for_export(model, alpha, None if is_double else error))
    n_bytes = save_graph(graph, {"X": (rows, ["n", model.n_features])}, outputs, describe(model), path)
    said = said_of_errors(model, numbers) if dtype == "float32" else ""
    said = f", rows in float64{said}" if rows == np.float64 else said
    return f"{path}: ONNX graph of opset {OPSET}, {describe(model)}, {numbers}, {n_bytes:,} bytes{said}"


def save_graph(
    graph: Graph, inputs: dict[str, tuple[Any, list]], outputs: dict[str, tuple[Any, list]], said: str, path: Any
) -> int:
    """Check a graph with inputs and outputs of types and shapes, and write it; its number of bytes."""
    import onnx

    proto = graph.finished(inputs, outputs, said)
    onnx.checker.check_model(proto, full_check=True)
    data = proto.SerializeToString()
    write_whole(path, [data])
    return len(data)


def check_dtype(dtype: Any) -> None:
    """An error where a graph cannot be in this type."""
    if dtype not in ("auto", *ONE_TYPE):
        raise ValueError(f"dtype must be one of {', '.join(map(repr, ('auto', *ONE_TYPE)))}; found {dtype!r}")


def check_installed() -> None:
    """An error where the package onnx is missing."""
    if find_spec("onnx") is None:
        raise ImportError("ONNX files are written by the package onnx: pip install 'slimsvm[onnx]'")


def check_rows(model: PlainModel) -> None:
    """An error where the model does not predict rows one by one, or not what a graph does."""
    if model.kind == "sequences":
        raise ValueError(
            "a graph of ONNX scores rows one by one, and a SequenceSVM's labels depend on each other: "
            "slimsvm.load_predictor predicts them without training code"
        )


def add_prediction(
    graph: Graph, model: PlainModel, rows: str, rows_type: Any = np.float32, bound: float | None = None
) -> dict[str, tuple[Any, list]]:
    """Add the outputs of rows of a type, None for any; their types and shapes by name: "prediction", "scores" of
    decisions, "probabilities" of a calibrated model; with a bound of misfits "set" or "interval".
    """
    scores = add_scores(graph, model, rows, rows_type)
    scores = scores if graph.numbers == np.float64 else graph.cast(scores, graph.numbers)
    outputs = _outputs(graph, model, scores)
    return outputs if bound is None else outputs | _guaranteed(graph, model, scores, bound)


def add_scores(graph: Graph, model: PlainModel, rows: str, rows_type: Any = None) -> str:
    """Add the scores (n, n_outputs) of rows of a type, None for any, in float64."""
    scores = ""
    for part, numbers in parts_of(model, graph.types):
        own = graph.in_numbers(numbers)
        given = rows if rows_type == numbers.distances else own.cast(rows, numbers.distances)
        added = _sums(own, part, _kernel_values(own, part, _scaled(own, part, given)))
        scores = graph.op("Add", scores, added) if scores else added
    return scores


class Graph:
    """Nodes and constants as they are added: ``numbers`` are the types of constants and of what is computed.

    ``results`` is the type of scores and predicted numbers, in a graph of its own also of rows. ``named`` gives a part
    of a graph names that the whole does not have yet; None: this is all of it.
    """

    def __init__(
        self, numbers: Numbers, results: Any = np.float32, opset: int = OPSET, named: Callable[[str], str] | None = None
    ) -> None:
        self.take_numbers(numbers)
        self.results, self.opset = results, opset
        self.named = named or (lambda name: name)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def take_numbers(self, numbers: Numbers) -> None:
        """Let the next nodes compute in these types."""
        self.types, self.numbers, self.values = numbers, np.dtype(numbers.distances), np.dtype(numbers.values)

    def in_numbers(self, numbers: Numbers) -> Graph:
        """The graph, to which nodes and constants in other numbers are added."""
        other = copy.copy(self)
        other.take_numbers(numbers)
        return other

    def type_of(self, dtype: Any) -> int:
        """ONNX's number of a type."""
        import onnx

        return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def new_name(self, name: str) -> str:
        """A name that no other node has."""
        return self.named(f"{name}_{len(self.nodes)}")

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        import onnx

        name = attributes.pop("named", None) or self.new_name(kind.lower())
        self.nodes.append(onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def cast(self, name: str, dtype: Any) -> str:
        """Add what makes another type of it."""
        return self.op("Cast", name, to=self.type_of(dtype))

    def reduced(self, kind: str, name: str, axis: int) -> str:
        """Add what makes one number of an axis, which stays; the axis is an input from opset 18 on, of sums always."""
        if self.opset < 18 and kind != "ReduceSum":
            return self.op(kind, name, axes=[axis])
        return self.op(kind, name, self.constant(np.array([axis])))

    def constant(self, values: Any, as_it_is: bool = False) -> str:
        """Add a constant, with floats in the type of distances unless it is to stay as it is, and return its name."""
        import onnx

        values, name = np.asarray(values), self.named(f"constant_{len(self.constants)}")
        if values.dtype.kind == "f" and not as_it_is:
            values = values.astype(self.numbers)
        self.constants.append(onnx.numpy_helper.from_array(values, name))
        return name

    def finished(self, inputs: dict[str, tuple[Any, list]], outputs: dict[str, tuple[Any, list]], said: str) -> Any:
        """The whole model; ``inputs`` and ``outputs`` are types and shapes by name."""
        import onnx

        def infos(values: dict[str, tuple[Any, list]]) -> list[Any]:
            kinds = {
                name: onnx.TensorProto.STRING if of == "str" else self.type_of(of) for name, (of, _) in values.items()
            }
            return [onnx.helper.make_tensor_value_info(name, kinds[name], values[name][1]) for name in values]

        graph = onnx.helper.make_graph(
            self.nodes, "slimsvm", infos(inputs), infos(outputs), self.constants, doc_string=said
        )
        versions = {node.domain: OPSETS[node.domain] for node in self.nodes} | {"": OPSET}
        opsets = [onnx.helper.make_opsetid(*pair) for pair in sorted(versions.items())]
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="slimsvm")


def _scaled(graph: Graph, model: PlainModel, rows: str) -> str:
    """Rows as the kernel has them."""
    if model.scaling is None:
        return rows
    offset, factor, low, high = model.scaling
    rows = graph.op("Mul", graph.op("Sub", rows, graph.constant(offset)), graph.constant(factor))
    if low is None:
        return rows
    return graph.op("Min", graph.op("Max", rows, graph.constant(low)), graph.constant(high))


# -- kernel values ------------------------------------------------------------------------------------------------


def _kernel_values(graph: Graph, model: PlainModel, rows: str) -> str:
    """k(x_i, z_j), shape (n, n_vectors)."""
    kernel = model.kernel
    if model.vectors is None:
        return rows
    if kernel.form == "columns":
        return graph.op("Gather", rows, graph.constant(model.vectors[:, 0].astype(np.int64)), axis=1)
    if kernel.form == "terms":
        return _sum_of_terms(graph, model, rows)
    if kernel.form == "products":
        z = graph.op("Gemm", rows, graph.constant(kernel.gamma * model.dense_vectors()),
                     graph.constant(np.array([kernel.coef0])), transB=1)  # fmt: skip
    else:
        form = distances_of(model)
        scaled = rows if form.scale is None else graph.op("Mul", rows, graph.constant(form.scale))
        z = Z_OF[kernel.form](graph, graph.op("Sub", scaled, graph.constant(form.centre)), form)
    z = z if graph.numbers == graph.values else graph.cast(z, graph.values)
    return kernel.formula(Node(graph, z, graph.values), GRAPH).name


def _sum_of_terms(graph: Graph, model: PlainModel, rows: str) -> str:
    """Σ_t share_t k_t of the columns of each term."""
    columns, values = np.arange(model.n_features), list[Node]()
    for term in model.kernel.terms(model.n_features):
        own = graph.op("Gather", rows, graph.constant(columns[term.columns]), axis=1)
        of_columns = _kernel_values(graph, of_term(model, term), own)
        values.append(Node(graph, of_columns, graph.values) * term.share)
    return reduce(operator.add, values).name


class Node(Expression):
    """A node's output in a formula; arrays and floats beside it are constants in its type."""

    KINDS: ClassVar[dict[str, str]] = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}

    def __init__(self, graph: Graph, name: str, dtype: Any) -> None:
        self.graph, self.name, self.dtype = graph, name, dtype

    def op(self, kind: str, *inputs: Node | Array | float, **attributes: Any) -> Node:
        """Another node."""
        names = [each.name if isinstance(each, Node) else self._constant(each) for each in inputs]
        return Node(self.graph, self.graph.op(kind, *names, **attributes), self.dtype)

    def _constant(self, value: Array | float) -> str:
        values = np.atleast_1d(value)
        return self.graph.constant(values if values.dtype.kind == "i" else values.astype(self.dtype), as_it_is=True)

    def joined(self, sign: str, left: Any, right: Any) -> Node:
        """A node of the operator that the sign stands for."""
        return self.op(self.KINDS[sign], left, right)

    def __neg__(self) -> Node:
        return self.op("Neg", self)


# `Functions` of nodes.
GRAPH: Any = SimpleNamespace(
    exp=lambda z: z.op("Exp", z),
    sqrt=lambda z: z.op("Sqrt", z.op("Max", z, 0.0)),
    tanh=lambda z: z.op("Tanh", z),
    power=lambda z, degree: z.op("Pow", z, float(degree)),
)


def _minus_half_squares(graph: Graph, rows: str, form: Distances) -> str:
    """−factor · |y_i − z_j|² / 2 as one product of matrices, which is quicker than to add norms to it."""
    norms = graph.op("Mul", graph.reduced("ReduceSumSquare", rows, 1), graph.constant(np.array([-0.5 * form.factor])))
    ones = graph.cast(graph.op("LessOrEqual", norms, graph.constant(np.zeros(1))), graph.numbers)
    return graph.op("MatMul", graph.op("Concat", rows, norms, ones, axis=1), graph.constant(points_of(form).T))


def _minus_magnitudes(graph: Graph, rows: str, form: Distances) -> str:
    """−Σ_f |x_if − z_jf|, vector by vector: all differences at once would be n · n_vectors · d numbers. Of one feature,
    as terms of a sum have, they are n · n_vectors.

    The rows go through the loop as its state: sorting a graph's nodes is not to depend on what a loop's body reads.
    """
    import onnx

    Z = form.vectors
    if Z.shape[1] == 1:
        return graph.op("Neg", graph.op("Abs", graph.op("Sub", rows, graph.constant(Z.T))))
    helper, number, axes = onnx.helper, graph.type_of(graph.numbers), graph.constant(np.array([1]))
    names = "rows", "z", "difference", "absolute", "same_rows", "distance"
    x, z, difference, absolute, same, distance = map(graph.new_name, names)
    body = helper.make_graph(
        [
            helper.make_node("Identity", [x], [same]),
            helper.make_node("Sub", [x, z], [difference]),
            helper.make_node("Abs", [difference], [absolute]),
            helper.make_node("ReduceSum", [absolute, axes], [distance], keepdims=0),
        ],
        "distance_to_a_vector",
        [helper.make_tensor_value_info(x, number, ["n", Z.shape[1]]),
         helper.make_tensor_value_info(z, number, [Z.shape[1]])],
        [helper.make_tensor_value_info(same, number, ["n", Z.shape[1]]),
         helper.make_tensor_value_info(distance, number, ["n"])],
    )  # fmt: skip
    outputs = [graph.new_name("rows_after_the_loop"), graph.new_name("distances")]
    graph.nodes.append(helper.make_node("Scan", [rows, graph.constant(Z)], outputs, body=body, num_scan_inputs=1))
    return graph.op("Neg", graph.op("Transpose", outputs[1], perm=[1, 0]))


# The z of folded rows that a kernel is a map of.
Z_OF = {"squares": _minus_half_squares, "absolute": _minus_magnitudes}


def _sums(graph: Graph, model: PlainModel, values: str) -> str:
    """The scores of kernel values, in float64: of sums in float32 of some vectors each, or of all."""
    if graph.types.sums == np.float64:
        values = values if graph.values == np.float64 else graph.cast(values, np.float64)
        return graph.op("Gemm", values, graph.constant(model.coef), graph.constant(model.intercept))
    (n, m), n_parts = model.coef.shape, parts_of_sums(model.n_outputs)
    # Each vector's coefficients, in the columns of its part.
    coef = np.zeros((n, n_parts, m), np.float32)
    coef[np.arange(n), np.arange(n) % n_parts] = model.coef
    sums = graph.op("MatMul", values, graph.constant(coef.reshape(n, n_parts * m), as_it_is=True))
    ones, intercept = np.tile(np.eye(m), (n_parts, 1)), model.intercept.astype(np.float64)
    return graph.op("Gemm", graph.cast(sums, np.float64), graph.constant(ones, as_it_is=True),
                    graph.constant(intercept, as_it_is=True))  # fmt: skip


# -- from scores to what is predicted -----------------------------------------------------------------------------


def _outputs(graph: Graph, model: PlainModel, scores: str) -> dict[str, tuple[Any, list]]:
    """Add the outputs by the model's decision; their types and shapes."""
    rule, found = DECISIONS[model.kind](model, NODES), Node(graph, scores, graph.numbers)
    codes = rule.codes(found).name
    if model.kind in NUMBERS:
        graph.op("Cast", codes, to=graph.type_of(graph.results), named="prediction")
        return {"prediction": (graph.results, ["n"] if rule.is_single else ["n", model.n_outputs])}
    codes = graph.cast(codes, np.int64)
    if rule.labels is None:
        graph.op("Identity", codes, named="prediction")
        outputs: dict[str, tuple[Any, list]] = {"prediction": (np.int64, ["n", model.n_outputs])}
    else:
        labels = plain_labels(rule.labels)
        graph.op("Gather", graph.constant(labels, as_it_is=True), codes, named="prediction")
        outputs = {"prediction": ("str" if labels.dtype.kind == "O" else labels.dtype, ["n"])}
    graph.op("Cast", rule.values(found).name, to=graph.type_of(graph.results), named="scores")
    outputs |= {"scores": (graph.results, ["n", rule.n_values])}
    if rule.has_probabilities:
        graph.op("Cast", rule.probabilities(found).name, to=graph.type_of(graph.results), named="probabilities")
        n_columns = model.n_outputs if rule.labels is None else rule.n_classes
        outputs |= {"probabilities": (graph.results, ["n", n_columns])}
    return outputs


def _guaranteed(graph: Graph, model: PlainModel, scores: str, bound: float) -> dict[str, tuple[Any, list]]:
    """Add the output of sets, or of intervals; its type and shape."""
    rule, found = DECISIONS[model.kind](model, NODES), Node(graph, scores, graph.numbers)
    if model.classes is None:
        graph.op("Cast", rule.interval(found, bound).name, to=graph.type_of(graph.results), named="interval")
        return {"interval": (graph.results, ["n", 2])}
    misfit = rule.misfit(rule.margins(found))
    graph.op("Identity", misfit.op("LessOrEqual", misfit, bound).name, named="set")
    return {"set": (np.bool_, ["n", rule.n_classes])}


def plain_labels(labels: Array) -> Array:
    """The labels in a type that ONNX has: strings as objects, truth values as they are, other numbers of 64 bits."""
    if labels.dtype.kind in "iu":
        return np.array(whole_numbers(labels, 2**63 - 1, "a graph of ONNX"), np.int64)
    return labels if labels.dtype.kind in "bf" else np.array(texts(labels, "a graph of ONNX"), object)


def _indicator(compared: Node) -> Node:
    return Node(compared.graph, compared.graph.cast(compared.name, compared.dtype), compared.dtype)


# `slimsvm.deploy.decisions.OfArrays`, of nodes.
NODES: Any = SimpleNamespace(
    column=lambda scores: scores.op("Squeeze", scores, np.array([1])),
    exponential=lambda scores: scores.op("Exp", scores),
    sorted=lambda scores, n: _sorted(scores, n),
    above=lambda scores: _indicator(scores.op("Greater", scores, 0.0)),
    at_least=lambda scores, least: _indicator(scores.op("GreaterOrEqual", scores, least)),
    less=lambda scores, thresholds: scores.op("Sub", scores, thresholds),
    magnitude=lambda scores: scores.op("Abs", scores),
    zero_within=lambda scores, bound: scores.op(
        "Where", scores.op("LessOrEqual", scores.op("Abs", scores), bound), 0.0, scores
    ),
    greatest=lambda values: values.op("ArgMax", values, axis=1, keepdims=0),
    running_sums=lambda values, k: values.op("MatMul", values, np.triu(np.ones((k - 1, k)), 1)),
    either_sign=lambda scores: scores.op("Concat", scores, -scores, axis=1),
    others=lambda probabilities: 1.0 - probabilities,
    outside=lambda above, k: _outside(above, k),
    widened=lambda numbers, n, half, least: _widened(numbers, n, half, least),
    differences=lambda scores, k: scores.op("MatMul", scores, np.subtract(*_pairs(k)).T),
    votes=lambda is_first, k: is_first.op("MatMul", is_first, np.subtract(*_pairs(k))) + _pairs(k)[1].sum(axis=0),
    pair_sums=lambda scores, k: scores.op("MatMul", scores, np.subtract(*_pairs(k))),
    log_odds=lambda scores, calibration, keeps_sign: _log_odds(scores, calibration, keeps_sign),
    logistic=lambda log_odds: log_odds.op("Sigmoid", log_odds),
    both_sides=lambda log_odds: log_odds.op("Sigmoid", log_odds.op("Concat", -log_odds, log_odds, axis=1)),
    coupled=lambda log_odds, k: _coupled(log_odds, k),
    between=lambda above, k: above.op(
        "Max", above.op("MatMul", above, np.eye(k - 1, k, 1) - np.eye(k - 1, k)) + np.eye(1, k), 0.0
    ),
)


def _outside(above: Node, k: int) -> Node:
    """`OfArrays.outside`: of the first class and the last there is one threshold."""
    lower, upper = np.arange(-1, k - 1).clip(0), np.arange(k).clip(max=k - 2)
    signs = np.where(np.arange(k) == 0, 1.0, -1.0), np.where(np.arange(k) == k - 1, -1.0, 1.0)
    below, beyond = (above.op("Gather", above, at, axis=1) * sign for at, sign in zip((lower, upper), signs))
    return above.op("Max", below, beyond)


def _widened(numbers: Node, n: int, half: float, least: float) -> Node:
    """Where an interval about the first and the last number begins, at ``least`` or above, and ends."""
    ends = numbers.op("Gather", numbers, np.array([0, n - 1]), axis=1) + np.array([-half, half])
    return ends.op("Max", ends, np.array([least, -np.inf])) if np.isfinite(least) else ends


def _sorted(scores: Node, n: int) -> Node:
    """The scores of every row in rising order: the n least."""
    found = scores.op("TopK", scores, np.array([n]), axis=1, largest=0)
    scores.graph.nodes[-1].output.append(scores.graph.new_name("places"))
    return found


def _log_odds(scores: Node, calibration: Array, keeps_sign: bool) -> Node:
    """`OfArrays.log_odds`; small scores keep their digits, also in float32."""
    (u, w, c, b), op = calibration.T, scores.op
    if not keeps_sign and are_lines(calibration):
        return scores * u + b
    size, is_negative = op("Abs", scores), op("Less", scores, 0.0)
    sign = 1.0 - 2.0 * _indicator(is_negative)
    flat = _log1p(op("Tanh", 0.5 * size))  # log(2 / (1 + e^-size))
    steep_slope, flat_slope = op("Where", is_negative, w, u), op("Where", is_negative, u, w)
    odds = steep_slope * (size - flat) + flat_slope * flat + _log1p(size) * c
    if not keeps_sign:
        return sign * odds + b
    own = sign * b
    return sign * op("Max", odds + op("Min", own, odds), odds * LEAST_SHARE)


def _log1p(x: Node) -> Node:
    """log(1 + x); of a small x the sum loses digits, and log(1 + x) / ((1 + x) − 1) loses the same ones twice."""
    more = x + 1.0
    return x.op("Where", x.op("Equal", more, 1.0), x, x.op("Log", more) * x / (more - 1.0))


def _coupled(log_odds: Node, k: int) -> Node:
    """p_i ∝ 1 / (1 + Σ_j e^{−z_ij}), by the logarithms of the sums."""
    op, graph = log_odds.op, log_odds.graph
    first, second = (side.argmax(axis=1) for side in _pairs(k))
    column, n_pairs = np.zeros((k, k), np.int64), len(first)
    column[first, second], column[second, first] = np.arange(n_pairs), n_pairs + np.arange(n_pairs)
    others = column[~np.eye(k, dtype=bool)].reshape(k, k - 1)  # those of each class, of −z and then of z
    against = op("Gather", op("Concat", -log_odds, log_odds, axis=1), others, axis=1)

    def reduced(kind: str, values: Node) -> Node:
        return Node(graph, graph.reduced(kind, values.name, 2), values.dtype)

    most = op("Max", reduced("ReduceMax", against), 0.0)
    cost = most + op("Log", reduced("ReduceSum", op("Exp", against - most)) + op("Exp", -most))
    return op("Softmax", op("Squeeze", -cost, np.array([2])), axis=1)


def _pairs(k: int) -> tuple[Array, Array]:
    """Indicators (n_pairs, k) of the first class of each pair and of the second."""
    pairs = np.array(list(combinations(range(k), 2)), np.int64).reshape(-1, 2)
    return np.eye(k)[pairs[:, 0]], np.eye(k)[pairs[:, 1]]
