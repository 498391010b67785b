"""The rules of the search for few vectors: sizes, rows held out, what is allowed, when it is sure."""

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.size_search.trials import (
    FEW_ROWS,
    FOLDS,
    LEAST_HELD,
    MAX_HELD,
    SizeSettings,
    Trial,
    allowed_error,
    err_surely_less,
    first_size,
    is_hopeless,
    next_size,
    paired,
    parts,
    row_errors,
)
from slimsvm.tasks import Binary, Multiclass, OneVsOne, Regression


def test_the_first_number_of_vectors():
    assert [first_size(last, 2) for last in (0, 1, 35, 36, 400)] == [0, 1, 35, 25, 25]
    assert [first_size(400, n_classes) for n_classes in (0, 3, 5, 6, 26)] == [25, 25, 25, 30, 130]


def test_the_next_number_of_vectors_goes_by_how_far_the_best_is_from_allowed():
    far, near = trial(25, 0.02, 0.005), trial(25, 0.002, 0.001)
    assert next_size(25, 400, [far]) == int(25 * 10 ** (1 / SizeSettings.rate))
    assert next_size(25, 400, [far, near]) == SizeSettings.factor * 25
    assert next_size(25, 400, [trial(25, 1.0)]) == SizeSettings.most_factor * 25
    assert next_size(25, 69, [near]) == 69
    assert next_size(400, 400, [near]) is None
    assert next_size(25, 400, [trial(25, 0.001, allowed=0.0)]) == SizeSettings.factor * 25


@pytest.mark.parametrize(
    ("n", "n_held"), [(FEW_ROWS + 1, 1667), (15_000, LEAST_HELD), (30_000, 6000), (5 * MAX_HELD + 5, MAX_HELD)]
)
def test_of_many_rows_a_part_is_held_out(n, n_held):
    labels = np.repeat([0, 1, 2], [n - n // 10 - 1, n // 10, 1])
    ((training, held),) = parts(labels, False, np.random.default_rng(0))
    assert len(held) == pytest.approx(n_held, abs=2)
    np.testing.assert_array_equal(np.sort(np.concatenate([training, held])), np.arange(n))
    np.testing.assert_allclose(np.bincount(labels[held])[:2] / np.bincount(labels)[:2], len(held) / n, atol=0.01)


def test_each_of_few_rows_is_held_out_once_but_for_the_only_one_of_a_class():
    labels = np.repeat([0, 1, 2, 3], [87, 10, 2, 1])
    splits = parts(labels, False, np.random.default_rng(0))
    assert len(splits) == FOLDS
    for training, held in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate([training, held])), np.arange(100))
        assert set(labels[training]) == {0, 1, 2, 3}
    np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in splits])), np.arange(99))


def test_targets_may_all_be_held_out():
    held = [held for _, held in parts(np.arange(100.0), True, np.random.default_rng(0))]
    np.testing.assert_array_equal(np.sort(np.concatenate(held)), np.arange(100))


def problem_of(task, labels, weights=None):
    return Problem(as_rows(np.zeros((len(labels), 1))), task.encode(labels, weights), task, RBF(1.0))


@pytest.mark.parametrize(
    ("share", "error", "expected"),
    [(0.3, 0.1, 0.0025), (0.3, 0.004, 0.002), (0.03, 0.02, 0.001), (0.1, 0.2, 0.0)],
    ids=["a quarter of a point", "half the error", "a tenth of the gain", "no gain"],
)
def test_what_is_allowed_of_classes(share, error, expected):
    labels = np.where(np.arange(1000) < 1000 * share, 1, -1)
    assert allowed_error(error, 0.0025, problem_of(Binary(), labels)) == pytest.approx(expected)


def test_what_is_allowed_of_regression_and_with_weights():
    problem = problem_of(Regression(0.0), np.array([0.0, 1.0, 2.0]))
    assert allowed_error(0.1, 0.0025, problem) == pytest.approx(0.0025 * 2 / 3)
    heavy = problem_of(Binary(), np.array([1, -1, -1]), np.array([3.0, 1.0, 1.0]))
    assert allowed_error(0.3, 1.0, heavy) == pytest.approx(0.1 * (0.4 - 0.3))


def test_a_paired_difference_and_how_sure_it_is():
    rng = np.random.default_rng(0)
    difference = rng.choice([-1.0, 0.0, 1.0], 400, p=[0.1, 0.7, 0.2])
    mean, deviation = paired(difference, np.ones(400))
    assert mean == pytest.approx(difference.mean())
    assert deviation == pytest.approx(difference.std() / 20)
    doubled = paired(np.repeat(difference, 2), np.full(800, 0.5))
    assert doubled[0] == pytest.approx(mean)
    assert paired(difference, np.full(400, 7.0)) == pytest.approx((mean, deviation))


def trial(k, extra, deviation=0.0, allowed=0.0025):
    return Trial(k, "moved", None, 0.1 + extra, extra, deviation, allowed)


def test_the_upper_end_must_be_allowed():
    assert trial(25, 0.001, 0.001).will_do
    assert not trial(25, 0.001, 0.002).will_do
    assert trial(25, 0.002, 0.0).is_better_than(trial(25, 0.001, 0.002))
    assert trial(50, 0.003).is_better_than(trial(25, 0.004))


def test_a_trial_is_decided_before_all_parts_were_seen_where_it_is_clear():
    assert trial(25, 0.004, 0.001).is_decided(1000)  # all but surely too many errors
    assert not trial(25, 0.003, 0.001).is_decided(1000)
    assert trial(25, 0.0, 0.001).is_decided(1000)
    assert trial(25, 0.001, 0.001).is_decided(1000)  # allowed, as of all parts
    assert not trial(25, 0.002, 0.001).is_decided(1000)
    assert not trial(25, 0.0, 0.0).is_decided(350)  # that no row of few errs says little
    assert trial(25, 0.0, 0.0).is_decided(450)


def test_when_errors_are_surely_less():
    rng, weights = np.random.default_rng(0), np.ones(4000)
    errors = (rng.random(4000) < 0.2).astype(float)
    fewer = np.where(rng.random(4000) < 0.1, 0.0, errors)
    assert err_surely_less(fewer, errors, weights)
    assert not err_surely_less(errors, fewer, weights)
    assert not err_surely_less(errors, errors, weights)
    chance = rng.permutation(errors)
    chance[:20] = 0.0
    assert chance.mean() < errors.mean()
    assert not err_surely_less(chance, errors, weights)  # as many go one way as the other, but for a few
    assert err_surely_less(fewer, errors[:2000], weights)  # decided by half of the rows


def test_of_several_kinds_a_later_one_must_err_surely_less():
    """Each has its own chance to look allowed."""
    lucky = Trial(25, "moved", "crammer-singer", 0.1, 0.0, 0.001, 0.0025, is_sure=False)
    assert lucky.upper <= lucky.allowed
    assert not lucky.will_do
    assert trial(50, 0.001, 0.001).is_better_than(lucky)
    assert "is_sure" not in lucky.as_dict()


def test_the_next_number_of_vectors_goes_by_how_quickly_errors_fell():
    slow, fast, now = trial(25, 0.02), trial(25, 0.08), trial(50, 0.01)
    assert next_size(50, 4000, [now], [slow]) == int(
        50 * 4 ** (1 / SizeSettings.slow_rate)
    )  # it fell with the power of 1
    assert next_size(50, 4000, [now], [fast]) == int(50 * 4 ** (1 / SizeSettings.rate))  # … with that of 3
    between = trial(25, 0.01 * 2**1.5)
    assert next_size(50, 4000, [now], [between]) == pytest.approx(50 * 4 ** (1 / 1.5), abs=1)
    learned = Trial(25, "learned", None, 0.12, 0.02, 0.0, 0.0025)
    assert next_size(50, 4000, [now], [learned]) == int(50 * 4 ** (1 / SizeSettings.rate))  # of another kind


def test_when_there_is_no_hope():
    least = 100 * (0.03 / 0.0025) ** (1 / SizeSettings.least_rate)
    assert not is_hopeless(trial(50, 0.06), trial(100, 0.03), int(least) + 1)
    assert is_hopeless(trial(50, 0.06), trial(100, 0.03), int(least) - 1)
    assert is_hopeless(trial(50, 0.02), trial(100, 0.03), int(least) - 1)
    assert not is_hopeless(trial(50, 0.12), trial(100, 0.03), int(least) - 1)
    assert not is_hopeless(trial(50, 0.001), trial(100, -0.001), 400)


def test_errors_of_rows():
    scores = np.array([[0.5], [-0.5], [-0.5]])
    np.testing.assert_array_equal(row_errors(Binary(), scores, np.array([1, 1, -1])), [0, 1, 0])
    np.testing.assert_allclose(row_errors(Regression(0.1), scores, np.array([0.0, 0.0, -0.5])), [0.5, 0.5, 0.0])
    votes = np.array([[1.0, 1.0, -1.0], [-1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(row_errors(OneVsOne(3), votes, np.array([0, 2])), [0, 1])


def test_classes_turn_into_pairs_and_back():
    assert Multiclass(3).in_pairs() == OneVsOne(3)
    assert Multiclass(3, 2.0 * (1.0 - np.eye(3))).in_pairs() is None
    assert OneVsOne(3).in_scores() is None
    assert OneVsOne(3, or_scores=True).in_scores().n_classes == 3
    assert Binary().in_pairs() is Binary().in_scores() is None
