"""Intrinsics for searches: the extreme of one vector of numbers, and arrays whose references nobody counts.

Numba compiles no maximum over floating-point numbers to SIMD by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from slimsvm.numerics.simd import _pointers, _splat_of, _Vectors


def _picked(builder: ir.IRBuilder, value: Any, lanes: int, order: str) -> Any:
    """The number of a vector's that comes first in ``order``, "<" or ">"."""
    undefined = ir.Constant(value.type, ir.Undefined)
    while lanes > 1:
        lanes //= 2
        positions = ir.VectorType(ir.IntType(32), lanes)
        low, high = (
            builder.shuffle_vector(value, undefined, ir.Constant(positions, list(range(first, first + lanes))))
            for first in (0, lanes)
        )
        value = builder.select(builder.fcmp_ordered(order, low, high), low, high)
        undefined = ir.Constant(value.type, ir.Undefined)
    return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))


def _nearest_of(typing_context, k, at, values, sign):
    """The largest of the numbers k[at], … of one vector where values[at], … (float64) have the sign, -1 if none."""

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0].dtype)
        k, at, values, sign = _pointers(context, builder, signature, arguments)
        wide = ir.VectorType(ir.DoubleType(), vectors.lanes)
        weights = builder.load(builder.bitcast(builder.gep(values, [at]), wide.as_pointer()), align=8)
        products = builder.fmul(weights, _splat_of(builder, sign, vectors.lanes))
        counts = builder.fcmp_ordered(">", products, ir.Constant(wide, [0.0] * vectors.lanes))
        numbers = builder.select(counts, vectors.load(k, at), vectors.constant(-1.0))
        best = _picked(builder, numbers, vectors.lanes, ">")
        return builder.fpext(best, ir.DoubleType()) if vectors.bits == 32 else best

    return types.float64(k, types.int64, values, types.float64), generate


def _least_of(typing_context, values, at):
    """The least |values[at]|, … of one vector of float64."""

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0].dtype)
        values, at = _pointers(context, builder, signature, arguments)
        return _picked(builder, vectors.magnitude(vectors.load(values, at)), vectors.lanes, "<")

    return types.float64(values, types.int64), generate


def _borrowed(typing_context, array):
    """The array without an owner: its memory is the caller's, and passing it on to functions costs no counting."""

    def generate(context, builder, signature, arguments):
        result = context.make_array(signature.args[0])(context, builder, arguments[0])
        result.meminfo = ir.Constant(result.meminfo.type, None)
        result.parent = ir.Constant(result.parent.type, None)
        return result._getvalue()

    return array(array), generate


nearest_of: Callable = intrinsic(_nearest_of)
least_of: Callable = intrinsic(_least_of)
borrowed: Callable = intrinsic(_borrowed)
