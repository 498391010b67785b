"""``python -m benchmarks all``, ``report``, ``peers``: cells that are done stay done, and the page has everything."""

import inspect
import json
import re
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks.command_line import main
from benchmarks.peers.measuring import Server
from benchmarks.report import all_cells
from benchmarks.report import found as found_of_cells
from benchmarks.report.cells import CELLS, Cell
from benchmarks.report.doc_tables import RESULTS
from benchmarks.report.found import STALE_WITH, Found, rows_of_markdown
from benchmarks.report.page import Item, seen_in, with_timed
from benchmarks.report.papers import SECTIONS
from benchmarks.report.peers_section import how_beaten
from benchmarks.shared.fronts import front, is_never_beaten
from chromium_for_tests import Browser
from slimsvm.parts.solver import Solver

FACTS = {"processor": "one", "cores": 2, "numpy": "2"}


# ---- all


def test_a_finished_cell_is_not_run_again_and_failures_are_rows(tmp_path, monkeypatch, capsys):
    cells = {
        "good": Cell("good", ("kernels", "--help"), ("kernels", "--help")),
        "bad": Cell("bad", ("kernels", "--no-such-option"), ("kernels", "--no-such-option")),
        "full only": Cell("full only", ("kernels",)),
    }
    monkeypatch.setattr(all_cells, "CELLS", cells)
    argv = ["all", "--quick", "--output", str(tmp_path)]
    assert main([*argv, "--list"]) == 0
    assert "full only" not in capsys.readouterr().out
    asked = []
    ended = all_cells.ended
    monkeypatch.setattr(all_cells, "ended", lambda argv, *rest: asked.append(argv[1]) or ended(argv, *rest))
    for _ in range(2):
        assert main(argv) == 0
    assert asked == ["--help", "--no-such-option", "--no-such-option"]
    lines = [json.loads(line) for line in (tmp_path / "cells.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["done", "failed", "failed"]
    assert "--no-such-option" in lines[1]["said"]
    assert lines[0]["machine"]["numpy"] == np.__version__
    assert main([*argv, "--again", "--cells", "go*"]) == 0
    assert asked[3:] == ["--help"]


def test_a_cell_ends_at_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(all_cells, "CELLS", {"slow": Cell("slow", ("prediction", "--seconds", "60"))})
    assert main(["all", "--limit", "0.2", "--output", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "cells" / "slow" / "done.json").read_text())
    assert record["status"] == "time limit"
    assert all_cells.done(tmp_path, all_cells.CELLS["slow"], False) is None


def test_a_cell_ends_when_the_run_that_began_it_is_gone(tmp_path):
    """The other end of its standard input is closed then, however the run ended."""
    command = [sys.executable, "-m", "benchmarks.one_cell", "prediction", "--seconds", "600"]
    cell = subprocess.Popen(
        [*command, "--output", str(tmp_path)], cwd=all_cells.ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    with pytest.raises(subprocess.TimeoutExpired):
        cell.wait(3)
    cell.stdin.close()
    assert cell.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ([{"status": "no data"}], "no data"),
        ([{"status": "no data"}, {"status": "failed"}], "done"),
        ([], "done"),
    ],
    ids=str,
)
def test_a_cell_whose_data_are_missing_is_run_again(records, status, tmp_path, monkeypatch):
    monkeypatch.setattr(all_cells, "CELLS", {"peers hiva": Cell("peers hiva", ("peers", "--sets", "hiva"))})

    def ended(argv, own, log, limit):
        (own / "peers.json").write_text(json.dumps({"records": records}))
        return "done"

    monkeypatch.setattr(all_cells, "ended", ended)
    assert main(["all", "--output", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "cells" / "peers-hiva" / "done.json").read_text())["status"] == status
    known = all_cells.done(tmp_path, all_cells.CELLS["peers hiva"], False)
    assert (known is not None) == (status == "done")


def test_a_cell_that_meets_its_limit_twice_goes_on_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(all_cells, "CELLS", {"subspace CCAT": Cell("subspace CCAT", ("subspace", "--sets", "CCAT"))})
    ends, asked = ["time limit", "time limit", "done"], []
    monkeypatch.setattr(all_cells, "ended", lambda argv, *rest: asked.append(argv[-1]) or ends[len(asked) - 1])
    for _ in range(4):
        assert main(["all", "--output", str(tmp_path)]) == 0
    assert asked == ["CCAT", "--resume", "--resume"]  # and once it is done, it is not run again


def test_every_cell_is_a_benchmark_with_options_it_knows():
    from benchmarks.command_line import build_parser

    for cell in CELLS.values():
        for argv in filter(None, (cell.argv, cell.quick)):
            assert build_parser(argv).parse_args(argv).name == argv[0]
    assert sum(bool(cell.quick) for cell in CELLS.values()) >= 10


# ---- report


@pytest.fixture
def results(tmp_path):
    """A folder as `all` leaves it, of made-up numbers."""
    from matplotlib.figure import Figure

    def cell(name, files, pictures=(), status="done"):
        folder = tmp_path / "cells" / name.replace(" ", "-")
        folder.mkdir(parents=True)
        record = {"cell": name, "status": status, "begun": "2026-01-01", "machine": FACTS, "argv": [], "seconds": 1}
        (folder / "done.json").write_text(json.dumps(record))
        for file, content in files.items():
            (folder / file).write_text(json.dumps(content))
        for picture in pictures:
            figure = Figure(figsize=(6, 2))
            figure.subplots().plot([1, 2, 3])
            figure.savefig(folder / picture)

    steep = "| data | method | seconds ~ n^ | rows |\n|---|---|---|---|\n| board | scikit-learn SVC | 1.98 | 1 to 9 |\n"
    tables = {"Growth with n at fixed C": steep + "| board | <b>few</b> | 12 | 1 to 9 |\n| board | some | – | 1 |"}
    fit = {"part": "scaling", "data": "checkerboard", "C": 1.0, "gamma": 20.0, "n_train": 3000, "n_test": 10_000}
    cuts = [
        {**fit, "seconds": 1.0, "method": method, "train_error": error, "test_error": error}
        for method, error in (
            ("scikit-learn SVC", 0.029), ("violated r=400, paper's steps", 0.03),
            ("uniform r=1000, paper's steps", 0.06),
        )
    ]  # fmt: skip
    cell("sampled-cuts", {"sampled-cuts.json": {"tables": tables, "records": cuts}},
         [f"sampled-cuts-figure-{i}.png" for i in range(1, 8)])  # fmt: skip
    points = [{"epoch": i, "seconds": i, "test_error": 0.1, "primal": 1 / i, "dual_of_model": i} for i in (1, 2)]
    fits = [{"part": "budget", "data": "susy", "method": method, "max_basis": 50, "seed": seed, "n_train": 90,
             "curve": points if method == "bsca" else [points[0], {**points[1], "test_error": 0.2 + seed / 100}]}
            for method in ("bsca", "bsgd") for seed in (0, 1)]  # fmt: skip
    rows = [{"data": "susy", "B": 50, "BSCA is there after this share of BSGD's time": 0.25}]
    limits = [{"data": "susy", "method": "bsca", "observed": 0.33, "limit": 0.3}]
    budget = {"records": fits, "table_1": [{"data": "susy"}], "acceptance": rows, "table": [], "lemma_2": limits}
    cell("budget board", {"budget.json": budget}, ["budget-susy-figure-2.png", "budget-board-figure-2.png"])
    cell("budget susy", {}, status="failed")
    fit = {"seed": 0, "n_bounded": 1, "clean_error": 0.1, "seconds": 1.0, "test_error": 0.12}
    exact = [{**fit, "part": "gaussians", "data": "gaussians", "n": n, "method": "exact", "n_vectors": n // 3}
             for n in (300, 1200)]  # fmt: skip
    few = [{**fit, "part": "sets", "data": "banana", "n_train": 400, "method": m, "n_vectors": k}
           for m, k in (("exact", 100), ("paper", 40))]  # fmt: skip
    cell("cross-training gaussians", {"cross-training.json": {"records": exact + few}},
         ["cross-training-gaussians.png"])  # fmt: skip
    shape = {"n_train": 90, "n_features": 2, "n_classes": 2, "settled": False, "data": "board"}
    fits = [
        {**shape, "method": "SVC()", "ours": True, "status": "done", "test_error": 0.1, "seconds": 0.5},
        {**shape, "method": "trees", "ours": False, "status": "done", "test_error": 0.2, "seconds": 2.0},
        {**shape, "method": "Falkon", "ours": False, "status": "not installed", "said": "No module named 'falkon'"},
        {"data": "moon", "status": "no data", "said": "moon is not on this machine"},
    ]
    cell("peers board", {"peers.json": {"records": fits}}, ["peers-board.png"])
    return tmp_path


def test_the_page_has_every_figure_and_table_and_says_what_lacks(results, tmp_path):
    out = tmp_path / "page"
    assert main(["report", "--results", str(results), "--output", str(out)]) == 0
    page, text, docs = ((out / name).read_text() for name in ("report.html", "report.md", "page.md"))
    for title in SECTIONS:
        assert title in text
        assert f"\n## {title}\n\n### " in docs
    assert "4 of 5 cells (runs of a benchmark on a data set) are done, 2026-01-01. Measured on: one, 2 cores" in text
    assert "Measured with: numpy 2." in text
    for part in (
        *(f"Figure {i}:" for i in range(1, 8)),
        "checkerboard, violated r=400, paper's steps, test error: +0.01 points, at most 0.64 (3,000 rows, there "
        "1,000,000; 1 run, there 3)",
        "checkerboard, uniform r=1000, paper's steps, train error: +3.04 points, at most 0.31 (3,000 rows, there "
        "1,000,000; 1 run, there 3)",
        "| checkerboard | violated r=400, paper's steps | 3,000 / 1,000,000 | 1 / 60,101 (1,042) | 3.00 / 2.90 ✓ ",
        "| ✓ | board, scikit-learn SVC, 1 to 9 rows: n^1.98, above 1 |",
        "(picture: cross-training-gaussians, cross-training-gaussians.png)",
        "| budget susy | failed | 2026-01-01 | 0 | one, 2 cores | – | not recorded | others now | not known |",
        "say which sizes and how many runs they have: budget susy (failed), budget checkerboard (not run), ",
        "| How soon BSCA is as good as BSGD, and how steady both end | 3 | 0 | 0 | 0 | 1 of 5 sets: susy ",
        "| Figure 2 | 1 | 1 | 0 | 0 | 1 of 2 sets: checkerboard 3,000 / 1,000,000 |",
        "| ✓ | BSCA comes to BSGD's last error to stay in 1 of 1 cases (susy (90 of 4,500,000 rows, 8 of 18 features",
        "| ✓ | its last epochs vary less by more than two standard errors in 1 of 1 (susy (90 of 4,500,000 rows",
        "| ijcnn1 | 16 | 1.8 to 2.4 | 9.0 | 2.1 |",
        "within 10 % of the limits",
        "banana, the paper's recipe: 40 vectors, 0.40 of the exact SVM's (the paper 0.46)",
        "the paper's cross-training",
        "exact SVM: vectors grow with the rows to the power 1.00, at most 0.10 from 1, from 300 to 1,200 rows",
        "On 1 of 1 sets a model of ours errs no more than all peers",
        "Least error, ours: 10.00 % in 0.5 s (SVC()); others: 20.00 % in 2 s (trees).",
        "No module named 'falkon'",
        "moon is not on this machine",
        "Not measured in this run.",
    ):
        assert part in text, part
    assert page.count("<img ") == docs.count("<img ") == 7 + 1 + 1 + 1
    assert all(line.startswith("<div>") for line in docs.splitlines() if "<p>" in line)  # HTML ends at an empty line
    assert "&lt;b&gt;few" in page
    assert page.count("<figcaption>cross-training-gaussians</figcaption>") == 1
    assert (
        'alt="Figure 3: two Gaussians, vectors, error and time against rows (cross-training-gaussians). Here: ' in page
    )
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert main(["report", "--results", str(tmp_path / "none"), "--output", str(out)]) == 1


def test_the_page_in_a_browser_is_whole_narrow_and_wide_and_sorts(results, tmp_path):
    out = tmp_path / "page"
    assert main(["report", "--results", str(results), "--output", str(out)]) == 0
    with Browser(tmp_path) as browser:
        for width in (1280, 400):
            browser.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
            )
            browser.open((out / "report.html").as_uri())
            browser.wait_until("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
            assert browser.evaluate("document.images.length") == 10
            assert browser.evaluate("[...document.images].every(image => image.width <= innerWidth)")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        section = "[...document.querySelectorAll('h3')].find(head => /^Figure 1/.test(head.textContent)).parentNode"
        table = f"[...{section}.querySelectorAll('table')].at(-1)"  # before it stands the table of what was checked
        rows = f"[...{table}.tBodies[0].rows]"
        column = f"{rows}.map(row => row.cells[2].textContent).join()"
        assert browser.evaluate(column) == "1.98,12,–"
        browser.evaluate(f"{table}.querySelectorAll('th')[2].click()")
        assert browser.evaluate(column) == "1.98,12,–"
        browser.evaluate(f"{table}.querySelectorAll('th')[2].click()")
        assert browser.evaluate(column) == "–,12,1.98"
        assert browser.errors == []
        assert all(url.startswith(("file:", "data:", "about:")) for url in browser.requests)


@pytest.mark.parametrize("kind", STALE_WITH)
def test_what_makes_records_stale_is_there_and_has_every_solver_that_is_measured(kind):
    """A path that is no more would never change."""
    root = all_cells.ROOT
    assert [path for path in STALE_WITH[kind] if not (root / path).exists()] == []
    module = {"budget": "budget.experiments", "many-epochs": "budget.experiments", "sampled-cuts": "shared.methods",
              "cross-training": "cross_training.compared_solvers"}.get(kind, "subspace.sized_methods")  # fmt: skip
    solvers = {value for value in vars(import_module(f"benchmarks.{module}")).values() if is_solver(value)}
    files = {Path(inspect.getfile(solver)).relative_to(root).as_posix() for solver in solvers}
    unused = {"src/slimsvm/solvers/learned_vectors.py"} if kind == "sampled-cuts" else set()
    assert [file for file in sorted(files - unused) if not file.startswith(STALE_WITH[kind])] == []


def is_solver(value):
    return inspect.isclass(value) and issubclass(value, Solver) and value is not Solver


def test_records_say_what_has_changed_since_each_of_their_commits(tmp_path, monkeypatch):
    folder = tmp_path / "cells" / "budget-adult"
    folder.mkdir(parents=True)
    fits = [{"commit": "a", "load": 0.5}, {"commit": "b", "load": 2.25, "machine": {"processor": "other"}}]
    done = {"cell": "budget adult", "status": "done", "begun": "2026-01-01", "machine": FACTS, "load": 0.1}
    (folder / "done.json").write_text(json.dumps(done | {"argv": ["budget", "--sets", "adult"]}))
    (folder / "budget.json").write_text(json.dumps({"records": fits}))
    changes = {"a": ("core/budget", "core/rows"), "b": ("core/rows",)}
    monkeypatch.setattr(found_of_cells, "changed_since", lambda commit, kind: changes[commit])
    (row,) = Found(tmp_path).records("budget")
    assert (row["commit"], row["changed since"], row["options"]) == ("a, b", "core/budget, core/rows", "as now")
    assert (row["load"], row["machine"]) == ("0.1 to 2.2", "one, 2 cores; other, 1 core")
    most = tuple(path for path in STALE_WITH["budget"] if not path.startswith("core/s"))
    for whole, told in (
        (most, "all but core/scores, core/simd, core/span, core/support"),
        (STALE_WITH["budget"], "all"),
        ((), "no"),
    ):
        monkeypatch.setattr(found_of_cells, "changed_since", lambda commit, kind, whole=whole: whole)
        assert found_of_cells.told_of_changes("ab", "budget") == told


def test_what_changed_is_asked_of_git():
    head = subprocess.run(["git", "rev-parse", "HEAD~50"], cwd=all_cells.ROOT, capture_output=True, text=True)
    if head.returncode:
        pytest.skip("needs the history")
    assert set(found_of_cells.changed_since(head.stdout.strip(), "budget")) <= set(STALE_WITH["budget"])
    assert found_of_cells.changed_since("no such commit", "budget") is None
    assert found_of_cells.changed_since(None, "budget") is None


def test_every_cell_of_the_committed_results_is_one_that_all_runs():
    assert [name for name in Found(RESULTS).cells if name not in CELLS] == []


def test_the_text_of_a_picture_says_what_is_seen_of_its_set():
    checks = [{"": "✓", "checked": f"{data}, uniform: n^0.4"} for data in ("board", "covtype")]
    item = Item("Figure 1", "The paper: it grows.\nHere: all of it.", [checks])
    assert seen_in(Path("sampled-cuts-scaling-covtype/figure-1.png"), item) == "covtype, uniform: n^0.4."
    assert seen_in(Path("sampled-cuts-sample-size/figure-1.png"), item) == "Here: all of it."
    checks = [{"": "✓", "checked": f"{data} (9 of 10 rows): it errs less"} for data in ("cod-rna", "OCR*")]
    folders = ("subspace-cod-rna", "subspace-OCRall", "subspace-covtype")
    pictures = [Path(folder) / "figure-1.png" for folder in folders]
    seen = [seen_in(path, Item("Figure 1", "The paper: it grows.", [checks], pictures)) for path in pictures]
    assert seen == [*(f"{row['checked']}." for row in checks), "Of this set nothing was checked."]


def test_pictures_have_the_seconds_of_the_texts():
    fit = {"seconds": 3.0, "cpu_seconds": 1.0}
    assert with_timed({"records": [fit], "bench": "peers"}) == {"records": [fit | {"seconds": 1.0}], "bench": "peers"}
    assert with_timed({"table": []}) == {"table": []}


def test_found_reads_markdown(results):
    assert rows_of_markdown("| a | b |\n|---|---|\n| 1 | x |") == [{"a": "1", "b": "x"}]
    assert rows_of_markdown("nothing") == []
    assert Found(results).of("budget") == ["budget board", "budget susy"]


# ---- peers


def test_peers_go_on_after_what_was_measured_before_a_kill(tmp_path, capsys, monkeypatch):
    argv = ["peers", "--quick", "--sets", "checkerboard", "--output", str(tmp_path), "--methods", "SVC()"]
    assert main(argv) == 0
    lines = tmp_path / "peers.jsonl"
    before = json.loads((tmp_path / "peers.json").read_text())["records"]
    lines.write_text(lines.read_text() + '\n{"data": "checkerboard", "method": "max_ba')

    asked = []
    monkeypatch.setattr(Server, "start", lambda self: (100, 2, 2))
    monkeypatch.setattr(
        Server, "ask", lambda self, method, limit: asked.append(method) or {"status": "failed", "said": "no"}
    )
    for _ in range(2):
        assert main([*argv, "max_basis=25"]) == 0
    assert asked == ["max_basis=25"]
    records = json.loads((tmp_path / "peers.json").read_text())["records"]
    assert [record["status"] for record in records] == ["done", "failed"]
    assert records[:1] == before
    assert main([*argv, "--max-seconds", "7"]) == 0  # another limit: nothing of that counts
    assert asked == ["max_basis=25", "SVC()"]


def test_peers_are_measured_each_in_a_process_that_can_be_ended(tmp_path, capsys):
    argv = ["peers", "--quick", "--sets", "checkerboard", "phoneme", "--output", str(tmp_path)]
    methods = ["max_basis=25", "Nystroem(50) + LinearSVC", "SVC on 500 rows", "Falkon"]
    assert main([*argv[:4], *argv[5:], "--methods", *methods, "--max-seconds", "100"]) == 0
    records = {record["method"]: record for record in json.loads((tmp_path / "peers.json").read_text())["records"]}
    assert [records[name]["status"] for name in methods] == ["done", "done", "done", "not installed"]
    assert [records[name].get("n_vectors") for name in methods[:2]] == [25, 50]
    assert records["SVC on 500 rows"]["n_vectors"] <= 500
    assert 0 < records["max_basis=25"]["test_error"] < 0.5
    assert records["max_basis=25"]["ours"]
    assert not records["SVC on 500 rows"]["ours"]
    assert (tmp_path / "peers-checkerboard.png").stat().st_size > 0


def test_a_method_that_takes_too_long_is_a_row(monkeypatch):
    server = Server("checkerboard", 500)
    assert server.start() == (500, 2, 2)
    found = server.ask("HistGradientBoosting, 300", 1e-3)
    assert found["status"] == "time limit"
    assert server.process is None
    server.stop()


def test_a_front_has_the_least_error_of_every_cost():
    points = [(1.0, 5.0), (2.0, 6.0), (2.0, 4.0), (3.0, 4.0), (0.5, 9.0)]
    assert front(points) == [(0.5, 9.0), (1.0, 5.0), (2.0, 4.0)]
    own = [{"ours": True, "seconds": 0.1, "test_error": 0.2}, {"ours": True, "seconds": 5.0, "test_error": 0.1}]
    other = [{"ours": False, "seconds": 2.0, "test_error": 0.15}]
    assert is_never_beaten(own)
    assert not is_never_beaten(own + other)
    assert is_never_beaten([*own, {"ours": False, "seconds": 6.0, "test_error": 0.1}])


def test_where_peers_err_less_is_said_in_words():
    def record(ours, seconds, error):
        return {"ours": ours, "seconds": seconds, "test_error": error, "n_train": 700}

    own = [record(True, 0.1, 0.2), record(True, 5.0, 0.1)]
    assert how_beaten([*own, record(False, 2.0, 0.15)]) == "from 2 s until 5 s, by 5 points at most"
    late = "from 6 s to the end, by 0.9 points at most, less than a standard error of the test rows"
    assert how_beaten([*own, record(False, 6.0, 0.091)]) == late
