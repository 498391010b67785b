"""Exports predict as the estimator does where features have large offsets or labels are odd, or are refused."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import slimsvm
from slimsvm import SVC, SVR, CrossTrainedSVC, LearnedAxes, OneClassSVM, OrdinalSVC, RankSVM

RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(160, 3))
X = PLAIN + np.array([1e7, 0.0, 0.0])
TWO = (PLAIN[:, 0] * PLAIN[:, 1] > 0) * 1
THREE = np.digitize(PLAIN[:, 0], [-0.5, 0.5])
MODELS = {
    "exact": SVC(gamma=0.5, C=10).fit(X, TWO),
    "learned": SVC(gamma=0.5, C=10, max_basis=20, random_state=0).fit(X, TWO),
    "laplacian": SVC(kernel="laplacian", gamma=0.5).fit(X, TWO),
    "matern": SVC(kernel="matern32", gamma=0.5).fit(X, TWO),
    "widths": SVC(gamma=[0.4, 0.5, 0.6]).fit(X, TWO),
    "pairs": SVC(gamma=0.5).fit(X, THREE),
    "classes": SVC(gamma=0.5, multi_class="crammer-singer").fit(X, THREE),
    "labels": SVC(gamma=0.5).fit(X, np.stack([TWO, THREE > 1], axis=1).astype(int)),
    "regression": SVR(gamma=0.5).fit(X, PLAIN[:, 0]),
    "large targets": SVR(gamma=0.5).fit(X, 1e7 + PLAIN[:, 0]),
    "large targets of small rows": SVR(gamma=0.5).fit(PLAIN, 1e8 + PLAIN[:, 0]),
    "one class": OneClassSVM(gamma=0.5).fit(X),
    "ordinal": OrdinalSVC(gamma=0.5).fit(X, THREE),
    "ranking": RankSVM(gamma=0.5).fit(X, THREE, groups=np.arange(160) // 16),
    "cross-trained": CrossTrainedSVC(gamma=0.5, random_state=0).fit(X, TWO),
    "scaled": make_pipeline(StandardScaler(), SVC(C=10)).fit(X, TWO),
    "between bounds": make_pipeline(MinMaxScaler(clip=True), SVC(C=10)).fit(X, TWO),
    "scaled, linear": make_pipeline(StandardScaler(), SVC(kernel="linear")).fit(X, THREE > 0),
    "scaled, poly": make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2)).fit(X, TWO),
    "scaled, sigmoid": make_pipeline(StandardScaler(), SVC(kernel="sigmoid")).fit(X, THREE > 0),
    "linear": SVC(kernel="linear").fit(PLAIN + 1e5, THREE > 0),
}
ROWS = {"linear": PLAIN + 1e5, "large targets of small rows": PLAIN}
NEEDS_COMPILER = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def assert_alike(found, model, rows):
    expected = model.predict(rows)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.ptp(expected))
    else:
        np.testing.assert_array_equal(found, expected)


def onnx_predictions(path, rows):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64}[given.type]
    return session.run(None, {given.name: rows.astype(dtype)})[0]


@pytest.mark.turns("dtype")
@pytest.mark.parametrize("dtype", ["auto", "float64"])
@pytest.mark.parametrize("name", MODELS)
def test_a_graph_takes_rows_that_keep_their_digits(name, dtype, tmp_path):
    pytest.importorskip("onnx")
    slimsvm.export(MODELS[name], tmp_path / "m.onnx", to="onnx", dtype=dtype)
    rows = ROWS.get(name, X)
    assert_alike(onnx_predictions(tmp_path / "m.onnx", rows), MODELS[name], rows)


@pytest.mark.turns("form")
@pytest.mark.parametrize("form", ["onnx", "c"])
@pytest.mark.parametrize("name", MODELS)
def test_rows_in_float32_that_were_asked_for_are_refused(name, form, tmp_path):
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="float32 cannot hold the rows of this model"):
        slimsvm.export(MODELS[name], tmp_path / "m.h", to=form, dtype="float32")
    assert not (tmp_path / "m.h").exists()


def test_fixed_point_with_rows_in_float32_is_refused(tmp_path):
    with pytest.raises(ValueError, match="float32 cannot hold the rows of this model"):
        MODELS["exact"].to_c(tmp_path / "m.h", dtype="int16")


@pytest.mark.parametrize("form", ["onnx", "c"])
def test_scores_in_float32_that_were_asked_for_are_refused(form, tmp_path):
    """Squares of 10²⁰ are beyond float32: every kernel value would be 0."""
    pytest.importorskip("onnx")
    model = SVC().fit(1e20 * PLAIN, TWO)
    with pytest.raises(ValueError, match=r"float32 is too coarse for this model: .* by [12] of"):
        slimsvm.export(model, tmp_path / "m.h", to=form, dtype="float32")
    assert not (tmp_path / "m.h").exists()
    slimsvm.export(model, tmp_path / "m.h", to=form)


@pytest.mark.parametrize("value", [1e-50, -1e-300, 1e300])
def test_a_constant_that_float32_has_not_is_kept(value, tmp_path):
    """Also as one target of two: it has no range by which errors could be measured."""
    pytest.importorskip("onnx")
    for y in (np.full(160, value), np.column_stack([PLAIN[:, 0], np.full(160, value)])):
        model = SVR().fit(PLAIN, y)
        model.to_onnx(tmp_path / "m.onnx")
        found = onnx_predictions(tmp_path / "m.onnx", PLAIN[:5])
        np.testing.assert_allclose(found, model.predict(PLAIN[:5]), rtol=1e-5)
        model.to_c(tmp_path / "m.h")
        assert (
            "double m_predict(const double *x)" in (text := (tmp_path / "m.h").read_text()) or "double *numbers" in text
        )
        with pytest.raises(ValueError, match="float32"):
            model.to_c(tmp_path / "m.h", dtype="float32")


@pytest.mark.parametrize("offset", [1e4, 1e5, 1e6, 1e8])
@pytest.mark.parametrize("column", [0, 2])
def test_other_offsets(offset, column, tmp_path):
    pytest.importorskip("onnx")
    rows = PLAIN.copy()
    rows[:, column] -= offset
    model = SVC(gamma=0.5, C=10).fit(rows, TWO)
    model.to_onnx(tmp_path / "m.onnx")
    assert_alike(onnx_predictions(tmp_path / "m.onnx", rows), model, rows)


def test_offsets_that_the_kernel_does_not_see_keep_float32(tmp_path):
    """An offset of 10⁷ beside deviations of 10⁶, and rows without an offset."""
    onnx = pytest.importorskip("onnx")
    for rows in (PLAIN, 1e6 * PLAIN + 1e7):
        SVC().fit(rows, TWO).to_onnx(tmp_path / "m.onnx")
        graph = onnx.load(tmp_path / "m.onnx").graph
        assert graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def test_a_matrix_of_kernel_values_keeps_its_digits(tmp_path):
    pytest.importorskip("onnx")
    K = (PLAIN + 3e3) @ (PLAIN + 3e3).T
    model = SVC(kernel="precomputed").fit(K, THREE > 0)
    model.to_onnx(tmp_path / "m.onnx")
    assert_alike(onnx_predictions(tmp_path / "m.onnx", K), model, K)


PROGRAM = """
#include <stdio.h>
#include "m.h"
int main(void)
{
    double x[M_N_FEATURES];
    int f = 0;
    while (scanf("%lf", &x[f]) == 1) {
        if (++f == M_N_FEATURES) { f = 0; printf("%d\\n", m_predict(x)); }
    }
    return 0;
}
"""


@NEEDS_COMPILER
@pytest.mark.parametrize("name", ["exact", "learned", "laplacian", "widths", "pairs", "scaled", "linear"])
def test_a_header_takes_rows_that_keep_their_digits(name, tmp_path):
    slimsvm.export(MODELS[name], tmp_path / "m.h", to="c", name="m")
    (tmp_path / "m.c").write_text(PROGRAM)
    flags = ["-Werror", "-Wall", "-std=c99"]
    subprocess.run(["cc", *flags, "-o", "m", "m.c"], cwd=tmp_path, check=True)
    rows = ROWS.get(name, X)
    text = "\n".join(" ".join(map(repr, row)) for row in rows.tolist())
    run = subprocess.run([tmp_path / "m"], input=text, capture_output=True, text=True, check=True)
    found = MODELS[name].classes_[np.array(run.stdout.split(), int)]
    assert_alike(found, MODELS[name], rows)


@pytest.mark.filterwarnings("ignore:::skl2onnx", "ignore::DeprecationWarning")
def test_pipelines_in_float32_are_refused_where_float32_is_too_short(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    slimsvm.onnx.register()
    axes = make_pipeline(LearnedAxes(SVC(kernel="rbf", gamma=0.5)), SVC()).fit(X, TWO)
    for model in (MODELS["exact"], axes):
        with pytest.raises(ValueError, match="float32 cannot hold the rows"):
            skl2onnx.to_onnx(model, X[:1].astype(np.float32))
        (tmp_path / "m.onnx").write_bytes(skl2onnx.to_onnx(model, X[:1]).SerializeToString())
        assert_alike(onnx_predictions(tmp_path / "m.onnx", X), model, X)
    stamps = (1e9 * PLAIN + 1.7e18).astype(np.int64)
    model = make_pipeline(SVC(gamma=1e-18)).fit(stamps, TWO)
    (tmp_path / "m.onnx").write_bytes(skl2onnx.to_onnx(model, stamps[:1]).SerializeToString())


# -- labels ---------------------------------------------------------------------------------------------------------


def with_labels(*labels):
    labels = np.array(labels, np.uint64) if isinstance(labels[0], int) and max(labels) >= 2**63 else np.array(labels)
    return SVC().fit(PLAIN, labels[THREE if len(labels) == 3 else TWO])


@pytest.mark.parametrize("form", ["onnx", "c"])
@pytest.mark.parametrize("labels", [(3, 2**63 + 5), (2**63, 2**63 + 1), (1, 2, 2**64 - 1)])
def test_labels_beyond_int64_are_refused(form, labels, tmp_path):
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=f"holds labels up to 9223372036854775807, found {max(labels)}|found 922337"):
        slimsvm.export(with_labels(*labels), tmp_path / "m.h", to=form)


def test_labels_beyond_what_javascript_holds_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JavaScript holds labels up to 9007199254740991, found 9007199254740993"):
        with_labels(1, 2**53 + 1).to_wasm(tmp_path / "m.mjs")
    with pytest.raises(ValueError, match="JavaScript holds labels up to"):
        with_labels(1, 2**63 + 1).to_wasm(tmp_path / "m.mjs")


@pytest.mark.parametrize("labels", [(-(2**63), 2**63 - 1), (2**53 + 1, 2**53 + 2), (0, 1, 2**40)])
def test_large_labels_that_fit_are_right(labels, tmp_path):
    pytest.importorskip("onnx")
    model = with_labels(*labels)
    model.to_onnx(tmp_path / "m.onnx")
    assert_alike(onnx_predictions(tmp_path / "m.onnx", PLAIN), model, PLAIN)
    model.to_json(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["classes"] == sorted(labels)


@NEEDS_COMPILER
def test_the_smallest_label_is_a_constant_of_c(tmp_path):
    with_labels(-(2**63), 2**63 - 1).to_c(tmp_path / "m.h", name="m")
    (tmp_path / "m.c").write_text('#include "m.h"\nint main(void) { return m_classes[0] != INT64_MIN; }\n')
    subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", "m", "m.c"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "m"], check=False).returncode == 0


def test_labels_beyond_int64_are_right_in_json_and_files(tmp_path):
    model = with_labels(3, 2**63 + 5)
    model.to_json(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["classes"] == [3, 2**63 + 5]
    model.save(tmp_path / "m.slim")
    assert slimsvm.load_predictor(tmp_path / "m.slim").predict(PLAIN).tolist() == model.predict(PLAIN).tolist()


TEXTS = ("a\tb\n", 'ü"\\?', "日本 €")


def test_odd_texts_are_right(tmp_path):
    pytest.importorskip("onnx")
    model = with_labels(*TEXTS)
    model.to_onnx(tmp_path / "m.onnx")
    assert onnx_predictions(tmp_path / "m.onnx", PLAIN).tolist() == model.predict(PLAIN).tolist()
    model.to_json(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["classes"] == sorted(TEXTS)


@pytest.mark.parametrize("form", ["onnx", "c"])
def test_texts_that_are_no_text_are_refused(form, tmp_path):
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=r"holds labels in UTF-8, found '\\ud800'"):
        slimsvm.export(with_labels("a", "\ud800"), tmp_path / "m.h", to=form)


@pytest.mark.parametrize("form", ["onnx", "c", "json", "wasm", "slim"])
def test_dates_have_no_place_in_a_file(form, tmp_path):
    model = SVC().fit(PLAIN, np.array(["2020-01-01", "2021-01-01"], "datetime64[D]")[TWO])
    with pytest.raises(
        TypeError, match=r"labels that are numbers or texts, found datetime64\[D\]: train with y\.astype"
    ):
        model.save(tmp_path / "m") if form == "slim" else slimsvm.export(model, tmp_path / "m", to=form)


def test_texts_that_end_early_in_c_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"found the label 'a\\x00b'"):
        with_labels("a\0b", "a").to_c(tmp_path / "m.h")
