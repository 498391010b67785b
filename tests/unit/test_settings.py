"""Settings: what steers a part, given with the problem; where its numbers come from is said beside them."""

import ast
import re
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class OneSettings:
    size: int = 3


@dataclass(frozen=True)
class OtherSettings:
    size: int = 5


def test_a_part_finds_what_it_was_given_or_its_defaults():
    y = np.array([1, -1])
    problem = Problem(as_rows(np.eye(2)), Binary().encode(y), Binary(), RBF(1.0), settings=(OneSettings(7),))
    for smaller in (problem, replace(problem, C=2.0)):
        assert smaller.settings_of(OneSettings) == OneSettings(7)
        assert smaller.settings_of(OtherSettings) == OtherSettings(5)
    with pytest.raises(FrozenInstanceError):
        problem.settings_of(OtherSettings).size = 1


def classes_of_settings():
    """The source of every class of the package whose name ends with Settings, by file and name."""
    found = {}
    for path in sorted((ROOT / "src/slimsvm").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "Settings:" in source:
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ClassDef) and re.fullmatch(r"\w+Settings", node.name):
                    found[path.stem, node.name] = ast.get_source_segment(source, node)
    return found


@pytest.mark.parametrize("name", CLASSES := classes_of_settings(), ids=lambda name: name[1])
def test_settings_say_which_experiment_settled_them_or_that_none_did(name):
    assert "docs/experiments/" in CLASSES[name] or "not measured" in CLASSES[name]


def test_the_experiments_that_the_code_names_are_there():
    named = set()
    for path in (ROOT / "src/slimsvm").rglob("*.py"):
        text = re.sub(r"\n *#? *", " ", path.read_text(encoding="utf-8"))
        named.update(re.findall(r"docs/experiments/ ?(\w+\.md)", text))
    assert len(named) > 5
    assert named <= {path.name for path in (ROOT / "docs/experiments").glob("*.md")}
