"""Imports point one way, in the package and above it, and compiled code stays in one place.

Every import counts: at the top of a module, inside a function, under TYPE_CHECKING, by `importlib.import_module`.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "slimsvm"

# Lowest first. A unit may import the units of the rows above its own, and itself; units of one row are strangers.
# A module belongs to the unit of the longest name here that its own begins with.
ORDER = [
    ["core", "dictionaries", "docstrings", "lazy", "sparse_parts", "whole_file"],
    ["rows"],
    ["kernels", "modelfile", "datasets", "tables"],
    ["model", "deploy"],
    ["shapley"],
    ["tasks"],
    ["bases", "budget"],
    ["parts"],
    ["parts.problem", "parts.rounding"],
    ["parts.run"],
    ["parts.solver"],
    ["parts.resuming", "parts.values_of_C"],
    ["parts.cuts", "parts.dual_ascent"],
    ["parts.span", "parts.enclosing_ball", "parts.certificate", "parts.principal_directions"],
    ["parts.descent"],
    ["parts.pursuit", "parts.budgeted"],
    # Each published algorithm is a stranger to all others.
    [f"solvers.{path.stem}" for path in sorted((SOURCE / "solvers").glob("*.py")) if path.stem != "__init__"],
    ["solvers"],
    ["size_search"],
    ["editing"],
    ["estimators._shared"],
    ["estimators"],
    ["dask", "onnx"],
    ["__init__"],
    ["plots"],
    ["cli"],
    ["__main__"],
]
RANK = {unit: rank for rank, row in enumerate(ORDER) for unit in row}
# Data sets know rows and nothing of learning; only the command line (and tests, benchmarks) may ask for them.
USERS_OF_DATASETS = {"__init__", "cli"}
COMPILERS = {"numba", "llvmlite"}


def module_parts(path, root):
    """`root/rows/arrays.py` -> ["rows", "arrays"], `root/rows/__init__.py` -> ["rows"], `root/__init__.py` -> []."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def unit_of(parts):
    """The unit that a module belongs to: ["parts", "cuts", "oracles"] -> "parts.cuts", [] -> "__init__"."""
    names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((name for name in names if name in RANK), parts[0] if parts else "__init__")


def imported_names(tree, package):
    """Yield (line, dotted name) of everything imported; `package`: the parts that a leading dot stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            if node.level:
                base = ["slimsvm", *package[: len(package) - node.level + 1], *base]
            yield from ((node.lineno, ".".join([*base, alias.name])) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            if name in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def may_import(unit, other):
    """Whether the order allows a module of `unit` to import one of `other`."""
    if unit == other:
        return True
    if other == "datasets" and unit not in USERS_OF_DATASETS:
        return False
    return RANK[other] < RANK[unit]


def find_violations(root):
    """Return one sentence for every breach of the rules in the package at `root`."""
    problems = []
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        parts = module_parts(path, root)
        unit = unit_of(parts)
        if unit not in RANK:
            problems.append(f"{where}: {unit!r} has no place in the order of imports")
            continue
        package = parts if path.name == "__init__.py" else parts[:-1]
        for line, name in imported_names(ast.parse(text, filename=str(path)), package):
            top, *rest = name.split(".")
            if top in COMPILERS:
                problems.append(f"{where}:{line}: {top} is imported: compiled code is in core/")
            if top == "benchmarks":
                problems.append(f"{where}:{line}: {unit} must not import benchmarks")
            if top != "slimsvm":
                continue
            # `from slimsvm import SVC` is an import of the package itself, unless the name is one of its parts.
            other = unit_of(rest) if rest and (rest[0] in RANK or (root / rest[0]).exists()) else "__init__"
            if other not in RANK:
                problems.append(f"{where}:{line}: {other!r} has no place in the order of imports")
            elif not may_import(unit, other):
                problems.append(f"{where}:{line}: {unit} must not import {other}")
    return problems


def test_package_keeps_the_rules():
    assert find_violations(SOURCE) == []


def test_benchmarks_know_nothing_of_each_other():
    """Each imports its own room and `shared`, which imports none of them."""
    root, entrances, strangers = ROOT / "benchmarks", (["command_line"], ["__main__"], ["one_cell"]), []
    for path in sorted(root.rglob("*.py")):
        own = module_parts(path, root)[:1]
        for line, name in imported_names(ast.parse(path.read_text(encoding="utf-8")), []):
            top, *rest = name.split(".")
            if top == "benchmarks" and own not in entrances and rest[:1] not in (own, ["shared"]):
                strangers.append(f"{path.relative_to(root).as_posix()}:{line}: {name}")
    assert strangers == []


def test_order_names_no_part_twice():
    units = [unit for row in ORDER for unit in row]
    assert len(units) == len(set(units))


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("rows/arrays.py", "import slimsvm.kernels", "rows/arrays.py:1: rows must not import kernels"),
        ("rows/arrays.py", "from slimsvm.kernels.rbf import RBF", "rows/arrays.py:1: rows must not import kernels"),
        ("rows/arrays.py", "from slimsvm import kernels", "rows/arrays.py:1: rows must not import kernels"),
        ("rows/arrays.py", "from ..kernels import RBF", "rows/arrays.py:1: rows must not import kernels"),
        ("rows/__init__.py", "from ..kernels import RBF", "rows/__init__.py:1: rows must not import kernels"),
        ("rows/files/text.py", "from ...kernels import RBF", "rows/files/text.py:1: rows must not import kernels"),
        ("model.py", "def f():\n    from .tasks import Binary", "model.py:2: model must not import tasks"),
        ("bases/a.py", "from slimsvm.parts.cuts import Cut", "bases/a.py:1: bases must not import parts.cuts"),
        ("solvers/a.py", "from slimsvm.datasets import load", "solvers/a.py:1: solvers must not import datasets"),
        ("datasets/a.py", "from slimsvm.kernels import RBF", "datasets/a.py:1: datasets must not import kernels"),
        ("modelfile.py", "from slimsvm.kernels import RBF", "modelfile.py:1: modelfile must not import kernels"),
        ("solvers/a.py", "from slimsvm import SVC", "solvers/a.py:1: solvers must not import __init__"),
        ("__init__.py", "from .cli import main", "__init__.py:1: __init__ must not import cli"),
        (
            "kernels/a.py",
            "import importlib\nimportlib.import_module('slimsvm.tasks')",
            "kernels/a.py:2: kernels must not import tasks",
        ),
        (
            "rows/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import slimsvm.cli",
            "rows/a.py:3: rows must not import cli",
        ),
        ("misc.py", "x = 1", "misc.py: 'misc' has no place in the order of imports"),
        ("utils/a.py", "x = 1", "utils/a.py: 'utils' has no place in the order of imports"),
        ("cli/a.py", "from benchmarks.kernels import run", "cli/a.py:1: cli must not import benchmarks"),
        ("rows/a.py", "def f():\n    import numba", "rows/a.py:2: numba is imported: compiled code is in core/"),
        ("rows/a.py", "from numba.core import types", "rows/a.py:1: numba is imported: compiled code is in core/"),
        (
            "parts/span/a.py",
            "from slimsvm.solvers.cpsp import CPSP",
            "parts/span/a.py:1: parts.span must not import solvers.cpsp",
        ),
        (
            "parts/cuts/a.py",
            "from ..descent import adam",
            "parts/cuts/a.py:1: parts.cuts must not import parts.descent",
        ),
        (
            "solvers/cpsp.py",
            "from slimsvm.solvers import Exact",
            "solvers/cpsp.py:1: solvers.cpsp must not import solvers",
        ),
        (
            "solvers/bvm.py",
            "from slimsvm.solvers.cvm import CVM",
            "solvers/bvm.py:1: solvers.bvm must not import solvers.cvm",
        ),
        (
            "parts/run.py",
            "from slimsvm.parts import solver",
            "parts/run.py:1: parts.run must not import parts.solver",
        ),
        (
            "rows/a.py",
            "import slimsvm.solvers.lasvm",
            "rows/a.py:1: rows must not import solvers.lasvm",
        ),
        (
            "estimators/_shared/estimator.py",
            "from slimsvm.estimators.svc import SVC",
            "estimators/_shared/estimator.py:1: estimators._shared must not import estimators",
        ),
        ("rows/a.py", "from . import b\nfrom .b import c\nfrom slimsvm.core import threads\nimport numpy", None),
        ("model.py", "from .modelfile import read_model\nfrom .kernels.rbf import RBF", None),
        ("cli/a.py", "import slimsvm\nfrom slimsvm import SVC, plots\nfrom slimsvm.datasets import load", None),
        ("__init__.py", "from .estimators import SVC\nfrom . import datasets", None),
        (
            "solvers/cpsp.py",
            "from slimsvm.parts.cuts.cutting_plane_loop import Plan\nfrom slimsvm.parts import pursuit",
            None,
        ),
        ("solvers/__init__.py", "from slimsvm.solvers.bsca import BSCA", None),
        (
            "estimators/svc.py",
            "from slimsvm.estimators._shared import estimator\nfrom slimsvm.parts.run import Fit",
            None,
        ),
    ],
)
def test_each_breach_is_seen_and_nothing_else(tmp_path, file, text, problem):
    for unit in RANK:
        if unit != "__init__" and "." not in unit:
            (tmp_path / unit).mkdir()
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert find_violations(tmp_path) == ([] if problem is None else [problem])
