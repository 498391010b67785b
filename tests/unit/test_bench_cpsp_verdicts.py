"""What the report says of CPSP: claims that hold and claims that do not, on made-up numbers."""

import json

import numpy as np
import pytest

from benchmarks.report import cpsp
from benchmarks.report.found import Found


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
        "adult: CPSP (paper's) with 1000 vectors 5.20 %, exact SVM 5.00 % (at most 1.12 points apart)": True,
        "adult: Nyström with 1000 vectors +0.10 ± 0.63 points beside CPSP (paper's), by the paper above": False,
        "adult: incomplete Cholesky with 1000 vectors +14.80 ± 0.91 points beside CPSP (paper's), "
        "by the paper above": True,
        "adult: linear SVM +0.10 ± 0.62 points beside the exact one, by the paper level": True,
        "adult: more than 1000 vectors each: scikit-learn SVC 900, LASVM 900": False,
    }
    ours = lines_of(verdict.checks, ours=True)
    assert ours["adult: CPSP with 1000 vectors 8.00 %, exact SVM 5.00 % (at most 1.20 points apart)"] is False
    assert verdict.sizes == "1 of 5 sets: adult 32,561 / ≤ 32,561"
    on_ocr = lines_of(cpsp.table_1(sized(errors, data="OCR0", n_train=20_000)).checks)
    name = "OCR0 (20,000 of 60,000 rows)"
    assert on_ocr[f"{name}: Nyström with 1000 vectors +0.10 ± 0.63 points beside CPSP (paper's), by the paper level"]
    assert not on_ocr[f"{name}: linear SVM +0.10 ± 0.62 points beside the exact one, by the paper above"]
    assert cpsp.table_1(sized(errors, data="money-fx")).checks == []
    limited = [{**record, "status": "time limit"} for record in sized(errors)]
    assert "adult: CPSP (paper's) with 1000 vectors (time limit) 5.20 %" in cpsp.table_1(limited).checks[0].told


def test_cpsp_is_compared_at_one_number_of_rows():
    """Comparators of another cell were trained on more rows: their mean was of both."""
    few = sized({cpsp.PAPERS: {10: 0.2}, cpsp.EXACT: {None: 0.05}}, n_train=20_000)
    more = sized({cpsp.EXACT: {None: 0.09}, "incomplete Cholesky": {10: 0.3}})
    assert cpsp.of_one_size(few + more) == few
    assert cpsp.of_one_size(more) == []  # CPSP has none of it
    rows = [{"data": f"adult (n = {n}, C and γ chosen for each)"} for n in ("20,000", "32,561")]
    assert cpsp.rows_of_size(few, rows) == rows[:1]


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
    told = f"largest benefit of vectors that are no rows, in points: adult {100 * on_adult - 10:.1f}, "
    told += "CCAT (22,490 of 781,265 rows) 10.0"
    assert lines_of(cpsp.figure_1(records).checks)[told] is holds


def test_cpsp_vectors_needed():
    row = {"data": "CCAT (n = 22,490, C and γ chosen for each)", "exact SVM's vectors": "900"}
    counts = {cpsp.PAPERS: "20", "Nyström": "> 500", cpsp.ON_ROWS[cpsp.PAPERS]: "50"}
    seconds = {cpsp.PAPERS: "2 (0.1)", "Nyström": "–", cpsp.ON_ROWS[cpsp.PAPERS]: "21"}
    rows = [{**row, "method": method, "vectors": count, "seconds": seconds[method]} for method, count in counts.items()]
    records = sized({cpsp.PAPERS: {20: 0.1}}, data="CCAT", n_train=22_490)
    name = "CCAT (22,490 of 781,265 rows)"
    needed = f"{name}: CPSP (paper's) 20, CPSP (paper's, training rows) 50, Nyström > 500, exact SVM 900"
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
    assert any("at most 20,000 rows: adult." in str(text) for _, text, *_ in cpsp.items(Found(tmp_path))) is said
    assert "subspace adult (time limit)" in Found(tmp_path).lacking("subspace")
    assert "subspace CCAT (not run)" in Found(tmp_path).lacking("subspace")


def test_figures_of_cpsp_say_where_numbers_of_vectors_lack():
    few = sized({cpsp.PAPERS: {10: 0.1, 20: 0.1}}, data="CCAT", n_train=22_490)
    whole = sized({cpsp.PAPERS: dict.fromkeys(cpsp.NUMBERS, 0.1)})
    assert cpsp.with_numbers(few + whole).endswith("/ ≤ 781,265; CCAT 2 of 7 numbers of vectors")
    assert cpsp.with_numbers(whole) == cpsp.sizes_of(whole)
    assert cpsp.with_numbers([]) == ""
