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

from slimsvm.numerics.vectors import VECTORS, Vectors, pointers, splat_of


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
        is_integer = isinstance(value.type.element, ir.IntType)
        first = (builder.icmp_signed if is_integer else builder.fcmp_ordered)(order, low, high)
        value = builder.select(first, low, high)
        undefined = ir.Constant(value.type, ir.Undefined)
    return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))


def _greatest(builder: ir.IRBuilder, vectors: list[Any]) -> Any:
    """Lane by lane the greatest of vectors of integers."""
    best = vectors[0]
    for other in vectors[1:]:
        best = builder.select(builder.icmp_signed(">", other, best), other, best)
    return best


def _panel_from(typing_context, k, at, lowest):
    """Bits that tell which numbers of one panel, from k[at] on, are not below ``lowest``."""

    def generate(context, builder, signature, arguments):
        vectors, whole = Vectors(context, builder, signature.args[0].dtype), ir.IntType(64)
        k, at, lowest = pointers(context, builder, signature, arguments)
        lowest, bits = splat_of(builder, lowest, vectors.lanes), ir.Constant(whole, 0)
        for first in range(0, vectors.panel, vectors.lanes):
            is_in = builder.fcmp_ordered(">=", vectors.load(k, builder.add(at, ir.Constant(whole, first))), lowest)
            mask = builder.zext(builder.bitcast(is_in, ir.IntType(vectors.lanes)), whole)
            bits = builder.or_(bits, builder.shl(mask, ir.Constant(whole, first)))
        return bits

    return types.int64(k, types.int64, k.dtype), generate


def _lowest_bit(typing_context, bits):
    """The place of the lowest bit that is set; there is one."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def _greatest_two(typing_context, values, n):
    """The place of the greatest of the first n numbers, and the greatest of the others, -1 if none is above.

    n is at least 1, and whole panels are read. Numbers of no sign are in the order of their bits, which vectors of
    integers are the faster to compare. Every lane keeps its two greatest numbers, and where the first was.
    """

    def generate(context, builder, signature, arguments):
        vectors, whole = Vectors(context, builder, signature.args[0].dtype), ir.IntType(64)
        values, n = pointers(context, builder, signature, arguments)
        kind, lanes, panel = vectors.integers, vectors.lanes, ir.Constant(whole, vectors.panel)
        lowest, one_panel = builder.bitcast(vectors.constant(-1.0), kind), vectors.integer(vectors.panel)
        first, second = ([cgutils.alloca_once_value(builder, lowest) for _ in range(VECTORS)] for _ in range(2))
        panels = cgutils.alloca_once(builder, ir.ArrayType(kind, VECTORS))
        panel_of = [builder.gep(panels, [ir.Constant(whole, 0), ir.Constant(whole, v)]) for v in range(VECTORS)]
        now = cgutils.alloca_once_value(builder, vectors.integer(0))
        for place in panel_of:
            builder.store(vectors.integer(0), place)

        def above(a, b):
            return builder.icmp_signed(">", a, b)

        def meet(v, numbers):
            top = builder.load(first[v])
            is_top, runner_up = above(numbers, top), builder.load(second[v])
            lower = builder.select(is_top, top, numbers)
            builder.store(builder.select(above(lower, runner_up), lower, runner_up), second[v])
            builder.store(builder.select(is_top, numbers, top), first[v])
            builder.store(builder.select(is_top, builder.load(now), builder.load(panel_of[v])), panel_of[v])

        def numbers_at(v, start):
            return builder.bitcast(vectors.load(values, builder.add(start, ir.Constant(whole, v * lanes))), kind)

        n_whole = builder.udiv(n, panel)
        with cgutils.for_range(builder, n_whole, intp=whole) as loop:
            start = builder.mul(loop.index, panel)
            for v in range(VECTORS):
                meet(v, numbers_at(v, start))
            builder.store(builder.add(builder.load(now), one_panel), now)
        start = builder.mul(n_whole, panel)
        left = builder.sub(n, start)
        with builder.if_then(builder.icmp_signed("!=", left, ir.Constant(whole, 0))):
            n_left = splat_of(builder, builder.trunc(left, kind.element) if vectors.bits == 32 else left, lanes)
            for v in range(VECTORS):
                lane = ir.Constant(kind, [ir.Constant(kind.element, v * lanes + i) for i in range(lanes)])
                meet(v, builder.select(builder.icmp_signed("<", lane, n_left), numbers_at(v, start), lowest))
        tops = [builder.load(place) for place in first]
        number = splat_of(builder, _picked(builder, _greatest(builder, tops), lanes, ">"), lanes)
        bits = ir.Constant(whole, 0)
        for v, top in enumerate(tops):
            mask = builder.bitcast(builder.icmp_signed("==", top, number), ir.IntType(lanes))
            bits = builder.or_(bits, builder.shl(builder.zext(mask, whole), ir.Constant(whole, v * lanes)))
        within = builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
        start = builder.load(builder.gep(builder.bitcast(panels, kind.element.as_pointer()), [within]))
        place = builder.add(within, builder.sext(start, whole) if vectors.bits == 32 else start)
        chosen = splat_of(builder, builder.trunc(within, kind.element) if vectors.bits == 32 else within, lanes)
        rest = []
        for v, (top, runner_up) in enumerate(zip(tops, second)):
            lane = ir.Constant(kind, [ir.Constant(kind.element, v * lanes + i) for i in range(lanes)])
            rest.append(builder.select(builder.icmp_signed("==", lane, chosen), builder.load(runner_up), top))
        other = _picked(builder, _greatest(builder, [*rest, *(builder.load(p) for p in second)]), lanes, ">")
        return context.make_tuple(builder, signature.return_type, [place, builder.bitcast(other, vectors.scalar)])

    return types.Tuple((types.int64, values.dtype))(values, types.int64), generate


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


panel_from: Callable = intrinsic(_panel_from)
greatest_two: Callable = intrinsic(_greatest_two)
lowest_bit: Callable = intrinsic(_lowest_bit)
least_of: Callable = intrinsic(_least_of)
prefetch: Callable = intrinsic(_prefetch)
borrowed: Callable = intrinsic(_borrowed)
