"""A first look: slimsvm beside scikit-learn's SVC on a few data sets, in one or two minutes.

Checkerboards and scikit-learn's handwritten digits need no file. Benchmark sets are added if their files are found
(`slimsvm datasets` lists them). Prints a table and writes a plot.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import affine_transform, center_of_mass, zoom
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as LibSVC

from slimsvm.cli import options
from slimsvm.cli.model_file import check_outputs
from slimsvm.cli.output import count, machine, one_line_warnings, say, table, write_json
from slimsvm.datasets import available, checkerboard, find, load
from slimsvm.deploy.predictors import PREDICTORS
from slimsvm.deploy.wasm_module import MODULE, base64, runtime_bytes, slim_bytes
from slimsvm.estimators import SVC
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.kernels import RBF
from slimsvm.whole_file import write_whole

Array = np.ndarray

PEER = "scikit-learn SVC"
SOLVERS: dict[str, dict[str, Any]] = {
    "SVC()": {},
    "SVC(max_basis=100)": {"max_basis": 100},
    "SVC(max_basis=50, gamma='learn')": {"max_basis": 50, "gamma": "learn"},
}
# C and gamma of published experiments, which scikit-learn's SVC gets, too, and how many rows it can train on in
# seconds.
SETS: dict[str, tuple[dict[str, float], int]] = {
    "adult": ({"C": 32, "gamma": 2**-7}, 10_000),
    "ijcnn1": ({"C": 32, "gamma": 2}, 20_000),
    "cod-rna": ({"C": 32, "gamma": 2**-3}, 20_000),
}


@dataclass(frozen=True)
class Settings:
    """Settings of the table's sizes."""

    rows: int = 20_000  # most training rows, unless --rows says another number
    board_rows: int = 20_000  # of the checkerboard
    test_rows: int = 10_000  # most test rows
    fit_seconds: float = 60  # limit of a fit of ours; the table says which fits reached it
    certificate_seconds: float = 20


SETTINGS = Settings()


@dataclass(frozen=True)
class Trial:
    """A data set with its split, C and gamma."""

    name: str
    params: dict[str, Any]
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


PAGE = "slimsvm-demo.html"


def main(argv: Sequence[str] | None = None, settings: Settings = SETTINGS) -> int:
    """Run the demonstration; returns 0."""
    parser = argparse.ArgumentParser(prog="python -m slimsvm.cli.demo", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv), settings)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``slimsvm demo``."""
    parser.add_argument("--output", default="demo", metavar="DIR", help="folder to write to (default: %(default)s)")
    parser.add_argument(
        "--rows",
        type=options.positive_integer,
        help="largest number of training rows; larger sets are sampled at random (default: 20000, adult: "
        "10000, because SVC's time grows with the square of it)",
    )
    parser.add_argument(
        "--web",
        nargs="?",
        const=PAGE,
        metavar="FILE",
        help="instead write one web page (default: %(const)s) in which a browser scores models: points in the plane, "
        "and digits that you draw, by a model of MNIST's, or of scikit-learn's where MNIST is not found",
    )


def run(args: argparse.Namespace, settings: Settings = SETTINGS) -> int:
    """Train, print the table, write the files; or write the web page."""
    files_of_sets = [path for info in available() for path in info.paths]
    if args.web is not None:
        check_outputs([args.web], files_of_sets)
        print(write_page(args.web, args.rows or settings.rows))
        return 0
    folder = Path(args.output)
    check_outputs([folder / "demo.json", folder / "demo.png"], files_of_sets)
    on = machine()
    print(f"slimsvm {on['slimsvm']}, {on['cores']} cores, {on['processor']}\n")
    with one_line_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        rows, fits = [], {}
        for trial in trials(args.rows or settings.rows, settings):
            for solver in (*SOLVERS, PEER):
                say(f"{trial.name}: {solver}")
                row, fits[trial.name, solver] = measure(trial, solver, settings.fit_seconds)
                rows.append(row)
    print(table([printed(row) for row in rows]))
    print(
        "\nseconds: of training; predict: of the test rows (at most 10,000). kernel evaluations: of training; LIBSVM,"
    )
    print(f"inside {PEER}, does not count them. gap: the objective is at most this far above the optimum. All fits of")
    print("a set have the same C and gamma; gamma='learn' starts from this gamma.\n")
    print(certified(fits, trial, settings.certificate_seconds))
    write_json(folder / "demo.json", {"machine": on, "rows": rows})
    written = [folder / "demo.json"]
    if find_spec("matplotlib") is None:
        say("no plot: matplotlib is not installed (pip install 'slimsvm[plots]')")
    else:
        written.append(draw(rows, folder / "demo.png"))
    print(f"written: {', '.join(map(str, written))}")
    return 0


def certified(fits: dict[tuple[str, str], Any], trial: Trial, max_seconds: float) -> str:
    """Return a sentence with the certificate of the last set's model of 100 vectors."""
    solver = "SVC(max_basis=100)"
    found = fits[trial.name, solver].certificate(trial.X_train, trial.y_train, max_seconds=max_seconds)
    return (
        f"certificate of {solver} on {trial.name}: its objective is {found.objective:.5g}, and no model of this "
        f"kernel and C has one below {found.lower_bound:.5g} ({count(found.kernel_evals)} evaluations)"
    )


def trials(max_rows: int, settings: Settings) -> Iterator[Trial]:
    """Yield the data sets, one at a time: those that need no file, and those that are found."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    X, y = digits.data[order].astype(np.float32), digits.target[order]
    yield part(
        "digits", {"C": 10, "gamma": 0.001}, (X[:1200], y[:1200], X[1200:], y[1200:]), max_rows, settings.test_rows
    )
    board = (*checkerboard(settings.board_rows, random_state=0), *checkerboard(settings.test_rows, random_state=1))
    yield part("checkerboard", {"C": 1, "gamma": 10}, board, max_rows, settings.test_rows)
    for name, (params, rows) in SETS.items():
        if find(name) is None:
            say(f"{name}: not found, left out (`slimsvm datasets` says where data are looked for)")
            continue
        data = load(name, download=False)
        arrays = (data.X_train.astype(np.float32), data.y_train, data.X_test.astype(np.float32), data.y_test)
        yield part(name, params, arrays, min(rows, max_rows), settings.test_rows)


def part(name: str, params: dict[str, Any], arrays: Sequence[Array], max_rows: int, test_rows: int) -> Trial:
    """Draw at most ``max_rows`` random rows to train on and ``test_rows`` to test on, always the same ones."""
    rng = np.random.default_rng(0)
    X_train, y_train, X_test, y_test = arrays
    train = np.sort(rng.permutation(len(y_train))[:max_rows])
    test = np.sort(rng.permutation(len(y_test))[:test_rows])
    return Trial(name, params, X_train[train], y_train[train], X_test[test], y_test[test])


def measure(trial: Trial, solver: str, max_seconds: float) -> tuple[dict[str, Any], Any]:
    """Train and test once: a row of the table, and the fitted estimator."""
    if solver == PEER:
        estimator: Any = LibSVC(**trial.params)
    else:
        params = {"kernel": RBF(trial.params["gamma"])} | trial.params | SOLVERS[solver]
        estimator = SVC(**params, max_seconds=max_seconds, random_state=0)
    begun = time.perf_counter()
    estimator.fit(trial.X_train, trial.y_train)
    trained = time.perf_counter()
    predicted = estimator.predict(trial.X_test)
    tested = time.perf_counter()
    row = {
        "data": trial.name,
        "n_train": len(trial.y_train),
        "n_test": len(trial.y_test),
        "solver": solver,
        "error_rate": float(np.mean(predicted != trial.y_test)),
        "fit_seconds": trained - begun,
        "predict_seconds": tested - trained,
        "n_vectors": len(estimator.support_vectors_) if solver == PEER else estimator.n_basis_,
        "n_kernel_evals": getattr(estimator, "n_kernel_evals_", None),
        "relative_gap": relative_gap(estimator),
        "status": getattr(estimator, "status_", "converged"),
    }
    return row, estimator


def relative_gap(estimator: Any) -> float | None:
    """Return the largest possible distance of the objective from the optimum, as a share; None without a bound."""
    bound = getattr(estimator, "lower_bound_", None)
    return None if bound is None else float((estimator.objective_ - bound) / estimator.objective_)


def printed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row in the form that the table shows."""
    evaluations, gap = row["n_kernel_evals"], row["relative_gap"]
    shown = {
        "data": row["data"],
        "rows": row["n_train"],
        "solver": row["solver"],
        "test error %": f"{100 * row['error_rate']:.2f}",
        "seconds": f"{row['fit_seconds']:.2f}",
        "predict": f"{row['predict_seconds']:.2f}",
        "vectors": row["n_vectors"],
        "kernel evaluations": None if evaluations is None else count(evaluations),
        "gap %": None if gap is None else f"{100 * gap:.2f}",
    }
    return shown if row["status"] == "converged" else {**shown, "ended by": row["status"]}


def draw(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Draw error against vectors and against seconds of every fit."""
    from matplotlib.figure import Figure

    from slimsvm.plots.drawing import colour_of_class

    figure = Figure(figsize=(13, 5), layout="constrained")
    names = list(dict.fromkeys(row["data"] for row in rows))
    shown = (
        ("n_vectors", "vectors of the model", "Error against model size"),
        ("fit_seconds", "seconds of training", "Error against training time"),
    )
    for axes, (of, label, title) in zip(figure.subplots(1, 2), shown, strict=True):
        for solver, marker in zip((*SOLVERS, PEER), "ovP*", strict=True):
            of_solver = [row for row in rows if row["solver"] == solver]
            axes.scatter(
                [row[of] for row in of_solver],
                [100 * row["error_rate"] for row in of_solver],
                c=[colour_of_class(names.index(row["data"])) for row in of_solver],
                marker=marker,
                s=90 if solver == PEER else 45,
            )
            axes.scatter([], [], c="grey", marker=marker, label=solver)
        for at, name in enumerate(names):
            axes.scatter([], [], c=colour_of_class(at), marker="s", label=name)
        axes.set(xscale="log", xlabel=label, ylabel="test error, %", title=title)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize="small", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=120, format=path.suffix.removeprefix("."))
    write_whole(path, [picture.getvalue()])
    return path


# ---- the web page: points in the plane and handwritten digits, scored in a browser by WebAssembly, without a network


TEMPLATE = Path(__file__).with_suffix(".html")
CHECKED_ROWS = 100
DIGIT_C, DIGIT_GAMMA = 10.0, {28: 0.02, 8: 0.25}  # gamma by the side of an image


class Shown(NamedTuple):
    """A fitted model, what it is called, and rows to compare predictions on."""

    name: str
    estimator: Any
    rows: Array


def write_page(path: Any, max_rows: int) -> str:
    """Train the models, write the page, and return a sentence about it."""
    # Missing files are an error before anything is trained.
    runtime_bytes()
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    say("points: training two models of at most 40 vectors")
    text = page(point_models(), digit_model(max_rows))
    write_whole(path, [text])
    return f"{path}: one page, {len(text):,} bytes, to be opened in a browser"


def page(points: list[Shown], digits: Shown) -> str:
    """Return the text of the page.

    ``points`` classify rows of two features between −1 and 1, of two or three classes; ``digits`` classifies images of
    28 × 28 or of 8 × 8 pixels, whose values are multiples of 1/255.
    """
    images = np.rint(255 * digits.rows).astype(np.uint8)
    drawn = {"images": [base64(image.tobytes()) for image in images], "side": math.isqrt(images.shape[1])}
    data = {
        "runtime": base64(runtime_bytes()),
        "points": [_part(shown) | {"rows": shown.rows.tolist()} for shown in points],
        "digits": _part(digits) | {"text": digits.name} | drawn,
    }
    module = MODULE.read_text(encoding="utf-8").replace("export ", "")
    # A page's script ends at the first "</".
    text = json.dumps(data).replace("</", "<\\/")
    return TEMPLATE.read_text(encoding="utf-8").replace("{module}", module).replace("{data}", text)


def _part(shown: Shown) -> dict[str, Any]:
    """Return a model's file and its predictions as parts of the page, by the name of the file."""
    model = plain_model_of(shown.estimator)
    labels = PREDICTORS[model.kind](model).predict(shown.rows).tolist()
    return {"name": shown.name, "file": base64(slim_bytes(model)), "labels": labels}


def point_models() -> list[Shown]:
    """Train classifiers of points on spirals, of two and of three classes."""
    rng, shown = np.random.default_rng(0), []
    rows = rng.uniform(-1, 1, size=(CHECKED_ROWS, 2))
    for n_arms, name in ((2, "two spirals"), (3, "three spirals")):
        X, y = spirals(1500, n_arms, rng)
        labels = np.array(["blue", "red", "green"])[y]
        estimator = SVC(C=10, gamma=8, max_basis=40, multi_class="crammer-singer", random_state=0)
        shown.append(Shown(name, estimator.fit(X, labels), rows))
    return shown


def spirals(n: int, n_arms: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return points between −1 and 1 on arms that turn about the origin, and the arm of each."""
    arm, radius = rng.integers(0, n_arms, n), np.sqrt(rng.uniform(0.01, 0.9, n))
    angle = 2 * np.pi * arm / n_arms + 5 * radius + rng.normal(scale=0.25, size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), arm


def digit_model(max_rows: int, n_vectors: int = 200) -> Shown:
    """Train a model of handwritten digits."""
    name, X, y, X_test, y_test = digit_rows()
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:max_rows])
    say(f"digits: training {n_vectors} vectors on {len(chosen):,} of {name}")
    gamma = DIGIT_GAMMA[math.isqrt(X.shape[1])]
    estimator = SVC(
        C=DIGIT_C, gamma=gamma, max_basis=n_vectors, multi_class="crammer-singer", verbose=1, random_state=0
    )
    estimator.fit(X[chosen], y[chosen])
    error = 1 - estimator.score(X_test, y_test)
    text = f"{len(chosen):,} of {name} (wrong on {100 * error:.2f} % of {len(y_test):,} others)"
    return Shown(text, estimator, np.asarray(X_test[:CHECKED_ROWS], np.float64))


# ---- images of handwritten digits for the web page: MNIST's, or scikit-learn's where MNIST is not found

BITMAP = 32  # pixels of the bitmaps whose blocks of 4 × 4 are counted
WIDEST = 24  # pixels of a digit in them
# Altered images of each of scikit-learn's digits, whose writers were few: a model of them is wrong on 18 % of MNIST's
# test digits. With images of 28 × 28 that were not set upright it was wrong on 29 %.
COPIES = 4


def digit_rows() -> tuple[str, Array, Array, Array, Array]:
    """Return the name of the set, and rows and labels to train and to test on: MNIST's digits, or scikit-learn's."""
    if find("mnist") is not None:
        data = load("mnist", download=False)
        X, X_test = (np.asarray(rows, np.float32) for rows in (data.X_train, data.X_test))
        return "MNIST's digits", X, np.asarray(data.y_train), X_test, np.asarray(data.y_test)
    say("MNIST is not found (`slimsvm datasets` says where it is looked for): scikit-learn's digits take its place")
    digits, rng = load_digits(), np.random.default_rng(0)
    order = rng.permutation(len(digits.target))
    test, train = order[:400], np.repeat(order[400:], COPIES)
    X, X_test = (
        np.array([upright(enlarged(image), change) for image, change in zip(digits.images[of], changes)], np.float32)
        for of, changes in ((train, [Change.drawn(rng) for _ in train]), (test, [Change()] * len(test)))
    )
    return "scikit-learn's digits, turned and stretched", X, digits.target[train], X_test, digits.target[test]


class Change(NamedTuple):
    """How an image is altered before its ink is counted: two angles in radians, log of width, least ink of a pixel."""

    turn: float = 0.0
    slant: float = 0.0
    stretch: float = 0.0
    threshold: float = 0.5

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Change:
        """Draw a change at random."""
        low, high = (-0.2, -0.2, -0.4, 0.3), (0.2, 0.2, 0.4, 0.8)
        return cls(*rng.uniform(low, high))


def enlarged(image: Array) -> Array:
    """Return one of scikit-learn's digits with 40 × 40 pixels between 0 and 1."""
    return np.clip(zoom(np.pad(image / 16, 1), 4, order=3, mode="grid-constant", grid_mode=True), 0, 1)


def upright(ink: Array, change: Change) -> Array:
    """Return an image in the form of scikit-learn's digits, 8 × 8 shares of ink; the page's script does the same.

    The digit is slanted until its rows' middles lie one above the other, and scaled to a bitmap 32 pixels high. The
    result is the share of ink in the bitmap's blocks of 4 × 4.
    """
    middle = np.array(center_of_mass(ink))
    rows, columns = np.indices(ink.shape) - middle[:, None, None]
    slope = np.clip(np.sum(ink * rows * columns) / np.sum(ink * rows * rows), -1, 1) + change.slant
    turn = np.array([[np.cos(change.turn), -np.sin(change.turn)], [np.sin(change.turn), np.cos(change.turn)]])
    matrix = turn @ np.array([[1, 0], [slope, 1]])
    places = (np.argwhere(ink > change.threshold) - middle) @ np.linalg.inv(matrix).T
    low, high = places.min(axis=0) - 0.5, places.max(axis=0) + 0.5
    height, width = high - low
    scale = height / BITMAP
    steps = matrix * [scale, max(scale * np.exp(change.stretch), width / WIDEST)]
    offset = middle + matrix @ ((low + high) / 2) - steps @ np.full(2, (BITMAP - 1) / 2)
    bitmap = affine_transform(ink, steps, offset=offset, output_shape=(BITMAP, BITMAP), order=1) > change.threshold
    return np.rint(255 * bitmap.reshape(8, 4, 8, 4).mean(axis=(1, 3))).ravel() / 255


if __name__ == "__main__":
    sys.exit(main())
