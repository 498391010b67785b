"""The sections of the report: each figure and table of the four papers, what ours says of it, and the peers.

An item is (title, text, tables, pictures). What a text says of agreement is computed from the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report.found import Found, Rows
from benchmarks.shared.fronts import excesses, is_never_beaten

Item = tuple[str, str, list[Rows], list[Path]]
NOTHING = "Not measured in this run."


def said(rows: Iterable[Any], text: str) -> str:
    """The text, or that nothing was measured."""
    return text if list(rows) else NOTHING


# ---- sampled cuts


def sampled_cuts(found: Found) -> list[Item]:
    """Yu and Joachims 2008: figures 1 to 7, table 1, theorems."""
    kind = "sampled-cuts"
    rows = [row for row in found.rows(kind, "table") if row.get("part") == "scaling"]
    growth = found.tables(kind, "Growth with n")
    titles = {
        1: "seconds against rows", 2: "training error against rows", 3: "test error against rows",
        4: "seconds against the sample size", 5: "iterations against the sample size",
        6: "training error against the sample size", 7: "test error against the sample size",
    }  # fmt: skip
    items: list[Item] = [
        (
            "Table 1: time and error at the largest size",
            said(rows, errors_of_sampled(rows)),
            [found.tables(kind, "Table 1")],
            [],
        ),
        ("Growth with the rows", slopes(growth), [growth], []),
    ]
    for number, title in titles.items():
        pictures = found.pictures(kind, f"*-figure-{number}.png")
        text = "The paper's steps and ours side by side; Ψ(x, y) = ½ y φ(x) here, a quarter of the paper's C."
        items.append((f"Figure {number}: {title}", said(pictures, text), [], pictures))
    theorems = found.tables(kind, "Theorems")
    text = "Iterations stay far below theorem 1's bound, the excess far below those of theorems 2 and 3: all are loose."
    items.append(("Theorems 1 to 3 beside what was measured", said(theorems, text), [theorems], []))
    return items


def errors_of_sampled(rows: Rows) -> str:
    """How far sampled cuts err from exact ones."""
    largest = max(row["rows"] for row in rows)
    errors = {row["method"]: row.get("test error %") for row in rows if row["rows"] == largest}
    exact = errors.get("exact")
    near = [name for name, error in errors.items() if "paper" in name and number(error) - number(exact) <= 0.5]
    return (
        f"At {largest:,} rows exact cuts err in {exact} %; within half a point of it: {', '.join(near) or 'none'} of "
        "the paper's sampled ones. The paper finds sampled cuts as good as exact ones from a few hundred samples on."
    )


def number(text: Any) -> float:
    """The first number of a cell such as "5.1 ± 0.2"."""
    try:
        return float(str(text).split()[0].replace(",", ""))
    except (ValueError, IndexError):
        return float("nan")


def slopes(growth: Rows) -> str:
    """The exponents beside the paper's."""
    if not growth:
        return (
            "Too few sizes in this run. The paper: exact cuts quadratic, violated cuts linear, uniform cuts constant."
        )
    told = "; ".join(f"{row['data']}, {row['method']}: {row['seconds ~ n^']}" for row in growth)
    return (
        "The paper: exact cuts quadratic, violated cuts linear, uniform cuts constant. Here, exponents of the rows in "
        f"the seconds: {told}."
    )


# ---- BSCA


def bsca(found: Found) -> list[Item]:
    """Qaadan, Schüler, Glasmachers 2018: figures 1 to 8, table 1."""
    kind = "budget"
    table_1, summary = found.rows(kind, "table_1"), found.rows(kind, "table")
    rows, limits = found.rows(kind, "acceptance"), found.rows(kind, "lemma_2")
    limits = [{name: value for name, value in row.items() if name != "shares"} for row in limits]
    return [
        ("Table 1: sets, C, γ and the exact machine", lacking(found, kind), [table_1], []),
        (
            "Figures 1 to 8, a picture for each set",
            "1 and 7: objectives; 2 and 5: test error; 3 and 8: steps that merge; 4: without a budget; 6: BSCA's. "
            "bsca and bsgd are the paper's, our-bsca and our-bsgd have damped steps and means of models.",
            [],
            found.pictures(kind, "budget-*.png"),
        ),
        ("How soon BSCA is as good as BSGD, and how steady both end", sooner(rows), [rows], []),
        ("Errors at the end, with and without the convex finish", gain(summary), [summary], []),
        ("Lemma 2: steps that change the model without a budget", shares(limits), [limits], []),
    ]


def lacking(found: Found, kind: str) -> str:
    """Which cells ended without results."""
    gone = [
        f"{name} ({found.cells[name]['status']})" for name in found.of(kind) if found.cells[name]["status"] != "done"
    ]
    return f"Lacking: {', '.join(gone)}." if gone else "All cells of this run are done."


def sooner(rows: Rows) -> str:
    """The paper's main claim, counted."""
    if not rows:
        return NOTHING
    share = "BSCA is there after this share of BSGD's time"
    there = [row for row in rows if row[share] is not None]
    half = sum(row[share] <= 0.5 for row in there)
    steady = sum(row["± of bsca's last epochs %"] <= row["± of bsgd's last epochs %"] for row in rows)
    return (
        f"The paper: BSCA is as good as BSGD much sooner, and steadier. Here it gets to BSGD's last error in "
        f"{len(there)} of {len(rows)} cases, in {half} of them in half of the time or less; its last epochs vary less "
        f"in {steady}."
    )


def gain(rows: Rows) -> str:
    """What damping and means of models change."""
    plain = {(row["data"], row["B"], row["method"]): row.get("plain %") for row in rows}
    pairs = [
        (plain[data, budget, f"our-{method}"], value)
        for (data, budget, method), value in plain.items()
        if value is not None and plain.get((data, budget, f"our-{method}")) is not None
    ]
    if not pairs:
        return NOTHING
    better = sum(ours <= papers for ours, papers in pairs)
    change = np.mean([ours - papers for ours, papers in pairs])
    return (
        f"Before the finish ours errs no more than the paper's form in {better} of {len(pairs)} cases; its errors are "
        f"{change:+.2f} points from theirs in the mean."
    )


def shares(rows: Rows) -> str:
    """Lemma 2 beside what was observed."""
    known = [(row["observed"], row["limit"]) for row in rows if row.get("limit")]
    if not known:
        return NOTHING
    most = max(abs(observed / limit - 1) for observed, limit in known)
    return (
        f"Observed shares are within {100 * most:.0f} % of the lemma's limits; rows drawn with replacement take longer."
    )


# ---- cross-training

# The paper's table 1: vectors and accuracy (%) of its SVM, then of cross-training.
PAPERS_TABLE_1 = {
    "banana": (111, 89.0, 51, 88.2), "waveform": (172, 90.2, 87, 88.7), "splice": (601, 90.0, 522, 89.9),
    "adult-3185": (1207, 84.2, 606, 84.2), "adult": (11_325, 85.1, 1194, 84.8),
    "covtype-50000": (12_476, 90.3, 7967, 89.2), "covtype-90000": (18_983, 91.6, 13_023, 90.7),
}  # fmt: skip


def cross_training(found: Found) -> list[Item]:
    """Bakır, Bottou, Weston 2004: figures 1 to 4, table 1."""
    kind, growth = "cross-training", found.rows("cross-training", "growth")
    table = found.rows(kind, "table")
    of_sets = [row for row in table if row["data"] not in ("squares", "gaussians", "mnist-38")]
    return [
        (
            "Figure 1: vectors against the overlap of two squares",
            said(
                found.pictures(kind, "*overlap.png"),
                "Vectors of the exact machine grow with the overlap, nearly all at the bound; cross-training's do not.",
            ),
            [[row for row in table if row["data"] == "squares"]],
            found.pictures(kind, "*overlap.png"),
        ),
        ("Figure 2", "The text of the paper that we have says nothing of it: lacking.", [], []),
        (
            "Figure 3: two Gaussians, vectors against rows",
            grown(growth, "gaussians"),
            [[row for row in growth if row["data"] == "gaussians"]],
            found.pictures(kind, "*gaussians.png"),
        ),
        (
            "Figure 4: MNIST 3 against 8 with labels turned round",
            grown(growth, "mnist-38"),
            [[row for row in table if row["data"] == "mnist-38"]],
            [*found.pictures(kind, "*noise.png"), *found.pictures(kind, "*size.png")],
        ),
        (
            "Table 1: benchmark sets",
            f"{beside_paper(of_sets)} {lacking(found, kind)} p: McNemar's, beside the exact machine.",
            [with_papers(of_sets)],
            [],
        ),
    ]  # fmt: skip


def with_papers(rows: Rows) -> Rows:
    """Rows of sets, each followed by what the paper has."""
    told: Rows = []
    for name in dict.fromkeys(row["data"] for row in rows):
        told += [row for row in rows if row["data"] == name]
        if name in PAPERS_TABLE_1:
            vectors, right, few, right_with_few = PAPERS_TABLE_1[name]
            told += [
                {"data": name, "method": "the paper's SVM", "vectors": vectors, "error %": round(100 - right, 1)},
                {
                    "data": name,
                    "method": "the paper's cross-training",
                    "vectors": few,
                    "error %": round(100 - right_with_few, 1),
                },
            ]
    return told


def beside_paper(rows: Rows) -> str:
    """How the paper's recipe does here and there, beside the exact machine: vectors, and points of error more."""
    known = {(row["data"], row["method"]): row for row in rows}
    told = []
    for name, (vectors, right, few, right_with_few) in PAPERS_TABLE_1.items():
        exact, ours = known.get((name, "exact")), known.get((name, "paper"))
        if exact and ours:
            more = ours["error %"] - exact["error %"]
            told.append(
                f"{name} {ours['vectors'] / exact['vectors']:.2f} and {more:+.1f} ({few / vectors:.2f} and "
                f"{right - right_with_few:+.1f})"
            )
    text = (
        "Vectors of the paper's recipe by the exact machine's and points of error more, in brackets the paper's own: "
    )
    return said(told, text + "; ".join(told) + ".")


def grown(growth: Rows, data: str) -> str:
    """How vectors grow with the rows, by method."""
    rows = [row for row in growth if row["data"] == data]
    told = "; ".join(
        f"{row['method']}{'' if row['noise'] is None else ', noise ' + str(row['noise'])}: {row['growth']:.2f} times "
        f"from {row['from n']:,} to {row['to n']:,} rows"
        for row in rows
    )
    return said(
        rows, f"The paper: vectors grow with the rows but for cross-training, whose number stays. Here: {told}."
    )


# ---- CPSP


def cpsp(found: Found) -> list[Item]:
    """Joachims and Yu 2009: figures 1 to 3, tables 1 and 2."""
    kind = "subspace"
    errors = found.tables(kind, "Test error (%)")
    order = found.tables(kind, "Is CPSP")
    return [
        (
            "Table 1: error at full size and with few vectors",
            "CPSP (paper's) is Algorithm 2; with a line search it errs as the authors' program does (ijcnn1, 100 "
            f"vectors: 2.98 %). {lacking(found, kind)}",
            [found.tables(kind, "Models of full size"), errors],
            [],
        ),
        (
            "Figures 1 and 2: error against the number of vectors; training rows in place of vectors anywhere",
            said(order, "The paper: CPSP is never worse than CPSP with training rows or than random rows."),
            [order],
            [*found.pictures(kind, "*figure-1.png"), *found.pictures(kind, "*figure-2.png")],
        ),
        (
            "Table 2: vectors and seconds to come within 0.5 points of the exact machine",
            said(
                errors, "Fewer vectors than the paper's comparators need, as the paper has it; sizes of this run alone."
            ),
            [found.tables(kind, "Table 2")],
            [],
        ),
        (
            "Figure 3: seconds against vectors and against rows",
            said(
                errors, "The paper: time grows more slowly than with the square of the vectors, and linearly with rows."
            ),
            [found.tables(kind, "Growth with the number"), found.tables(kind, "Growth with the rows")],
            found.pictures(kind, "*figure-3.png"),
        ),
    ]


# ---- peers


def peers(found: Found) -> list[Item]:
    """What users would take instead."""
    records = found.rows("peers", "records")
    items: list[Item] = []
    beaten = []
    for name in dict.fromkeys(record["data"] for record in records):
        own = [record for record in records if record["data"] == name]
        done = [record for record in own if record["status"] == "done"]
        if done and not is_never_beaten(done):
            beaten.append(f"{name} ({how_beaten(done)})")
        shape = own[0]
        text = f"{own[0].get('said')}."
        if done:
            text = (
                f"{shape['n_train']:,} training rows, {shape['n_features']} features, {shape['n_classes']} classes. "
                f"It settled {'a default' if shape['settled'] else 'nothing'} of ours. {best_of(done)}"
            )
        columns = ("method", "status", "test_error", "seconds", "predict_us", "n_vectors", "said")
        rows = [{key: record.get(key) for key in columns} for record in own]
        items.append((name, text, [rows], found.pictures("peers", f"peers-{name.replace(' ', '-')}.png")))
    sets = {record["data"] for record in records if record["status"] == "done"}
    text = (
        f"On {len(sets) - len(beaten)} of {len(sets)} sets a model of ours errs no more than all peers at every time "
        f"of a fit from one second on. On the others some peer errs less: {'; '.join(beaten) or 'none'}."
    )
    return [("In short", said(sets, text), [], []), growth_of_peers(found), *items]


def how_beaten(records: Rows) -> str:
    """From when to when, and by how much."""
    there = excesses(records)
    times = [seconds for seconds, excess in there if excess > 0]
    later = [seconds for seconds, _ in there if seconds > times[-1]]
    most, n_test = max(excess for _, excess in there), records[0]["n_train"] * 3 // 7
    error = min(record["test_error"] for record in records)
    chance = ", less than a standard error of the test rows" if most < np.sqrt(error * (1 - error) / n_test) else ""
    until = f"until {later[0]:.2g} s" if later else "to the end"
    return f"from {times[0]:.2g} s {until}, by {100 * most:.2g} points at most{chance}"


def growth_of_peers(found: Found) -> Item:
    """Seconds against rows."""
    rows = found.rows("scaling", "table")
    told = "; ".join(f"{row['data']}, {row['method']}: n^{row['exponent']}" for row in rows if row.get("exponent"))
    return ("Seconds against rows", said(rows, f"Exponents: {told}."), [rows], found.pictures("scaling", "scaling-*"))


def best_of(records: Rows) -> str:
    """The least error of ours and of the others."""
    told = []
    for who, is_ours in (("ours", True), ("others", False)):
        own = [record for record in records if record["ours"] == is_ours]
        if own:
            best = min(own, key=lambda record: record["test_error"])
            told.append(f"{who}: {100 * best['test_error']:.2f} % in {best['seconds']:.2g} s ({best['method']})")
    return "Least error, " + "; ".join(told) + "."


SECTIONS: dict[str, Callable[[Found], list[Item]]] = {
    "Sampled cuts (Yu and Joachims 2008)": sampled_cuts,
    "BSCA (Qaadan, Schüler, Glasmachers 2018)": bsca,
    "Cross-training (Bakır, Bottou, Weston 2004)": cross_training,
    "CPSP (Joachims and Yu 2009)": cpsp,
    "Peers": peers,
}
