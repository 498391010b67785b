"""The web page in headless Chromium: it loads, asks for nothing, and predicts what Python predicts.

Where there is no Chromium its script runs in Node, with something that bears every question in place of the page.
"""

import json
import re
import subprocess

import numpy as np
import pytest
from scipy import ndimage
from sklearn.datasets import load_digits

import slimsvm
from chromium_for_tests import Browser
from node_for_tests import NODE
from slimsvm.cli import demo, main

STAND_IN = """
const anything = (own = {}) => new Proxy(function () {}, {
  get: (_, key) => (key in own ? own[key] : key === Symbol.toPrimitive ? () => "" : anything()),
  set: (_, key, value) => { own[key] = value; return true; },
  apply: () => anything(), construct: () => anything(),
});
const elements = {}, window = {}, Option = anything(), ImageData = anything(), OffscreenCanvas = anything();
const document = { getElementById: (id) => (elements[id] ??= anything()), createElement: () => anything() };
"""
ANSWERS = """
import { readFileSync } from "node:fs";
const asked = JSON.parse(readFileSync("rows.json")), shown = [...window.slimsvm.points, window.slimsvm.digits];
console.log(JSON.stringify({ checked: elements.checked.textContent,
  labels: shown.map((model, i) => model.predict(asked[i])), scores: shown.map((model, i) => model.scores(asked[i])) }));
"""


def strokes(digit, rng):
    """Images of 28 × 28 with a ring (0), an upright bar (1) or one that lies (2), somewhere near the middle."""
    rows, columns = np.mgrid[:28, :28] - 13.5 - rng.uniform(-1, 1, 2)[:, None, None]
    away = [np.abs(np.hypot(rows, columns) - rng.uniform(6, 9)), np.abs(columns), np.abs(rows)][digit]
    ink = np.clip(1.7 - away, 0, 1) * (np.abs(rows) < 10) * (np.abs(columns) < 10)
    return np.rint(255 * ink).ravel() / 255


@pytest.fixture(scope="module")
def shown():
    """The page's own models of points, and one of three digits."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = np.array([strokes(digit, rng) for digit in y])
    digits = slimsvm.SVC(gamma=0.02, C=10, max_basis=20, multi_class="crammer-singer").fit(X[:200], y[:200])
    return demo.point_models(), demo.Shown("three kinds of strokes", digits, X[200:])


@pytest.fixture(scope="module")
def browser(shown, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "page.html").write_text(demo.page(*shown), encoding="utf-8")
    with Browser(folder) as found:
        found.open((folder / "page.html").as_uri())
        found.wait_until("window.slimsvm !== undefined")
        yield found


def middle(browser, name, dx=0.0, dy=0.0):
    """A place of an element in the window, in shares of its width and height from the middle."""
    left, top, width, height = browser.evaluate(
        f"(() => {{ const e = document.getElementById('{name}'); e.scrollIntoView({{block: 'center'}});"
        "const {left, top, width, height} = e.getBoundingClientRect(); return [left, top, width, height]; })()"
    )
    return left + width * (0.5 + dx), top + height * (0.5 + dy)


def text(browser, name):
    return browser.evaluate(f"document.getElementById('{name}').textContent")


def test_it_predicts_100_rows_as_python_does(browser, shown):
    points, digits = shown
    given = {f"points[{i}]": model for i, model in enumerate(points)} | {"digits": digits}
    for name, (_, estimator, rows) in given.items():
        assert len(rows) == 100
        found = browser.evaluate(f"window.slimsvm.{name}.predict({np.asarray(rows).tolist()})")
        assert found == estimator.predict(rows).tolist()
        scores = np.array(browser.evaluate(f"window.slimsvm.{name}.scores({np.asarray(rows).tolist()})"))
        expected = estimator.decision_function(rows).reshape(len(rows), -1)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=5e-6 * np.abs(expected).max())
    assert text(browser, "checked").endswith("300 of 300 rows are predicted as in Python.")


@pytest.mark.skipif(NODE is None, reason="no Node")
def test_its_script_predicts_in_node_as_python_does(shown, tmp_path):
    points, digits = shown
    given = [*points, digits]
    (script,) = re.findall(r'<script type="module">(.*?)</script>', demo.page(*shown), flags=re.S)
    (tmp_path / "page.mjs").write_text(STAND_IN + script + ANSWERS, encoding="utf-8")
    (tmp_path / "rows.json").write_text(json.dumps([np.asarray(rows).tolist() for _, _, rows in given]))
    done = subprocess.run([NODE, "page.mjs"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["checked"].endswith("300 of 300 rows are predicted as in Python.")
    for (_, estimator, rows), labels, scores in zip(given, found["labels"], found["scores"], strict=True):
        assert labels == estimator.predict(rows).tolist()
        expected = estimator.decision_function(rows).reshape(len(rows), -1)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=5e-6 * np.abs(expected).max())


def test_a_person_places_points(browser, shown):
    estimator = shown[0][0].estimator
    browser.evaluate("document.getElementById('clear-points').click()")
    for k, (dx, dy) in enumerate([(0.2, 0.1), (-0.2, -0.1), (0.05, -0.3)]):
        browser.evaluate("document.querySelector('input[name=class]').click()")
        browser.mouse(middle(browser, "plane", dx, dy))
        label = browser.evaluate("document.querySelector('input[name=class]').parentNode.textContent.trim()")
        places = [(2 * a, -2 * b) for a, b in [(0.2, 0.1), (-0.2, -0.1), (0.05, -0.3)][: k + 1]]
        n = int(np.sum(estimator.predict(places) == label))
        assert text(browser, "agreement") == f"The model agrees on {n} of {k + 1} points."
    browser.evaluate("(() => { const m = document.getElementById('model'); m.value = 1; m.onchange(); })()")
    assert browser.evaluate("document.querySelectorAll('input[name=class]').length") == 3
    assert "40 vectors" in text(browser, "speed")


@pytest.mark.parametrize(("digit", "places"), [
    ("1", [(0, -0.35), (0, 0.0), (0, 0.35)]),
    ("2", [(-0.3, 0), (0.3, 0)]),
    ("0", [(0.3 * np.cos(t), 0.3 * np.sin(t)) for t in np.linspace(0, 2 * np.pi, 25)]),
])  # fmt: skip
def test_a_digit_that_is_drawn_is_recognised(digit, places, browser):
    """Wherever on the canvas it stands, and however large it is."""
    for share, shift in ((1.0, 0.0), (0.5, 0.2)):
        browser.evaluate("document.getElementById('clear-digit').click()")
        assert text(browser, "digit") == ""
        browser.mouse(*(middle(browser, "pad", share * dx + shift, share * dy) for dx, dy in places))
        assert text(browser, "digit") == digit
        assert len(re.findall("bar", browser.evaluate("document.getElementById('bars').innerHTML"))) >= 1


def test_nothing_went_wrong_and_nothing_was_asked_for(browser):
    assert browser.errors == []
    assert {url.split(":")[0] for url in browser.requests} <= {"file", "data"}
    assert sum(url.startswith("file") for url in browser.requests) == 1


def arc(x, y, width, height, first, last):
    """Places on an ellipse between two angles in degrees, clockwise from the right; y points down."""
    angles = np.radians(np.linspace(first, last, 20))
    return list(zip(x + width * np.cos(angles), y + height * np.sin(angles)))


# How people write digits, between −1 and 1: one list of places for each stroke.
DRAWN = {
    0: [arc(0, 0, 0.55, 1, -90, 270)],
    1: [[(-0.3, -0.6), (0, -1), (0, 1)]],
    2: [[*arc(0, -0.45, 0.5, 0.55, -170, 40), (-0.55, 1), (0.6, 1)]],
    3: [arc(0, -0.5, 0.5, 0.5, -150, 90) + arc(0, 0.5, 0.55, 0.5, -90, 150)],
    4: [[(-0.1, -1), (-0.55, 0.25), (0.6, 0.25)], [(0.3, -0.5), (0.3, 1)]],
    5: [[(-0.4, -1), (-0.45, -0.1), *arc(0, 0.4, 0.55, 0.6, -140, 150)], [(-0.4, -1), (0.5, -1)]],
    6: [[(0.25, -1), (-0.2, -0.5), *arc(0, 0.4, 0.5, 0.6, -170, 190)]],
    7: [[(-0.5, -1), (0.5, -1), (-0.1, 1)]],
    8: [arc(0, -0.5, 0.42, 0.5, 90, 450) + arc(0, 0.5, 0.5, 0.5, -90, 270)],
    9: [[*arc(0, -0.45, 0.45, 0.55, 0, 360), (0.4, 0.2), (0.2, 1)]],
}


def test_without_mnist_scikit_learns_digits_take_its_place(tmp_path, monkeypatch, capsys):
    """They are rows of the page's form, and digits that a person draws, upright or slanted, are recognised."""
    monkeypatch.setattr(demo, "find", lambda name: None)
    assert main(["demo", "--web", str(tmp_path / "page.html"), "--rows", "2000"]) == 0
    said = capsys.readouterr().err
    assert "scikit-learn's digits take its place" in said
    assert "learning vectors: 100%" in said
    with Browser(tmp_path) as browser:
        browser.open((tmp_path / "page.html").as_uri())
        browser.wait_until("window.slimsvm !== undefined")
        assert "2,000 of scikit-learn's digits" in text(browser, "digits")
        assert text(browser, "checked").endswith("300 of 300 rows are predicted as in Python.")
        left, top = middle(browser, "pad", -0.5, -0.5)
        right, bottom = middle(browser, "pad", 0.5, 0.5)
        found = {}
        for slant in (0.0, 0.25):
            for digit, strokes in DRAWN.items():
                browser.evaluate("document.getElementById('clear-digit').click()")
                for stroke in strokes:
                    places = [(0.5 + 0.32 * (x - slant * y), 0.5 + 0.32 * y) for x, y in stroke]
                    browser.mouse(*((left + (right - left) * x, top + (bottom - top) * y) for x, y in places))
                found[digit, slant] = text(browser, "digit")
        assert found == {(digit, slant): str(digit) for digit, slant in found}
        assert browser.errors == []


def test_digits_stand_upright():
    """Whatever the slant of an image is, its ink lies about one vertical line; the digit fills the rows."""
    image = demo.enlarged(load_digits().images[1])
    middle = (len(image) - 1) / 2
    for slant in (-0.3, 0.0, 0.3):
        slanted = ndimage.affine_transform(image, [[1, 0], [slant, 1]], offset=[0, -slant * middle], order=1)
        counted = demo.upright(slanted, demo.Change()).reshape(8, 8)
        np.testing.assert_allclose(255 * counted, np.rint(255 * counted), atol=1e-9)
        places = np.argwhere(counted > 0)
        assert (places[:, 0].min(), places[:, 0].max()) == (0, 7)
        ink, (y, x) = counted.ravel(), np.indices((8, 8)).reshape(2, -1)
        assert abs(np.cov(x, y, aweights=ink)[0, 1]) < 0.1 * np.cov(x, y, aweights=ink)[1, 1]


def test_changes_depend_on_the_generator_alone():
    image = demo.enlarged(load_digits().images[0])
    changed = [demo.upright(image, demo.Change.drawn(np.random.default_rng(seed))) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(changed[0], changed[1])
    assert np.abs(changed[0] - changed[2]).max() > 0.1


def test_a_folder_that_is_not_there_is_said_before_anything_is_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "digit_model", lambda max_rows: pytest.fail("trained"))
    assert main(["demo", "--web", str(tmp_path / "none" / "page.html")]) == 1
    assert "page.html: No such file or directory" in capsys.readouterr().err


def test_digits_of_mnist(data):
    """A small model of few rows; the page's own has 20,000."""
    data("mnist")
    shown = demo.digit_model(500, n_vectors=20)
    assert shown.name.startswith("500 of MNIST's digits (wrong on ")
    assert shown.rows.shape == (100, 784)
    assert shown.estimator.n_basis_ == 20
    assert '"text": "500 of MNIST' in demo.page(demo.point_models()[:1], shown)
