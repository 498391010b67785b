"""Vector code that LLVM would not write by itself: register tiles of inner products, exp2 in lockstep.

A tile is ROWS rows times a panel of points (VECTORS vectors wide): its sums stay in registers while the features go by.
Left to itself LLVM keeps them in memory, at a third of the speed. Each function here is inlined where compiled code
calls it; the last lines of the file name them.

Values are stored where they are summed, vectors of a panel side by side. Eight vectors go through exp2 step by step:
one alone waits for its own results, and reordering in the processor is not deep enough to fill the gaps.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba.core import cgutils

from slimsvm.numerics.vectors import EXP2_FLOAT32, EXP2_FLOAT64, EXP2_SCALE_FLOAT32, INT64, VECTORS, inlined, int64

ROWS = 6


def _tile_of(step: Callable, width: int = VECTORS) -> Callable:
    """Sums over the features of ROWS rows times one panel, ``step(vectors, x, p, sum)`` being one feature's part.

    Of the panel's vectors only the first ``width``: the same instructions for them, and so the same bits.
    """

    def tile(vectors, builder, values, offsets, offsets_at, panels, panel_at, base, base_at, n_features, S):
        offsets = builder.gep(offsets, [offsets_at])
        rows = [builder.gep(values, [builder.load(builder.gep(offsets, [int64(r)]))]) for r in range(ROWS)]
        panel, start = builder.gep(panels, [panel_at]), builder.gep(base, [base_at])
        starts = [vectors.load(start, int64(v * vectors.lanes)) for v in range(width)]
        sums = [[cgutils.alloca_once(builder, vectors.vector) for _ in range(width)] for _ in range(ROWS)]
        for row in sums:
            for place, first in zip(row, starts):
                builder.store(first, place)

        def add_feature(c):
            feature = builder.gep(panel, [builder.mul(c, int64(vectors.panel))])
            p = [vectors.load(feature, int64(v * vectors.lanes)) for v in range(width)]
            for row, row_sums in zip(rows, sums):
                x = vectors.splat(row, c)
                for v, place in enumerate(row_sums):
                    builder.store(step(vectors, x, p[v], builder.load(place)), place)

        with cgutils.for_range(builder, builder.udiv(n_features, int64(2)), intp=INT64) as loop:
            first = builder.mul(loop.index, int64(2))
            add_feature(first)
            add_feature(builder.add(first, int64(1)))
        with builder.if_then(builder.trunc(n_features, ir.IntType(1))):
            add_feature(builder.sub(n_features, int64(1)))
        for r, row_sums in enumerate(sums):
            for v, place in enumerate(row_sums):
                vectors.store(builder.load(place), S, int64(r * vectors.panel + v * vectors.lanes))

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
            builder.store(vectors.load(start, int64(v * vectors.lanes)), place)
        with cgutils.for_range(builder, builder.sub(end, begin), intp=INT64) as loop:
            t = builder.add(begin, loop.index)
            column = builder.sext(builder.load(builder.gep(indices, [t])), INT64)
            feature = builder.gep(panel, [builder.mul(column, int64(vectors.panel))])
            x = vectors.splat(values, t)
            for v, place in enumerate(sums):
                p = vectors.load(feature, int64(v * vectors.lanes))
                builder.store(step(vectors, x, p, builder.load(place)), place)
        target = builder.gep(S, [S_at])
        for v, place in enumerate(sums):
            vectors.store(builder.load(place), target, int64(v * vectors.lanes))

    return row


def _row_of(step: Callable) -> Callable:
    """The same for one dense row, its numbers from ``begin`` on; S from ``S_at`` on."""

    def row(vectors, builder, values, begin, n_features, panels, panel_at, base, base_at, S, S_at):
        panel, start, x = builder.gep(panels, [panel_at]), builder.gep(base, [base_at]), builder.gep(values, [begin])
        sums = [cgutils.alloca_once(builder, vectors.vector) for _ in range(VECTORS)]
        for v, place in enumerate(sums):
            builder.store(vectors.load(start, int64(v * vectors.lanes)), place)
        with cgutils.for_range(builder, n_features, intp=INT64) as loop:
            feature = builder.gep(panel, [builder.mul(loop.index, int64(vectors.panel))])
            number = vectors.splat(x, loop.index)
            for v, place in enumerate(sums):
                p = vectors.load(feature, int64(v * vectors.lanes))
                builder.store(step(vectors, number, p, builder.load(place)), place)
        target = builder.gep(S, [S_at])
        for v, place in enumerate(sums):
            vectors.store(builder.load(place), target, int64(v * vectors.lanes))

    return row


def _exp2_panel(vectors, builder, S, S_at, half, half_at):
    """S = min(1, exp2(S + half[half_at])) for the numbers of one panel."""
    _, magic, lowest = EXP2_FLOAT32 if vectors.bits == 32 else EXP2_FLOAT64
    target, added = builder.gep(S, [S_at]), vectors.splat(half, half_at)
    z = [builder.fadd(vectors.load(target, int64(v * vectors.lanes)), added) for v in range(VECTORS)]
    values = vectors.exp2(z, [vectors.constant(magic)] * VECTORS, [vectors.constant(lowest)] * VECTORS)
    scale = vectors.constant(1.0 / EXP2_SCALE_FLOAT32 if vectors.bits == 32 else 1.0)
    one = vectors.constant(1.0)
    for v, value in enumerate(values):
        value = builder.fmul(value, scale)
        value = builder.select(builder.fcmp_ordered("<", value, one), value, one)
        vectors.store(value, target, int64(v * vectors.lanes))


def _exp2_rows(vectors, builder, S, S_at, stride, rounders=None, lowest=None, row=None):
    """Two of the rows ``row``, ``row`` + 1, … at a time: r and the values exp2(S[r]); see `Vectors.exp2`."""
    is_near = rounders is None
    rounders, lowest = (None, None) if is_near else (builder.gep(rounders, [row]), builder.gep(lowest, [row]))
    with cgutils.for_range(builder, int64(ROWS // 2), intp=INT64) as loop:
        z, magic, least = [], [], []
        numbers = [builder.mul(loop.index, int64(2))]
        numbers.append(builder.add(numbers[0], int64(1)))
        for r in numbers:
            start = builder.gep(S, [builder.add(S_at, builder.mul(r, stride))])
            z += [vectors.load(start, int64(v * vectors.lanes)) for v in range(VECTORS)]
            if not is_near:
                magic += [vectors.splat(rounders, r)] * VECTORS
                least += [vectors.splat(lowest, r)] * VECTORS
        values = vectors.exp2(z, magic or None, least or None)
        yield from ((r, values[i * VECTORS : (i + 1) * VECTORS]) for i, r in enumerate(numbers))


def _exp2_tile(vectors, builder, S, S_at, stride, rounders, lowest, row):
    """S[r] = exp2(S[r]) for the rows of a tile, which start at ``S_at`` and are ``stride`` apart."""
    for r, values in _exp2_rows(vectors, builder, S, S_at, stride, rounders, lowest, row):
        start = builder.gep(S, [builder.add(S_at, builder.mul(r, stride))])
        for v, value in enumerate(values):
            vectors.store(value, start, int64(v * vectors.lanes))


def _exp2_sum_tile(vectors, builder, S, S_at, stride, rounders, lowest, row, weights, weights_at, sums, sums_at):
    """sums[r] += exp2(S[r]) * weights for the rows of a tile; a row's sum is a vector, whose lanes are added later."""
    rows = _exp2_rows(vectors, builder, S, S_at, stride, rounders, lowest, row)
    _add_weighted(vectors, builder, rows, weights, weights_at, sums, sums_at)


def _near_sum_tile(vectors, builder, S, weights, weights_at, sums, sums_at):
    """The same without H and without a least exponent; the rows of S are a panel apart."""
    rows = _exp2_rows(vectors, builder, S, int64(0), int64(vectors.panel))
    _add_weighted(vectors, builder, rows, weights, weights_at, sums, sums_at)


def _add_weighted(vectors, builder, rows, weights, weights_at, sums, sums_at):
    place, sums = builder.gep(weights, [weights_at]), builder.gep(sums, [sums_at])
    weight = [vectors.load(place, int64(v * vectors.lanes)) for v in range(VECTORS)]
    for r, values in rows:
        at = builder.mul(r, int64(vectors.lanes))
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
    with cgutils.for_range(builder, int64(ROWS // 2), intp=INT64) as loop:
        z, targets = [], []
        first = builder.mul(loop.index, int64(2))
        for r in (first, builder.add(first, int64(1))):
            added = vectors.splat(half, builder.load(builder.gep(chosen, [r])))
            start, target = builder.mul(r, stride), builder.add(place, builder.mul(r, line))
            for v in range(VECTORS):
                z.append(builder.fadd(vectors.load(S, builder.add(start, int64(v * vectors.lanes))), added))
                targets.append(builder.add(target, int64(v * vectors.lanes)))
        for value, target in zip(vectors.exp2(z, magics, least), targets):
            value = builder.fmul(value, scale)
            vectors.store(builder.select(builder.fcmp_ordered("<", value, one), value, one), flat, target)


def _sum_tile(vectors, builder, S, S_at, stride, weights, weights_at, sums, sums_at):
    """sums[r] += S[r] * weights for the rows of a tile; sums from ``sums_at`` on."""
    S = builder.gep(S, [S_at])
    place, start = builder.gep(weights, [weights_at]), builder.gep(sums, [sums_at])
    weight = [vectors.load(place, int64(v * vectors.lanes)) for v in range(VECTORS)]
    with cgutils.for_range(builder, int64(ROWS), intp=INT64) as loop:
        row = builder.gep(S, [builder.mul(loop.index, stride)])
        at = builder.mul(loop.index, int64(vectors.lanes))
        total = vectors.load(start, at)
        for v, w in enumerate(weight):
            total = vectors.multiply_add(vectors.load(row, int64(v * vectors.lanes)), w, total)
        vectors.store(total, start, at)


def _flush_tile(vectors, builder, sums, sums_at, totals, totals_at, stride):
    """totals[r] += the lanes of sums[r] in float64, for the rows of a tile (``stride`` apart in totals); sums = 0."""
    start, target = builder.gep(sums, [sums_at]), builder.gep(totals, [totals_at])
    with cgutils.for_range(builder, int64(ROWS), intp=INT64) as loop:
        at = builder.mul(loop.index, int64(vectors.lanes))
        value = vectors.load(start, at)
        vectors.store(vectors.constant(0.0), start, at)
        if vectors.bits == 32:
            value = builder.fpext(value, ir.VectorType(ir.DoubleType(), vectors.lanes))
        number = vectors.total(value)
        place = builder.gep(target, [builder.mul(loop.index, stride)])
        builder.store(builder.fadd(builder.load(place), number), place)


inner_tile, manhattan_tile = inlined(_tile_of(_inner)), inlined(_tile_of(_manhattan))
narrow_inner_tile = inlined(_tile_of(_inner, 1))
csr_inner_row, csr_shared_row = inlined(_csr_row_of(_inner)), inlined(_csr_row_of(_shared))
inner_row, manhattan_row = inlined(_row_of(_inner)), inlined(_row_of(_manhattan))
exp2_panel = inlined(_exp2_panel)
exp2_tile, exp2_sum_tile = inlined(_exp2_tile), inlined(_exp2_sum_tile)
near_sum_tile = inlined(_near_sum_tile)
exp2_store_tile = inlined(_exp2_store_tile)
sum_tile, flush_tile = inlined(_sum_tile), inlined(_flush_tile)
