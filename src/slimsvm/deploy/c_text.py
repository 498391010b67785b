"""Numbers, arrays, strings and decisions as C has them, and the functions of math.h that headers have themselves.

These functions are made of additions and products, in float32 or float64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from slimsvm.deploy.decisions import LEAST_SHARE, are_lines
from slimsvm.deploy.plain_model import PlainModel, texts, whole_numbers
from slimsvm.kernels.shift_invariant import LOG2_E

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
# The terms of exp(r log 2) up to the 13th: off by 1e-17 of the value.
EXP2_DOUBLE = """
/* 2^t, to 4e-16 of the value; 0 below 2^-1022. */
static inline double NAME_exp2(double t)
{
    static const double terms[] = {TERMS};
    union { uint64_t bits; double value; } power;
    int32_t whole, n;
    double rest, value = 0.0;
    if (t < -1022.0) return 0.0;
    if (t > 1022.0) t = 1022.0;
    whole = (int32_t)(t + (t < 0.0 ? -0.5 : 0.5));
    rest = t - (double)whole;
    power.bits = (uint64_t)(whole + 1023) << 52;
    for (n = 13; n >= 0; --n) value = value * rest + terms[n];
    return power.value * value;
}
"""
SQRT = """
/* The square root, by {steps} steps of Newton's method from half the exponent. */
static inline float NAME_sqrt(float square)
{{
    union {{ uint{bits}_t bits; float value; }} root;
    int step;
    if (square < {least}f) return 0.0f;
    root.value = square;
    root.bits = (root.bits >> 1) + {guess}u;
    for (step = 0; step < {steps}; ++step) root.value = 0.5f * (root.value + square / root.value);
    return root.value;
}}
"""
SQRTS = {
    "float32": {"bits": 32, "guess": "0x1fbd1df5", "least": "1.0e-30", "steps": 3},
    "float64": {"bits": 64, "guess": "0x1ff7a3bea91d9b1b", "least": "1.0e-300", "steps": 5},
}
# The series of 2 atanh(x / (2 + x)) for x <= 1: its first term that is left out is below the type's digits.
LOG1P = """
/* log(1 + x) of x >= 0, also of small x to the type's digits. */
static inline float NAME_log1p(float x)
{{
    union {{ uint{bits}_t bits; float value; }} rest;
    int32_t whole = 0, n;
    float ratio, sum = 0.0f;
    if (x >= 1.0f) {{
        rest.value = 1.0f + x;
        whole = (int32_t)(rest.bits >> {mantissa}) - {bias};
        rest.bits -= (uint{bits}_t)whole << {mantissa};
        x = rest.value - 1.0f;
    }}
    ratio = x / (2.0f + x);
    for (n = {terms}; n >= 0; --n) sum = sum * ratio * ratio + 1.0f / (float)(2 * n + 1);
    return (float)whole * {log2}f + 2.0f * ratio * sum;
}}
"""
LOG1PS = {
    "float32": {"bits": 32, "mantissa": 23, "bias": 127, "terms": 7, "log2": "0.6931472"},
    "float64": {"bits": 64, "mantissa": 52, "bias": 1023, "terms": 16, "log2": repr(math.log(2.0))},
}


def exp2(dtype: str) -> str:
    """2^t."""
    terms = ", ".join(repr(math.log(2.0) ** n / math.factorial(n)) for n in range(14))
    return EXP2_DOUBLE.replace("TERMS", terms) if dtype == "float64" else EXP2


def sqrt(dtype: str) -> str:
    """The square root."""
    return in_type(SQRT.format(**SQRTS[dtype]), dtype)


def log1p(dtype: str) -> str:
    """log(1 + x) of x that are not negative."""
    return in_type(LOG1P.format(**LOG1PS[dtype]), dtype)


def in_type(text: str, dtype: str) -> str:
    """Code in float as it is, or with double for float."""
    if dtype != "float64":
        return text
    return re.sub(r"\b(\d+\.\d*(?:e[-+]?\d+)?)f\b", r"\1", re.sub(r"\bfloat\b", "double", text))


Array = np.ndarray

LINE_WIDTH = 110

LOG_ODDS = """
/* Log odds of a score by their parameters; near 0 log(2 / (1 + e^-size)) comes from its series. */
static inline float NAME_log_odds(float score, const float *p)
{{
    const int is_negative = score < 0.0f;
    const float size = is_negative ? -score : score;
    const float flat = size < 0.0625f ? size * (0.5f - size * (0.125f - size * size / 192.0f))
                                      : {log2} - NAME_log1p(NAME_exp2(size * {minus_log2_e}));
    float odds = p[is_negative] * (size - flat) + p[!is_negative] * flat + p[2] * NAME_log1p(size);{end}
}}
"""
ANY_SIGN = """
    return (is_negative ? -odds : odds) + p[3];"""
SIGN_OF_SCORE = """
    const float own = is_negative ? -p[3] : p[3];
    const float least = {least} * odds;
    odds += own < odds ? own : odds;
    if (odds < least) odds = least;
    return is_negative ? -odds : odds;"""
LOGISTIC = """
/* The probability that log odds stand for. */
static inline float NAME_logistic(float odds)
{{
    const float smaller = NAME_exp2((odds < 0.0f ? odds : -odds) * {log2_e});
    return (odds < 0.0f ? smaller : 1.0f) / (1.0f + smaller);
}}
"""
ADD_POWER = """
/* Adds e^exponent to sum * e^most, where most is the greatest exponent so far. */
static inline void NAME_add_power(float exponent, float *most, float *sum)
{{
    const float difference = (exponent - *most) * {log2_e};
    if (difference <= 0.0f) {{
        *sum += NAME_exp2(difference);
    }} else {{
        *sum = *sum * NAME_exp2(-difference) + 1.0f;
        *most = exponent;
    }}
}}
"""

TYPES = {"float32": "float", "float64": "double", "int16": "int16_t", "int32": "int32_t"}


def number(value: float, dtype: str = "float32") -> str:
    """A constant of C: the shortest that is the same float32 or float64, or a whole number."""
    if dtype in ("int16", "int32"):
        return str(int(value))
    with np.errstate(over="ignore"):
        rounded = np.dtype(dtype).type(value)
    if not np.isfinite(rounded):
        raise ValueError(f"the model holds {value:.3g}, which is beyond {dtype}: scale the features, or train with a "
                         "smaller C")  # fmt: skip
    return f"{rounded!s}f" if dtype == "float32" else repr(float(rounded))


def array(name: str, values: Array, shape: str, dtype: str = "float32") -> str:
    """A constant array."""
    lines = [f"static const {TYPES[dtype]} NAME_{name}{shape} = {{"]
    for row in np.atleast_2d(values):
        words, line = [number(value, dtype) for value in row], "    "
        if np.ndim(values) == 2:
            words[0] = "{" + words[0]
            words[-1] += "}"
        for word in words:
            if len(line) + len(word) > LINE_WIDTH:
                lines.append(line.rstrip())
                line = "    "
            line += word + ", "
        lines.append(line.rstrip())
    return "\n".join([*lines, "};\n"])


def named(code: str, name: str) -> str:
    """Code with the beginning that its names have, NAME in code that is no header's yet; macros have it in capitals."""
    return re.sub(r"\bNAME_(?=([A-Z])?)", lambda found: f"{name.upper() if found[1] else name}_", code)


def classes_array(classes: Array, name: str) -> str:
    """The labels of the classes, as numbers of their type or strings, in an array of a header of this name."""
    if classes.dtype.kind in "biu":
        kind, words = "int64_t ", list(map(str, whole_numbers(classes, 2**63 - 1, "a C header")))
        words = ["-9223372036854775807 - 1" if word == str(-(2**63)) else word for word in words]
    elif classes.dtype.kind == "f":
        kind, words = "double ", [repr(float(label)) for label in classes]
    else:
        labels = texts(classes, "a C header")
        if ended := [label for label in labels if "\0" in label]:
            raise ValueError(f"a text of C ends at its first zero byte, found the label {ended[0]!r}")
        kind, words = "char *const ", list(map(string, labels))
    return named(f"static const {kind}NAME_classes[NAME_N_CLASSES] = ", name) + f"{{{', '.join(words)}}};\n"


def string(text: str) -> str:
    """A string of C in UTF-8; octal escapes, unlike hexadecimal ones, end after three digits."""
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode())
    return '"' + "".join(plain) + '"'


def n_numbers_of_decision(model: PlainModel) -> int:
    """Numbers that labels and probabilities come of."""
    return model.plain.size + (0 if model.calibration is None else model.calibration.size)


class Values(NamedTuple):
    """Numbers of one row: the C expression of the number at an index, and the number of them."""

    at: Callable[[str], str]
    n: str


class OfC:
    """The functions of `slimsvm.deploy.decisions.OfArrays` for a row's scores in C: `lines` compute what they return,
    by the `functions` and of the `arrays` (values and shape by name) that a header must have.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.lines: list[str] = []
        self.functions: dict[str, str] = {}
        self.arrays: dict[str, tuple[Array, str]] = {}

    def take_lines(self) -> list[str]:
        """Return the lines, which are then of a function that has ended."""
        lines, self.lines = self.lines, []
        return lines

    def column(self, scores: Values) -> Values:
        return Values(lambda _: scores.at("0"), "1")

    def exponential(self, scores: Values) -> Values:
        self.functions["exp2"] = exp2(self.dtype)
        log2_e = number(LOG2_E, self.dtype)
        return Values(lambda c: f"NAME_exp2({scores.at(c)} * {log2_e})", scores.n)

    def sorted(self, scores: Values, n: int) -> Values:
        self.lines += [
            f"float sorted[{n}];",
            f"for (int c = 0; c < {n}; ++c) {{",
            "    int at = c;",
            f"    for (; at > 0 && sorted[at - 1] > {scores.at('c')}; --at) sorted[at] = sorted[at - 1];",
            f"    sorted[at] = {scores.at('c')};",
            "}",
        ]
        return Values(lambda c: f"sorted[{c}]", scores.n)

    def above(self, scores: Values) -> Values:
        return Values(lambda c: f"{scores.at(c)} > 0.0f", scores.n)

    def at_least(self, scores: Values, least: float) -> Values:
        return Values(lambda c: f"{scores.at(c)} >= {number(least, self.dtype)}", scores.n)

    def less(self, scores: Values, thresholds: Array) -> Values:
        name, shape = "thresholds", "[NAME_N_CLASSES - 1]"
        if not np.array_equal(self.arrays.setdefault(name, (thresholds, shape))[0], thresholds):
            name = "sorted_thresholds"
            self.arrays[name] = thresholds, shape
        return Values(lambda c: f"({scores.at('0')} - NAME_{name}[{c}])", "NAME_N_CLASSES - 1")

    def running_sums(self, values: Values, n_classes: int) -> Values:
        self.lines += [
            "float sums[NAME_N_CLASSES] = {0.0f};",
            f"for (int c = 1; c < NAME_N_CLASSES; ++c) sums[c] = sums[c - 1] + {values.at('c - 1')};",
        ]
        return Values(lambda c: f"sums[{c}]", "NAME_N_CLASSES")

    def votes(self, is_first: Values, n_classes: int) -> Values:
        self.lines += [
            "int votes[NAME_N_CLASSES] = {0}, pair = 0;",
            "for (int a = 0; a < NAME_N_CLASSES; ++a)",
            f"    for (int b = a + 1; b < NAME_N_CLASSES; ++b, ++pair) ++votes[{is_first.at('pair')} ? a : b];",
        ]
        return Values(lambda c: f"votes[{c}]", "NAME_N_CLASSES")

    def greatest(self, values: Values) -> Values:
        self.lines += [
            "int best = 0;",
            f"for (int c = 1; c < {values.n}; ++c) if ({values.at('c')} > {values.at('best')}) best = c;",
        ]
        return Values(lambda _: "best", "1")

    def differences(self, scores: Values, n_classes: int) -> Values:
        """The differences of pairs, for a loop over the pairs (a, b)."""
        return Values(lambda _: f"{scores.at('a')} - {scores.at('b')}", "NAME_N_CLASSES * (NAME_N_CLASSES - 1) / 2")

    def log_odds(self, scores: Values, calibration: Array, keeps_sign: bool) -> Values:
        self.arrays["calibration"] = calibration, f"[{len(calibration)}][4]"

        def line(c: str) -> str:
            return f"NAME_calibration[{c if len(calibration) > 1 else '0'}]"

        if not keeps_sign and are_lines(calibration):
            return Values(lambda c: f"({line(c)}[0] * ({scores.at(c)}) + {line(c)}[3])", scores.n)
        numbers = {"log2": np.log(2.0), "minus_log2_e": -LOG2_E, "least": LEAST_SHARE}
        written = {name: number(value, self.dtype) for name, value in numbers.items()}
        end = SIGN_OF_SCORE.format(**written) if keeps_sign else ANY_SIGN
        functions = {"log1p": log1p(self.dtype), "log_odds": LOG_ODDS.format(**written, end=end)}
        self.functions |= {"exp2": exp2(self.dtype)} | functions
        return Values(lambda c: f"NAME_log_odds({scores.at(c)}, {line(c)})", scores.n)

    def logistic(self, log_odds: Values) -> Values:
        logistic = LOGISTIC.format(log2_e=number(LOG2_E, self.dtype))
        self.functions |= {"exp2": exp2(self.dtype), "logistic": logistic}
        return Values(lambda c: f"NAME_logistic({log_odds.at(c)})", log_odds.n)

    def both_sides(self, log_odds: Values) -> Values:
        self.lines.append(f"const float odds = {log_odds.at('0')};")
        return self.logistic(Values(lambda c: f"{c} ? odds : -odds", "NAME_N_CLASSES"))

    def between(self, above: Values, n_classes: int) -> Values:
        self.lines += [
            "float above[NAME_N_CLASSES + 1] = {1.0f};",
            f"for (int c = 1; c < NAME_N_CLASSES; ++c) above[c] = {above.at('c - 1')};",
        ]
        return Values(lambda c: f"above[{c}] > above[{c} + 1] ? above[{c}] - above[{c} + 1] : 0.0f", "NAME_N_CLASSES")

    def either_sign(self, scores: Values) -> Values:
        return Values(lambda c: f"({c} ? -{scores.at('0')} : {scores.at('0')})", "NAME_N_CLASSES")

    def others(self, probabilities: Values) -> Values:
        return Values(lambda c: f"1.0f - ({probabilities.at(c)})", probabilities.n)

    def outside(self, above: Values, n_classes: int) -> Values:
        first, last = above.at("0"), above.at("NAME_N_CLASSES - 2")
        self.lines += [
            f"float outside[NAME_N_CLASSES] = {{{first}}};",
            f"outside[NAME_N_CLASSES - 1] = -{last};",
            "for (int c = 1; c < NAME_N_CLASSES - 1; ++c)",
            f"    outside[c] = -{above.at('c - 1')} > {above.at('c')} ? -{above.at('c - 1')} : {above.at('c')};",
        ]
        return Values(lambda c: f"outside[{c}]", "NAME_N_CLASSES")

    def at_most(self, values: Values, most: float) -> Values:
        """1 where a number is no greater, else 0."""
        return Values(lambda c: f"{values.at(c)} <= {number(most, self.dtype)}", values.n)

    def widened(self, numbers: Values, n: int, half: float, least: float) -> Values:
        """Where an interval about the first and the last number begins, at ``least`` or above, and ends."""
        width, first, last = number(half, self.dtype), numbers.at("0"), numbers.at(str(n - 1))
        self.lines.append(f"float ends[2] = {{{first} - {width}, {last} + {width}}};")
        if np.isfinite(least):
            self.lines.append(f"if (ends[0] < {number(least, self.dtype)}) ends[0] = {number(least, self.dtype)};")
        return Values(lambda c: f"ends[{c}]", "2")

    def coupled(self, log_odds: Values, n_classes: int) -> Values:
        """p_i ∝ 1 / (1 + Σ_j e^{−z_ij}), the sums over their greatest terms."""
        log2_e = number(LOG2_E, self.dtype)
        self.functions |= {"exp2": exp2(self.dtype), "add_power": ADD_POWER.format(log2_e=log2_e)}
        self.lines += [
            "float most[NAME_N_CLASSES] = {0.0f}, sums[NAME_N_CLASSES], least, total = 0.0f;",
            "int pair = 0;",
            "for (int c = 0; c < NAME_N_CLASSES; ++c) sums[c] = 1.0f;",
            "for (int a = 0; a < NAME_N_CLASSES; ++a)",
            "    for (int b = a + 1; b < NAME_N_CLASSES; ++b, ++pair) {",
            f"        const float odds = {log_odds.at('pair')};",
            "        NAME_add_power(-odds, &most[a], &sums[a]);",
            "        NAME_add_power(odds, &most[b], &sums[b]);",
            "    }",
            "least = most[0];",
            "for (int c = 1; c < NAME_N_CLASSES; ++c) if (most[c] < least) least = most[c];",
            "for (int c = 0; c < NAME_N_CLASSES; ++c) {",
            f"    sums[c] = NAME_exp2((least - most[c]) * {log2_e}) / sums[c];",
            "    total += sums[c];",
            "}",
        ]
        return Values(lambda c: f"sums[{c}] / total", "NAME_N_CLASSES")
