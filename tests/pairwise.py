"""Few combinations of many options in which every two options occur together.

Tests state every combination that there is, by a `parametrize` for each axis: `make test-all` runs them all, and
`few_of_each` chooses what `make test` runs.
"""

from collections import defaultdict
from itertools import combinations, product

import pytest

# Arguments that only draw anew: the first few of their values occur, and not with every value of the others.
DRAWS = ("seed", "draw")
N_DRAWS = 6


def pairwise(axes, impossible=lambda row: False):
    """Rows of one option per axis: every pair of options of two axes is in some row; greedy, always the same.

    Parameters
    ----------
    axes : dict of name to list of options
    impossible : callable
        Whether no row has these options, given by the names of their axes.

    Returns
    -------
    list of tuples, in the order of the axes
    """
    names = list(axes)
    pairs = ((a, x, b, y) for a, b in combinations(names, 2) for x in range(len(axes[a])) for y in range(len(axes[b])))
    wanted = {(a, x, b, y) for a, x, b, y in pairs if not impossible({a: axes[a][x], b: axes[b][y]})}
    rows = []
    while wanted:
        a, x, b, y = min(wanted)
        row = {a: x, b: y}
        for name in names:
            if name not in row:
                row[name] = max(
                    (option for option in range(len(axes[name])) if not impossible(_named(row | {name: option}, axes))),
                    key=lambda option: (_gain(row, name, option, wanted), -option),
                )
        wanted -= {(a, row[a], b, row[b]) for a, b in combinations(names, 2)}
        rows.append(tuple(axes[name][row[name]] for name in names))
    return rows


def _named(row, axes):
    return {name: axes[name][option] for name, option in row.items()}


def _gain(row, name, option, wanted):
    found = 0
    for other, chosen in row.items():
        found += (other, chosen, name, option) in wanted or (name, option, other, chosen) in wanted
    return found


def full_product(axes, among, impossible=lambda row: False):
    """Every possible combination of the axes named in ``among``; the options of the others take turns."""
    names = list(axes)
    rows = []
    for number, chosen in enumerate(product(*(axes[name] for name in among))):
        row = {name: axes[name][number % len(axes[name])] for name in names} | dict(zip(among, chosen))
        if not impossible(row):
            rows.append(tuple(row.values()))
    return rows


def crossed(axes):
    """A decorator: a test of every combination of the axes, named as its arguments."""

    def decorate(test):
        for name in reversed(axes):
            test = pytest.mark.parametrize(name, axes[name])(test)
        return test

    return decorate


# ---- which of a file's tests


def few_of_each(items):
    """Those of a file's tests that meet every option, and every pair of options of two axes; always the same.

    Each function meets every option of its own axes. Where several functions have the same two axes, as all tests of
    kernels have kernels and containers, a pair of options is met in one of them: the functions are an axis, too.
    `turns` names axes of which no pairs are asked for.
    """
    functions = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    functions = {name: _first_draws(tests) for name, tests in functions.items()}
    met, chosen = set(), set()
    for needed in (_options, _options_and_pairs):
        for name, tests in functions.items():
            left = [(item, needed(name, item), _options_and_pairs(name, item)) for item in tests]
            while left:
                item, of_function, of_file = max(left, key=lambda test: (bool(test[1] - met), len(test[2] - met)))
                if of_function <= met:
                    break
                chosen.add(item)
                met |= of_file
    return [item for item in items if item in chosen]


def _first_draws(tests):
    for name in DRAWS:
        drawn = dict.fromkeys(_given(item).get(name) for item in tests)
        tests = [item for item in tests if _given(item).get(name) in list(drawn)[:N_DRAWS]]
    return tests


def _given(item):
    return item.callspec.params if hasattr(item, "callspec") else {}


def _options(function, item):
    """What each argument is. Of a list of rows all are kept where one argument differs in every row."""
    return {(function, name, _key(value)) for name, value in _given(item).items()} | {(function,)}


def _options_and_pairs(function, item):
    options = _options(function, item)
    taking_turns = {*DRAWS, *(name for mark in item.iter_markers("turns") for name in mark.args)}
    paired = sorted((option[1:] for option in options if len(option) > 1), key=lambda option: option[0])
    return options | set(combinations([option for option in paired if option[0] not in taking_turns], 2))


def _key(value):
    """Equal for what is the same option in two functions."""
    return (type(value), value) if isinstance(value, (str, bytes, int, float)) else id(value)
