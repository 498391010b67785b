"""Tables as JSON and as C headers: encoders and machines without Python."""

import json
import math
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import slimsvm
from slimsvm import TableClassifier, TableRegressor
from slimsvm.cli import main
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
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)),
            "kind": rng.choice(["a", 'b "float" \\ NAME_x', None], n),
            "shop /* NAME_x */": [f"s{k}" for k in rng.integers(0, levels, n)],
            "one": "same",
            "price": [f"{price:,.2f}" for price in rng.lognormal(6, 2, n)],
        }
    )
    return frame, frame["size"].fillna(1.0).to_numpy() * np.where(frame["kind"] == "a", 1.0, -1.0)


X, Y = rows(250, 0)
NEW, _ = rows(60, 1, levels=60)
TARGETS = {"two": np.where(Y > 0, "up", "down"), "three": np.digitize(Y, [-0.5, 0.5]), "numbers": 10.0 + 3.0 * Y}


@pytest.fixture(scope="module", params=list(TARGETS))
def model(request):
    cls = TableRegressor if request.param == "numbers" else TableClassifier
    return cls(preset="small", max_basis=20, n_jobs=1).fit(X, TARGETS[request.param])


def in_c(model):
    """Lines of C with the columns of the new rows, and what is printed of each."""
    shown = 'printf("%.9g\\n", model_predict(x));'
    if hasattr(model, "classes_"):
        shown = 'printf("%d", model_predict(x)); model_probabilities(x, p);'
        shown += ' for (int k = 0; k < MODEL_N_CLASSES; ++k) printf(" %.9g", p[k]); printf("\\n");'
    columns = []
    for j, (column, encoder) in enumerate(zip(table_of(NEW).columns, model.encoding_.encoders, strict=True)):
        if encoder.kind == "numbers":
            values = as_numbers(column, encoder.style)
            columns.append(["NAN" if math.isnan(value) else repr(float(value)) for value in values])
        elif encoder.width:
            columns.append([f"model_code({j}, {'0' if v is None else json.dumps(v)})" for v in column.values])
        else:
            columns.append(["0.0"] * len(NEW))
    return "\n".join(
        f"    {{ double v[] = {{{', '.join(row)}}}; model_encode(v, x); {shown} }}"
        for row in zip(*columns, strict=True)
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_c_header_encodes_and_predicts(model, dtype, tmp_path):
    slimsvm.export(model, tmp_path / "model.h", to="c", dtype=dtype)
    (tmp_path / "main.c").write_text(PROGRAM % in_c(model))
    real = "float" if dtype == "float32" else "double"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", f"-DREAL={real}"]
    subprocess.run(["cc", *flags, "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    printed = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True).stdout
    found = np.array([list(map(float, line.split())) for line in printed.splitlines()])
    if hasattr(model, "classes_"):
        np.testing.assert_allclose(found[:, 1:], model.predict_proba(NEW), atol=1e-3)
        assert (model.classes_[found[:, 0].astype(int)] == model.predict(NEW)).mean() > 0.97
    else:
        np.testing.assert_allclose(found[:, 0], model.predict(NEW), rtol=1e-3, atol=1e-2)


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
    ]
    (machine,) = found["machines"]
    assert len(machine["vectors"][0]) == len(found["are_flags"])
    model.save(tmp_path / "model.slim")
    assert main(["export", str(tmp_path / "model.slim"), "--to", "json", "--output", str(tmp_path / "again.json")]) == 0
    assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()
    assert "5 columns, 1 model," in capsys.readouterr().out


def test_what_has_no_place_for_it_refuses_by_name(model, tmp_path):
    with pytest.raises(ValueError, match="'wasm' has no place"):
        slimsvm.export(model, tmp_path / "x", to="wasm")
    with pytest.raises(ValueError, match="float32 or float64"):
        slimsvm.export(model, tmp_path / "x.h", to="c", dtype="int16")
    days = X.assign(day=pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(len(X)), "D"))
    dated = TableRegressor(preset="small", max_basis=5, n_jobs=1).fit(days, Y)
    with pytest.raises(ValueError, match="found column 'day': times"):
        slimsvm.export(dated, tmp_path / "x.h", to="c")
    several = TableRegressor(n_jobs=1).fit(X, Y)
    several.machines_ = [replace(several.machines_[0], weight=0.5)] * 2
    with pytest.raises(ValueError, match="one kernel model, found 2 models"):
        slimsvm.export(several, tmp_path / "x.h", to="c")
    slimsvm.export(several, tmp_path / "x.json", to="json")
    assert len(json.loads((tmp_path / "x.json").read_text())["machines"]) == len(several.machines_)
