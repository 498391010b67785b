"""Which combinations of options `make test` runs: the tests' own helper."""

from itertools import combinations, product
from types import SimpleNamespace

from pairwise import N_DRAWS, few_of_each, pairwise

AXES = {"kernel": ["rbf", "linear", "poly"], "container": ["C", "csr"], "dtype": [4, 8], "bad": [None, "NaN"]}


class Item(SimpleNamespace):
    __hash__ = object.__hash__

    def iter_markers(self, name):
        return [SimpleNamespace(args=self.turns)]


def items(function, axes, *turns):
    rows = [dict(zip(axes, row)) for row in product(*axes.values())]
    return [Item(nodeid=f"{function}[{row}]", callspec=SimpleNamespace(params=row), turns=turns) for row in rows]


def pairs(rows):
    return {pair for row in rows for pair in combinations(sorted(row.items(), key=lambda option: option[0]), 2)}


def test_every_pair_of_options_is_met_in_a_file_and_every_option_by_each_function():
    tests = items("one", AXES) + items("two", AXES) + [Item(nodeid="three", turns=())]
    chosen = few_of_each(tests)
    assert chosen[-1] is tests[-1]
    assert pairs(item.callspec.params for item in chosen[:-1]) == pairs(item.callspec.params for item in tests[:-1])
    for function in ("one", "two"):
        rows = [item.callspec.params for item in chosen if item.nodeid.startswith(function)]
        assert all({row[name] for row in rows} == set(options) for name, options in AXES.items())
    assert len(chosen) <= 10
    assert [item.nodeid for item in few_of_each(tests)] == [item.nodeid for item in chosen]


def test_options_that_take_turns_and_draws():
    assert len(few_of_each(items("one", {"kernel": range(5), "bad": range(3)}, "bad"))) == 5
    assert len(few_of_each(items("one", {"kernel": range(5), "seed": range(3)}))) == 5
    assert len(few_of_each(items("one", {"seed": range(30)}))) == N_DRAWS


def test_rows_without_what_is_impossible():
    rows = pairwise(AXES, lambda row: row.get("kernel") == "poly" and row.get("container") == "csr")
    found = pairs(dict(zip(AXES, row)) for row in rows)
    possible = pairs(dict(zip(AXES, row)) for row in product(*AXES.values()) if row[:2] != ("poly", "csr"))
    assert found == possible
