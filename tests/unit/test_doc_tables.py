"""``python -m benchmarks tables``: README's and the docs' tables are those of the committed results."""

import json

import pytest

from benchmarks.command_line import main
from benchmarks.report import doc_tables
from benchmarks.report.doc_tables import PAGES, PLACE, RESULTS, ROOT, TABLES, WRITTEN, with_tables
from benchmarks.report.found import Found
from benchmarks.report.paper_tables import counted_cases
from slimsvm.cli.output import CommandError


@pytest.fixture(scope="module")
def found():
    return Found(RESULTS)


def test_every_page_has_what_the_results_say_and_every_table_has_a_page(found):
    used = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert with_tables(text, found) == text, f"{page}: run `python -m benchmarks tables`"
        used += [name for _, name, _ in PLACE.findall(text)]
    assert sorted(used) == sorted(WRITTEN)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_rows_and_says_where_it_was_measured(name, found):
    lines = TABLES[name](found).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) >= 2 + 3
    assert len({line.count("|") for line in rows}) == 1
    assert "python -m benchmarks" in lines[-2] + lines[-1]
    assert "load" in lines[-2] + lines[-1]


def test_cases_of_bsca_are_counted():
    """The sentence stood in the page by hand, with 6 for 5 of the counts."""
    share = "soon"
    rows = [
        {"data": data, "B": 200, share: soon, "± of bsca's last epochs %": 1.0, "± of bsgd's last epochs %": spread}
        for data, soon, spread in (("a", 0.5, 2.0), ("b", None, 0.5), ("c", 0.51, 2.0))
    ]
    merges = {"bsca": 0.1, "bsgd": 0.2}
    table = [{"data": row["data"], "B": 200, "method": m, "merges": k} for row in rows for m, k in merges.items()]

    class Cells:
        def rows(self, kind, key):
            return {"acceptance": rows, "table": table}[key]

    assert counted_cases(Cells(), "many-epochs", share) == (
        "BSCA merges less often than BSGD in 3 of 3 cases, and is the steadier one in 2. It reaches BSGD's last error, "
        "and stays there, in 2, within half of BSGD's time in 1."
    )


def test_a_number_that_was_changed_by_hand_is_found_and_mended(tmp_path, monkeypatch, capsys):
    original = next(page for page in PAGES if page.name == "README.md").read_text(encoding="utf-8")
    page = tmp_path / "README.md"
    page.write_text(original.replace("100 vectors |", "90 vectors |"), encoding="utf-8")
    monkeypatch.setattr(doc_tables, "PAGES", (page,))
    argv = ["tables", "--output", str(tmp_path)]
    assert main([*argv, "--check"]) == 1
    assert "its tables are not those" in capsys.readouterr().err
    assert main(argv) == 0
    assert page.read_text(encoding="utf-8") == original
    assert main([*argv, "--check"]) == 0


def test_a_place_for_no_table_is_an_error(found):
    with pytest.raises(CommandError, match="none is no table; there are first-screen"):
        with_tables("<!-- results: none -->\n<!-- end of results -->\n", found)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_table_without_results_is_an_error(name, tmp_path):
    with pytest.raises((CommandError, KeyError, ValueError)):
        TABLES[name](Found(tmp_path))


def test_texts_of_pictures_say_what_was_measured():
    readme, home, tables = (ROOT / name for name in ("README.md", "docs/index.md", "docs/tables.md"))
    record = json.loads((RESULTS / "cells/first-screen/few-vectors.json").read_text(encoding="utf-8"))
    lines = {line["method"]: line for line in record["table"]}
    exact, few = lines["SVC()"], [line for line in lines.values() if line["vectors"] in (100, 200)]
    assert len(few) == 4
    assert max(line["error_percent"] for line in few) < exact["error_percent"]
    said = f"models of 100 and 200 learned vectors err less than the exact SVM of {exact['vectors']:,}"
    assert said in readme.read_text(encoding="utf-8")
    assert said in home.read_text(encoding="utf-8")
    assert "on 32 tables with classes and 21 with numbers: slimsvm stands first on both" in readme.read_text("utf-8")
    rows = tables.read_text(encoding="utf-8").splitlines()
    for n_sets in (32, 21):
        head = next(k for k, row in enumerate(rows) if row.startswith(f"| {n_sets} sets |"))
        assert rows[head + 2].startswith("| **slimsvm** |")
