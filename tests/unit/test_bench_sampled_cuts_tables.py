"""The tables, figures and files of `python -m benchmarks sampled-cuts`."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from benchmarks.command_line import main
from benchmarks.sampled_cuts import command, figures, tables
from benchmarks.sampled_cuts.tables import all_tables, growth
from benchmarks.shared.results import commit
from benchmarks.shared.tables import latest, slope, slope_error, summarise
from benchmarks.shared.trials import add_gaps


def record(**given):
    usual = dict(
        run=0, part="scaling", data="checkerboard", n_train=1000, n_test=10, n_features=2, C=1.0, gamma=10.0,
        intercept="none", method="exact", seed=0, oracle="exact", sample_size=None, steps="ours", status="converged",
        seconds=1.0, cpu_seconds=2.0, load=0.0, train_error=0.01, test_error=0.05, iterations=10, kernel_evals=1e6,
        n_vectors=50, objective=100.0, lower_bound=None, qp_seconds=0.1, gap=None,
    )  # fmt: skip
    return {**usual, **given}


# -- tables and figures: from made-up records -------------------------------------------------------------------------


def test_gaps_are_to_the_best_bound_of_the_same_problem():
    records = [
        record(objective=102.0, lower_bound=98.0),
        record(objective=110.0, lower_bound=99.0, seed=1),
        record(objective=120.0, method="violated"),
        record(objective=90.0, intercept="free", method="scikit-learn SVC"),
        record(objective=120.0, run=1),
        record(objective=None, method="trees"),
    ]
    add_gaps(records)
    assert [record["gap"] for record in records] == [
        pytest.approx(3 / 102),
        pytest.approx(11 / 110),
        pytest.approx(21 / 120),
        None,
        None,
        None,
    ]


def test_means_and_deviations():
    rows = summarise([
        record(seconds=1.0, gap=None),
        record(seconds=3.0, seed=1, gap=0.5, status="time limit"),
        record(method="svc", seconds=7.0),
        dict(run=0, part="scaling", data="checkerboard", n_train=9, C=1.0, gamma=10.0, method="svc", skipped="why"),
    ])  # fmt: skip
    assert [row["method"] for row in rows] == ["exact", "svc", "svc"]
    assert (rows[0]["seconds"], rows[0]["seconds_std"]) == (2.0, pytest.approx(np.sqrt(2)))
    assert (rows[0]["gap"], rows[0]["gap_std"]) == (0.5, None)
    assert (rows[0]["runs"], rows[0]["limited"]) == (2, True)
    assert (rows[1]["seconds"], rows[1]["seconds_std"], rows[1]["limited"]) == (7.0, None, False)
    assert (rows[2]["seconds"], rows[2]["runs"], rows[2]["skipped"]) == (None, 0, "why")


def test_the_last_run_counts():
    old, new = record(seconds=9.0), record(run=1, seconds=1.0)
    other = record(n_train=3000)
    assert latest([old, other, new]) == [other, new]


def test_growth_finds_the_exponents():
    assert slope([10, 100, 1000], [5, 50, 500]) == pytest.approx(1.0)
    sizes = (1000, 10_000, 100_000)
    records = [
        record(n_train=n, seconds=1e-6 * n**1.5, iterations=n**0.5, kernel_evals=3.0 * n**1.25, C=1.0) for n in sizes
    ]
    records += [record(n_train=10**6, seconds=1.0, status="time limit"), record(data="covtype", n_train=100_000)]
    lines = growth(summarise(records)).splitlines()
    assert len(lines) == 3
    assert lines[2] == "| C | checkerboard | exact | 10,000 to 100,000 | 1.50 | 1,000 | 1.25 ± 0.00 |"
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    noise = np.array([1.0, -1.0, 1.0, -1.0]) / 10
    known = np.sqrt(np.linalg.inv(np.c_[np.ones(4), np.log(x)].T @ np.c_[np.ones(4), np.log(x)])[1, 1])
    fitted = np.polyval(np.polyfit(np.log(x), noise, 1), np.log(x))
    assert slope_error(x, np.exp(noise)) == pytest.approx(known * np.sqrt(np.sum((noise - fitted) ** 2) / 2))
    assert np.isnan(slope_error([1, 2], [1, 2]))


def test_table_1_takes_the_largest_size_of_each_set():
    records = [
        record(n_train=1000, method="exact", seconds=1.0),
        record(n_train=9000, method="exact", seconds=2.0, train_error=0.0123, test_error=0.0345),
        record(n_train=9000, method="exact", seconds=3.0, train_error=0.0123, test_error=0.0345, seed=1),
        record(data="adult", part="sample-size", C=100.0, method="scikit-learn SVC", seconds=4.0),
        record(data="adult", part="sample-size", C=10.0, method="exact"),
        record(data="adult", part="sample-size", C=100.0, method="violated r=4000", sample_size=4000),
    ]
    table = all_tables(records)["Table 1: time and error at the largest size"].splitlines()
    assert table[0].startswith("| method | checkerboard (n = 9,000, C = 1): seconds | checkerboard: training error % |")
    assert table[0].count("|") == 2 + 6
    assert table[2:] == [
        "| exact | 2.5 (0.707) | 1.23 (0.00) | 3.45 (0.00) | – | – | – |",
        "| scikit-learn SVC | – | – | – | 4 | 1.00 | 5.00 |",
    ]


def made_up_records():
    oracles = [("uniform", "paper"), ("violated", "paper"), ("violated", "ours")]
    records = [
        record(n_train=n, data=data, method=f"{oracle} {steps}", oracle=oracle, steps=steps, seed=seed)
        for n in (1000, 3000)
        for data in ("checkerboard", "covtype")
        for oracle, steps in oracles
        for seed in range(2)
    ]
    records += [
        record(part="sample-size", data="adult", C=C, sample_size=r, oracle=oracle, steps=steps)
        for r in (100, 400)
        for C in (1.0, 100.0)
        for oracle, steps in oracles
    ]
    records += [
        record(part="sample-size", data="adult", method="scikit-learn SVC", sample_size=None, kernel_evals=None)
    ]
    records += [record(part="fixed-c1", C=10.0)]
    return records


@pytest.fixture
def _no_png(monkeypatch):
    """Laying a figure out takes most of a second; the command's test does it."""
    monkeypatch.setattr(Figure, "savefig", lambda *args, **options: None)


@pytest.mark.usefixtures("_no_png")
def test_every_figure_is_drawn(tmp_path):
    paths = figures.draw_figures(made_up_records(), tmp_path)
    names = [*(f"sampled-cuts-figure-{k}.png" for k in range(1, 8)), "sampled-cuts-evaluations.png"]
    assert paths == [tmp_path / name for name in names]
    assert figures.draw_figures([], tmp_path) == []


@pytest.mark.usefixtures("_no_png")
def test_figures_show_what_finished(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        figures, "plot_means", lambda found, x, y, by, scale, ax: drawn.append((found, x, y, by, scale))
    )
    unfinished = record(n_train=9000, status="time limit")
    skipped = dict(part="scaling", data="checkerboard", n_train=1, method="svc", skipped="why")
    figures.draw_figures([*made_up_records(), unfinished, skipped], tmp_path)
    assert [entry[1:] for entry in drawn[:2]] == [("n_train", "seconds", "method", 1.0)] * 2
    assert {entry["data"] for entry in drawn[0][0]} == {"checkerboard"}
    assert max(entry["n_train"] for entry in drawn[0][0]) == 3000
    figure_7 = [entry for entry in drawn if entry[1:3] == ("sample_size", "test_error")]
    assert [{(entry["oracle"], entry["steps"]) for entry in found} for found, *_ in figure_7] == [
        {("uniform", "paper")},
        {("violated", "paper")},
        {("violated", "ours")},
    ]
    assert {entry["C"] for entry in figure_7[0][0]} == {"C = 1", "C = 100"}
    assert all(entry[4] == 100.0 for entry in figure_7)


# -- the command ------------------------------------------------------------------------------------------------------


def bench(folder, *more):
    sizes = ["--sets", "checkerboard", "--max-n", "300", "--seeds", "1", "--max-seconds", "0.3"]
    return main(["sampled-cuts", "--output", str(folder), *sizes, *more])


def test_command_runs_appends_and_redraws(tmp_path, capsys, monkeypatch):
    assert bench(tmp_path, "--parts", "scaling") == 0
    shown = capsys.readouterr()
    assert "scikit-learn SVC" in shown.out
    assert "scaling, checkerboard, n = 300, C = 1: exact, seed 0:" in shown.err
    first = json.loads((tmp_path / "sampled-cuts.json").read_text())
    assert len(first["records"]) == 10
    assert first["runs"][0]["options"]["seeds"] == 1
    exact = next(record for record in first["records"] if record["method"] == "exact")
    assert 0 <= exact["gap"] <= 0.01
    violated = next(record for record in first["records"] if record["method"] == "violated r=400")
    bound = max(record.get("lower_bound") or 0.0 for record in first["records"])
    assert violated["gap"] == pytest.approx((violated["objective"] - bound) / violated["objective"])
    assert (tmp_path / "sampled-cuts-figure-1.png").stat().st_size > 5000

    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: path.write_bytes(b"drawn again"))
    with threadpool_limits(1):
        assert bench(tmp_path, "--parts", "fixed-c1", "--append") == 0
    results = json.loads((tmp_path / "sampled-cuts.json").read_text())
    assert results["records"][:10] == first["records"]
    assert len(results["runs"]) == 2
    added = results["records"][10:]
    assert {record["part"] for record in added} == {"fixed-c1"}
    assert {record["run"] for record in added} == {1}
    assert all(record["commit"] == commit() for record in added)
    assert "## Fixed C₁" in (tmp_path / "sampled-cuts.md").read_text()

    (tmp_path / "sampled-cuts-figure-1.png").unlink()
    assert bench(tmp_path, "--redraw") == 0
    assert json.loads((tmp_path / "sampled-cuts.json").read_text())["records"] == results["records"]
    assert (tmp_path / "sampled-cuts-figure-1.png").exists()


def test_records_survive_a_run_that_breaks_off(tmp_path, monkeypatch):
    def break_off(parts, scope, session):
        session.hear(record())
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_experiments", break_off)
    assert bench(tmp_path) == 1
    assert len(json.loads((tmp_path / "sampled-cuts.json").read_text())["records"]) == 1


def test_a_run_that_broke_off_goes_on(tmp_path, monkeypatch, capsys):
    def some(parts, scope, session):
        done = len(session.known)
        session.hear(record(seed=done))
        if not done:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_experiments", some)
    assert bench(tmp_path) == 1
    assert bench(tmp_path, "--resume", "--svc-cache", "7") == 1
    assert "--resume needs the options of the run that ended early" in capsys.readouterr().err
    assert bench(tmp_path, "--resume") == 0
    found = json.loads((tmp_path / "sampled-cuts.json").read_text())
    assert ([entry["seed"] for entry in found["records"]], len(found["runs"])) == ([0, 1], 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file, and --redraw needs the records in it"),
        ("{", "not JSON"),
        ('{"bench": "kernels"}', "not the results of `benchmarks sampled-cuts`"),
    ],
)
def test_redraw_of_what_is_not_there(tmp_path, capsys, content, message):
    if content is not None:
        (tmp_path / "sampled-cuts.json").write_text(content)
    assert bench(tmp_path, "--redraw") == 1
    assert message in capsys.readouterr().err


def test_theorems_are_beside_what_was_measured():
    """By hand: C₁ = 1, ε = 0.001: 8·10⁶ calls; with r = 100 and log(8·10⁶/0.05) = 18.89 what 2 and 3 allow."""
    assert tables.most_calls(1.0) == pytest.approx(8e6)
    assert tables.promised_excess("violated", 1.0, 100) == pytest.approx(0.001 + (0.04 * 18.8907) ** 0.5, rel=1e-4)
    assert tables.promised_excess("uniform", 1.0, 100) == pytest.approx(
        0.001 + 2 * ((1 + 8**0.5) ** 2 / 200 * 18.8907) ** 0.5, rel=1e-4
    )
    rows = [
        record(n_train=100, C=0.01, method="v", oracle="violated", sample_size=100, steps="paper", iterations=17,
               objective=2.0, gap=0.25),
        record(n_train=100, C=0.01, method="ours", oracle="violated", sample_size=100, steps="ours", iterations=7),
    ]  # fmt: skip
    text = tables.theorems(summarise(rows))
    assert "ours" not in text
    assert "| 17 | 8e+06 | 0.5 | 0.87 |" in text
    assert tables.theorems([]) == ""
