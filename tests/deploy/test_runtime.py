"""The C runtime: scores and predictions of every kind of model, and files that are none."""

import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import naive
import slimsvm
from calibrated_for_tests import NAMES as NAMES_OF_CALIBRATED
from calibrated_for_tests import assert_agree, calibrated, some_rows, steep_models
from elf_for_tests import Elf
from fixtures.fuzz_models import write_models
from fixtures.make_models import MODELS, SHIPPED, data_of, stored_arrays
from kernel_cases import WITH_FORMULA
from runtime_for_tests import BUILT, Model, RefusedError, built_library, library
from slimsvm import modelfile
from slimsvm.deploy.predictors import CalibratedPredictor
from slimsvm.deploy.wasm_module import slim_bytes
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.kernels import RBF, Laplacian

OBJECTS = Path(__file__).parents[2] / "build" / "core" / "predict" / "CMakeFiles"
MOST_BYTES = 220_000
KERNELS = {"rbf": RBF, "laplacian": Laplacian}
DAMAGED_CALIBRATIONS = [
    lambda a: a[:, :3],
    lambda a: np.concatenate([a, a]),
    lambda a: a[:0],
    lambda a: a[0],
    lambda a: np.where(np.arange(4) == 3, np.nan, a),
    lambda a: np.where(np.arange(4) == 0, np.inf, a),
    lambda a: np.where(np.arange(4) == 2, -1.0, a),
    lambda a: a.astype(np.int64),
]


@pytest.fixture(scope="module")
def runtime():
    return library(built_library())


def scores_in_python(predictor, X, **options):
    name = "decision_function" if hasattr(predictor, "decision_function") else "predict"
    return np.asarray(getattr(predictor, name)(X, **options)).reshape(X.shape[0], -1)


def assert_near(found, expected, share=5e-6):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=share * np.abs(expected).max())


def both_forms(X):
    """The rows dense and as CSR, of both types of numbers and of columns."""
    sparse = sp.csr_array(X)
    wide = sp.csr_array((sparse.data, sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)), sparse.shape)
    dense = sparse.toarray()
    return [dense, sparse, wide, dense.astype(np.float32), sparse.astype(np.float32), wide.astype(np.float32)]


@pytest.mark.parametrize("name", SHIPPED)
def test_every_model_scores_and_predicts_as_in_python(name, runtime):
    data, path = data_of(name), MODELS / f"{name}.slim"
    queries = sp.csr_array(data.queries).astype(np.float32).astype(np.float64)  # the same in both types
    predictor, dense = slimsvm.load_predictor(path), queries.toarray()
    options = {key: value for key, value in data.query_options.items() if key == "lengths"}
    scores, labels = scores_in_python(predictor, dense, **options), predictor.predict(dense, **options)
    with Model(runtime, path) as model:
        assert model.n_features == predictor.n_features_in_
        for rows in both_forms(queries):
            assert_near(model.scores(rows, **options), scores)
            found = model.predict(rows, **options)
            if hasattr(predictor, "classes_") and model.kind != "labels":
                assert [model.labels()[int(place)] for place in found[:, 0]] == labels.tolist()
            else:
                assert_near(found, np.asarray(labels, float).reshape(found.shape))


def test_every_kind_is_among_them(runtime):
    kinds = set()
    for name in SHIPPED:
        with Model(runtime, MODELS / f"{name}.slim") as model:
            kinds.add(model.kind)
    assert kinds == {
        "binary",
        "classes",
        "pairs",
        "labels",
        "regression",
        "one class",
        "ordinal",
        "ranking",
        "sequences",
        "counts",
        "targets",
        "quantiles",
    }


def test_quantiles_may_be_an_array(runtime, tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    few = slimsvm.SVR(loss="quantile", quantile=np.array([0.4, 0.5, 0.6]), max_basis=3, random_state=0).fit(X, X[:, 0])
    few.save(tmp_path / "model.slim")
    with Model(runtime, tmp_path / "model.slim") as model:
        assert model.kind == "quantiles"
        assert_near(model.predict(X), few.predict(X))


@pytest.mark.parametrize("name", NAMES_OF_CALIBRATED)
def test_probabilities(name, runtime, tmp_path):
    estimator, X = calibrated(name), sp.csr_array(some_rows())
    slimsvm.save(estimator, tmp_path / "model.slim")
    with Model(runtime, tmp_path / "model.slim") as model:
        is_of_two = model.kind in ("binary", "labels") or name == "ordinal-two"
        for each in both_forms(X):
            predicted = model.predict(each) if model.kind == "labels" else model.predict(each)[:, 0]
            found = model.probabilities(each)
            assert_agree(found, estimator.predict_proba(some_rows()), predicted if is_of_two else None)
        np.testing.assert_array_equal(model.probabilities(X, n_threads=3), model.probabilities(X))
        np.testing.assert_array_equal(model.probabilities(X[5:7]), model.probabilities(X)[5:7])


def test_probabilities_of_thresholds_that_do_not_rise(runtime, tmp_path):
    plain = replace(plain_model_of(calibrated("ordinal")), plain=np.array([0.5, -0.5, 1.0]))
    (tmp_path / "model.slim").write_bytes(slim_bytes(plain))
    with Model(runtime, tmp_path / "model.slim") as model:
        assert_agree(
            model.probabilities(some_rows()), CalibratedPredictor(plain).predict_proba(some_rows()), tolerance=1e-9
        )


def test_probabilities_of_scores_from_tiny_to_huge(runtime, tmp_path):
    values = np.logspace(-300, 300, 121)
    X = np.concatenate([-values[::-1], [0.0], values])[:, None]
    for plain in steep_models():
        (tmp_path / "model.slim").write_bytes(slim_bytes(plain))
        with Model(runtime, tmp_path / "model.slim") as model:
            expected = CalibratedPredictor(plain).predict_proba(X)
            np.testing.assert_allclose(model.probabilities(X), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["svc-exact", "svr-refine", "one-class", "sequence"])
def test_a_model_without_probabilities_says_so(name, runtime):
    with Model(runtime, MODELS / f"{name}.slim") as model:
        assert model.n_probabilities == 0
        with pytest.raises(RefusedError, match="no probabilities: a classifier fitted with probability=True"):
            model.probabilities(np.zeros((2, model.n_features)))


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("kernel", WITH_FORMULA)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_every_kernel_on_every_instruction_set(isa, kernel, precision, runtime, tmp_path, monkeypatch):
    """More vectors than a panel has, rows that fill no tile, features that no vector has."""
    monkeypatch.setenv("SLIMSVM_ISA", isa)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 40)) * (rng.random((150, 40)) < 0.2)
    X[:, 5] = 0.0
    y = np.argmax(X[:, :3] + 0.2 * rng.normal(size=(150, 3)), axis=1)
    for form in (np.asarray, sp.csr_array):
        estimator = slimsvm.SVC(kernel=kernel, gamma=0.05, coef0=0.5, precision=precision).fit(form(X), y)
        estimator.save(tmp_path / "model.slim")
        Z = np.concatenate([X[:33], 30.0 * X[33:40], 1e-3 * X[40:43]])
        Z[::3, 5] = 1.0
        Z = Z.astype(np.float32).astype(np.float64)
        expected = scores_in_python(slimsvm.load_predictor(tmp_path / "model.slim"), Z)
        with Model(runtime, tmp_path / "model.slim") as model:
            for rows in both_forms(Z):
                found = model.scores(rows)
                assert_near(found, expected, 5e-6 if precision == "float32" else 1e-11)
                np.testing.assert_array_equal(model.scores(rows[7:9]), found[7:9])
                np.testing.assert_array_equal(model.scores(rows, n_threads=3), found)


@pytest.mark.parametrize("gamma", ["scale", "each"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_few_stored_features_of_many(kernel, gamma, runtime, tmp_path):
    """Vectors stay sparse, and rows have features that none of them has."""
    rng = np.random.default_rng(1)
    X = sp.random_array((60, 3000), density=0.004, rng=rng, format="csr")
    X = X + sp.csr_array((np.ones(60), (np.arange(60), np.arange(60) % 2)), shape=X.shape)
    gammas = rng.uniform(0.2, 2.0, 3000) if gamma == "each" else 0.5
    slimsvm.SVC(kernel=kernel, gamma=gammas).fit(X[:50], np.arange(50) % 2).save(tmp_path / "model.slim")
    expected = scores_in_python(slimsvm.load_predictor(tmp_path / "model.slim"), X)
    with Model(runtime, tmp_path / "model.slim") as model:
        assert_near(model.scores(X), expected, 1e-11)
        assert_near(model.scores(X.toarray()), expected, 1e-11)


@pytest.mark.parametrize(("kernel", "offset"), [("rbf", 0.0), ("rbf", 2e4), ("laplacian", 0.0)])
def test_features_that_no_vector_has_are_part_of_the_distance(kernel, offset, runtime, tmp_path):
    """Of rows that have all others; far from the origin distances come from differences."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) + offset
    X[:, 2] = 0.0
    estimator = slimsvm.SVC(kernel=kernel, gamma=0.1, precision="float64").fit(sp.csr_array(X), rng.permutation(40) % 2)
    estimator.save(tmp_path / "model.slim")
    Z = X.copy()
    Z[::2, 2] = 1.5
    scores = {}
    for form, rows in {"with": Z, "without": X}.items():
        K = naive.kernel_matrix(KERNELS[kernel](0.1), rows, estimator.basis_vectors_.toarray())
        scores[form] = K @ estimator.basis_coef_ + estimator.intercept_
    assert np.abs(scores["with"] - scores["without"])[::2].min() > 1e-3
    with Model(runtime, tmp_path / "model.slim") as model:
        for rows in (Z, sp.csr_array(Z)):
            assert_near(model.scores(rows), scores["with"], 1e-9)


def assert_scores(runtime, path, X):
    """The runtime's scores of dense and of sparse rows are Python's."""
    expected = scores_in_python(slimsvm.load_predictor(path), X)
    with Model(runtime, path) as model:
        assert_near(model.scores(X), expected)
        assert_near(model.scores(sp.csr_array(X)), expected)


def test_rows_far_from_the_origin_keep_their_digits(runtime, tmp_path):
    X, y = 1e8 + np.arange(20.0)[:, None], np.arange(20) % 2
    slimsvm.SVC(gamma=1.0).fit(X, y).save(tmp_path / "model.slim")
    assert_scores(runtime, tmp_path / "model.slim", X)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(clip=True)])
@pytest.mark.parametrize("estimator", [slimsvm.SVC(), slimsvm.SVR(kernel="linear"), slimsvm.SVC(kernel="laplacian")])
def test_a_pipeline_takes_rows_as_they_are(scaler, estimator, runtime, tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 30)) * (rng.random((60, 30)) < 0.3) + np.eye(60, 30) * 100.0
    slimsvm.save(make_pipeline(scaler, estimator).fit(X[:50], X[:50, 0] > 0.1), tmp_path / "model.slim")
    assert_scores(runtime, tmp_path / "model.slim", X)


def test_sequences_of_any_length(runtime):
    path, X = MODELS / "sequence.slim", stored_arrays()["queries"]
    predictor = slimsvm.load_predictor(path)
    with Model(runtime, path) as model:
        for lengths in ([3, 5], [0, 1, 7, 0], [1] * 8, [8]):
            expected = predictor.predict(X, lengths=lengths).tolist()
            assert [model.labels()[int(place)] for place in model.predict(X, lengths=lengths)[:, 0]] == expected
        assert model.predict(X[:0], lengths=[0, 0]).shape == (0, 1)
        with pytest.raises(RefusedError, match="must add up to the rows, 8"):
            model.predict(X, lengths=[3, 3])


@pytest.mark.parametrize(
    ("classes", "labels"),
    [([False, True], [0.0, 1.0]), ([-7, 2**40], [-7.0, 2.0**40]), (["é", "日本\U0001f600"], None)],
)
def test_labels(classes, labels, runtime, tmp_path):
    slimsvm.SVC().fit([[0.0], [1.0]], classes).save(tmp_path / "model.slim")
    with Model(runtime, tmp_path / "model.slim") as model:
        assert model.labels() == (labels or classes)
        assert model.predict(np.array([[0.0], [1.0]])).ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("gamma", [0.002, 50.0])
def test_a_file_that_is_mapped_and_bytes_that_are_not_aligned(gamma, runtime, tmp_path):
    """Vectors in float64 are read where they lie in a file of more than 256 kB; far ones (γ = 50) stay in float64."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 400)).astype(np.float32)
    clf = slimsvm.SVC(gamma=gamma, precision="float32").fit(X, X[:, 0] > 0)
    clf.save(tmp_path / "model.slim")
    expected = slimsvm.load_predictor(tmp_path / "model.slim").decision_function(X)
    content = (tmp_path / "model.slim").read_bytes()
    assert len(content) > 1 << 18
    memory = (ctypes.c_char * (len(content) + 1))(*b"?" + content)
    for source in (tmp_path / "model.slim", content, (ctypes.addressof(memory) + 1, len(content))):
        with Model(runtime, source) as model:
            assert_near(model.scores(X).ravel(), expected)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.zeros((2, 4)), {}, "must have 3 features as in training, found 4"),
        (np.array([[0.0, 0, 0], [0, np.nan, 0]]), {}, "must hold finite numbers, row 1 does not"),
        (np.full((1, 3), np.inf), {}, "must hold finite numbers, row 0 does not"),
        (sp.csr_array(([1.0, 2.0], [2, 1], [0, 2]), shape=(1, 3)), {"sort": False}, "must rise and be below 3"),
        (sp.csr_array(([1.0], [1], [0, 1]), shape=(1, 3)), {"columns": [3]}, "below 3, found 3 in row 0"),
    ],
)
def test_rows_that_do_not_fit_are_refused(X, options, message, runtime):
    with Model(runtime, MODELS / "svc-exact.slim") as model, pytest.raises(RefusedError, match=message):
        model.scores(X, **options)


def test_scores_beyond_numbers_are_refused(runtime, tmp_path):
    slimsvm.SVC(kernel="poly", degree=9).fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "model.slim")
    rows = np.concatenate([np.zeros((30, 1)), np.full((20, 1), 1e300)])
    with Model(runtime, tmp_path / "model.slim") as model:
        for n_threads in (1, 3):
            with pytest.raises(RefusedError, match="scores of row 30 are beyond"):
                model.scores(rows, n_threads=n_threads)


@pytest.mark.parametrize("name", ["structured-own", "structured-multiclass"])
def test_a_task_in_python_is_refused(name, runtime):
    with pytest.raises(RefusedError, match="labels by a task in Python"):
        Model(runtime, MODELS / f"{name}.slim")


def test_files_that_are_none_are_refused(runtime, tmp_path):
    whole = (MODELS / "svc-exact.slim").read_bytes()
    for content, message in [
        (b"", "not a slimsvm model file"),
        (whole[:50], "truncated"),
        (whole[:-1], "truncated or altered"),
        (whole[:8] + b"\3" + whole[9:], "format version 3; this library reads 1 and 2"),
        (whole[:-1] + b"\1", "checksum does not match"),
    ]:
        with pytest.raises(RefusedError, match=message):
            Model(runtime, content)
    with pytest.raises(RefusedError, match=r"there is no file .*none\.slim"):
        Model(runtime, tmp_path / "none.slim")


def mended(header, arrays=b"", n_header=None):
    """A file of this header's text, with the right size and checksum."""
    hashed = struct.pack("<QQ", 60 + len(header) + len(arrays), len(header) if n_header is None else n_header)
    hashed += header + arrays
    return struct.pack("<8sI32s", b"slimsvm\n", 1, sha256(hashed).digest()) + hashed


@pytest.mark.parametrize("isa", ["baseline", "avx512"])
def test_checksums_of_any_length(isa, runtime, monkeypatch):
    """By the processor's own instructions and without: a file with another checksum would be refused for that."""
    monkeypatch.setenv("SLIMSVM_ISA", isa)
    for n in [*range(200), 64 * 1000 - 16]:
        with pytest.raises(RefusedError, match="header is not as it should be"):
            Model(runtime, mended(b"x" * n))
        with pytest.raises(RefusedError, match="checksum does not match"):
            Model(runtime, mended(b"x" * n)[:-1] + b"y")


@pytest.mark.parametrize("depth", [63, 65, 100_000])
def test_json_is_not_read_deeper_than_a_stack_bears(depth, runtime):
    with pytest.raises(RefusedError, match=r"header is not as it should be|no estimator that scores rows"):
        Model(runtime, mended(b'{"header": {"a": ' + b"[" * depth + b"]" * depth + b'}, "arrays": []}'))


def test_a_header_that_is_longer_than_the_file(runtime):
    with pytest.raises(RefusedError, match="longer than the file"):
        Model(runtime, mended(b"{}", n_header=2**64 - 1))


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("shape", [2**62, 4]), ("shape", [2**32, 2**32]), ("shape", [-1, 1]), ("shape", [25]), ("shape", [25, 1, 1]),
        ("shape", [26, 1]), ("offset", 2**63 - 1), ("offset", -8), ("offset", 10**30), ("dtype", "<U4294967295"),
        ("dtype", "|O8"), ("dtype", "<f16"), ("dtype", ">f8"), ("dtype", "<c8"),
    ],
)  # fmt: skip
def test_arrays_that_lie_elsewhere_are_refused(entry, value, runtime):
    content = (MODELS / "svc-exact.slim").read_bytes()
    n_header = struct.unpack_from("<Q", content, 52)[0]
    index = json.loads(content[60 : 60 + n_header])
    next(array for array in index["arrays"] if array["name"] == "coef")[entry] = value
    text = json.dumps(index).encode()
    # Behind a header of another length the arrays are moved: offsets stay true by padding.
    changed = mended(text.ljust(n_header) if len(text) <= n_header else text, content[60 + n_header :])
    with pytest.raises(RefusedError, match=r"array coef|coef must have|model file"):
        Model(runtime, changed)


@pytest.mark.parametrize(
    ("name", "part", "change"),
    [
        ("svc-exact", "coef", lambda a: a[:-1]),
        ("svc-exact", "coef", lambda a: np.full_like(a, np.nan)),
        ("svc-exact", "basis", lambda a: np.where(a == a.max(), np.inf, a)),
        ("svc-exact", "intercept", lambda a: np.zeros(2)),
        ("svc-exact", "basis", lambda a: a[:, :-1]),
        ("svc-three", "classes", lambda a: a[:-1]),
        ("svc-gammas", "kernel_gamma", lambda a: -a),
        ("svc-gammas", "kernel_gamma", lambda a: a[:-1]),
        ("svc-csr", "basis_indices", lambda a: a + 100),
        ("svc-csr", "basis_indices", lambda a: a - 100),
        ("svc-csr", "basis_indptr", lambda a: a[::-1].copy()),
        ("svc-csr", "basis_indptr", lambda a: a + 1),
        ("svc-precomputed", "basis", lambda a: a + 1000),
        ("svc-precomputed", "basis", lambda a: a - 1000),
        ("svc-exact", "coef", lambda a: a > 0),
        ("svc-exact", "intercept", lambda a: a.astype(np.int64)),
        ("svc-exact", "basis", lambda a: a > 0),
        ("ordinal", "plain", lambda a: a[:-1]),
        ("sequence", "plain", lambda a: np.append(a, 0.0)),
        ("svc-three", "classes", lambda a: np.frombuffer(b"\xff\xff\xff\x7f" * 15, "<U5")),
    ],
)
def test_parts_that_do_not_fit_are_refused(name, part, change, runtime, tmp_path):
    header, arrays = modelfile.read_model(MODELS / f"{name}.slim")
    modelfile.write_model(tmp_path / "other.slim", header, arrays | {part: change(arrays[part])})
    with pytest.raises(RefusedError):
        Model(runtime, tmp_path / "other.slim")


@pytest.mark.parametrize("name", ["binary", "pairs", "classes", "labels", "ordinal"])
@pytest.mark.parametrize("change", DAMAGED_CALIBRATIONS)
def test_damaged_calibrations_are_refused(name, change, runtime, tmp_path):
    calibrated(name).save(tmp_path / "model.slim")
    header, arrays = modelfile.read_model(tmp_path / "model.slim")
    modelfile.write_model(tmp_path / "other.slim", header, arrays | {"calibration": change(arrays["calibration"])})
    with pytest.raises(RefusedError, match="calibration"):
        Model(runtime, tmp_path / "other.slim")
    for load in (slimsvm.load_predictor, slimsvm.load):
        with pytest.raises(slimsvm.ModelFileError, match="calibration"):
            load(tmp_path / "other.slim")


@pytest.mark.parametrize("name", ["svr-refine", "one-class", "sequence", "rank-swaps"])
def test_calibrations_of_other_models_are_refused(name, runtime, tmp_path):
    header, arrays = modelfile.read_model(MODELS / f"{name}.slim")
    modelfile.write_model(tmp_path / "other.slim", header, arrays | {"calibration": np.ones((1, 4))})
    with pytest.raises(RefusedError, match="calibration"):
        Model(runtime, tmp_path / "other.slim")
    for load in (slimsvm.load_predictor, slimsvm.load):
        with pytest.raises(slimsvm.ModelFileError, match="calibration"):
            load(tmp_path / "other.slim")


@pytest.mark.parametrize("change", [lambda a: -a, lambda a: 0 * a, lambda a: a[:-1], lambda a: a > 0])
def test_factors_of_a_scaling_are_positive_numbers(change, runtime, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    slimsvm.save(make_pipeline(StandardScaler(), slimsvm.SVC()).fit(X, X[:, 0] > 0), tmp_path / "model.slim")
    header, arrays = modelfile.read_model(tmp_path / "model.slim")
    altered = arrays | {"scaling_factor": change(arrays["scaling_factor"])}
    modelfile.write_model(tmp_path / "other.slim", header, altered, version=2)
    with pytest.raises(RefusedError, match="factor"):
        Model(runtime, tmp_path / "other.slim")
    with pytest.raises(slimsvm.ModelFileError):
        slimsvm.load_predictor(tmp_path / "other.slim")


# ---------------------------------------------------------------- the library itself


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads ELF files")
def test_the_library_is_small_and_needs_the_c_library_alone(runtime):
    found = Elf(built_library())
    assert built_library().stat().st_size < MOST_BYTES
    assert {name.split(".")[0] for name in found.needed()} <= {"libc", "libm", "libpthread", "ld-linux-x86-64"}
    symbols = found.dynamic_symbols()
    asked = {symbol.name for symbol in symbols if not symbol.is_defined and not symbol.is_weak}
    assert not {name for name in asked if name.startswith(("_Z", "__cxa", "__gxx", "_Unwind"))}
    header = (BUILT / "include" / "slimsvm_predict.h").read_text(encoding="utf-8")
    declared = re.findall(r"^SLIMSVM_PREDICT_API [\w *]+?(slimsvm_\w+)\(", header, re.MULTILINE)
    assert {symbol.name for symbol in symbols if symbol.is_defined} == set(declared)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads ELF files")
def test_what_a_unit_defines_names_its_instruction_set():
    # The linker keeps one copy of a weak symbol: an older processor would run the newer one's.
    units = sorted(OBJECTS.glob("predict_*/score.cc.o"))
    if not units:
        pytest.skip(f"no object files under {OBJECTS}: `make runtime` compiles them")
    for path in units:
        isa = path.parent.name.removeprefix("predict_").removesuffix(".dir")
        own = f"7slimsvm{len(isa)}{isa}"
        defined = [symbol for symbol in Elf(path).symbols() if symbol.is_defined and not symbol.is_local]
        assert [symbol.name for symbol in defined if own not in symbol.name] == []


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("g++") is None, reason="needs gcc's sanitizers"
)
def test_altered_files_do_no_harm(tmp_path):
    """A part of `make fuzz-runtime`: no bad access, no leak, no memory out of proportion."""
    root = Path(__file__).parents[2]
    flags = ["-std=c++17", "-O0", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-Wno-psabi",
             "-DSLIMSVM_API=", "-DSLIMSVM_ISA=baseline", "-DSLIMSVM_PREDICT_ONE_THREAD", "-fsanitize=address,undefined",
             "-fno-sanitize-recover=all"]  # fmt: skip
    sources = [*sorted((root / "core" / "predict").glob("*.cc")), root / "core" / "tests" / "fuzz_predict.cc"]
    built = subprocess.run(
        ["g++", *flags, "-I", root / "core", *sources, "-o", tmp_path / "fuzz"], capture_output=True, text=True
    )
    if "cannot find" in built.stderr:
        pytest.skip("gcc's sanitizers are not installed")
    assert built.returncode == 0, built.stderr
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    files = [*sorted(MODELS.glob("*.slim")), *write_models(tmp_path)]
    for count, form in (("4000", "mended"), ("500", "raw")):
        command = [tmp_path / "fuzz", "0", count, form, *files]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-4000:]
        assert f"{count} files" in done.stdout
