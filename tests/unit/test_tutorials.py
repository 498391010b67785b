"""The tutorials' code runs as written, and prints what they say it prints."""

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))


def blocks(path):
    """(language, text) of every block."""
    return re.findall(r"^```(\w+)\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.S | re.M)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_code_runs_and_prints_what_the_page_says(path):
    names, printed, n_run = {}, "", 0
    for language, text in blocks(path):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, str(path), "exec"), names)
            printed, n_run = out.getvalue(), n_run + 1
        elif language == "text":
            assert text.strip() in printed
    assert n_run > 0


def test_tasks_of_ones_own_take_less_than_40_lines():
    path = next(path for path in TUTORIALS if path.stem == "own_task")
    classes = [
        node
        for language, text in blocks(path)
        if language == "python"
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
    ]
    lengths = {node.name: node.end_lineno - node.lineno + 1 for node in classes}
    assert {"Taxonomy", "TwoRows"} <= set(lengths)
    assert max(lengths.values()) < 40


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_files_that_a_page_shows_and_names_are_there(path):
    root, text = Path(__file__).parents[2], path.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:core|src|tests)/[\w/.]+)`", text):
        assert (root / name).exists(), name
    for name, options in re.findall(r"^```\{literalinclude\} (\S+)\n((?::.*\n)*)", text, flags=re.M):
        shown = (path.parent / name).read_text(encoding="utf-8")
        for marker in re.findall(r"^:(?:start-at|end-before): '(.*)'$", options, flags=re.M):
            assert marker in shown, (name, marker)
            shown = shown[shown.index(marker) + len(marker) :]
