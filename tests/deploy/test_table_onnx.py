"""Tables as ONNX graphs, which take the columns as they are, in ONNX Runtime."""

import numpy as np
import pandas as pd
import pytest

import slimsvm
from slimsvm import TableClassifier, TableRegressor
from slimsvm.cli import main
from slimsvm.tables import table_of
from slimsvm.tables.texts import as_numbers, as_times

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")
onnxruntime = pytest.importorskip("onnxruntime")


def rows(n, seed, n_shops=45):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2023-11-05 03:10") + pd.to_timedelta(rng.integers(0, 30_000, n), "h")
    frame = pd.DataFrame(
        {
            "size in m²": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)),
            "kind": rng.choice(["a", 'b "\\ ü', None], n),
            "shop": [f"s{k}" for k in rng.integers(0, n_shops, n)],
            "one": "same",
            "price": [f"{price:,.2f}" for price in rng.lognormal(6, 2, n)],
            "sold": days.where(rng.random(n) > 0.1),
            "is new": rng.random(n) < 0.5,
        }
    )
    size = frame["size in m²"].fillna(1.0).to_numpy()
    return frame, size * np.where(frame["kind"] == "a", 1.0, -1.0) + (frame["sold"].dt.month.fillna(6.0) > 6)


X, Y = rows(300, 0)
NEW, _ = rows(80, 1, n_shops=60)
TARGETS = {
    "two": np.where(Y > 0.5, "up", "down"),
    "three": np.digitize(Y, [0.0, 1.0]),
    "numbers": (1e6 + 3.0 * Y).to_numpy(),
}


@pytest.fixture(scope="module", params=list(TARGETS))
def target(request):
    return request.param


@pytest.fixture(scope="module", params=["accurate", "small"])
def model(request, target):
    cls = TableRegressor if target == "numbers" else TableClassifier
    return cls(preset=request.param, max_basis=20, n_jobs=1).fit(X, TARGETS[target])


def inputs_of(model, frame):
    """What the graph of a model takes: numbers, texts, and days."""
    found = {}
    for column, encoder in zip(table_of(frame).columns, model.encoding_.encoders, strict=True):
        if encoder.kind == "numbers":
            found[column.name] = as_numbers(column, encoder.style)
        elif encoder.kind == "times":
            times = as_times(column, encoder.order)
            days = times.astype(np.int64) / 86_400e6
            found[column.name] = np.where(np.isnat(times), np.nan, days)
        elif encoder.width:
            found[column.name] = np.array(["" if text is None else text for text in column.values], object)
    return found


def outputs_of(path, given):
    session = onnxruntime.InferenceSession(path)
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, given), strict=True))


@pytest.fixture(scope="module")
def predictor(model, tmp_path_factory):
    """The model in float64, as its file has it."""
    path = tmp_path_factory.mktemp("models") / "m.slim"
    model.save(path)
    return slimsvm.load_predictor(path)


def check(found, predictor, frame, atol):
    if hasattr(predictor, "classes_"):
        np.testing.assert_allclose(found["probabilities"], predictor.predict_proba(frame), atol=atol)
        assert (found["prediction"] == predictor.predict(frame)).all()
    else:
        np.testing.assert_allclose(found["prediction"], predictor.predict(frame), atol=atol * Y.std())


@pytest.mark.parametrize("dtype", ["auto", "float64"])
def test_a_graph_takes_columns_and_predicts_as_the_model(model, predictor, dtype, tmp_path):
    slimsvm.export(model, tmp_path / "m.onnx", to="onnx", dtype=dtype)
    found = outputs_of(tmp_path / "m.onnx", inputs_of(model, NEW))
    check(found, predictor, NEW, 1e-5 if dtype == "auto" else 1e-9)


def test_onnx_s_own_evaluator_agrees(model, predictor, tmp_path):
    slimsvm.export(model, tmp_path / "m.onnx", to="onnx", dtype="float64")
    graph = reference.ReferenceEvaluator(str(tmp_path / "m.onnx"))
    found = graph.run(None, inputs_of(model, NEW))
    check(dict(zip(graph.output_names, found, strict=True)), predictor, NEW, 1e-9)


def test_extreme_and_unknown_values(model, predictor, tmp_path):
    """Numbers and times beyond those of training, the borders themselves, and texts that say that they are missing."""
    slimsvm.export(model, tmp_path / "m.onnx", to="onnx", dtype="float64")
    some = NEW[:6].assign(
        **{
            "size in m²": [-1e300, 1e300, X["size in m²"].min(), X["size in m²"].max(), 0.0, np.nan],
            "kind": ["n/a", "NULL", "never seen", "None", "a", "?"],
            "sold": pd.to_datetime(["1850-02-03", "2290-12-31", "2024-12-31", "2025-01-01", "2024-02-29", None]),
        }
    )
    given = inputs_of(model, some) | {"kind": some["kind"].to_numpy(object)}
    check(outputs_of(tmp_path / "m.onnx", given), predictor, some, 1e-9)


def test_straight_numbers_go_on_beyond_those_of_training(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.lognormal(size=300), "b": rng.choice(["x", "y"], 300), "c": rng.lognormal(size=300)})
    frame.loc[::9, "c"] = np.nan
    y = frame["a"] + frame["c"].fillna(4.0) + np.sin(3 * frame["a"]) * (frame["b"] == "x")
    model = TableRegressor(n_jobs=1).fit(frame, y)
    kinds = [machine.recipe.kernel for machine in model.machines_]
    assert "linear" in kinds
    assert len(kinds) > 1
    slimsvm.export(model, tmp_path / "m.onnx", to="onnx", dtype="float64")
    new = pd.DataFrame({"a": [0.1, 30.0, 1e300, -1e300], "b": list("xyxy"), "c": [np.nan, -9.0, 1e9, 2.0]})
    given = {name: new[name].to_numpy(object if name == "b" else float) for name in new}
    model.save(tmp_path / "m.slim")
    found = slimsvm.load_predictor(tmp_path / "m.slim").predict(new)
    np.testing.assert_allclose(outputs_of(tmp_path / "m.onnx", given)["prediction"], found, rtol=1e-9)
    np.testing.assert_allclose(found, model.predict(new), rtol=1e-4)


def test_a_graph_has_the_same_bytes_in_every_process(tmp_path):
    """Sets of texts have another order in each."""
    TableRegressor(preset="small", max_basis=5, n_jobs=1).fit(X[:60], Y[:60]).export(tmp_path / "x.onnx", to="onnx")
    found = onnx.load(tmp_path / "x.onnx")
    keys = [[key.decode() for key in part.strings] for node in found.graph.node for part in node.attribute
            if part.name == "keys_strings"]  # fmt: skip
    missing = [[key for key in own if table_of({"x": [key]}).columns[0].values[0] is None] for own in keys]
    assert len(missing) > 1
    assert all(own == sorted(own) for own in missing)
    assert [each.domain for each in found.opset_import] == ["", "ai.onnx.ml"]


def test_the_command_line_writes_a_graph(tmp_path, capsys):
    slimsvm.TableClassifier(preset="small", max_basis=5, n_jobs=1).fit(X, TARGETS["two"]).save(tmp_path / "m.slim")
    assert main(["export", str(tmp_path / "m.slim"), "--to", "onnx"]) == 0
    assert "opset 13, a table of 6 columns, 1 model" in capsys.readouterr().out
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert [given.name for given in graph.input] == [name for name in X if name != "one"]


def test_tables_without_names_have_inputs_by_their_order(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 2))
    model = TableRegressor(preset="small", max_basis=5, n_jobs=1).fit(rows, rows[:, 0])
    slimsvm.export(model, tmp_path / "m.onnx", to="onnx")
    found = outputs_of(tmp_path / "m.onnx", {"x0": rows[:, 0], "x1": rows[:, 1]})
    np.testing.assert_allclose(found["prediction"], model.predict(rows), atol=1e-5)


def test_what_a_graph_cannot_hold_is_refused_by_name(tmp_path):
    y = np.arange(60.0)
    own = TableRegressor(preset="small", max_basis=5, n_jobs=1)
    cases = [
        ({"prediction": y}, {}, "'prediction'"),
        ({"one": np.ones(60)}, {}, "all columns are left out"),
        ({"a": y}, {"alpha": 0.1}, "no sets or intervals"),
        ({"a": y}, {"dtype": "int16"}, "dtype must be one of"),
    ]
    for columns, options, said in cases:
        model = own.fit(columns, y)
        with pytest.raises(ValueError, match=said):
            slimsvm.export(model, tmp_path / "m.onnx", to="onnx", **options)
    assert not (tmp_path / "m.onnx").exists()
