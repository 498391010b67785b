"""L-BFGS: the least of a function of k points, where the curvature at each point is roughly known.

    step along −H ∇f, where H is the inverse of the curvatures, corrected by the last pairs (s, y):
    s = a step, y = how the gradient changed in it (two loops over the pairs, no matrix)
    while the value falls by less than DECREASE of what the slope promises: shorten the step, by a parabola

Curvatures are those of the present point, scaled by the last pair. Pairs whose s·y is not positive are left out.

Liu and Nocedal, "On the Limited Memory BFGS Method for Large Scale Optimization", Mathematical Programming 1989.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

Array = np.ndarray
Pair = tuple[Array, Array, float]

# Pairs that are kept (docs/experiments/learned_bases.md, "Steps by the length of coefficients").
MEMORY = 5
# The usual ones: the share of the promised decrease that a step must have, and how often a step is tried. A step that
# lowers the value by less than LEAST_GAIN is the last one, and there is none from a gradient below it.
DECREASE, MOST_TRIED, LEAST_GAIN = 1e-4, 10, 1e-9


def least_by_lbfgs(
    function: Callable[[Array], tuple[float, Array, Array]], points: Array, max_iter: int, enough: float
) -> tuple[Array, list[float]]:
    """Return points of a lower value, and the values at the start and after every step.

    Parameters
    ----------
    function : callable
        The value at points (k, d), its gradient (k, d) and the curvature at each point (k, 1), which is positive.
    points : ndarray of shape (k, d)
    max_iter : int
    enough : float
        A value that is as good as the least.
    """
    value, gradient, curvature = function(points)
    values, pairs = [value], deque[Pair](maxlen=MEMORY)
    for _ in range(max_iter):
        if value <= enough or np.abs(gradient).max() <= LEAST_GAIN:
            break
        direction = -_times_inverse(gradient, curvature, pairs)
        found = _shortened(function, points, value, direction, float(np.vdot(gradient, direction)))
        if found is None:
            break
        step, (value, changed, curvature) = found
        points, change, gradient = points + step, changed - gradient, changed
        values.append(value)
        product = float(np.vdot(step, change))
        if product > 0:
            pairs.append((step, change, product))
        if values[-2] - value <= LEAST_GAIN:
            break
    return points, values


def _times_inverse(gradient: Array, curvature: Array, pairs: deque[Pair]) -> Array:
    """Return H ∇f."""
    q, shares = gradient.copy(), []
    for step, change, product in reversed(pairs):
        shares.append(np.vdot(step, q) / product)
        q -= shares[-1] * change
    q /= curvature
    if pairs:
        _, change, product = pairs[-1]
        q *= product / np.vdot(change, change / curvature)
    for (step, change, product), share in zip(pairs, reversed(shares)):
        q += (share - np.vdot(change, q) / product) * step
    return q


def _shortened(
    function: Callable[[Array], tuple[float, Array, Array]], points: Array, value: float, direction: Array, slope: float
) -> tuple[Array, tuple[float, Array, Array]] | None:
    """Return a step along a direction and what the function is behind it; None if no step lowers the value."""
    length = 1.0
    for _ in range(MOST_TRIED):
        step = length * direction
        there = function(points + step)
        promised = length * slope
        if there[0] <= value + DECREASE * promised:
            return step, there
        length *= min(max(-0.5 * promised / (there[0] - value - promised), 0.1), 0.5)
    return None
