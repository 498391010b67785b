"""C headers: they compile without a warning, and score and predict as the estimators do."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import slimsvm
from calibrated_for_tests import NAMES as NAMES_OF_CALIBRATED
from calibrated_for_tests import assert_agree, calibrated, some_rows, steep_models
from fixtures.make_models import MODELS, dense_queries
from kernel_cases import OF_DISTANCES
from slimsvm.cli import main
from slimsvm.deploy.c_header import COMMENTS, c_header, write_c
from slimsvm.deploy.decisions import ARRAYS, DECISIONS
from slimsvm.deploy.plain_model import PlainModel, read_plain_model
from slimsvm.deploy.predictors import CalibratedPredictor
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.kernels import RBF, Linear

FLAGS = ["-O1", "-Wall", "-Wextra", "-Werror", "-std=c99", "-pedantic"]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
# One of each kernel, each kind of labels, and each type of classes.
NAMES = [
    "svc-exact", "svc-gammas", "svc-laplacian", "svc-laplacian-gammas", "svc-poly", "svc-sigmoid", "svc-linear",
    "svc-linear-weights", "svc-csr", "svc-bools", "svc-objects", "svc-numbers", "svc-three", "svc-three-exact",
    "svc-three-exact-ovo", "svc-labels", "svr-refine", "svr-counts", "svr-quantiles", "svr-two",
    "one-class", "ordinal", "rank-swaps", "cross-trained",
]  # fmt: skip
# Prints each row's scores and prediction; the row is read from standard input.
PROGRAM = """
#include <stdio.h>
#include "model.h"
int main(void)
{
    REAL x[MODEL_N_FEATURES], scores[MODEL_N_OUTPUTS];
    int f, at = 0;
    while (scanf(FORM, &x[at]) == 1) {
        if (++at < MODEL_N_FEATURES) continue;
        at = 0;
        model_scores(x, scores);
        for (f = 0; f < MODEL_N_OUTPUTS; ++f) printf("%.17g ", (double)scores[f]);
        PRINT
    }
    return 0;
}
"""
PRINT = {
    "probabilities": "REAL p[MODEL_N_CLASSES]; model_probabilities(x, p);"
    "for (f = 0; f < MODEL_N_CLASSES; ++f) printf(\"%.17g \", (double)p[f]); printf(\"%d\\n\", (int)model_predict(x));",
    "probabilities of labels": "REAL p[MODEL_N_OUTPUTS]; uint8_t labels[MODEL_N_OUTPUTS];"
    "model_probabilities(x, p); model_predict(x, labels);"
    "for (f = 0; f < MODEL_N_OUTPUTS; ++f) printf(\"%.17g \", (double)p[f]);"
    "for (f = 0; f < MODEL_N_OUTPUTS; ++f) printf(\"%d \", labels[f]); printf(\"\\n\");",
    "labels": "uint8_t labels[MODEL_N_OUTPUTS]; model_predict(x, labels);"
    "for (f = 0; f < MODEL_N_OUTPUTS; ++f) printf(\"%d \", labels[f]); printf(\"\\n\");",
    "several numbers": "REAL found[MODEL_N_OUTPUTS]; model_predict(x, found);"
    "for (f = 0; f < MODEL_N_OUTPUTS; ++f) printf(\"%.17g \", (double)found[f]); printf(\"\\n\");",
    "numbers": 'printf("%.17g\\n", (double)model_predict(x));',
    "strings": 'printf("%s\\n", model_classes[model_predict(x)]);',
    "classes": 'printf("%.9g\\n", (double)model_classes[model_predict(x)]);',
}  # fmt: skip


def run_header(folder, X, form, is_double=False):
    """Scores (n, n_outputs) and predictions, as words, of rows; ``model.h`` is in the folder."""
    (folder / "main.c").write_text(PROGRAM.replace("PRINT", PRINT[form]), encoding="utf-8")
    numbers = ["-DREAL=double", '-DFORM="%lf"'] if is_double else ["-DREAL=float", '-DFORM="%f"']
    subprocess.run(["cc", *FLAGS, *numbers, "-o", "main", "main.c"], cwd=folder, check=True)
    rows = "\n".join(" ".join(map(repr, row)) for row in np.asarray(X, float).tolist())
    lines = subprocess.run([folder / "main"], input=rows, capture_output=True, text=True, check=True).stdout
    return [line.split() for line in lines.splitlines()]


def form_of(predictor):
    if not hasattr(predictor, "classes_"):
        is_single = predictor.predict(np.zeros((1, predictor.n_features_in_))).ndim == 1
        return "numbers" if is_single else "several numbers"
    return "strings" if predictor.classes_.dtype.kind in "OU" else "classes"


@needs_compiler
@pytest.mark.turns("dtype", "tolerance")
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 5e-6), ("float64", 1e-13)], ids=["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_model_is_the_same_in_c(name, dtype, tolerance, tmp_path):
    queries = dense_queries(name)
    slimsvm.load(MODELS / f"{name}.slim").to_c(tmp_path / "model.h", dtype=dtype)
    model, predictor = read_plain_model(MODELS / f"{name}.slim"), slimsvm.load_predictor(MODELS / f"{name}.slim")
    form = "labels" if model.kind == "labels" else form_of(predictor)
    lines = run_header(tmp_path, queries, form, dtype == "float64")
    expected, m = model.scores(queries), model.n_outputs
    scores = np.array([line[:m] for line in lines], float)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    for line, label in zip(lines, predictor.predict(queries), strict=True):
        if model.kind == "labels":
            assert line[m:] == [str(number) for number in label]
        elif form == "several numbers":
            np.testing.assert_allclose(np.array(line[m:], float), label, rtol=1e-5, atol=1e-6)
        elif form_of(predictor) == "strings":
            assert line[m] == label
        else:
            assert float(line[m]) == pytest.approx(float(label), rel=1e-5)


def probabilities_of_header(folder, model, is_double=False):
    """Scores, probabilities, and predictions as numbers, of `some_rows`."""
    form = "probabilities of labels" if model.kind == "labels" else "probabilities"
    table, m = np.array(run_header(folder, some_rows(), form, is_double), float), model.n_outputs
    n = m if model.kind == "labels" else len(model.classes)
    predicted = table[:, m + n :] if model.kind == "labels" else table[:, -1]
    return table[:, :m], table[:, m : m + n], predicted


@needs_compiler
@pytest.mark.turns("dtype")
@pytest.mark.parametrize("dtype", ["auto", "float64"])
@pytest.mark.parametrize("name", NAMES_OF_CALIBRATED)
def test_probabilities(name, dtype, tmp_path):
    estimator = calibrated(name)
    slimsvm.export(estimator, tmp_path / "model.h", to="c", dtype=dtype)
    is_double = "C99, float64" in (tmp_path / "model.h").read_text()
    model = plain_model_of(estimator)
    _, found, predicted = probabilities_of_header(tmp_path, model, is_double)
    is_of_two = model.kind in ("binary", "labels") or name == "ordinal-two"
    tolerance = 1e-9 if dtype == "float64" else 1e-5
    assert_agree(found, estimator.predict_proba(some_rows()), predicted if is_of_two else None, tolerance)


@needs_compiler
def test_thresholds_that_do_not_rise(tmp_path):
    """Predictions take them as they are, probabilities sorted."""
    model = replace(plain_model_of(calibrated("ordinal")), plain=np.array([0.5, -0.5, 1.0]))
    write_c(model, tmp_path / "model.h", dtype="float64")
    predictor = CalibratedPredictor(model)
    _, found, predicted = probabilities_of_header(tmp_path, model, is_double=True)
    assert_agree(found, predictor.predict_proba(some_rows()), tolerance=1e-12)
    np.testing.assert_array_equal(predicted, predictor.predict(some_rows()))


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_of_scores_from_tiny_to_huge(dtype, tmp_path):
    """Two classes, and differences of classes."""
    values = np.logspace(-30, 30, 121)
    X = np.concatenate([-values[::-1], [0.0], values]).astype(np.float32).astype(float)[:, None]
    for model in steep_models():
        write_c(model, tmp_path / "model.h", dtype=dtype)
        lines = np.array(run_header(tmp_path, X, "probabilities", dtype == "float64"), float)
        expected = DECISIONS[model.kind](model, ARRAYS).probabilities(model.scores(X))
        found, tolerance = lines[:, model.n_outputs : -1], 1e-6 if dtype == "float32" else 1e-8
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("line", "dtype"), [([1, 1, 0, 0], "float32"), ([1e4, 1e4, 0, 0], "float64"), ([1, 1, 0, 100], "float32")]
)
def test_probabilities_are_part_of_what_the_type_is_chosen_by(line, dtype, tmp_path):
    """Scores whose rounding moves probabilities by more than 1e-5 are float64, also where no row of `probes` is."""
    X = np.concatenate([np.arange(50) / 100, 3.0 + np.arange(50) / 100]).astype(np.float32)[:, None]
    model = plain_model_of(slimsvm.SVC(gamma=1.0).fit(X, X[:, 0] > 2))
    write_c(replace(model, calibration=np.array([line], np.float64)), tmp_path / "model.h")
    assert f"C99, {dtype}, no allocation" in (tmp_path / "model.h").read_text()


@pytest.mark.parametrize(("slope", "dtype"), [(1.0, "float32"), (1e4, "float64")])
def test_the_type_keeps_probabilities_that_are_steep_at_the_vectors_alone(slope, dtype, tmp_path):
    """Pairs of classes with even odds at one of them."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = plain_model_of(slimsvm.SVC(gamma=1.0).fit(X, np.arange(60) % 3))
    lines = [[slope, slope, 0.0, -slope * score] for score in model.scores(model.vectors[7:8])[0]]
    write_c(replace(model, calibration=np.array(lines)), tmp_path / "model.h")
    assert f"C99, {dtype}, no allocation" in (tmp_path / "model.h").read_text()


def test_every_kind_of_labels_is_among_them():
    assert {read_plain_model(MODELS / f"{name}.slim").kind for name in NAMES} == set(COMMENTS)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [*OF_DISTANCES, "additive", "sigmoid"])
def test_own_functions_hold_from_tiny_to_huge_arguments(kernel, dtype, tmp_path):
    """Distances from 0 to where the exponential underflows, and a sigmoid at both of its ends."""
    X = np.concatenate([-np.logspace(3, -5, 40), [0.0], np.logspace(-5, 3, 40)])[:, None]
    estimator = slimsvm.SVC(kernel=kernel, gamma=0.7, solver="exact-cuts", tol=0.1)
    estimator.fit(X[::2], (X[::2, 0] > 0).astype(int))
    estimator.to_c(tmp_path / "model.h", dtype=dtype)
    X = X.astype(np.float32).astype(float)
    scores = np.array([line[0] for line in run_header(tmp_path, X, "classes", dtype == "float64")], float)
    expected, tolerance = estimator.decision_function(X), {"float32": 5e-6, "float64": 1e-9}[dtype]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@needs_compiler
def test_coefficients_that_cancel_need_float64(tmp_path):
    """A large C on labels without a pattern: float32 says how far off it is, and float64 is not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).astype(np.float32).astype(np.float64)
    estimator = slimsvm.SVC(C=1e4, gamma=0.5).fit(X, rng.random(200) < 0.5)
    expected, errors = estimator.decision_function(X), {}
    for dtype in ("float32", "float64"):
        estimator.to_c(tmp_path / "model.h", dtype=dtype, rows=X if dtype == "float32" else None)
        scores = np.array([line[0] for line in run_header(tmp_path, X, "classes", dtype == "float64")], float)
        errors[dtype] = np.abs(scores - expected).max() / np.abs(expected).max()
        if dtype == "float32":
            text = (tmp_path / "model.h").read_text()
            said = float(re.search(r"on 200 rows given scores differ by at most (\S+) of the largest", text).group(1))
    assert errors["float32"] > 2e-5
    assert errors["float64"] < 1e-10
    assert said == pytest.approx(errors["float32"], rel=0.7)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_type_is_what_the_model_needs(dtype, tmp_path):
    """A large C on labels without a pattern needs float64."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).astype(np.float32).astype(np.float64)
    y, C = (X[:, 0] > X[:, 1] ** 2, 1.0) if dtype == "float32" else (rng.random(200) < 0.5, 1e4)
    estimator = slimsvm.SVC(C=C, gamma=0.5).fit(X, y)
    estimator.to_c(tmp_path / "model.h")
    assert f"C99, {dtype}, no allocation" in (tmp_path / "model.h").read_text(encoding="ascii")
    scores = np.array([line[0] for line in run_header(tmp_path, X, "classes", dtype == "float64")], float)
    expected = estimator.decision_function(X)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=5e-6 * np.abs(expected).max())


@needs_compiler
@pytest.mark.parametrize(("kind", "scores"), [("pairs", [1.0, -1.0, 1.0]), ("classes", [1.0, 1.0, 1.0])])
def test_ties_go_to_the_lowest_class(kind, scores, tmp_path):
    """Three classes with a vote each, and with equal scores."""
    model = PlainModel(kind, Linear(), 1, None, np.zeros((1, 3)), np.array(scores), np.zeros(0), np.arange(3), {})
    write_c(model, tmp_path / "model.h")
    assert run_header(tmp_path, [[0.0]], "classes")[0][-1] == "0"


@needs_compiler
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_a_constant_has_no_vectors(kernel, tmp_path):
    X = np.arange(10.0)[:, None]
    estimator = slimsvm.SVR(kernel=kernel).fit(X, np.ones(10))
    assert estimator.n_basis_ == 0
    estimator.to_c(tmp_path / "model.h")
    assert run_header(tmp_path, X, "numbers") == [["1", "1"]] * 10


def test_50_vectors_of_8_features_are_small(tmp_path):
    """At most 2.5 kB of constants."""
    parts = {"vectors": np.ones((50, 8)), "coef": np.ones((50, 1)), "intercept": np.zeros(1), "plain": np.zeros(0)}
    model = PlainModel("binary", RBF(np.ones(8)), 8, classes=np.arange(2), options={}, **parts)
    assert "1,836 bytes of constants; on 50 rows near the vectors" in write_c(model, tmp_path / "model.h")
    numbers = (tmp_path / "model.h").read_text().split("_vectors[", 1)[1].split("\n\n", 1)[0]
    assert numbers.count("f,") + numbers.count("f}") == 459


@needs_compiler
def test_labels_that_c_reads_otherwise_are_escaped(tmp_path):
    classes = ['"; int NAME_x; "', "a\\n ??/ é */ float 1.0f"]
    estimator = slimsvm.SVC().fit([[0.0], [1.0]], classes)
    estimator.to_c(tmp_path / "model.h")
    assert {" ".join(line[1:]) for line in run_header(tmp_path, [[0.0], [1.0]], "strings")} == set(classes)


def test_the_command_writes_beside_the_model(tmp_path, capsys):
    shutil.copy(MODELS / "svc-exact.slim", tmp_path / "My model-1.slim")
    assert main(["export", str(tmp_path / "My model-1.slim"), "--to", "c"]) == 0
    out, text = capsys.readouterr().out, (tmp_path / "My model-1.h").read_text(encoding="ascii")
    assert "My model-1.h: C99 header, float32, binary, kernel rbf" in out
    assert "static inline int my_model_1_predict(const float *x)" in text
    assert main(["export", str(tmp_path / "My model-1.slim"), "--to", "c", "--output", str(tmp_path / "a.h"),
                 "--name", "other"]) == 0  # fmt: skip
    assert "#define OTHER_N_FEATURES 3" in (tmp_path / "a.h").read_text(encoding="ascii")


@pytest.mark.parametrize("name", ["my_name", "NAME_x", "NAME_N_1", "name"])
def test_every_name_of_a_header_begins_as_was_asked(name):
    """Also where the beginning is like what stands for it before there is one."""
    text, *_ = c_header(read_plain_model(MODELS / "svc-exact.slim"), name)
    assert text.startswith("/* binary")
    assert f"#define {name.upper()}_N_FEATURES 3\n" in text
    assert f"static inline void {name}_scores(const float *x, float *scores)" in text
    words = re.findall(r"\b\w*?(?:N_FEATURES|N_CLASSES|_H|_scores|_classes|_vectors)\b", text)
    assert {word for word in words if not word.startswith((f"{name}_", f"{name.upper()}_"))} == set()


@pytest.mark.parametrize("name", ["svc-precomputed", "sequence", "svc-three-ties"])
def test_what_a_header_cannot_say_is_refused(name):
    with pytest.raises(ValueError, match=r"there is none for (binary, kernel precomputed|sequences|break_ties=True)"):
        c_header(read_plain_model(MODELS / f"{name}.slim"), "model")


def test_the_command_never_writes_over_the_model(tmp_path, capsys):
    """As a model that is called like its form would be."""
    model = tmp_path / "model.json"
    content = shutil.copy(MODELS / "svc-exact.slim", model).read_bytes()
    assert main(["export", str(model), "--to", "json"]) == 1
    assert main(["export", str(model), "--to", "c", "--output", str(tmp_path / "." / "model.json")]) == 1
    assert capsys.readouterr().err.count("model.json: would overwrite an input of this command") == 2
    assert model.read_bytes() == content


def test_bad_names_and_numbers_are_refused(tmp_path):
    for name in ("1st", 5):
        with pytest.raises(ValueError, match=rf"identifier of C.*found {name!r}"):
            slimsvm.load(MODELS / "svc-exact.slim").to_c(tmp_path / "model.h", name=name)
    estimator = slimsvm.SVR(kernel="linear").fit([[0.0], [1e-10]], [0.0, 1e40])
    with pytest.raises(ValueError, match=r"5e\+39, which is beyond float32"):
        estimator.to_c(tmp_path / "model.h", dtype="float32")
    estimator.to_c(tmp_path / "model.h")
    assert "double model_predict(const double *x)" in (tmp_path / "model.h").read_text(encoding="ascii")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_rows_to_measure_on_are_finite_in_float32(value, tmp_path):
    """No error can be measured on others, and float64 would not be the cure."""
    with pytest.raises(ValueError, match=r"rows must hold finite numbers, found (nan|inf) in row 1, column 2"):
        slimsvm.load(MODELS / "svc-exact.slim").to_c(tmp_path / "model.h", rows=[[0.0] * 3, [0.0, 0.0, value]])
    assert not (tmp_path / "model.h").exists()
