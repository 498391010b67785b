"""Bad input of every kind: one clear error that names it, or a defined answer; never NaN."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import slimsvm
from input_for_tests import BOTH, problem, refused
from slimsvm import (
    SVC,
    SVR,
    CrossTrainedSVC,
    EditedNN,
    ExactCuts,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    UniformCuts,
    ViolatedCuts,
)
from slimsvm.estimators import ESTIMATORS
from slimsvm.estimators._shared.input_checks import check_finite
from slimsvm.kernels import KERNELS
from slimsvm.rows.arrays import CHECKED_VALUES
from slimsvm.solvers import SOLVERS

pytestmark = pytest.mark.turns("name")  # the checks are in one place for all estimators

# ---- data


@pytest.mark.parametrize("opposed", [False, True])
def test_numbers_whose_sum_is_infinite_are_finite(opposed):
    X = np.full((2000, 4), 3e38, np.float32)
    X[1000:] *= -1 if opposed else 1
    check_finite(X)
    X[1999, 2] = np.nan
    with pytest.raises(ValueError, match="row 1999"):
        check_finite(X)


@pytest.mark.turns("value", "word")
@BOTH
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array, np.float32])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_nan_and_infinity_are_named_by_row_and_column(name, container, value, word):
    X, y = problem(name)
    X[17, 2] = X[23, 0] = value
    refused(lambda: ESTIMATORS[name]().fit(container(X), y), "X contains", word, "row 17, column 2")
    fitted = ESTIMATORS[name]().fit(*problem(name))
    refused(lambda: fitted.predict(container(X)), "X contains", word, "row 17, column 2")


def table(column):
    """A pandas table of numbers and one more column."""
    X, y = problem()
    return pd.DataFrame(X, columns=list("abc")).assign(city=column), y


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pd.Categorical(["Rome", "Oslo"] * 20), "'Rome'"),
        (["Rome", "Oslo"] * 20, "'Rome'"),
        (["1.5", "n/a"] * 20, "'n/a'"),
        (pd.date_range("2020-01-01", periods=40), "'2020-01-01"),
    ],
    ids=["category", "text", "some-text", "date"],
)
@pytest.mark.parametrize("make", [SVC, EditedNN])
def test_a_column_of_no_numbers_is_named(column, found, make):
    X, y = table(column)
    fit = (lambda X: make().fit(X, y)) if make is SVC else (lambda X: make().fit_resample(X, y))
    refused(lambda: fit(X), f"found {found}", "in column 'city'", "OneHotEncoder")
    refused(lambda: fit(X.to_numpy()), "in column 3")


def test_a_column_is_named_in_prediction_unless_it_is_new():
    X, y = table(["Rome", "Oslo"] * 20)
    numbers = X[["a", "b", "c"]]
    clf = SVC().fit(numbers, y)
    refused(lambda: clf.predict(numbers.assign(b="Rome")), "'Rome' in column 'b'")
    refused(lambda: clf.predict(X), "Feature names unseen at fit time", "city")


def test_a_number_that_is_missing_is_named_by_its_column():
    X, y = table(np.arange(40.0))
    clf, gaps = SVC().fit(X, y), X.copy()
    gaps.loc[17, "b"] = np.nan
    refused(lambda: SVC().fit(gaps, y), "NaN at row 17, column 'b'")
    refused(lambda: clf.predict(gaps), "NaN at row 17, column 'b'")


def test_categories_that_are_numbers_are_numbers():
    X, y = table(pd.Categorical([1, 2] * 20))
    np.testing.assert_array_equal(
        SVC().fit(X, y).decision_function(X), SVC().fit(X, y).decision_function(X.astype(float))
    )


@pytest.mark.parametrize("estimator", [SVC(), SVR(), OneClassSVM(), RankSVM()], ids=repr)
@pytest.mark.parametrize("make", [list, pd.Series, lambda rows: np.array(rows, object)])
@pytest.mark.parametrize(
    ("row", "maker"),
    [("a text", "texts: sklearn.feature_extraction.text.Tfidf"), ({1: 0.5}, "DictVectorizer makes rows")],
)
def test_rows_that_are_no_numbers_are_told_what_makes_some(estimator, make, row, maker):
    more = {"groups": np.zeros(4)} if isinstance(estimator, RankSVM) else {}
    refused(lambda: estimator.fit(make([row] * 4), [0, 1, 0, 1], **more), "X must hold rows of numbers", maker)
    fitted = clone(estimator).fit(np.eye(4), [0, 1, 0, 1], **more)
    refused(lambda: fitted.predict(make([row] * 4)), "X must hold rows of numbers", maker)


@pytest.mark.parametrize("make", [SVC, OrdinalSVC, CrossTrainedSVC, lambda: SVC(solver="bsgd", max_basis=5)])
def test_numbers_that_are_not_whole_are_no_classes(make):
    refused(lambda: make().fit(np.eye(4), [1, 1, 2, 2.5]), "Unknown label type", "2.5 in row 3", "y.astype(str)")


def test_targets_that_are_times_or_grades_that_are_texts():
    days = np.arange(4).astype("timedelta64[D]")
    for times in (days, pd.Series(days), days + np.datetime64("2020-01-01")):
        refused(lambda times=times: SVR().fit(np.eye(4), times), "y must hold numbers, found times", "such as days")
    for texts in (["low", "high"] * 2, pd.Categorical(["low", "high"] * 2, categories=["low", "high"], ordered=True)):
        refused(lambda texts=texts: RankSVM().fit(np.eye(4), texts, qid=[0] * 4), "found 'low' at row 0; OrdinalSVC")


@pytest.mark.parametrize("estimator", [SVC(), OrdinalSVC(), CrossTrainedSVC()], ids=repr)
def test_probabilities_are_said_to_need_calibration(estimator):
    words = f"{type(estimator).__name__} has no predict_proba", "without probability=True"
    refused(lambda: estimator.predict_proba([[1.0]]), *words, error=AttributeError)
    assert not hasattr(estimator, "predict_log_proba")
    words = "object has no attribute 'predict_probability'"
    refused(lambda: estimator.predict_probability, words, error=AttributeError)
    refused(lambda: SVR().predict_proba, "'SVR' object has no attribute 'predict_proba'", error=AttributeError)


@pytest.mark.parametrize("estimator", [SVC(), SVR(), OneClassSVM()], ids=repr)
def test_chunks_are_said_to_need_a_solver(estimator):
    words = "'bsca', 'bsgd'", f"{type(estimator).__name__}(solver='bsgd', max_basis=500)"
    refused(lambda: estimator.partial_fit(*problem()), "partial_fit needs a solver", *words, error=AttributeError)
    assert not hasattr(estimator, "partial_fit")
    assert hasattr(estimator.set_params(solver="bsgd"), "partial_fit")


def test_what_is_saved_is_one_estimator(tmp_path):
    X, y = problem()
    path = tmp_path / "model.slim"
    pipeline = make_pipeline(Normalizer(), SVC()).fit(X, y)
    refused(lambda: slimsvm.save(pipeline, path), "slimsvm.save(pipeline[-1], path)", "a Normalizer", error=TypeError)
    search = GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, y)
    refused(lambda: slimsvm.save(search, path), "found a GridSearchCV: give its best_estimator_", error=TypeError)
    refused(lambda: slimsvm.save(StandardScaler(), path), "found StandardScaler", error=TypeError)
    assert not path.exists()
    slimsvm.save(pipeline[-1], path)
    np.testing.assert_array_equal(slimsvm.load(path).predict(pipeline[:-1].transform(X)), pipeline.predict(X))


def test_nan_in_the_second_block_of_a_memory_map(tmp_path):
    n = CHECKED_VALUES // 2 + 10
    X, y = np.zeros((n, 2), np.float32), np.arange(n) % 2
    X[-1, 1] = np.nan
    np.save(tmp_path / "X.npy", X)
    refused(lambda: SVC().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y), f"NaN at row {n - 1}, column 1")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_targets(value):
    X, y = problem("SVR")
    y[5] = value
    refused(lambda: SVR().fit(X, y), "contains", "at row 5")
    refused(lambda: SVR().fit(X, [None] * 40), error=(ValueError, TypeError))
    refused(lambda: SVC().fit(*problem("SVR")), "continuous")
    labels = np.where(np.arange(40) % 2, 1.0, 0.0)
    labels[3] = value
    refused(lambda: SVC().fit(X, labels), "contains", "at row 3")


@pytest.mark.parametrize("y", [np.zeros(40), ["only"] * 40], ids=["numbers", "strings"])
def test_one_class(y):
    refused(lambda: SVC().fit(problem()[0], y), "at least two classes, found 1 class", str(y[0]))


def test_one_class_left_after_rows_of_no_weight():
    X, y = problem()
    refused(lambda: SVC().fit(X, y, sample_weight=(y == 0).astype(float)), "at least two classes, found 1 class: 0")


@BOTH
def test_shapes_that_do_not_match(name):
    X, y = problem(name)
    refused(lambda: ESTIMATORS[name]().fit(X, y[:-1]), "40", "39")
    refused(lambda: ESTIMATORS[name]().fit(X[:, 0], y), "2D")
    refused(lambda: ESTIMATORS[name]().fit(np.zeros((0, 3)), []), "0 sample")
    refused(lambda: ESTIMATORS[name]().fit(np.zeros((40, 0)), y), "0 feature")
    refused(lambda: ESTIMATORS[name]().fit(X.astype(str), np.asarray(y)).predict(np.array([["a", "b", "c"]])))
    refused(lambda: ESTIMATORS[name]().fit(X + 1j, y), "omplex")
    fitted = ESTIMATORS[name]().fit(X, y)
    for wrong in (X[:, :2], sp.csr_array(X[:, :2]), np.hstack([X, X])):
        refused(lambda wrong=wrong: fitted.predict(wrong), f"{wrong.shape[1]} features", "3 features")


def test_text_where_a_number_belongs():
    refused(
        lambda: SVC().fit([["1.0", "spam", "2"]] * 40, problem()[1]), "X must hold numbers, found 'spam' in column 1"
    )


@pytest.mark.parametrize("make", [SVR, lambda: SVR(loss="poisson")])
def test_a_text_where_a_target_belongs(make):
    X = problem()[0]
    said = "y must hold numbers, found 'spam' at row 3; SVC takes labels"
    y, weights = ["1.5", "2", "3", *["spam"] * (len(X) - 3)], np.r_[0.0, np.ones(len(X) - 1)]
    refused(lambda: make().fit(X, y, weights), said)


@BOTH
def test_a_precomputed_matrix_must_be_square(name):
    X, y = problem(name)
    refused(lambda: ESTIMATORS[name](kernel="precomputed").fit(X, y), "square", "(40, 3)")
    fitted = ESTIMATORS[name](kernel="precomputed").fit(X @ X.T, y)
    refused(lambda: fitted.predict(X), "3 features", "40 features")


@BOTH
@pytest.mark.parametrize(
    ("kernel", "words", "error"),
    [
        (lambda A, B: np.zeros((1, 1)), ("must return an array of shape",), ValueError),
        (lambda A, B: np.full((len(A), len(B)), "a"), ("must return real numbers",), TypeError),
        (lambda A, B: np.full((len(A), len(B)), np.nan), ("kernel", "NaN"), ValueError),
        (lambda A, B: np.full((len(A), len(B)), np.inf), ("kernel",), ValueError),
    ],
    ids=["shape", "text", "NaN", "infinity"],
)
def test_what_a_users_kernel_returns(name, kernel, words, error):
    X, y = problem(name)
    refused(lambda: ESTIMATORS[name](kernel=kernel).fit(X, y), *words, error=error)


# ---- parameters


@BOTH
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0}, ("C must be a positive number", "0")),
        ({"C": -1.0}, ("C must be a positive number", "-1.0")),
        ({"C": -np.inf}, ("C must be a positive number", "-inf")),
        ({"C": np.nan}, ("C must be a positive number", "nan")),
        ({"C": "1"}, ("C must be a positive number", "'1'")),
        ({"C": True}, ("C must be a positive number", "True")),
        ({"tol": 0}, ("tol must be a positive number", "0")),
        ({"gamma": -0.5}, ("gamma must be a positive finite number", "-0.5")),
        ({"gamma": np.nan}, ("gamma must be a positive finite number", "nan")),
        ({"gamma": "wide"}, ("gamma must be one of 'scale', 'auto'", "'wide'")),
        ({"gamma": [1.0, 0.0, 2.0]}, ("gamma must be a positive finite number", "0.0 for feature 1")),
        ({"gamma": [1.0, 2.0]}, ("gamma has 2 values, the rows have 3 features",)),
        ({"kernel": "gauss"}, ("unknown kernel 'gauss'", *sorted(KERNELS))),
        ({"kernel": "poly", "degree": 0}, ("degree must be an integer of at least 1", "0")),
        ({"kernel": "poly", "degree": 2.5}, ("degree", "2.5")),
        ({"kernel": "poly", "coef0": np.nan}, ("coef0 must be a finite number", "nan")),
        ({"solver": "smo"}, ("solver must be one of 'auto'", *map(repr, SOLVERS), "'smo'")),
        ({"solver": ExactCuts}, ("solver must be one of",)),
        ({"solver": ViolatedCuts(sample_size=-1)}, ("sample_size must be an integer >= 1", "-1")),
        ({"solver": UniformCuts(patience=0.5)}, ("patience must be an integer >= 1", "0.5")),
        ({"solver": ViolatedCuts(step=None)}, ("step must be", "None")),
        ({"intercept": "free", "solver": "exact-cuts"}, ("intercept='regularized' or 'none'", "'free'")),
        ({"intercept": True}, ("intercept must be one of", "True")),
        ({"precision": "float16"}, ("precision must be one of 'auto', 'float32', 'float64'", "'float16'")),
        ({"max_iter": -2}, ("max_iter must be a positive integer", "-2")),
        ({"cache_size": -1}, ("cache_size must be a positive number", "-1")),
        ({"max_iter": 1.5}, ("max_iter must be a positive integer", "1.5")),
        ({"max_seconds": -1}, ("max_seconds must be a positive number", "-1")),
        ({"memory_limit": 0}, ("memory_limit must be a positive number", "0")),
        ({"memory_limit": 1e-6}, ("memory_limit leaves room for", "at least")),
        ({"n_jobs": 0}, ("n_jobs must not be 0",)),
        ({"random_state": "today"}, ("today",)),
        ({"max_basis": 0}, ("max_basis must be a positive integer", "0")),
        ({"solver": ViolatedCuts(sample_size=None)}, ("sample_size must be an integer", "None")),
        ({"max_basis": 5, "solver": "exact-cuts"}, ("has no limit on vectors", "max_basis=5", "'cpsp'")),
        ({"max_basis": 5, "solver": ExactCuts()}, ("max_basis=5", "has no limit on vectors")),
    ],
    ids=lambda value: re.sub(r"\W+", " ", str(value))[:40] if isinstance(value, dict) else "",
)
def test_parameters(name, parameters, words):
    X, y = problem(name)
    if not set(parameters) <= set(ESTIMATORS[name]().get_params()):
        unknown = next(option for option in parameters if option not in ESTIMATORS[name]().get_params())
        refused(lambda: ESTIMATORS[name](**parameters), unknown, error=TypeError)
        return
    refused(lambda: ESTIMATORS[name](**parameters).fit(X, y), *words)


@BOTH
def test_kernels_of_the_wrong_kind(name):
    X, y = problem(name)
    refused(lambda: ESTIMATORS[name](kernel=3).fit(X, y), "kernel must be a name", "3", error=TypeError)
    refused(lambda: ESTIMATORS[name](kernel=None).fit(X, y), "kernel must be a name", "None", error=TypeError)
    refused(lambda: ESTIMATORS[name](gamma=None).fit(X, y), "gamma must be", "got None", error=TypeError)
    refused(lambda: ESTIMATORS[name](n_jobs="all").fit(X, y), "n_jobs", "'all'", error=TypeError)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf])
def test_epsilon(epsilon):
    refused(lambda: SVR(epsilon=epsilon).fit(*problem("SVR")), "epsilon must be a number >= 0", str(epsilon))


def test_an_option_of_SVC():
    refused(
        lambda: SVC(decision_function_shape="all").fit(*problem()), "decision_function_shape must be one of", "'all'"
    )
    refused(lambda: SVC(class_weight="even").fit(*problem()), "class_weight", "even")
    refused(lambda: SVC(class_weight={0: -1.0}).fit(*problem()), "class_weight", "-1")
    refused(lambda: SVC(class_weight={"a": 1.0}).fit(*problem()), "class_weight")


@BOTH
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(39), ("40 rows", "39 weights")),
        (np.ones((40, 1)), ("Sample weights must be 1D",)),
        (np.append(np.ones(39), np.nan), ("must be finite", "nan", "row 39")),
        (np.append(np.ones(39), np.inf), ("must be finite", "inf", "row 39")),
        (np.append(np.ones(39), -np.inf), ("must be finite", "-inf", "row 39")),
        (np.zeros(40), ("zero for every row",)),
        (-np.ones(40), ("zero or negative weights",)),
        (["heavy"] * 40, ("sample_weight",)),
    ],
    ids=["short", "2-D", "NaN", "infinite", "-infinite", "zero", "negative", "text"],
)
def test_sample_weights(name, weights, words):
    X, y = problem(name)
    refused(lambda: ESTIMATORS[name]().fit(X, y, sample_weight=weights), *words)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cost_matrices(n_classes):
    X, y = problem(n_classes=n_classes)
    good = 1 - np.eye(n_classes)

    def fit(cost):
        return lambda: SVC(cost_matrix=cost).fit(X, y)

    refused(fit(np.ones((4, 4))), "cost_matrix", f"({n_classes}, {n_classes})", "(4, 4)")
    refused(fit(np.ones(n_classes)), "cost_matrix", f"({n_classes}, {n_classes})")
    refused(fit(good + np.eye(n_classes)), "cost_matrix", "zeros on the diagonal", "found 1.0 at row 0, column 0")
    for value in (-1.0, np.nan, np.inf):
        bad = good.copy()
        bad[1, 0] = value
        refused(fit(bad), "cost_matrix", f"found {value} at row 1, column 0")
    nothing = good.copy()
    nothing[0, 1] = 0
    if n_classes == 2:
        refused(fit(nothing), "cost_matrix", "> 0 between two classes", "row 0, column 1")
    else:
        assert np.isfinite(fit(nothing)().decision_function(X)).all()
