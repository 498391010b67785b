"""Losses of whole sequences within a step of descent: tiles that end where sequences end, and Viterbi on their scores.

``ends[p]`` is the place in a batch's list of rows where the sequence ends that place p belongs to. Groups and tiles of
rows end at such places, so that a sequence's scores lie in one tile and its kernel values are computed once.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.chain import HAMMING, augmented_labels, chain_score, viterbi
from slimsvm.numerics.compiling import njit


@njit(nogil=True)
def edge(ends, first, at):
    """The next place from ``at`` on where a sequence begins; ``first`` is one."""
    return ends[at - 1] if at > first else first


@njit(nogil=True)
def tile_end(ends, start, last, n_tile):
    """Where a tile of at most n_tile rows ends that begins at ``start``; one sequence at least."""
    end = ends[start]
    while end < last and ends[end] - start <= n_tile:
        end = ends[end]
    return end


@njit(nogil=True)
def count_sequences(ends, first, last):
    """Sequences from place ``first`` to ``last``."""
    n = 0
    while first < last:
        first = ends[first]
        n += 1
    return n


@njit(nogil=True)
def sequence_loss_tile(loss, start, n, share, plain, scratch, active, part, stats):
    """Gradients r of the losses of a tile's sequences in the scores; the rows ``active`` where it is not 0; how many.

    The tile's n rows begin at place ``start`` of the batch's list. The gradient in the plain parameters, times
    ``share``, goes to ``part``; weighted loss and weight of wrong predictions go to ``stats``: of a sequence that any
    label is wrong, or each wrong label times the mean number of sequences per row.
    """
    chosen, r, k = scratch.chosen, scratch.r, scratch.r.shape[1]
    kind, per_row = int(loss.cost[0]), loss.cost[1]
    moved = plain.astype(np.float64)
    to, first, last = moved[: k * k].reshape(k, k).T.copy(), moved[k * k : k * k + k], moved[k * k + k :]
    truth, path = np.empty(n, np.int64), np.empty(n, np.int64)
    count, a = 0, 0
    for i in range(n):
        truth[i] = int(loss.target[chosen[i]])
        r[i] = 0
    while a < n:
        z = loss.ends[start + a] - start
        weight = loss.weight[chosen[a]] if loss.weight.size else 1.0
        scores, y, found = scratch.scores[a:z].astype(np.float64), truth[a:z], path[a:z]
        viterbi(scores, to, first, last, found)
        wrong = 0
        for t in range(z - a):
            wrong += found[t] != y[t]
        stats[1] += weight * (wrong * per_row if kind == HAMMING else min(wrong, 1))
        value = augmented_labels(scores.copy(), to, first, last, y, kind, found)
        value += chain_score(scores, to, first, last, found) - chain_score(scores, to, first, last, y)
        stats[0] += weight * value
        w = weight * share
        for t in range(z - a):
            if found[t] != y[t]:
                r[a + t, found[t]], r[a + t, y[t]] = weight, -weight
                active[count] = a + t
                count += 1
            if t > 0 and (found[t] != y[t] or found[t - 1] != y[t - 1]):
                part[found[t - 1] * k + found[t]] += w
                part[y[t - 1] * k + y[t]] -= w
        if found[0] != y[0]:
            part[k * k + found[0]] += w
            part[k * k + y[0]] -= w
        if found[-1] != y[-1]:
            part[k * k + k + found[-1]] += w
            part[k * k + k + y[-1]] -= w
        a = z
    return count
