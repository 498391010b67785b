"""`RankSVM`: queries in, scores out."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold

import slimsvm
from slimsvm import CPSP, RankSVM, Refine, ViolatedCuts
from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.solvers import ExactCuts
from slimsvm.tasks import AveragePrecision, Swaps, losses

LOSSES = ["swaps", "average_precision"]
NO_PLAIN = np.zeros(0)


def documents(n=150, seed=0, n_queries=15):
    """Rows of queries in any order, whose level is the query's own: only differences within a query mean anything."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_queries, n)
    groups[:2] = 0
    good = rng.normal(size=n)
    grade = np.digitize(good + 0.2 * rng.normal(size=n), [-0.5, 0.8])
    grade[:2] = 0, 2
    return (
        np.column_stack([np.sin(good), np.cos(good), rng.normal(size=n)]),
        grade,
        np.char.add("q", groups.astype(str)),
    )


def pair_hinge(scores, y):
    wins = y[:, None] > y
    return np.maximum(0, 1 - (scores[:, None] - scores))[wins].mean() if wins.any() else 0.0


# ---- the tasks on more rows than can be enumerated


@pytest.mark.parametrize("ties", [False, True])
def test_swaps_are_the_mean_hinge_of_all_pairs(ties):
    rng = np.random.default_rng(0)
    lengths = [1, 0, 30, 2, 40, 5]
    queries = [rng.normal(size=n).round() for n in lengths]
    task = Swaps()
    examples = task.encode(queries)
    for scale in (0.1, 1.0, 10.0):
        scores = scale * (rng.integers(-3, 4, 78) / 2 if ties else rng.normal(size=78))
        values = losses(task.augment(scores[:, None], NO_PLAIN, examples), scores[:, None], NO_PLAIN, examples)
        parts = np.split(scores, np.cumsum(lengths)[:-1])
        np.testing.assert_allclose(values, [pair_hinge(s, y) for s, y in zip(parts, queries)], atol=1e-12)


def slow_average_precision_loss(scores, relevant):
    """Every place of every irrelevant row is tried, whatever the others' places (Yue et al., SIGIR 2007)."""
    highs, lows = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])[::-1]
    P, N, total = len(highs), len(lows), 0.0
    for j, low in enumerate(lows, start=1):
        worth = [0.0]
        for i in range(P, 0, -1):
            worth.append(worth[-1] + (j / (i + j) - (j - 1) / (i + j - 1)) / P - (highs[i - 1] - low) / (P * N))
        total += max(worth)
    return total


@pytest.mark.parametrize("ties", [False, True])
def test_average_precision_by_all_places(ties):
    rng = np.random.default_rng(1)
    task = AveragePrecision()
    for n, share in ((60, 0.5), (60, 0.05), (200, 0.2)):
        y = (rng.random(n) < share).astype(int)
        y[:2] = 0, 1
        examples = task.encode([y])
        for scale in (0.05, 0.3, 3.0):
            scores = scale * (rng.integers(-3, 4, n) / 2 if ties else rng.normal(size=n) + y)
            augmented = task.augment(scores[:, None], NO_PLAIN, examples)
            value = losses(augmented, scores[:, None], NO_PLAIN, examples)[0]
            assert value == pytest.approx(slow_average_precision_loss(scores, y == 1), abs=1e-12)


def test_measures():
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 2, 50), rng.integers(0, 9, 50).astype(float)
    task = AveragePrecision()
    parts = [slice(0, 20), slice(20, 50)]
    expected = [average_precision_score(y[part], scores[part]) for part in parts]
    np.testing.assert_allclose(task.measures(scores, task.encode([y[part] for part in parts])), expected)
    task, grades = Swaps(), rng.integers(0, 4, 50)
    right = np.sign(scores[:, None] - scores)[grades[:, None] > grades]
    measured = task.measures(scores, task.encode([grades]))
    np.testing.assert_allclose(measured, [(right.mean() + 1) / 2])


def test_queries_without_a_pair_have_no_loss():
    for task in (Swaps(), AveragePrecision()):
        examples = task.encode([[3], [], [1, 1, 1], [1, 0]])
        scores = np.array([5.0, 1.0, 2.0, 3.0, 1.0, 9.0])
        augmented = task.augment(scores[:, None], NO_PLAIN, examples)
        assert augmented.delta.tolist() == [0, 0, 0, 1 if isinstance(task, Swaps) else 0.5]
        assert not augmented.coef[:4].any()
        assert np.isnan(task.measures(scores, examples)).tolist() == [True, True, True, False]
        assert task.error(scores[:4], examples.take(np.arange(3))) == 0


# ---- special cases that must coincide


@pytest.mark.parametrize("loss", LOSSES)
def test_a_pair_is_a_hinge_on_the_difference(loss):
    """min ½‖w‖² + C max(0, Δ − w·(x₊ − x₋)), Δ = 1 for a swapped pair, ½ for the AP of the second of two rows."""
    X = np.array([[1.0, 2.0], [0.5, -1.0]])
    difference, delta = X[0] - X[1], 1.0 if loss == "swaps" else 0.5
    for C in (0.01, 10.0):
        clf = RankSVM(C=C, kernel="linear", loss=loss).fit(X, [1, 0], groups=[0, 0])
        alpha = min(C, delta / (difference @ difference))
        np.testing.assert_allclose(clf.basis_vectors_.T @ clf.basis_coef_[:, 0], alpha * difference, rtol=1e-9)


def test_one_query_of_two_grades_is_roc_area():
    X, y, _ = documents()
    y = (y > 0).astype(int)
    ranked = RankSVM(C=150.0, gamma=0.5).fit(X, y, groups=np.zeros(len(y)))
    area = slimsvm.SVC(C=1.0, gamma=0.5, loss="roc_auc").fit(X, y)
    assert ranked.objective_ == pytest.approx(area.objective_, rel=1e-8)
    assert ranked.score(X, y, groups=np.zeros(len(y))) == pytest.approx(area.score(X, y))


# ---- the estimator


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_it_ranks_and_certifies(loss, sparse, kernel):
    X, y, groups = documents()
    data = sp.csr_array(X) if sparse else X
    clf = RankSVM(loss=loss, kernel=kernel, C=5.0).fit(data, y, groups=groups)
    assert 0 <= clf.gap_ <= 1e-9
    scores = clf.predict(data)
    np.testing.assert_array_equal(scores, clf.decision_function(data))
    inside = [groups == name for name in np.unique(groups)]
    if loss == "swaps":
        pairs = [np.sign(scores[q][:, None] - scores[q])[y[q][:, None] > y[q]] for q in inside]
        expected = np.mean([(pair.mean() + 1) / 2 for pair in pairs if len(pair)])
    else:
        expected = np.mean([average_precision_score(y[q] > 0, scores[q]) for q in inside if len(set(y[q] > 0)) == 2])
    assert clf.score(data, y, groups=groups) == pytest.approx(expected)
    assert expected > (0.9 if kernel == "rbf" else 0.8)
    X_test, y_test, groups_test = documents(300, seed=1)
    assert clf.score(X_test, y_test, groups=groups_test) > 0.85


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", [ViolatedCuts(10), CPSP(20), Refine(10), "uniform-cuts"], ids=str)
def test_solvers_files_and_pickles(solver, loss, tmp_path):
    X, y, groups = documents()
    clf = clone(RankSVM(solver=solver, loss=loss, random_state=0, C=5.0)).fit(X, y, groups=groups)
    assert clf.score(X, y, groups=groups) > 0.9
    assert clf.gap_ is None
    clf.save(tmp_path / "model.slim")
    for again in (slimsvm.load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(again.predict(X), clf.predict(X))
        assert again.score(X, y, groups=groups) == clf.score(X, y, groups=groups)


def test_the_order_of_rows_does_not_matter():
    X, y, groups = documents()
    order = np.argsort(groups, kind="stable")
    one, other = RankSVM().fit(X, y, groups=groups), RankSVM().fit(X[order], y[order], groups=groups[order])
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-12)
    np.testing.assert_array_equal(one.support_vectors_, X[one.support_])
    gram = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    given = RankSVM(kernel="precomputed").fit(gram, y, groups=groups)
    np.testing.assert_allclose(given.predict(gram), RankSVM(gamma=0.3).fit(X, y, groups=groups).predict(X), atol=1e-6)


def test_weights_of_queries_are_repeats():
    X, y, groups = documents(60, n_queries=6)
    weights = (np.unique(groups, return_inverse=True)[1] % 3).astype(float)
    rows = np.repeat(np.arange(60), weights.astype(int))
    copies = np.concatenate([np.arange(int(w)) for w in weights])
    again = np.char.add(groups[rows], copies.astype(str))
    one = RankSVM(gamma=0.5).fit(X, y, groups=groups, sample_weight=weights)
    other = RankSVM(gamma=0.5).fit(X[rows], y[rows], groups=again)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)
    kept = weights > 0
    np.testing.assert_array_equal(one.support_vectors_, X[one.support_])
    assert kept[one.support_].all()
    weighted = one.score(X, y, groups=groups, sample_weight=weights)
    assert weighted == pytest.approx(one.score(X[rows], y[rows], groups=again))


def test_grid_search_with_groups():
    X, y, groups = documents()
    with config_context(enable_metadata_routing=True):
        clf = RankSVM().set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(clf, {"C": [0.01, 10.0]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert search.best_score_ > 0.85


def test_queries_are_asked_for():
    X, y, groups = documents()
    asked = r"RankSVM.fit needs groups \(or qid\).*set_fit_request\(groups=True\)"
    with pytest.raises(ValueError, match=asked):  # the search gives groups to its splitter alone
        GridSearchCV(RankSVM(), {"C": [1.0]}, cv=GroupKFold(3), error_score="raise").fit(X, y, groups=groups)
    clf = RankSVM().fit(X, y, groups=groups)
    for call in (clf.score, clf.ndcg, clf.certificate):
        with pytest.raises(ValueError, match=rf"RankSVM.{call.__name__} needs groups"):
            call(X, y)
        with pytest.raises(ValueError, match="two names for the same"):
            call(X, y, groups=groups, qid=groups)


def test_qid_is_another_name_of_groups():
    X, y, groups = documents()
    one, other = RankSVM().fit(X, y, groups=groups), RankSVM().fit(X, y, qid=groups)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert other.score(X, y, qid=groups) == one.score(X, y, groups=groups)
    assert other.certificate(X, y, qid=groups).objective == pytest.approx(one.objective_, rel=1e-9)


@pytest.mark.parametrize("k", [None, 3])
def test_ndcg_is_scikit_learns_of_each_query(k):
    X, y, groups = documents()
    groups[5] = "alone"
    clf = RankSVM().fit(X, y, groups=groups)
    inside = [groups == name for name in np.unique(groups) if len(set(y[groups == name])) > 1]
    expected = [ndcg_score([y[q]], [clf.predict(X)[q]], k=k) for q in inside]
    assert clf.ndcg(X, y, groups=groups, k=k) == pytest.approx(np.mean(expected))
    weights = np.unique(groups, return_inverse=True)[1] + 1.0
    weighted = np.average(expected, weights=[weights[q][0] for q in inside])
    assert clf.ndcg(X, y, groups=groups, sample_weight=weights, k=k) == pytest.approx(weighted)
    with pytest.raises(ValueError, match="labels must be >= 0, because NDCG uses them as gains; found -1"):
        clf.ndcg(X, y - 1, groups=groups)


def test_the_objective_is_that_of_the_problem():
    X, y, groups = documents()
    clf = RankSVM(C=2.0, gamma=0.4).fit(X, y, groups=groups)
    hinges = [pair_hinge(clf.predict(X)[groups == q], y[groups == q]) for q in np.unique(groups)]
    assert clf.objective_ == pytest.approx(0.5 * clf.model_.norm_squared() + 2.0 * sum(hinges), rel=1e-9)
    task = Swaps()
    order = np.argsort(groups, kind="stable")
    examples = task.encode(np.split(y[order], np.flatnonzero(groups[order][1:] != groups[order][:-1]) + 1))
    fit = ExactCuts().solve(Problem(as_rows(X[order]), examples, task, RBF(0.4), C=2.0, intercept="none"))
    assert fit.objective == pytest.approx(clf.objective_, rel=1e-9)


# ---- bad input


GOOD = documents(20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": [1, 2]}, r"groups must have one entry per row: 20 rows, found shape \(2,\)"),
        ({"groups": np.full(20, np.nan)}, "groups contains NaN in row 0, which is not a name"),
        ({"groups": np.arange(20)}, "no query has two rows of different labels, .* found 20 queries of 20 rows"),
        ({"y": np.ones(20)}, "no query has two rows of different labels"),
        ({"y": np.append(np.ones(19), np.nan)}, "Input y contains NaN"),
        ({"y": ["a"] * 20}, "y must hold numbers, found .* at row 0; OrdinalSVC takes labels"),
        ({"sample_weight": np.arange(20)}, "sample_weight must be the same for all rows of a query"),
        ({"sample_weight": np.zeros(20)}, "sample_weight is zero for every row"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y, groups = GOOD
    given = {"y": y, "groups": groups} | change
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(X, **given)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "ndcg"}, "loss must be one of 'swaps', 'average_precision'; found 'ndcg'"),
        ({"C": "best"}, "C must be a positive number or 'validate', found 'best'"),
        ({"C": "validate"}, "a fifth of the examples .* needs at least 10, found"),
        (
            {"solver": "exact"},
            "regression and one class, found Swaps",
        ),
        ({"solver": "bsgd"}, "trains two classes, several, or one target with loss='epsilon_insensitive', found Swaps"),
    ],
)
def test_bad_parameters_are_named(params, message):
    X, y, groups = GOOD
    with pytest.raises(ValueError, match=message):
        RankSVM(**params).fit(X, y, groups=groups)


def test_bad_scores_are_named():
    X, y, groups = GOOD
    with pytest.raises(NotFittedError):
        RankSVM().score(X, y, groups=groups)
    clf = RankSVM().fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="no query has two rows of different labels"):
        clf.score(X, y, groups=np.arange(20))
    with pytest.raises(ValueError, match=r"one label for each of the 20 rows of X, found shape \(3,\)"):
        clf.score(X, y[:3], groups=groups)
    with pytest.raises(ValueError, match="needs rows and a kernel of them, found kernel='precomputed'"):
        RankSVM(kernel="precomputed").fit(np.eye(20), y, groups=groups).certificate(np.eye(20), y, groups=groups)


@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_know_nothing_of_the_fit(loss):
    X, y, groups = documents()
    exact = RankSVM(loss=loss, gamma=0.5).fit(X, y, groups=groups)
    sampled = RankSVM(loss=loss, gamma=0.5, solver="cpsp", max_basis=15, random_state=0).fit(X, y, groups=groups)
    for clf in (exact, sampled):
        found = clf.certificate(X, y, groups=groups)
        assert found.objective == pytest.approx(clf.objective_, rel=1e-9)
        assert exact.lower_bound_ * 0.999 <= found.lower_bound <= exact.objective_ * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Swaps().encode([]), "y must hold at least one query, found none"),
        (lambda: Swaps().encode([[]]), "at least one row, found empty queries only"),
        (lambda: Swaps().encode([[1.0], [np.inf]]), "labels must be finite; found inf in query 1"),
        (lambda: Swaps().encode([[[1.0]]]), r"query 0 has shape \(1, 1\)"),
        (lambda: AveragePrecision().encode([["a"]]), "type <U1"),
        (lambda: Swaps().encode([[1, 2]], [1.0, 2.0]), r"sample_weight must have shape \(1,\)"),
    ],
)
def test_bad_queries_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
