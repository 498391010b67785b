"""Gradients of loss and norm in basis vectors, coefficients and feature scales, tile by tile.

Everything is in folded coordinates (`kernels.folding`), basis vectors feature after feature, (d, k). With r_ic the
gradient of the loss in the score f_ic and W_ij = k'(x_i, b_j) Σ_c r_ic β_jc, where k' is the kernel's derivative in the
inner product (ln 2 · k for RBF, the ln 2 left for the end):

    ∂/∂β_jc = Σ_i r_ic k(x_i, b_j)        ∂/∂b_j = Σ_i W_ij x_i − [RBF] b_j Σ_i W_ij
    [RBF] ∂/∂ log scale_c = −Σ_ij W_ij (x_ic − b_jc)²

The norm ½ Σ_c β_cᵀ K_BB β_c has the same form: its rows are the basis vectors, with r_jc = β_jc (half of it for the
scales, which move both sides at once). A batch is cut into groups of rows, the same for any number of threads, whose
sums are added up in their order by `numerics.descent`.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.copying import copy_rows
from slimsvm.numerics.maps import EXP2, IDENTITY, POWER, SUMS, TANH, map_tile
from slimsvm.numerics.sequence_tiles import count_sequences, edge, sequence_loss_tile, tile_end

DENSE, CSR = range(2)  # forms of rows
# Losses known here; of any other r is given. SCORES asks for the scores alone.
BINARY, MULTICLASS, REGRESSION, GIVEN, SCORES, SEQUENCES = range(6)

# What is learned: basis (d, k), coef (k, m), intercept (m,), log_scale (d,), plain (p,), parts of one vector ``flat``.
# What follows from it: scale (d,) = exp(log_scale), points (d, k) = basis · scale, half (k,).
Parameters = namedtuple(
    "Parameters", ["flat", "basis", "coef", "intercept", "log_scale", "plain", "scale", "points", "half"]
)
# The kernel's map (code, degree, shift, whether there are norms), the form of the rows, row scale / point scale of each
# feature, whether feature scales are learned, the intercept: 0 none, 1 regularised, 2 free; and the width of the noise
# that is added to each feature of dense rows (d,), or none.
Kind = namedtuple("Kind", ["code", "degree", "shift", "norms", "form", "ratio", "metric", "intercept", "noise"])
# code; of every row a target (label or value) and a weight (or none: all 1); cost: the margins asked of the classes −1
# and +1, the matrix of costs, flat, (ε,), or (a chain's loss, sequences per row); given: r, or a place for the scores,
# of every row of the batch; ends: see `numerics.sequence_tiles`.
Loss = namedtuple("Loss", ["code", "target", "weight", "cost", "given", "ends"])
# Sums of every group, the last one being the norm's; stats: (loss, wrong rows).
Sums = namedtuple("Sums", ["basis", "coef", "weight", "intercept", "scale", "plain", "stats"])
# For every group: kernel values of a tile, their derivatives, the rows themselves with norms and numbers, scores, r.
Scratch = namedtuple("Scratch", ["K", "D", "tile", "half", "chosen", "scores", "r"])

# Of the hash that noise comes from.
GOLDEN, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
ROW_STRIDE = np.uint64(1 << 40)  # more than there are rows


@njit(nogil=True)
def gather(rows, index, first, n, form, scratch):
    """Numbers, norms and (dense) values of the n rows index[first], index[first + 1], …"""
    chosen, tile, half, d = scratch.chosen, scratch.tile, scratch.half, rows.n_features
    for i in range(n):
        row = index[first + i]
        chosen[i] = row
        half[i] = rows.half[row]
        if form == DENSE:
            for c in range(d):
                tile[i, c] = rows.values[row * d + c]


@njit(nogil=True)
def add_noise(n, step, kind, scratch):
    """Add to every feature of n rows a number from [−½, ½) times its noise, and follow with the norms.

    The number is a hash (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014) of row, feature
    and step: the same for any number of threads, and in the scores and the gradient of one step.
    """
    tile, half, noise = scratch.tile, scratch.half, kind.noise
    dtype, d = tile.dtype.type, noise.size
    for i in range(n):
        start = (np.uint64(scratch.chosen[i]) + np.uint64(step) * ROW_STRIDE) * np.uint64(d)
        total = dtype(0)
        for c in range(d):
            z = (start + np.uint64(c) + np.uint64(1)) * GOLDEN
            z = (z ^ (z >> np.uint64(30))) * MIX_1
            z = (z ^ (z >> np.uint64(27))) * MIX_2
            z = z ^ (z >> np.uint64(31))
            value = tile[i, c] + noise[c] * (dtype(z >> np.uint64(40)) * dtype(2.0**-24) - dtype(0.5))
            tile[i, c] = value
            total += value * value
        half[i] = dtype(-0.5) * total if kind.norms else dtype(0)


@njit(nogil=True, fastmath=SUMS)
def sparse_products(rows, chosen, points, out):
    """out[i, j] = inner product of the CSR row chosen[i] and point j."""
    out[:] = 0
    for i in range(out.shape[0]):
        for t in range(rows.indptr[chosen[i]], rows.indptr[chosen[i] + 1]):
            x, c = rows.values[t], np.int64(rows.indices[t])
            for j in range(out.shape[1]):
                out[i, j] += x * points[c, j]


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def kernel_tile(rows, is_sparse, n, scratch, parameters, kind):
    """K = kernel values of n rows and all points; D = their derivative in the inner product (not for RBF)."""
    points, half, K, D = parameters.points, parameters.half, scratch.K[:n], scratch.D
    k = half.size
    if is_sparse:
        sparse_products(rows, scratch.chosen, points, K)
    else:
        np.dot(scratch.tile[:n], points, K)
    one = K.dtype.type(1)
    if kind.code == POWER:
        for i in range(n):
            for j in range(k):
                z, power = K[i, j] + half[j], one
                for _ in range(kind.degree - 1):
                    power *= z
                D[i, j] = kind.degree * power
    map_tile(K, scratch.half[:n], half, kind.code, kind.degree)
    if kind.code == TANH:
        for i in range(n):
            for j in range(k):
                D[i, j] = one - K[i, j] * K[i, j]
    elif kind.code == IDENTITY:
        D[:n] = one


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def score_tile(n, coef, intercept, scratch):
    """Set scores = K coef + intercept of n rows."""
    K, scores = scratch.K, scratch.scores
    k, m = coef.shape
    if m == 1:
        flat = coef.reshape(k)
        for i in range(n):
            total = intercept[0]
            for j in range(k):
                total += K[i, j] * flat[j]
            scores[i, 0] = total
    else:
        np.dot(K[:n], coef, scores[:n])
        for i in range(n):
            for c in range(m):
                scores[i, c] += intercept[c]


@njit(nogil=True, error_model="numpy")
def loss_tile(loss, n, position, scratch, active, stats):
    """Gradients r of the losses of n rows in their scores; the rows ``active`` where it is not 0, and how many.

    ``position`` is that of the first row in the batch. Weighted loss and weight of wrong predictions go to ``stats``.
    """
    chosen, scores, r, cost = scratch.chosen, scratch.scores, scratch.r, loss.cost
    m, count = scores.shape[1], 0
    for i in range(n):
        if loss.code == GIVEN:
            some = False
            for c in range(m):
                r[i, c] = loss.given[position + i, c]
                some |= r[i, c] != 0
            if some:
                active[count] = i
                count += 1
            continue
        target, weight = loss.target[chosen[i]], loss.weight[chosen[i]] if loss.weight.size else 1.0
        if loss.code == MULTICLASS:
            label = int(target)
            best, top, value, highest = 0, 0, -np.inf, -np.inf
            for c in range(m):
                r[i, c] = 0
                candidate = cost[label * m + c] + scores[i, c]
                if candidate > value:
                    best, value = c, candidate
                if scores[i, c] > highest:
                    top, highest = c, scores[i, c]
            value -= scores[i, label]
            lossy, wrong = best != label, top != label
            if lossy:
                r[i, best], r[i, label] = weight, -weight
        elif loss.code == BINARY:
            value = cost[1 if target > 0 else 0] - target * scores[i, 0]
            lossy, wrong = value > 0, (scores[i, 0] > 0) != (target > 0)
            r[i, 0] = -target * weight
        else:
            residual = target - scores[i, 0]
            value = abs(residual) - cost[0]
            lossy, wrong = value > 0, False
            r[i, 0] = -weight if residual > 0 else weight
        if lossy:
            stats[0] += weight * value
            active[count] = i
            count += 1
        if wrong:
            stats[1] += weight
    return count


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def close_ranks(active, n, share, kind, scratch):
    """Move the n active rows of a tile to its front: the others cost nothing from here on."""
    K, D, tile, scores, r, chosen = scratch.K, scratch.D, scratch.tile, scratch.scores, scratch.r, scratch.chosen
    for to in range(n):
        i = active[to]
        for c in range(r.shape[1]):
            r[to, c] = r[i, c] * share
        if to < i:
            for j in range(K.shape[1]):
                K[to, j] = K[i, j]
            if kind.code != EXP2:
                for j in range(K.shape[1]):
                    D[to, j] = D[i, j]
            for c in range(tile.shape[1]):
                tile[to, c] = tile[i, c]
            for c in range(r.shape[1]):
                scores[to, c] = scores[i, c]
            chosen[to] = chosen[i]


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def add_gradient(rows, is_sparse, is_first, n, parameters, kind, scratch, sums, group):
    """Add the gradient of the first n rows of a tile to a group's sums. Spoils the tile's kernel values."""
    K, D, r, coef = scratch.K, scratch.D, scratch.r, parameters.coef
    k, m = coef.shape
    G, weight, by_coef = sums.basis[group], sums.weight[group], sums.coef[group]
    rbf = kind.code == EXP2
    W = K if rbf else D
    if m == 1:  # β_j is the same for all rows: it comes in when the groups are added up
        flat = by_coef.reshape(k)
        for i in range(n):
            ri = r[i, 0]
            if rbf:
                for j in range(k):
                    w = ri * K[i, j]
                    flat[j] += w
                    K[i, j] = w
            else:
                for j in range(k):
                    flat[j] += ri * K[i, j]
                    D[i, j] *= ri
    else:
        by_coef += np.dot(K[:n].T, r[:n])
        V = np.dot(r[:n], coef.T)
        for i in range(n):
            for j in range(k):
                w = W[i, j] * V[i, j]
                W[i, j] = w
                weight[j] += w
    if is_sparse:
        if is_first:
            G[:] = 0
        for i in range(n):
            row = scratch.chosen[i]
            for t in range(rows.indptr[row], rows.indptr[row + 1]):
                x, c = rows.values[t], np.int64(rows.indices[t])
                for j in range(k):
                    G[c, j] += x * W[i, j]
    elif is_first:
        np.dot(scratch.tile[:n].T, W[:n], G)
    else:
        G += np.dot(scratch.tile[:n].T, W[:n])


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def add_scale(n, intercept, scratch, out):
    """out_c += Σ_i a_i x_ic² with a_i = Σ_j k(x_i, b_j) Σ_c r_ic β_jc = Σ_c r_ic (f_ic − intercept_c)."""
    tile, scores, r = scratch.tile, scratch.scores, scratch.r
    for i in range(n):
        a = r.dtype.type(0)
        for c in range(r.shape[1]):
            a += r[i, c] * (scores[i, c] - intercept[c])
        for c in range(tile.shape[1]):
            out[c] += a * tile[i, c] * tile[i, c]


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def scale_tile(n, scratch, scale):
    """Multiply the features of n rows and follow with the norms."""
    tile, half = scratch.tile, scratch.half
    for i in range(n):
        total = tile.dtype.type(0)
        for c in range(tile.shape[1]):
            value = tile[i, c] * scale[c]
            tile[i, c] = value
            total += value * value
        half[i] = tile.dtype.type(-0.5) * total


@njit(nogil=True)
def of_group(scratch, g):
    """The scratch arrays of one group."""
    K, D, tile, half = scratch.K[g], scratch.D[g], scratch.tile[g], scratch.half[g]
    return Scratch(K, D, tile, half, scratch.chosen[g], scratch.scores[g], scratch.r[g])


@njit(nogil=True)
def clear(sums, group):
    """Set a group's sums to zero, but for the basis's."""
    sums.coef[group] = 0
    sums.weight[group] = 0
    sums.intercept[group] = 0
    sums.scale[group] = 0
    sums.plain[group] = 0
    sums.stats[group] = 0


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def data_gradient(rows, index, bounds, share, step, loss, parameters, kind, tiles, sums, group):
    """Set a group's sums to those of the rows index[a:b], each counting ``share`` times its weight.

    ``bounds`` are a and b, and where the batch begins that they are a part of.
    """
    clear(sums, group)
    scratch, (first, last, batch) = of_group(tiles, group), bounds
    n_tile, m = scratch.scores.shape
    active, n_added, end = np.empty(n_tile, np.int64), 0, first
    while end < last:
        start, end = end, min(end + n_tile, last)
        if loss.code == SEQUENCES:
            end = tile_end(loss.ends, start, last, n_tile)
        n = end - start
        gather(rows, index, start, n, kind.form, scratch)
        if kind.noise.size:
            add_noise(n, step, kind, scratch)
        if kind.metric:
            scale_tile(n, scratch, parameters.scale)
        kernel_tile(rows, kind.form == CSR, n, scratch, parameters, kind)
        score_tile(n, parameters.coef, parameters.intercept, scratch)
        if loss.code == SCORES:
            copy_rows(scratch.scores[:n], loss.given[start - batch : start - batch + n])
            continue
        if loss.code == SEQUENCES:
            part = sums.plain[group]
            n = sequence_loss_tile(loss, start, n, share, parameters.plain, scratch, active, part, sums.stats[group])
        else:
            n = loss_tile(loss, n, start - batch, scratch, active, sums.stats[group])
        if n > 0:
            close_ranks(active, n, share, kind, scratch)
            for i in range(n):
                for c in range(m):
                    sums.intercept[group, c] += scratch.r[i, c]
            if kind.metric:
                add_scale(n, parameters.intercept, scratch, sums.scale[group])
            add_gradient(rows, kind.form == CSR, n_added == 0, n, parameters, kind, scratch, sums, group)
            n_added += n
    if n_added == 0:
        sums.basis[group] = 0


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def norm_gradient(rows, is_first, first, n, share, parameters, kind, scratch, sums, group):
    """Add to the norm's sums those of the n basis vectors first, first + 1, … (modulo k), each counting ``share``.

    The last group's stats gain (this share of the norm, 0).
    """
    if is_first:
        clear(sums, group)
    coef = parameters.coef
    (d, k), m = parameters.points.shape, coef.shape[1]
    for i in range(n):
        j = (first + i) % k
        for c in range(d):
            scratch.tile[i, c] = parameters.points[c, j] * kind.ratio[c]
        scratch.half[i] = parameters.half[j] if kind.norms else 0
        for c in range(m):
            scratch.r[i, c] = coef[j, c] * share
    no = np.bool_(False)  # for a literal Numba would compile both functions once more
    kernel_tile(rows, no, n, scratch, parameters, kind)
    none = np.zeros(m, coef.dtype)
    score_tile(n, coef, none, scratch)
    total = 0.0
    for i in range(n):
        for c in range(m):
            total += scratch.r[i, c] * scratch.scores[i, c]
    sums.stats[group, 0] += 0.5 * total
    if kind.metric:
        add_scale(n, none, scratch, sums.scale[group])
    add_gradient(rows, no, is_first, n, parameters, kind, scratch, sums, group)


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def group_gradient(rows, index, first, last, step, C1, loss, parameters, kind, tiles, norm_tile, sums, group):
    """Set the sums of one group for the batch index[first:last]; the last group is the norm's."""
    n_groups, n_tile = sums.coef.shape[0] - 1, tiles.chosen.shape[1]
    if group < n_groups:
        n_tiles = -(-(last - first) // n_tile)
        a = min(last, first + n_tiles * group // n_groups * n_tile)
        b = min(last, first + n_tiles * (group + 1) // n_groups * n_tile)
        share = 1.0 if loss.code == GIVEN else 1.0 / (last - first)
        if loss.code == SEQUENCES:
            a = edge(loss.ends, first, first + (last - first) * group // n_groups)
            b = edge(loss.ends, first, first + (last - first) * (group + 1) // n_groups)
            share = 1.0 / count_sequences(loss.ends, first, last)
        data_gradient(rows, index, (a, b, first), share, step, loss, parameters, kind, tiles, sums, group)
    else:
        n_tiles, n, k = norm_tile.scores.shape[0], norm_tile.scores.shape[1], parameters.coef.shape[0]
        for t in range(n_tiles):
            at, scratch, is_first = (step * n_tiles + t) * n % k, of_group(norm_tile, t), np.bool_(t == 0)
            share = k / (n_tiles * n * C1)
            norm_gradient(rows, is_first, at, n, share, parameters, kind, scratch, sums, group)
