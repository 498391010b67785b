"""The tables of the docs about the experiments of the four papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.report.cross_training import fits
from benchmarks.report.doc_writing import counted, markdown, seconds
from benchmarks.report.found import Found
from benchmarks.report.papers import claims
from benchmarks.shared.cross_trained_rows import summary

BUDGET_METHODS = ("bsca", "bsgd", "our-bsca", "our-bsgd")
EDITORS = ("exact", "default", "paper", "bagging", "ramp")
PIECES = ("noise", "overlap")
COMPARATORS = "cross-training comparators"
# The first words of the papers' cells.
KINDS = (
    "sampled-cuts", "budget", "many-epochs", "cross-training", "subspace", "objectives", "comparators", "original",
)  # fmt: skip


def budget(found: Found) -> str:
    """BSCA and BSGD, finished and not, in the paper's form and ours."""
    lines = {(row["data"], row["B"], row["method"]): row for row in found.rows("budget", "table")}
    rows = []
    for name, size in dict.fromkeys((name, size) for name, size, _ in lines):
        own = [lines.get((name, size, method)) for method in BUDGET_METHODS]
        rows.append((f"{name}, {size:,}", *(told for row in own for told in with_and_without_finish(row))))
    head = ("set, B", *(f"{method}, {what}" for method in BUDGET_METHODS for what in ("last five (%)", "finished (%)")))
    return markdown(head, rows, found.of("budget"), found)


def with_and_without_finish(row: dict[str, Any] | None) -> tuple[str, str]:
    """Errors of a method on a set with a budget."""
    if row is None:
        return "–", "–"
    finished = f"{row['finished %']:.2f}, {seconds(row['seconds'])} s"
    return f"{row['plain %']:.2f} ± {row['± last epochs']:.2f}", finished


def budget_time(kind: str) -> Callable[[Found], str]:
    """After which share of BSGD's time BSCA is as good, with the paper's steps."""
    share = "BSCA is there after this share of BSGD's time"

    def table(found: Found) -> str:
        rows = []
        for row in found.rows(kind, "acceptance"):
            ours, theirs = row["mean of BSCA's %"], row["mean of BSGD's last epochs %"]
            steady, other = (row[f"± of {method}'s last epochs %"] for method in ("bsca", "bsgd"))
            when = "never" if row[share] is None else f"{100 * row[share]:.0f} %"
            last = (f"{ours:.2f} ± {steady:.2f}", f"{theirs:.2f} ± {other:.2f}")
            rows.append((f"{row['data']}, {row['B']:,}", *last, when))
        head = ("set, B", "BSCA, last five (%)", "BSGD, last five (%)", share)
        return f"{counted_cases(found, kind, share)}\n\n{markdown(head, rows, found.of(kind), found)}"

    return table


def counted_cases(found: Found, kind: str, share: str) -> str:
    """In how many cases BSCA merges less often, is the steadier one, and is as good as BSGD."""
    rows = found.rows(kind, "acceptance")
    merges = {(row["data"], row["B"], row["method"]): row["merges"] for row in found.rows(kind, "table")}
    n = len(rows)
    fewer = sum(merges[row["data"], row["B"], "bsca"] < merges[row["data"], row["B"], "bsgd"] for row in rows)
    steadier = sum(row["± of bsca's last epochs %"] < row["± of bsgd's last epochs %"] for row in rows)
    times = [row[share] for row in rows if row[share] is not None]
    return (
        f"BSCA merges less often than BSGD in {fewer} of {n} cases, and is the steadier one in {steadier}. It reaches "
        f"BSGD's last error, and stays there, in {len(times)}, within half of BSGD's time in "
        f"{sum(time <= 0.5 for time in times)}."
    )


def lemma_2(found: Found) -> str:
    """Shares of steps that change the model, without a budget."""
    lines = {(row["data"], row["method"]): row for row in found.rows("budget", "lemma_2")}
    rows = []
    for name in dict.fromkeys(data for data, _ in lines):
        own = [lines[name, method] for method in ("bsca", "bsgd")]
        shares = [f"{100 * row['observed']:.2f}, {100 * row['limit']:.2f}" for row in own]
        rows.append((name, counted(own[0]["epochs"]), *shares))
    return markdown(("set", "epochs", "BSCA seen, limit (%)", "BSGD seen, limit (%)"), rows, found.of("budget"), found)


def cross_training(found: Found) -> str:
    """Vectors and errors of the exact SVM, cross-training, the paper's recipe, its first SVMs and the ramp."""
    lines: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    cells = [cell for cell in found.of("cross-training") if cell != COMPARATORS]
    for row in summary(fit for fit in fits(found) if fit["part"] != "comparators"):
        key = (row["data"], row["n"], *(row.get(piece, "") for piece in PIECES))
        lines.setdefault(key, {})[row["method"]] = row
    rows = []
    for (data, n, *pieces), own in lines.items():
        said = [f"{name} {value:g}" for name, value in zip(PIECES, pieces, strict=True) if value != ""]
        rows.append((
            ", ".join((data, f"{n:,} rows", *said)),
            *(vectors_and_error(own.get(method)) for method in EDITORS),
        ))  # fmt: skip
    head = ("set", "exact SVM", "cross-training", "the paper's recipe", "its first SVMs alone", "ramp loss")
    return markdown(head, rows, cells, found)


def comparators(found: Found) -> str:
    """Errors, seconds and vectors of the exact SVM, online and ball machines and few vectors, on the same rows."""
    lines = {(row["method"], row["data"]): row for row in found.results(COMPARATORS).get("table", [])}
    sets = list(dict.fromkeys(data for _, data in lines))
    rows = []
    for method in dict.fromkeys(method for method, _ in lines):
        own = [lines[method, data] for data in sets]
        told = [f"{row['error %']:.2f}, {seconds(row['seconds'])} s, {counted(row['vectors'])}" for row in own]
        rows.append((method, *told))
    return markdown(("", *sets), rows, [COMPARATORS], found)


def vectors_and_error(row: dict[str, Any] | None) -> str:
    """Vectors, error, and how many runs differ from the exact SVM's by a paired test."""
    if row is None:
        return "–"
    differ = row["p < 0.05"]
    return f"{counted(row['vectors'])}, {row['error %']:.2f} %" + (f" ({differ})" if differ else "")


def agreement(found: Found) -> str:
    """Of each figure and table: what came of what its paper says, at which size, and how many checks agree."""
    keys = "paper", "figure or table", "outcome", "size here / there", "checks that agree"
    rows = [[row[key] for key in keys] for row in claims(found)]
    cells = [cell for kind in KINDS for cell in found.of(kind)]
    return markdown(keys, rows, cells, found)


def as_measured(kind: str, title: str, of: str | None = None) -> Callable[[Found], str]:
    """A table that the benchmark itself has made; of several cells their rows one after the other, or side by side.

    ``of`` is the column that says whose rows stand side by side.
    """

    def table(found: Found) -> str:
        rows = found.tables(kind, title, beside=of)
        head = list(dict.fromkeys(name for row in rows for name in row))
        return markdown(head, [[row.get(name, "–") for name in head] for row in rows], found.of(kind), found)

    return table


PAPER_TABLES: dict[str, Callable[[Found], str]] = {
    "agreement": agreement,
    "budget": budget,
    "budget-time": budget_time("budget"),
    "many-epochs": budget_time("many-epochs"),
    "lemma-2": lemma_2,
    "cross-training": cross_training,
    "comparators": comparators,
    "subspace": as_measured("subspace", "Test error (%)"),
    "subspace-full": as_measured("subspace", "Models of full size"),
    "subspace-table-2": as_measured("subspace", "Table 2"),
    "subspace-growth": as_measured("subspace", "Training sets of growing size"),
    "sampled-cuts": as_measured("sampled-cuts", "Table 1", of="method"),
    "sampled-cuts-growth": as_measured("sampled-cuts", "Growth with n"),
}
