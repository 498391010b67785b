"""The examples in docstrings print what they say."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import slimsvm

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(slimsvm.__path__, "slimsvm.")
    if not module.name.endswith(("__main__", "libslimsvm")) and not module.name.startswith("slimsvm.dask")
)


def examples_of(name):
    module = importlib.import_module(name)
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    with np.printoptions(legacy=False):
        for test in examples_of(name):
            assert runner.run(test).failed == 0, test.name
