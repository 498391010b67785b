"""The public names: all there, typed, and imported only when asked for."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import slimsvm
import slimsvm.estimators

LISTED = Path(__file__).parents[1] / "fixtures" / "public_names.txt"


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


def test_a_silent_fit_waits_for_no_bar():
    code = "import sys\nfrom slimsvm import SVC\nSVC().fit([[0.0], [1.0]], [0, 1])\nprint(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tqdm" not in answer.stdout.split()


def described(name):
    """A public name with its parameters and their defaults; a module or an exception by its name alone."""
    value = getattr(slimsvm, name)
    if inspect.ismodule(value) or (inspect.isclass(value) and issubclass(value, Exception)):
        return name
    plain = [each.replace(annotation=each.empty) for each in inspect.signature(value).parameters.values()]
    return f"{name}{inspect.Signature(plain)}"


def test_names_and_parameters_are_those_listed():
    """Who adds or changes a parameter changes tests/fixtures/public_names.txt and docs/history.md, too."""
    assert [described(name) for name in slimsvm.__all__] == LISTED.read_text(encoding="utf-8").splitlines()


def test_estimators_describe_each_parameter_once():
    for name in slimsvm.estimators.OF_ONE_MODEL:
        estimator = getattr(slimsvm, name)
        section = estimator.__doc__.split("Parameters\n----------\n")[1].split("\n\n")[0]
        headers = [line.split(" : ")[0] for line in section.splitlines() if line[0] != " "]
        assert sorted(", ".join(headers).split(", ")) == sorted(inspect.signature(estimator).parameters), name
        assert "As in `SVC`" not in estimator.__doc__
