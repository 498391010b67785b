"""One page without a network: points in the plane and handwritten digits, scored in a browser by WebAssembly."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slimsvm.cli.output import say
from slimsvm.datasets import find, load
from slimsvm.deploy.predictors import PREDICTORS
from slimsvm.deploy.wasm_module import MODULE, base64, runtime_bytes, slim_bytes
from slimsvm.estimators import SVC
from slimsvm.estimators._shared.model_files import plain_model_of
from slimsvm.whole_file import write_whole

Array = np.ndarray

TEMPLATE = Path(__file__).with_suffix(".html")
CHECKED_ROWS = 100
DIGIT_VECTORS, DIGIT_C, DIGIT_GAMMA = 500, 10.0, 0.02
MISSING = (
    "This part was left out: it needs the MNIST digits, which were not on the machine that made the page. "
    "<code>slimsvm datasets</code> says where they are looked for; with them <code>slimsvm demo --web</code> trains a "
    "model of 500 vectors in a minute or two."
)


class Shown(NamedTuple):
    """A fitted model, what it is called, and rows to compare predictions on."""

    name: str
    estimator: Any
    rows: Array


def write_page(path: Any, max_rows: int | None = None) -> str:
    """Train the models, write the page; a sentence on it."""
    # What is missing is said before anything is trained.
    runtime_bytes()
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    digits = digit_model(max_rows)
    text = page(point_models(), digits)
    write_whole(path, [text])
    left_out = "" if digits else "; without the digits, since MNIST was not found (`slimsvm datasets`)"
    return f"{path}: one page, {len(text):,} bytes, to be opened in a browser{left_out}"


def page(points: list[Shown], digits: Shown | None) -> str:
    """The text of the page.

    Parameters
    ----------
    points : list of Shown
        Classifiers of two features between −1 and 1, two or three classes.
    digits : Shown or None
        A classifier of 784 features, multiples of 1/255: images of 28 × 28 pixels.
    """
    data: dict[str, Any] = {"runtime": base64(runtime_bytes()), "points": [], "digits": None, "missing": MISSING}
    for shown in points:
        data["points"].append(_part(shown) | {"rows": shown.rows.tolist()})
    if digits is not None:
        images = np.rint(255 * digits.rows).astype(np.uint8)
        data["digits"] = _part(digits) | {"images": [base64(image.tobytes()) for image in images], "text": digits.name}
    module = MODULE.read_text(encoding="utf-8").replace("export ", "")
    # A page's script ends at the first "</".
    text = json.dumps(data).replace("</", "<\\/")
    return TEMPLATE.read_text(encoding="utf-8").replace("{module}", module).replace("{data}", text)


def _part(shown: Shown) -> dict[str, Any]:
    """A model's file and its predictions, by the file."""
    model = plain_model_of(shown.estimator)
    labels = PREDICTORS[model.kind](model).predict(shown.rows).tolist()
    return {"name": shown.name, "file": base64(slim_bytes(model)), "labels": labels}


def point_models() -> list[Shown]:
    """Classifiers of points on spirals, of two and of three classes."""
    rng, shown = np.random.default_rng(0), []
    rows = rng.uniform(-1, 1, size=(CHECKED_ROWS, 2))
    for n_arms, name in ((2, "two spirals"), (3, "three spirals")):
        X, y = spirals(1500, n_arms, rng)
        labels = np.array(["blue", "red", "green"])[y]
        machine = SVC(C=10, gamma=8, max_basis=40, multi_class="crammer-singer", random_state=0)
        shown.append(Shown(f"{name}, {machine.max_basis} vectors", machine.fit(X, labels), rows))
    return shown


def spirals(n: int, n_arms: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points between −1 and 1 on arms that turn about the origin, and the arm of each."""
    arm, radius = rng.integers(0, n_arms, n), np.sqrt(rng.uniform(0.01, 0.9, n))
    angle = 2 * np.pi * arm / n_arms + 5 * radius + rng.normal(scale=0.25, size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), arm


def digit_model(max_rows: int | None) -> Shown | None:
    """A model of MNIST's digits, trained now; None where they are not on this machine."""
    if find("mnist") is None:
        return None
    data = load("mnist", download=False)
    X, y = np.asarray(data.X_train, np.float32), np.asarray(data.y_train)
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:max_rows])
    say(f"digits: training {DIGIT_VECTORS} vectors on {len(chosen):,} rows, a minute or two")
    machine = SVC(C=DIGIT_C, gamma=DIGIT_GAMMA, max_basis=DIGIT_VECTORS, multi_class="crammer-singer", random_state=0)
    machine.fit(X[chosen], y[chosen])
    error = 1 - machine.score(np.asarray(data.X_test, np.float32), data.y_test)
    name = f"{len(chosen):,} digits of MNIST (wrong on {100 * error:.2f} % of {len(data.y_test):,} others)"
    return Shown(name, machine, np.asarray(data.X_test[:CHECKED_ROWS], np.float64))
