"""Noise on the rows while vectors are learned: what it is, and what it does."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm import Refine
from slimsvm.kernels import RBF, Linear
from slimsvm.parts.descent.basis_descent import Descent, Expansion
from slimsvm.parts.descent.batch_gradient import GradientSettings, Rates
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary, Multiclass, Regression


def noisy(step, width, rows=4000):
    """Rows 0, 1, … of zeros with their noise, and the logarithms of their RBF kernel values with the zero vector."""
    d, parts = len(width), []
    start = np.eye(d), np.eye(d), np.zeros(d), np.zeros(d), np.zeros(0)
    for kernel, vectors in ((Linear(), np.eye(d)), (RBF(np.log(2) / 2), np.zeros((d, d)))):
        task, zeros = Multiclass(d), np.zeros((rows, d), np.float32)
        examples = task.encode(np.arange(rows) % d)
        problem = Problem(as_rows(zeros), examples, task, kernel, intercept="none", precision="float32")
        rates = Rates(np.zeros(d), 0.0, 0.0, noise=width / np.sqrt(12))
        learner = Descent(problem, problem.bind(), Expansion(vectors, *start[1:]), rates, rows)
        parts.append(learner.gradient.scores(*learner.kernel_rows.folded_rows(np.arange(rows)), step))
    return parts[0], np.log2(parts[1][:, 0])


def test_noise_is_uniform_and_independent():
    width = np.array([1.0, 2.0, 0.5, 0.0], np.float32)
    first, half = noisy(1, width)
    np.testing.assert_allclose(half, -0.5 * np.sum(first**2, axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(noisy(1, width)[0], first)
    second, _ = noisy(2, width)
    for tile in (first, second):
        assert not tile[:, 3].any()
        unit = tile[:, :3] / width[:3]
        assert np.abs(unit).max() <= 0.5
        np.testing.assert_allclose(unit.mean(axis=0), 0, atol=4 / np.sqrt(12 * len(unit)))
        counts = [np.histogram(column, 8, (-0.5, 0.5))[0] for column in unit.T]
        np.testing.assert_allclose(counts, len(unit) / 8, rtol=0.25)
    together = np.hstack([first[:, :3], second[:, :3], np.roll(first[:, :3], 1, axis=0)])
    correlation = np.corrcoef(together, rowvar=False)
    assert np.abs(correlation - np.eye(9)).max() < 5 / np.sqrt(len(first))


def problem_of(n=600, d=10, kernel=None, **options):
    """Labels without a pattern: whatever is learned is of single rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)).astype(np.float32), rng.choice([-1, 1], n)
    settings = {"C": 10.0, "random_state": 0, "precision": "float32"} | options
    return Problem(as_rows(X), Binary().encode(y), Binary(), kernel or RBF(0.1), **settings)


@pytest.mark.parametrize("learn_metric", [False, True])
def test_vectors_that_fit_single_rows_are_kept_from_it(learn_metric):
    problem = problem_of(n=200, kernel=RBF(0.3))
    plain, noisy = (Refine(40, noise=noise, epochs=150, learn_metric=learn_metric).solve(problem) for noise in (0, 1.0))
    assert noisy.history[-1]["loss"] > 2 * plain.history[-1]["loss"]
    assert noisy.objective > 1.2 * plain.objective


def test_the_same_bits_for_any_number_of_threads():
    shared = {"settings": (GradientSettings(shared_work=0),)}
    fits = [Refine(20, noise=0.3, epochs=3).solve(problem_of(n_jobs=n_jobs, **shared)) for n_jobs in (1, 3)]
    np.testing.assert_array_equal(fits[0].model.basis, fits[1].model.basis)
    np.testing.assert_array_equal(fits[0].model.coef, fits[1].model.coef)
    other = Refine(20, epochs=3).solve(problem_of(**shared))
    assert not np.array_equal(fits[0].model.basis, other.model.basis)


def test_other_kernels_and_sparse_rows():
    assert Refine(5, noise=0.3, epochs=3).solve(problem_of(kernel=Linear())).model.n_basis == 5
    problem = problem_of()
    rows = as_rows(sp.csr_array(problem.rows.take(np.arange(600), np.float32)))
    with pytest.raises(ValueError, match=r"noise=0.3 needs dense rows, found a sparse matrix"):
        Refine(5, noise=0.3).solve(Problem(rows, problem.examples, Binary(), RBF(0.1), C=1.0))


@pytest.mark.parametrize(
    ("d", "task", "learn_metric", "form", "width"),
    [
        (200, Binary(), False, np.asarray, 0.4),
        (200, Multiclass(2), False, np.asarray, 0.4),
        (199, Binary(), False, np.asarray, 0.0),
        (200, Regression(0.1), False, np.asarray, 0.0),
        (200, Binary(), True, np.asarray, 0.0),
        (200, Binary(), False, sp.csr_array, 0.0),
    ],
    ids=["wide", "classes", "narrow", "regression", "metric", "sparse"],
)
def test_noise_by_itself_is_for_classes_of_wide_dense_rows(d, task, learn_metric, form, width):
    problem = problem_of(n=100, d=d)
    labels = (problem.examples.labels > 0).astype(int) if isinstance(task, Multiclass) else problem.examples.labels
    rows = as_rows(form(problem.rows.take(np.arange(100), np.float32)))
    problem = replace(problem, rows=rows, task=task, examples=task.encode(labels))
    options = {"epochs": 2, "learn_metric": learn_metric, "finish": False}
    auto, same = (Refine(5, noise=noise, **options).solve(problem).model for noise in ("auto", width))
    np.testing.assert_array_equal(auto.basis, same.basis)
    np.testing.assert_array_equal(auto.coef, same.coef)
    if form is np.asarray:
        other = Refine(5, noise=0.4 - width, **options).solve(problem).model
        assert not np.array_equal(auto.coef, other.coef)
