"""From z to kernel values: 2**z, powers, tanh, on a tile while it is in cache.

Every kernel that is a function of the inner product is map(S + h_i + h_j), with S the inner products of folded rows and
points: 2**min(z, 0) for the RBF (h = -|x|^2 / 2), z**degree, z itself, tanh z. The Laplacian is 2**-|x - z|_1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from slimsvm.numerics.compiling import njit

EXP2, POWER, IDENTITY, TANH = range(4)

# Sums may be reordered into vectors and multiplications fused with additions: results depend on the processor, never
# on threads or batches. NaN stays NaN. exp2 must not be reassociated: its rounding is an addition and its undoing.
SUMS = {"contract", "nsz", "arcp", "reassoc"}
NO_REORDER = {"contract", "nsz"}


def exp2(z: Any) -> Any:
    """2**z for z <= 0: compiled code only; relative error below 2e-7 (float32) or 4e-16 (float64), exp2(0) = 1.

    Below -80 (float32) or -900 (float64) it stays at the value there, about 1e-24 or 1e-271: small against any sum, and
    far enough from the denormal numbers that its product with a coefficient is none either (they made distant points
    four times as slow as near ones). z = n + r with n an integer, |r| <= 1/2: adding and taking away 1.5 * 2**23
    rounds, the low bits of the sum are n, which is added to the exponent of the polynomial (minimax, p(0) = 1) of 2**r.
    """
    raise NotImplementedError


@overload(exp2, jit_options={"fastmath": NO_REORDER})
def _exp2(z):
    if z == types.float32:
        magic = np.float32(12582912.0)
        c1, c2, c3 = np.float32(0.6931472149672), np.float32(0.2402265278282), np.float32(0.05550310551613)
        c4, c5, c6 = np.float32(0.009617692991540), np.float32(0.001340664395590), np.float32(0.0001559467483115)
        lowest, one, shift = np.float32(-80.0), np.float32(1.0), np.int32(23)

        def exp2_float32(z):
            z = max(z, lowest)
            t = z + magic
            r = z - (t - magic)
            p = c6 * r + c5
            p = p * r + c4
            p = p * r + c3
            p = p * r + c2
            p = p * r + c1
            p = p * r + one
            bits = np.float32(p).view(np.int32) + np.int32(np.float32(t).view(np.int32) << shift)
            return np.int32(bits).view(np.float32)

        return exp2_float32

    if z == types.float64:

        def exp2_float64(z):
            z = max(z, -900.0)
            t = z + 6755399441055744.0
            r = z - (t - 6755399441055744.0)
            p = 4.07805777677516680249e-10 * r + 7.07257047545789933199e-9
            p = p * r + 1.01806477328174069968e-7
            p = p * r + 1.32154426748642451945e-6
            p = p * r + 1.52527273850646176635e-5
            p = p * r + 1.54035304415733184687e-4
            p = p * r + 1.33335581534400713000e-3
            p = p * r + 9.61812910760700122617e-3
            p = p * r + 5.55041086647903939241e-2
            p = p * r + 2.40226506959100980097e-1
            p = p * r + 6.93147180559945696772e-1
            p = p * r + 1.0
            bits = np.float64(p).view(np.int64) + (np.float64(t).view(np.int64) << np.int64(52))
            return np.int64(bits).view(np.float64)

        return exp2_float64
    return None


@njit(nogil=True, fastmath=SUMS)
def _int_power(z, degree):
    result = z
    for _ in range(degree - 1):
        result = result * z
    return result


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def map_tile(S, half_rows, half_points, code, degree):
    """S[i, j] = map(S[i, j] + half_rows[i] + half_points[j]), in place."""
    zero = S.dtype.type(0)
    for i in range(S.shape[0]):
        row, h = S[i], half_rows[i]
        if code == EXP2:
            for j in range(row.size):
                row[j] = exp2(min(row[j] + half_points[j] + h, zero))
        else:
            for j in range(row.size):
                row[j] += half_points[j] + h
            if code == POWER:
                for j in range(row.size):
                    row[j] = _int_power(row[j], degree)
            elif code == TANH:
                for j in range(row.size):
                    row[j] = np.tanh(row[j])
