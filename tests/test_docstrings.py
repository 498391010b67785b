"""The examples in docstrings print what they say."""

import doctest
import importlib
import pkgutil
from importlib.util import find_spec

import numpy as np
import pytest

import slimsvm

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(slimsvm.__path__, "slimsvm.")
    if not module.name.endswith(("__main__", "libslimsvm")) and not module.name.startswith("slimsvm.dask")
)
WITH_EXAMPLES = [name for name in MODULES if ">>>" in find_spec(name).loader.get_source(name)]


def examples_of(name):
    module = importlib.import_module(name)
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    with np.printoptions(legacy=False):
        for test in examples_of(name):
            assert runner.run(test).failed == 0, test.name
