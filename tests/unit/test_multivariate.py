"""Losses over all rows: special cases, measures against scikit-learn's, and what users get wrong."""

import numpy as np
import pytest
from sklearn.metrics import fbeta_score, roc_auc_score

from slimsvm.kernels import RBF, Linear
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.solvers import CPSP, ExactCuts, UniformCuts, ViolatedCuts
from slimsvm.tasks import MULTIVARIATE, ErrorRate, FBeta, PrecisionAtK, RecallAtK, ROCArea, losses

NO_PLAIN = np.zeros(0)


def unbalanced(n, seed=0, share=0.2):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1, -1)
    y[:2] = -1, 1
    return rng.normal(size=(n, 3)) + 0.7 * y[:, None] * np.array([1.0, 0.5, 0.0]), y


def loss_of(task, scores, examples):
    return float(losses(task.augment(scores, NO_PLAIN, examples), scores, NO_PLAIN, examples)[0])


# ---- the argmax on more rows than can be enumerated


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_f_by_all_tables(beta, ties):
    """Every pair of true and false positives is tried, with the best rows for each."""
    _, y = unbalanced(60)
    rng = np.random.default_rng(1)
    for scale in (0.1, 1.0, 10.0):
        scores = scale * (rng.integers(-3, 4, 60) if ties else rng.normal(size=60) + y)
        task = FBeta(beta)
        highs, lows = np.sort(scores[y > 0])[::-1], np.sort(scores[y < 0])[::-1]
        best = max(
            1 - (1 + beta**2) * a / (beta**2 * len(highs) + a + b) + (lows[:b].sum() - highs[a:].sum()) / 60
            if a + b
            else 1 - highs.sum() / 60
            for a in range(len(highs) + 1)
            for b in range(len(lows) + 1)
        )
        assert loss_of(task, scores[:, None], task.encode(y)) == pytest.approx(best, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_roc_area_is_the_mean_hinge_of_all_pairs(ties):
    _, y = unbalanced(80)
    rng = np.random.default_rng(2)
    scores = rng.integers(-3, 4, 80) / 2 if ties else rng.normal(size=80)
    task = ROCArea()
    hinge = np.maximum(0, 1 - (scores[y > 0][:, None] - scores[y < 0]))
    assert loss_of(task, scores[:, None], task.encode(y)) == pytest.approx(hinge.mean(), rel=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_break_even_is_the_hinge_of_the_lowest_positives_and_the_highest_negatives(ties):
    """One of each in turn, with a margin of n over the number of positives."""
    _, y = unbalanced(80)
    rng = np.random.default_rng(3)
    for scale in (0.1, 1.0, 10.0):
        scores = scale * (rng.integers(-3, 4, 80) if ties else rng.normal(size=80) + y)
        positives, negatives = np.sort(scores[y > 0]), np.sort(scores[y < 0])[::-1]
        n = len(positives)
        hinge = np.maximum(0, 80 / n - (positives - negatives[:n])).sum() / 80
        assert loss_of(PrecisionAtK(), scores[:, None], PrecisionAtK().encode(y)) == pytest.approx(hinge, rel=1e-12)


def test_equal_scores_and_equal_tables_leave_rows_negative():
    """All scores alike: no false positive is worth its loss, of the positives the last ones stay."""
    task = PrecisionAtK(1)
    examples = task.encode(np.array([1, 1, -1, -1]))
    scores = np.array([[5.0], [5.0], [-9.0], [-9.0]])
    np.testing.assert_array_equal(task.decode(scores, NO_PLAIN, examples), [-1, 1, -1, -1])
    np.testing.assert_array_equal(task.decode(np.zeros((4, 1)), NO_PLAIN, examples), [-1, -1, -1, 1])


def test_rows_of_one_class_have_a_defined_loss():
    """A sample of a few rows may have no positive at all."""
    y, scores = np.array([1, -1, -1, -1]), np.array([[1.0], [0.5], [-0.25], [3.0]])
    for task, expected in ((ROCArea(), 0.0), (FBeta(), 1 + (3 + 0.5) / 3), (RecallAtK(), 0.0)):
        part = task.encode(y).take_rows(np.array([1, 2, 3]))
        assert loss_of(task, scores[1:], part) == pytest.approx(expected)
        assert task.error(task.decode(scores[1:] - 9, NO_PLAIN, part), part) == 0
    part = ROCArea().encode(y).take_rows(np.array([0]))
    assert loss_of(ROCArea(), scores[:1], part) == 0


# ---- measures


def test_measures_are_scikit_learns():
    rng = np.random.default_rng(0)
    _, y = unbalanced(200)
    scores = np.round(rng.normal(size=200) + 0.5 * y, 1)
    for beta in (0.5, 1.0, 2.0):
        task = FBeta(beta)
        expected = fbeta_score(y, np.where(scores > 0, 1, -1), beta=beta)
        assert task.measure(scores[:, None], task.encode(y)) == pytest.approx(expected)
    task = ROCArea()
    assert task.measure(scores[:, None], task.encode(y)) == pytest.approx(roc_auc_score(y, scores))
    task = ErrorRate()
    assert task.measure(scores[:, None], task.encode(y)) == pytest.approx(np.mean(np.where(scores > 0, 1, -1) == y))


def test_precision_equals_recall_at_the_break_even_point():
    X, y = unbalanced(100)
    scores = X[:, :1]
    top = np.argsort(X[:, 0])[-int(np.sum(y > 0)) :]
    for task in (PrecisionAtK(), RecallAtK()):
        assert task.measure(scores, task.encode(y)) == pytest.approx(np.mean(y[top] > 0))
    top = np.argsort(X[:, 0])[-10:]
    for k in (10, 0.1):
        assert PrecisionAtK(k).measure(scores, PrecisionAtK(k).encode(y)) == pytest.approx(np.mean(y[top] > 0))
        expected = np.sum(y[top] > 0) / np.sum(y > 0)
        assert RecallAtK(k).measure(scores, RecallAtK(k).encode(y)) == pytest.approx(expected)


# ---- training


def test_roc_area_of_two_rows_is_a_hinge_on_their_difference():
    """min ½‖w‖² + 2C max(0, 1 − w·(x₊ − x₋)): w is a multiple of the difference, closed form."""
    X = np.array([[1.0, 2.0], [0.5, -1.0]])
    difference = X[0] - X[1]
    for C in (0.01, 10.0):
        task = ROCArea()
        problem = Problem(as_rows(X), task.encode([1, -1]), task, Linear(), C=C, intercept="none")
        fit = ExactCuts().solve(problem)
        alpha = min(2 * C, 1 / (difference @ difference))
        np.testing.assert_allclose(fit.model.basis.T @ fit.model.coef[:, 0], alpha * difference, rtol=1e-9)


@pytest.mark.parametrize("name", sorted(MULTIVARIATE))
@pytest.mark.parametrize("kernel", [Linear(), RBF(0.2)], ids=["linear", "rbf"])
def test_training_lowers_the_loss_that_is_trained(name, kernel):
    """To a computed gap, and by all cuts and subspace pursuit alike."""
    X, y = unbalanced(150, share=0.1)
    task = MULTIVARIATE[name]()
    examples = task.encode(y)
    problem = Problem(as_rows(X), examples, task, kernel, C=1.0, intercept="none", random_state=0)
    fit = ExactCuts().solve(problem)
    assert fit.objective - fit.lower_bound <= 1e-8 * fit.objective
    own = loss_of(task, fit.model.scores(X), examples)
    assert fit.objective == pytest.approx(0.5 * fit.model.norm_squared() + 150 * own, rel=1e-9)
    zero = 150 * loss_of(task, np.zeros((150, 1)), examples)
    # A linear SVM whose classes overlap may have nothing better than w = 0: some false positives alone sum up to
    # the sum of all positives, and they have the greatest F1 loss whatever their number.
    assert fit.objective < zero or (name == "f1" and isinstance(kernel, Linear) and fit.objective <= zero)
    for solver in (ViolatedCuts(40), CPSP(20, preimage="training-rows")):
        other = solver.solve(problem)
        assert fit.lower_bound * (1 - 1e-9) <= other.objective <= 1.3 * fit.objective
    if name in ("roc_auc", "error_rate"):  # means over rows or pairs, which samples estimate well
        assert UniformCuts(60).solve(problem).objective <= 2.0 * fit.objective


# ---- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FBeta(0), "beta must be a positive number, found 0"),
        (lambda: FBeta(True), "beta must be a positive number, found True"),
        (lambda: PrecisionAtK(0), "k must be an integer >= 1, a share of the rows between 0 and 1, or None; found 0"),
        (lambda: RecallAtK(1.5), "found 1.5"),
        (lambda: PrecisionAtK("all"), "found 'all'"),
        (lambda: PrecisionAtK(3).encode([1, -1, 1]), "k must be less than the number of rows, 3; found 3"),
        (lambda: FBeta().encode([1, 2]), r"labels must be -1 and \+1 .* found np.int64\(2\)"),
        (lambda: FBeta().encode([1, 1]), "needs rows of both classes, found 2 positive of 2 rows"),
        (lambda: ROCArea().encode([1, -1], [1.0, 2.0]), "has no weights of single rows"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_same_weight_for_all_rows_scales_C():
    task = FBeta()
    assert task.encode([1, -1, -1], [2.0, 2.0, 2.0]).weights == [6.0]


def test_decoding_at_k_needs_the_examples():
    with pytest.raises(TypeError, match="decode needs the examples"):
        PrecisionAtK().decode(np.zeros((2, 1)), NO_PLAIN)
