"""The progress bar of a fit under ``verbose``: what is done, how far it has come, and how much time is left.

A `Run` says how far it has come in one of two ways: ``share_done`` of the work that it has planned, or how many times
the tolerance it is away, ``distance(record)``, which falls to 1 about evenly on a log scale. Limits of iterations and
seconds count likewise, and the bar shows what ends first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import isfinite, log
from typing import Any

from slimsvm.parts.run import Run
from slimsvm.rows import Rows

FORMAT = "{desc}: {percentage:3.0f}%|{bar:20}| {elapsed}<{remaining}{postfix}"
BLOCK_FORMAT = "{desc}: {n_fmt} of {total_fmt} blocks|{bar:20}|{postfix}"


def one_by_one(things: Sequence[Any], doing: str, verbose: int) -> Iterable[Any]:
    """Return the things to iterate over, with a bar of how many are done under ``verbose``."""
    if not verbose:
        return things
    from tqdm import tqdm

    found: Iterable[Any] = tqdm(things, desc=doing, bar_format=FORMAT)
    return found


def reading(rows: Any, verbose: int) -> AbstractContextManager[None]:
    """Show, under ``verbose``, which block a pass over the rows has come to."""
    return _block_bar(rows) if verbose and isinstance(rows, Rows) else nullcontext()


@contextmanager
def _block_bar(rows: Rows) -> Iterator[None]:
    from tqdm import tqdm

    bar: Any = None

    def listener(i: int, n_blocks: int, name: str) -> None:
        nonlocal bar
        if bar is None:
            bar = tqdm(desc="reading rows", total=n_blocks, unit="block", leave=False, bar_format=BLOCK_FORMAT)
        bar.set_postfix_str(name, refresh=False)
        if i + 1 < bar.n:
            bar.reset()
        bar.update(i + 1 - bar.n)

    rows.tell(listener)
    try:
        yield
    finally:
        rows.tell(None)
        if bar is not None:
            bar.close()


class Bar:
    """A tqdm bar on standard error, in percent.

    Parameters
    ----------
    run : Run
        The run; its ``doing`` is the bar's text.
    name : str
        The bar's text if the run has none.
    max_iter, max_seconds : int or None, float or None
        Limits of the fit.
    """

    def __init__(self, run: Run, name: str, max_iter: int | None, max_seconds: float | None):
        from tqdm import tqdm  # 10 ms that a silent fit is spared

        self.run, self.max_iter, self.max_seconds = run, max_iter, max_seconds
        self.bar = tqdm(desc=run.doing or name, total=100, bar_format=FORMAT)
        self.farthest = 1.0

    def update(self, record: dict[str, Any], n_iter: int) -> None:
        """Show an iteration's record."""
        shown = {name: record[name] for name in ("objective", "gap") if record.get(name) is not None}
        if "gap" in shown:
            objective = abs(shown.get("objective", 0.0))
            shown["gap"] = f"{shown['gap'] / objective:.2g} of it" if objective else f"{shown['gap']:.2g}"
        if record.get("n_basis") is not None:
            shown["vectors"] = record["n_basis"]
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(max(0.0, 100.0 * min(1.0, self._share(record, n_iter)) - self.bar.n))

    def _share(self, record: dict[str, Any], n_iter: int) -> float:
        """Return how far the fit has come; 1 is its end."""
        share = self.run.share_done
        if self.max_iter is not None:
            share = max(share, n_iter / self.max_iter)
        if self.max_seconds is not None:
            share = max(share, record["seconds"] / self.max_seconds)
        distance = self.run.distance(record)
        if distance is not None and isfinite(distance):
            distance = max(distance, 1.0)
            self.farthest = max(self.farthest, distance)
            if self.farthest > 1.0:
                share = max(share, 1.0 - log(distance) / log(self.farthest))
        return share

    def close(self, is_done: bool) -> None:
        """Leave the bar at its present place, or at its end."""
        if is_done:
            self.bar.update(max(0.0, 100.0 - self.bar.n))
        self.bar.close()
