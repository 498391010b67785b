"""One page of what ``python -m benchmarks all`` measured: each paper's figures and tables beside ours, and the peers.

report.html is self-contained (no network; tables sort by a click on a head), report.md has the same without pictures,
and page.md is the same as a page of the docs. What was not measured, failed or ran out of time is said.
"""

from __future__ import annotations

import argparse
import base64
import html
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from benchmarks.report.found import Found
from benchmarks.report.papers import SECTIONS
from benchmarks.report.verdicts import SEEN, Verdict, timed
from benchmarks.shared.registry import BENCHES, draw
from slimsvm.cli.output import CommandError, say

COLOURS = 48  # of a picture
MOST_TOLD = 4  # checks in the text that stands for a picture
INTRODUCTION = (
    "The figures and tables of four papers, measured with this library's implementations, and other libraries beside "
    "ours. Each claim of a paper is checked: ✓ if it agrees with what was measured here, ✗ if not, and why. "
    "A click on the head of a column sorts a table."
)
TEMPLATE = Path(__file__).with_name("page.html")
SORTING = Path(__file__).with_name("sorting.js")


class Item(NamedTuple):
    """A figure or table: what it is, what is to be said (a paragraph a line), tables of plain cells, and pictures."""

    title: str
    text: str
    tables: Sequence[Sequence[Mapping[str, Any]]] = ()
    pictures: Sequence[Path] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks report``."""
    parser.add_argument("--results", metavar="DIR", default="results", help="where `all` wrote (default: %(default)s)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Write the page.

    Returns
    -------
    dict
        ``table``: sections with their items, tables and pictures.
    """
    found = Found(Path(args.results))
    if not found.cells:
        raise CommandError(f"{args.results}: no cells of `python -m benchmarks all` are there")
    with tempfile.TemporaryDirectory() as drawn:
        found.draw_what_lacks(Path(drawn), pictures_of)
        return written(found, Path(args.output))


def item_of(title: str, text: Any, tables: Sequence[Any], pictures: Sequence[Path]) -> Item:
    """An item; of a verdict the checks are a table."""
    checks = [text.table] if isinstance(text, Verdict) and text.checks else []
    return Item(title, str(text), [*checks, *tables], pictures)


def pictures_of(name: str, results: dict[str, Any], folder: Path) -> list[Path]:
    """The pictures of a benchmark, drawn again from its numbers."""
    return draw(getattr(import_module(BENCHES[name].module), "plot", None), with_timed(results), folder)


def with_timed(results: dict[str, Any]) -> dict[str, Any]:
    """Results whose records have the processor's seconds, as the texts."""
    return results | {"records": timed(results["records"])} if "records" in results else results


def written(found: Found, folder: Path) -> dict[str, Any]:
    """Write both files; what they have."""
    sections = [(title, [item_of(*parts) for parts in make(found)]) for title, make in SECTIONS.items()]
    folder.mkdir(parents=True, exist_ok=True)
    for name, write in (("report.html", as_html), ("report.md", as_markdown), ("page.md", as_docs)):
        (folder / name).write_text(write(sections, found), encoding="utf-8")
        say(f"written: {folder / name}")
    return {
        "table": [
            {
                "section": title,
                "items": len(items),
                "tables": sum(len(item.tables) for item in items),
                "pictures": sum(len(item.pictures) for item in items),
            }
            for title, items in sections
        ]
    }


def shown(value: Any) -> str:
    """A cell's text."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """All columns, in the order in which they first come."""
    return list(dict.fromkeys(name for row in rows for name in row))


def as_html(sections: Iterable[tuple[str, list[Item]]], found: Found) -> str:
    """The page, with its style and script."""
    parts = []
    for title, items in sections:
        parts.append(f'<section id="{anchor(title)}"><h2>{html.escape(title)}</h2>')
        parts += [f"<article><h3>{html.escape(item.title)}</h3>{content(item)}</article>" for item in items]
        parts.append("</section>")
    links = "".join(f'<a href="#{anchor(title)}">{html.escape(title)}</a>' for title, _ in sections)
    page = TEMPLATE.read_text(encoding="utf-8")
    texts = {
        "INTRODUCTION": INTRODUCTION,
        "FACTS": html.escape(found.facts()),
        "LINKS": links,
        "BODY": "\n".join(parts),
        "SCRIPT": script(),
    }
    for name, text in texts.items():
        page = page.replace(f"<!-- {name} -->", text)
    return page


def script() -> str:
    """Sorts tables by a click on a head."""
    return f"<script>\n{SORTING.read_text(encoding='utf-8')}</script>"


def content(item: Item) -> str:
    """What stands below an item's title, in one line: its text, pictures and tables."""
    parts = [f"<p>{html.escape(line)}</p>" for line in item.text.splitlines()]
    parts += [picture(path, item) for path in item.pictures]
    parts += [table(rows) for rows in item.tables if rows]
    return "".join(parts)


def anchor(title: str) -> str:
    """A section's place."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def picture(path: Path, item: Item) -> str:
    """A picture, in the page itself, in few colours: a quarter of the bytes, and nobody sees it."""
    with Image.open(path) as image, BytesIO() as few:
        image.convert("RGB").quantize(COLOURS).save(few, "png", optimize=True)
        data = base64.b64encode(few.getvalue()).decode("ascii")
    cell = html.escape(path.parent.name)
    alt = html.escape(f"{item.title} ({path.parent.name}). {seen_in(path, item)}", quote=True)
    return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}"><figcaption>{cell}</figcaption></figure>'


def seen_in(path: Path, item: Item) -> str:
    """What was checked of the set of a picture's cell; where nothing was, what is said of all."""
    told = [str(row["checked"]) for rows in item.tables[:1] for row in rows if "checked" in row]
    checked = [line for line in told if is_about(path, line)]
    if checked:
        return f"{'; '.join(checked[:MOST_TOLD])}."
    if any(is_about(other, line) for other in item.pictures for line in told):
        return "Of this set nothing was checked."
    lines = item.text.splitlines()
    return next((line for line in lines if line.startswith(SEEN)), "".join(lines[:1]))


def is_about(path: Path, checked: str) -> bool:
    """Whether a check is about the set of a picture's cell, in whose folder the picture is."""
    name = re.split(r"[ ,:]", checked, maxsplit=1)[0].replace("*", "all")
    return path.parent.name.endswith(f"-{name}")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table that sorts."""
    columns = columns_of(rows)
    head = "".join(f'<th scope="col"><button type="button">{html.escape(name)}</button></th>' for name in columns)
    body = "".join("<tr>" + "".join(entry(shown(row.get(name))) for name in columns) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def entry(text: str) -> str:
    """An entry of a table; sentences have room, so that rows are not as high as a screen."""
    kind = ' class="sentence"' if len(text) > 60 else ""
    return f"<td{kind}>{html.escape(text)}</td>"


def as_docs(sections: Iterable[tuple[str, list[Item]]], found: Found) -> str:
    """A page for Sphinx, which makes the navigation of the titles; all else is HTML."""
    lines = ["# The papers and the peers, measured", "", INTRODUCTION, "", found.facts(), ""]
    for title, items in sections:
        lines += [f"## {title}", ""]
        for item in items:
            lines += [f"### {item.title}", "", f"<div>{content(item)}</div>", ""]
    return "\n".join(lines) + f"\n{script()}\n"


def as_markdown(sections: Iterable[tuple[str, list[Item]]], found: Found) -> str:
    """The same as text."""
    lines = ["# What was measured", "", found.facts(), ""]
    for title, items in sections:
        lines += [f"## {title}", ""]
        for item in items:
            lines += [f"### {item.title}", "", *(part for line in item.text.splitlines() for part in (line, ""))]
            lines += [f"(picture: {path.parent.name}, {path.name})" for path in item.pictures]
            for rows in item.tables:
                if rows:
                    lines += [*markdown(rows), ""]
    return "\n".join(lines) + "\n"


def markdown(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A Markdown table."""
    columns = columns_of(rows)
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(shown(row.get(name)) for name in columns) + " |" for row in rows]
