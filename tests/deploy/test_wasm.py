"""ES modules with WebAssembly: no imports, small, and in Node what the estimators predict."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import slimsvm
from calibrated_for_tests import NAMES, assert_agree, calibrated, some_rows
from fixtures.make_models import MODELS, SHIPPED, data_of, dense_queries
from kernel_cases import WITH_FORMULA
from node_for_tests import NODE
from slimsvm.cli import main
from slimsvm.deploy import wasm_module
from slimsvm.deploy.decisions import NUMBERS
from slimsvm.deploy.plain_model import read_plain_model
from slimsvm.deploy.predictors import PREDICTORS
from slimsvm.estimators._shared.saving import plain_model_of

MOST_BYTES, MOST_LINES = 68_000, 100
needs_node = pytest.mark.skipif(NODE is None, reason="no Node")
# Loads each model beside it, answers for its rows, and says what was thrown.
PROGRAM = """
import { readFileSync } from "node:fs";
const answers = {};
for (const [name, { rows, lengths }] of Object.entries(JSON.parse(readFileSync("cases.json")))) {
  const { default: model } = await import(`./${name}.mjs`);
  const caught = (call) => { try { return call(); } catch (error) { return error.message; } };
  const { nFeatures, kind } = model, flat = Float64Array.from(rows.flat());
  answers[name] = { nFeatures, kind, scores: caught(() => model.scores(rows, lengths)),
    labels: caught(() => model.predict(rows, lengths)), typed: caught(() => model.scores(flat, lengths)),
    probabilities: caught(() => model.probabilities(rows)) };
}
console.log(JSON.stringify(answers));
"""


def sections(content):
    """(number, bytes) of each section of a WebAssembly module."""
    assert content[:8] == b"\0asm\1\0\0\0"
    at = 8
    while at < len(content):
        number, size, shift = content[at], 0, 0
        while True:
            at += 1
            size |= (content[at] & 127) << shift
            shift += 7
            if content[at] < 128:
                break
        yield number, content[at + 1 : at + 1 + size]
        at += 1 + size


def test_the_runtime_was_compiled_from_these_sources():
    """Git has it beside them; where this fails, `make wasm` compiles it again."""
    builds = Path(__file__).parents[2] / "build_backend" / "slimsvm_build.py"
    needed = subprocess.run([sys.executable, builds, "wasm-requirements"], capture_output=True, text=True, check=True)
    assert needed.stdout.strip() == ""


def test_the_runtime_is_small_and_imports_nothing():
    content = wasm_module.RUNTIME.read_bytes()
    assert len(content) < MOST_BYTES
    found = dict(sections(content))
    assert 10 in found  # code
    assert found.get(2, b"\0") == b"\0"  # imports: none, or a list without entries


def test_the_module_is_short():
    assert len(wasm_module.MODULE.read_text(encoding="utf-8").splitlines()) < MOST_LINES


def answers(folder, models, cases):
    """What Node says of models by their names."""
    for name, model in models.items():
        wasm_module.write_wasm(model, folder / f"{name}.mjs")
    (folder / "cases.json").write_text(json.dumps(cases))
    (folder / "main.mjs").write_text(PROGRAM)
    done = subprocess.run([NODE, "main.mjs"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_every_model_predicts_as_in_python(tmp_path):
    models, cases = {}, {}
    for name in SHIPPED:
        lengths = data_of(name).query_options.get("lengths")
        models[name] = read_plain_model(MODELS / f"{name}.slim")
        lengths = None if lengths is None else np.asarray(lengths).tolist()
        cases[name] = {"rows": dense_queries(name).tolist(), "lengths": lengths}
    X = np.random.default_rng(0).normal(size=(60, 3))
    for kernel in WITH_FORMULA:
        models[kernel] = plain_model_of(slimsvm.SVC(kernel=kernel, gamma=0.5, coef0=0.5).fit(X, X[:, 0] * X[:, 1] > 0))
        cases[kernel] = {"rows": X[:9].tolist(), "lengths": None}
    found = answers(tmp_path, models, cases)
    for name, model in models.items():
        predictor, rows = PREDICTORS[model.kind](model), np.asarray(cases[name]["rows"])
        options = {} if cases[name]["lengths"] is None else {"lengths": cases[name]["lengths"]}
        score = getattr(predictor, "decision_function", predictor.predict)
        expected = np.asarray(score(rows, **options)).reshape(len(rows), -1)
        np.testing.assert_allclose(found[name]["scores"], expected, rtol=0, atol=1e-11 * np.abs(expected).max())
        assert found[name]["typed"] == found[name]["scores"]
        labels = predictor.predict(rows, **options).tolist()
        if model.kind in NUMBERS:
            np.testing.assert_allclose(found[name]["labels"], labels, rtol=1e-11)
        else:
            assert found[name]["labels"] == labels
        assert (found[name]["nFeatures"], found[name]["kind"]) == (predictor.n_features_in_, model.kind)


@needs_node
def test_probabilities(tmp_path):
    models = {name: plain_model_of(calibrated(name)) for name in NAMES}
    models["without"] = read_plain_model(MODELS / "svc-exact.slim")
    found = answers(tmp_path, models, {name: {"rows": some_rows()[:50].tolist(), "lengths": None} for name in models})
    assert "the model has no probabilities" in found.pop("without")["probabilities"]
    for name, answer in found.items():
        predicted, kind = np.array(answer["labels"]), models[name].kind
        if kind not in ("binary", "labels") and name != "ordinal-two":
            predicted = None
        elif kind != "labels":
            predicted = predicted == models[name].classes[1]
        expected = calibrated(name).predict_proba(some_rows()[:50])
        assert_agree(np.array(answer["probabilities"]), expected, predicted, 1e-9)


@needs_node
def test_rows_that_do_not_fit_are_errors(tmp_path):
    model = read_plain_model(MODELS / "svc-exact.slim")
    found = answers(
        tmp_path, {"far": model, "short": model}, {"far": {"rows": [[0, 0, None]]}, "short": {"rows": [[1]]}}
    )
    assert found["short"]["scores"] == "rows must have 3 features each, found 1 numbers for 1 rows"
    assert found["far"]["typed"] == found["far"]["scores"]  # null is 0 in JavaScript


@pytest.mark.parametrize("scaler", [None, StandardScaler(), MinMaxScaler(clip=True)])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_file_inside_says_what_the_model_says(scaler, kernel, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)) + 3.0, np.array(["a", "b", "c"])[np.arange(40) % 3]
    estimator = slimsvm.SVC(kernel=kernel, gamma=0.3)
    slimsvm.save((estimator if scaler is None else make_pipeline(scaler, estimator)).fit(X, y), tmp_path / "model.slim")
    (tmp_path / "inside.slim").write_bytes(wasm_module.slim_bytes(read_plain_model(tmp_path / "model.slim")))
    whole, inside = (slimsvm.load_predictor(tmp_path / f"{name}.slim") for name in ("model", "inside"))
    np.testing.assert_allclose(inside.decision_function(X), whole.decision_function(X), rtol=1e-12)
    np.testing.assert_array_equal(inside.predict(X), whole.predict(X))


def test_the_command_writes_beside_the_model(tmp_path, capsys):
    shutil.copy(MODELS / "svc-exact.slim", tmp_path / "model.slim")
    assert main(["export", str(tmp_path / "model.slim"), "--to", "wasm"]) == 0
    assert "model.mjs: ES module with WebAssembly, binary, kernel rbf" in capsys.readouterr().out
    assert (tmp_path / "model.mjs").stat().st_size > 50_000


def test_a_package_without_the_runtime_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(wasm_module, "RUNTIME", tmp_path / "none.wasm")
    with pytest.raises(FileNotFoundError, match=r"none\.wasm.*`make wasm` compiles"):
        slimsvm.load(MODELS / "svc-exact.slim").to_wasm(tmp_path / "model.mjs")
