"""Tables of ``python -m benchmarks budget``, made of its records alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.budget.experiments import LAST, SETS
from benchmarks.shared import tables

Rows = list[dict[str, Any]]


def of_part(records: Iterable[dict[str, Any]], part: str) -> Rows:
    """Records of one part; records of earlier versions are all of the part "budget"."""
    return [record for record in records if record.get("part", "budget") == part]


def all_tables(records: Rows) -> dict[str, str]:
    """Every table in Markdown."""
    titles = {
        "Table 1: the exact SVM": table_1(records),
        "Errors with and without the finish": summary(records),
        "BSCA beside BSGD": comparison(records),
        "Lemma 2": lemma_2(records),
    }
    return {title: written(rows) for title, rows in titles.items() if rows}


def derived(records: Rows) -> dict[str, Rows]:
    """What the report reads beside the records."""
    return {"table_1": table_1(records), "acceptance": comparison(records), "lemma_2": lemma_2(records)}


def written(rows: Rows) -> str:
    """Rows in Markdown."""
    columns = {name: (lambda row, name=name: tables.NONE if row[name] is None else str(row[name])) for name in rows[0]}
    return tables.markdown(columns, rows)


def table_1(records: Rows) -> Rows:
    """The paper's table 1; accuracies and seconds are our exact SVM's, None where it is not trained."""
    exact = {record["data"]: record for record in of_part(records, "exact")}
    rows = []
    for name in dict.fromkeys(record["data"] for record in records):
        ours: Mapping[str, Any] = exact.get(name, {})
        rows.append(
            {
                "data": name, "n": ours.get("n_train"), "n_test": ours.get("n_test"),
                "features": ours.get("n_features"), "C": SETS[name].C, "gamma": SETS[name].gamma,
                "accuracy %": round(100 * (1 - ours["test_error"]), 2) if ours else None,
                "seconds": ours.get("seconds"), "source": "this run" if ours else "not trained",
            }
        )  # fmt: skip
    return rows


def lemma_2(records: Rows) -> Rows:
    """Shares of steps that change the model, and their limits."""
    names = ("data", "method", "n_train", "epochs", "limit", "observed")
    return [{name: record[name] for name in names} for record in of_part(records, "lemma-2")]


def grouped(records: Rows) -> dict[tuple[str, int, str], Rows]:
    """Records within a budget by set, budget and method, in order."""
    found: dict[tuple[str, int, str], Rows] = {}
    for record in of_part(records, "budget"):
        found.setdefault((record["data"], record["max_basis"], record["method"]), []).append(record)
    return found


def comparison(records: Rows) -> Rows:
    """Set by set and budget, in the paper's form: when BSCA comes to BSGD's last error to stay, how steady both end.

    BSCA is there from the epoch on after which its mean error stays within two standard errors of the mean of BSGD's
    last epochs. Standard errors are over the seeds.
    """
    groups, rows = grouped(records), []
    for name, budget in dict.fromkeys(key[:2] for key in groups):
        own = {method: groups.get((name, budget, method), []) for method in ("bsca", "bsgd")}
        if not all(group and "curve" in group[0] for group in own.values()):
            continue
        error, seconds = (
            {method: np.array([[point[what] for point in r["curve"]] for r in group]) for method, group in own.items()}
            for what in ("test_error", "seconds")
        )
        last = error["bsgd"][:, -LAST:].mean(axis=1)
        too_high = error["bsca"].mean(axis=0) > last.mean() + 2 * standard_error(last)
        first = int(np.flatnonzero(too_high)[-1]) + 1 if too_high.any() else 0
        share = None
        if first < len(too_high):
            share = float(seconds["bsca"].mean(axis=0)[first] / seconds["bsgd"][:, -1].mean())
        rows.append(
            {
                "data": name, "B": budget, "n": own["bsca"][0]["n_train"],
                "mean of BSGD's last epochs %": round(100 * float(last.mean()), 2),
                "mean of BSCA's %": round(100 * float(error["bsca"][:, -LAST:].mean()), 2),
                "BSCA is there after this share of BSGD's time": share,
                **{f"± of {m}'s last epochs %": deviation(error[m]) for m in error},
            }
        )  # fmt: skip
    return rows


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean of runs; 0 of one run."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def deviation(errors: np.ndarray) -> float:
    """Mean over the runs of the deviation over the last epochs, in %."""
    return float(100 * errors[:, -LAST:].std(axis=1).mean())


def summary(records: Rows) -> Rows:
    """Means over the seeds, errors in %; of curves the last epochs; limit: that of lemma 2 of the share of steps."""
    exact = {record["data"]: record for record in of_part(records, "exact")}
    table = []
    for (name, budget, method), group in grouped(records).items():
        errors = 100 * np.array([record["test_error"] for record in group])
        row: dict[str, Any] = {
            "data": name,
            "method": method,
            "B": budget,
            "runs": len(group),
            "finished %": round(float(errors.mean()), 2),
            "±": round(float(errors.std()), 2),
            "exact %": round(100 * exact[name]["test_error"], 2) if name in exact else None,
            "seconds": round(float(np.mean([record["seconds"] for record in group])), 2),
        }
        if "curve" in group[0]:
            row |= of_curves([record["curve"] for record in group])
            limits = exact[name]["limits"] if name in exact else {}
            row["limit"] = round(limits[method.removeprefix("our-")], 3) if limits else None
        table.append(row)
    return table


def of_curves(curves: list[Rows]) -> dict[str, float]:
    """Errors (%) of the last epochs, between runs and within them; seconds an epoch; steps of the last epoch."""
    ends = 100 * np.array([[point["test_error"] for point in curve[-LAST:]] for curve in curves])
    last = [curve[-1] for curve in curves]
    return {
        "plain %": round(float(ends.mean()), 2),
        "± runs": round(float(ends.mean(axis=1).std()), 2),
        "± last epochs": round(float(ends.std(axis=1).mean()), 2),
        "s/epoch": round(float(np.mean([point["seconds"] / point["epoch"] for point in last])), 3),
        "merges": round(float(np.mean([point["merge_fraction"] for point in last])), 3),
        "steps": round(float(np.mean([1 - point["zero_step_fraction"] for point in last])), 3),
    }
