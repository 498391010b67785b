"""Steps of Adam along the gradients of `numerics.refine`: adding up the groups, stepping, and whole runs of batches.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.copying import copy_row
from slimsvm.numerics.maps import EXP2, SUMS
from slimsvm.numerics.refine import SCORES, SEQUENCES, group_gradient
from slimsvm.numerics.team import DONE, LIMIT, PATIENCE, add, load, phase_done, store, take

EPSILON = 1e-12
# Added to the moments so that they do not decay into denormal numbers, which are slow.
FLOOR = 1e-30
LN2 = 0.6931471805599453
# Vectors like the parameters' ``flat``: gradient, first and second moments, running mean; and (k,) sums over rows of W,
# of all groups and of the norm's.
Moments = namedtuple("Moments", ["gradient", "first", "second", "mean", "weight", "norm_weight"])
# C₁; rates of the basis by feature (d,), coefficients, intercept, log_scale and plain; pull of log_scale to its mean;
# Adam's shares of the past in the moments.
Settings = namedtuple("Settings", ["C1", "basis", "coef", "intercept", "scale", "plain", "pull", "beta1", "beta2"])


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def follow(parameters, kind):
    """Set scale, points and half to what basis and log_scale say."""
    half, dtype = parameters.half, parameters.half.dtype.type
    d, k = parameters.basis.shape
    half[:] = 0 if kind.norms else kind.shift
    for c in range(d):
        factor = dtype(np.exp(parameters.log_scale[c])) if kind.metric else dtype(1)
        parameters.scale[c] = factor
        for j in range(k):
            p = parameters.basis[c, j] * factor
            parameters.points[c, j] = p
            if kind.norms:
                half[j] -= dtype(0.5) * p * p


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def add_up(C1, parameters, kind, sums, moments):
    """Set the gradient in coefficients and intercept, and the sums over rows of W."""
    coef, weight, norm_weight = parameters.coef, moments.weight, moments.norm_weight
    (d, k), m = parameters.basis.shape, coef.shape[1]
    norm, dtype = sums.coef.shape[0] - 1, coef.dtype.type
    by_coef = moments.gradient[d * k : d * k + k * m].reshape(k, m)
    by_coef[:] = 0
    weight[:] = 0
    for g in range(norm + 1):
        by_coef += sums.coef[g]
        weight += sums.weight[g]
    copy_row(sums.weight[norm], norm_weight)
    if m == 1:
        for j in range(k):
            weight[j] = by_coef[j, 0] * coef[j, 0]
            norm_weight[j] = sums.coef[norm, j, 0] * coef[j, 0]
    for c in range(m):
        total = dtype(0)
        if kind.intercept:
            total = dtype(parameters.intercept[c] / C1) if kind.intercept == 1 else dtype(0)
            for g in range(norm):
                total += sums.intercept[g, c]
        moments.gradient[d * k + k * m + c] = total


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def add_up_plain(C1, parameters, sums, moments):
    """Set the gradient in the plain parameters; returns their part of the norm."""
    plain, total = parameters.plain, 0.0
    at = moments.gradient.size - plain.size
    for j in range(plain.size):
        gradient = plain[j] / C1
        for g in range(sums.plain.shape[0] - 1):
            gradient += sums.plain[g, j]
        moments.gradient[at + j] = gradient
        total += plain[j] * plain[j]
    return 0.5 * total / C1


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def feature_gradient(c, parameters, kind, sums, moments):
    """Set the gradient in feature c of all basis vectors, and in its scale."""
    coef, points, weight, norm_weight = parameters.coef, parameters.points, moments.weight, moments.norm_weight
    (d, k), m = parameters.basis.shape, coef.shape[1]
    n_groups, dtype = sums.basis.shape[0], coef.dtype.type
    out, norm = moments.gradient[c * k : (c + 1) * k], sums.basis[n_groups - 1, c]
    copy_row(norm, out)
    for g in range(n_groups - 1):
        out += sums.basis[g, c]
    if m == 1:
        for j in range(k):
            out[j] *= coef[j, 0]
            norm[j] *= coef[j, 0]
    if kind.metric:
        half = dtype(0.5)
        total = half * sums.scale[n_groups - 1, c]
        for g in range(n_groups - 1):
            total += sums.scale[g, c]
        for j in range(k):
            p = points[c, j]
            total += p * (p * (weight[j] - half * norm_weight[j]) - (out[j] + out[j] - norm[j]))
        moments.gradient[d * k + k * m + m + c] = -dtype(LN2) * total
    if kind.code == EXP2:
        factor = dtype(LN2) * parameters.scale[c]
        for j in range(k):
            out[j] = factor * (out[j] - points[c, j] * weight[j])


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def adam(flat, moments, settings, lo, hi, step, rate, averaging):
    """The ``step``-th step on flat[lo:hi]; its running mean moves there by the share ``averaging``."""
    dtype = flat.dtype.type
    beta1, beta2 = settings.beta1, settings.beta2
    b1, b2, c1, c2, eps = dtype(beta1), dtype(beta2), dtype(1 - beta1), dtype(1 - beta2), dtype(EPSILON)
    rate, scale, floor = dtype(rate / (1 - beta1**step)), dtype(1 / (1 - beta2**step)), dtype(FLOOR)
    gradient, first, second, mean, w = moments.gradient, moments.first, moments.second, moments.mean, dtype(averaging)
    for i in range(lo, hi):
        g = gradient[i]
        a, b = b1 * first[i] + (c1 * g + floor), b2 * second[i] + (c2 * g * g + floor)
        first[i] = a
        second[i] = b
        flat[i] -= rate * a / (np.sqrt(b * scale) + eps)
    if averaging > 0:
        for i in range(lo, hi):
            mean[i] += w * (flat[i] - mean[i])


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def step_features(first, last, schedule, parameters, kind, sums, moments, settings):
    """The step on features first, …, last - 1 of all basis vectors."""
    k = parameters.coef.shape[0]
    for c in range(first, last):
        feature_gradient(c, parameters, kind, sums, moments)
        rate = schedule[1] * settings.basis[c]
        adam(parameters.flat, moments, settings, c * k, (c + 1) * k, schedule[0], rate, schedule[2])


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def step_rest(schedule, parameters, kind, moments, settings):
    """The step on coefficients, intercept, feature scales and plain parameters, and what follows from it."""
    (d, k), m = parameters.basis.shape, parameters.coef.shape[1]
    coef, intercept, scale = d * k, d * k + k * m, d * k + k * m + m
    step, rate, averaging = schedule
    adam(parameters.flat, moments, settings, coef, intercept, step, rate * settings.coef, averaging)
    if kind.intercept:
        adam(parameters.flat, moments, settings, intercept, scale, step, rate * settings.intercept, averaging)
    if kind.metric:
        pull, middle = settings.pull, parameters.log_scale.mean()
        for c in range(d):
            moments.gradient[scale + c] += pull * (parameters.log_scale[c] - middle)
        adam(parameters.flat, moments, settings, scale, scale + d, step, rate * settings.scale, averaging)
    plain = scale + d
    adam(parameters.flat, moments, settings, plain, parameters.flat.size, step, rate * settings.plain, averaging)
    follow(parameters, kind)


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def descend(
    rows, index, cuts, loss, parameters, kind, tiles, norm_tile, sums, moments, settings, schedule, n_blocks, stats,
    sync, is_leader,
):  # fmt: skip
    """Steps over the batches index[cuts[b]:cuts[b + 1]], as one of a team (see `numerics.team`).

    A step has two phases: the gradient of every group, and the features in n_blocks blocks. schedule[b]: number of the
    step (from 1), factor of the rates, share of the running mean. ``stats`` gains the weighted loss and the weight of
    wrong predictions, and gets the last estimate of the norm ½‖w‖²/C₁. With the loss SCORES nothing is stepped.
    """
    d, n_groups, patience = parameters.basis.shape[0], sums.coef.shape[0], PATIENCE
    per_step = n_groups + n_blocks
    while load(sync, LIMIT) >= 0:
        task = take(sync)
        if task >= 0:
            b, i = task // per_step, task % per_step
            if i < n_groups:
                batch = (rows, index, cuts[b], cuts[b + 1], np.int64(schedule[b, 0]), settings.C1, loss)
                # The norm's group first: it may be the longest.
                group_gradient(*batch, parameters, kind, tiles, norm_tile, sums, n_groups - 1 - i)
            else:
                a, z = (i - n_groups) * d // n_blocks, (i - n_groups + 1) * d // n_blocks
                step_features(a, z, schedule[b], parameters, kind, sums, moments, settings)
            add(sync, DONE, 1)
            patience = PATIENCE
        elif is_leader and phase_done(sync):
            limit = load(sync, LIMIT)
            b, i = limit // per_step, limit % per_step
            if i:
                if loss.code == SCORES:
                    store(sync, LIMIT, -1)
                    break
                for g in range(n_groups - 1):
                    stats[0] += sums.stats[g, 0]
                    stats[1] += sums.stats[g, 1]
                stats[2] = sums.stats[n_groups - 1, 0]
                add_up(settings.C1, parameters, kind, sums, moments)
                if loss.code == SEQUENCES:
                    stats[2] += add_up_plain(settings.C1, parameters, sums, moments)
                store(sync, LIMIT, limit + n_blocks)
            else:
                if b > 0:
                    step_rest(schedule[b - 1], parameters, kind, moments, settings)
                store(sync, LIMIT, limit + n_groups if b + 1 < cuts.size else -1)
        else:
            patience -= 1
            if patience == 0:
                return False
    return True
