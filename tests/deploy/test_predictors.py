"""`load_predictor`: what the estimators predict, with NumPy alone."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import slimsvm
from fixtures.make_models import CASES, MODELS, SHIPPED, data_of, stored_arrays
from kernel_cases import WITH_FORMULA
from slimsvm import modelfile
from slimsvm.deploy import plain_model
from slimsvm.deploy.predictors import PREDICTORS
from slimsvm.kernels import Linear


def assert_near(found, expected):
    found, expected = np.concatenate([found], axis=0), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", SHIPPED)
def test_every_model_predicts_as_its_estimator(name):
    path, data = MODELS / f"{name}.slim", data_of(name)
    estimator, predictor = slimsvm.load(path), slimsvm.load_predictor(path)
    assert predictor.n_features_in_ == estimator.n_features_in_
    assert hasattr(predictor, "classes_") == hasattr(estimator, "classes_")
    assert hasattr(predictor, "decision_function") == hasattr(estimator, "decision_function")
    assert hasattr(predictor, "predict_proba") == hasattr(estimator, "predict_proba")
    if hasattr(predictor, "decision_function"):
        expected = estimator.decision_function(data.queries, **data.query_options)
        assert_near(predictor.decision_function(data.queries, **data.query_options), expected)
    found, expected = (model.predict(data.queries, **data.query_options) for model in (predictor, estimator))
    if hasattr(estimator, "classes_") or CASES[name].data == "outliers":
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        assert_near(found, expected)


@pytest.mark.parametrize("name", [name for name in SHIPPED if not name.startswith(("rank", "sequence"))])
def test_estimators_and_files_make_the_same_kind_of_decision(name):
    estimator, predictor = slimsvm.load(MODELS / f"{name}.slim"), slimsvm.load_predictor(MODELS / f"{name}.slim")
    assert type(estimator._decision()) is type(predictor._decision)


def test_a_derived_class_decides_as_the_library_s():
    class Own(slimsvm.SVC):
        pass

    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3
    own, plain = Own(random_state=0).fit(X, y), slimsvm.SVC(random_state=0).fit(X, y)
    np.testing.assert_array_equal(own.predict(X), plain.predict(X))
    np.testing.assert_array_equal(own.decision_function(X), plain.decision_function(X))


def test_a_task_of_ones_own_is_refused():
    with pytest.raises(ValueError, match=r"StructuredSVM.*slimsvm.load reads it"):
        slimsvm.load_predictor(MODELS / "structured-own.slim")


def test_numpy_is_all_that_is_imported():
    """A fresh process: the test's own has scikit-learn already."""
    code = (
        "import sys, slimsvm\n"
        f"predictor = slimsvm.load_predictor({str(MODELS / 'svc-three-exact.slim')!r})\n"
        "assert len(predictor.predict([[0.0, 0.0, 0.0]])) == 1\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(answer.stdout.split())
    assert {"numpy", "slimsvm"} <= loaded
    assert not loaded & {"scipy", "sklearn", "joblib", "threadpoolctl", "tqdm"}


@pytest.mark.parametrize("name", ["svc-exact", "svc-laplacian-gammas", "svc-csr-poly", "svc-precomputed"])
def test_blocks_of_rows_and_vectors_change_nothing(name, monkeypatch):
    queries, predictor = data_of(name).queries, slimsvm.load_predictor(MODELS / f"{name}.slim")
    whole = predictor.decision_function(queries)
    monkeypatch.setattr(plain_model, "BLOCK_NUMBERS", 7)
    np.testing.assert_allclose(predictor.decision_function(queries), whole, rtol=1e-12)


@pytest.mark.parametrize("kernel", WITH_FORMULA)
def test_sparse_rows_are_as_dense_ones(kernel, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 9)) * (rng.random((60, 9)) < 0.4)
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    for form in (np.asarray, sp.csr_array):
        estimator = slimsvm.SVC(kernel=kernel, gamma=0.3).fit(form(X), y)
        estimator.save(tmp_path / "model.slim")
        predictor = slimsvm.load_predictor(tmp_path / "model.slim")
        for given in (X, sp.csr_array(X), sp.coo_array(X), X.tolist()):
            assert_near(predictor.decision_function(given), estimator.decision_function(X))


def test_rows_far_from_the_origin_keep_their_digits(tmp_path):
    """|x|² + |z|² − 2⟨x, z⟩ would have none left: rows lie 10⁸ from 0, and one apart."""
    X, y = 1e8 + np.arange(20.0)[:, None], np.arange(20) % 2
    estimator = slimsvm.SVC(gamma=1.0).fit(X, y)
    estimator.save(tmp_path / "model.slim")
    assert_near(slimsvm.load_predictor(tmp_path / "model.slim").decision_function(X), estimator.decision_function(X))


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "rational_quadratic", "laplacian"])
@pytest.mark.parametrize("scale", [1e100, 1e160, 1e300])
def test_rows_whose_distances_have_no_square(kernel, scale, tmp_path):
    X = scale * np.random.default_rng(0).normal(size=(20, 3))
    estimator = slimsvm.RankSVM(kernel=kernel, gamma=1.0).fit(X, np.arange(20) % 3, groups=np.zeros(20))
    estimator.save(tmp_path / "model.slim")
    assert_near(slimsvm.load_predictor(tmp_path / "model.slim").predict(X), estimator.predict(X))


def test_sequences_in_every_form():
    predictor, estimator = (load(MODELS / "sequence.slim") for load in (slimsvm.load_predictor, slimsvm.load))
    X = stored_arrays()["queries"]
    for sequences in ([X[:3], X[3:]], [sp.csr_array(X[:5]), X[5:].tolist()], [X, np.zeros((0, X.shape[1]))]):
        expected = estimator.predict([part.toarray() if sp.issparse(part) else np.asarray(part) for part in sequences])
        assert [labels.tolist() for labels in predictor.predict(sequences)] == [part.tolist() for part in expected]
    with pytest.raises(ValueError, match=r"list of sequences.*found one array alone"):
        predictor.predict(X)
    with pytest.raises(ValueError, match="add up to the rows of X, 8"):
        predictor.predict(X, lengths=[3, 3])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 2.0]], "3 features as in training, found 2"),
        ([1.0, 2.0, 3.0], r"two dimensions.*\(3,\)"),
        ([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]], "found nan in row 1, column 1"),
        ([[1e200, 1e200, 1e200]], "row 0 of X are beyond float64"),
    ],
)
def test_bad_rows_are_refused(X, message):
    predictor = slimsvm.load_predictor(MODELS / "svc-poly.slim")
    with pytest.raises(ValueError, match=message):
        predictor.predict(X)


def test_a_score_of_0_is_of_the_first_of_two_classes(tmp_path):
    """Halfway between two rows; as the estimator has it."""
    estimator = slimsvm.SVC(kernel="linear", intercept="none").fit([[-1.0], [1.0]], ["a", "b"])
    estimator.save(tmp_path / "model.slim")
    predictor, X = slimsvm.load_predictor(tmp_path / "model.slim"), [[-1.0], [0.0], [1.0]]
    assert predictor.decision_function(X)[1] == 0.0
    for model in (estimator, predictor):
        assert model.predict(X).tolist() == ["a", "a", "b"]


def test_ties_go_to_the_lowest_class():
    """Three classes, each with one vote, and all scores equal."""
    model = plain_model.PlainModel(
        "pairs", Linear(), 1, None, np.zeros((1, 3)), np.array([1.0, -1.0, 1.0]), np.zeros(0), np.arange(3), {}
    )
    assert PREDICTORS["pairs"](model).predict([[0.0]]).tolist() == [0]


def test_a_score_of_0_is_not_positive():
    """For the first of two classes, and for no label."""
    parts = np.zeros((1, 1)), np.zeros(1), np.zeros(0), np.array([3, 4]), {}
    for kind, expected in (("binary", [3]), ("labels", [[0]])):
        model = plain_model.PlainModel(kind, Linear(), 1, None, *parts)
        assert PREDICTORS[kind](model).predict([[0.0]]).tolist() == expected


@pytest.mark.parametrize(
    ("name", "part", "change"),
    [
        ("svc-exact", "coef", lambda values: values[1:]),
        ("svc-exact", "basis", lambda values: values[:, 1:]),
        ("svc-three", "intercept", lambda values: values[1:]),
        ("ordinal", "plain", lambda values: values[1:]),
        ("sequence", "plain", lambda values: values[1:]),
        ("svc-csr", "basis_indices", lambda values: values + 12),
        ("svc-csr", "basis_indices", lambda values: values - 12),
        ("svc-csr", "basis_indptr", lambda values: values[::-1]),
    ],
)
def test_parts_that_do_not_fit_are_refused(name, part, change, tmp_path):
    """A file with a right checksum may hold anything."""
    header, arrays = modelfile.read_model(MODELS / f"{name}.slim")
    modelfile.write_model(tmp_path / "other.slim", header, arrays | {part: change(arrays[part])})
    with pytest.raises(ValueError, match=r"must have shapes|the sparse vectors are not|not a model this version knows"):
        slimsvm.load_predictor(tmp_path / "other.slim")


def test_an_estimator_by_its_weights(tmp_path):
    """Its file has the features with a weight in place of vectors."""
    X = np.random.default_rng(0).normal(size=(40, 6)) * (np.arange(6) != 2)
    estimator = slimsvm.SVC(kernel="linear", solver=slimsvm.BCFW(weights=True), random_state=0).fit(
        X, X[:, 0] + X[:, 3] > 0
    )
    estimator.save(tmp_path / "model.slim")
    header, arrays = modelfile.read_model(tmp_path / "model.slim")
    assert header["weights"] == [5, 6]
    assert 2 not in arrays["features"]
    assert_near(slimsvm.load_predictor(tmp_path / "model.slim").decision_function(X), estimator.decision_function(X))
    for wrong in (100, -2):
        changed = arrays | {"features": arrays["features"] + wrong}
        modelfile.write_model(tmp_path / "other.slim", header, changed)
        with pytest.raises(slimsvm.ModelFileError, match="not a model this version knows"):
            slimsvm.load_predictor(tmp_path / "other.slim")


def test_a_file_that_is_no_model_is_refused(tmp_path):
    modelfile.write_model(tmp_path / "other.slim", {"estimator": "SVC"}, {})
    with pytest.raises(slimsvm.ModelFileError, match="not a model this version knows"):
        slimsvm.load_predictor(tmp_path / "other.slim")
