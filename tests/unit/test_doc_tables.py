"""``python -m benchmarks tables``: README's and the docs' tables are those of the committed results."""

import pytest

from benchmarks.command_line import main
from benchmarks.report import doc_tables
from benchmarks.report.doc_tables import PAGES, PLACE, RESULTS, TABLES, with_tables
from benchmarks.report.found import Found
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
    assert sorted(used) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_rows_and_says_where_it_was_measured(name, found):
    lines = TABLES[name](found).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) >= 2 + 3
    assert len({line.count("|") for line in rows}) == 1
    assert "python -m benchmarks" in lines[-2] + lines[-1]
    assert "load" in lines[-2] + lines[-1]


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


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_results_is_an_error(name, tmp_path):
    with pytest.raises((CommandError, KeyError)):
        TABLES[name](Found(tmp_path))
