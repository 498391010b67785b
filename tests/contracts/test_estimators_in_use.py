"""Every estimator in other containers, inside scikit-learn, under limits, saved and read again."""

import io
import pickle
import re
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import SVR as TheirSVR

import slimsvm
from contracts.estimator_cases import BOTH, outputs, problem
from slimsvm import SVC, SVR, ExactCuts, ViolatedCuts
from slimsvm.estimators import ESTIMATORS
from slimsvm.kernels import KERNELS, RBF
from slimsvm.solvers import SOLVERS
from tasks_for_tests import NOT_FOR
from threads_for_tests import in_threads

# ---- containers


@pytest.mark.parametrize("solver", ["exact-cuts", "violated-cuts", "uniform-cuts"])
@BOTH
def test_containers_give_one_answer(name, solver, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (70, 4)).astype(np.float64)
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] - 0.2)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    csr = sp.csr_matrix(X)
    long = sp.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=X.shape)
    make = lambda: ESTIMATORS[name](solver=solver, gamma=0.3, random_state=0)  # noqa: E731
    first = make().fit(X, y)
    read_only = X.copy()
    read_only.flags.writeable = False
    for dense in (
        np.asfortranarray(X),
        X.astype(np.float32),
        X.astype(int),
        mapped,
        pd.DataFrame(X),
        X.tolist(),
        read_only,
    ):
        with warnings.catch_warnings():
            # Their warning when a fit with column names meets an array without.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            other = make().fit(dense, y)
            np.testing.assert_array_equal(outputs(other, X), outputs(first, X))
        np.testing.assert_array_equal(outputs(first, np.asarray(dense)), outputs(first, X))
    sparse = make().fit(csr, y)
    for container in (csr, csr.tocsc(), csr.tocoo(), long):
        np.testing.assert_array_equal(outputs(make().fit(container, y), container), outputs(sparse, csr))
    if solver == "exact-cuts":
        np.testing.assert_allclose(outputs(sparse, csr), outputs(first, X), atol=1e-4)
    np.testing.assert_allclose(outputs(first, csr), outputs(first, X), atol=1e-9)


@BOTH
def test_column_names_are_remembered(name):
    X, y = problem(name)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    estimator = ESTIMATORS[name]().fit(frame, pd.Series(y))
    assert list(estimator.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame[["b", "a", "c"]])


@BOTH
def test_a_rows_score_does_not_depend_on_its_batch(name):
    X, y = problem(name, n=60)
    for precision in ("float32", "float64"):
        estimator = ESTIMATORS[name](precision=precision).fit(X, y)
        whole = outputs(estimator, X)
        for i in range(0, 60, 7):
            np.testing.assert_array_equal(outputs(estimator, X[i : i + 1]), whole[i : i + 1])
        np.testing.assert_array_equal(outputs(estimator, X[::-1])[::-1], whole)


# ---- inside scikit-learn


def test_in_a_pipeline_and_a_grid():
    X, y = problem(n=90)
    pipeline = make_pipeline(StandardScaler(), SVC(solver=ViolatedCuts(), random_state=0))
    grid = GridSearchCV(
        pipeline, {"svc__solver__sample_size": [5, 50], "svc__C": [0.1, 10.0]}, cv=2, n_jobs=2, error_score="raise"
    ).fit(X, y)
    assert set(grid.best_params_) == {"svc__solver__sample_size", "svc__C"}
    assert grid.best_estimator_[-1].solver_.sample_size == grid.best_params_["svc__solver__sample_size"]
    assert grid.best_score_ > 0.6


@BOTH
def test_a_fit_never_edits_parameters(name):
    X, y = problem(name)
    solver = ViolatedCuts(sample_size=30)
    estimator = ESTIMATORS[name](solver=solver, random_state=0)
    before = {key: repr(value) for key, value in estimator.get_params().items()}
    estimator.fit(X, y)
    assert {key: repr(value) for key, value in estimator.get_params().items()} == before
    assert estimator.solver is solver
    assert not [attribute for attribute in vars(solver) if attribute.endswith("_")]
    copy = clone(estimator)
    assert copy.solver is not solver
    assert copy.solver.sample_size == 30
    assert not hasattr(copy, "model_")
    copy.set_params(solver__sample_size=10)
    assert solver.sample_size == 30


@BOTH
def test_cross_validation_of_any_solver(name):
    X, y = problem(name, n=90)
    for solver in sorted(set(SOLVERS) - NOT_FOR[name]):
        parameters = {"max_basis": 20} if "max_basis" in SOLVERS[solver]().get_params() else {}
        estimator = ESTIMATORS[name](solver=solver, C=10.0, random_state=0, **parameters)
        assert cross_val_score(estimator, X, y, cv=2).mean() > (0.3 if name == "SVR" else 0.6)


def test_decision_boundary_display():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    for n_classes in (2, 3):
        X, y = problem(n_classes=n_classes)
        clf = SVC().fit(X[:, :2], y)
        for method in ("decision_function", "predict"):
            shown = DecisionBoundaryDisplay.from_estimator(clf, X[:, :2], response_method=method, grid_resolution=10)
            assert np.isfinite(shown.response).all()
        matplotlib.pyplot.close("all")


def test_meta_estimators():
    X, y = problem(n_classes=3)
    assert OneVsRestClassifier(SVC()).fit(X, y).score(X, y) > 0.9
    X, y = problem("SVR")
    assert TransformedTargetRegressor(SVR(), func=np.exp, inverse_func=np.log).fit(X, y).score(X, y) > 0.5


def test_set_output_of_the_steps_before():
    X, y = problem()
    pipeline = make_pipeline(StandardScaler(), SVC()).set_output(transform="pandas")
    pipeline.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert list(pipeline[-1].feature_names_in_) == ["a", "b", "c"]


# ---- callbacks, limits, threads


class Watcher:
    """A callback of scikit-learn's kind."""

    def __init__(self, stop_after=None):
        self.stop_after, self.events = stop_after, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(f"begin {context.task_name}")
        assert X.shape[0] == len(y)

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.task_name}")
        return self.stop_after is not None and self.events.count("end iteration") >= self.stop_after


@BOTH
def test_scikit_learns_callbacks(name):
    X, y = problem(name)
    watcher = Watcher()
    estimator = ESTIMATORS[name](solver="exact-cuts").set_callbacks(watcher).fit(X, y)
    iterations = ["begin iteration", "end iteration"] * len(estimator.history_)
    assert watcher.events == ["setup", "begin fit", *iterations, "end fit", "teardown"]
    stopper = Watcher(stop_after=3)
    stopped = ESTIMATORS[name](solver="exact-cuts").set_callbacks(stopper).fit(X, y)
    assert stopped.n_iter_ == 3
    assert stopped.status_ == "stopped by a callback"
    assert stopper.events[-2:] == ["end fit", "teardown"]
    failing = Watcher()
    with pytest.raises(ValueError, match="C must be"):
        ESTIMATORS[name](C=-1.0).set_callbacks(failing).fit(X, y)
    assert failing.events in ([], ["setup", "teardown"])


@BOTH
def test_scikit_learns_scoring_monitor(name):
    X, y = problem(name)
    monitor = pytest.importorskip("sklearn.callback").ScoringMonitor(scoring="r2" if name == "SVR" else "accuracy")
    estimator = ESTIMATORS[name]().set_callbacks(monitor).fit(X, y)
    scores = [entry["r2" if name == "SVR" else "accuracy"] for entry in monitor.get_logs().data]
    assert scores == [pytest.approx(estimator.score(X, y))]


@BOTH
def test_limits_warn_and_leave_a_model(name):
    X, y = problem(name)
    with pytest.warns(ConvergenceWarning, match="iteration limit after 2 iterations"):
        estimator = ESTIMATORS[name](max_iter=2, solver="exact-cuts").fit(X, y)
    assert estimator.n_iter_ == 2
    assert estimator.status_ == "iteration limit"
    assert np.isfinite(estimator.predict(X)).all()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        ESTIMATORS[name](max_seconds=1e-9, solver="exact-cuts").fit(X, y)


@BOTH
def test_progress_is_shown_when_asked_for_only(name, capfd):
    X, y = problem(name)
    ESTIMATORS[name]().fit(X, y)
    assert capfd.readouterr() == ("", "")
    ESTIMATORS[name](verbose=True).fit(X, y)
    out, err = capfd.readouterr()
    assert out == ""
    assert re.search(r"(exact SVM|cutting planes).*100%.*<00:00", err)


@BOTH
def test_warm_start_goes_on_from_the_last_fit(name):
    X, y = problem(name)
    estimator = ESTIMATORS[name](warm_start=True, gamma=0.3, solver="exact-cuts").fit(X, y)
    cold = ESTIMATORS[name](gamma=0.3, C=1.2, solver="exact-cuts").fit(X, y)
    warm = estimator.set_params(C=1.2).fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-9)
    estimator.set_params(warm_start=False, C=1.0).fit(X, y)
    assert estimator.n_iter_ == ESTIMATORS[name](gamma=0.3, solver="exact-cuts").fit(X, y).n_iter_
    with pytest.raises(ValueError, match="the earlier fit had 80 rows, this one has 79"):
        estimator.set_params(warm_start=True).fit(X[:-1], y[:-1])


@BOTH
def test_two_threads_fit_at_once(name):
    X, y = problem(name, n=300)
    expected = outputs(ESTIMATORS[name](solver=ViolatedCuts(), precision="float32", random_state=0).fit(X, y), X)
    found, errors = {}, []

    def work(key):
        try:
            for _ in range(3):
                estimator = ESTIMATORS[name](solver=ViolatedCuts(), precision="float32", random_state=0, n_jobs=2)
                found[key] = outputs(estimator.fit(X, y), X)
                np.testing.assert_array_equal(found[key], expected)
        except BaseException as error:
            errors.append(error)

    in_threads(work, range(3))
    assert errors == []
    assert len(found) == 3


# ---- out and in again


@pytest.mark.parametrize("n_classes", [2, 3])
@BOTH
def test_pickle_and_joblib(name, n_classes):
    X, y = problem(name, n_classes=n_classes)
    estimator = ESTIMATORS[name](solver=ExactCuts(max_idle=30), random_state=0).fit(X, y)
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(estimator)), joblib.load(file)):
        np.testing.assert_array_equal(outputs(other, X), outputs(estimator, X))
        assert other.get_params()["solver__max_idle"] == 30
        assert other.objective_ == estimator.objective_
        other.set_params(warm_start=True).fit(X, y)


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [0, 1, 2], np.array(["p", "q", "r"], dtype=object), [1.0, 2.0]], ids=repr
)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_saved_classifier_scores_the_same_bits(labels, sparse, tmp_path):
    X, codes = problem(n_classes=len(labels))
    X = sp.csr_array(X * (np.abs(X) > 0.5)) if sparse else X
    y = np.asarray(labels)[codes]
    clf = SVC(C=3.0, gamma=0.5, solver=ViolatedCuts(sample_size=40), random_state=0, class_weight="balanced").fit(X, y)
    clf.save(tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    assert type(again) is SVC
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X), strict=True)
    np.testing.assert_array_equal(again.classes_, clf.classes_, strict=True)
    for attribute in (
        "objective_",
        "lower_bound_",
        "status_",
        "n_iter_",
        "n_features_in_",
        "n_basis_",
    ):
        assert getattr(again, attribute) == getattr(clf, attribute)
    assert repr(again.get_params()) == repr(clf.get_params())
    clone(again).fit(X, y)


@pytest.mark.parametrize("kernel", [*sorted(set(KERNELS) - {"callable"}), RBF(0.2), RBF((1, 2, 3))], ids=repr)
def test_a_saved_regressor_scores_the_same_bits(kernel, tmp_path):
    X, y = problem("SVR")
    X = rbf_kernel(X, gamma=0.3) if kernel == "precomputed" else X
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    reg = SVR(kernel=kernel, C=np.float64(2.0), gamma=0.1, max_iter=20000).fit(frame, y)
    reg.save(str(tmp_path / "model.slim"))
    again = slimsvm.load(str(tmp_path / "model.slim"))
    np.testing.assert_array_equal(again.predict(frame), reg.predict(frame), strict=True)
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.kernel_ == reg.kernel_


def test_what_cannot_be_saved_says_so(tmp_path):
    X, y = problem()
    with pytest.raises(NotFittedError):
        SVC().save(tmp_path / "model.slim")
    clf = SVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises((TypeError, ValueError), match="function"):
        clf.save(tmp_path / "model.slim")
    assert not list(tmp_path.iterdir())


# ---- drop-in


def test_scikit_learns_constructor_arguments_are_accepted():
    SVC(**TheirSVC().get_params()).fit(*problem())
    SVR(**TheirSVR().get_params()).fit(*problem("SVR"))


@BOTH
def test_before_fit(name):
    X, _ = problem(name)
    with pytest.raises(NotFittedError):
        ESTIMATORS[name]().predict(X)
    if name == "SVC":
        with pytest.raises(NotFittedError):
            SVC().decision_function(X)
