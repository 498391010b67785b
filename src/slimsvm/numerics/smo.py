"""Sequential minimal optimisation inside a block of rows, and what its steps do to the other rows.

The block's problem: maximise D(v) = Σ t_i v_i − ε Σ |v_i| − ½ v'Kv over lo ≤ v ≤ hi, with Σ v_i kept as it is (`pairs`:
a free intercept) or not (`box`). g = t − Kv. Because of |v_i| the derivative upwards and the one downwards differ where
v_i = 0: they are g_i + rise_i and g_i + fall_i, with rise = −ε or ε, and ∓BIG where v_i cannot move that way.

K is given as lines of an array: line slots[i] holds row i, offset is to be added to it. Searches keep the best of LANES
interleaved parts, which compiles to SIMD where one maximum does not, and then go through the best part.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit

ROWS_PER_TILE = 1024
LINES_PER_TILE = 16
GROUP = 16  # rows of the cache added up in its own type before they go into float64
BIG = 1e100
LANES = 64
# What lets a loop with a maximum be compiled to SIMD; sums are not reordered.
LOOSE = {"nnan", "nsz", "contract"}
TINY = 1e-12  # curvature of a direction that has none (LIBSVM's τ)


@njit(cache=True, nogil=True)
def gather(cache, slots, places, out, lo, hi):
    """out[a, b] = cache[slots[a], places[b]] for the lines lo to hi."""
    for a in range(lo, hi):
        line = cache[slots[a]]
        for b in range(places.size):
            out[a, b] = line[places[b]]


@njit(cache=True, nogil=True)
def put_lines(block, slots, first, cache, lo, hi):
    """cache[slots[a], first + r] = block[r, a] for the tiles lo to hi of LINES_PER_TILE lines each."""
    for tile in range(lo, hi):
        start, end = tile * LINES_PER_TILE, min(slots.size, (tile + 1) * LINES_PER_TILE)
        for r in range(block.shape[0]):
            for a in range(start, end):
                cache[slots[a], first + r] = block[r, a]


@njit(cache=True, nogil=True)
def add_rows(cache, slots, change, constant, g, lo, hi):
    """g[i] −= Σ_a change[a] (cache[slots[a], i]) + constant over the tiles lo to hi of g."""
    total = np.empty(ROWS_PER_TILE, cache.dtype)
    for tile in range(lo, hi):
        start = tile * ROWS_PER_TILE
        size = min(ROWS_PER_TILE, g.size - start)
        part = g[start : start + size]
        for i in range(size):
            part[i] -= constant
        for first in range(0, slots.size, GROUP):
            total[:] = 0
            for a in range(first, min(first + GROUP, slots.size)):
                line, factor = cache[slots[a], start : start + size], change[a]
                for i in range(size):
                    total[i] += factor * line[i]
            for i in range(size):
                part[i] -= total[i]


@njit(cache=True, nogil=True)
def keep_columns(cache, slots, valid, keep, lo, hi):
    """Close the gaps: column keep[b] becomes column b, in the lines at slots lo to hi, as far as they are valid."""
    for a in range(lo, hi):
        line, end = cache[slots[a]], valid[a]
        for b in range(keep.size):
            if keep[b] >= end:
                break
            line[b] = line[keep[b]]


@njit(nogil=True)
def rooms(v, lo, hi, epsilon, rise, fall, i):
    """Set rise[i] and fall[i] for v[i]."""
    if v[i] >= hi[i]:
        rise[i] = -BIG
    else:
        rise[i] = -epsilon if v[i] >= 0 else epsilon
    if v[i] <= lo[i]:
        fall[i] = BIG
    else:
        fall[i] = epsilon if v[i] <= 0 else -epsilon


@njit(nogil=True)
def up_room(v, hi):
    """How far v can rise before its bound or the kink at 0."""
    return hi - v if v >= 0 else -v


@njit(nogil=True)
def down_room(v, lo):
    """How far v can fall before its bound or the kink at 0."""
    return v - lo if v <= 0 else v


@njit(cache=True, nogil=True)
def moved(v, step, lo, hi):
    """Return v + step, put exactly on a bound or on 0 that it has reached but for rounding."""
    new = v + step
    if new >= hi or hi - new < 1e-14 * hi:
        return hi
    if new <= lo or new - lo < -1e-14 * lo:
        return lo
    if v * new < 0 or abs(new) <= 1e-15 * abs(step):
        return 0.0
    return new


@njit(cache=True, nogil=True, fastmath=LOOSE)
def descend(a, line_a, b, line_b, constant, g, rise, fall, peaks, dips):
    """Subtract a·line_a + b·line_b + constant from g; every lane's largest derivative up, smallest down."""
    peaks[:], dips[:] = -BIG, BIG
    whole = g.size // LANES * LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            k = start + lane
            value = g[k] - (a * line_a[k] + b * line_b[k] + constant)
            g[k] = value
            up, down = value + rise[k], value + fall[k]
            peaks[lane] = up if up > peaks[lane] else peaks[lane]
            dips[lane] = down if down < dips[lane] else dips[lane]
    for k in range(whole, g.size):
        g[k] -= a * line_a[k] + b * line_b[k] + constant
        peaks[k - whole] = max(peaks[k - whole], g[k] + rise[k])
        dips[k - whole] = min(dips[k - whole], g[k] + fall[k])


@njit(nogil=True)
def place_of_sum(g, shift, sign, lane):
    """Place of the largest sign·(g + shift) in a lane."""
    best = lane
    for k in range(lane, g.size, LANES):
        if sign * (g[k] + shift[k]) > sign * (g[best] + shift[best]):
            best = k
    return best


@njit(nogil=True, fastmath=LOOSE)
def best_partner(line, diagonal, own, top, g, fall, differences, peaks):
    """The k with the largest gain of moving v_i up and v_k down: (top − d_k)² / (K_ii + K_kk − 2 K_ik).

    Gains are of the type of ``line``, ``diagonal``, ``differences`` and ``peaks``: only which is largest matters.
    """
    real = line.dtype.type
    two, tiny, own = real(2), real(TINY), real(own)
    peaks[:] = 0
    whole = g.size // LANES * LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            difference = top - (g[start + lane] + fall[start + lane])
            differences[lane] = difference if difference > 0.0 else 0.0
        for lane in range(LANES):
            curvature = own + diagonal[start + lane] - two * line[start + lane]
            gain = differences[lane] * differences[lane] / (curvature if curvature > tiny else tiny)
            peaks[lane] = gain if gain > peaks[lane] else peaks[lane]
    for k in range(whole, g.size):
        peaks[k - whole] = max(peaks[k - whole], gain_of(line[k], diagonal[k], own, top - (g[k] + fall[k])))
    lane = int(np.argmax(peaks))
    best, best_gain = lane, -1.0
    for k in range(lane, g.size, LANES):
        gain = gain_of(line[k], diagonal[k], own, top - (g[k] + fall[k]))
        if gain > best_gain:
            best, best_gain = k, gain
    return best


@njit(nogil=True)
def gain_of(value, own_k, own, difference):
    """One of the gains that `best_partner` compares."""
    difference = max(difference, 0.0)
    return difference * difference / max(own + own_k - 2.0 * value, TINY)


@njit(nogil=True)
def prepare(lines, slots, offset, v, lo, hi, epsilon, rise, fall, diagonal):
    """Fill rise, fall and the diagonal of K."""
    for k in range(v.size):
        rooms(v, lo, hi, epsilon, rise, fall, k)
        diagonal[k] = lines[slots[k], k] + offset


@njit(cache=True, nogil=True)
def pairs(lines, slots, offset, g, v, lo, hi, epsilon, tol, max_steps):
    """Solve the block's problem with Σ v kept, in v and g; steps made and how much D has risen.

    Second-order selection of pairs: Fan, Chen, Lin, "Working Set Selection Using Second Order Information for Training
    Support Vector Machines", JMLR 2005, WSS 2. The offset has no effect.
    """
    n = v.size
    rise, fall, diagonal = np.empty(n), np.empty(n), np.empty(n, lines.dtype)
    prepare(lines, slots, 0.0, v, lo, hi, epsilon, rise, fall, diagonal)
    peaks, dips = np.empty(LANES), np.empty(LANES)
    differences, gains = np.empty(LANES, lines.dtype), np.empty(LANES, lines.dtype)
    first = lines[slots[0]]
    descend(0.0, first, 0.0, first, 0.0, g, rise, fall, peaks, dips)
    gain = 0.0
    for step in range(max_steps):
        best = np.argmax(peaks)
        top = peaks[best]
        if top - dips.min() <= tol:
            return step, gain
        i = place_of_sum(g, rise, 1.0, best)
        line = lines[slots[i]]
        j = best_partner(line, diagonal, diagonal[i], top, g, fall, differences, gains)
        slope = top - (g[j] + fall[j])
        curvature = max(np.float64(diagonal[i]) + np.float64(diagonal[j]) - 2.0 * line[j], TINY)
        move = min(slope / curvature, up_room(v[i], hi[i]), down_room(v[j], lo[j]))
        gain += move * (slope - 0.5 * move * curvature)
        v[i], v[j] = moved(v[i], move, lo[i], hi[i]), moved(v[j], -move, lo[j], hi[j])
        rooms(v, lo, hi, epsilon, rise, fall, i)
        rooms(v, lo, hi, epsilon, rise, fall, j)
        descend(move, line, -move, lines[slots[j]], 0.0, g, rise, fall, peaks, dips)
    return max_steps, gain


@njit(cache=True, nogil=True, fastmath=LOOSE)
def second(line, offset, diagonal, own, slope, g, rise, fall, parts, peaks):
    """The k whose going with v_i to the best point of both adds most to the gain of a step in v_i, and that gain.

    Gains are up to a common factor.
    """
    peaks[:] = 0.0
    whole = g.size // LANES * LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            k = start + lane
            cross = slope * (line[k] + offset)
            up, down = (g[k] + rise[k]) * own - cross, (g[k] + fall[k]) * own - cross
            parts[lane] = (up if up > 0.0 else 0.0) + (down if down < 0.0 else 0.0)
        for lane in range(LANES):
            cross = line[start + lane] + offset
            det = own * diagonal[start + lane] - cross * cross
            gain = parts[lane] * parts[lane] / (det if det > TINY * own else TINY * own)
            peaks[lane] = gain if gain > peaks[lane] else peaks[lane]
    for k in range(whole, g.size):
        gain = second_gain(line[k] + offset, own, diagonal[k], slope, g[k] + rise[k], g[k] + fall[k])
        peaks[k - whole] = max(peaks[k - whole], gain)
    lane = int(np.argmax(peaks))
    best, best_gain = lane, -1.0
    for k in range(lane, g.size, LANES):
        gain = second_gain(line[k] + offset, own, diagonal[k], slope, g[k] + rise[k], g[k] + fall[k])
        if gain > best_gain:
            best, best_gain = k, gain
    return best, best_gain


@njit(nogil=True)
def second_gain(cross, own, own_k, slope, up, down):
    """One of the gains that `second` compares."""
    part = max(up * own - slope * cross, 0.0) + min(down * own - slope * cross, 0.0)
    return part * part / max(own * own_k - cross * cross, TINY * own)


@njit(cache=True, nogil=True)
def box(lines, slots, offset, g, v, lo, hi, epsilon, tol, max_steps):
    """Solve the block's problem with nothing but bounds, in v and g; steps made and how much D has risen.

    Two variables at a time: Steinwart, Hush, Scovel, "Training SVMs Without Offset", JMLR 2011, section 3.
    """
    n = v.size
    rise, fall, diagonal = np.empty(n), np.empty(n), np.empty(n)
    prepare(lines, slots, offset, v, lo, hi, epsilon, rise, fall, diagonal)
    peaks, dips, parts = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    first = lines[slots[0]]
    descend(0.0, first, 0.0, first, 0.0, g, rise, fall, peaks, dips)
    gain = 0.0
    for step in range(max_steps):
        highest, lowest = peaks.max(), dips.min()
        if max(highest, 0.0) - min(lowest, 0.0) <= tol:
            return step, gain
        up = highest >= -lowest
        if up:
            i = place_of_sum(g, rise, 1.0, np.argmax(peaks))
            slope, room = g[i] + rise[i], up_room(v[i], hi[i])
        else:
            i = place_of_sum(g, fall, -1.0, np.argmin(dips))
            slope, room = g[i] + fall[i], down_room(v[i], lo[i])
        line, own = lines[slots[i]], max(diagonal[i], TINY)
        j, gain_j = second(line, offset, diagonal, own, slope, g, rise, fall, parts, peaks)
        move, other, slope_j = min(abs(slope) / own, room) * (1.0 if up else -1.0), 0.0, 0.0
        if gain_j > 0.0 and j != i:
            cross = line[j] + offset
            det = max(own * diagonal[j] - cross * cross, TINY * own)
            rising = (g[j] + rise[j]) * own - slope * cross > 0.0
            slope_j = g[j] + rise[j] if rising else g[j] + fall[j]
            room_j = up_room(v[j], hi[j]) if rising else down_room(v[j], lo[j])
            move, other = best_of_two(slope, slope_j, own, max(diagonal[j], TINY), cross, det, up, rising, room, room_j)
            gain += other * (slope_j - 0.5 * other * diagonal[j] - move * cross)
            v[j] = moved(v[j], other, lo[j], hi[j])
        gain += move * (slope - 0.5 * move * own)
        v[i] = moved(v[i], move, lo[i], hi[i])
        rooms(v, lo, hi, epsilon, rise, fall, i)
        rooms(v, lo, hi, epsilon, rise, fall, j)
        descend(move, line, other, lines[slots[j]], offset * (move + other), g, rise, fall, peaks, dips)
    return max_steps, gain


@njit(nogil=True)
def best_of_two(slope, slope_j, own, own_j, cross, det, up, rising, room, room_j):
    """Moves of two variables, each within its room and direction, that raise D: the best ones, mostly.

    The part of the unbounded step that the rooms allow, then each of the two exactly, given the other.
    """
    low, high = (0.0, room) if up else (-room, 0.0)
    low_j, high_j = (0.0, room_j) if rising else (-room_j, 0.0)
    move = (slope * own_j - slope_j * cross) / det
    other = (slope_j * own - slope * cross) / det
    share = 1.0
    if move < low or move > high:
        share = min(share, max(room / abs(move), 0.0)) if (move > 0.0) == up else 0.0
    if other < low_j or other > high_j:
        share = min(share, room_j / abs(other)) if (other > 0.0) == rising else 0.0
    if share < 1.0:
        other *= share
        move = min(max((slope - cross * other) / own, low), high)
        other = min(max((slope_j - cross * move) / own_j, low_j), high_j)
    return move, other
