import argparse
import json

import numpy as np
import pytest

from benchmarks.budget import command, experiments, tables
from benchmarks.command_line import main
from slimsvm import BSCA, SVC

ARGV = ["budget", "--quick", "--n-jobs", "1"]
RUNS = [("budget", method, 50, seed) for seed in (0, 1) for method in experiments.METHODS]


@pytest.fixture
def few_rows(monkeypatch):
    """The benchmark's checkerboard with few rows."""
    monkeypatch.setattr(command, "read", lambda name, quick: small())


def small():
    return (*experiments.checkerboard(700, random_state=0), *experiments.checkerboard(400, random_state=1))


def results_in(folder):
    return json.loads((folder / "budget.json").read_text())


def options(*argv):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(argv)


def test_bench_budget_measures_and_draws(tmp_path, capsys, few_rows):
    assert main([*ARGV, "--output", str(tmp_path)]) == 0
    result = results_in(tmp_path)
    within = tables.of_part(result["records"], "budget")
    assert [(r["part"], r["method"], r["max_basis"], r["seed"]) for r in within] == RUNS
    for record in within:
        assert 0 < record["test_error"] < 0.3
        assert record["n_vectors"] <= 50
        seconds = [point["seconds"] for point in record["curve"]]
        assert len(seconds) == 5
        assert seconds == sorted(seconds)
        assert (record["curve"][0]["dual"] is None) == record["method"].endswith("bsgd")
        assert np.isfinite(record["curve"][0]["dual_of_model"])
    free = tables.of_part(result["records"], "no-budget")
    assert [len(record["curve"]) for record in free] == [5] * 8
    for record in tables.of_part(result["records"], "lemma-2"):
        assert (record["n_train"], record["epochs"]) == (300, 150)
        assert record["observed"] == pytest.approx(record["limit"], rel=0.1)
    assert len(result["lemma_2"]) == 4
    last = [[p["test_error"] for p in r["curve"]] for r in within if r["method"] == "bsgd"]
    assert result["acceptance"][0]["mean of BSGD's last epochs %"] == pytest.approx(100 * np.mean(last), abs=0.006)
    assert [row["data"] for row in result["table_1"]] == ["checkerboard"]
    row = result["table"][0]
    errors = [100 * record["test_error"] for record in within if record["method"] == "bsca"]
    assert row["finished %"] == pytest.approx(np.mean(errors), abs=0.006)
    assert row["runs"] == 2
    assert row["seconds"] > 0
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == {f"budget-checkerboard-figure-{number}.png" for number in range(1, 8)}
    assert "finished %" in capsys.readouterr().out


def test_a_run_that_ended_early_goes_on_after_one_run_of_everything(tmp_path, few_rows, monkeypatch):
    """What was measured before an end in the second seed is kept, and its tables are in the file."""
    measure, seeds = command.measure, []

    def ends_early(trial, name, data, seed, args):
        if seed == 1:
            raise KeyboardInterrupt
        seeds.append(seed)
        return measure(trial, name, data, seed, args)

    argv = [*ARGV, "--output", str(tmp_path), "--curve-epochs", "5"]
    monkeypatch.setattr(command, "measure", ends_early)
    with pytest.raises(KeyboardInterrupt):
        command.run(results_options(argv))
    before = results_in(tmp_path)
    assert [r["method"] for r in tables.of_part(before["records"], "budget")] == list(experiments.METHODS)
    assert before["acceptance"][0]["B"] == 50
    monkeypatch.setattr(command, "measure", measure)
    assert main([*argv, "--resume"]) == 0
    after = results_in(tmp_path)
    assert after["records"][: len(before["records"])] == before["records"]
    assert [
        (r["part"], r["method"], r["max_basis"], r["seed"]) for r in tables.of_part(after["records"], "budget")
    ] == (RUNS)
    assert after["table"][0]["runs"] == 2


def results_options(argv):
    args = options(*argv[1 : argv.index("--output")], *argv[argv.index("--output") + 2 :])
    args.output = argv[argv.index("--output") + 1]
    return args


def test_a_trial_is_run_as_often_as_it_is_cheap():
    random, once = experiments.Trial("budget", "bsca", 50), experiments.Trial("exact", "exact")
    assert [command.runs_of(random, {"whole_seconds": s}, None) for s in (10.0, 700.0, 4000.0)] == [5, 3, 1]
    assert command.runs_of(random, {"whole_seconds": 4000.0}, 2) == 2
    assert command.runs_of(once, {"whole_seconds": 1.0}, None) == 1


def test_the_exact_svm_is_a_line_of_table_1():
    X, y, X_test, y_test = small()
    trial = experiments.Trial("exact", "exact")
    record = experiments.measure(trial, "checkerboard", (X, y, X_test, y_test), 0, options("--n-jobs", "1"))
    alpha = np.abs(SVC(C=1.0, gamma=10.0, solver="exact", intercept="none", tol=1e-6).fit(X, y).dual_coef_)
    assert record["limits"]["bsca"] == pytest.approx(np.mean(alpha < 1 - 1e-9) * alpha.size / len(y), abs=0.01)
    assert record["limits"]["bsgd"] == pytest.approx(alpha.sum() / len(y), rel=0.01)
    row = tables.table_1([record])[0]
    assert (row["n"], row["n_test"], row["features"], row["source"]) == (700, 400, 2, "this run")
    assert row["accuracy %"] == pytest.approx(100 - 100 * record["test_error"], abs=0.006)
    assert tables.table_1([{**record, "part": "budget"}])[0]["accuracy %"] is None


def test_curves_go_on_from_epoch_to_epoch():
    """A curve's epochs are those of one fit: the dual variables and the model are kept, the rows' order is not."""
    data, setting = small(), experiments.SETS["checkerboard"]
    points = experiments.curve(BSCA(100), setting, data, 0, 1, 4)
    assert points[-1]["dual"] > points[0]["dual"]
    orders = {point["degradation"] for point in points}
    assert len(orders) == 4
    solver = BSCA(100, epochs=1, finish=False)
    fit = SVC(
        C=setting.C, gamma=setting.gamma, solver=solver, intercept="none", precision="float32",
        random_state=np.random.default_rng(0),
    ).fit(data[0], data[1])  # fmt: skip
    assert points[0]["test_error"] == pytest.approx(1 - fit.score(data[2], data[3]))


def test_curves_are_kept_short():
    points = [{"epoch": epoch, "primal": epoch / 3e-7, "dual": None} for epoch in range(1, 151)]
    kept = experiments.shortened(points)
    epochs = [point["epoch"] for point in kept]
    assert len(epochs) <= experiments.SHOWN
    assert epochs[:5] == [1, 2, 3, 4, 5]
    assert epochs[-5:] == [146, 147, 148, 149, 150]
    assert (kept[0]["primal"], kept[0]["dual"]) == (3333300.0, None)
    assert len(experiments.shortened(points[:60])) == 60


def curve_of(errors):
    """A curve with these errors; every epoch takes a second."""
    shares = {"merge_fraction": 0.1, "zero_step_fraction": 0.5}
    return [{"epoch": i, "seconds": float(i), "test_error": error, **shares} for i, error in enumerate(errors, 1)]


def runs_with(bsca, bsgd):
    """Records of runs of both methods with these errors."""
    return [
        {"data": "adult", "max_basis": 50, "method": method, "seed": seed, "n_train": 9, "test_error": 0.1,
         "seconds": 1.0, "curve": curve_of(errors)}
        for method, curves in (("bsca", bsca), ("bsgd", bsgd)) for seed, errors in enumerate(curves)
    ]  # fmt: skip


def share_of(bsca, bsgd):
    return tables.comparison(runs_with(bsca, bsgd))[0]["BSCA is there after this share of BSGD's time"]


def test_bsca_is_there_when_its_error_stays():
    bsgd = [[0.3] * 5 + [0.2] * 5]
    assert share_of([[0.3] * 4 + [0.1] * 6], bsgd) == 0.5
    assert share_of([[0.1] + [0.3] * 4 + [0.1] * 5], bsgd) == 0.6  # an epoch that is good by luck does not count
    assert share_of([[0.1] * 9 + [0.3]], bsgd) is None
    assert share_of([[0.1] * 10], bsgd) == 0.1
    near, seeds = [0.21] * 10, [[0.19] * 10, [0.21] * 10]  # standard error 0.01
    assert share_of([near], [[0.2] * 10]) is None
    assert share_of([near], seeds) == 0.1


def test_means_of_curves_have_deviations_between_runs_and_within():
    row = tables.summary(runs_with([[0.1] * 5, [0.3] * 5], [[0.1, 0.2, 0.1, 0.2, 0.15]]))
    assert (row[0]["plain %"], row[0]["± runs"], row[0]["± last epochs"]) == (20.0, 10.0, 0.0)
    assert (row[1]["plain %"], row[1]["± runs"], row[1]["± last epochs"]) == (15.0, 0.0, 4.47)


def test_methods_are_the_papers_and_ours_as_the_options_have_it():
    args = options("--no-two-signs", "--damping", "2", "--no-average", "--selection", "adaptive")
    paper, ours = (experiments.solver_of(name, 50, args) for name in ("bsca", "our-bsca"))
    assert (paper.damping, paper.average, paper.selection) == (0.0, False, "uniform")
    assert (ours.damping, ours.average, ours.selection) == (2.0, False, "adaptive")
    assert not paper.maintenance.two_signs
    assert not ours.maintenance.two_signs
    usual = experiments.solver_of("our-bsgd", 50, options())
    assert usual.maintenance.two_signs
    assert usual.average
    assert not experiments.solver_of("bsgd", 50, options()).average
    assert experiments.solver_of("our-bsgd", 50, options("--rule", "remove")).maintenance.name == "remove"


def test_settings_are_the_papers():
    log2 = {name: (np.log2(found.C), np.log2(found.gamma)) for name, found in experiments.SETS.items()}
    papers = {"susy": (5, -7), "covtype": (7, -3), "cod-rna": (5, -3), "ijcnn1": (5, 1), "adult": (5, -7)}
    assert {name: log2[name] for name in papers} == papers


def test_the_papers_sets_are_read_whole_and_cod_rna_between_0_and_1(monkeypatch):
    asked = []

    class Rows:
        X_train = y_train = X_test = y_test = None

    monkeypatch.setattr(experiments, "load", lambda name, scaling: asked.append((name, scaling)) or Rows())
    for name in ("covtype", "cod-rna", "adult"):
        experiments.read(name, False)
    assert asked == [("covtype-457k", "default"), ("cod-rna", "minmax"), ("adult", "default")]
