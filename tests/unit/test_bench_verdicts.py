"""What the report says of the papers: claims that hold and claims that do not, on made-up numbers."""

import json

import numpy as np
import pytest

from benchmarks.report import bsca, cpsp, cross_training, sampled_cuts
from benchmarks.report.found import Found
from benchmarks.report.verdicts import Check, Verdict, means, number, overview


def parts_of(verdict):
    """What agrees and what does not."""
    told = {True: [], False: []}
    for check in verdict.checks:
        told[check.holds].append(check.told)
    return tuple("; ".join(told[holds]) + "." * bool(told[holds]) for holds in (True, False))


def test_a_verdict_has_the_claim_both_sides_and_the_reason_only_where_something_differs():
    both = Verdict("it grows.", [Check(True, "a 2"), Check(False, "b 1"), Check(True, "c 3")], "Few rows.", "Units.")
    assert str(both) == "The paper: it grows.\n2 of 3 checks agree.\nFew rows.\nUnits."
    assert [row["checked"] for row in both.table if row[""] == "✓"] == ["a 2", "c 3"]
    all_agree = Verdict("it grows.", [Check(True, "a 2")], "Few rows.")
    assert str(all_agree) == "The paper: it grows.\n1 of 1 checks agree."
    nothing = Verdict("it grows.", [], "Few rows.", "Units.")
    assert str(nothing) == "The paper: it grows.\nNot measured in this run.\nUnits."
    assert overview([("Figure 1: growth", both, [], []), ("Figure 2", "Lacking.", [], [])]) == [
        {"figure or table": "Figure 1", "agree": 2, "do not agree": 1}
    ]


def test_means_and_numbers_of_cells():
    records = [{"data": "a", "x": 1.0}, {"data": "a", "x": 2.0}, {"data": "b", "x": None}, {"data": "b"}]
    assert means(records, ("data",), "x") == {("a",): 1.5}
    assert [number(text) for text in ("1,234 (5)", "k^0.50", "5.1 ± 0.2")] == [1234.0, 0.5, 5.1]
    assert all(np.isnan(number(text)) for text in ("> 500", "–", "", None))


# ---- sampled cuts


def cuts(**errors):
    """Records of fits at 1,000 rows with these test errors, in points."""
    names = {"svm": "scikit-learn SVC", "violated": sampled_cuts.VIOLATED, "uniform": sampled_cuts.UNIFORM}
    return [
        {"data": "d", "n_train": 1000, "method": names[key], "test_error": error / 100} for key, error in errors.items()
    ]


def test_sampled_cuts_errors_have_to_lie_in_a_band_and_in_order():
    agrees, differs = parts_of(sampled_cuts.errors_against_rows(cuts(svm=5, violated=5.2, uniform=5.4), "test_error"))
    assert "d: at most 0.40 points apart, at 1,000 rows" in agrees
    assert "LIBSVM 5.00, violated cuts 5.20, uniform cuts 5.40 %" in agrees
    assert not differs
    agrees, differs = parts_of(sampled_cuts.errors_against_rows(cuts(svm=5, violated=6, uniform=5.2), "test_error"))
    assert not agrees
    assert "d: at most 1.00 points apart" in differs
    assert "violated cuts 6.00" in differs


@pytest.mark.parametrize(("method", "exponent", "holds"), [
    (sampled_cuts.UNIFORM, 0.1, True), (sampled_cuts.UNIFORM, 0.8, False), (sampled_cuts.VIOLATED, 1.0, True),
    (sampled_cuts.VIOLATED, 1.8, False), ("scikit-learn SVC", 2.0, True), ("scikit-learn SVC", 0.9, False),
])  # fmt: skip
def test_sampled_cuts_time_against_rows(method, exponent, holds):
    row = {"at fixed": "C", "data": "d", "method": method, "seconds ~ n^": str(exponent)}
    text = sampled_cuts.time_against_rows([row, {**row, "at fixed": "C₁", "seconds ~ n^": "9"}], [])
    assert parts_of(text)[0 if holds else 1].startswith(f"d, {method}: n^{exponent:.2f}.")
    assert "n^9" not in str(text)


def sampled(value, lines):
    """Records of sample sizes 100 and 4,000, of each oracle, at C = 1."""
    return [
        {"oracle": oracle, "C": 1.0, "sample_size": size, value: number}
        for oracle, numbers in lines.items()
        for size, number in zip((100, 400, 4000), numbers, strict=True)
    ]


def test_sampled_cuts_against_the_sample_size():
    lines = {"violated": (1.0, 1.0, 2.0), "uniform": (1.0, 2.0, 9.0)}
    agrees, _ = parts_of(sampled_cuts.time_against_sample_size(sampled("seconds", lines)))
    assert agrees == "C = 1: 2.0 and 9.0 times from r = 100 to 4,000."
    lines = {"violated": lines["uniform"], "uniform": lines["violated"]}
    _, differs = parts_of(sampled_cuts.time_against_sample_size(sampled("seconds", lines)))
    assert "9.0 and 2.0 times" in differs
    text = sampled_cuts.iterations_against_sample_size(
        sampled("iterations", {"violated": (90, 60, 50), "uniform": (40, 45, 50)})
    )
    assert parts_of(text)[0] == "violated, C = 1: 90 to 50 from r = 100 to 4,000."
    assert "uniform, C = 1: 40 to 50" in parts_of(text)[1]
    errors = {"violated": (0.5, 0.2, 0.202), "uniform": (0.2, 0.2, 0.21)}
    text = sampled_cuts.errors_against_sample_size(sampled("test_error", errors), "test_error")
    assert parts_of(text)[0] == "violated, C = 1: within 0.20 points from r = 400 on."
    assert "uniform, C = 1: within 1.00 points" in parts_of(text)[1]


def test_bounds_have_to_be_bounds():
    row = {"iterations": "85", "theorem 1, at most": "8e+09", "theorem 2 or 3, at most": "5"}
    text = sampled_cuts.bounds([{**row, "objective above the best bound": "10"}])
    assert parts_of(text)[0].startswith("theorem 1's iterations: at most 1e-08")
    assert parts_of(text)[1].startswith("the excess of theorems 2 and 3: at most 2")


# ---- BSCA


def curve(errors, primal=None, dual=None):
    """An averaged curve of as many epochs."""
    n = len(errors)
    default = np.linspace(2, 1, n)
    return {
        "seconds": np.arange(1.0, n + 1),
        "test_error": np.array(errors) / 100,
        "primal": default if primal is None else np.array(primal),
        "dual": -default if dual is None else np.array(dual),
    }


def test_bsca_errors_beside_the_exact_machine_and_bsgd():
    curves = {("d", "bsca", 500): curve([5.0] * 6), ("d", "bsgd", 500): curve([6.0] * 6)}
    summary = [{"data": "d", "exact %": 4.5}]
    sooner = [{"data": "d", "B": 500, bsca.SOON: 0.5}]
    assert parts_of(bsca.errors(curves, sooner, summary)) == (
        "d: BSCA 5.00 %, exact machine 4.50 %; d: BSCA has BSGD's last error after 0.5 of the time.",
        "",
    )
    _, differs = parts_of(bsca.errors(curves, [{**sooner[0], bsca.SOON: None}], [{**summary[0], "exact %": 3.5}]))
    assert differs.startswith("d: BSCA 5.00 %, exact machine 3.50 %; d: BSCA has BSGD's last error never.")


def test_bsca_objectives_and_drift():
    low, high = curve([5.0] * 6), curve([5.0] * 6, primal=[2, 2, 2, 2, 2, 2.0])
    curves = {("d", "bsca", 500): low, ("d", "bsgd", 500): high}
    agrees, differs = parts_of(bsca.objectives(curves))
    assert "BSCA's dual rises" in agrees
    assert not differs
    falls = curve([5.0] * 6, dual=[0, 1, 2, 3, 2, 1.0])
    _, differs = parts_of(bsca.objectives({("d", "bsca", 500): falls, ("d", "bsgd", 500): low}))
    assert "BSCA's dual falls" in differs
    rises = curve([5.0] * 6, primal=[2, 1, 1, 1, 1, 1.5])
    two = {("d", "bsca", 200): rises, ("d", "bsca", 500): low}
    assert "ends 50 % above its least with 200, 0 % with 500" in parts_of(bsca.drift(two))[0]
    assert "with 200, 50 % with 500" in parts_of(bsca.drift({(d, m, 700 - b): c for (d, m, b), c in two.items()}))[1]


def test_bsca_merges_small_budgets_and_runs_without_a_budget():
    rows = [
        {"data": "d", "B": 200, "method": method, "merges": 0.1, "limit": limit}
        for method, limit in (("bsca", 0.1), ("bsgd", 0.15))
    ]
    assert parts_of(bsca.merges(rows, rows))[0] == "d, B = 200: bsca 0.1 (lemma 0.1), bsgd 0.1 (lemma 0.15)."
    assert "lemma 0.01" in parts_of(bsca.merges(rows, [{**rows[0], "limit": 0.01}, rows[1]]))[1]
    both = {("d", "bsca", 200): curve([5.0] * 6), ("d", "bsgd", 200): curve([4.0] * 6)}
    assert parts_of(bsca.small_budget(both))[1].startswith("d: BSCA 5.00 %, BSGD 4.00 %")
    of_ijcnn1 = {("ijcnn1", method, size): found for (_, method, size), found in both.items()}
    assert parts_of(bsca.small_budget(of_ijcnn1))[0].startswith("ijcnn1: BSCA 5.00 %")  # where the paper's fails, too
    two = {("d", "bsca", 200): curve([5.0] * 6), ("d", "bsca", 500): curve([2.0] * 6)}
    assert "B = 200 errs +3.00 points more" in parts_of(bsca.two_budgets(two))[1]
    free = {
        ("d", method): [{"test_error": error} for error in errors]
        for method, errors in (("bsca", [0.1, 0.1]), ("bsgd", [0.1, 0.2]))
    }
    assert parts_of(bsca.without_budget(free))[0] == "d: bsca 10.00 ± 0.00 %, bsgd 15.00 ± 5.00 %."


def test_bsca_after_many_epochs_and_after_few():
    few = [{"data": "d", "B": 200, bsca.SOON: None, "± of bsca's last epochs %": 2, "± of bsgd's last epochs %": 1}]
    many = [{**few[0], bsca.SOON: 0.4}]
    later = bsca.later(bsca.times(many), bsca.times(few))
    assert parts_of(later)[0] == "BSCA gets to BSGD's last error in 1 of 1 cases; in half of BSGD's time or less in 1."
    assert str(later).endswith("After few (budget), 0 of 3 checks agree.")
    assert bsca.later(bsca.times([]), bsca.times(few)) == bsca.times(few)
    assert "Not measured in this run." in str(bsca.later(bsca.times([]), bsca.times([])))


# ---- cross-training


def test_cross_training_grows_and_errs():
    row = {"data": "d", "noise": 0.1, "from n": 1000, "to n": 5000}
    rows = [{**row, "method": method, "growth": growth} for method, growth in (("exact", 4.5), ("paper", 1.2))]
    assert [check.holds for check in cross_training.growths(rows)] == [True, True]
    swapped = [{**rows[0], "growth": 1.2}, {**rows[1], "growth": 4.5}]
    assert [check.holds for check in cross_training.growths(swapped)] == [False, False]
    fits = [
        {"n": n, "noise": 0.1, "method": method, "test_error": error}
        for n in (100, 500)
        for method, error in (("exact", 0.1 if n == 500 else 0.5), ("paper", 0.105), ("default", 0.12))
    ]
    assert [(check.holds, check.told) for check in cross_training.differences(fits, "test_error", "error")] == [
        (True, "the paper's recipe, noise 0.1: error +0.50 points"),
        (False, "ours, noise 0.1: error +2.00 points"),
    ]


def test_cross_training_overlap_and_table(tmp_path):
    rows = [
        {"method": method, "overlap": overlap, "vectors": vectors, "at bound": vectors // 2}
        for method, counts in (("exact", (10, 100)), ("paper", (5, 60)), ("default", (2, 2)))
        for overlap, vectors in zip((0.0, 0.8), counts, strict=True)
    ]
    agrees, differs = parts_of(cross_training.overlap(rows))
    assert "exact machine: 10 to 100 vectors from overlap 0 to 0.8, 50 % of them at the bound" in agrees
    assert "ours: 2 to 2 vectors" in agrees
    assert differs == "the paper's recipe: 5 to 60 vectors."
    table = [
        {"data": "banana", "method": method, "vectors": vectors, "error %": error}
        for method, vectors, error in (("exact", 100, 12.0), ("paper", 40, 13.0), ("default", 30, 14.0))
    ]
    agrees, differs = parts_of(cross_training.table_1(Found(tmp_path), table))
    assert agrees == "banana, the paper's recipe: 0.40 of the vectors, error +1.0 points (paper 0.46, +0.8)."
    assert differs.startswith("banana, ours: 0.30 of the vectors, error +2.0 points")
    last = cross_training.with_papers(table)[-1]
    assert (last["vectors"], last["error %"]) == (51, 11.8)


# ---- CPSP


def sized(errors, data="adult", value="test_error", n_train=32_561, runs=2, apart=0.0):
    """Records by method and number of vectors: two runs, whose mean is given, and their distance."""
    return [
        {
            "data": data, "method": method, "max_basis": k, "n_train": n_train, "n_test": 10_000,
            "n_vectors": k or 900, "intercept": "none", value: mean + apart * (run - (runs - 1) / 2),
        }
        for method, by_size in errors.items()
        for k, mean in by_size.items()
        for run in range(runs)
    ]  # fmt: skip


def lines_of(checks, ours=False):
    """What is told of the paper's methods, or of ours, and whether it holds."""
    return {check.told: check.holds for check in checks if check.ours == ours}


def test_cpsp_is_compared_with_the_exact_machine_and_others_at_its_largest_size():
    errors = {
        cpsp.EXACT: {None: 0.05}, cpsp.PAPERS: {10: 0.2, 1000: 0.052, 2000: 0.9}, cpsp.OURS: {1000: 0.08},
        "Nyström": {1000: 0.053}, "incomplete Cholesky": {1000: 0.2}, "LASVM": {None: 0.05},
        cpsp.LINEAR: {None: 0.051},
    }  # fmt: skip
    verdict = cpsp.table_1(sized(errors))
    assert lines_of(verdict.checks) == {
        "adult: CPSP (paper's) with 1000 vectors 5.20 %, exact machine 5.00 % (at most 1.12 points apart)": True,
        "adult: Nyström with 1000 vectors +0.10 ± 0.63 points beside CPSP (paper's), by the paper above": False,
        "adult: incomplete Cholesky with 1000 vectors +14.80 ± 0.91 points beside CPSP (paper's), "
        "by the paper above": True,
        "adult: linear machine +0.10 ± 0.62 points beside the exact one, by the paper level": True,
        "adult: scikit-learn SVC has 900 vectors, more than 1000": False,
        "adult: LASVM has 900 vectors, more than 1000": False,
    }
    ours = lines_of(verdict.checks, ours=True)
    assert ours["adult: CPSP with 1000 vectors 8.00 %, exact machine 5.00 % (at most 1.20 points apart)"] is False
    assert verdict.sizes == "adult 32,561 / ≤ 32,561"
    on_ocr = lines_of(cpsp.table_1(sized(errors, data="OCR0", n_train=20_000)).checks)
    name = "OCR0 (20,000 of 60,000 rows)"
    assert on_ocr[f"{name}: Nyström with 1000 vectors +0.10 ± 0.63 points beside CPSP (paper's), by the paper level"]
    assert not on_ocr[f"{name}: linear machine +0.10 ± 0.62 points beside the exact one, by the paper above"]
    assert cpsp.table_1(sized(errors, data="money-fx")).checks == []
    limited = [{**record, "status": "time limit"} for record in sized(errors)]
    assert "adult: CPSP (paper's) with 1000 vectors (time limit) 5.20 %" in cpsp.table_1(limited).checks[0].told


def test_what_differs_by_chance_grows_with_what_runs_differ_by():
    steady, unsteady = (
        cpsp.by_size(sized({"CPSP": {10: 0.05}}, apart=apart), "test_error")["adult"]["CPSP"][10]
        for apart in (0.0, 0.02)
    )
    assert unsteady.error == pytest.approx(0.01)
    of_rows = 2 * 0.05 * 0.95 / 10_000
    assert cpsp.margin(steady, steady) == pytest.approx(200 * np.sqrt(of_rows))
    assert cpsp.margin(steady, unsteady) == pytest.approx(200 * np.sqrt(of_rows + 0.01**2))


def test_cpsp_beside_others_at_every_size():
    errors = {
        cpsp.PAPERS: {10: 0.1, 20: 0.05, 2000: 0.9}, "Nyström": {10: 0.2, 20: 0.04, 2000: 0.1},
        "incomplete Cholesky": {10: 0.2, 20: 0.051}, cpsp.ON_ROWS[cpsp.PAPERS]: {10: 0.1, 20: 0.05},
    }  # fmt: skip
    checks = lines_of(cpsp.figure_1(sized(errors)).checks)
    assert checks == {
        "adult, CPSP (paper's) beside CPSP (paper's, training rows): below at 0, above at 0 of 2 sizes": False,
        "adult, CPSP (paper's) beside Nyström: below at 1, above at 1 of 2 sizes": False,
        "adult, CPSP (paper's) beside incomplete Cholesky: below at 1, above at 0 of 2 sizes": True,
    }
    multiples = {cpsp.OURS: {10: 2.0, 20: 1.5}, "Nyström": {10: 3.0, 20: 1.4995}}
    checks = lines_of(cpsp.figure_2(sized(multiples, value="objective_multiple")).checks, ours=True)
    assert checks == {"adult, CPSP beside Nyström: below at 1, above at 0 of 2 sizes": True}
    limited = [{**record, "status": "time limit"} for record in sized(errors)]
    assert next(iter(lines_of(cpsp.figure_1(limited).checks))).endswith("(2 with a fit that met the time limit)")
    multiples["Nyström"][20] = 1.49
    checks = lines_of(cpsp.figure_2(sized(multiples, value="objective_multiple")).checks, ours=True)
    assert checks == {"adult, CPSP beside Nyström: below at 1, above at 1 of 2 sizes": False}


@pytest.mark.parametrize(("on_adult", "holds"), [(0.15, True), (0.3, False)])
def test_general_vectors_serve_ccat_most(on_adult, holds):
    def of(rows):
        return {cpsp.PAPERS: {10: 0.1, 20: 0.1}, cpsp.ON_ROWS[cpsp.PAPERS]: {10: rows, 20: 0.1}}

    records = sized(of(on_adult)) + sized(of(0.2), data="CCAT", n_train=22_490)
    told = f"largest benefit of vectors that are no rows, in points: adult {100 * on_adult - 10:.1f}, CCAT 10.0"
    assert lines_of(cpsp.figure_1(records).checks)[told] is holds


def test_cpsp_vectors_needed():
    row = {"data": "CCAT (n = 22,490, C and γ chosen for each)", "exact SVM's vectors": "900"}
    counts = {cpsp.PAPERS: "20", "Nyström": "> 500", cpsp.ON_ROWS[cpsp.PAPERS]: "50"}
    seconds = {cpsp.PAPERS: "2 (0.1)", "Nyström": "–", cpsp.ON_ROWS[cpsp.PAPERS]: "21"}
    rows = [{**row, "method": method, "vectors": count, "seconds": seconds[method]} for method, count in counts.items()]
    records = sized({cpsp.PAPERS: {20: 0.1}}, data="CCAT", n_train=22_490)
    name = "CCAT (22,490 of 781,265 rows)"
    needed = f"{name}: CPSP (paper's) 20, CPSP (paper's, training rows) 50, Nyström > 500, exact machine 900"
    faster = f"{name}: CPSP (paper's) 2 s, the fastest other 21 s"
    assert lines_of(cpsp.table_2(records, rows).checks) == {needed: True, faster: True}
    rows[0]["vectors"], rows[2]["seconds"] = "50", "19"
    assert list(lines_of(cpsp.table_2(records, rows).checks).values()) == [False, False]
    rows[0]["vectors"] = rows[2]["vectors"] = "> 500"
    rows[0]["seconds"] = rows[2]["seconds"] = "–"
    assert cpsp.table_2(records, rows).checks == []  # none comes near


@pytest.mark.parametrize(
    ("method", "exponent", "holds"),
    [(cpsp.PAPERS, 1.2, True), (cpsp.PAPERS, 0.7, False), (cpsp.PAPERS, 1.9, False), (cpsp.OURS, 0.7, True)],
)
def test_cpsp_exponents(method, exponent, holds):
    fits = [
        {"data": "adult", "method": method, "max_basis": k, "n_train": 1000, "seconds": 1e-3 * k**exponent}
        for k in (10, 100, 1000)
    ]
    limited = {**fits[0], "max_basis": 2000, "seconds": 1.0, "status": "time limit"}
    (check,) = cpsp.figure_3([*fits, limited], []).checks
    assert (check.holds, check.ours) == (holds, method == cpsp.OURS)
    assert check.told.startswith(f"adult (1,000 rows), {method}: k^{exponent:.2f} ± 0.00, ")
    assert cpsp.figure_3(fits[:2], []).checks == []


def test_cpsp_beside_the_authors_program():
    record = {
        "data": "ijcnn1", "C": 32.0, "gamma": 2.0, "max_basis": 100, "method": cpsp.PAPERS, "test_error": 0.03,
        "n_test": 91_701, "n_train": 49_990, "seconds": 4.0,
    }  # fmt: skip
    line, other = cpsp.beside_the_program([record, {**record, "max_basis": 500}, {**record, "C": 1.0}])[:2]
    assert line == {
        "set": "ijcnn1", "C": 32.0, "γ": 2.0, "vectors": 100, "authors' program": "2.98 %, 9 s",
        cpsp.WITH_LINE: "–", cpsp.PAPERS: "3.00 % ✓ (± 0.16), 4 s, 49,990 rows", cpsp.OURS: "–",
    }  # fmt: skip
    assert other[cpsp.PAPERS].startswith("3.00 % ✗")
    assert cpsp.beside_the_program([])[-1]["C"] == "not kept"


@pytest.mark.parametrize(("intercept", "said"), [("regularized", True), ("none", False)])
def test_cpsp_records_of_earlier_settings_are_said_to_be(tmp_path, intercept, said):
    folder = tmp_path / "cells" / "subspace-adult"
    folder.mkdir(parents=True)
    records = [{**record, "part": "sizes", "intercept": intercept} for record in sized({cpsp.OURS: {10: 0.1}})]
    (folder / "done.json").write_text(json.dumps({"cell": "subspace adult", "status": "time limit"}))
    (folder / "subspace.json").write_text(json.dumps({"records": records}))
    titles = [title for title, *_ in cpsp.items(Found(tmp_path))]
    assert ("Earlier settings" in titles) is said
    assert titles[-1] == "Lacking"
