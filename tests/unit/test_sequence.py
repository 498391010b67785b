"""The chain on longer sequences than can be written out, and its special cases."""

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.solvers import ExactCuts
from slimsvm.tasks import Chain, Multiclass, losses
from tasks_for_tests import CASES
from tasks_for_tests import Chain as SlowChain


def random_chain(seed, k=6, lengths=(1, 40, 7, 2, 90)):
    rng = np.random.default_rng(seed)
    y = [rng.integers(0, k, length) for length in lengths]
    n = sum(lengths)
    return y, rng.normal(size=(n, k)), rng.normal(size=k * k + 2 * k)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [2, 6, 13, 26, 59])
def test_long_sequences_agree_with_a_plain_viterbi(k, ties):
    """Start and end scores go into the first and last row of the slow one, which has none."""
    y, scores, plain = random_chain(k, k)
    if ties:
        scores, plain = np.rint(scores), np.rint(plain)
    task, slow, squares = Chain(k), SlowChain(k), k * k
    examples = task.encode(y)
    folded = scores.copy()
    folded[examples.offsets[:-1]] += plain[squares : squares + k]
    folded[examples.offsets[1:] - 1] += plain[squares + k :]
    np.testing.assert_array_equal(task.decode(scores, plain, examples), slow.decode(folded, plain[:squares], examples))
    ours, theirs = task.augment(scores, plain, examples), slow.augment(folded, plain[:squares], examples)
    np.testing.assert_array_equal(ours.delta, theirs.delta)
    np.testing.assert_array_equal(ours.coef, theirs.coef)
    np.testing.assert_array_equal(ours.plain[:, :squares], theirs.plain)


def test_the_other_labelling_is_the_second_best():
    """With 0/1 loss and the truth far ahead the competitor is the best of all others: by flipping every label."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 30)
    scores = rng.normal(size=(30, 3)) + 4.0 * np.eye(3)[y]
    task = Chain(3, "zero-one")
    examples, plain = task.encode([y]), np.zeros(15)
    gaps = scores[np.arange(30), y] - np.where(np.eye(3)[y] > 0, -np.inf, scores).max(axis=1)
    values = losses(task.augment(scores, plain, examples), scores, plain, examples)
    assert values[0] == pytest.approx(max(0.0, 1.0 - gaps.min()))
    assert (gaps > 0).all()


@pytest.mark.parametrize("k", [2, 4])
def test_without_transitions_every_row_is_a_multiclass_example(k):
    y, scores, _ = random_chain(3, k)
    task, rows = Chain(k), Multiclass(k)
    augmented = task.augment(scores, np.zeros(task.n_plain), task.encode(y))
    single = rows.augment(scores, np.zeros(0), rows.encode(np.concatenate(y)))
    np.testing.assert_array_equal(augmented.coef, single.coef)
    np.testing.assert_array_equal(augmented.delta, np.add.reduceat(single.delta, task.encode(y).offsets[:-1]))


def test_empty_sequences_are_passed_over_when_decoding():
    y, scores, plain = random_chain(0)
    task = Chain(6)
    examples = task.encode(y)
    with_empty = type(examples)(examples.labels, np.ones(6), np.insert(examples.offsets, 2, examples.offsets[2]))
    np.testing.assert_array_equal(task.decode(scores, plain, with_empty), task.decode(scores, plain, examples))
    assert len(task.decode(scores[:0], plain, None)) == 0


def test_threads_give_the_same_bits():
    y, scores, plain = random_chain(0, lengths=(5,) * 300)
    task = Chain(6)
    examples = task.encode(y)
    direction = scores[::-1].copy(), plain[::-1].copy()
    assert len({task.along((scores, plain), direction, 0.3, examples, n_jobs) for n_jobs in (1, 2, 4)}) == 1


def test_the_error_of_the_zero_one_loss_counts_sequences():
    for loss, expected in (("hamming", 0.25), ("zero-one", 0.5)):
        task = Chain(3, loss)
        assert task.error(np.array([0, 1, 1, 2]), task.encode([[0, 1], [2, 2]])) == expected


@pytest.mark.parametrize("name", ["sequence", "sequence-zero-one"])
def test_weights_of_sequences_are_repeats(name):
    case = CASES[name]
    task, X, y, _ = case.problem(0)
    starts = np.cumsum([0] + [len(labels) for labels in y])
    weights = np.arange(len(y)) % 3 + 1
    index = np.repeat(np.arange(len(y)), weights)
    rows = np.concatenate([np.arange(starts[e], starts[e + 1]) for e in index])
    fits = [
        ExactCuts().solve(Problem(as_rows(data), examples, task, RBF(0.3), C=2.0))
        for data, examples in ((X, task.encode(y, weights)), (X[rows], task.encode([y[e] for e in index])))
    ]
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Chain(1), "n_labels must be at least 2, found 1"),
        (lambda: Chain(2, "edit"), "loss must be 'hamming' or 'zero-one', found 'edit'"),
        (lambda: Chain(2).encode([]), "y must hold at least one sequence, found none"),
        (lambda: Chain(2).encode([[0], []]), r"sequence 1 has shape \(0,\)"),
        (lambda: Chain(2).encode([[[0]]]), r"sequence 0 has shape \(1, 1\)"),
        (lambda: Chain(2).encode([[0], [1, 2]]), "integers from 0 to 1; found .*2.* in sequence 1"),
        (lambda: Chain(2).encode([[0]], [0.0]), "weights of a task's examples must be positive"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
