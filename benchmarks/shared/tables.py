"""Means of records, and tables of them in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from slimsvm.cli.output import count

Record = Mapping[str, Any]
Item = TypeVar("Item")

MEASURED = (
    "seconds",
    "cpu_seconds",
    "kernel_evals",
    "iterations",
    "train_error",
    "test_error",
    "n_vectors",
    "objective",
    "gap",
    "qp_seconds",
    "objective_multiple",
    "predict_us",
)
PROBLEM = ("run", "part", "data", "n_train", "C", "gamma")
FIT = (*PROBLEM, "method", "max_basis")
NONE = "–"


def latest(records: Iterable[Record]) -> list[Record]:
    """Of a problem and method that several runs have, the records of the last run only."""
    records = list(records)
    last: dict[tuple, int] = {}
    for record in records:
        last[_fit(record)] = max(record.get("run", 0), last.get(_fit(record), 0))
    return [record for record in records if record.get("run", 0) == last[_fit(record)]]


def _fit(record: Record) -> tuple:
    return tuple(record.get(key) for key in FIT[1:])


def summarise(
    records: Iterable[Record], keys: Sequence[str] = (*PROBLEM, "method", "max_basis")
) -> list[dict[str, Any]]:
    """One row per problem and method: means over the seeds, their deviations as ``<name>_std``.

    Parameters
    ----------
    records : iterable of mappings
    keys : sequence of str
        What tells rows apart.

    Returns
    -------
    list of dict
        The keys, the settings that all records of a row share, ``runs``, ``limited`` (whether a run met the time
        limit) and ``skipped``. A mean is None where no run has the figure, a deviation where fewer than two have.
    """
    groups: dict[tuple, list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record.get(key) for key in keys), []).append(record)
    return [_summary(group) for group in groups.values()]


def _summary(group: Sequence[Record]) -> dict[str, Any]:
    first = group[0]
    row = {
        name: value
        for name, value in first.items()
        if name not in MEASURED and all(record.get(name) == value for record in group)
    }
    row.pop("seed", None)
    for name in MEASURED:
        values = [record[name] for record in group if record.get(name) is not None]
        row[name] = float(np.mean(values)) if values else None
        row[f"{name}_std"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    row["runs"] = sum("skipped" not in record for record in group)
    row["limited"] = any(record.get("status") == "time limit" for record in group)
    return row


def markdown(columns: Mapping[str, Callable[[Item], str]], rows: Iterable[Item]) -> str:
    """A Markdown table: for each column its head and the function that makes a cell's text from a row."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(text(row) for text in columns.values()) + " |" for row in rows]
    return "\n".join(lines)


def seconds(row: Record) -> str:
    """Mean seconds, with a deviation; those cut off by the limit are marked."""
    if row["seconds"] is None:
        return NONE
    text = spread(row, "seconds", lambda value: f"{value:.3g}" if value < 100 else f"{value:.0f}")
    return f"> {text}" if row["limited"] else text


def per_cent(name: str, digits: int = 2) -> Callable[[Record], str]:
    """Cells of a share in per cent, with a deviation."""
    return lambda row: spread(row, name, lambda value: f"{100 * value:.{digits}f}")


def number(name: str) -> Callable[[Record], str]:
    """Cells of a count, without a deviation."""
    return lambda row: NONE if row[name] is None else count(row[name])


def spread(row: Record, name: str, text: Callable[[float], str]) -> str:
    """Mean and, where there is one, deviation in brackets, as the paper writes them."""
    if row[name] is None:
        return NONE
    deviation = row[f"{name}_std"]
    return text(row[name]) if deviation is None else f"{text(row[name])} ({text(deviation)})"


def gap(row: Record) -> str:
    """The gap to the best known lower bound, in per cent."""
    return NONE if row["gap"] is None else f"{100 * row['gap']:.2g} %"


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of log y over log x by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def slope_error(x: Sequence[float], y: Sequence[float]) -> float:
    """Standard error of `slope`; NaN of fewer than three points."""
    if len(x) < 3:
        return float("nan")
    at, values = np.log(x), np.log(y)
    residuals = values - np.polyval(np.polyfit(at, values, 1), at)
    return float(np.sqrt(residuals @ residuals / (len(x) - 2) / np.sum((at - at.mean()) ** 2)))


def exponent(x: Sequence[float], y: Sequence[float]) -> str:
    """The slope with two standard errors, as a cell."""
    error = slope_error(x, y)
    return f"{slope(x, y):.2f}" + ("" if np.isnan(error) else f" ± {2 * error:.2f}")
