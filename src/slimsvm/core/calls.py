"""How much one call into the core may do: Ctrl-C is heard between two, so that none takes longer than 50 ms."""

from __future__ import annotations

from collections.abc import Iterator

CALL_MICROSECONDS = 30_000.0


def in_calls(n: int, microseconds: float, multiple: int = 1) -> Iterator[slice]:
    """Slices of n things, each small enough for one call.

    Parameters
    ----------
    n : int
    microseconds : float
        What one of them takes one thread, about.
    multiple : int
        Their number in all slices but the last is a multiple of this.

    Examples
    --------
    >>> from slimsvm.core.calls import in_calls
    >>> list(in_calls(5, 10_000.0, multiple=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, int(CALL_MICROSECONDS / max(microseconds, 1e-9)) // multiple) * multiple
    for lo in range(0, n, step):
        yield slice(lo, min(n, lo + step))
