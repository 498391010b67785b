"""A model in float32 or float64: its numbers and its functions in C, and what float32 does to scores."""

from __future__ import annotations

import operator
from abc import abstractmethod
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from slimsvm.deploy.c_text import array, exp2, in_type, n_numbers_of_decision, number, sqrt
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.deploy.rows import Scaling
from slimsvm.kernels.kernel import Expression
from slimsvm.kernels.shift_invariant import LOG2_E

Array = np.ndarray

# Offsets of at least this number of scaled units have two float32 each.
LARGE_OFFSET = 4.0
# Terms that are added up one after another.
PART = 16

# Of a large offset float32 loses digits that x has: what it lost is taken off after it.
SCALE = """
/* Scales the features as in training. */
static inline void NAME_scale(const float *x, float *scaled)
{{
    int f;
    for (f = 0; f < NAME_N_FEATURES; ++f) {{
        scaled[f] = (x[f] - NAME_offset[f]{rest}) * NAME_factor[f];{bounds}
    }}
}}
"""
BOUNDS = """
        if (scaled[f] < NAME_low[f]) scaled[f] = NAME_low[f];
        if (scaled[f] > NAME_high[f]) scaled[f] = NAME_high[f];"""
SCALED = """
    float scaled[NAME_N_FEATURES];
    NAME_scale(x, scaled);
    x = scaled;"""
KERNEL = """
static inline float NAME_kernel(const float *x, const float *z)
{{
    float sum = 0.0f;
    int f;
    for (f = 0; f < NAME_N_FEATURES; ++f) {{
        {step}
    }}
    {result};
}}
"""
KERNEL_OF_TERMS = """
/* A term of the kernel. */
static inline float NAME_term(float sum)
{{
    {result};
}}

static inline float NAME_kernel(const float *x, const float *z)
{{
    float value = 0.0f, all = 0.0f;
    int f = 0, t;
    for (t = 0; t < NAME_N_TERMS; ++t) {{
        float sum = 0.0f;
        for (; f < NAME_ends[t]; ++f) {{
            {step}
        }}
        all += sum;
        value += NAME_shares[t] * NAME_term(sum);
    }}
    {end};
}}
"""
SCORES_OF_VECTORS = """
/* Writes the NAME_N_OUTPUTS scores of the row x of NAME_N_FEATURES features. */
static inline void NAME_scores(const float *x, float *scores)
{
    int j, end, c;SCALED
    for (c = 0; c < NAME_N_OUTPUTS; ++c) scores[c] = NAME_intercept[c];
    /* Sums of sums lose fewer digits. */
    for (j = 0; j < NAME_N_VECTORS;) {
        float sums[NAME_N_OUTPUTS] = {0.0f};
        for (end = j + PART; j < end && j < NAME_N_VECTORS; ++j) {
            const float value = NAME_kernel(x, NAME_vectors[j]);
            for (c = 0; c < NAME_N_OUTPUTS; ++c) sums[c] += value * NAME_coef[j][c];
        }
        for (c = 0; c < NAME_N_OUTPUTS; ++c) scores[c] += sums[c];
    }
}
"""
SCORES_OF_WEIGHTS = """
/* Writes the NAME_N_OUTPUTS scores of the row x of NAME_N_FEATURES features. */
static inline void NAME_scores(const float *x, float *scores)
{
    int f, c;SCALED
    for (c = 0; c < NAME_N_OUTPUTS; ++c) scores[c] = NAME_intercept[c];
    for (f = 0; f < NAME_N_FEATURES; ++f) {
        for (c = 0; c < NAME_N_OUTPUTS; ++c) scores[c] += x[f] * NAME_coef[f][c];
    }
}
"""


def floating_point_text(model: PlainModel, dtype: str) -> str:
    """Constants and functions in float32 or float64."""
    text = ""
    for name, (values, shape) in _arrays(model, dtype).items():
        if name == "vectors":
            text += f"#define NAME_N_VECTORS {len(model.coef)}\n"
        if name == "ends":
            text += f"#define NAME_N_TERMS {len(values)}\n"
        text += array(name, values, shape, "int32" if name == "ends" else dtype)
    scale, scaled = "", ""
    if model.scaling is not None:
        names = _scaling_arrays(model.scaling, dtype)
        scale = SCALE.format(rest=" - NAME_rest[f]" if "rest" in names else "", bounds=BOUNDS if "low" in names else "")
        scaled = SCALED
    functions = scale + _functions(model, dtype).replace("SCALED", scaled).replace("PART", str(PART))
    return text + in_type(functions, dtype)


def floating_point_bytes(model: PlainModel, dtype: str) -> int:
    """Bytes of constants, classes not counted."""
    n_numbers = sum(np.size(values) for values, _ in _arrays(model, dtype).values()) + n_numbers_of_decision(model)
    return n_numbers * np.dtype(dtype).itemsize


def _arrays(model: PlainModel, dtype: str) -> dict[str, tuple[Array, str]]:
    """The model's arrays and their shapes, by their names in C."""
    arrays = {}
    if model.vectors is not None:
        arrays["vectors"] = model.dense_vectors(), "[NAME_N_VECTORS][NAME_N_FEATURES]"
    arrays["coef"] = model.coef, f"[{len(model.coef)}][NAME_N_OUTPUTS]"
    arrays["intercept"] = model.intercept, "[NAME_N_OUTPUTS]"
    if model.vectors is not None and np.ndim(model.kernel.gamma):
        arrays["gamma"] = model.kernel.gamma, "[NAME_N_FEATURES]"
    if model.kernel.form == "terms":
        ends = model.kernel.offsets(model.n_features)[1:]
        arrays["ends"] = ends, "[NAME_N_TERMS]"
        arrays["shares"] = model.kernel.term_shares(len(ends)), "[NAME_N_TERMS]"
    scaling = {} if model.scaling is None else _scaling_arrays(model.scaling, dtype)
    return arrays | {name: (values, "[NAME_N_FEATURES]") for name, values in scaling.items()}


def _scaling_arrays(scaling: Scaling, dtype: str) -> dict[str, Array]:
    """The scaling's numbers by their names in C; ``rest`` is what float32 takes off large offsets."""
    arrays = {"offset": scaling.offset, "factor": scaling.factor}
    if dtype == "float32" and (np.abs(scaling.offset * scaling.factor) > LARGE_OFFSET).any():
        arrays["rest"] = scaling.offset - scaling.offset.astype(np.float32).astype(np.float64)
    largest = float(np.finfo(dtype).max)
    bounds = {"low": scaling.low, "high": scaling.high}
    return arrays | {name: np.clip(part, -largest, largest) for name, part in bounds.items() if part is not None}


def _functions(model: PlainModel, dtype: str) -> str:
    """The kernel and the scores, in float; numbers have the type's digits."""
    if model.vectors is None:
        return SCORES_OF_WEIGHTS
    if model.kernel.form == "terms":
        return _functions_of_terms(model, dtype)
    step, factor = _sum_of(model.kernel)
    f = _CFunctions(dtype)
    z = f.number("sum", factor)
    if model.kernel.form == "products":
        f.statements.append(f"sum = {z.text} + {number(model.kernel.coef0, dtype)}")
        z = f.number("sum")
    f.statements.append(f"return {model.kernel.formula(z, f).text}")
    kernel = KERNEL.format(step=step, result=";\n    ".join(f.statements))
    return "".join(f.helpers.values()) + kernel + SCORES_OF_VECTORS


def _functions_of_terms(model: PlainModel, dtype: str) -> str:
    """The functions of a kernel that is a sum of terms, all with the formula of its family."""
    kernel, f = model.kernel, _CFunctions(dtype)
    base, n_terms = kernel.base, len(kernel.offsets(model.n_features)) - 1
    step, factor = _sum_of(base)
    f.statements.append(f"return {base.formula(f.number('sum', factor * n_terms), f).text}")
    end = "return value"
    if kernel.interaction:
        whole = number(kernel.interaction, dtype)
        end += f" + {whole} * NAME_term(all * {number(1.0 / n_terms, dtype)})"
    text = KERNEL_OF_TERMS.format(step=step.replace("\n", "\n    "), result=";\n    ".join(f.statements), end=end)
    return "".join(f.helpers.values()) + text + SCORES_OF_VECTORS


def _sum_of(kernel: Any) -> tuple[str, float]:
    """The term that the loop over features adds to ``sum``, and the factor from ``sum`` to z, up to a constant."""
    weight, gamma = (" * NAME_gamma[f]", 1.0) if np.ndim(kernel.gamma) else ("", float(kernel.gamma))
    difference = "const float difference = x[f] - z[f];\n        sum += "
    absolute = "(difference < 0.0f ? -difference : difference)"
    return {
        "products": ("sum += x[f] * z[f];", gamma),
        "squares": (f"{difference}difference * difference{weight};", -0.5 * kernel.unit * gamma),
        "absolute": (f"{difference}{absolute}{weight};", -kernel.unit * gamma),
    }[kernel.form]


@dataclass
class _Scaled(Expression):
    """A value and a factor, which is multiplied when it must be: all constants of a formula are one product."""

    value: Any
    factor: float = 1.0

    def __neg__(self) -> Any:
        return self.times(-1.0)

    def times(self, factor: float) -> Any:
        return replace(self, factor=factor * self.factor)

    def joined(self, sign: str, left: Any, right: Any) -> Any:
        if sign == "*" and isinstance(right, float):
            return left.times(right)
        return replace(self, value=self.join(sign, left, right), factor=1.0)

    @abstractmethod
    def join(self, sign: str, left: Any, right: Any) -> Any:
        """Return the expression of both sides joined by a sign."""


@dataclass
class _CNumber(_Scaled):
    """A number as a text of C."""

    dtype: str = "float32"

    @property
    def text(self) -> str:
        return self.value if self.factor == 1.0 else f"{self.value} * {number(self.factor, self.dtype)}"

    def join(self, sign: str, left: Any, right: Any) -> str:
        if sign == "+" and isinstance(right, float):
            left, right = right, left
        sides = (each.text if isinstance(each, _CNumber) else number(each, self.dtype) for each in (left, right))
        return f"({f' {sign} '.join(sides)})"


class _CFunctions:
    """They collect the helpers that C needs, and statements before the result."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.statements = dtype, list[str]()
        self.helpers: dict[str, str] = {}

    def number(self, value: str, factor: float = 1.0) -> _CNumber:
        return _CNumber(value, factor, self.dtype)

    def exp(self, z: _CNumber) -> _CNumber:
        self.helpers["exp2"] = exp2(self.dtype)
        return self.number(f"NAME_exp2({z.times(LOG2_E).text})")

    def sqrt(self, z: _CNumber) -> _CNumber:
        self.helpers["sqrt"] = sqrt(self.dtype)
        return self._named("root", f"NAME_sqrt({z.text})")

    def tanh(self, z: _CNumber) -> _CNumber:
        return 1.0 - 2.0 / (1.0 + self.exp(2.0 * z))

    def power(self, z: _CNumber, degree: int) -> _CNumber:
        base, power = self._named("base", z.text), self._named("power", number(1.0, self.dtype), "float")
        self.statements.append(f"for (f = 0; f < {degree}; ++f) {power.text} *= {base.text}")
        return power

    def _named(self, name: str, value: str, kind: str = "const float") -> _CNumber:
        name = f"{name}_{len(self.statements)}"
        self.statements.append(f"{kind} {name} = {value}")
        return self.number(name)


class _Float32Number(_Scaled):
    """An array with the roundings of a number of C."""

    @property
    def array(self) -> Array:
        return self.value * np.float32(self.factor)

    def join(self, sign: str, left: Any, right: Any) -> Array:
        sides = (each.array if isinstance(each, _Float32Number) else np.float32(each) for each in (left, right))
        return SIGNS[sign](*sides)


SIGNS: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
# `Functions` of these; the last rounding of exponentials left aside.
FLOAT32: Any = SimpleNamespace(
    exp=lambda z: _Float32Number(np.exp2(z.times(LOG2_E).array)),
    sqrt=lambda z: _Float32Number(np.sqrt(np.maximum(z.array, np.float32(0)))),
    tanh=lambda z: _Float32Number(np.tanh(z.array)),
    power=lambda z, degree: _Float32Number(z.array ** np.float32(degree)),
)


class Float32Model(PlainModel):
    """A model with nearly the scores of the header in float32: the same operations, sums in the same order."""

    def scores(self, X: Array) -> Array:
        """Scores (n, n_outputs) of rows as users have them."""
        single = np.float32
        x = X.astype(single) if self.scaling is None else _scaled_float32(self.scaling, X)
        coef, total = self.coef.astype(single), np.tile(self.intercept.astype(single), (len(X), 1))
        if self.vectors is None:
            return _summed(x, coef, total).astype(np.float64)
        values = _kernel_values_float32(self, x)
        for lo in range(0, len(coef), PART):
            total += _summed(values[:, lo : lo + PART], coef[lo : lo + PART], np.zeros_like(total))
        return total.astype(np.float64)


def _summed(values: Array, coef: Array, total: Array) -> Array:
    """The total and what the vectors add to it, one after another."""
    for j in range(len(coef)):
        total = total + values[:, j : j + 1] * coef[j]
    return total


def _scaled_float32(scaling: Scaling, X: Array) -> Array:
    arrays = {name: part.astype(np.float32) for name, part in _scaling_arrays(scaling, "float32").items()}
    x = (X.astype(np.float32) - arrays["offset"] - arrays.get("rest", np.float32(0))) * arrays["factor"]
    return np.clip(x, arrays["low"], arrays["high"]) if "low" in arrays else x


def _kernel_values_float32(model: PlainModel, x: Array) -> Array:
    """NAME_kernel of rows and vectors, a feature at a time."""
    single, Z, kernel = np.float32, model.dense_vectors().astype(np.float32), model.kernel
    if kernel.form == "terms":
        return _values_of_terms_float32(model, x)
    weights = np.broadcast_to(np.asarray(kernel.gamma if np.ndim(kernel.gamma) else 1.0, single), (model.n_features,))
    total = np.zeros((len(x), len(Z)), single)
    for f in range(model.n_features):
        total += ADDED[kernel.form](x[:, f : f + 1], Z[:, f]) * weights[f]
    z = _Float32Number(total, _sum_of(kernel)[1])
    if kernel.form == "products":
        z = _Float32Number(z.array + single(kernel.coef0))
    return kernel.formula(z, FLOAT32).array


def _values_of_terms_float32(model: PlainModel, x: Array) -> Array:
    """NAME_kernel of a sum of terms."""
    single, Z, kernel = np.float32, model.dense_vectors().astype(np.float32), model.kernel
    offsets, base = kernel.offsets(model.n_features), kernel.base
    shares, factor = kernel.term_shares(len(offsets) - 1), _sum_of(base)[1] * (len(offsets) - 1)
    weights = np.broadcast_to(np.asarray(base.gamma if np.ndim(base.gamma) else 1.0, single), (model.n_features,))
    value, whole = np.zeros((len(x), len(Z)), single), np.zeros((len(x), len(Z)), single)
    for share, lo, hi in zip(shares, offsets, offsets[1:]):
        total = np.zeros_like(value)
        for f in range(lo, hi):
            total += ADDED[base.form](x[:, f : f + 1], Z[:, f]) * weights[f]
        whole += total
        value += single(share) * base.formula(_Float32Number(total, factor), FLOAT32).array
    of_all = base.formula(_Float32Number(whole * single(1.0 / len(shares)), factor), FLOAT32)
    return value + single(kernel.interaction) * of_all.array


# What a feature adds to the sum of a kernel.
ADDED = {
    "products": lambda x, z: x * z,
    "squares": lambda x, z: (x - z) ** 2,
    "absolute": lambda x, z: np.abs(x - z),
}
