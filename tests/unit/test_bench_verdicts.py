"""What the report says of the papers: claims that hold and claims that do not, on made-up numbers."""

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


def curve(errors, n=10_000, **others):
    """Curves of two runs whose errors differ by 0.02 points; other numbers fall from 2 to 1."""
    k = len(errors)
    falls = np.linspace(2, 1, k)
    numbers = {"epoch": np.arange(1.0, k + 1), "seconds": np.arange(1.0, k + 1), "primal": falls}
    numbers |= {"dual_of_model": -falls} | {name: np.array(values, float) for name, values in others.items()}
    runs = {name: np.array([values, values]) for name, values in numbers.items()}
    return bsca.Curve(n, {**runs, "test_error": np.array([errors, np.array(errors) + 0.02]) / 100})


def two(one, other, budget=500, name="susy"):
    """Curves of BSCA and of BSGD on a set of the paper."""
    return {(name, "bsca", budget): one, (name, "bsgd", budget): other}


def test_bsca_means_are_compared_with_standard_errors_of_runs():
    runs = np.array([1.0, 1.2])
    agrees = bsca.lower("d", ("a", runs), ("b", runs + 0.5))[0]
    assert agrees == Check(True, "d: a 1.10 ± 0.14, b 1.60 ± 0.14, difference -0.50 (two standard errors 0.28)")
    assert not bsca.lower("d", ("a", runs), ("b", runs + 0.2))[0].holds
    assert not bsca.lower("d", ("a", runs + 0.5), ("b", runs))[0].holds
    assert bsca.lower("d", ("a", runs[:1]), ("b", runs)) == []


def test_bsca_errors_beside_the_exact_machine_and_bsgd():
    curves = two(curve([5.0] * 6), curve([6.0] * 6))
    exact = {"data": "susy", "accuracy %": 94.5, "n_test": 10_000, "source": "this run"}
    sooner = [{"data": "susy", "B": 500, bsca.SOON: 0.5}]
    label = "susy (10,000 of 4,500,000 rows): BSCA"
    assert parts_of(bsca.errors(curves, sooner, [exact])) == (
        f"{label} 5.01 ± 0.014 %, exact machine 5.50 % (two standard errors 0.65); "
        f"{label} has BSGD's last error to stay after 0.5 of BSGD's time.",
        "",
    )
    _, differs = parts_of(bsca.errors(curves, [{**sooner[0], bsca.SOON: None}], [{**exact, "accuracy %": 96.0}]))
    assert differs.startswith(f"{label} 5.01 ± 0.014 %, exact machine 4.00 %")
    assert differs.endswith("to stay never.")
    assert not bsca.errors(two(curve([5.0] * 6), curve([6.0] * 6), name="board"), sooner, [exact]).checks


def test_bsca_accuracies_of_the_exact_machine_and_sizes(tmp_path):
    rows = [
        {"data": data, "n": n, "n_test": 10_000, "accuracy %": accuracy, "source": "this run"}
        for data, n, accuracy in (("adult", 32_561, 85.0), ("ijcnn1", 49_990, 98.0))
    ]
    verdict = bsca.accuracies(Found(tmp_path), rows)
    assert parts_of(verdict) == (
        "adult: 85.00 %, paper 84.82 % (two standard errors 0.71).",
        "ijcnn1: 98.00 %, paper 98.77 % (two standard errors 0.28).",
    )
    assert verdict.sizes == "whole"
    assert bsca.sizes_of({"susy": 10_000}) == "susy 10,000 / 4,500,000"
    assert bsca.sizes_of_curves({("board", "bsca", 500): curve([5.0] * 6)}) == ""


def test_bsca_objectives_early_and_in_the_end():
    falls, flat = np.linspace(2, 1, 20), np.full(20, 1.5)
    agrees, differs = parts_of(bsca.objectives(two(curve([5.0] * 20), curve([5.0] * 20, primal=flat))))
    assert "primal, last epochs: BSCA 1.11 ± 0, BSGD 1.5 ± 0" in agrees
    assert "primal, epochs 6 to 10: BSCA 1.63 ± 0, BSGD 1.5 ± 0" in differs
    assert "BSCA's dual falls by 0 % of its range at most" in agrees
    for fall, holds in ((0.005, True), (0.02, False)):
        dual = [*-falls[:19], -falls[18] - fall]
        verdict = bsca.objectives(two(curve([5.0] * 20, dual_of_model=dual), curve([5.0] * 20, primal=flat)))
        assert "BSCA's dual falls" in parts_of(verdict)[0 if holds else 1]


def test_bsca_drifts_further_with_fewer_vectors():
    rises, falls = curve([5.0] * 6, primal=[2, 1, 1, 1, 1, 1.5]), curve([5.0] * 6)
    curves = {("susy", "bsca", 200): rises, ("susy", "bsca", 500): falls}
    assert "above its least (%): B = 500 0.00 ± 0, B = 200 50.00 ± 0" in parts_of(bsca.drift(curves))[0]
    assert "B = 500 50.00" in parts_of(bsca.drift({(d, m, 700 - b): c for (d, m, b), c in curves.items()}))[1]


def test_bsca_merges_small_budgets_and_runs_without_a_budget():
    rows = [
        {"data": "adult", "B": 200, "method": method, "merges": 0.1, "limit": limit}
        for method, limit in (("bsca", 0.1), ("bsgd", 0.15))
    ]
    told = "adult, B = 200, within a factor of two: bsca 0.1 (lemma 0.1), bsgd 0.1 (lemma 0.15)."
    assert parts_of(bsca.merges(rows, rows))[0] == told
    assert "lemma 0.01" in parts_of(bsca.merges(rows, [{**rows[0], "limit": 0.01}, rows[1]]))[1]
    both = curve([5.0] * 6), curve([4.0] * 6)
    assert "error (%): BSCA 5.01 ± 0.014, BSGD 4.01 ± 0.014" in parts_of(bsca.small_budget(two(*both, 200)))[1]
    failing = parts_of(bsca.small_budget(two(*both, 200, "ijcnn1")))  # where the paper's fails, too
    assert "error (%): BSGD 4.01 ± 0.014, BSCA 5.01" in failing[0]
    noisy = curve([1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
    agrees, differs = parts_of(bsca.without_budget(two(both[0], noisy, 0)))
    assert "deviation of the last errors: BSCA 0.00" in agrees
    assert not differs


@pytest.mark.parametrize(("name", "holds"), [("covtype", False), ("susy", False), ("ijcnn1", True)])
def test_bsca_with_200_vectors_is_as_good_as_with_500_where_the_paper_says_so(name, holds):
    curves = {(name, "bsca", 200): curve([5.0] * 6), (name, "bsca", 500): curve([2.0] * 6)}
    assert [check.holds for check in bsca.two_budgets(curves).checks] == [holds]
    swapped = {(d, m, 700 - b): c for (d, m, b), c in curves.items()}
    assert [check.holds for check in bsca.two_budgets(swapped).checks] == [not holds]


def test_bsca_after_many_epochs_and_after_few():
    few, many = ([{"data": "susy", "B": 500, bsca.SOON: share}] for share in (None, 0.4))
    steady, noisy = two(curve([5.0] * 6), curve([1.0, 2.0] * 3)), two(curve([1.0, 2.0] * 3), curve([5.0] * 6))
    later = bsca.told_later(bsca.times(steady, many), bsca.times(noisy, few))
    assert parts_of(later) == (
        "BSCA comes to BSGD's last error to stay in 1 of 1 cases; in half of BSGD's time or less in 1; "
        "its last epochs vary less by more than two standard errors in 1 of 1.",
        "",
    )
    assert "After few (budget), 0 of 3 checks agree." in str(later)
    assert bsca.told_later(bsca.times({}, []), bsca.times(noisy, few)) == bsca.times(noisy, few)
    assert "Not measured in this run." in str(bsca.told_later(bsca.times({}, []), bsca.times({}, [])))
    board = [{"data": "board", "B": 500, bsca.SOON: 0.4}]
    assert not bsca.times({}, board).checks  # which the paper has not


def test_checks_of_our_own_bsca_are_marked():
    curves = two(curve([5.0] * 6), curve([3.0] * 6)) | {("susy", "our-bsca", 500): curve([4.0] * 6)}
    assert [(check.holds, check.ours) for check in bsca.damped(curves).checks] == [(True, True), (False, True)]


def test_bsca_curves_are_read_from_records_of_one_part_and_of_earlier_versions():
    point = {"epoch": 1, "seconds": 1.0, "test_error": 0.1, "primal": 2.0, "dual_of_model": None}
    record = {"data": "susy", "method": "bsgd", "max_basis": 500, "n_train": 9, "curve": [point]}
    free = {**record, "part": "no-budget", "max_basis": None}
    records = [record, {**record, "part": "budget"}, free, {**record, "part": "exact", "curve": None}]
    curves = bsca.curves_of(bsca.of_part(records, "budget"))
    assert curves["susy", "bsgd", 500].numbers["primal"].tolist() == [[2.0], [2.0]]
    assert np.isnan(curves["susy", "bsgd", 500].numbers["dual_of_model"]).all()
    assert list(bsca.curves_of(bsca.of_part(records, "no-budget"))) == [("susy", "bsgd", 0)]


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


def sized(errors):
    """Records by method and number of vectors."""
    return [
        {"data": "d", "method": method, "max_basis": k, "test_error": error, "n_vectors": k or 900}
        for method, by_size in errors.items()
        for k, error in by_size.items()
    ]


def test_cpsp_is_compared_with_the_exact_machine_and_others_at_its_largest_size(tmp_path):
    errors = {cpsp.EXACT: {None: 0.05}, cpsp.PAPERS: {10: 0.2, 100: 0.052}, "Nyström": {10: 0.3, 100: 0.04},
              "LASVM": {None: 0.05}}  # fmt: skip
    agrees, differs = parts_of(cpsp.table_1(Found(tmp_path), sized(errors)))
    assert agrees == "d: CPSP with 100 vectors 5.20 %, exact machine 5.00 %; d: more vectors than 100 in LASVM 900."
    assert differs.startswith("d: Nyström 4.00 % with 100.")


def test_cpsp_beside_others_at_every_size():
    errors = {cpsp.PAPERS: {10: 0.1, 20: 0.05}, "Nyström": {10: 0.2, 20: 0.04}, "incomplete Cholesky": {10: 0.2}}
    agrees, differs = parts_of(cpsp.dominates(sized(errors), "test_error", 100.0, 0.1, "errs least"))
    assert agrees == f"d, {cpsp.PAPERS} beside incomplete Cholesky: 1 of 1 sizes."
    assert differs.startswith(f"d, {cpsp.PAPERS} beside Nyström: 1 of 2 sizes.")


def test_cpsp_vectors_needed_and_exponents():
    row = {"data": "d (n = 9)", "exact SVM's vectors": "900", "seconds": "1"}
    counts = {cpsp.PAPERS: "> 500", cpsp.WITH_LINE: "20", "Nyström": "> 500", cpsp.ON_ROWS[cpsp.PAPERS]: "50"}
    rows = [{**row, "method": method, "vectors": count} for method, count in counts.items()]
    told = "d: CPSP 20, CPSP (paper's, training rows) 50, Nyström > 500, exact machine 900."
    assert parts_of(cpsp.table_2(rows))[0] == told
    rows[1]["vectors"] = "> 500"
    assert parts_of(cpsp.table_2(rows))[1].startswith("d: CPSP > 500, CPSP (paper's, training rows) 50")
    assert parts_of(cpsp.table_2(rows[:3])) == ("", "")  # none comes near
    of = [{"data": "d", "method": cpsp.PAPERS, "seconds ~": f"k^{exponent}"} for exponent in (0.9, 1.9)]
    assert parts_of(cpsp.exponents(of, [])) == ("d: k^0.90.", "d: k^1.90.")
