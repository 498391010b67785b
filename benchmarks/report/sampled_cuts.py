"""The section about sampled cuts: Yu and Joachims 2008, figures 1 to 7, table 1 and theorems 1 to 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report.found import Found, Rows
from benchmarks.report.verdicts import Check, Verdict, means, number

KIND = "sampled-cuts"
LIBSVM = "scikit-learn SVC"
UNIFORM, VIOLATED = "uniform r=1000, paper's steps", "violated r=400, paper's steps"
# The exponent of the rows in the seconds: of a time that hardly grows, and of one that grows linearly.
FLAT, LINEAR = 0.5, (0.6, 1.4)
# Points of error: what the paper calls a narrow band and a flat curve; the errors of its table 1 above the exact ones.
BAND, UNIFORM_ABOVE, VIOLATED_ABOVE = 0.5, 0.5, 0.2
# Points of error by which runs differ by chance, in means of three of them.
CHANCE = 0.1
# The sample sizes and the C from which on the paper finds errors stable.
STABLE_SIZE, STABLE_C = 400, 0.1
SCALE = "Ψ(x, y) = ½ y φ(x) here, so that C is a quarter of the paper's."
# The paper's table 1, as far as its text can be read with certainty: test errors (%).
PAPERS_TABLE_1 = {
    "checkerboard": {
        "uniform r=400": 3.23, "uniform r=1000": 3.14, "violated r=400": 2.99, "violated r=1000": 2.95,
        "Cholesky(250)": 3.32, "SVMlight": 2.94,
    },
    "covtype": {
        "uniform r=400": 18.61, "uniform r=1000": 18.55, "Cholesky(250)": 21.85, "Cholesky(500)": 20.35,
        "SVMlight": 18.09,
    },
}  # fmt: skip


def items(found: Found) -> list[tuple[Any, ...]]:
    """Titles, what is to be said, tables and pictures."""
    records = [
        record for record in found.rows(KIND, "records") if "seconds" in record and record.get("status") != "time limit"
    ]
    scaling = [record for record in records if record["part"] == "scaling"]
    sampled = [record for record in records if record["part"] == "sample-size" and record.get("steps") == "paper"]
    growth, theorems = found.tables(KIND, "Growth with n"), found.tables(KIND, "Theorems")
    texts = {
        "Figure 1: seconds against rows": (time_against_rows(growth), [growth]),
        "Figure 2: training error against rows": (errors_against_rows(scaling, "train_error"), []),
        "Figure 3: test error against rows": (errors_against_rows(scaling, "test_error"), []),
        "Figure 4: seconds against the sample size": (time_against_sample_size(sampled), []),
        "Figure 5: iterations against the sample size": (iterations_against_sample_size(sampled), []),
        "Figure 6: training error against the sample size": (errors_against_sample_size(sampled, "train_error"), []),
        "Figure 7: test error against the sample size": (errors_against_sample_size(sampled, "test_error"), []),
    }
    figures = [
        (title, text, tables, found.pictures(KIND, f"*-figure-{number}.png"))
        for number, (title, (text, tables)) in enumerate(texts.items(), start=1)
    ]
    return [
        ("Table 1: time and error at the largest size", table_1(scaling), [with_papers(found)], []),
        *figures,
        ("Theorems 1 to 3 beside what was measured", bounds(theorems), [theorems], []),
    ]


def with_papers(found: Found) -> Rows:
    """Our table 1, sets side by side, and the paper's lines below."""
    told = found.tables(KIND, "Table 1", beside="method")
    if told:
        for method in dict.fromkeys(name for errors in PAPERS_TABLE_1.values() for name in errors):
            row = {"method": f"the paper's {method}, all rows"}
            for data, errors in PAPERS_TABLE_1.items():
                row |= {f"{data}: test error %": f"{errors[method]:.2f}" if method in errors else "–"}
            told.append(row)
    return told


def table_1(scaling: Rows) -> Verdict:
    """How far sampled cuts and incomplete Cholesky err from the exact machine at the largest size."""
    checks = []
    for data, rows, errors in at_every_size(scaling, "test_error"):
        if rows < max(record["n_train"] for record in scaling if record["data"] == data):
            continue
        exact = errors[LIBSVM]
        for method, error in errors.items():
            above = UNIFORM_ABOVE if method.startswith("uniform") else VIOLATED_ABOVE
            if "paper" in method:
                told = f"{data}, {method}: {error - exact:+.2f} points at {rows:,} rows, at most {above} asked"
                checks.append(Check(error - exact <= above + CHANCE, told))
        sampled = max(error for method, error in errors.items() if "paper" in method)
        for method in (method for method in errors if method.startswith("Cholesky")):
            told = f"{data}, {method}: {errors[method]:.2f} %, the worst sampled cuts {sampled:.2f} %"
            checks.append(Check(errors[method] >= sampled, told))
    return Verdict(
        "uniform cuts err 0.3 to 0.5 points more than SVMlight (here LIBSVM), violated cuts 0.2 more; incomplete "
        "Cholesky errs clearly more than both.",
        checks,
        "The convex problem in the span of Cholesky's rows is solved to a certified gap here, and a board of 16 "
        "squares needs no more than 250 rows. Part of why sampled cuts err more is C: the paper's Ψ, taken literally, "
        "means four times this one; and rows are fewer here.",
        f"{SCALE} The paper has up to a million rows; its line of violated cuts on covtype is lost in the text, and so "
        "are seconds.",
    )


def at_every_size(records: Rows, value: str) -> list[tuple[str, int, dict[str, float]]]:
    """Sets, rows, and what all methods have there in %, where LIBSVM is one of them."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for (data, rows, method), mean in means(records, ("data", "n_train", "method"), value).items():
        found.setdefault((data, rows), {})[method] = 100 * mean
    return [(*key, errors) for key, errors in sorted(found.items()) if LIBSVM in errors]


def time_against_rows(growth: Rows) -> Verdict:
    """The exponents beside the paper's."""
    checks = []
    for row in growth:
        exponent = number(row.get("seconds ~ n^"))
        if row.get("at fixed", "C") != "C" or np.isnan(exponent):
            continue
        told = f"{row['data']}, {row['method']}: n^{exponent:.2f}"
        if row["method"] == UNIFORM:
            checks.append(Check(exponent <= FLAT, told))
        elif row["method"] == VIOLATED:
            checks.append(Check(LINEAR[0] <= exponent <= LINEAR[1], told))
        elif row["method"] == LIBSVM:
            checks.append(Check(exponent > 1.0, told))
    return Verdict(
        "violated cuts grow linearly with the rows, uniform cuts hardly at all, SVMlight more than linearly.",
        checks,
        "At a fixed C the weight C n of the mean loss grows with the rows, and with it the number of cuts; at a fixed "
        "C n (the lines of C₁) uniform cuts hardly grow.",
        SCALE,
    )


def errors_against_rows(scaling: Rows, value: str) -> Verdict:
    """Whether the errors lie in a narrow band, and in which order."""
    gaps: dict[str, tuple[float, int]] = {}
    last: dict[str, tuple[int, dict[str, float]]] = {}
    for data, rows, errors in at_every_size(scaling, value):
        if UNIFORM in errors and VIOLATED in errors:
            three = [errors[method] for method in (UNIFORM, VIOLATED, LIBSVM)]
            gaps[data] = max(gaps.get(data, (0.0, 0)), (max(three) - min(three), rows))
            last[data] = rows, errors
    checks = [
        Check(gap <= BAND, f"{data}: at most {gap:.2f} points apart, at {rows:,} rows")
        for data, (gap, rows) in gaps.items()
    ]
    for data, (rows, errors) in last.items():
        exact, violated, uniform = (errors[method] for method in (LIBSVM, VIOLATED, UNIFORM))
        told = (
            f"{data}: at {rows:,} rows LIBSVM {exact:.2f}, violated cuts {violated:.2f}, uniform cuts {uniform:.2f} %"
        )
        checks.append(Check(exact <= violated + CHANCE and violated <= uniform + CHANCE, told))
    return Verdict(
        "SVMlight errs least, then violated cuts (r = 400), then uniform cuts (r = 1,000), never more than half a "
        "point apart.",
        checks,
        "Why is not known; the rows are others than the paper's, and on covtype the scaling, too.",
    )


def lines_of(sampled: Rows, value: str) -> dict[tuple[str, float], dict[int, float]]:
    """Of each oracle and C: means by sample size, ascending."""
    found: dict[tuple[str, float], dict[int, float]] = {}
    for (oracle, C, size), mean in sorted(means(sampled, ("oracle", "C", "sample_size"), value).items()):
        found.setdefault((oracle, C), {})[size] = mean
    return found


def time_against_sample_size(sampled: Rows) -> Verdict:
    """How much longer the largest sample takes than the smallest, of both oracles."""
    lines, checks = lines_of(sampled, "seconds"), []
    for C in sorted({C for _, C in lines}):
        uniform, violated = (lines.get((oracle, C), {}) for oracle in ("uniform", "violated"))
        both = sorted(uniform.keys() & violated.keys())
        if len(both) > 1:
            less, more = both[0], both[-1]
            of_violated, of_uniform = (line[more] / line[less] for line in (violated, uniform))
            told = f"C = {C:g}: {of_violated:.1f} and {of_uniform:.1f} times from r = {less:,} to {more:,}"
            checks.append(Check(of_violated <= of_uniform, told))
    return Verdict(
        "the time of violated cuts grows more slowly with the sample size than that of uniform cuts.",
        checks,
        more="Factors of violated and uniform cuts, without fits that met the time limit, as in the paper.",
    )


def iterations_against_sample_size(sampled: Rows) -> Verdict:
    """Whether larger samples need fewer iterations."""
    checks = []
    for (oracle, C), line in lines_of(sampled, "iterations").items():
        if len(line) > 1:
            (less, before), *_, (more, after) = line.items()
            told = f"{oracle}, C = {C:g}: {before:.0f} to {after:.0f} from r = {less:,} to {more:,}"
            checks.append(Check(after <= before, told))
    return Verdict("larger samples need fewer iterations.", checks)


def errors_against_sample_size(sampled: Rows, value: str) -> Verdict:
    """Whether errors hardly depend on the sample size."""
    checks = []
    for (oracle, C), line in lines_of(sampled, value).items():
        errors = [100 * error for size, error in line.items() if size >= STABLE_SIZE]
        if C >= STABLE_C and len(errors) > 1:
            spread = max(errors) - min(errors)
            told = f"{oracle}, C = {C:g}: within {spread:.2f} points from r = {STABLE_SIZE} on"
            checks.append(Check(spread <= BAND, told))
    return Verdict("but for very small samples (r = 100) and small C (0.01) the curves are flat.", checks)


def bounds(theorems: Rows) -> Verdict:
    """How far below the theorems' bounds what was measured is."""
    pairs = {
        "theorem 1's iterations": ("iterations", "theorem 1, at most"),
        "the excess of theorems 2 and 3": ("objective above the best bound", "theorem 2 or 3, at most"),
    }
    checks = []
    for name, (measured, bound) in pairs.items():
        shares = [number(row.get(measured)) / number(row.get(bound)) for row in theorems]
        shares = [share for share in shares if not np.isnan(share)]
        if shares:
            checks.append(Check(max(shares) <= 1.0, f"{name}: at most {max(shares):.1g} of the bound"))
    return Verdict("bounds on iterations and on how far the objective is from the best.", checks)
