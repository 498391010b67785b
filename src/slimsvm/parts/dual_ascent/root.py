"""The root of a falling function of one number, by secants within a bracket."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Root:
    """The search for the root of a falling function, which is evaluated at ``x``.

    Parameters
    ----------
    x : float
        The first x.
    lowest, highest : float
        The range of x; its end counts as the root if the root lies beyond.
    longest : float
        The longest step.
    first_step : float
        For a value of 1, before there is a slope.
    """

    x: float
    lowest: float
    highest: float
    longest: float
    first_step: float
    least: float = -np.inf  # a bracket of the root
    most: float = np.inf
    asked: list[tuple[float, float]] = field(default_factory=list)

    def is_met(self, value: float, least_value: float, least_width: float) -> bool:
        """Take the function's value at x; return whether x is the root, otherwise set the next x."""
        self.asked.append((self.x, value))
        if value > 0:
            self.least = max(self.least, self.x)
        else:
            self.most = min(self.most, self.x)
        is_beyond = self.x >= self.highest if value > 0 else self.x <= self.lowest
        step = self.first_step * value
        if len(self.asked) > 1:
            before, earlier = self.asked[-2]
            slope = (value - earlier) / (self.x - before)
            step = -value / slope if slope < 0 else np.sign(value) * np.inf
        width = min(abs(step), self.most - self.least)
        if abs(value) <= least_value or width <= least_width or is_beyond:
            return True
        found = float(np.clip(self.x + np.clip(step, -self.longest, self.longest), self.lowest, self.highest))
        is_inside = self.least < found < self.most
        self.x = found if is_inside else 0.5 * (self.least + self.most)
        return False
