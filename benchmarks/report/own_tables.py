"""The tables of README and docs about ours by default and with few vectors, beside what users would take instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.report.doc_writing import counted, markdown, named, seconds, shape
from benchmarks.report.found import Found, Rows
from benchmarks.shared.fronts import is_never_beaten
from benchmarks.shared.settled import BY_TRAINING_ROWS

# Names of `few-vectors` and `defaults`.
AUTO, EXACT, THEIRS = 'SVC(max_basis="auto")', "SVC()", "scikit-learn SVC"


def first_screen(found: Found) -> str:
    """README's first table."""
    lines = {line["method"]: line for line in found.rows("first-screen", "table")}

    def told(method: str) -> str:
        line = lines[method]
        return f"{seconds(line['seconds'])} s, {errors_of(line)}, {vectors_of(line)} vectors"

    rows = [
        ("scikit-learn's `SVC`, faster", "`SVC(C=32, gamma=2)`",
         f"{told(EXACT)} (scikit-learn: {told(THEIRS)})"),
        ("a model that is small", "`SVC(C=32, gamma=2, max_basis=100)`", told("SVC(max_basis=100)")),
        ("the smallest model with nearly the same accuracy", '`SVC(C=32, gamma=2, max_basis="auto")`',
         f"{told(AUTO)}, a number chosen on held-out rows"),
        ("a better kernel, too", '`SVC(C=32, gamma="learn", max_basis=50)`', told('SVC(gamma="learn", max_basis=50)')),
    ]  # fmt: skip
    return markdown(("You want", "Write", "You get"), rows, ["first-screen"], found)


def errors_of(line: dict[str, Any]) -> str:
    """A test error; the median and the range where there are several seeds."""
    errors = [f"{run['error_percent']:.2f}" for run in line.get("runs", [])]
    most = sorted(errors, key=float)
    return f"{line['error_percent']:.2f} %" + (f" ({most[0]} to {most[-1]} %)" if most else "")


def vectors_of(line: dict[str, Any]) -> str:
    """Vectors; the median and the range where seeds disagree."""
    numbers = sorted({run["vectors"] for run in line.get("runs", [])})
    spread = f" ({counted(numbers[0])} to {counted(numbers[-1])})" if len(numbers) > 1 else ""
    return counted(line["vectors"]) + spread


def few_vectors(found: Found) -> str:
    """The table of ``max_basis="auto"``."""
    table = found.rows("few-vectors", "table")
    rows = []
    for name in dict.fromkeys(line["set"] for line in table):
        lines = {line["method"]: line for line in table if line["set"] == name}
        auto, exact, theirs = (lines[method] for method in (AUTO, EXACT, THEIRS))
        rows.append((
            named(name, shape(exact["rows"])),
            errors_of(auto), vectors_of(auto), seconds(auto["seconds"]),
            f"{exact['error_percent']:.2f} % ({counted(exact['vectors'])})", seconds(exact["seconds"]),
            seconds(theirs["seconds"]),
        ))  # fmt: skip
    head = (
        "set",
        '`SVC(max_basis="auto")`',
        "vectors",
        "seconds",
        "`SVC()` (vectors)",
        "seconds",
        "scikit-learn's `SVC`, seconds",
    )
    return markdown(head, rows, ["few-vectors"], found)


def defaults(found: Found) -> str:
    """Classifiers by default, beside scikit-learn's."""
    table = found.rows("defaults", "table")
    rows = []
    for name in dict.fromkeys(line["set"] for line in table if "error_percent" in line):
        lines = {line["machine"]: line for line in table if line["set"] == name}
        ours, theirs, auto = (lines[machine] for machine in (EXACT, "scikit-learn", AUTO))
        rows.append((
            f"{name}, {shape(ours['rows'])}", f"{ours['ratio']:.2f}", f"{ours['other']} ({theirs['other']})",
            f"{ours['error_percent']:.2f} % ({counted(ours['vectors'])})",
            f"{auto['error_percent']:.2f} % ({counted(auto['vectors'])})", f"{auto['of_exact']:.1f}",
        ))  # fmt: skip
    head = ("set, training rows", "`SVC()`: seconds by scikit-learn's", "others", "error (vectors)",
            '`max_basis="auto"`: error (vectors)', "seconds by `SVC()`'s")  # fmt: skip
    return markdown(head, rows, ["defaults"], found)


def targets(found: Found) -> str:
    """Regression by default, beside scikit-learn's."""
    lines = [line for line in found.rows("defaults", "table") if line["machine"] == "SVR()"]
    rows = [
        (f"{line['set']}, {shape(line['rows'])}", f"{line['ratio']:.2f}", f"{line['R2_apart']:.0e}") for line in lines
    ]
    return markdown(("set, training rows", "`SVR()`: seconds by scikit-learn's", "R² apart"), rows, ["defaults"], found)


def two_threads(found: Found) -> str:
    """The exact SVM with two threads, beside scikit-learn and scikit-learn-intelex."""
    cells = found.of("exact")
    records = [r for r in found.rows("exact", "records") if r["absent"] is None]
    rows = []
    for name in dict.fromkeys(record["data"] for record in records):
        lines = {record["method"]: record for record in records if record["data"] == name}
        ours = lines["slimsvm"]
        others = [lines.get(method) for method in ("scikit-learn", "scikit-learn-intelex")]
        rows.append((
            named(name, f"{ours['n_train']:,} rows"), seconds(ours["seconds"]),
            *(told for line in others for told in (
                (seconds(line["seconds"]), f"{line['seconds'] / ours['seconds']:.2g}") if line else ("–", "–"))),
            f"{100 * ours['test_error']:.2f} %", counted(ours["n_vectors"]),
        ))  # fmt: skip
    head = ("set", "`SVC()` s", "scikit-learn s", "times as fast", "scikit-learn-intelex s", "times as fast",
            "test error", "vectors")  # fmt: skip
    return markdown(head, rows, cells, found)


def peers(found: Found) -> str:
    """Least errors of ours and of all peers, and who has the front from one second on."""
    rows = []
    for cell in found.of("peers"):
        done = [record for record in found.results(cell).get("records", []) if record["status"] == "done"]
        if done:
            rows.append((f"{done[0]['data']}{mark(done[0])}, {done[0]['n_train']:,} × "
                         f"{done[0]['n_features']}", *least(done, True), *least(done, False),
                         "yes" if is_never_beaten(done) else "no"))  # fmt: skip
    head = ("set", "least error of ours", "which, seconds", "least error of peers", "which, seconds",
            "never beaten from 1 s on")  # fmt: skip
    return markdown(head, rows, found.of("peers"), found)


def mark(record: dict[str, Any]) -> str:
    """What says that a set has decided a default, and whether by rows that test."""
    if record["settled"]:
        return " *"
    return " °" if record["data"] in BY_TRAINING_ROWS else ""


def least(records: Rows, ours: bool) -> tuple[str, str]:
    """The least error and who has it, in how many seconds."""
    best = min((r for r in records if r["ours"] == ours), key=lambda r: (r["test_error"], r["seconds"]))
    return f"{100 * best['test_error']:.2f} %", f"{best['method']}, {seconds(best['seconds'])}"


SEARCHED = {
    "generated": "generated, two overlapping classes", "ijcnn1": "ijcnn1, first rows",
    "breast-cancer": "breast cancer", "wine": "wine, three classes",
}  # fmt: skip


def search(found: Found) -> str:
    """A grid of C and γ by folds, beside scikit-learn's search."""
    rows = []
    for line in found.rows("search", "table"):
        ours, theirs = (
            f"{value:,.0f}" if value >= 100 else seconds(value) for value in (line["slimsvm s"], line["sklearn s"])
        )
        rows.append((
            SEARCHED[line["set"]], f"{line['rows']:,}", ours, theirs, f"{line['times as fast']:.1f}",
            f"{line['scores apart, points']:.3f}", f"{line['best score %']:.2f} %",
        ))  # fmt: skip
    head = ("set", "rows", "`GridSearchSVC` s", "scikit-learn s", "times as fast", "apart", "best score")
    return markdown(head, rows, ["search"], found)


# Sets of tables with long tails, steps or many equal values, and methods as their columns.
RANKED = "spambase", "magic", "phoneme", "page-blocks0"
ON_RANKS = {
    "RBF": 'C="validate", gamma="validate"',
    "Laplacian": 'kernel="laplacian", C="validate", gamma="validate"',
    "RBF on normal ranks": 'normal ranks, C="validate", gamma="validate"',
    "Laplacian on normal ranks": 'normal ranks, kernel="laplacian", C="validate", gamma="validate"',
    "in learned scales": 'normal ranks, gamma="learn", solver="exact", kernel="laplacian", C=5',
}
IN_AXES = {
    "50 vectors": 'gamma="learn", max_basis=50',
    "200 vectors": 'gamma="learn", max_basis=200',
    "exact, Matérn 3/2": 'gamma="learn", solver="exact", kernel="matern32", C=5',
}


def normal_ranks(found: Found) -> str:
    """Errors with two kernels, of features and of their ranks."""
    errors = errors_of_peers(found)
    rows = [(name, *(in_percent(errors[name, method]) for method in ON_RANKS.values())) for name in RANKED]
    return markdown(("set", *ON_RANKS), rows, [f"peers {name}" for name in RANKED], found)


def learned_axes(found: Found) -> str:
    """Errors of features and in learned axes, of all sets."""
    errors, rows = errors_of_peers(found), []
    for name in dict.fromkeys(name for name, _ in errors):
        pairs = [
            [in_percent(errors.get((name, before + method))) for before in ("", "learned axes, ")]
            for method in IN_AXES.values()
        ]
        rows.append((name, *(", ".join(pair) for pair in pairs)))
    return markdown(("set", *IN_AXES), rows, found.of("peers"), found)


def errors_of_peers(found: Found) -> dict[tuple[str, str], float]:
    """The error of each set and method that came to its end."""
    records = found.rows("peers", "records")
    return {(r["data"], r["method"]): r["test_error"] for r in records if r["status"] == "done"}


def in_percent(error: float | None) -> str:
    """An error, or a dash where there is none."""
    return "–" if error is None else f"{100 * error:.2f}"


OWN_TABLES: dict[str, Callable[[Found], str]] = {
    "first-screen": first_screen,
    "few-vectors": few_vectors,
    "defaults": defaults,
    "targets": targets,
    "two-threads": two_threads,
    "search": search,
    "peers": peers,
    "normal-ranks": normal_ranks,
    "learned-axes": learned_axes,
}
