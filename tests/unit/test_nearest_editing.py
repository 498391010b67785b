"""Editing by nearest neighbours against the rules written out row by row."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

import naive
from slimsvm import Condense, EditedNN, MultiEdit
from slimsvm.datasets import two_gaussians
from slimsvm.editing import condense, edited_nearest_neighbours, multi_edit
from slimsvm.editing.nearest_neighbours import nearest_rows


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


# ---- as imbalanced-learn's samplers: which classes may lose rows, and by what vote


STRATEGIES = {
    "all": ["big", "mid", "rare"],
    "auto": ["big", "mid"],
    "not minority": ["big", "mid"],
    "not majority": ["mid", "rare"],
    "majority": ["big"],
    ("rare",): ["rare"],
    ("mid", "big"): ["big", "mid"],
}


def unequal(n=240, seed=0):
    """Three overlapping classes of unequal sizes."""
    X, codes = data(n, 3, seed)
    codes[(codes == 1) & (np.arange(n) % 3 == 0)] = 0
    codes[(codes == 2) & (np.arange(n) % 3 > 0)] = 0
    return X, np.array(["big", "mid", "rare"])[codes]


def kept_by_hand(X, y, k, kind, targets, metric=2):
    """Rows that stay, judged one by one."""
    kept = []
    for i in range(len(y)):
        distances = np.linalg.norm(X - X[i], ord=metric, axis=1)
        distances[i] = np.inf
        near = y[np.argsort(distances, kind="stable")[:k]]
        votes = {c: np.sum(near == c) for c in np.unique(y)}
        agrees = votes[y[i]] == (k if kind == "all" else max(votes.values()))
        if agrees or y[i] not in targets:
            kept.append(i)
    return kept


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("kind", ["all", "mode"])
def test_classes_that_may_lose_rows_and_kinds_of_votes(strategy, kind):
    X, y = unequal()
    given = list(strategy) if isinstance(strategy, tuple) else strategy
    editor = EditedNN(kind_sel=kind, sampling_strategy=given)
    _, y_kept = editor.fit_resample(X, y)
    assert editor.sample_indices_.tolist() == kept_by_hand(X, y, 3, kind, STRATEGIES[strategy])
    assert editor.sampling_strategy_ == dict.fromkeys(STRATEGIES[strategy], np.sum(y == "rare"))
    np.testing.assert_array_equal(y_kept, y[editor.sample_indices_])
    sparse = EditedNN(kind_sel=kind, sampling_strategy=lambda labels: STRATEGIES[strategy])
    sparse.fit_resample(sp.csr_array(X), y)
    np.testing.assert_array_equal(sparse.sample_indices_, editor.sample_indices_)


@pytest.mark.filterwarnings("ignore:MultiEdit discarded all rows")
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_classes_that_lose_no_rows_stay_whole_and_judge(strategy):
    X, y = unequal()
    given = list(strategy) if isinstance(strategy, tuple) else strategy
    for editor in (Condense(0, sampling_strategy=given), MultiEdit(random_state=0, sampling_strategy=given)):
        X_kept, y_kept = editor.fit_resample(X, y)
        for c in np.unique(y):
            assert (np.sum(y_kept == c) < np.sum(y == c)) == (c in STRATEGIES[strategy])
        if isinstance(editor, Condense):
            assert KNeighborsClassifier(1).fit(X_kept, y_kept).score(X, y) == 1.0


@pytest.mark.parametrize("n_neighbors", [1, 2, 5])
def test_an_object_finds_the_neighbours(n_neighbors):
    X, y = unequal()
    found = NearestNeighbors(n_neighbors=n_neighbors + 1, metric="manhattan")
    editor = EditedNN(found, kind_sel="all", sampling_strategy=["big", "mid"])
    editor.fit_resample(X, y)
    assert editor.sample_indices_.tolist() == kept_by_hand(X, y, n_neighbors, "all", ["big", "mid"], metric=1)
    assert not hasattr(found, "n_samples_fit_")


def test_the_two_smallest_of_one_size():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat(["a", "b", "c", "d"], 10)
    editor = EditedNN(sampling_strategy="auto").fit(X, y)
    assert list(editor.sampling_strategy_) == ["b", "c", "d"]
    assert list(EditedNN(sampling_strategy="majority").fit(X, y).sampling_strategy_) == ["a"]
    assert not hasattr(editor, "sample_indices_")
    assert editor.get_feature_names_out().tolist() == ["x0", "x1"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sampling_strategy": "minority"}, "sampling_strategy must be 'all', 'auto', .*found 'minority'"),
        ({"sampling_strategy": 0.5}, "sampling_strategy must be 'all', 'auto', .*found 0.5"),
        ({"sampling_strategy": {"big": 10}}, "sampling_strategy must be .* a list of classes or a function"),
        ({"sampling_strategy": ["large"]}, r"holds the class 'large', found only \['big', 'mid', 'rare'\] in y"),
        ({"sampling_strategy": None}, "sampling_strategy must be .*found None"),
        ({"kind_sel": "any"}, "kind_sel must be one of 'mode', 'all'; found 'any'"),
        ({"n_neighbors": NearestNeighbors(n_neighbors=1)}, "n_neighbors must be an integer >= 1, found 0"),
        ({"n_neighbors": None}, "n_neighbors must be an integer >= 1, found None"),
    ],
    ids=repr,
)
def test_what_no_strategy_is(parameters, message):
    with pytest.raises(ValueError, match=message):
        EditedNN(**parameters).fit_resample(*unequal())


@pytest.mark.parametrize("strategy", ["auto", "all", "majority", [1]], ids=str)
@pytest.mark.parametrize(("kind", "k"), [("all", 1), ("all", 3), ("all", 4), ("mode", 1)])
@pytest.mark.filterwarnings("ignore:EditedNN discarded all rows")
def test_imbalanced_learn_keeps_the_same_rows(strategy, kind, k):
    theirs = pytest.importorskip("imblearn.under_sampling").EditedNearestNeighbours(
        n_neighbors=k, kind_sel=kind, sampling_strategy=strategy
    )
    X, y = unequal()
    y = np.unique(y, return_inverse=True)[1]
    theirs.fit_resample(X, y)
    ours = EditedNN(k, kind_sel=kind, sampling_strategy=strategy)
    ours.fit_resample(X, y)
    np.testing.assert_array_equal(ours.sample_indices_, np.sort(theirs.sample_indices_))
    assert ours.sampling_strategy_ == theirs.sampling_strategy_
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
