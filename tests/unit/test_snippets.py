"""Calls in the Python of README and docs, in blocks and within sentences, are calls that their functions take."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import slimsvm
from slimsvm import datasets, kernels, solvers, tasks

ROOT = Path(__file__).parents[2]
# Pages on what was tried may show what is gone.
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if "experiments" not in page.parts and page.name != "history.md"
    ),
]
KNOWN = {
    name: getattr(home, name)
    for home in (datasets, tasks, kernels, solvers, slimsvm)
    for name in home.__all__
    if callable(getattr(home, name))
}


def snippets(text):
    """Python of a page in its order, and whether it is a block or an expression within a sentence."""
    found = []
    for match in re.finditer(r"^```python\n(.*?)^```|(?<!`)`([^`\n]+)`(?!`)", text, flags=re.S | re.M):
        block, inline = match.groups()
        try:
            found.append((ast.parse(inline if block is None else block), block is not None))
        except SyntaxError:
            assert block is None, block
    return found


def faults(text):
    """Calls that their functions would not take, with the reason."""
    names, found = {}, []
    for tree, is_block in snippets(text):
        made = names if is_block else {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("slimsvm"):
                home = __import__(node.module, fromlist=["_"])
                found += [f"{node.module} has no {alias.name}" for alias in node.names if not hasattr(home, alias.name)]
                if node.module == "slimsvm.dask":
                    break
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                made[node.targets[0].id] = class_of(node.value, made)
            if isinstance(node, ast.Call):
                function, is_method = called(node.func, made)
                if function is not None and (fault := unfit(node, function, is_method)):
                    found.append(f"{ast.unparse(node)}: {fault}")
    return found


def class_of(node, made):
    """The class of what an expression makes, where it is one of ours; None otherwise."""
    if isinstance(node, ast.Name):
        return made.get(node.id)
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("fit", "set_params", "partial_fit"):
        return class_of(node.func.value, made)
    function, is_method = called(node.func, made)
    return function if isinstance(function, type) and not is_method else None


def called(func, made):
    """The function that a call means, and whether it is a method; None where it is none of ours."""
    if isinstance(func, ast.Name):
        return KNOWN.get(func.id), False
    if not isinstance(func, ast.Attribute):
        return None, False
    path = ast.unparse(func)
    if re.fullmatch(r"slimsvm(\.\w+)+", path):
        function = slimsvm
        for name in path.split(".")[1:]:
            function = getattr(function, name)
        return function, False
    owner = class_of(func.value, made)
    return (getattr(owner, func.attr), True) if owner is not None else (None, False)


def unfit(node, function, is_method):
    """Why a function would refuse a call; None where it would not, or where some of it is left out."""
    if any(isinstance(part, ast.Starred) for part in node.args) or any(k.arg is None for k in node.keywords):
        return None
    is_whole = not any(isinstance(part, ast.Constant) and part.value is ... for part in node.args)
    signature = inspect.signature(function)
    positional = [None] * (len(node.args) + is_method) if is_whole else []
    keywords = {keyword.arg: None for keyword in node.keywords}
    try:
        bound = (signature.bind if is_whole and node.args else signature.bind_partial)(*positional, **keywords)
    except TypeError as error:
        return str(error)
    lacks_grid = node.args and "param_grid" in signature.parameters and "param_grid" not in bound.arguments
    return "the grid is the second argument" if lacks_grid else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_functions_take_the_calls_that_pages_show(page):
    assert faults(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("`GridSearchSVC(grid)`", "GridSearchSVC(grid): the grid is the second argument"),
        ("`SVC(max_vectors=3)`", "SVC(max_vectors=3): got an unexpected keyword argument 'max_vectors'"),
        ("`SVC().fit(X)`", "SVC().fit(X): missing a required argument: 'y'"),
        ("```python\nfrom slimsvm import SVM\n```\n", "slimsvm has no SVM"),
        (
            "```python\nclf = SVC(C=2).fit(X, y)\nclf.certificate(X, y, gap=1)\n```\n",
            "clf.certificate(X, y, gap=1): got an unexpected keyword argument 'gap'",
        ),
        (
            "`slimsvm.compress(model, X, y, 1, 2, 3, 4, 5, 6, 7, 8)`",
            "slimsvm.compress(model, X, y, 1, 2, 3, 4, 5, 6, 7, 8): too many positional arguments",
        ),
    ],
)
def test_calls_that_functions_would_not_take_are_found(text, fault):
    assert faults(text) == [fault]
