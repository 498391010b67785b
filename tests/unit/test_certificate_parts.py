"""Certificates of one class and of pairs of classes, and of two and three classes at every C."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import OneClassSVM as TheirOneClassSVM

import naive
import slimsvm
from pairwise import crossed
from slimsvm import SVC, OneClassSVM
from slimsvm.kernels import RBF
from slimsvm.parts.dual_ascent.block_ascent import BlockSettings, DualAscent


def blobs(n, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=n) > 0.2).astype(int)
    return X, y + (k > 2) * (X[:, 2] + 0.4 * rng.normal(size=n) > 0)


# ---- one class


def one_class_optimum(X, nu, weights=None):
    """LIBSVM's dual: −½ v'Kv of its coefficients; it fails at ν = 1, where they can only be 1."""
    if nu == 1.0:
        return -0.5 * float(naive.kernel_matrix(RBF(0.5), X, X).sum())
    theirs = TheirOneClassSVM(kernel="rbf", gamma=0.5, nu=nu, tol=1e-10).fit(X, sample_weight=weights)
    v = theirs.dual_coef_[0]
    K = naive.kernel_matrix(RBF(0.5), X[theirs.support_], X[theirs.support_])
    return -0.5 * v @ K @ v


@pytest.mark.parametrize("nu", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("block", [40, 2048])
def test_one_class_is_bounded_from_any_model(nu, block, settings_of_estimators):
    settings_of_estimators(BlockSettings(block=block))
    X, _ = blobs(150)
    best = one_class_optimum(X, nu)
    model = OneClassSVM(nu=nu, gamma=0.5).fit(X)
    found = model.certificate(X)
    assert found.objective == pytest.approx(model.objective_, rel=1e-7)
    assert found.gap <= 1e-3
    assert best * (1 + 1e-2) <= found.lower_bound <= best * (1 - 1e-7)  # both are negative
    good = model.model_
    for scale in (-1.0, 0.1, 1e3):
        model.model_ = slimsvm.KernelExpansion(
            good.basis, scale * good.coef, good.intercept, np.zeros(0), good.kernel, "float64"
        )
        other = model.certificate(X)
        assert best * (1 + 2e-2) <= other.lower_bound <= best * (1 - 1e-7)
        assert other.lower_bound <= other.objective


def test_one_class_on_a_budget_from_a_file(tmp_path):
    X, _ = blobs(800)
    weights = np.random.default_rng(0).integers(0, 3, 800).astype(float)
    exact = OneClassSVM(nu=0.2, gamma=0.5).fit(X, sample_weight=weights)
    model = OneClassSVM(nu=0.2, gamma=0.5, solver=slimsvm.BSGD(30), random_state=0).fit(X, sample_weight=weights)
    model.save(tmp_path / "model.slim")
    found = slimsvm.load(tmp_path / "model.slim").certificate(X, sample_weight=weights)
    assert found.objective == pytest.approx(model.objective_, rel=1e-6)
    assert found.objective >= exact.objective_ - 1e-9 * abs(exact.objective_)
    assert 1.01 * exact.objective_ <= found.lower_bound <= exact.objective_ + 1e-9 * abs(exact.objective_)


def test_one_class_without_any_time_is_still_bounded():
    X, _ = blobs(300)
    model = OneClassSVM(nu=0.2, gamma=0.5).fit(X)
    found = model.certificate(X, max_seconds=1e-9)
    assert -0.5 * (0.2 * 300) ** 2 * (1 + 1e-9) <= found.lower_bound <= model.objective_ * (1 - 1e-9)
    assert found.n_passes == 0


# ---- pairs of classes


def pairs_optimum(X, y, C, intercept):
    """The sum of the pairs' optima by a QP solver."""
    total = 0.0
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        rows = np.flatnonzero((y == a) | (y == b))
        parts = [(np.array([i]), naive.binary_options(1 if c == a else -1), 1.0) for i, c in enumerate(y[rows])]
        total += naive.optimum(naive.kernel_matrix(RBF(0.5), X[rows], X[rows]), parts, C, intercept == "regularized")[0]
    return total


@pytest.mark.parametrize("intercept", ["regularized", "none"])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_bounded_from_any_model(seed, intercept):
    rng = np.random.default_rng(seed)
    X, y = blobs(45, seed=seed)
    C = float(10 ** rng.uniform(-1, 1.5))
    best = pairs_optimum(X, y, C, intercept)
    clf = SVC(C=C, gamma=0.5, solver="exact", intercept=intercept, multi_class="ovo").fit(X, y)
    good = clf.model_
    for coef in (good.coef, -good.coef, rng.normal(size=good.coef.shape)):
        clf.model_ = slimsvm.KernelExpansion(good.basis, coef, good.intercept, np.zeros(0), good.kernel, "float64")
        found = clf.certificate(X, y)
        assert 0.99 * best <= found.lower_bound <= best * (1 + 1e-8)
        assert found.lower_bound <= found.objective


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, "precomputed"])
def test_exact_pairs_are_certified_to_a_thousandth_from_a_file(container, tmp_path):
    X, y = blobs(250)
    labels, weights = np.array(["a", "b", "c"])[y], np.random.default_rng(0).integers(1, 3, 250)
    rows = naive.kernel_matrix(RBF(0.5), X, X) if container == "precomputed" else container(X)
    kernel = {"kernel": "precomputed"} if container == "precomputed" else {"gamma": 0.5}
    options = {"C": 10.0, "intercept": "free", "class_weight": {"a": 2.0}, "multi_class": "ovo"}
    clf = SVC(solver="exact", **options, **kernel).fit(rows, labels, weights)
    clf.save(tmp_path / "model.slim")
    found = slimsvm.load(tmp_path / "model.slim").certificate(rows, labels, weights)
    assert found.objective == pytest.approx(clf.objective_, rel=1e-7)
    assert 0 <= found.gap <= 1e-3
    short = clf.certificate(rows, labels, weights, max_seconds=1e-9)
    assert short == replace(found, seconds=short.seconds)  # the pairs' own points are enough


# ---- every C


@lru_cache
def best_of(n_classes, C):
    X, y = blobs(300, n_classes)
    solver = "exact" if n_classes == 2 else "exact-cuts"
    return SVC(C=C, gamma=0.5, solver=solver, intercept="regularized", tol=1e-4).fit(X, y)


AXES = {
    "solver": ["exact-cuts", "violated-cuts", "cpsp", "refine", "low-rank", "bsca"],
    "C": [0.01, 1.0, 1000.0],
    "n_classes": [2, 3],
}


@pytest.mark.filterwarnings("ignore:the model of 15 vectors is right on")  # at the smallest C
@crossed(AXES)
def test_nine_tenths_of_the_optimum_at_every_C_in_ten_passes(n_classes, solver, C, monkeypatch):
    monkeypatch.setattr(DualAscent, "out_of_time", property(lambda ascent: ascent.n_passes >= 10))
    X, y = blobs(300, n_classes)
    best = best_of(n_classes, C)
    model = best
    if solver != "exact-cuts":
        capped = {} if solver == "violated-cuts" else {"max_basis": 15}
        model = SVC(C=C, gamma=0.5, solver=solver, tol=0.05, random_state=0, **capped).fit(X, y)
    found = model.certificate(X, y)
    assert 0.9 * best.objective_ <= found.lower_bound <= best.objective_ * (1 + 1e-9)
    assert found.n_passes <= 10
