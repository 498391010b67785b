"""JSON models: a predictor that is written after the page alone finds the estimators' labels."""

import json
import math
import re
from itertools import accumulate, chain, combinations, pairwise, product
from pathlib import Path

import numpy as np
import pytest

import slimsvm
from calibrated_for_tests import NAMES, assert_agree, calibrated, some_rows
from fixtures.make_models import MODELS, SHIPPED, data_of, dense_queries
from slimsvm.cli import main
from slimsvm.deploy.decisions import NUMBERS
from slimsvm.estimators._shared.saving import plain_model_of

PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "json.md"


def additive_value(kernel, x, z):
    widths = kernel["widths"] or [1] * len(x)
    shares = kernel["shares"] or [1.0] * len(widths)
    gamma = kernel["gamma"] if isinstance(kernel["gamma"], list) else [kernel["gamma"]] * len(x)

    def of_columns(lo, hi, factor):
        own = {"name": kernel["family"], "gamma": [factor * g for g in gamma[lo:hi]]}
        return kernel_value({"kernel": own}, x[lo:hi], z[lo:hi])

    ends = list(accumulate(widths))
    terms = [of_columns(end - width, end, len(widths)) for end, width in zip(ends, widths, strict=True)]
    mean = math.fsum(share * term for share, term in zip(shares, terms, strict=True)) / math.fsum(shares)
    whole = kernel["interaction"]
    return (1 - whole) * mean + whole * of_columns(0, len(x), 1)


def kernel_value(model, x, z):
    kernel = model["kernel"]
    if kernel["name"] == "precomputed":
        return x[int(z[0])]
    if isinstance(z, dict):
        z = [dict(zip(z["features"], z["values"], strict=True)).get(f, 0.0) for f in range(len(x))]
    if kernel["name"] in ("poly", "sigmoid"):
        inner = kernel["gamma"] * math.fsum(a * b for a, b in zip(x, z, strict=True)) + kernel["coef0"]
        return math.tanh(inner) if kernel["name"] == "sigmoid" else inner ** kernel["degree"]
    if kernel["name"] == "additive":
        return additive_value(kernel, x, z)
    gamma = kernel["gamma"] if isinstance(kernel["gamma"], list) else [kernel["gamma"]] * len(x)
    terms = list(zip(gamma, x, z, strict=True))
    if kernel["name"] == "laplacian":
        return math.exp(-math.fsum(g * abs(a - b) for g, a, b in terms))
    square = math.fsum(g * (a - b) ** 2 for g, a, b in terms)
    if kernel["name"] == "rbf":
        return math.exp(-square)
    if kernel["name"] == "rational_quadratic":
        return 1 / (1 + square)
    s = math.sqrt(6 * square)
    return (1 + s) * math.exp(-s)


def row_scores(model, x):
    values = x if model["vectors"] is None else [kernel_value(model, x, z) for z in model["vectors"]]
    return [
        math.fsum([b, *(v * row[c] for v, row in zip(values, model["coef"], strict=True))])
        for c, b in enumerate(model["intercept"])
    ]


def prediction(model, scores):
    kind = model["kind"]
    if kind in ("regression", "ranking"):
        return scores[0]
    if kind == "counts":
        return [math.exp(score) for score in scores] if len(scores) > 1 else math.exp(scores[0])
    if kind in ("targets", "quantiles"):
        return sorted(scores) if kind == "quantiles" else scores
    if kind == "one class":
        return 1 if scores[0] >= 0 else -1
    if kind == "labels":
        return [int(score > 0) for score in scores]
    classes = model["classes"]
    points = scores
    if kind == "binary":
        points = [0.0, scores[0]]
    elif kind == "ordinal":
        points = [math.fsum(scores[0] - t for t in model["thresholds"][:c]) for c in range(len(classes))]
    elif kind == "pairs":
        points, sums = [0] * len(classes), [0.0] * len(classes)
        for score, (a, b) in zip(scores, combinations(range(len(classes)), 2), strict=True):
            points[a if score > 0 else b] += 1
            sums[a], sums[b] = sums[a] + score, sums[b] - score
        if model.get("break_ties"):
            points = [votes + total / (3 * (abs(total) + 1)) for votes, total in zip(points, sums, strict=True)]
    return classes[points.index(max(points))]


def log_odds(parameters, s, keeps_sign):
    u, w, c, b = parameters

    def rising(s):
        return math.log((1 + math.exp(s)) / 2)

    curve = u * rising(s) - w * rising(-s)
    sign = -1 if s < 0 else 1
    if not keeps_sign:
        return curve + c * sign * math.log(1 + abs(s)) + b
    own = sign * b
    v = sign * curve + c * math.log(1 + abs(s))
    return sign * max(v + min(own, v), 0.001 * v)


def probabilities(model, scores):
    def share(z):
        return 1 / (1 + math.exp(-z))

    kind, lines = model["kind"], model["calibration"]
    if kind == "binary":
        z = log_odds(lines[0], scores[0], keeps_sign=True)
        return [share(-z), share(z)]
    if kind == "labels":
        return [share(log_odds(line, s, keeps_sign=True)) for line, s in zip(lines, scores, strict=True)]
    k = len(model["classes"])
    if kind == "ordinal":
        lines = lines if len(lines) > 1 else lines * (k - 1)
        pairs = zip(lines, sorted(model["thresholds"]), strict=True)
        above = [share(log_odds(line, scores[0] - t, keeps_sign=k == 2)) for line, t in pairs]
        return [a - b for a, b in pairwise([1, *above, 0])]
    sums = [1.0] * k
    for at, (i, j) in enumerate(combinations(range(k), 2)):
        s = scores[at] if kind == "pairs" else scores[i] - scores[j]
        z = log_odds(lines[at], s, keeps_sign=False)
        sums[i], sums[j] = sums[i] + math.exp(-z), sums[j] + math.exp(z)
    shares = [1 / total for total in sums]
    return [p / math.fsum(shares) for p in shares]


def sequence_prediction(model, rows):
    """All labellings are tried."""
    w, width = model["window"], len(rows[0])
    padded = [[0.0] * width] * w + rows + [[0.0] * width] * w
    scores = [row_scores(model, list(chain(*padded[t : t + 2 * w + 1]))) for t in range(len(rows))]

    def total(labels):
        steps = [model["transitions"][a][b] for a, b in pairwise(labels)]
        emitted = [row[c] for row, c in zip(scores, labels, strict=True)]
        return math.fsum([model["start"][labels[0]], *emitted, *steps, model["end"][labels[-1]]])

    best = max(product(range(model["n_outputs"]), repeat=len(rows)), key=total)
    return [model["classes"][c] for c in best]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_page_is_enough_to_predict(name, tmp_path):
    data, queries = data_of(name), dense_queries(name)
    estimator = slimsvm.load(MODELS / f"{name}.slim")
    estimator.to_json(tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text(encoding="ascii"))
    expected = estimator.predict(data.queries, **data.query_options).tolist()
    if model["kind"] == "sequences":
        lengths = data.query_options["lengths"]
        parts = np.split(queries, np.cumsum(lengths)[:-1])
        found = [label for part in parts for label in sequence_prediction(model, part.tolist())]
    else:
        found = [prediction(model, row_scores(model, x)) for x in queries.tolist()]
    if model["kind"] in NUMBERS:
        np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6 * np.abs(expected).max())
    else:
        assert found == expected


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"scaled"}))
def test_the_page_is_enough_for_probabilities(name, tmp_path):
    estimator, queries = calibrated(name), some_rows()[10:60]
    estimator.to_json(tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text(encoding="ascii"))
    found = np.array([probabilities(model, row_scores(model, x)) for x in queries.tolist()])
    assert_agree(found, estimator.predict_proba(queries), tolerance=1e-9)


def test_the_page_names_every_entry():
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), flags=re.M)
    named = {name for row in rows for name in re.findall(r'`"?([\w. ]+)"?`', row)}
    from slimsvm.deploy.json_model import json_parts
    from slimsvm.deploy.plain_model import KERNELS, read_plain_model

    models = [read_plain_model(MODELS / f"{name}.slim") for name in SHIPPED]
    for model in [*models, plain_model_of(calibrated("binary"))]:
        parts = json_parts(model)
        assert {*parts, parts["kind"]} <= named
    assert set(KERNELS) <= named


def test_the_command_writes_beside_the_model(tmp_path, capsys):
    slimsvm.SVR(kernel="linear").fit([[0.0], [1.0]], [0.0, 1.0]).save(tmp_path / "line.slim")
    assert main(["export", str(tmp_path / "line.slim"), "--to", "json"]) == 0
    assert "line.json: JSON, regression, kernel linear, 1 feature, 1 score" in capsys.readouterr().out
    assert json.loads((tmp_path / "line.json").read_text())["vectors"] is None
