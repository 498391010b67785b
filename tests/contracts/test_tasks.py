"""What every task promises: the library's own and those made up for the tests (a chain, losses over all rows)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import option_values
from slimsvm.tasks import Binary, Examples, Multiclass, Multilabel, Ordinal, Ranking, Regression, ROCArea, losses
from slimsvm.tasks.multivariate import AtK
from tasks_for_tests import CASES, missing_cases

SEEDS = [0, 1, 2]
SUMS = sorted(name for name, case in CASES.items() if case.make().decomposes)


def test_every_registered_task_is_tested():
    assert missing_cases() == []


@pytest.fixture(params=sorted(CASES))
def case(request):
    return CASES[request.param]


def random_scores(rng, task, examples, ties):
    """Halves, so that sums are exact and many labellings tie; or normal numbers, of which none do."""
    shapes = (examples.n_rows, task.n_outputs), (task.n_plain,)
    if ties:
        return [rng.integers(-3, 4, shape) / 2 for shape in shapes]
    return [rng.normal(size=shape) for shape in shapes]


def check_augmented(case, task, examples, scores, plain):
    """Argmax by trying every labelling, the first of the best; loss and coefficients are that labelling's."""
    augmented = task.augment(scores, plain, examples)
    assert augmented.delta.shape == (examples.n_examples,)
    assert augmented.coef.shape == (examples.n_rows, task.n_outputs)
    assert augmented.delta.dtype == augmented.coef.dtype == np.float64
    assert (augmented.plain is None) == (task.n_plain == 0)
    values = losses(augmented, scores, plain, examples)
    for e, (rows, options, _) in enumerate(case.written_out(examples)):
        of_option = option_values(options, scores[rows], plain)
        best = of_option.argmax()
        if not case.lowest_labels:
            difference = np.abs(options[1] - augmented.coef[rows]).max(axis=(1, 2))
            best = (difference + np.abs(options[0] - augmented.delta[e])).argmin()
            assert of_option[best] == pytest.approx(of_option.max(), rel=1e-12, abs=1e-12)
        assert augmented.delta[e] == pytest.approx(options[0][best], abs=1e-12)
        np.testing.assert_allclose(augmented.coef[rows], options[1][best], atol=1e-12)
        if task.n_plain:
            np.testing.assert_array_equal(augmented.plain[e], options[2][best])
        assert values[e] == pytest.approx(of_option[best], rel=1e-12, abs=1e-12)
    assert (values >= -1e-12).all()


def test_a_derived_class_may_have_another_loss(case):
    """Compiled loops and bounds go by the loss of a class that says so itself."""
    task = case.make()
    own = type("Own", (type(task),), {})
    assert not own.is_compiled
    assert own.bounded_by == "cuts"
    assert own.has_class_scores == type(task).has_class_scores


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [True, False])
def test_argmax_equals_enumeration(case, seed, ties):
    task, _, _, examples = case.problem(seed)
    rng = np.random.default_rng(seed + 10)
    for _ in range(5):
        check_augmented(case, task, examples, *random_scores(rng, task, examples, ties))
    check_augmented(case, task, examples, np.zeros((examples.n_rows, task.n_outputs)), np.zeros(task.n_plain))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 12))
@pytest.mark.parametrize("name", sorted(CASES))
def test_argmax_equals_enumeration_for_any_numbers(name, seed, n):
    task, _, _, examples = CASES[name].problem(seed, n)
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 4)
    scores, plain = random_scores(rng, task, examples, ties=False)
    check_augmented(CASES[name], task, examples, scale * scores, scale * plain)


@pytest.mark.parametrize("seed", SEEDS)
def test_decoded_is_the_labelling_of_the_greatest_score(case, seed):
    """Without its delta the value of a labelling is score(labelling) - score(truth)."""
    task, _, _, examples = case.problem(seed)
    rng = np.random.default_rng(seed)
    for ties in (True, False):
        scores, plain = random_scores(rng, task, examples, ties)
        predicted = task.decode(scores, plain, examples)
        if isinstance(task, Multilabel):
            np.testing.assert_array_equal(predicted, np.where(scores > 0, 1, -1))
            continue
        assert predicted.shape == (examples.n_rows,)
        if isinstance(task, Ordinal):  # sides of thresholds that are in order, as a number of them
            np.testing.assert_array_equal(task.decode(scores, np.sort(plain)), np.sum(scores > np.sort(plain), axis=1))
            continue
        if isinstance(task, (Ranking, Regression, ROCArea)):
            np.testing.assert_array_equal(predicted, scores[:, 0])
            continue
        for rows, (delta, coef, plain_part), _ in case.written_out(examples):
            if isinstance(task, AtK):  # the truth is among the options, but nothing that can be predicted
                n_positive = ((examples.labels - 2 * len(rows) * coef[:, :, 0]) > 0).sum(axis=1)
                allowed = n_positive == task.n_predicted(examples)
                delta, coef, plain_part = delta[allowed], coef[allowed], plain_part[allowed]
            of_option = option_values((0 * delta, coef, plain_part), scores[rows], plain)
            best = coef[of_option.argmax()]
            truth = examples.labels[rows]
            if task.n_outputs == 1:
                expected = truth - np.sign(best[:, 0]) * 2
                if not case.lowest_labels:
                    value = -np.sum((truth - predicted) / (2 * len(rows)) * scores[:, 0])
                    assert value == pytest.approx(of_option.max(), abs=1e-12)
                    expected = predicted
            else:
                expected = np.where(best.any(axis=1), best.argmin(axis=1), truth)
            np.testing.assert_array_equal(predicted[rows], expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_and_slope_along_a_line(case, seed):
    task, _, _, examples = case.problem(seed)
    rng = np.random.default_rng(seed)
    base, direction = (random_scores(rng, task, examples, ties=False) for _ in range(2))
    for k in (0.0, 0.3, 2.0):
        loss, slope = task.along(base, direction, k, examples, n_jobs=2)
        expected_loss = expected_slope = 0.0
        for rows, options, weight in case.written_out(examples):
            values = option_values(options, base[0][rows] + k * direction[0][rows], base[1] + k * direction[1])
            best = values.argmax()
            expected_loss += weight * values[best]
            expected_slope -= weight * np.sum(options[1][best] * direction[0][rows])
            expected_slope -= weight * (options[2][best] @ direction[1])
        assert loss == pytest.approx(expected_loss, rel=1e-12)
        assert slope == pytest.approx(expected_slope, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SUMS)
def test_examples_taken_are_augmented_as_before(name, seed):
    """`take` in any order, with repeats: what an example contributes does not depend on its company."""
    task, _, _, examples = CASES[name].problem(seed)
    rng = np.random.default_rng(seed)
    scores, plain = random_scores(rng, task, examples, ties=False)
    whole = task.augment(scores, plain, examples)
    index = rng.integers(0, examples.n_examples, 7)
    rows = examples.rows_of(index)
    taken = examples.take(index)
    part = task.augment(scores[rows], plain, taken)
    np.testing.assert_array_equal(part.delta, whole.delta[index])
    np.testing.assert_array_equal(part.coef, whole.coef[rows])
    np.testing.assert_array_equal(taken.weights, examples.weights[index])
    np.testing.assert_array_equal(taken.labels, examples.labels[rows])
    if task.n_plain:
        np.testing.assert_array_equal(part.plain, whole.plain[index])
    assert taken.n_rows == len(rows)
    assert taken.n_examples == 7


def test_some_rows_of_a_loss_over_all_rows(case):
    task, _, _, examples = case.problem(0)
    if task.decomposes:
        if examples.n_examples > 1:
            with pytest.raises(ValueError, match="take_rows needs exactly one example"):
                examples.take_rows(np.arange(2))
        return
    rows = np.array([0, 1, 3, 5])
    part = examples.take_rows(rows)
    assert (part.n_rows, part.n_examples) == (4, 1)
    if isinstance(task, AtK) and isinstance(task.k, int):  # k is in proportion to the rows
        assert task.n_predicted(part) == round(task.k * 4 / examples.n_rows)
        return
    check_augmented(case, task, part, np.arange(4.0)[:, None] - 1, np.zeros(0))


# ---- groups of rows


@st.composite
def grouped_examples(draw):
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=8).filter(sum))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    extra = {"position": np.arange(n) * 10}
    weights = np.array(draw(st.lists(st.floats(0.1, 3), min_size=len(lengths), max_size=len(lengths))))
    return Examples(np.arange(n), weights, offsets, extra, {"name": np.arange(len(lengths)) * 100})


@given(examples=grouped_examples(), data=st.data())
def test_rows_of_examples(examples, data):
    index = np.array(data.draw(st.lists(st.integers(0, examples.n_examples - 1), max_size=10)), dtype=np.int64)
    expected = [row for e in index for row in range(examples.offsets[e], examples.offsets[e + 1])]
    np.testing.assert_array_equal(examples.rows_of(index), expected)
    taken = examples.take(index)
    np.testing.assert_array_equal(taken.labels, expected)
    np.testing.assert_array_equal(taken.per_row["position"], np.array(expected, dtype=int) * 10)
    np.testing.assert_array_equal(taken.per_example["name"], index * 100)
    np.testing.assert_array_equal(np.diff(taken.offsets), np.diff(examples.offsets)[index])
    np.testing.assert_array_equal(taken.example_of_rows(), np.repeat(np.arange(len(index)), np.diff(taken.offsets)))


@pytest.mark.parametrize("weights", [np.full(6, 0.3), np.array([0.1, 2.0, 0.5, 1.0, 0.7, 0.2])])
def test_examples_are_drawn_in_proportion_to_their_weights(weights):
    examples = Examples(np.zeros(6), weights)
    drawn = examples.draw(20_000, np.random.default_rng(0))
    expected = 20_000 * weights / weights.sum()
    deviation = np.sqrt(expected * (1 - weights / weights.sum()))
    assert (np.abs(np.bincount(drawn, minlength=6) - expected) < 4 * deviation).all()
    assert examples.total_weight == pytest.approx(weights.sum())


def test_losses_of_examples_without_rows():
    from slimsvm.tasks import Augmented

    examples = Examples(np.zeros(3), np.ones(4), offsets=np.array([0, 0, 2, 2, 3]))
    augmented = Augmented(np.array([1.0, 2.0, 3.0, 4.0]), np.array([[1.0], [2.0], [5.0]]))
    values = losses(augmented, np.array([[1.0], [10.0], [100.0]]), np.zeros(0), examples)
    np.testing.assert_array_equal(values, [1, 2 - 21, 3, 4 - 500])


# ---- weights and bad input


@pytest.mark.turns("name")
@pytest.mark.parametrize("name", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), r"sample_weight must have shape \(9,\), found \(5,\)"),
        (np.ones((9, 1)), r"found \(9, 1\)"),
        (np.zeros(9), "must be positive and finite"),
        (np.append(np.ones(8), -1), "must be positive and finite"),
        (np.append(np.ones(8), np.nan), "must be positive and finite"),
    ],
)
def test_weights_are_checked(name, weights, message):
    task, _, y, _ = CASES[name].problem(0, 9)
    with pytest.raises(ValueError, match=message):
        task.encode(y, weights)


def test_weights_are_kept():
    task, _, y, _ = CASES["binary"].problem(0, 9)
    np.testing.assert_array_equal(task.encode(y, np.arange(1, 10)).weights, np.arange(1.0, 10))
    np.testing.assert_array_equal(task.encode(y).weights, np.ones(9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Binary(cost_positive=0), "cost_positive must be a positive number, found 0"),
        (lambda: Binary(cost_negative=np.nan), "cost_negative must be a positive number, found nan"),
        (lambda: Binary().encode([1, 2]), r"must be -1 and \+1 .* found np.int64\(2\)"),
        (lambda: Binary().encode([[1, -1]]), r"found shape \(1, 2\)"),
        (lambda: Multiclass(1), "n_classes must be at least 2, found 1"),
        (lambda: Multiclass(3, np.zeros((2, 2))), r"cost must have shape \(3, 3\), found \(2, 2\)"),
        (lambda: Multiclass(2, [[0, -1], [1, 0]]), "finite numbers >= 0 with a zero diagonal"),
        (lambda: Multiclass(2, [[0, np.inf], [1, 0]]), "finite numbers >= 0 with a zero diagonal"),
        (lambda: Multiclass(2, [[1, 1], [1, 0]]), "finite numbers >= 0 with a zero diagonal"),
        (lambda: Multiclass(3).encode([0, 3]), r"class codes must be 0 to 2, .* found np.int64\(3\)"),
        (lambda: Regression(-1.0), "epsilon must be a number >= 0, found -1.0"),
        (lambda: Regression(np.inf), "epsilon must be a number >= 0, found inf"),
        (lambda: Regression().encode([0.0, np.nan]), "targets must be finite"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", ["binary", "multiclass", "regression"])
def test_error_is_weighted(name):
    task, _, y, _ = CASES[name].problem(0, 4)
    examples = task.encode(y, [1.0, 2.0, 3.0, 4.0])
    predicted = examples.labels.copy()
    assert task.error(predicted, examples) == 0
    if name == "regression":
        assert task.error(predicted + np.array([0.5, 0, 0, -1]), examples) == pytest.approx((0.5 + 4) / 10)
    else:
        predicted[[1, 3]] = 1 - predicted[[1, 3]]
        assert task.error(predicted, examples) == pytest.approx(0.6)


def test_error_of_sequences_counts_rows():
    task = CASES["chain"].make()
    examples = task.encode([[0, 1, 2], [2]], [1.0, 3.0])
    assert task.error(np.array([0, 1, 1, 2]), examples) == pytest.approx(1 / 6)


# ---- special cases that must coincide


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [True, False])
def test_a_chain_without_transitions_is_multiclass_row_by_row(seed, ties):
    chain, _, _, examples = CASES["sequence"].problem(seed)
    multiclass = Multiclass(3)
    rows = multiclass.encode(examples.labels)
    rng, zero = np.random.default_rng(seed), np.zeros(chain.n_plain)
    for _ in range(5):
        scores = random_scores(rng, multiclass, rows, ties)[0]
        whole, by_row = chain.augment(scores, zero, examples), multiclass.augment(scores, np.zeros(0), rows)
        np.testing.assert_array_equal(whole.coef, by_row.coef)
        np.testing.assert_array_equal(whole.delta, np.add.reduceat(by_row.delta, examples.offsets[:-1]))
        np.testing.assert_array_equal(chain.decode(scores, zero, examples), multiclass.decode(scores, np.zeros(0)))
