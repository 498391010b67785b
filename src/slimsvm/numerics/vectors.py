"""Vectors of the processor's width in code made for LLVM by hand: numbers in every lane, sums, exp2."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic


def _features() -> str:
    """The processor's: what Numba was told to compile for, which keeps code for each processor apart."""
    told = getattr(config, "CPU_FEATURES", None)
    return binding.get_host_cpu_features().flatten() if told is None else told


def _vector_shape() -> tuple[int, int]:
    """Bytes of a vector and vectors per panel, so that the sums of a tile fill the registers and no more."""
    features = _features()
    if "+avx512f" in features:
        return 64, 4
    if "+avx2" in features:
        return 32, 2
    return 16, 4 if binding.get_process_triple().startswith(("aarch64", "arm64")) else 2


VECTOR_BYTES, VECTORS = _vector_shape()
LANES_FLOAT32, LANES_FLOAT64 = VECTOR_BYTES // 4, VECTOR_BYTES // 8
PANEL_FLOAT32, PANEL_FLOAT64 = VECTOR_BYTES * VECTORS // 4, VECTOR_BYTES * VECTORS // 8


def panel_of(dtype: Any) -> int:
    """Numbers of a type that stand side by side in a panel."""
    return PANEL_FLOAT32 if dtype == np.float32 else PANEL_FLOAT64


# 2**r on |r| <= 1/2 times a constant (minimax; with the constant free one degree less is needed for the same error),
# the number whose addition rounds to an integer, and the least exponent: far enough from the denormal numbers that
# products with coefficients are none either (they made distant points four times as slow as near ones).
# AVX-512 has the rest of a number from its nearest integer, and the product with a power of two, in one instruction
# each: for float32, where they are what counts, these take the place of the addition that rounds.
SCALES = {"+avx512f", "+avx512dq"} <= set(_features().split(","))
EXP2_FLOAT32 = (
    (
        *(0.9999999403953552, 0.6931468844413757, 0.24022117257118225),
        *(0.055507123470306396, 0.009675540030002594, 0.0013276470126584172),
    ),
    0.0 if SCALES else 12582912.0,
    -80.0,
)
EXP2_FLOAT64 = (
    (
        *(1.0, 6.93147180559945696772e-1, 2.40226506959100980097e-1, 5.55041086647903939241e-2),
        *(9.61812910760700122617e-3, 1.33335581534400713000e-3, 1.54035304415733184687e-4, 1.52527273850646176635e-5),
        *(1.32154426748642451945e-6, 1.01806477328174069968e-7, 7.07257047545789933199e-9, 4.07805777677516680249e-10),
    ),
    6755399441055744.0,
    -900.0,
)
EXP2_SCALE_FLOAT32 = 0.9999998689950266  # the constant of float32, to be divided out; 1 in float64
INT64 = ir.IntType(64)


def int64(value: int) -> ir.Constant:
    """A constant of 64 bits."""
    return ir.Constant(INT64, value)


class Vectors:
    """Vector instructions at one place of a function."""

    def __init__(self, context: Any, builder: ir.IRBuilder, dtype: types.Float):
        self.builder = builder
        self.bits = dtype.bitwidth
        self.lanes = VECTOR_BYTES * 8 // self.bits
        self.panel = VECTORS * self.lanes
        self.scalar = context.get_value_type(dtype)
        self.vector = ir.VectorType(self.scalar, self.lanes)
        self.integers = ir.VectorType(ir.IntType(self.bits), self.lanes)
        # Without this LLVM cuts 512-bit vectors in two on some processors that have them.
        attributes = builder.function.attributes
        if isinstance(attributes, set):
            set.add(attributes, f'"min-legal-vector-width"="{VECTOR_BYTES * 8}"')

    def constant(self, value: float) -> ir.Constant:
        """A number in every lane."""
        return ir.Constant(self.vector, [ir.Constant(self.scalar, value)] * self.lanes)

    def integer(self, value: int) -> ir.Constant:
        """The same of integers."""
        return ir.Constant(self.integers, [ir.Constant(self.integers.element, value)] * self.lanes)

    def load(self, pointer: Any, index: Any) -> Any:
        """The vector at pointer[index]."""
        place = self.builder.bitcast(self.builder.gep(pointer, [index]), self.vector.as_pointer())
        return self.builder.load(place, align=self.bits // 8)

    def store(self, value: Any, pointer: Any, index: Any) -> None:
        """Write a vector to pointer[index]."""
        place = self.builder.bitcast(self.builder.gep(pointer, [index]), self.vector.as_pointer())
        self.builder.store(value, place, align=self.bits // 8)

    def splat(self, pointer: Any, index: Any) -> Any:
        """A number in memory in every lane."""
        return splat_of(self.builder, self.builder.load(self.builder.gep(pointer, [index])), self.lanes)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """A * b + c, rounded once."""
        product = self.builder.fmul(a, b, flags=["contract"])
        return self.builder.fadd(product, c, flags=["contract"])

    def maximum(self, a: Any, b: Any) -> Any:
        """The greater of both, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def magnitude(self, a: Any) -> Any:
        """|a|."""
        without_sign = self.builder.and_(self.builder.bitcast(a, self.integers), self.integer(2 ** (self.bits - 1) - 1))
        return self.builder.bitcast(without_sign, self.vector)

    def total(self, value: Any) -> Any:
        """The sum of a vector's lanes, halves added to halves."""
        width = value.type.count
        while width > 1:
            width //= 2
            positions = ir.VectorType(ir.IntType(32), width)
            undefined = ir.Constant(value.type, ir.Undefined)
            low = self.builder.shuffle_vector(value, undefined, ir.Constant(positions, list(range(width))))
            high = self.builder.shuffle_vector(value, undefined, ir.Constant(positions, list(range(width, 2 * width))))
            value = self.builder.fadd(low, high)
        return self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    def power(self, r: list[Any]) -> list[Any]:
        """2**r times a constant, for several vectors of numbers in [-1/2, 1/2], step by step."""
        coefficients = EXP2_FLOAT32[0] if self.bits == 32 else EXP2_FLOAT64[0]
        p = [self.constant(coefficients[-1])] * len(r)
        for coefficient in coefficients[-2::-1]:
            p = [self.multiply_add(v, w, self.constant(coefficient)) for v, w in zip(p, r)]
        return p

    def scaled(self, name: str, a: Any, b: Any) -> Any:
        """AVX-512's instruction ``name``: reduce, a less its nearest integer; scalef, a times 2**b."""
        mask, rounding = ir.IntType(16), ir.IntType(32)
        kind = ir.FunctionType(self.vector, [self.vector, b.type, self.vector, mask, rounding])
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.x86.avx512.mask.{name}.ps.512")
        return self.builder.call(function, [a, b, self.constant(0.0), mask(-1), rounding(4)])

    def exp2(self, z: list[Any], rounder: list[Any] | None, lowest: list[Any] | None) -> list[Any]:
        """2**(z + H) times a constant, for several vectors step by step.

        ``rounder`` is the rounding number plus the integer H, ``lowest`` the least exponent minus H. n + H with
        n = round(z) is then in the low bits of z + rounder; it is added to the exponent of the polynomial of r = z - n.
        With `SCALES` the rounding number of float32 is 0, and n + H a number of its own.
        Without them: 2**z times the constant, for z that need no least exponent.
        """
        builder = self.builder
        mantissa = self.integer(23 if self.bits == 32 else 52)
        if SCALES and self.bits == 32:
            r = [self.scaled("reduce", v, ir.IntType(32)(0)) for v in z]
            n = [builder.fsub(v, rest) for v, rest in zip(z, r)]
            if rounder is not None and lowest is not None:
                n = [builder.fadd(self.maximum(v, least), H) for v, H, least in zip(n, rounder, lowest)]
            return [self.scaled("scalef", v, exponent) for v, exponent in zip(self.power(r), n)]
        _, magic, least = EXP2_FLOAT32 if self.bits == 32 else EXP2_FLOAT64
        rounder, lowest = rounder or [self.constant(magic)] * len(z), lowest or [self.constant(least)] * len(z)
        z = [self.maximum(v, least) for v, least in zip(z, lowest)]
        sums = [builder.fadd(v, magic) for v, magic in zip(z, rounder)]
        whole = [builder.fsub(t, magic) for t, magic in zip(sums, rounder)]
        r = [builder.fsub(v, n) for v, n in zip(z, whole)]
        p = self.power(r)
        exponents = [builder.shl(builder.bitcast(t, self.integers), mantissa) for t in sums]
        scaled = [builder.add(builder.bitcast(v, self.integers), e) for v, e in zip(p, exponents)]
        return [builder.bitcast(v, self.vector) for v in scaled]


def pointers(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> list[Any]:
    """Array arguments as pointers to their first element, the others as they are."""
    return [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, values)
    ]


def inlined(function: Callable) -> Callable:
    """Make ``function(vectors, builder, *pointers and numbers)`` callable from compiled code.

    The first argument's type is the type computed in. Arrays are C-contiguous; numbers are int64.
    """

    def typed(typing_context, *arguments):
        def generate(context, builder, signature, values):
            vectors = Vectors(context, builder, signature.args[0].dtype)
            function(vectors, builder, *pointers(context, builder, signature, values))
            return context.get_dummy_value()

        return types.void(*(types.int64 if isinstance(a, types.Integer) else a for a in arguments)), generate

    names = ["typing_context", *list(inspect.signature(function).parameters)[2:]]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    typed.__name__, typed.__doc__ = function.__name__, function.__doc__
    return intrinsic(typed)


def splat_of(builder: ir.IRBuilder, number: Any, lanes: int) -> Any:
    """A number in every lane of a vector."""
    kind = ir.VectorType(number.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)
