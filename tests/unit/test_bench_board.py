"""The board: tables as they are, ours beside others; who stands where."""

import json
import pickle
import signal

import numpy as np
import pandas as pd
import pytest

from benchmarks.board import command, methods, sets
from benchmarks.command_line import main
from benchmarks.report import all_cells
from benchmarks.report.board_tables import BOARD_TABLES
from benchmarks.report.found import Found
from benchmarks.shared.board_lines import board_lines
from benchmarks.shared.standings import elo, standings


def made_up(seed, n=240):
    """Numbers with gaps, a category that lacks some, codes, a date and names; a class or a number last."""
    rng = np.random.default_rng(seed)
    size, color = rng.normal(size=n), rng.choice(["red", "blue", "green"], n)
    number = size + 2.0 * (color == "red") + 0.3 * rng.normal(size=n)
    table = pd.DataFrame({
        "name": [f"row {i}" for i in range(n)],
        "size": pd.Series(size).mask(rng.random(n) < 0.1),
        "color": pd.Series(color).mask(rng.random(n) < 0.1),
        "code": rng.integers(3, size=n).astype(str),
        "day": pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(rng.integers(100, size=n), "D"),
    })  # fmt: skip
    return table, number


def of_classes(seed, n=240):
    table, number = made_up(seed, n)
    table["y"] = np.where(number > 0.7, "high", "low")
    table.attrs["categories"] = [3]
    return table


def of_numbers(seed):
    table, number = made_up(seed)
    return table.assign(y=number)


@pytest.fixture
def own_sets(monkeypatch):
    classes = {"own": lambda: of_classes(0), "small": lambda: of_classes(1, 100)}
    numbers = {"heights": lambda: of_numbers(2)}
    report = {"copy": lambda: of_numbers(2).sample(frac=1.0, random_state=0), "other": lambda: of_numbers(3)}
    monkeypatch.setitem(sets.SETS, "classes", {"settle": classes, "report": {}})
    monkeypatch.setitem(sets.SETS, "numbers", {"settle": numbers, "report": report})
    monkeypatch.setitem(sets.NUMBERS, "settle", numbers)
    sets.numbers_of_rows.cache_clear()
    yield
    sets.numbers_of_rows.cache_clear()


def board(folder, *arguments):
    few = ["--methods", "linear", "histogram boosting", "--splits", "2", "--output", str(folder)]
    assert main(["board", *few, *arguments]) == 0
    return json.loads((folder / "board.json").read_text())


def test_columns_stay_what_they_are(own_sets):
    X, y = sets.read("classes", "settle", "own")
    assert [X[name].dtype.kind for name in X] == ["f", "O", "O", "M"]  # the names of rows are gone
    assert X[["column 1", "column 2"]].isna().any().all()
    assert set(y) == {0, 1}
    assert set(X["column 3"]) == {"0", "1", "2"}  # numbers whose head lists them as levels
    assert sets.read("numbers", "settle", "heights").X["column 3"].dtype.kind == "f"


def test_every_set_split_and_method_has_a_record_once(own_sets, tmp_path, capsys, monkeypatch):
    found = board(tmp_path)
    assert found["left_out"] == {"small": "100 rows"}
    cells = [(r["set"], r["split"], r["method"]) for r in found["records"]]
    assert len(cells) == len(set(cells)) == 2 * 2 * 2
    of_classes_, of_numbers_ = ([r for r in found["records"] if r["kind"] == kind] for kind in ("classes", "numbers"))
    assert all(
        r["rows"] == 168 and r["test_rows"] == 72 and r["version"].startswith("scikit") for r in found["records"]
    )
    assert all(0.05 < r["log_loss"] < 0.6 and 0.8 < r["auc"] < 1.0 and r["error"] < 0.3 for r in of_classes_)
    assert all(r["of_deviation"] < 0.8 and r["bytes"] > 1000 and r["us"] > 0 for r in of_numbers_)
    assert [line["sets"] for line in found["table"]] == [1] * 4
    assert "first_wins" in capsys.readouterr().out
    # What was measured is not measured again; other options do not mix with it.
    monkeypatch.setattr(command, "of_cell", None)
    assert board(tmp_path)["records"] == found["records"]
    assert main(["board", "--max-rows", "50", "--output", str(tmp_path)]) == 1
    assert "another --side or --max-rows" in capsys.readouterr().err


def test_copies_are_left_out_of_the_reported_side(own_sets, tmp_path):
    found = board(tmp_path, "--side", "report", "--splits", "1")
    assert found["left_out"] == {"copy": "copy of heights"}
    assert {record["set"] for record in found["records"]} == {"other"}


def test_ours_saves_its_own_file_and_a_failure_has_a_line(own_sets, tmp_path, monkeypatch):
    def broken(classes, X):
        raise ValueError("no such thing")

    monkeypatch.setitem(methods.METHODS, "linear", methods.Method("scikit-learn", broken))
    argv = ["--methods", "slimsvm", "linear", "--splits", "1", "--kinds", "numbers", "--max-rows", "100"]
    ours, theirs = board(tmp_path, *argv)["records"]
    assert ours["bytes"] > 1000
    assert "failed" not in ours
    assert theirs["failed"] == "ValueError: no such thing"
    first, last = board(tmp_path, *argv)["table"]
    assert (first["rank"], last["rank"]) == (1.0, 2.0)
    assert (first["failed"], last["failed"]) == (0, 1)


def test_a_method_fails_where_it_takes_too_long(own_sets, tmp_path, monkeypatch):
    def slow(classes, X):
        signal.raise_signal(signal.SIGALRM)  # the time is over

    monkeypatch.setitem(methods.METHODS, "linear", methods.Method("scikit-learn", slow))
    first, second = board(tmp_path, "--splits", "1", "--kinds", "numbers", "--limit", "20")["records"]
    assert (first["failed"], first["limit"]) == ("took over 20 s", 20.0)
    assert "failed" not in second
    # A method's own limit counts where it is the shorter one.
    monkeypatch.setitem(methods.METHODS, "linear", methods.Method("scikit-learn", slow, limit=10.0))
    first, _ = board(tmp_path / "own", "--splits", "1", "--kinds", "numbers", "--limit", "20")["records"]
    assert (first["failed"], first["limit"]) == ("took over 10 s", 10.0)


def test_a_method_is_not_tried_on_tables_of_more_rows_than_it_takes(own_sets, tmp_path, monkeypatch):
    monkeypatch.setitem(methods.METHODS, "linear", methods.Method("scikit-learn", methods.linear, most_rows=239))
    argv = ["--methods", "linear", "histogram boosting", "random forest", "--splits", "1", "--kinds", "numbers"]
    found = board(tmp_path, *argv)["records"]
    assert [record["method"] for record in found] == ["histogram boosting", "random forest"]


def test_a_set_on_which_a_fit_takes_ten_minutes_has_one_split():
    quick, slow = {"set": "a", "split": 0, "seconds": 2.0}, {"set": "b", "split": 0, "seconds": 601.0}
    failed = {"set": "c", "split": 0, "failed": "took over 3600 s", "limit": 3600.0}
    refused = {"set": "d", "split": 0, "failed": "ValueError: no such thing"}
    found = [quick, slow, failed, refused]
    assert [name for name in "abcd" if command.has_one_split(found, name)] == ["b", "c"]


def test_bytes_are_those_of_our_file():
    class Model:
        def save(self, path):
            path.write_bytes(b"seven!!")

    assert command.bytes_of(Model()) == 7
    assert command.bytes_of([]) == len(pickle.dumps([]))


def test_a_cell_that_was_cut_short_keeps_its_records(tmp_path, monkeypatch):
    monkeypatch.setattr(all_cells, "ended", lambda *args: "time limit")
    folder = tmp_path / "cells" / "board"
    folder.mkdir(parents=True)
    (folder / "board.json").write_text('{"records": []}')
    assert all_cells.run_cell(tmp_path, all_cells.CELLS["board"], False, 1.0)["status"] == "time limit"
    assert (folder / "board.json").exists()


@pytest.mark.filterwarnings("ignore")  # of other packages, as the board does
@pytest.mark.parametrize("name", methods.METHODS)
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_every_method_takes_gaps_dates_and_new_levels(name, kind):
    if name not in methods.installed():
        pytest.skip("not installed")
    if name == "explainable boosting":
        pytest.skip("10 seconds")
    table = sets.Table(*(of_classes(0) if kind == "classes" else of_numbers(0)).pipe(halves))
    y = pd.factorize(table.y)[0] if kind == "classes" else table.y
    new = table.X[:20].assign(color="violet")
    model = methods.METHODS[name].make(kind == "classes", table.X).fit(table.X, y)
    predicted = (model.predict_proba if kind == "classes" else model.predict)(new)
    assert len(predicted) == 20
    assert np.isfinite(predicted).all()


def halves(table):
    X = table.iloc[:, 1:-1].copy()
    for name in ("color", "code"):
        X[name] = X[name].astype(object).where(X[name].notna(), None)
    return X, table["y"].to_numpy()


def test_standings_of_three_methods():
    losses = np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 4.0], [3.0, 1.0, np.inf], [1.0, 2.0, 4.0]])
    ours, beside, anchor = standings(losses, 0, 1, 2)
    assert (ours.rank, beside.rank, anchor.rank) == (1.375, 1.625, 3.0)
    assert beside.beaten[0] == 0.625  # two wins and half a draw of four
    assert anchor.beaten == (1.0, 1.0, 1.0)
    assert ours.ratio == pytest.approx((1 / 2 * 1 * 3 * 1 / 2) ** 0.25)
    assert anchor.ratio == pytest.approx((2 * 4 * 2) ** (1 / 3))  # the set on which it failed does not count
    assert anchor.elo == (1000.0, 1000.0, 1000.0)
    assert ours.elo[0] > beside.elo[0] > 1000
    assert ours.elo[1] < ours.elo[0] < ours.elo[2]


def test_elo_of_two_methods_is_that_of_their_share_of_wins():
    found = elo(np.array([[0.0, 30.0], [10.0, 0.0]]), anchor=1)
    np.testing.assert_allclose(found, [1000 + 400 * np.log10(30.5 / 10.5), 1000], atol=1e-6)


def records(kind, losses):
    facts = {"kind": kind, "split": 0, "rows": 100, "seconds": 2.0, "bytes": 5000, "us": 3.0, "max_rows": 100}
    shared = {"auc": 0.9, "error": 0.1}
    return [
        facts | shared | {"set": f"{kind} {i}", "method": method, "log_loss": loss, "of_deviation": loss}
        for i, row in enumerate(losses)
        for method, loss in zip(("slimsvm", "CatBoost", "random forest"), row)
    ]


def test_tables_of_the_docs_have_whole_sets_and_say_how_the_run_ended(tmp_path):
    found = [*records("classes", [[0.1, 0.2, 0.4], [0.3, 0.2, 0.4]]), *records("numbers", [[0.5, 0.6, 0.7]])]
    found += [record | {"set": "cut short"} for record in found[:2]]
    assert [line["sets"] for line in board_lines(found)] == [2, 2, 2, 1, 1, 1]
    cell = tmp_path / "cells" / "board"
    cell.mkdir(parents=True)
    done = {
        "cell": "board",
        "argv": ["board"],
        "machine": {},
        "load": 0.5,
        "begun": "2026-11-27",
        "status": "time limit",
    }
    (cell / "done.json").write_text(json.dumps(done))
    (cell / "board.json").write_text(json.dumps({"records": found}))
    text = BOARD_TABLES["board-classes"](Found(tmp_path))
    assert text.startswith("| 2 sets | mean rank |")
    assert "| **slimsvm** | 1.50 | 0.866 | – |" in text
    assert "| CatBoost | 1.50 | 1.000 | 50 % (0 to 100) |" in text
    assert "At most 100 rows train, 1 split; 2 of 3 sets begun have all methods (the run: time limit)." in text
    again = [record | {"split": 1} for record in found if record["set"] == "classes 0"]
    (cell / "board.json").write_text(json.dumps({"records": [*found, *again]}))
    text = BOARD_TABLES["board-classes"](Found(tmp_path))
    assert "2 splits (fewer of classes 1, cut short); 2 of 3 sets begun" in text
