"""Tables and figures of the bench of few vectors, from made-up records."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks.shared.results import progress
from benchmarks.shared.tables import latest, summarise
from benchmarks.subspace.experiments import add_multiples
from benchmarks.subspace.figures import draw_figures
from benchmarks.subspace.sized_methods import EXACT
from benchmarks.subspace.tables import all_tables, excess, growth, overview


def record(**given):
    usual = dict(
        run=0, part="sizes", data="adult", n_train=1000, n_test=10, n_features=2, C=1.0, gamma=10.0, seed=0,
        intercept="regularized", method="CPSP", max_basis=10, status="converged", seconds=1.0, cpu_seconds=2.0,
        load=0.0, train_error=0.01, test_error=0.05, iterations=10, kernel_evals=1e6, n_vectors=10, objective=100.0,
        objective_multiple=None, predict_us=1.5,
    )  # fmt: skip
    return {**usual, **given}


def exact(**given):
    return record(**{"method": EXACT, "max_basis": None, "n_vectors": 700, "test_error": 0.03, **given})


def test_multiples_are_of_the_exact_svm_of_the_same_run_and_problem():
    records = [
        record(objective=150.0),
        exact(objective=100.0),
        record(objective=150.0, run=1),
        record(objective=150.0, own_kernel=True),
        record(objective=None),
        record(objective=150.0, part="growth"),
        record(objective=150.0, gamma=2.0),
    ]
    add_multiples(records)
    assert [entry["objective_multiple"] for entry in records] == [1.5, 1.0, None, None, None, None, None]


def test_the_last_run_of_each_size_counts():
    old, new, other = record(seconds=9.0), record(run=1), record(max_basis=20)
    assert latest([old, other, new]) == [other, new]
    assert len(summarise([record(), other])) == 2


def test_a_line_tells_the_number_of_vectors():
    assert progress(record()) == "sizes, adult, n = 1,000, C = 1: CPSP, k = 10, seed 0: 1.00 s, 5.00 %"
    assert ", k" not in progress(exact())


def test_table_2_takes_the_smallest_size_that_is_good_enough():
    records = [
        exact(seconds=50.0),
        record(max_basis=10, test_error=0.2),
        record(max_basis=20, test_error=0.033, seconds=2.0),
        record(max_basis=20, test_error=0.035, seconds=4.0, seed=1),
        record(max_basis=50, test_error=0.03, seconds=8.0),
        record(method="Nyström", max_basis=10, test_error=0.2),
        record(method="Nyström", max_basis=20, test_error=0.2),
        record(data="covtype", max_basis=10),
    ]
    table = all_tables(records)["Table 2: vectors and seconds to come within 0.5 points of the exact SVM"]
    name = "adult (n = 1,000, C = 1, γ = 10)"
    assert table.splitlines()[2:] == [
        f"| {name} | CPSP | 20 | 3 (1.41) | 700 | 50 |",
        f"| {name} | Nyström | > 20 | – | 700 | 50 |",
    ]


def test_tables_have_a_column_for_each_size():
    records = [exact(objective_multiple=1.0), record(objective_multiple=2.0), record(max_basis=20)]
    tables = all_tables(records)
    name = "adult (n = 1,000, C = 1, γ = 10)"
    assert tables["Test error (%) by number of vectors"].splitlines() == [
        "| data | method | k = 10 | k = 20 |",
        "|---|---|---|---|",
        f"| {name} | CPSP | 5.00 | 5.00 |",
    ]
    assert tables["Objective as a multiple of the exact SVM's"].splitlines()[2] == f"| {name} | CPSP | 2.000 | – |"
    assert tables["Models of full size"].splitlines()[2] == f"| {name} | {EXACT} | 700 | 3.00 | 1 | 1.5 |"
    assert all_tables([]) == {}
    assert [line["k"] for line in overview(records)] == ["–", 10, 20]


def test_fits_that_met_the_limit_are_marked():
    records = [record(objective_multiple=2.0, status="time limit"), record(max_basis=20)]
    tables = all_tables(records)
    marked = [tables[title].splitlines()[2] for title in tables if title.startswith(("Test error", "Objective"))]
    assert [line.partition("CPSP | ")[2] for line in marked] == [
        "5.00 (time limit) | 5.00 |",
        "2.000 (time limit) | – |",
    ]


def test_order_of_the_paper():
    def runs(method, errors, objective, **given):
        return [
            record(method=method, test_error=error, objective=objective, seed=seed, **given)
            for seed, error in enumerate(errors)
        ]

    records = [
        *runs("CPSP", [0.10, 0.12], 100.0),
        *runs("CPSP (training rows)", [0.10, 0.11], 110.0),
        *runs("Nyström", [0.05, 0.05], 105.0),
        *runs("CPSP", [0.10], 100.0, max_basis=1000),
        *runs("Nyström", [0.10], 100.0, max_basis=1000),
        *runs("CPSP (training rows)", [0.10], 100.0, max_basis=1000),
        *runs("CPSP", [0.10], 100.0, max_basis=20),
    ]
    gap, width = excess(records[:2], records[2:4])
    assert gap == pytest.approx(0.005)
    assert width == pytest.approx(np.sqrt(0.01**2 + 0.005**2))
    (title,) = (title for title in all_tables(records) if title.startswith("Is CPSP"))
    assert all_tables(records)[title].splitlines()[2:] == [
        "| adult (n = 1,000, C = 1, γ = 10) | 10 | +0.50 ± 1.12: yes | +6.00 ± 1.00: no | no | 2 |"
    ]


def test_growth_finds_the_exponents():
    records = [record(max_basis=k, seconds=1e-3 * k**1.5) for k in (10, 100, 1000)]
    records += [record(max_basis=2000, seconds=1.0, status="time limit"), record(method="k-means")]
    assert growth(summarise(records), "max_basis").splitlines()[2:] == ["| adult | CPSP | 10 | 1,000 | k^1.50 |"]
    records = [record(part="growth", n_train=n, seconds=1e-3 * n) for n in (1000, 3000)]
    assert (
        "| adult | CPSP | 1,000 | 3,000 | n^1.00 |"
        in all_tables(records)["Growth with the rows (exponent of the seconds)"]
    )


def made_up_records():
    records = [
        record(data=data, method=method, max_basis=k, seed=seed, objective_multiple=1.0 + 1 / k, seconds=0.1 * k)
        for data in ("adult", "OCR0")
        for method in ("CPSP", "Nyström")
        for k in (10, 100)
        for seed in range(2)
    ]
    records += [exact(data=data, objective_multiple=1.0) for data in ("adult", "OCR0")]
    records += [exact(data="covtype"), record(max_basis=2000, seconds=900.0, status="time limit", data="OCR0")]
    return records + [record(part="growth", n_train=n) for n in (1000, 3000)]


def test_every_figure_is_drawn(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: drawn.update({path.name: figure}))
    paths = draw_figures(made_up_records(), tmp_path)
    names = [f"subspace-figure-{name}.png" for name in ("1", "2", "3", "3-rows")]
    assert paths == [tmp_path / name for name in names]
    assert [ax.get_title() for ax in drawn[names[0]].axes] == ["adult", "OCR0"]
    assert [ax.get_ylabel() for ax in drawn[names[1]].axes] == ["objective / exact SVM's"] * 2
    largest = [max(np.max(line.get_xdata()) for line in drawn[name].axes[1].get_lines()) for name in names[::2][:2]]
    assert largest == [2000, 100]
    assert drawn[names[3]].axes[0].get_xlabel() == "training rows"
    assert draw_figures([], tmp_path) == []


def test_c_and_gamma_that_were_chosen_for_each_are_one_line():
    records = [record(max_basis=10), record(max_basis=20, C=7.0)]
    table = all_tables(records)["Test error (%) by number of vectors"].splitlines()
    assert len(table) == 3
    assert "C and γ chosen for each" in table[2]
    assert "problem" not in records[0]
