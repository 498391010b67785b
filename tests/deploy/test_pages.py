"""The pages on deployment and explanations, the guide and README do as they say: their code runs, each in a folder."""

import ast
import contextlib
import io
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from node_for_tests import NODE
from runtime_for_tests import BUILT, built_library

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *sorted((DOCS / "deploy").glob("*.md")),
    DOCS / "explain.md",
    *(DOCS / f"{name}.md" for name in ("guide", "getting_started", "coming_from", "index")),
    DOCS.parent / "README.md",
]
COMPILER = shutil.which("cc")


def run_command(text, folder):
    """What a shell prints, with this Python and its programs first in line."""
    programs = [Path(sys.executable).parent, *([] if NODE is None else [Path(NODE).parent])]
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-ec", text],
        cwd=folder,
        env=os.environ | {"PATH": path, "RUNTIME": str(BUILT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_python(text, names):
    """What Python prints; the numbers in the comment behind a print are those that it prints, within a twentieth."""
    printed = ""
    for statement in ast.parse(text).body:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(ast.Module([statement], []), "page", "exec"), names)
        printed += out.getvalue()
        comment = text.splitlines()[statement.end_lineno - 1].partition("  # ")[2]
        numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", out.getvalue())]
        for number, percent in re.findall(r"(\d+(?:\.\d+)?)( %)?", comment if out.getvalue() else ""):
            said = float(number) / (100 if percent else 1)
            assert any(math.isclose(said, each, rel_tol=0.05) for each in numbers), (comment, out.getvalue())
    return printed


def require(page):
    """A skip where this machine lacks what the page uses."""
    if re.search(r"^cc ", page, flags=re.M) and COMPILER is None:
        pytest.skip("no C compiler")
    if "$RUNTIME" in page:
        built_library()
    if re.search(r"^node ", page, flags=re.M) and NODE is None:
        pytest.skip("no Node")
    if "import pandas" in page:
        pytest.importorskip("pandas")
    if "slimsvm.plots" in page:
        pytest.importorskip("matplotlib").use("Agg")
    if "onnxruntime" in page:
        pytest.importorskip("onnxruntime")
    if "skl2onnx" in page:
        pytest.importorskip("skl2onnx")
    for module in ("ziglang", "unicorn"):
        if re.search(rf"^(python -m|import) {module}", page, flags=re.M):
            pytest.importorskip(module, reason=f"no {module}: `make test` installs it")


def needs_debian(command):
    """Whether it needs a program of Debian's packages that is not there: the page has another way beside it."""
    return any(tool in command and shutil.which(tool) is None for tool in ("arm-none-eabi-gcc", "qemu-system-arm"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_runs_and_prints_what_it_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed, n_run = {}, "", 0
    page = path.read_text(encoding="utf-8")
    require(page)
    for name, language, text in re.findall(r"^(?:`([\w.]+)`:\n\n)?```(\w+)\n(.*?)^```", page, flags=re.S | re.M):
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
        elif language == "python":
            printed, n_run = run_python(text, names), n_run + 1
        elif language == "sh" and needs_debian(text):
            printed = None
        elif language == "sh":
            printed, n_run = run_command(text, tmp_path), n_run + 1
        elif language == "text":
            assert printed is None or text.strip() in printed
    assert n_run
