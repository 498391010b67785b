"""The section about CPSP: Joachims and Yu 2009, figures 1 to 3, tables 1 and 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report.found import Found, Rows
from benchmarks.report.verdicts import Check, Verdict, means, number

KIND = "subspace"
# All methods with the C and γ of the exact machine; incomplete Cholesky and the paper's CPSP(tr), with their own.
OBJECTIVES, COMPARATORS = "objectives", "comparators"
EXACT, PAPERS, OURS = "scikit-learn SVC", "CPSP (paper's)", "CPSP"
WITH_LINE = "CPSP (paper's, line search)"
# The same with training rows for vectors.
ON_ROWS = {PAPERS: "CPSP (paper's, training rows)", OURS: "CPSP (training rows)"}
FIXED = ("Nyström", "incomplete Cholesky")
OTHERS = ("LASVM", "CVM", "BVM")
# Points of error: a match with the exact machine; what two runs of one method differ by.
MATCH, CHANCE = 0.5, 0.1
# Exponents: of the vectors in the seconds, modestly above linear; of the rows, linear.
OF_VECTORS, OF_ROWS = 1.5, 1.2
LOST = (
    "The digits of the paper are lost in the text that we have, so that no number of it stands beside ours. CCAT "
    "cannot be had: money-fx, a class of Reuters, is here in its place; cod-rna and covtype are ours."
)


def items(found: Found) -> list[tuple[Any, ...]]:
    """Titles, what is to be said, tables and pictures."""
    sized = [
        record
        for kind in (KIND, COMPARATORS)
        for record in found.rows(kind, "records")
        if record.get("part") == "sizes" and record.get("test_error") is not None
    ]
    objectives = [record for record in found.rows(OBJECTIVES, "records") if record.get("objective_multiple")]
    of_vectors, of_rows = (found.tables(KIND, f"Growth with the {what}") for what in ("number", "rows"))
    return [
        (
            "Table 1: error at full size and with few vectors",
            table_1(found, sized),
            [found.tables(KIND, "Models of full size"), together(found, "Test error (%)")],
            [],
        ),
        (
            "Figure 1: error against the number of vectors",
            dominates(
                sized, "test_error", 100.0, CHANCE, "errs less than all other methods at every number of vectors"
            ),
            [found.tables(KIND, "Is CPSP")],
            found.pictures(KIND, "*figure-1.png"),
        ),
        (
            "Figure 2: objective against the number of vectors",
            dominates(
                objectives, "objective_multiple", 1.0, 0.01, "has the lowest objective at every number of vectors"
            ),
            [found.tables(OBJECTIVES, "Objective as a multiple")],
            found.pictures(OBJECTIVES, "*figure-2.png"),
        ),
        (
            "Table 2: vectors and seconds to come within 0.5 points of the exact machine",
            table_2(together(found, "Table 2")),
            [together(found, "Table 2")],
            [],
        ),
        (
            "Figure 3: seconds against vectors and against rows",
            exponents(of_vectors, of_rows),
            [of_vectors, of_rows],
            found.pictures(KIND, "*figure-3*.png"),
        ),
    ]


def together(found: Found, title: str) -> Rows:
    """Rows of tables of both kinds of cells, by set."""
    rows = found.tables(KIND, title) + found.tables(COMPARATORS, title)
    sets = list(dict.fromkeys(row["data"] for row in rows))
    return sorted(rows, key=lambda row: sets.index(row["data"]))


def by_size(records: Rows, value: str) -> dict[str, dict[str, dict[int | None, float]]]:
    """Of each set and method: means by the number of vectors; None: a model of full size."""
    found: dict[str, dict[str, dict[int | None, float]]] = {}
    for (data, method, k), mean in means(records, ("data", "method", "max_basis"), value).items():
        found.setdefault(data, {}).setdefault(method, {})[k] = mean
    return found


def table_1(found: Found, sized: Rows) -> Verdict:
    """The paper's three statements about the largest number of vectors."""
    checks = []
    vectors = by_size(sized, "n_vectors")
    for data, errors in by_size(sized, "test_error").items():
        if PAPERS not in errors or EXACT not in errors:
            continue
        k, error = max((size, error) for size, error in errors[PAPERS].items() if size)
        exact = errors[EXACT][None]
        told = f"{data}: CPSP with {k} vectors {100 * error:.2f} %, exact machine {100 * exact:.2f} %"
        checks.append(Check(100 * (error - exact) <= MATCH, told))
        for method in FIXED:
            if k in errors.get(method, {}):
                own = errors[method][k]
                checks.append(Check(own >= error - CHANCE / 100, f"{data}: {method} {100 * own:.2f} % with {k}"))
        counts = {method: vectors[data][method][None] for method in OTHERS if method in vectors[data]}
        if counts:
            told = ", ".join(f"{method} {count:,.0f}" for method, count in counts.items())
            checks.append(Check(min(counts.values()) > k, f"{data}: more vectors than {k} in {told}"))
    lacks = found.lacking(KIND) + found.lacking(COMPARATORS)
    more = (
        "CPSP here is the paper's Algorithm 2. With a line search between cuts it errs as the authors' program does on "
        "ijcnn1 with 100 vectors, C = 32 and γ = 2: 2.98 %, within 0.3 points in the median of nine runs; with full "
        f"steps, as the algorithm is written, 3.5 to 6 %. A test holds both. {LOST}"
    )
    if lacks:
        more += f" Lacking: {', '.join(lacks)}."
    return Verdict(
        "with its largest number of vectors CPSP is about as accurate as the exact machine; random rows (Nyström) and "
        "incomplete Cholesky are worse; CVM, BVM and LASVM are not competitive with so few vectors.",
        checks,
        "With random rows the convex problem is solved to a certified gap here; the paper's Algorithm 2 ends before.",
        more,
    )


def dominates(records: Rows, value: str, factor: float, chance: float, claim: str) -> Verdict:
    """Of how many sizes the paper's method and ours are no worse than each other method."""
    checks = []
    for data, found in by_size(records, value).items():
        for own, on_rows in ON_ROWS.items():
            for other in (on_rows, *FIXED):
                sizes = sorted(k for k in found.get(own, {}) if k and k in found.get(other, {}))
                better = [k for k in sizes if factor * (found[own][k] - found[other][k]) <= chance]
                if sizes:
                    told = f"{data}, {own} beside {other}: {len(better)} of {len(sizes)} sizes"
                    checks.append(Check(len(better) == len(sizes), told))
    return Verdict(
        f"CPSP {claim}, most clearly for few.",
        checks,
        "With more vectors than the boundary needs all methods do alike, and chance decides. The paper's Algorithm 2 "
        "ends by its own rule and has no intercept; random rows and Cholesky's have one here, and the convex problem "
        "in their span is solved to a gap of 0.1 %.",
        "Counted are sizes at which it is no worse, within what runs differ by.",
    )


def table_2(rows: Rows) -> Verdict:
    """Who needs the fewest vectors."""
    checks = []
    for data in dict.fromkeys(row["data"] for row in rows):
        needed = {row["method"]: row["vectors"] for row in rows if row["data"] == data}
        ours = min((needed[name] for name in (PAPERS, WITH_LINE) if name in needed), key=at_most, default="> 0")
        others = {name: needed[name] for name in (ON_ROWS[PAPERS], *FIXED) if name in needed}
        best = min(map(at_most, others.values()), default=np.inf)
        if others and min(at_most(ours), best) < np.inf:
            told = ", ".join(f"{name} {count}" for name, count in ({"CPSP": ours} | others).items())
            exact = next(row["exact SVM's vectors"] for row in rows if row["data"] == data)
            checks.append(Check(at_most(ours) < best, f"{data.split(' (')[0]}: {told}, exact machine {exact}"))
    return Verdict(
        "CPSP needs far fewer vectors than the other methods and the exact machine to come near its accuracy.",
        checks,
        "Some sizes alone are tried, and one step of them decides.",
        "Vectors of the paper's Algorithm 2, with or without a line search; of a set where none comes near, nothing is "
        "said.",
    )


def at_most(vectors: str) -> float:
    """A number of vectors; infinity where none was enough."""
    count = number(vectors)
    return np.inf if np.isnan(count) else count


def exponents(of_vectors: Rows, of_rows: Rows) -> Verdict:
    """How the paper's method grows."""
    checks = []
    for rows, most, name in ((of_vectors, OF_VECTORS, "k"), (of_rows, OF_ROWS, "n")):
        for row in rows:
            if row["method"] == PAPERS:
                exponent = number(row["seconds ~"])
                checks.append(Check(exponent <= most, f"{row['data']}: {name}^{exponent:.2f}"))
    return Verdict(
        "time grows modestly more than linearly with the vectors (k), and about linearly with the rows (n).", checks
    )
