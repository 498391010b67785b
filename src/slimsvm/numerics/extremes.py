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


# (1 - κ)(c0 + c1 κ + c2 κ²) is at most the root of 1 - κ² (1 - 2 log κ), which a light point of mass 1 loses.
LIGHT_LOSS = (0.9995, 0.66, -0.25)


def _least_losses(typing_context, k, values, n, own, bounds):
    """bounds[j] = least root of the loss, over the mass, of a merger of the mass ``own`` with values[j], j < n.

    own is the lightest; k holds the kernel values; n is rounded up to whole vectors. Infinite where the two are not
    merged. Returns the least of them. With u = own / (own + values) the bound is that of a light point times 1 - u,
    or, of two signs, times 1 - u κ⁶.
    """

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0].dtype)
        k, values, n, own, bounds = _pointers(context, builder, signature, arguments)
        wide = ir.VectorType(ir.DoubleType(), vectors.lanes)
        if vectors.bits == 32:
            own = builder.fptrunc(own, vectors.scalar)
        own = _splat_of(builder, own, vectors.lanes)
        c0, c1, c2 = (vectors.constant(c) for c in LIGHT_LOSS)
        zero, one, infinite = (vectors.constant(c) for c in (0.0, 1.0, float("inf")))
        least = cgutils.alloca_once_value(builder, infinite)
        lanes = ir.Constant(ir.IntType(64), vectors.lanes)
        whole = builder.udiv(builder.add(n, ir.Constant(ir.IntType(64), vectors.lanes - 1)), lanes)
        with cgutils.for_range(builder, whole, intp=ir.IntType(64)) as loop:
            at = builder.mul(loop.index, lanes)
            masses = builder.load(builder.bitcast(builder.gep(values, [at]), wide.as_pointer()), align=8)
            if vectors.bits == 32:
                masses = builder.fptrunc(masses, vectors.vector)
            kappa = vectors.load(k, at)
            u = builder.fdiv(own, builder.fadd(own, masses))
            light = vectors.multiply_add(vectors.multiply_add(c2, kappa, c1), kappa, c0)
            light = builder.fmul(light, builder.fsub(one, kappa))
            square = builder.fmul(kappa, kappa)
            sixth = builder.fmul(builder.fmul(square, square), square)
            same = builder.fcmp_ordered(">", u, zero)
            losses = builder.fmul(light, builder.fsub(one, builder.fmul(u, builder.select(same, one, sixth))))
            merged = builder.and_(
                builder.fcmp_ordered(">=", kappa, zero),
                builder.and_(
                    builder.fcmp_ordered(">=", u, vectors.constant(-1.0)),
                    builder.fcmp_ordered("<=", u, vectors.constant(0.5001)),
                ),
            )
            losses = builder.select(merged, losses, infinite)
            vectors.store(losses, bounds, at)
            before = builder.load(least)
            builder.store(builder.select(builder.fcmp_ordered("<", losses, before), losses, before), least)
        best = _picked(builder, builder.load(least), vectors.lanes, "<")
        return builder.fpext(best, ir.DoubleType()) if vectors.bits == 32 else best

    return types.float64(k, values, types.int64, types.float64, bounds), generate


def _any_below(typing_context, values, at, limit):
    """Whether one vector of numbers, from values[at] on, has one below the limit, or equal to it."""

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0].dtype)
        values, at, limit = _pointers(context, builder, signature, arguments)
        if vectors.bits == 32:
            limit = builder.fptrunc(limit, vectors.scalar)
        below = builder.fcmp_ordered("<=", vectors.load(values, at), _splat_of(builder, limit, vectors.lanes))
        mask = ir.IntType(vectors.lanes)
        return builder.icmp_unsigned("!=", builder.bitcast(below, mask), ir.Constant(mask, 0))

    return types.boolean(values, types.int64, types.float64), generate


def _least_of(typing_context, values, n):
    """The least |values[j]| of the whole vectors among the first n float64, infinite if there is none."""

    def generate(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[0].dtype)
        values, n = _pointers(context, builder, signature, arguments)
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
        array, at = _pointers(context, builder, signature, arguments)
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


least_losses: Callable = intrinsic(_least_losses)
any_below: Callable = intrinsic(_any_below)
least_of: Callable = intrinsic(_least_of)
prefetch: Callable = intrinsic(_prefetch)
borrowed: Callable = intrinsic(_borrowed)
