"""Features as normal deviates of their ranks."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm, rankdata
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from slimsvm import SVC, NormalRanks


def test_scikit_learns_checks_pass():
    check_estimator(NormalRanks(), on_skip=None)


@given(arrays(np.float64, (13, 2), elements=st.integers(-4, 4).map(float)))
def test_equal_values_share_the_mean_of_their_ranks(X):
    naive = norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))
    np.testing.assert_allclose(NormalRanks().fit_transform(X), naive, rtol=1e-12, atol=1e-12)


def test_only_the_order_of_values_matters():
    X = np.random.default_rng(0).normal(size=(300, 3))
    np.testing.assert_array_equal(NormalRanks().fit_transform(X), NormalRanks().fit_transform(np.exp(5 * X)))


def test_between_values_it_is_linear_and_beyond_them_constant():
    ranks = NormalRanks().fit([[0.0], [1.0], [3.0]])
    first, second, third = ranks.transform([[0.0], [1.0], [3.0]]).ravel()
    found = ranks.transform([[-9.0], [0.25], [2.0], [1e300]]).ravel()
    np.testing.assert_allclose(found, [first, 0.75 * first + 0.25 * second, (second + third) / 2, third])


def test_many_values_are_kept_as_quantiles():
    X = np.random.default_rng(1).exponential(size=(20_000, 1))
    few, all_of_them = NormalRanks(n_values=100).fit(X), NormalRanks(n_values=20_000).fit(X)
    assert len(few.values_[0]) == 100
    assert few.values_[0][0] == X.min()
    assert few.values_[0][-1] == X.max()
    assert np.abs(few.transform(X) - all_of_them.transform(X)).mean() < 0.01


def test_a_constant_feature_becomes_0():
    np.testing.assert_array_equal(NormalRanks().fit_transform(np.full((5, 1), 7.0)), np.zeros((5, 1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_dtypes(dtype):
    X = np.arange(12).reshape(6, 2).astype(dtype)
    assert NormalRanks().fit_transform(X).dtype == (np.float32 if dtype is np.float32 else np.float64)


def test_a_data_frame_keeps_its_columns_names():
    X = pd.DataFrame({"age": [1.0, 2.0, 3.0], "income": [5.0, 5.0, 900.0]})
    found = NormalRanks().set_output(transform="pandas").fit_transform(X)
    assert list(found.columns) == ["age", "income"]


@pytest.mark.parametrize(
    ("X", "parameters", "message"),
    [
        ([[1.0, np.nan], [0.0, 1.0]], {}, "NaN"),
        ([[1.0, np.inf], [0.0, 1.0]], {}, "inf"),
        (pd.DataFrame({"colour": ["red", "blue"]}), {}, "found 'red' in column 'colour'"),
        (sp.csr_array(np.eye(3)), {}, "[Ss]parse"),
        (np.eye(3), {"n_values": 1}, "n_values must be an integer >= 2, found 1"),
    ],
    ids=str,
)
def test_bad_input(X, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        NormalRanks(**parameters).fit(X)


def test_long_tails_are_no_trouble_any_more():
    rng = np.random.default_rng(2)
    X = np.exp(3 * rng.normal(size=(800, 2)))
    y = X[:, 0] > X[:, 1]
    ranked, scaled = (make_pipeline(step, SVC()).fit(X[:400], y[:400]) for step in (NormalRanks(), StandardScaler()))
    assert ranked.score(X[400:], y[400:]) > scaled.score(X[400:], y[400:]) + 0.05
