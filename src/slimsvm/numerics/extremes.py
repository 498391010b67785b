"""Intrinsics for searches: the extreme of one vector of numbers, and arrays whose references nobody counts.

Numba compiles no minimum over floating-point numbers to SIMD by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from slimsvm.numerics.vectors import Vectors, pointers, splat_of


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


# (1 - κ)(c0 + c1 κ + c2 κ²) is at most the root of 1 - κ² (1 - 2 log κ), which a light point of mass 1 loses.
LIGHT_LOSS = (0.9995, 0.66, -0.25)


def _light_below(typing_context, k, at, limit):
    """Bits that tell of the kernel values k of one panel, from k[at] on, where LIGHT_LOSS is not above the limit."""

    def generate(context, builder, signature, arguments):
        vectors = Vectors(context, builder, signature.args[0].dtype)
        k, at, limit = pointers(context, builder, signature, arguments)
        if vectors.bits == 32:
            limit = builder.fptrunc(limit, vectors.scalar)
        limit = splat_of(builder, limit, vectors.lanes)
        one, c0, c1, c2 = (vectors.constant(c) for c in (1.0, *LIGHT_LOSS))
        bits, whole = ir.Constant(ir.IntType(64), 0), ir.IntType(64)
        for first in range(0, vectors.panel, vectors.lanes):
            kappa = vectors.load(k, builder.add(at, ir.Constant(whole, first)))
            light = vectors.multiply_add(vectors.multiply_add(c2, kappa, c1), kappa, c0)
            below = builder.fcmp_ordered("<=", builder.fmul(light, builder.fsub(one, kappa)), limit)
            mask = builder.zext(builder.bitcast(below, ir.IntType(vectors.lanes)), whole)
            bits = builder.or_(bits, builder.shl(mask, ir.Constant(whole, first)))
        return bits

    return types.int64(k, types.int64, types.float64), generate


def _lowest_bit(typing_context, bits):
    """The place of the lowest bit that is set; there is one."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def _greatest_of(typing_context, values, n):
    """The greatest of the whole vectors among the first n numbers, -1 if there is none above."""

    def generate(context, builder, signature, arguments):
        vectors = Vectors(context, builder, signature.args[0].dtype)
        values, n = pointers(context, builder, signature, arguments)
        greatest = cgutils.alloca_once_value(builder, vectors.constant(-1.0))
        lanes = ir.Constant(ir.IntType(64), vectors.lanes)
        with cgutils.for_range(builder, builder.udiv(n, lanes), intp=ir.IntType(64)) as loop:
            numbers = vectors.load(values, builder.mul(loop.index, lanes))
            builder.store(vectors.maximum(numbers, builder.load(greatest)), greatest)
        best = _picked(builder, builder.load(greatest), vectors.lanes, ">")
        return builder.fpext(best, ir.DoubleType()) if vectors.bits == 32 else best

    return types.float64(values, types.int64), generate


def _least_of(typing_context, values, n):
    """The least |values[j]| of the whole vectors among the first n float64, infinite if there is none."""

    def generate(context, builder, signature, arguments):
        vectors = Vectors(context, builder, signature.args[0].dtype)
        values, n = pointers(context, builder, signature, arguments)
        least = cgutils.alloca_once_value(builder, vectors.constant(float("inf")))
        lanes = ir.Constant(ir.IntType(64), vectors.lanes)
        with cgutils.for_range(builder, builder.udiv(n, lanes), intp=ir.IntType(64)) as loop:
            sizes, before = vectors.magnitude(vectors.load(values, builder.mul(loop.index, lanes))), builder.load(least)
            builder.store(builder.select(builder.fcmp_ordered("<", sizes, before), sizes, before), least)
        return _picked(builder, builder.load(least), vectors.lanes, "<")

    return types.float64(values, types.int64), generate


def _prefetch(typing_context, array, at):
    """Ask for array[at] to be in the cache soon."""

    def generate(context, builder, signature, arguments):
        array, at = pointers(context, builder, signature, arguments)
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        place = builder.bitcast(builder.gep(array, [at]), byte)
        builder.call(function, [place, ir.Constant(whole, 0), ir.Constant(whole, 3), ir.Constant(whole, 1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _borrowed(typing_context, array):
    """The array without an owner: its memory is the caller's, and passing it on to functions costs no counting."""

    def generate(context, builder, signature, arguments):
        result = context.make_array(signature.args[0])(context, builder, arguments[0])
        result.meminfo = ir.Constant(result.meminfo.type, None)
        result.parent = ir.Constant(result.parent.type, None)
        return result._getvalue()

    return array(array), generate


light_below: Callable = intrinsic(_light_below)
greatest_of: Callable = intrinsic(_greatest_of)
lowest_bit: Callable = intrinsic(_lowest_bit)
least_of: Callable = intrinsic(_least_of)
prefetch: Callable = intrinsic(_prefetch)
borrowed: Callable = intrinsic(_borrowed)
