"""A model in int16 fixed point: its numbers, the same arithmetic in NumPy, and its functions in C.

A feature becomes q_f = (x_f − centre_f) · step_f, rounded, such that a kernel value is 2^−u with
u = unit · Σ (q_f − z_f)² (RBF) or unit · Σ |q_f − z_f| (Laplacian). Steps are as fine as they can be: a feature so far
from all vectors that it alone makes u greater than `REACH` is cut there, since the kernel is 0 for the one as for the
other. The sum is a number of 32 bits, 2^−u a polynomial in them, and scores are sums of 64 bits. There is float32 only
where a feature comes in and a score goes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.deploy.c_text import array, n_numbers_of_decision
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.kernels.shift_invariant import LOG2_E

Array = np.ndarray

# Kernel values below 2^-16 are 0, as far down as steps are fine.
REACH = 16.0
# The largest steps by the form of kernels; squares stay below 2^30.
LARGEST = {"squares": (1 << 14) - 1, "absolute": (1 << 15) - 1}
LARGEST_COEF = (1 << 15) - 1
# The number of binary digits of u behind the point.
DIGITS = 26
# 2^-x on [0, 1], over 2^31, signs alternating: interpolated at Chebyshev's points, off by 1e-7 of the value.
EXP2 = 2147483527, 1488513547, 515780381, 118751808, 19776564, 2033403

ROUND = """
/* The features in steps of fixed point, cut where every kernel value is 0. */
static inline void NAME_round(const float *x, int16_t *q)
{{
    int f;
    for (f = 0; f < NAME_N_FEATURES; ++f) {{
        float steps = (x[f] - NAME_centre[f]) * NAME_step[f];
        if (!(steps > -{largest}.0f)) steps = -{largest}.0f;
        if (steps > {largest}.0f) steps = {largest}.0f;
        q[f] = (int16_t)(steps + (steps < 0.0f ? -0.5f : 0.5f));{bounds}
    }}
}}
"""
BOUNDS = """
        if (q[f] < NAME_low[f]) q[f] = NAME_low[f];
        if (q[f] > NAME_high[f]) q[f] = NAME_high[f];"""
KERNEL = """
static inline uint32_t NAME_times(uint32_t a, uint32_t b)
{{
    return (uint32_t)(((uint64_t)a * b) >> 32);
}}

/* A kernel value, of which 1 is 2^30. */
static inline int32_t NAME_kernel(const int16_t *q, const int16_t *z)
{{
    uint32_t sum = 0, power, rest, value;
    int f;
    for (f = 0; f < NAME_N_FEATURES; ++f) {{
        const int32_t difference = (int32_t)q[f] - z[f];
        sum += {term};
        if (sum > {limit}u) return 0;
    }}
    power = (uint32_t)(((uint64_t)sum * {unit}u) >> {shift});
    rest = power << {to_rest};
    value = {c[0]}u - NAME_times(rest, {c[1]}u - NAME_times(rest, {c[2]}u - NAME_times(rest, {c[3]}u
          - NAME_times(rest, {c[4]}u - NAME_times(rest, {c[5]}u)))));
    return (int32_t)(value >> ((power >> {digits}) + 1));
}}

/* Writes the NAME_N_OUTPUTS scores of the row x of NAME_N_FEATURES features. */
static inline void NAME_scores(const float *x, float *scores)
{{
    int16_t q[NAME_N_FEATURES];
    int64_t sums[NAME_N_OUTPUTS] = {{0}};
    int j, c;
    NAME_round(x, q);
    for (j = 0; j < NAME_N_VECTORS; ++j) {{
        const int32_t value = NAME_kernel(q, NAME_vectors[j]);
        for (c = 0; c < NAME_N_OUTPUTS; ++c) sums[c] += (int64_t)value * NAME_coef[j][c];
    }}
    for (c = 0; c < NAME_N_OUTPUTS; ++c) {{
        scores[c] = (float)(int32_t)(sums[c] / {divisor}) * NAME_unit[c] + NAME_intercept[c];
    }}
}}
"""


@dataclass(frozen=True, eq=False)
class FixedPointModel(PlainModel):
    """A model with the scores of the header, bit for bit up to the last float32 operations."""

    centre: Any = None
    step: Any = None
    low: Any = None  # bounds of scalers that clip
    high: Any = None
    points: Any = None
    weights: Any = None
    limit: int = 0  # a sum above it has the kernel value 0, others u = sum · unit / 2^(shift + `DIGITS`)
    unit: int = 0
    shift: int = 0
    divisor: int = 1  # of sums of weights and kernel values, so that they fit 32 bits
    output_unit: Any = None  # what one of these sums, divided, is worth

    def scores(self, X: Array) -> Array:
        """Scores (n, n_outputs) of rows as users have them."""
        q, square = self._rounded(X), self.kernel.form == "squares"
        out = np.empty((len(X), self.n_outputs))
        for i, row in enumerate(q):
            differences = row.astype(np.int64) - self.points
            sums = (differences * differences if square else np.abs(differences)).sum(axis=1)
            values = np.where(sums > self.limit, 0, self._kernel_of(np.minimum(sums, self.limit)))
            totals = values @ self.weights.astype(np.int64)
            whole = np.abs(totals) // self.divisor * np.sign(totals)
            out[i] = whole.astype(np.float32) * self.output_unit + self.intercept.astype(np.float32)
        return out

    def _rounded(self, X: Array) -> Array:
        """NAME_round."""
        steps = (X.astype(np.float32) - self.centre) * self.step
        largest = np.float32(LARGEST[self.kernel.form])
        steps = np.clip(steps, -largest, largest)
        q = np.trunc(steps + np.where(steps < 0, np.float32(-0.5), np.float32(0.5))).astype(np.int16)
        return q if self.low is None else np.clip(q, self.low, self.high)

    def _kernel_of(self, sums: Array) -> Array:
        """NAME_kernel, of sums that are not above the limit."""
        power = sums.astype(np.uint64) * np.uint64(self.unit) >> np.uint64(self.shift)
        rest = (power << np.uint64(32 - DIGITS)) & np.uint64(0xFFFFFFFF)
        value = np.full(sums.shape, EXP2[-1], np.uint64)
        for c in EXP2[-2::-1]:
            value = np.uint64(c) - (rest * value >> np.uint64(32))
        return (value >> ((power >> np.uint64(DIGITS)) + np.uint64(1))).astype(np.int64)


def fixed_point(model: PlainModel) -> FixedPointModel:
    """The model with its numbers rounded.

    A ValueError says if the kernel is none of exponentials, or if the vectors lie too far apart for 15 bits.
    """
    kernel = model.kernel
    if kernel.form not in LARGEST or not kernel.is_exponential:
        raise ValueError(
            f"int16 headers are for the RBF kernel and the Laplacian one, found {kernel.name}: take float32"
        )
    is_square = kernel.form == "squares"
    unit_of_z = (0.5 if is_square else 1.0) * kernel.unit
    scale = np.broadcast_to(unit_of_z * np.asarray(kernel.gamma, np.float64) * LOG2_E, (model.n_features,))
    scale = np.sqrt(scale) if is_square else scale
    vectors, scaling = model.dense_vectors(), model.scaling
    middle = 0.5 * (vectors.min(axis=0) + vectors.max(axis=0))
    spread = float((0.5 * np.ptp(vectors, axis=0) * scale).max())
    largest_step = LARGEST[kernel.form]
    unit = (spread + (np.sqrt(REACH) if is_square else REACH)) / largest_step  # of x scale, one step
    # The vectors are rounded about the centre that float32 has.
    raw, centre = model.unscaled(vectors), model.unscaled(middle).astype(np.float32)
    step = (scale / unit * (1.0 if scaling is None else scaling.factor)).astype(np.float32)
    rounded = np.rint((raw - centre) * step.astype(np.float64))
    step_of_u = unit**2 if is_square else unit
    shift = int(np.floor(31 - np.log2(step_of_u * 2.0**DIGITS)))
    if shift < 0 or not np.abs(rounded).max() <= largest_step:
        raise ValueError("the model's vectors lie too far apart for int16: take float32")
    low = high = None
    if scaling is not None and scaling.low is not None and scaling.high is not None:
        bounds = (np.rint((scaling.unscaled(bound) - centre) * step) for bound in (scaling.low, scaling.high))
        low, high = (np.clip(bound, -largest_step, largest_step).astype(np.int16) for bound in bounds)
    largest = np.abs(model.coef).max(axis=0)
    coef_unit = np.where(largest > 0, largest, 1.0) / LARGEST_COEF
    weights = np.rint(model.coef / coef_unit).astype(np.int16)
    most = int(np.abs(weights.astype(np.int64)).sum(axis=0).max()) << 30
    divisor = 1 << max(0, most.bit_length() - 31)
    return FixedPointModel(
        **vars(model), centre=centre, step=step, low=low, high=high, points=rounded.astype(np.int16), weights=weights,
        limit=int(REACH / step_of_u), unit=int(step_of_u * 2.0 ** (DIGITS + shift)), shift=shift, divisor=divisor,
        output_unit=(coef_unit * divisor / 2.0**30).astype(np.float32),
    )  # fmt: skip


def fixed_point_text(fixed: FixedPointModel) -> str:
    """Constants and functions."""
    text = f"#define NAME_N_VECTORS {len(fixed.points)}\n"
    text += array("vectors", fixed.points, "[NAME_N_VECTORS][NAME_N_FEATURES]", "int16")
    text += array("coef", fixed.weights, "[NAME_N_VECTORS][NAME_N_OUTPUTS]", "int16")
    for name in ("intercept", "unit"):
        text += array(name, fixed.intercept if name == "intercept" else fixed.output_unit, "[NAME_N_OUTPUTS]")
    for name in ("centre", "step", "low", "high"):
        if getattr(fixed, name) is not None:
            text += array(
                name, getattr(fixed, name), "[NAME_N_FEATURES]", "int16" if name in ("low", "high") else "float32"
            )
    is_square = fixed.kernel.form == "squares"
    term = (
        "(uint32_t)(difference * difference)" if is_square else "(uint32_t)(difference < 0 ? -difference : difference)"
    )
    text += ROUND.format(largest=LARGEST[fixed.kernel.form], bounds="" if fixed.low is None else BOUNDS)
    return text + KERNEL.format(term=term, limit=fixed.limit, unit=fixed.unit, shift=fixed.shift, c=EXP2, digits=DIGITS,
                                to_rest=32 - DIGITS, divisor=fixed.divisor)  # fmt: skip


def fixed_point_bytes(fixed: FixedPointModel) -> int:
    """Bytes of constants, classes not counted."""
    parts = fixed.points, fixed.weights, fixed.low, fixed.high, fixed.centre, fixed.step, fixed.output_unit
    return sum(part.nbytes for part in parts if part is not None) + 4 * (fixed.n_outputs + n_numbers_of_decision(fixed))
