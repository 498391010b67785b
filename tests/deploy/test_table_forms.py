"""Tables as JSON, C headers and ES modules: encoders and models without Python."""

import json
import math
import shutil
import subprocess
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import slimsvm
from node_for_tests import NODE
from slimsvm import TableClassifier, TableRegressor
from slimsvm.cli import main
from slimsvm.estimators._shared.table_additive import additive_models
from slimsvm.estimators._shared.table_saving import goal_of
from slimsvm.tables import table_of
from slimsvm.tables.texts import as_numbers

PROGRAM = """
#include <math.h>
#include <stdio.h>
#include "model.h"
int main(void)
{
    REAL x[MODEL_N_FEATURES], p[9];
    (void)p;
%s
    return 0;
}
"""


def rows(n, seed, levels=45):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("1899-11-05 03:10") + pd.to_timedelta(rng.integers(0, 1_900_000, n), "h")
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)),
            "kind": rng.choice(["a", 'b "float" \\ NAME_x', None], n),
            "shop /* NAME_x */": [f"s{k}" for k in rng.integers(0, levels, n)],
            "one": "same",
            "price": [f"{price:,.2f}" for price in rng.lognormal(6, 2, n)],
            "sold": days.where(rng.random(n) > 0.1),
        }
    )
    return frame, frame["size"].fillna(1.0).to_numpy() * np.where(frame["kind"] == "a", 1.0, -1.0)


X, Y = rows(250, 0)
NEW, _ = rows(60, 1, levels=60)
TARGETS = {
    "two": np.where(Y > 0, "up NAME_float", "down"),
    "three": np.digitize(Y, [-0.5, 0.5]),
    "numbers": 10.0 + 3.0 * Y,
}


@pytest.fixture(scope="module", params=list(TARGETS))
def target(request):
    return request.param


@pytest.fixture(scope="module")
def model(target):
    """One machine of 20 vectors."""
    cls = TableRegressor if target == "numbers" else TableClassifier
    return cls(preset="small", max_basis=20, n_jobs=1).fit(X, TARGETS[target])


@pytest.fixture(scope="module")
def mean(target, model):
    """The same machine, an additive model, and a linear one, for which numbers are straight, too."""
    y, goal = TARGETS[target], goal_of(model)
    y = (y - model.mean_y_) / model.spread_y_ if target == "numbers" else np.searchsorted(model.classes_, y)
    encoders = model.encoding_.encoders
    encoding = replace(model.encoding_, encoders=tuple(
        replace(each, straight=True) if each.kind == "numbers" else each for each in encoders
    ))  # fmt: skip
    features, n_seen = encoding.features(table_of(X)), len(encoding.are_flags)
    (machine,), found = model.machines_, copy(model)
    found.encoding_, found.machines_ = encoding, [replace(machine, weight=0.6)]
    for name, seen, as_they_are in (
        ("additive", features[:, :n_seen], encoding.are_flags),
        ("linear", features, np.ones(encoding.n_features, bool)),
    ):
        own = next(additive_models(seen, y, np.ones(len(y)), as_they_are, goal, [1.0]))
        recipe = replace(machine.recipe, kernel=name)
        found.machines_.append(replace(machine, weight=0.2, model=own, recipe=recipe))
    return found


def in_c(model, new):
    """Lines of C with the columns of the new rows, and what is printed of each."""
    shown = 'printf("%.9g\\n", model_predict(x));'
    if hasattr(model, "classes_"):
        shown = 'printf("%d", model_predict(x)); model_probabilities(x, p);'
        shown += ' for (int k = 0; k < MODEL_N_CLASSES; ++k) printf(" %.9g", p[k]); printf("\\n");'
    columns = []
    for j, (column, encoder) in enumerate(zip(table_of(new).columns, model.encoding_.encoders, strict=True)):
        if encoder.kind == "numbers":
            values = as_numbers(column, encoder.style)
            columns.append(["NAN" if math.isnan(value) else repr(float(value)) for value in values])
        elif encoder.kind == "times":
            days = (column.values - np.datetime64(0, "us")) / np.timedelta64(1, "D")
            columns.append(["NAN" if math.isnan(value) else repr(float(value)) for value in days])
        elif encoder.width:
            columns.append([f"model_code({j}, {'0' if v is None else json.dumps(v)})" for v in column.values])
        else:
            columns.append(["0.0"] * len(new))
    return "\n".join(
        f"    {{ double v[] = {{{', '.join(row)}}}; model_encode(v, x); {shown} }}"
        for row in zip(*columns, strict=True)
    )


def in_a_program(model, dtype, folder, new=NEW):
    """What the model's header predicts for the new rows."""
    slimsvm.export(model, folder / "model.h", to="c", dtype=dtype)
    (folder / "main.c").write_text(PROGRAM % in_c(model, new))
    real = "float" if dtype == "float32" else "double"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", f"-DREAL={real}"]
    subprocess.run(["cc", *flags, "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
    printed = subprocess.run([str(folder / "main")], capture_output=True, text=True, check=True).stdout
    return np.array([list(map(float, line.split())) for line in printed.splitlines()])


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("preset", ["small", "accurate"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_c_header_encodes_and_predicts(target, model, mean, preset, dtype, tmp_path):
    model = model if preset == "small" else mean
    found = in_a_program(model, dtype, tmp_path)
    model.save(tmp_path / "model.slim")
    predictor = slimsvm.load_predictor(tmp_path / "model.slim")
    if target == "numbers":
        np.testing.assert_allclose(found[:, 0], predictor.predict(NEW), rtol=1e-5)
    else:
        np.testing.assert_allclose(found[:, 1:], predictor.predict_proba(NEW), atol=1e-5)
        assert (model.classes_[found[:, 0].astype(int)] == predictor.predict(NEW)).all()


IN_NODE = """
import { readFileSync } from "node:fs";
const { default: table } = await import("./model.mjs");
const rows = JSON.parse(readFileSync("rows.json"));
for (const row of rows) row.sold = row.sold === null ? null : new Date(row.sold);
const probabilities = table.labels.length ? table.probabilities(rows) : null;
const inOrder = table.predict(rows.map((row) => table.columns.map((name) => row[name])));
const caught = (call) => { try { call(); return ""; } catch (error) { return error.message; } };
const lacks = caught(() => table.predict([{}])), text = caught(() => table.predict([{ ...rows[0], price: "dear" }]));
console.log(JSON.stringify({ predicted: table.predict(rows), inOrder, probabilities, lacks, text }));
"""


@pytest.mark.skipif(NODE is None, reason="no Node")
@pytest.mark.parametrize("preset", ["small", "accurate"])
def test_a_module_encodes_and_predicts(target, model, mean, preset, tmp_path):
    model = model if preset == "small" else mean
    slimsvm.export(model, tmp_path / "model.mjs", to="wasm")
    given = NEW.assign(price=NEW["price"].str.replace(",", "").astype(float))
    given["sold"] = given["sold"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    (tmp_path / "rows.json").write_text(given.to_json(orient="records"))
    (tmp_path / "main.mjs").write_text(IN_NODE)
    done = subprocess.run([NODE, "main.mjs"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    model.save(tmp_path / "model.slim")
    predictor = slimsvm.load_predictor(tmp_path / "model.slim")
    assert found["inOrder"] == found["predicted"]
    assert found["lacks"] == "column 'size' is missing"
    assert found["text"] == "column 'price' has dear, where a number belongs"
    if target == "numbers":
        np.testing.assert_allclose(found["predicted"], predictor.predict(NEW), rtol=1e-5)
    else:
        np.testing.assert_allclose(found["probabilities"], predictor.predict_proba(NEW), atol=1e-5)
        assert found["predicted"] == predictor.predict(NEW).tolist()


def test_json_has_encoders_and_machines(model, tmp_path, capsys):
    slimsvm.export(model, tmp_path / "model.json", to="json")
    found = json.loads((tmp_path / "model.json").read_text())
    assert [column["name"] for column in found["columns"]] == list(X.columns)
    assert [column["kind"] for column in found["columns"]] == [
        "numbers",
        "levels",
        "many levels",
        "left out",
        "numbers",
        "times",
    ]
    assert found["version"] == 1
    (machine,) = found["machines"]
    assert len(machine["vectors"][0]) == len(found["are_flags"])
    model.save(tmp_path / "model.slim")
    assert main(["export", str(tmp_path / "model.slim"), "--to", "json", "--output", str(tmp_path / "again.json")]) == 0
    assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()
    assert "6 columns, 1 model," in capsys.readouterr().out


def test_what_has_no_place_for_it_refuses_by_name(model, tmp_path):
    with pytest.raises(ValueError, match="exported to 'c', 'onnx', 'wasm', 'json'; found 'pdf'"):
        model.export(tmp_path / "x", "pdf")
    with pytest.raises(ValueError, match="float32 or float64"):
        slimsvm.export(model, tmp_path / "x.h", to="c", dtype="int16")
    with pytest.raises(ValueError, match="no sets or intervals"):
        slimsvm.export(model, tmp_path / "x.h", to="c", alpha=0.1)


def test_json_has_all_machines(mean, tmp_path):
    slimsvm.export(mean, tmp_path / "x.json", to="json")
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["version"] == 2
    kernel, additive, linear = found["machines"]
    assert (additive["kind"], linear["kind"]) == ("additive", "linear")
    n_straight = sum(column.get("straight", False) for column in found["columns"])
    assert len(linear["weights"]) == len(found["are_flags"]) + n_straight == len(kernel["vectors"][0]) + 2


def test_rows_beyond_those_of_training_in_c(target, mean, tmp_path):
    if target == "numbers" and shutil.which("cc"):
        beyond = NEW.assign(size=[-1e300, 1e300, -9.0, 9.0, np.nan] * 12, price=["99,999,999"] * 60)
        found = in_a_program(mean, "float64", tmp_path, beyond)
        np.testing.assert_allclose(found[:, 0], mean.predict(beyond), rtol=1e-5)
