"""Functions of math.h that headers have themselves, of additions and products, in float32 or float64."""

from __future__ import annotations

import math
import re

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
