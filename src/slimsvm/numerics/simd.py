"""Vector code that LLVM would not write by itself: register tiles of inner products, exp2 in lockstep.

A tile is ROWS rows times a panel of points (VECTORS vectors wide): its sums stay in registers while the features go by.
Left to itself LLVM keeps them in memory, at a third of the speed. Each function here is inlined where compiled code
calls it; the last lines of the file name them.

Values are stored where they are summed, vectors of a panel side by side. Eight vectors go through exp2 step by step:
one alone waits for its own results, and reordering in the processor is not deep enough to fill the gaps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

ROWS = 6


def _vector_shape() -> tuple[int, int]:
    """Bytes of a vector and vectors per panel, so that the sums of a tile fill the registers and no more."""
    features = getattr(
        config, "CPU_FEATURES", None
    )  # what Numba was told to compile for; it keeps code for each processor apart
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    if "+avx512f" in features:
        return 64, 4
    if "+avx2" in features:
        return 32, 2
    return 16, 4 if binding.get_process_triple().startswith(("aarch64", "arm64")) else 2


VECTOR_BYTES, VECTORS = _vector_shape()
LANES_FLOAT32, LANES_FLOAT64 = VECTOR_BYTES // 4, VECTOR_BYTES // 8
PANEL_FLOAT32, PANEL_FLOAT64 = VECTOR_BYTES * VECTORS // 4, VECTOR_BYTES * VECTORS // 8

# 2**r on |r| <= 1/2 times a constant (minimax; with the constant free one degree less is needed for the same error),
# the number whose addition rounds to an integer, and the least exponent: far enough from the denormal numbers that
# products with coefficients are none either (they made distant points four times as slow as near ones).
EXP2_FLOAT32 = (
    (
        *(0.9999999403953552, 0.6931468844413757, 0.24022117257118225),
        *(0.055507123470306396, 0.009675540030002594, 0.0013276470126584172),
    ),
    12582912.0,
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
_INT64 = ir.IntType(64)


def _int(value: int) -> ir.Constant:
    return ir.Constant(_INT64, value)


class _Vectors:
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
        return ir.Constant(self.vector, [ir.Constant(self.scalar, value)] * self.lanes)

    def integer(self, value: int) -> ir.Constant:
        return ir.Constant(self.integers, [ir.Constant(self.integers.element, value)] * self.lanes)

    def load(self, pointer: Any, index: Any) -> Any:
        place = self.builder.bitcast(self.builder.gep(pointer, [index]), self.vector.as_pointer())
        return self.builder.load(place, align=self.bits // 8)

    def store(self, value: Any, pointer: Any, index: Any) -> None:
        place = self.builder.bitcast(self.builder.gep(pointer, [index]), self.vector.as_pointer())
        self.builder.store(value, place, align=self.bits // 8)

    def splat(self, pointer: Any, index: Any) -> Any:
        """A number in memory in every lane."""
        return _splat_of(self.builder, self.builder.load(self.builder.gep(pointer, [index])), self.lanes)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        product = self.builder.fmul(a, b, flags=["contract"])
        return self.builder.fadd(product, c, flags=["contract"])

    def maximum(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def magnitude(self, a: Any) -> Any:
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

    def exp2(self, z: list[Any], rounder: list[Any], lowest: list[Any]) -> list[Any]:
        """2**(z + H) times a constant, for several vectors step by step.

        ``rounder`` is the rounding number plus the integer H, ``lowest`` the least exponent minus H. n + H with
        n = round(z) is then in the low bits of z + rounder; it is added to the exponent of the polynomial of r = z - n.
        """
        builder = self.builder
        coefficients = EXP2_FLOAT32[0] if self.bits == 32 else EXP2_FLOAT64[0]
        mantissa = self.integer(23 if self.bits == 32 else 52)
        z = [self.maximum(v, least) for v, least in zip(z, lowest)]
        sums = [builder.fadd(v, magic) for v, magic in zip(z, rounder)]
        whole = [builder.fsub(t, magic) for t, magic in zip(sums, rounder)]
        r = [builder.fsub(v, n) for v, n in zip(z, whole)]
        p = [self.constant(coefficients[-1])] * len(z)
        for coefficient in coefficients[-2::-1]:
            p = [self.multiply_add(v, w, self.constant(coefficient)) for v, w in zip(p, r)]
        exponents = [builder.shl(builder.bitcast(t, self.integers), mantissa) for t in sums]
        scaled = [builder.add(builder.bitcast(v, self.integers), e) for v, e in zip(p, exponents)]
        return [builder.bitcast(v, self.vector) for v in scaled]


def _pointers(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> list[Any]:
    """Array arguments as pointers to their first element, the others as they are."""
    return [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, values)
    ]


def _inlined(function: Callable) -> Callable:
    """Make ``function(vectors, builder, *pointers and numbers)`` callable from compiled code.

    The first argument's type is the type computed in. Arrays are C-contiguous; numbers are int64.
    """

    def typed(typing_context, *arguments):
        def generate(context, builder, signature, values):
            vectors = _Vectors(context, builder, signature.args[0].dtype)
            function(vectors, builder, *_pointers(context, builder, signature, values))
            return context.get_dummy_value()

        return types.void(*(types.int64 if isinstance(a, types.Integer) else a for a in arguments)), generate

    names = ["typing_context", *list(inspect.signature(function).parameters)[2:]]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    typed.__name__, typed.__doc__ = function.__name__, function.__doc__
    return intrinsic(typed)


def _tile_of(step: Callable) -> Callable:
    """Sums over the features of ROWS rows times one panel, ``step(vectors, x, p, sum)`` being one feature's part."""

    def tile(vectors, builder, values, offsets, offsets_at, panels, panel_at, base, base_at, n_features, S):
        offsets = builder.gep(offsets, [offsets_at])
        rows = [builder.gep(values, [builder.load(builder.gep(offsets, [_int(r)]))]) for r in range(ROWS)]
        panel, start = builder.gep(panels, [panel_at]), builder.gep(base, [base_at])
        starts = [vectors.load(start, _int(v * vectors.lanes)) for v in range(VECTORS)]
        sums = [[cgutils.alloca_once(builder, vectors.vector) for _ in range(VECTORS)] for _ in range(ROWS)]
        for row in sums:
            for place, first in zip(row, starts):
                builder.store(first, place)

        def add_feature(c):
            feature = builder.gep(panel, [builder.mul(c, _int(vectors.panel))])
            p = [vectors.load(feature, _int(v * vectors.lanes)) for v in range(VECTORS)]
            for row, row_sums in zip(rows, sums):
                x = vectors.splat(row, c)
                for v, place in enumerate(row_sums):
                    builder.store(step(vectors, x, p[v], builder.load(place)), place)

        with cgutils.for_range(builder, builder.udiv(n_features, _int(2)), intp=_INT64) as loop:
            first = builder.mul(loop.index, _int(2))
            add_feature(first)
            add_feature(builder.add(first, _int(1)))
        with builder.if_then(builder.trunc(n_features, ir.IntType(1))):
            add_feature(builder.sub(n_features, _int(1)))
        for r, row_sums in enumerate(sums):
            for v, place in enumerate(row_sums):
                vectors.store(builder.load(place), S, _int(r * vectors.panel + v * vectors.lanes))

    return tile


def _inner(vectors, x, p, total):
    return vectors.multiply_add(x, p, total)


def _manhattan(vectors, x, p, total):
    return vectors.builder.fsub(total, vectors.magnitude(vectors.builder.fsub(x, p)))


def _shared(vectors, x, p, total):
    """|x| + |p| - |x - p|, which is 0 where either is: what a feature that both sides have takes off the distance."""
    builder = vectors.builder
    apart = vectors.magnitude(builder.fsub(x, p))
    return builder.fadd(total, builder.fsub(builder.fadd(vectors.magnitude(x), vectors.magnitude(p)), apart))


def _csr_row_of(step: Callable) -> Callable:
    """The same for one CSR row, its entries begin, …, end - 1; S from ``S_at`` on."""

    def row(vectors, builder, values, indices, begin, end, panels, panel_at, base, base_at, S, S_at):
        panel, start = builder.gep(panels, [panel_at]), builder.gep(base, [base_at])
        sums = [cgutils.alloca_once(builder, vectors.vector) for _ in range(VECTORS)]
        for v, place in enumerate(sums):
            builder.store(vectors.load(start, _int(v * vectors.lanes)), place)
        with cgutils.for_range(builder, builder.sub(end, begin), intp=_INT64) as loop:
            t = builder.add(begin, loop.index)
            column = builder.sext(builder.load(builder.gep(indices, [t])), _INT64)
            feature = builder.gep(panel, [builder.mul(column, _int(vectors.panel))])
            x = vectors.splat(values, t)
            for v, place in enumerate(sums):
                p = vectors.load(feature, _int(v * vectors.lanes))
                builder.store(step(vectors, x, p, builder.load(place)), place)
        target = builder.gep(S, [S_at])
        for v, place in enumerate(sums):
            vectors.store(builder.load(place), target, _int(v * vectors.lanes))

    return row


def _row_of(step: Callable) -> Callable:
    """The same for one dense row, its numbers from ``begin`` on; S from ``S_at`` on."""

    def row(vectors, builder, values, begin, n_features, panels, panel_at, base, base_at, S, S_at):
        panel, start, x = builder.gep(panels, [panel_at]), builder.gep(base, [base_at]), builder.gep(values, [begin])
        sums = [cgutils.alloca_once(builder, vectors.vector) for _ in range(VECTORS)]
        for v, place in enumerate(sums):
            builder.store(vectors.load(start, _int(v * vectors.lanes)), place)
        with cgutils.for_range(builder, n_features, intp=_INT64) as loop:
            feature = builder.gep(panel, [builder.mul(loop.index, _int(vectors.panel))])
            number = vectors.splat(x, loop.index)
            for v, place in enumerate(sums):
                p = vectors.load(feature, _int(v * vectors.lanes))
                builder.store(step(vectors, number, p, builder.load(place)), place)
        target = builder.gep(S, [S_at])
        for v, place in enumerate(sums):
            vectors.store(builder.load(place), target, _int(v * vectors.lanes))

    return row


def _exp2_panel(vectors, builder, S, S_at, half, half_at):
    """S = min(1, exp2(S + half[half_at])) for the numbers of one panel."""
    _, magic, lowest = EXP2_FLOAT32 if vectors.bits == 32 else EXP2_FLOAT64
    target, added = builder.gep(S, [S_at]), vectors.splat(half, half_at)
    z = [builder.fadd(vectors.load(target, _int(v * vectors.lanes)), added) for v in range(VECTORS)]
    values = vectors.exp2(z, [vectors.constant(magic)] * VECTORS, [vectors.constant(lowest)] * VECTORS)
    scale = vectors.constant(1.0 / EXP2_SCALE_FLOAT32 if vectors.bits == 32 else 1.0)
    one = vectors.constant(1.0)
    for v, value in enumerate(values):
        value = builder.fmul(value, scale)
        value = builder.select(builder.fcmp_ordered("<", value, one), value, one)
        vectors.store(value, target, _int(v * vectors.lanes))


def _exp2_rows(vectors, builder, S, S_at, stride, rounders, lowest, row):
    """Two of the rows ``row``, ``row`` + 1, … at a time: r and the values exp2(S[r]); see `_Vectors.exp2`."""
    rounders, lowest = builder.gep(rounders, [row]), builder.gep(lowest, [row])
    with cgutils.for_range(builder, _int(ROWS // 2), intp=_INT64) as loop:
        z, magic, least = [], [], []
        numbers = [builder.mul(loop.index, _int(2))]
        numbers.append(builder.add(numbers[0], _int(1)))
        for r in numbers:
            start = builder.gep(S, [builder.add(S_at, builder.mul(r, stride))])
            z += [vectors.load(start, _int(v * vectors.lanes)) for v in range(VECTORS)]
            magic += [vectors.splat(rounders, r)] * VECTORS
            least += [vectors.splat(lowest, r)] * VECTORS
        values = vectors.exp2(z, magic, least)
        yield from ((r, values[i * VECTORS : (i + 1) * VECTORS]) for i, r in enumerate(numbers))


def _exp2_tile(vectors, builder, S, S_at, stride, rounders, lowest, row):
    """S[r] = exp2(S[r]) for the rows of a tile, which start at ``S_at`` and are ``stride`` apart."""
    for r, values in _exp2_rows(vectors, builder, S, S_at, stride, rounders, lowest, row):
        start = builder.gep(S, [builder.add(S_at, builder.mul(r, stride))])
        for v, value in enumerate(values):
            vectors.store(value, start, _int(v * vectors.lanes))


def _exp2_sum_tile(vectors, builder, S, S_at, stride, rounders, lowest, row, weights, weights_at, sums, sums_at):
    """sums[r] += exp2(S[r]) * weights for the rows of a tile; a row's sum is a vector, whose lanes are added later."""
    place, sums = builder.gep(weights, [weights_at]), builder.gep(sums, [sums_at])
    weight = [vectors.load(place, _int(v * vectors.lanes)) for v in range(VECTORS)]
    for r, values in _exp2_rows(vectors, builder, S, S_at, stride, rounders, lowest, row):
        at = builder.mul(r, _int(vectors.lanes))
        total = vectors.load(sums, at)
        for value, w in zip(values, weight):
            total = vectors.multiply_add(value, w, total)
        vectors.store(total, sums, at)


def _exp2_store_tile(vectors, builder, S, S_at, stride, half, chosen, row, flat, place, line):
    """flat[place + r line] = min(1, exp2(S[r] + half[chosen[row + r]])) for the rows r of a tile, ``line`` apart."""
    _, magic, lowest = EXP2_FLOAT32 if vectors.bits == 32 else EXP2_FLOAT64
    S, chosen = builder.gep(S, [S_at]), builder.gep(chosen, [row])
    magics, least = [vectors.constant(magic)] * (2 * VECTORS), [vectors.constant(lowest)] * (2 * VECTORS)
    scale = vectors.constant(1.0 / EXP2_SCALE_FLOAT32 if vectors.bits == 32 else 1.0)
    one = vectors.constant(1.0)
    with cgutils.for_range(builder, _int(ROWS // 2), intp=_INT64) as loop:
        z, targets = [], []
        first = builder.mul(loop.index, _int(2))
        for r in (first, builder.add(first, _int(1))):
            added = vectors.splat(half, builder.load(builder.gep(chosen, [r])))
            start, target = builder.mul(r, stride), builder.add(place, builder.mul(r, line))
            for v in range(VECTORS):
                z.append(builder.fadd(vectors.load(S, builder.add(start, _int(v * vectors.lanes))), added))
                targets.append(builder.add(target, _int(v * vectors.lanes)))
        for value, target in zip(vectors.exp2(z, magics, least), targets):
            value = builder.fmul(value, scale)
            vectors.store(builder.select(builder.fcmp_ordered("<", value, one), value, one), flat, target)


def _sum_tile(vectors, builder, S, S_at, stride, weights, weights_at, sums, sums_at):
    """sums[r] += S[r] * weights for the rows of a tile; sums from ``sums_at`` on."""
    S = builder.gep(S, [S_at])
    place, start = builder.gep(weights, [weights_at]), builder.gep(sums, [sums_at])
    weight = [vectors.load(place, _int(v * vectors.lanes)) for v in range(VECTORS)]
    with cgutils.for_range(builder, _int(ROWS), intp=_INT64) as loop:
        row = builder.gep(S, [builder.mul(loop.index, stride)])
        at = builder.mul(loop.index, _int(vectors.lanes))
        total = vectors.load(start, at)
        for v, w in enumerate(weight):
            total = vectors.multiply_add(vectors.load(row, _int(v * vectors.lanes)), w, total)
        vectors.store(total, start, at)


def _flush_tile(vectors, builder, sums, sums_at, totals, totals_at, stride):
    """totals[r] += the lanes of sums[r] in float64, for the rows of a tile (``stride`` apart in totals); sums = 0."""
    start, target = builder.gep(sums, [sums_at]), builder.gep(totals, [totals_at])
    with cgutils.for_range(builder, _int(ROWS), intp=_INT64) as loop:
        at = builder.mul(loop.index, _int(vectors.lanes))
        value = vectors.load(start, at)
        vectors.store(vectors.constant(0.0), start, at)
        if vectors.bits == 32:
            value = builder.fpext(value, ir.VectorType(ir.DoubleType(), vectors.lanes))
        number = vectors.total(value)
        place = builder.gep(target, [builder.mul(loop.index, stride)])
        builder.store(builder.fadd(builder.load(place), number), place)


def _splat_of(builder: ir.IRBuilder, number: Any, lanes: int) -> Any:
    kind = ir.VectorType(number.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)


inner_tile, manhattan_tile = _inlined(_tile_of(_inner)), _inlined(_tile_of(_manhattan))
csr_inner_row, csr_shared_row = _inlined(_csr_row_of(_inner)), _inlined(_csr_row_of(_shared))
inner_row, manhattan_row = _inlined(_row_of(_inner)), _inlined(_row_of(_manhattan))
exp2_panel = _inlined(_exp2_panel)
exp2_tile, exp2_sum_tile = _inlined(_exp2_tile), _inlined(_exp2_sum_tile)
exp2_store_tile = _inlined(_exp2_store_tile)
sum_tile, flush_tile = _inlined(_sum_tile), _inlined(_flush_tile)
