"""The docs' tables of the board: classes and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.report.doc_writing import counted, markdown, seconds
from benchmarks.report.found import Found
from benchmarks.shared.board_lines import LOSSES, OURS, board_lines

HEADS = {"classes": ("log loss, of CatBoost's", "AUC", "errors"), "numbers": ("RMSE, of CatBoost's",)}


def board(kind: str, cell: str) -> Callable[[Found], str]:
    """What writes the table of one kind of a cell."""

    def table(found: Found) -> str:
        cells = found.of(cell)
        records = found.rows(cell, "records")
        lines = [line for line in board_lines(records) if line["kind"] == kind]
        head = (f"{lines[0]['sets']} sets" if lines else "", "mean rank", HEADS[kind][0], "slimsvm has less on",
                "Elo", *HEADS[kind][1:], "s for 1,000 rows", "kB", "µs a row")  # fmt: skip
        text = markdown(head, map(row, sorted(lines, key=lambda line: line["rank"])), cells, found)
        return text.rstrip("\n") + " " + size(records, kind, lines, cells, found) + "\n"

    return table


def row(line: dict[str, Any]) -> tuple[str, ...]:
    """One method's cells."""
    name = f"**{line['method']}**" if line["method"] == OURS else line["method"]
    name += f" ({line['failed']} failed)" if line["failed"] else ""
    share, low, high = line["first_wins_%"] or ("", "", "")
    wins = f"{share} % ({low} to {high})" if share != "" else "–"
    elo, least, most = line["elo"]
    begin = name, f"{line['rank']:.2f}", f"{line['ratio']:.3f}", wins, f"{elo} ({least} to {most})"
    beside = (f"{line['auc']:.3f}", f"{100 * line['error']:.1f} %") if "auc" in line else ()
    costs = seconds(line["s_per_1000_rows"]), counted(round(line["kB"])), seconds(line["us_a_row"])
    return *begin, *beside, *costs


def size(records: list[dict[str, Any]], kind: str, lines: list[dict[str, Any]], cells: list[str], found: Found) -> str:
    """How many rows trained, how many splits there were, and whether the run came to its end."""
    own = [record for record in records if record["kind"] == kind]
    of_set = {record["set"]: 1 + max(r["split"] for r in own if r["set"] == record["set"]) for record in own}
    splits, fewer = max(of_set.values()), [name for name, n in of_set.items() if n < max(of_set.values())]
    those = f" (fewer of {', '.join(fewer)})" if fewer else ""
    ended = ", ".join(found.cells[cell]["status"] for cell in cells)
    of_all = f"{lines[0]['sets']} of {len({record['set'] for record in own})} sets begun have all methods"
    return (
        f"At most {max(record['max_rows'] for record in own):,} rows train, {splits} split{'s' * (splits > 1)}{those}; "
        f"{of_all} (the run: {ended}). Intervals are of sets drawn anew."
    )


BOARD_TABLES: dict[str, Callable[[Found], str]] = {
    f"{cell}-{kind}": board(kind, cell) for cell in ("board", "networks") for kind in LOSSES
}
