"""The public names: all there, typed, and imported only when asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import slimsvm


@pytest.mark.parametrize("name", slimsvm.__all__)
def test_every_public_name_is_what_its_home_has(name):
    value = getattr(slimsvm, name)
    home = slimsvm._HOMES.get(name)
    assert value is (getattr(sys.modules[f"slimsvm.{home}"], name) if home else sys.modules[f"slimsvm.{name}"])
    assert name in dir(slimsvm)


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(slimsvm.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    homes = {alias.name: node.module for node in block.body for alias in node.names}
    assert sorted(homes) == sorted(slimsvm.__all__)
    assert homes == {name: f"slimsvm.{slimsvm._HOMES[name]}".rstrip(".") for name in slimsvm.__all__}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'slimsvm' has no attribute 'SVN'"):
        _ = slimsvm.SVN


@pytest.mark.parametrize("statement", ["import slimsvm", "from slimsvm.cli import main; main(['--help'])"])
def test_the_bare_import_and_the_help_wait_for_nothing_big(statement):
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(answer.stdout.splitlines()[-1].split())
    assert "slimsvm" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "numba"}
