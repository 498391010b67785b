"""partial_fit of the budgeted solvers: the steps over chunks, passes over one chunk, errors, files and pickles."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import slimsvm
from slimsvm import BSCA, BSGD, SVC, SVR, OrdinalSVC
from slimsvm.kernels import Laplacian
from slimsvm.solvers import SOLVERS

BOTH = pytest.mark.parametrize("solver", [BSCA, BSGD])


def rows(n=600, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] * X[:, 1], np.linspace(-0.3, 0.3, classes - 1) if classes > 2 else [0.0])


def estimator(solver, max_basis=40, **options):
    return SVC(**{"C": 2.0, "gamma": 0.5, "solver": solver(max_basis), "random_state": 0} | options)


@BOTH
def test_one_chunk_is_one_epoch_of_a_fit(solver):
    X, y = rows()
    chunk = estimator(solver, precision="float64").partial_fit(X, y)
    epoch = estimator(lambda b: papers_steps(solver, b), precision="float64")
    fit = epoch.set_params(random_state=chunk_generator()).fit(X, y)
    np.testing.assert_array_equal(chunk.basis_coef_, fit.basis_coef_)
    np.testing.assert_array_equal(chunk.intercept_, fit.intercept_)


def papers_steps(solver, max_basis):
    """An epoch of steps that are not damped, as chunks are met."""
    return solver(max_basis, epochs=1, finish=False, **({"damping": 0.0} if solver is BSCA else {}))


def chunk_generator():
    """The generator that random_state=0 stands for."""
    return np.random.default_rng(np.random.RandomState(0).randint(2**31 - 1))


@BOTH
def test_passes_over_one_chunk_are_epochs(solver):
    X, y = rows()
    chunk = estimator(solver, precision="float64")
    for _ in range(3):
        chunk.partial_fit(X, y)
    generator = chunk_generator()
    epochs = estimator(lambda b: papers_steps(solver, b), precision="float64", warm_start=True)
    for _ in range(3):
        epochs.set_params(random_state=generator).fit(X, y)
    np.testing.assert_allclose(chunk.basis_coef_, epochs.basis_coef_, rtol=1e-9)


def naive_stream(method, chunks, C, gamma):
    """Coefficients of all rows after a pass over each chunk in the given order, with room for every row."""
    X = np.vstack([X for X, _, _ in chunks])
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    beta, begin, t = np.zeros(len(X)), 0, 0
    for chunk, y, order in chunks:
        n = begin + len(chunk)
        alpha = np.zeros(len(chunk))
        for i in order:
            t, f = t + 1, K[begin + i] @ beta
            if method is BSCA:
                new = np.clip(alpha[i] + 1 - y[i] * f, 0, C)
                delta, alpha[i] = y[i] * (new - alpha[i]), new
            else:
                delta = n * C / t * y[i] * (y[i] * f < 1)
                beta *= 1 - 1 / t
            beta[begin + i] += delta
        begin = n
    return K, beta


@BOTH
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_steps_over_chunks_are_the_papers(solver, container):
    chunks, generator = [], chunk_generator()
    clf = estimator(lambda b: solver(b, average=False), 500, intercept="none", precision="float64")
    for seed, n in enumerate((30, 50, 20)):
        X, y = rows(n, seed)
        clf.partial_fit(container(X), y, classes=[0, 1])
        generator.integers(2**63)  # of the reports
        order = generator.permutation(n)
        chunks.append((X, 2 * y - 1, order))
    K, beta = naive_stream(solver, chunks, 2.0, 0.5)
    X = np.vstack([X for X, _, _ in chunks])
    np.testing.assert_allclose(clf.decision_function(container(X)), K @ beta, atol=1e-8)


@BOTH
def test_chunks_that_lack_a_class_and_weights(solver):
    X, y = rows(800, classes=3)
    order = np.argsort(y, kind="stable")
    clf, weights = estimator(solver, 60, C=10.0), np.where(np.arange(800) % 7 == 0, 0.0, 1.5)
    for part in np.array_split(np.random.default_rng(0).permutation(800), 8):
        part = part[np.argsort(y[part])]
        clf.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=weights[part])
        assert clf.n_basis_ <= 60
    assert clf.score(X, y) > 0.6
    clf.partial_fit(X[order[:50]], y[order[:50]])
    assert clf.decision_function(X[:5]).shape == (5, 3)


@BOTH
def test_regression_goes_on_with_the_first_centre(solver):
    X, _ = rows(900)
    y = np.sin(X[:, 0]) + 7
    reg = SVR(C=5.0 if solver is BSCA else 0.05, gamma=0.5, epsilon=0.05, solver=solver(50), random_state=0)
    for part in np.array_split(np.arange(900), 9):
        reg.partial_fit(X[part], y[part])
    assert reg.score(X, y) > (0.8 if solver is BSCA else 0.5)
    assert abs(np.mean(reg.predict(X)) - 7) < 0.2


@BOTH
def test_files_of_other_streams_go_on(solver, tmp_path):
    """Sparse rows, several classes and random numbers of another kind; targets, whose mean is the first chunk's."""
    X, y = rows(classes=3)
    for make, target, rows_of in (
        (
            lambda: SVC(gamma=0.5, solver=solver(30), random_state=np.random.Generator(np.random.MT19937(0))),
            y,
            sp.csr_array,
        ),
        (lambda: SVR(gamma=0.5, solver=solver(30), random_state=0), X[:, 0] + 7.0, np.asarray),
    ):
        clf = make().partial_fit(rows_of(X[:200]), target[:200])
        clf.save(tmp_path / "model.slim")
        read = slimsvm.load(tmp_path / "model.slim").partial_fit(rows_of(X[200:]), target[200:])
        clf.partial_fit(rows_of(X[200:]), target[200:])
        np.testing.assert_array_equal(read.predict(X), clf.predict(X))
        np.testing.assert_array_equal(read.intercept_, clf.intercept_)


@BOTH
def test_the_objective_is_that_of_the_last_chunk(solver):
    X, y = rows()
    clf = estimator(solver, precision="float64").partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    hinge = np.maximum(0, 1 - (2 * y[300:] - 1) * clf.decision_function(X[300:])).sum()
    half_norm = 0.5 * (clf.model_.norm_squared() + clf.intercept_[0] ** 2)
    assert clf.objective_ == pytest.approx(half_norm + 2.0 * hinge)


@BOTH
def test_pickles_and_files_go_on(solver, tmp_path):
    X, y = rows()
    clf = estimator(solver).partial_fit(X[:300], y[:300])
    clf.save(tmp_path / "model.slim")
    pickled, read = pickle.loads(pickle.dumps(clf)), slimsvm.load(tmp_path / "model.slim")
    for half in (slice(300), slice(300, None)):  # the first chunk comes again, and then another
        for other in (clf, pickled, read):
            other.partial_fit(X[half], y[half])
        np.testing.assert_array_equal(clf.basis_coef_, pickled.basis_coef_)
        np.testing.assert_array_equal(clf.decision_function(X), read.decision_function(X))
    fitted = estimator(solver).fit(X, y)
    fitted.save(tmp_path / "model.slim")
    with pytest.raises(ValueError, match="trained by another solver, or read from a file: begin with"):
        slimsvm.load(tmp_path / "model.slim").partial_fit(X, y)
    with pytest.raises(ValueError, match="trained by another solver"):
        SVC(solver="exact").fit(X, y).set_params(solver=solver(40)).partial_fit(X, y)
    assert clone(clf).partial_fit(X, y).n_basis_ <= 40


@BOTH
@pytest.mark.parametrize("n", [400, 30])
def test_chunks_go_on_from_a_fit(solver, n):
    """Its model is where they begin: in one pass BSGD's steps are those of the rows after n."""
    X, y = rows(800)
    clf = estimator(solver, gamma="scale", intercept="none", precision="float64").fit(X[:n], y[:n])
    before, kernel, t = clf.model_, clf.kernel_, clf._state.n_steps
    clf.partial_fit(X[n : n + 1], y[n : n + 1])
    f, sign = before.scores(X[n : n + 1])[0, 0], 2 * y[n] - 1
    if solver is BSCA:
        kept, step = 1.0, sign * np.clip(1 - sign * f, 0, 2)
    else:
        kept, step = n / (n + 1), 2.0 * sign * (sign * f < 1)
    near = kernel.block(X[:n], X[n : n + 1])[:, 0]
    change = clf.decision_function(X[:n]) - (kept * before.scores(X[:n])[:, 0] + step * near)
    room = before.n_basis < 40  # otherwise two points merge
    assert np.abs(change).max() < (1e-8 if room else 0.2)
    assert clf.kernel_ == kernel
    assert (t == n) is False
    for part in np.array_split(np.arange(n + 1, 800), 4):
        clf.partial_fit(X[part], y[part])
    assert clf.score(X, y) > 0.8
    assert clf._stream.n_rows == 800


@BOTH
def test_regression_goes_on_from_a_fit_with_its_centre(solver):
    X, _ = rows(600)
    y = X[:, 0] + 70
    reg = SVR(gamma=0.2, C=5.0 if solver is BSCA else 0.05, solver=solver(60), random_state=0).fit(X[:300], y[:300])
    reg.partial_fit(X[300:] + 0.0, y[300:])
    assert reg.score(X, y) > (0.8 if solver is BSCA else 0.5)
    assert abs(reg.predict(X).mean() - 70) < 0.3


def test_only_solvers_that_take_chunks_have_it():
    for name, cls in SOLVERS.items():
        assert hasattr(SVC(solver=name), "partial_fit") == hasattr(cls, "partial_solve")
        assert hasattr(SVR(solver=cls()), "partial_fit") == hasattr(cls, "partial_solve")
    assert not hasattr(SVC(), "partial_fit")


def test_bad_chunks_are_named():
    X, y = rows(80)
    clf = estimator(BSCA).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold the classes \[0, 1\]; found .*7.* in row 3"):
        clf.partial_fit(X, np.where(np.arange(80) == 3, 7, y))
    with pytest.raises(ValueError, match=r"classes are \[0, 1\] since the first call, found \[0, 2\]"):
        clf.partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        clf.partial_fit(X, y, sample_weight=np.zeros(80))
    with pytest.raises(ValueError, match="features"):
        clf.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match=r"classes must hold at least two classes, found \[1\]"):
        estimator(BSCA).partial_fit(X, np.ones(80, int))
    for classes, found in (
        ([0, np.nan], "NaN at position 1"),
        ([None, 0, 1], "None at position 0"),
        ([0, "1"], "both"),
    ):
        with pytest.raises(ValueError, match=f"classes must .*{found}"):
            estimator(BSCA).partial_fit(X, y, classes=classes)
        with pytest.raises(ValueError, match=f"classes must .*{found}"):
            OrdinalSVC(classes=classes).fit(X, y)
    with pytest.raises(ValueError, match="class_weight='balanced' counts all rows"):
        estimator(BSCA, class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="found an indicator matrix y"):
        estimator(BSCA).partial_fit(X, np.column_stack([y, 1 - y]), sample_weight=np.ones(80))
    with pytest.raises(ValueError, match="or one target with loss='epsilon_insensitive', found Regression"):
        SVR(solver=BSCA(10)).partial_fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="C='validate' tries values on all rows"):
        estimator(BSCA, C="validate").partial_fit(X, y)
    with pytest.raises(ValueError, match="partial_fit needs a kernel with a formula"):
        estimator(lambda b: BSCA(b, maintenance="remove"), kernel=lambda A, B: A @ B.T).partial_fit(X, y)
    removing = estimator(lambda b: BSCA(b, maintenance="remove"), kernel=Laplacian(0.5))
    assert removing.partial_fit(X, y).partial_fit(X[::-1], y[::-1]).n_basis_ <= 40
