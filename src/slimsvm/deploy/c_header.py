"""A model as one C99 header: no allocation, no library, float32 or int16 fixed point (c_fixed_point.py).

The header has the constants of the model and two functions, ``NAME_scores`` and ``NAME_predict``. Exponentials, square
roots and powers are its own, of additions and products: it compiles where there is no ``math.h``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.deploy.c_fixed_point import fixed_point, fixed_point_bytes, fixed_point_text, measured
from slimsvm.deploy.c_text import array, classes_array, number
from slimsvm.deploy.plain_model import PlainModel, describe
from slimsvm.deploy.scaling import Scaling

Array = np.ndarray

DTYPES = "float32", "int16"
LOG2_E = 1.4426950408889634
# Offsets of so many scaled units, and larger ones, have two float32 each.
LARGE_OFFSET = 4.0

HEAD = """\
/* {text}
 *
 * Written by slimsvm. C99, {numbers}, no allocation, no library.
 *
{usage}
 */
#ifndef {NAME}_H
#define {NAME}_H

#include <stdint.h>

#define {NAME}_N_FEATURES {n_features}
#define {NAME}_N_OUTPUTS {n_outputs}
"""
# Polynomial of degree 6 on [-1/2, 1/2], interpolated at Chebyshev's points: off by 3e-9 of the value.
EXP2 = """
/* 2^t, to 2e-7 of the value; 0 below 2^-126. */
static inline float NAME_exp2(float t)
{
    union { uint32_t bits; float value; } power;
    int32_t whole;
    float rest;
    if (t < -126.0f) return 0.0f;
    if (t > 126.0f) t = 126.0f;
    whole = (int32_t)(t + (t < 0.0f ? -0.5f : 0.5f));
    rest = t - (float)whole;
    power.bits = (uint32_t)(whole + 127) << 23;
    rest = 1.0f + rest * (0.6931472f + rest * (0.24022651f + rest * (0.05550327f + rest * (0.009618057f
         + rest * (0.0013400428f + rest * 0.00015461445f)))));
    return power.value * rest;
}
"""
SQRT = """
/* The square root, by three steps of Newton's method from half the exponent. */
static inline float NAME_sqrt(float square)
{
    union { uint32_t bits; float value; } root;
    int step;
    if (square < 1e-30f) return 0.0f;
    root.value = square;
    root.bits = (root.bits >> 1) + 0x1fbd1df5u;
    for (step = 0; step < 3; ++step) root.value = 0.5f * (root.value + square / root.value);
    return root.value;
}
"""
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
    float sum = 0.0f{locals};
    int f;
    for (f = 0; f < NAME_N_FEATURES; ++f) {{
        {step}
    }}
    {result}
}}
"""
SCORES_OF_VECTORS = """
/* Writes the NAME_N_OUTPUTS scores of the row x of NAME_N_FEATURES features. */
static inline void NAME_scores(const float *x, float *scores)
{
    int j, c;SCALED
    for (c = 0; c < NAME_N_OUTPUTS; ++c) scores[c] = NAME_intercept[c];
    for (j = 0; j < NAME_N_VECTORS; ++j) {
        const float value = NAME_kernel(x, NAME_vectors[j]);
        for (c = 0; c < NAME_N_OUTPUTS; ++c) scores[c] += value * NAME_coef[j][c];
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
ONE_SCORE = "    float score;\n    NAME_scores(x, &score);\n"
ALL_SCORES = "    float scores[NAME_N_OUTPUTS];\n    NAME_scores(x, scores);\n"
# What labels come of scores, as `slimsvm.deploy.predictors` has it; the comment becomes the header's.
PREDICT = {
    "binary": ("1 where the score is positive, else 0: the class is NAME_classes[NAME_predict(x)].",
               "int NAME_predict(const float *x)", ONE_SCORE + "    return score > 0.0f;\n"),
    "classes": ("The class of the greatest score, the first of equals, is NAME_classes[NAME_predict(x)].",
                "int NAME_predict(const float *x)",
                ALL_SCORES + "    int best = 0, c;\n"
                "    for (c = 1; c < NAME_N_OUTPUTS; ++c) if (scores[c] > scores[best]) best = c;\n"
                "    return best;\n"),
    "pairs": ("Each score is that of a pair of classes, (0, 1), (0, 2), ..., and a vote for the first where it is "
              "positive,\n * else for the second. The class with most votes, the first of equals, is "
              "NAME_classes[NAME_predict(x)].",
              "int NAME_predict(const float *x)",
              ALL_SCORES + "    int votes[NAME_N_CLASSES] = {0}, best = 0, pair = 0, a, b;\n"
              "    for (a = 0; a < NAME_N_CLASSES; ++a) {\n"
              "        for (b = a + 1; b < NAME_N_CLASSES; ++b) ++votes[scores[pair++] > 0.0f ? a : b];\n"
              "    }\n"
              "    for (a = 1; a < NAME_N_CLASSES; ++a) if (votes[a] > votes[best]) best = a;\n"
              "    return best;\n"),
    "ordinal": ("The class c of the greatest sum of (score - threshold[j]) over j < c, the first of equals, is\n"
                " * NAME_classes[NAME_predict(x)].",
                "int NAME_predict(const float *x)",
                "    float score, sum = 0.0f, greatest = 0.0f;\n    int best = 0, c;\n    NAME_scores(x, &score);\n"
                "    for (c = 1; c < NAME_N_CLASSES; ++c) {\n"
                "        sum += score - NAME_thresholds[c - 1];\n"
                "        if (sum > greatest) {\n            greatest = sum;\n            best = c;\n        }\n"
                "    }\n    return best;\n"),
    "labels": ("Writes NAME_N_OUTPUTS numbers: 1 for each label that the row has, else 0.",
               "void NAME_predict(const float *x, uint8_t *labels)",
               ALL_SCORES + "    int c;\n"
               "    for (c = 0; c < NAME_N_OUTPUTS; ++c) labels[c] = (uint8_t)(scores[c] > 0.0f);\n"),
    "one class": ("1 inside, -1 outside.", "int NAME_predict(const float *x)",
                  ONE_SCORE + "    return score >= 0.0f ? 1 : -1;\n"),
    "regression": ("The number itself.", "float NAME_predict(const float *x)", ONE_SCORE + "    return score;\n"),
    "ranking": ("The score, by which the rows of a query are sorted, falling.", "float NAME_predict(const float *x)",
                ONE_SCORE + "    return score;\n"),
}  # fmt: skip


def write_c(model: PlainModel, path: Any, name: str | None = None, dtype: str = "float32", rows: Any = None) -> str:
    """Write a model as a C99 header.

    Parameters
    ----------
    model : PlainModel
    path : str or path-like
    name : str or None, default=None
        What the names in C begin with; None: the file's name without its ending.
    dtype : {"float32", "int16"}, default="float32"
        Of the arithmetic; int16 is fixed point, for the RBF kernel and the Laplacian one.
    rows : array-like of shape (n_rows, n_features), or a sparse matrix, default=None
        Rows that the error of fixed point is measured on; None takes some near the vectors.

    Returns
    -------
    str
        What was written, in a sentence.

    Raises
    ------
    ValueError
        A header has no such kernel or no such labels, the name is none in C, a number is beyond the type, or rows go
        with float32.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(repr, DTYPES))}; found {dtype!r}")
    if dtype == "float32" and rows is not None:
        raise ValueError("rows are what the error of dtype='int16' is measured on, found dtype='float32'")
    name = re.sub(r"\W", "_", Path(path).stem.lower(), flags=re.A) if name is None else name
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.A):
        raise ValueError(f"name must be an identifier of C (letters, digits, _; no digit first), found {name!r}")
    if dtype == "float32":
        text, n_bytes, said = c_header(model, name), 4 * n_constants(model), ""
    else:
        check_says(model)
        fixed = fixed_point(model)
        error = measured(model, fixed, rows)
        text, n_bytes, said = (
            _header(model, name, f"int16 fixed point: {error}", fixed_point_text(fixed)),
            fixed_point_bytes(fixed),
            f"; {error}",
        )
    Path(path).write_text(text, encoding="ascii")
    return f"{path}: C99 header, {dtype}, {describe(model)}, {n_bytes:,} bytes of constants{said}"


def c_header(model: PlainModel, name: str) -> str:
    """The text of a header in float32; see `write_c`."""
    check_says(model)
    scale, scaled = ("", "") if model.scaling is None else (_scale(model.scaling), SCALED)
    text = _constants(model) + scale + _functions(model).replace("SCALED", scaled)
    return _header(model, name, "float32", text)


def check_says(model: PlainModel) -> None:
    """An error where a header has no such kernel or no such labels."""
    if model.kernel == "precomputed" or model.kind not in PREDICT or model.options.get("break_ties"):
        found = "break_ties=True" if model.options.get("break_ties") else f"{model.kind}, kernel {model.kernel}"
        raise ValueError(f"a C header scores rows of features and votes: there is none for {found}")


def _header(model: PlainModel, name: str, numbers: str, text: str) -> str:
    """The text with what is the same for all types of numbers around it."""
    comment, signature, body = PREDICT[model.kind]
    usage = "\n".join(
        [" *     float x[NAME_N_FEATURES] = {...}, scores[NAME_N_OUTPUTS];", " *     NAME_scores(x, scores);"]
    )
    head = HEAD.format(text=describe(model), numbers=numbers, usage=usage, NAME=name.upper(),
                       n_features=model.n_features, n_outputs=model.n_outputs)  # fmt: skip
    if model.classes is not None:
        head += f"#define NAME_N_CLASSES {len(model.classes)}\n\n{classes_array(model.classes)}"
    if model.kind == "ordinal":
        text = array("thresholds", model.plain, "[NAME_N_CLASSES - 1]") + text
    text = head + text + f"\n/* {comment} */\nstatic inline {signature}\n{{\n{body}}}\n\n#endif\n"
    return re.sub(r"\bNAME(?=_[A-Z])", name.upper(), text).replace("NAME_", f"{name}_")


def n_constants(model: PlainModel) -> int:
    """How many numbers the header holds, classes not counted."""
    n_vectors = 0 if model.vectors is None else len(model.coef) * model.n_features
    scaling = [] if model.scaling is None else _scaling_arrays(model.scaling).values()
    n_vectors += sum(map(len, scaling))
    return n_vectors + model.coef.size + model.n_outputs + model.plain.size + np.size(model.parameters.get("gamma", 0))


def _constants(model: PlainModel) -> str:
    """The model's arrays."""
    text = ""
    if model.vectors is not None:
        text += f"#define NAME_N_VECTORS {len(model.coef)}\n"
        text += array("vectors", model.dense_vectors(), "[NAME_N_VECTORS][NAME_N_FEATURES]")
    text += array("coef", model.coef, f"[{len(model.coef)}][NAME_N_OUTPUTS]")
    text += array("intercept", model.intercept, "[NAME_N_OUTPUTS]")
    if np.ndim(model.parameters.get("gamma", 1.0)):
        text += array("gamma", model.parameters["gamma"], "[NAME_N_FEATURES]")
    if model.scaling is not None:
        for name, values in _scaling_arrays(model.scaling).items():
            text += array(name, values, "[NAME_N_FEATURES]")
    return text


def _scaling_arrays(scaling: Scaling) -> dict[str, Array]:
    """The scaling's numbers by their names in C; ``rest`` is what float32 takes off large offsets."""
    rounded = scaling.offset.astype(np.float32).astype(np.float64)
    arrays = {"offset": scaling.offset, "factor": scaling.factor}
    if (np.abs(scaling.offset * scaling.factor) > LARGE_OFFSET).any():
        arrays["rest"] = scaling.offset - rounded
    largest = float(np.finfo(np.float32).max)
    bounds = {"low": scaling.low, "high": scaling.high}
    return arrays | {name: np.clip(part, -largest, largest) for name, part in bounds.items() if part is not None}


def _scale(scaling: Scaling) -> str:
    """The function that scales a row."""
    arrays = _scaling_arrays(scaling)
    rest = " - NAME_rest[f]" if "rest" in arrays else ""
    return SCALE.format(rest=rest, bounds=BOUNDS if "low" in arrays else "")


def _functions(model: PlainModel) -> str:
    """The kernel and the scores."""
    if model.kernel == "linear":
        return SCORES_OF_WEIGHTS
    gamma = model.parameters.get("gamma", 1.0)
    weight, factor = (" * NAME_gamma[f]", 1.0) if np.ndim(gamma) else ("", float(gamma))
    square = f"const float difference = x[f] - z[f];\n        sum += difference * difference{weight};"
    if model.kernel == "rbf":
        kernel = _kernel(square, f"return NAME_exp2(sum * {number(-LOG2_E * factor)});")
    elif model.kernel == "laplacian":
        absolute = (
            f"const float difference = x[f] - z[f];\n        "
            f"sum += (difference < 0.0f ? -difference : difference){weight};"
        )
        kernel = _kernel(absolute, f"return NAME_exp2(sum * {number(-LOG2_E * factor)});")
    elif model.kernel == "matern32":
        result = (
            f"sum = NAME_sqrt(sum * {number(6.0 * factor)});\n    "
            f"return (1.0f + sum) * NAME_exp2(sum * {number(-LOG2_E)});"
        )
        kernel = SQRT + _kernel(square, result)
    else:
        return _of_inner_product(model, factor) + SCORES_OF_VECTORS
    return EXP2 + kernel + SCORES_OF_VECTORS


def _of_inner_product(model: PlainModel, gamma: float) -> str:
    """The polynomial kernel and the sigmoid."""
    inner = f"sum = sum * {number(gamma)} + {number(model.parameters['coef0'])};"
    if model.kernel == "poly":
        power = f"{inner}\n    for (f = 0; f < {model.parameters['degree']}; ++f) power *= sum;\n    return power;"
        return _kernel("sum += x[f] * z[f];", power, ", power = 1.0f")
    tanh = f"{inner}\n    return 1.0f - 2.0f / (1.0f + NAME_exp2(sum * {number(2.0 * LOG2_E)}));"
    return EXP2 + _kernel("sum += x[f] * z[f];", tanh)


def _kernel(step: str, result: str, more: str = "") -> str:
    return KERNEL.format(step=step, result=result, locals=more)
