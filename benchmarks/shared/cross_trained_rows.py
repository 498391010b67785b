"""Records of cross-training, and their table: means over the seeds with their deviations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

# What tells records of the same run apart.
SAME = ("part", "data", "overlap", "noise", "n_train", "method")
Record = dict[str, Any]
SIGNIFICANT = 0.05
# Columns of the table of all cases.
COLUMNS = (
    "data", "overlap", "noise", "n", "method", "runs", "vectors", "± vectors", "at bound", "error %", "± error",
    "clean %", "p < 0.05", "seconds", "fit seconds",
)  # fmt: skip


def identity(record: Record) -> tuple[Any, ...]:
    """What a record measures, with which seed."""
    return tuple(record.get(name) for name in (*SAME, "seed"))


def latest(records: Iterable[Record]) -> list[Record]:
    """Records without the ones that were measured again later; earlier benchmarks called the number of rows n."""
    named = ({"n_train": record.get("n"), **record} for record in records)
    return list({identity(record): record for record in named}.values())


def groups(records: Iterable[Record], names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], list[Record]]]:
    """Records with the same values under ``names``."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        found.setdefault(tuple(record.get(name) for name in names), []).append(record)
    yield from found.items()


def summary(records: Iterable[Record]) -> list[dict[str, Any]]:
    """A row for each case and method: means and deviations over the seeds, errors in %."""
    return [
        {name: "" if value is None else value for name, value in row_of(key, group).items()}
        for key, group in groups(records, SAME)
    ]


def row_of(key: tuple[Any, ...], group: list[Record]) -> dict[str, Any]:
    """The row of records with different seeds; "p < 0.05": how many runs differ from the exact SVM's."""
    of = dict(zip(SAME, key, strict=True))
    vectors, errors = ([record[name] for record in group] for name in ("n_vectors", "test_error"))
    tested = [record["p_value"] for record in group if record.get("p_value") is not None]
    fits = [record["fit_seconds"] for record in group if record.get("fit_seconds") is not None]
    return {
        **{name: of[name] for name in ("data", "overlap", "noise")},
        "n": of["n_train"],
        "method": of["method"],
        "runs": len(group),
        "vectors": round(float(np.mean(vectors))),
        "± vectors": round(deviation(vectors)) if len(group) > 1 else None,
        "at bound": round(float(np.mean([record["n_bounded"] for record in group]))),
        "error %": round(100 * float(np.mean(errors)), 2),
        "± error": round(100 * deviation(errors), 2) if len(group) > 1 else None,
        "clean %": round(100 * float(np.mean([record["clean_error"] for record in group])), 2),
        "p < 0.05": f"{sum(p < SIGNIFICANT for p in tested)} of {len(tested)}" if tested else None,
        "seconds": round(float(np.mean([record["seconds"] for record in group])), 2),
        "fit seconds": round(float(np.mean(fits)), 2) if fits else None,
    }


def deviation(values: Sequence[float]) -> float:
    """Standard deviation of a sample; NaN for one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def all_tables(records: list[Record]) -> Mapping[str, str]:
    """The table of all cases, in Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(str(row[name]) for name in COLUMNS) + " |" for row in summary(latest(records))]
    return {"Vectors, errors and seconds": "\n".join(lines)}
