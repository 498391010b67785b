"""Few combinations of many options in which every two options occur together."""

from itertools import combinations, product

import pytest


def pairwise(axes):
    """Rows of one option per axis: every pair of options of two axes is in some row; greedy, always the same.

    Parameters
    ----------
    axes : dict of name to list of options

    Returns
    -------
    list of tuples, in the order of the axes
    """
    names = list(axes)
    wanted = {(a, x, b, y) for a, b in combinations(names, 2) for x in range(len(axes[a])) for y in range(len(axes[b]))}
    rows = []
    while wanted:
        a, x, b, y = min(wanted)
        row = {a: x, b: y}
        for name in names:
            if name not in row:
                row[name] = max(range(len(axes[name])), key=lambda option: (_gain(row, name, option, wanted), -option))
        wanted -= {(a, row[a], b, row[b]) for a, b in combinations(names, 2)}
        rows.append(tuple(axes[name][row[name]] for name in names))
    return rows


def _gain(row, name, option, wanted):
    found = 0
    for other, chosen in row.items():
        found += (other, chosen, name, option) in wanted or (name, option, other, chosen) in wanted
    return found


def full_product(axes, among):
    """Every combination of the axes named in ``among``; the options of the others take turns."""
    names = list(axes)
    rows = []
    for number, chosen in enumerate(product(*(axes[name] for name in among))):
        row = dict(zip(among, chosen))
        rows.append(tuple(row.get(name, axes[name][number % len(axes[name])]) for name in names))
    return rows


def pairs_or_all(axes):
    """Parameters of every combination of the axes; `pairwise` has the ones that are not marked `full`."""
    chosen = pairwise(axes)
    return [pytest.param(*row, marks=() if row in chosen else pytest.mark.full) for row in product(*axes.values())]
