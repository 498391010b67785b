"""Links of pages that Sphinx does not read lead to files and headings that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [path for path in sorted(ROOT.glob("*.md")) if "](" in path.read_text(encoding="utf-8")]
LINK = re.compile(r'\]\(([^)\s]+)\)|src="([^"]+)"')


def headings(page):
    """Anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in found}


def dead_links(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for link in ("".join(groups) for groups in LINK.findall(text)):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in headings(target))):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert list(dead_links(page)) == []


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "there.md").write_text("# A heading, of two\n")
    page = tmp_path / "page.md"
    page.write_text('[a](there.md#a-heading-of-two) [b](there.md#b) [c](none.md) <img src="none.svg"> [d](https://d)\n')
    assert list(dead_links(page)) == ["there.md#b", "none.md", "none.svg"]
