"""The root search that line searches share: the Illinois method.

Dowell and Jarratt, "A Modified Regula Falsi Method for Computing the Root of an Equation", BIT 1971: a secant of the
values at both ends; where the same end stays twice, its value counts half.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Bracket:
    """An interval from where an increasing function is negative to where it is not, and its values there."""

    low: float
    value_low: float
    high: float
    value_high: float
    side: int = 0  # The end that the last value took the place of: -1 is low, 1 is high.

    def secant(self) -> float:
        """Where the line through both ends is 0; the middle where their values are too near to 0 to tell."""
        rise = self.value_high - self.value_low
        if not rise > 0.0:
            return self.middle()
        return (self.low * self.value_high - self.high * self.value_low) / rise

    def middle(self) -> float:
        """The middle; what comes after it is as at the beginning."""
        self.side = 0
        return 0.5 * (self.low + self.high)

    def narrow(self, at: float, value: float) -> None:
        """Put a value inside in the place of the end whose sign it has."""
        if value < 0:
            self.low, self.value_low = at, value
            self.value_high, self.side = (0.5 * self.value_high if self.side < 0 else self.value_high), -1
        else:
            self.high, self.value_high = at, value
            self.value_low, self.side = (0.5 * self.value_low if self.side > 0 else self.value_low), 1

    def climb(self, high: float, value: float) -> None:
        """Go on to a higher interval, from the present end."""
        self.low, self.value_low, self.high, self.value_high = self.high, self.value_high, high, value

    def descend(self, low: float, value: float) -> None:
        """Go on to a lower interval, from the present beginning."""
        self.low, self.value_low, self.high, self.value_high = low, value, self.low, self.value_low
