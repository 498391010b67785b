"""Editing by nearest neighbours against the rules written out row by row."""

import numpy as np
import pytest

import naive
from slimsvm import Condense, EditedNN, MultiEdit
from slimsvm.datasets import two_gaussians
from slimsvm.editing import condense, edited_nearest_neighbours, multi_edit
from slimsvm.editing.neighbours import nearest_rows


def data(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, :n_classes] + 0.5 * rng.normal(size=(n, n_classes))).argmax(axis=1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_edited_nearest_neighbours_is_wilsons_rule(seed, n_classes, k):
    X, y = data(60, n_classes, seed)
    np.testing.assert_array_equal(edited_nearest_neighbours(X, y, k), naive.edited_nearest_neighbours(X, y, k))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_condense_is_harts_rule(seed, n_classes):
    X, y = data(80, n_classes, seed)
    order = np.random.default_rng(seed).permutation(80)
    np.testing.assert_array_equal(condense(X, y, order), naive.condensed(X, y, order))


def test_condense_over_several_blocks_and_passes():
    X, y = data(700, 2, 0)
    order = np.random.default_rng(0).permutation(700)
    store = condense(X, y, order)
    np.testing.assert_array_equal(store, naive.condensed(X, y, order))
    near = nearest_rows(X[store], 1, X)[:, 0]
    np.testing.assert_array_equal(y[store][near], y)


def test_condense_with_contradicting_duplicates_ends():
    X = np.repeat(np.arange(5.0)[:, None], 2, axis=0)
    y = np.tile([0, 1], 5)
    store = condense(X, y, np.arange(10))
    assert set(y[store]) == {0, 1}


def test_nearest_rows_leave_the_row_itself_out_even_among_duplicates():
    X = np.concatenate([np.zeros((6, 2)), np.ones((3, 2))])
    found = nearest_rows(X, 2)
    assert (found != np.arange(9)[:, None]).all()
    assert (found[:6] < 6).all()
    assert (found[6:] >= 6).all()


def test_as_many_neighbours_as_there_are():
    X, y = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1])
    np.testing.assert_array_equal(edited_nearest_neighbours(X, y, 100), [0, 1])


def test_multi_edit_leaves_what_further_rounds_agree_with():
    """Survivors are separable by nearest neighbours, on the right side of the Bayes boundary nearly all of them."""
    X, y = two_gaussians(3000, 2, 2.0, random_state=0)
    right = (X.sum(axis=1) > 0) == (y > 0)
    kept = multi_edit(X, (y > 0).astype(int), 3, 3, np.random.default_rng(0), 1)
    assert right.mean() < 0.86
    assert right[kept].mean() > 0.99
    assert len(kept) > 0.6 * len(X)
    near = nearest_rows(X[kept], 1)[:, 0]
    assert np.mean(y[kept][near] == y[kept]) > 0.995


def test_more_quiet_rounds_discard_no_less():
    X, y = two_gaussians(600, 2, 1.5, random_state=0)
    sizes = [len(multi_edit(X, (y > 0).astype(int), 3, T, np.random.default_rng(0), 1)) for T in (1, 3, 6)]
    assert sizes == sorted(sizes, reverse=True)


def test_a_class_that_is_lost_is_named():
    X, y = data(200, 2, 0)
    y[:] = 0
    y[:3] = 1
    with pytest.warns(UserWarning, match="MultiEdit discarded all rows of class few"):
        MultiEdit(random_state=0).fit_resample(X, np.array(["many", "few"])[y])


def test_edit_then_condense():
    """The paper's pair: MultiEdit makes the set for which Condense leaves little."""
    X, y = two_gaussians(2000, 2, 2.0, random_state=0)
    alone = Condense(random_state=0).fit_resample(X, y)[0]
    after = Condense(random_state=0).fit_resample(*MultiEdit(random_state=0).fit_resample(X, y))[0]
    wilson = Condense(random_state=0).fit_resample(*EditedNN().fit_resample(X, y))[0]
    assert len(after) < 0.05 * len(alone)
    assert len(after) < len(wilson) < len(alone)
