"""Pipelines of encoders and an estimator: saved, loaded, and in forms without scikit-learn."""

import json
import pickle
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

import slimsvm
from slimsvm import SVC, SVR, LearnedAxes, NormalRanks, modelfile
from slimsvm.cli import main
from slimsvm.deploy.steps import Encoding


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", 'gr"een', "blue", "rare"], n, p=[0.4, 0.3, 0.27, 0.03]),
            "size": rng.normal(size=n),
            "shop": rng.choice([f"s{k}" for k in range(12)], n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(1, 80, n)),
            "code": rng.integers(0, 5, n),
            "sold": rng.random(n) < 0.5,
        }
    )
    frame.loc[rng.random(n) < 0.1, "shop"] = None
    return frame


X, NEW = table(200, 0), table(60, 1)
WORTH = (X["size"] + (X["colour"] == "red")).to_numpy()
YES, KIND = np.where(WORTH > 0.4, "yes", "no"), np.digitize(WORTH, [-0.2, 0.7])
NUMBERS = ["size", "code"]

COLUMNS = ColumnTransformer(
    [
        ("flags", OneHotEncoder(handle_unknown="ignore"), ["colour", "code"]),
        ("numbers", make_pipeline(SimpleImputer(add_indicator=True), NormalRanks()), ["size", "age"]),
        ("means", TargetEncoder(), ["shop"]),
        ("codes", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["colour", "sold"]),
    ]
)
# Each with its columns and its target.
PIPELINES = {
    "ranks": (make_pipeline(NormalRanks(), SVC()), NUMBERS, YES),
    "axes": (make_pipeline(StandardScaler(), LearnedAxes(random_state=0), SVC(max_basis=10)), NUMBERS, YES),
    "ranks, axes, a scaler": (
        make_pipeline(NormalRanks(), LearnedAxes(random_state=0), MinMaxScaler(clip=True), SVC()), NUMBERS, KIND,
    ),
    "columns": (Pipeline([("all", COLUMNS), ("last", StandardScaler()), ("svm", SVC())]), list(X), YES),
    "numbers": (make_pipeline(COLUMNS, SVR()), list(X), WORTH),
    "rare levels": (
        make_pipeline(
            make_column_transformer(
                (OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist", drop="first"), ["colour"]),
                (OrdinalEncoder(max_categories=4, encoded_missing_value=-1), ["shop"]),
                (TargetEncoder(), ["shop", "code"]),
                remainder=SimpleImputer(strategy="median"),
            ),
            SVC(),
        ),
        list(X)[:5],
        KIND,
    ),
    "the rest as it is": (
        make_pipeline(
            make_column_transformer(
                (OneHotEncoder(max_categories=3), slice(0, 1)), ("drop", ["shop", "age"]), remainder="passthrough"
            ),
            MaxAbsScaler(),
            SVR(),
        ),
        list(X),
        WORTH,
    ),
    "filled levels": (
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="if_binary"), SVC()),
        ["shop", "colour"],
        YES,
    ),
    "a level for missing ones": (
        make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OrdinalEncoder(), RobustScaler(), SVC()),
        ["shop", "colour"],
        YES,
    ),
    "nu": (make_pipeline(NormalRanks(), slimsvm.NuSVC(nu=0.3)), NUMBERS, YES),
    "side by side": (make_pipeline(make_union(NormalRanks(), StandardScaler()), SVC()), NUMBERS, YES),
    "ordered classes": (make_pipeline(COLUMNS, slimsvm.OrdinalSVC()), list(X), KIND),
    "probabilities": (make_pipeline(COLUMNS, SVC(probability=True, random_state=0)), list(X), KIND),
    "novelty": (make_pipeline(OneHotEncoder(), slimsvm.OneClassSVM(nu=0.2)), ["code", "sold"], YES),
    "data frames within": (
        make_pipeline(
            make_column_transformer(
                (OneHotEncoder(sparse_output=False), ["colour"]),
                (NormalRanks(), ["size"]),
                (StandardScaler(), ["code", "size"]),  # in another order than the table's
            ).set_output(transform="pandas"),
            SVC(),
        ),
        list(X),
        YES,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=list(PIPELINES))
def case(request):
    """A fitted pipeline, and new rows."""
    pipeline, columns, y = PIPELINES[request.param]
    return clone(pipeline).fit(X[columns], y), NEW[columns]


def scores(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.slim"


def test_a_file_predicts_the_same(case, path):
    pipeline, rows = case
    slimsvm.save(pipeline, path)
    loaded, predictor = slimsvm.load(path), slimsvm.load_predictor(path)
    assert list(loaded.named_steps) == list(pipeline.named_steps)
    np.testing.assert_allclose(scores(loaded, rows), scores(pipeline, rows), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scores(predictor, rows), scores(pipeline, rows), rtol=1e-6, atol=1e-6)
    if hasattr(pipeline, "classes_"):
        assert (loaded.predict(rows) == pipeline.predict(rows)).all()
        assert (predictor.predict(rows) == pipeline.predict(rows)).all()
    if hasattr(pipeline, "predict_proba"):
        np.testing.assert_allclose(predictor.predict_proba(rows), pipeline.predict_proba(rows), atol=1e-6)
    assert predictor.n_features_in_ == rows.shape[1]
    assert list(predictor.feature_names_in_) == list(loaded.feature_names_in_) == list(rows)


def test_what_was_loaded_saves_the_same_bytes_and_is_copied(case, path, tmp_path):
    slimsvm.save(case[0], path)
    loaded = slimsvm.load(path)
    slimsvm.save(loaded, tmp_path / "again.slim")
    assert path.read_bytes() == (tmp_path / "again.slim").read_bytes()
    for copied in (pickle.loads(pickle.dumps(loaded)),):
        assert (scores(copied, case[1]) == scores(loaded, case[1])).all()


PROGRAM = """
#include <math.h>
#include <stdio.h>
#include "model.h"
int main(void)
{
    REAL x[MODEL_N_FEATURES], s[MODEL_N_OUTPUTS];
    int refused;
%s
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_c_header_encodes_and_scores(case, path, tmp_path):
    pipeline, rows = case
    slimsvm.export(pipeline, tmp_path / "model.h", to="c", dtype="float64")
    slimsvm.save(pipeline, path)
    columns = [
        [f"model_code({j}, {json.dumps(v) if isinstance(v, str) else '0'})" if texts
         else "NAN" if isinstance(v, str) or v is None or v != v else repr(float(v)) for v in rows[name]]
        for j, (name, texts) in enumerate(zip(rows, Encoding.unpack(*encoding_parts(path)).texts(), strict=True))
    ]  # fmt: skip
    shown = 'printf("%d", refused); for (int c = 0; c < MODEL_N_OUTPUTS; ++c) printf(" %.17g", s[c]); printf("\\n");'
    lines = [
        f"    {{ double v[] = {{{', '.join(row)}}}; refused = model_encode(v, x); model_scores(x, s); {shown} }}"
        for row in zip(*columns, strict=True)
    ]
    (tmp_path / "main.c").write_text(PROGRAM % "\n".join(lines))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-DREAL=double"]
    subprocess.run(["cc", *flags, "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    printed = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True).stdout
    found = np.array([list(map(float, line.split())) for line in printed.splitlines()])
    predictor = slimsvm.load_predictor(path)
    assert not found[:, 0].any()
    np.testing.assert_allclose(found[:, 1:], predictor._scores(rows), rtol=1e-9, atol=1e-9)


def encoding_parts(path):
    header, arrays = modelfile.read_model(path)
    return header["encoding"], arrays


def test_json_says_what_the_steps_do(tmp_path):
    """A predictor of a few lines, from the page of the form."""
    pipeline = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(), ["colour"]), (make_pipeline(SimpleImputer(), NormalRanks()), ["size", "age"])
        ),
        StandardScaler(),
        SVC(),
    )
    pipeline.fit(X, YES)
    slimsvm.export(pipeline, tmp_path / "model.json", to="json")
    model = json.loads((tmp_path / "model.json").read_text())
    assert model["version"] == 3

    def taken(step, row):
        kind = step["kind"]
        if kind == "in turn":
            for each in step["steps"]:
                row = taken(each, row)
            return row
        if kind == "side by side":
            pairs = zip(step["columns"], step["steps"], strict=True)
            return [made for some, each in pairs for made in taken(each, [row[j] for j in some])]
        if kind == "flags":
            parts = zip(row, step["levels"], step["places"], step["widths"], strict=True)
            found = [(places[levels.index(v)], width) for v, levels, places, width in parts]
            return [float(place == k) for place, width in found for k in range(width)]
        if kind == "gaps":
            return [fill if v is None or v != v else v for v, fill in zip(row, step["values"], strict=True)]
        assert kind == "ranks"
        return [np.interp(v, *pair) for v, *pair in zip(row, step["values"], step["deviates"], strict=True)]

    for row, score in zip(NEW.values.tolist()[:20], pipeline.decision_function(NEW[:20]), strict=True):
        for step in model["encoding"]["steps"]:
            row = taken(step["does"], row)
        x = [(v - o) * f for v, o, f in zip(row, model["scaling"]["offset"], model["scaling"]["factor"], strict=True)]
        squares = [sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) for z in model["vectors"]]
        kernel = np.exp(-model["kernel"]["gamma"] * np.array(squares))
        assert kernel @ np.array(model["coef"])[:, 0] + model["intercept"][0] == pytest.approx(score, abs=1e-6)


def columns_pipeline():
    return make_pipeline(clone(COLUMNS), SVC()).fit(X, YES)


@pytest.mark.parametrize(
    "container",
    [
        lambda rows: pytest.importorskip("polars").from_pandas(rows),
        lambda rows: pytest.importorskip("pyarrow").Table.from_pandas(rows),
        lambda rows: {name: rows[name].tolist() for name in rows},
        lambda rows: rows[rows.columns[::-1]].assign(another="x"),
        lambda rows: rows.to_numpy(object),
        lambda rows: rows.convert_dtypes(),
        lambda rows: rows.astype({"colour": "category", "shop": "category"}),
    ],
)
def test_any_container_has_the_same_predictions(container, path):
    pipeline = columns_pipeline()
    slimsvm.save(pipeline, path)
    expected = pipeline.decision_function(NEW)
    for model in (slimsvm.load(path), slimsvm.load_predictor(path)):
        np.testing.assert_allclose(model.decision_function(container(NEW)), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("has_texts", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.assign(shop=pd.Timestamp("2026-01-01")),
        lambda rows: rows.assign(shop=[("a",)] * len(rows)),
        lambda rows: rows.assign(shop=b"x"),
        lambda rows: rows.drop(columns="shop"),
        lambda rows: rows.assign(shop="new")[["size", "shop", "colour"]],
        lambda rows: {"size": rows["size"], "colour": rows["colour"], "shop": [None]},
        lambda rows: rows.to_numpy(object),
    ],
)
def test_columns_that_no_step_looks_at_may_hold_anything(change, has_texts, path, tmp_path, capsys):
    """As in scikit-learn; also of a column that a column transformer within a pipeline leaves out."""
    columns, some = ["colour", "size", "shop"], ["colour", "size"] if has_texts else ["size"]
    inner = make_column_transformer((OneHotEncoder(), [0]), (NormalRanks(), [1])) if has_texts else NormalRanks()
    nested = make_pipeline(make_column_transformer((make_pipeline(inner), some)), StandardScaler())
    pipeline = make_pipeline(nested, SVC()).fit(X[columns].assign(shop=pd.Timestamp("2025-01-01")), YES)
    slimsvm.save(pipeline, path)
    expected = pipeline.decision_function(NEW[columns])
    for model in (slimsvm.load(path), slimsvm.load_predictor(path)):
        np.testing.assert_allclose(model.decision_function(change(NEW[columns])), expected, rtol=1e-6, atol=1e-6)
    given = change(NEW[columns])
    if isinstance(given, pd.DataFrame):
        given.to_csv(tmp_path / "rows.csv", index=False)
        assert main(["predict", str(path), str(tmp_path / "rows.csv")]) == 0
        assert capsys.readouterr().out.split() == pipeline.predict(NEW[columns]).tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows.drop(columns="size"), "columns of training are missing: 'size'"),
        (lambda rows: rows.assign(colour="purple"), "column 'colour' has the level 'purple', which was not there"),
        (lambda rows: rows.assign(size=np.nan), "column 'size' has a missing or infinite value in row 0"),
        (lambda rows: rows.assign(size="long"), "column 'size' must hold numbers, found 'long'"),
        (lambda rows: rows.assign(size=pd.Timestamp("2026-01-01")), "column 'size' must hold numbers or texts"),
        (lambda rows: rows.assign(colour=[("a",)] * len(rows)), "column 'colour' has a value of type tuple"),
        (lambda rows: rows.to_numpy(object)[:, :2], "X must have 3 features as in training, found 2"),
        (lambda rows: rows.set_axis(["size"] * 3, axis=1), "more than once"),
        (lambda rows: {"colour": ["red"], "size": [1.0, 2.0], "shop": ["s1"]}, "the same number of rows"),
    ],
)
def test_errors_name_the_column(change, words, path):
    columns = ["colour", "size", "shop"]
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["colour"]), (NormalRanks(), ["size"]), ("drop", ["shop"])), SVC()
    ).fit(X[columns], YES)
    slimsvm.save(pipeline, path)
    with pytest.raises((ValueError, TypeError), match=words.replace("(", r"\(")):
        slimsvm.load_predictor(path).predict(change(NEW[columns]))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (PCA(1), "found a PCA"),
        (make_column_transformer((PCA(1), NUMBERS)), "step 'pca': .*found a PCA"),
        (FunctionTransformer(np.log1p), "no function of a FunctionTransformer"),
        (ColumnTransformer([("a", NormalRanks(), NUMBERS)], transformer_weights={"a": 2.0}), "transformer_weights"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_by_name(step, words, path):
    pipeline = make_pipeline(step, SVC()).fit(X[NUMBERS].abs(), YES)
    for write in (slimsvm.save, lambda model, path: slimsvm.export(model, path, to="json")):
        with pytest.raises(TypeError, match=words):
            write(pipeline, path)
        assert not path.exists()


def test_forms_without_a_place_for_steps_name_them(tmp_path):
    pipeline = columns_pipeline()
    for to in ("onnx", "wasm"):
        with pytest.raises(ValueError, match=r"no place for what the steps 'columntransformer' \(ColumnTransformer\)"):
            slimsvm.export(pipeline, tmp_path / "x", to=to)
    with pytest.raises(ValueError, match=r"steps 'columntransformer' \(ColumnTransformer\)"):
        slimsvm.explain(pipeline, X[:2], background=X[:5])
    missing = make_pipeline(OrdinalEncoder(), SimpleImputer(), SVC()).fit(X[["shop"]], YES)
    with pytest.raises(ValueError, match="encoded_missing_value"):
        slimsvm.export(missing, tmp_path / "x.h", to="c")


def test_steps_from_a_file_are_what_they_were_but_learn_no_more(path):
    slimsvm.save(make_pipeline(NormalRanks(), SVC()).fit(X[NUMBERS], YES), path)
    again = clone(slimsvm.load(path)).fit(X[NUMBERS], YES)
    assert isinstance(again[0], NormalRanks)
    slimsvm.save(columns_pipeline(), path)
    loaded = slimsvm.load(path)
    assert (loaded[0].transform(NEW) == columns_pipeline()[0].transform(NEW)).all()
    assert repr(loaded[0]) == "<ColumnTransformer from a file>"
    with pytest.raises(TypeError, match="this ColumnTransformer was read from a file"):
        loaded.fit(X, YES)
    with pytest.raises(NotFittedError):
        slimsvm.save(make_pipeline(NormalRanks(), SVC()), path)


def test_the_command_line_predicts_from_columns_of_texts(path, tmp_path, capsys):
    pipeline = columns_pipeline()
    slimsvm.save(pipeline, path)
    X.assign(label=YES)[["label", *X.columns[::-1]]].to_csv(tmp_path / "rows.csv", index=False)
    assert main(["predict", str(path), str(tmp_path / "rows.csv")]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == pipeline.predict(X).tolist()
    assert "200 rows" in printed.err or "wrong" in printed.err
    X.drop(columns="shop").to_csv(tmp_path / "rows.csv", index=False)
    assert main(["predict", str(path), str(tmp_path / "rows.csv")]) == 1
    assert "has no column 'shop'" in capsys.readouterr().err
    assert main(["info", str(path)]) == 0
    assert "6: colour, size, shop, age, code, sold" in capsys.readouterr().out


def test_many_levels_stay_sparse(path):
    rng = np.random.default_rng(0)
    rows = np.array([f"level {k}" for k in rng.permutation(17_000)], object)[:, None]
    some = rows[:300]
    pipeline = make_pipeline(OneHotEncoder(categories=[sorted(rows[:, 0])]), SVC(kernel="linear"))
    pipeline.fit(some, np.arange(300) % 2)
    slimsvm.save(pipeline, path)
    for model in (slimsvm.load(path), slimsvm.load_predictor(path)):
        np.testing.assert_allclose(
            model.decision_function(rows[:400]), pipeline.decision_function(rows[:400]), rtol=1e-6, atol=1e-6
        )
    assert slimsvm.load(path)[0].transform(some).nnz == 300


@pytest.mark.parametrize(
    "change",
    [
        {"steps": []},
        {"n_columns": 7},
        {"names": ["a"]},
        {"names": [1, 2]},
        {"steps": [{"name": "ranks", "class": "NormalRanks", "does": {"kind": "nothing"}}]},
        {"steps": [{"name": "ranks", "class": "NormalRanks", "does": {"kind": "in turn", "steps": [], "more": 1}}]},
        {"steps": [{"name": "ranks", "class": "PCA", "does": {"kind": "in turn", "steps": [3]}}]},
        {"steps": [{"name": 1, "class": "NormalRanks", "does": {"kind": "in turn", "steps": []}}]},
        {"steps": [{"name": "s", "class": "C", "does": {"kind": "side by side", "columns": [[5]], "steps": []}}]},
        {"steps": [{"name": "s", "class": "C", "does": {"kind": "gaps", "missing": None, "values": [[], 1],
                                                        "flagged": []}}]},
        {"steps": [{"name": "s", "class": "C", "does": {"kind": "flags", "levels": [["a", "a"]], "refuses": True,
                                                        "places": [], "widths": []}}]},
    ],
)  # fmt: skip
def test_an_encoding_that_contradicts_itself_is_refused(change, path):
    slimsvm.save(make_pipeline(NormalRanks(), SVC()).fit(X[NUMBERS], YES), path)
    header, arrays = modelfile.read_model(path)
    header["encoding"] |= change
    modelfile.write_model(path, header, arrays, version=3)
    for read in (slimsvm.load, slimsvm.load_predictor):
        with pytest.raises(slimsvm.ModelFileError):
            read(path)


@pytest.mark.parametrize("array", ["encoding_0", "encoding_1"])
def test_arrays_of_an_encoding_that_do_not_fit_are_refused(array, path):
    slimsvm.save(make_pipeline(NormalRanks(), SVC()).fit(X[NUMBERS], YES), path)
    header, arrays = modelfile.read_model(path)
    for values in (arrays[array][:-1], np.zeros((2, 2)), arrays[array].astype(str)):
        modelfile.write_model(path, header, arrays | {array: values}, version=3)
        for read in (slimsvm.load, slimsvm.load_predictor):
            with pytest.raises(slimsvm.ModelFileError):
                read(path)
