"""What is measured: ours, scikit-learn's, and classes of other packages, imported where they are made.

A method makes an estimator of a set and its rows; they come in the order of what is usually wanted first.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import LinearSVC

from benchmarks.peers.sets import Rows, Set
from slimsvm import SVC, LearnedAxes, LowRank, NormalRanks

Array = np.ndarray
Make = Callable[[Set, Rows], Any]


def ours(**parameters: Any) -> Make:
    """Ours, with the set's C and γ."""
    return lambda of, rows: SVC(**{"C": of.C, "gamma": of.gamma, "random_state": 0} | parameters)


def theirs(of: Set, rows: Rows) -> Any:
    """scikit-learn's SVC, with the set's C and γ."""
    return SklearnSVC(C=of.C, gamma=of.gamma, cache_size=1000)


def part_of_rows(make: Make, n: int) -> Make:
    """The same on n random rows."""
    return lambda of, rows: OnPart(make(of, rows), n)


class OnPart:
    """An estimator that is trained on n random rows."""

    def __init__(self, estimator: Any, n: int):
        self.estimator, self.n = estimator, n

    def fit(self, X: Array, y: Array) -> OnPart:
        """Train on the part."""
        chosen = np.random.default_rng(0).permutation(len(y))[: self.n]
        self.estimator.fit(X[chosen], y[chosen])
        return self

    def __getattr__(self, name: str) -> Any:
        """Everything else is the estimator's."""
        return getattr(self.__dict__["estimator"], name)


def on_ranks(make: Make) -> Make:
    """The same of features that are replaced by normal deviates of their ranks, as trees see no more of them."""
    return lambda of, rows: make_pipeline(NormalRanks(), make(of, rows))


def on_axes(make: Make) -> Make:
    """The same of features that are turned to the axes along which the classes change."""
    return lambda of, rows: make_pipeline(LearnedAxes(random_state=0), make(of, rows))


def nystroem(k: int) -> Make:
    """scikit-learn's approximation by k rows, and a linear SVM."""

    def make(of: Set, rows: Rows) -> Any:
        gamma = 1.0 / (rows.X.shape[1] * rows.X.var()) if of.gamma == "scale" else of.gamma
        return make_pipeline(Nystroem(gamma=gamma, n_components=k, random_state=0), LinearSVC(C=of.C, random_state=0))

    return make


def other(module: str, name: str, **parameters: Any) -> Make:
    """A class of another package, imported where it is made."""
    return lambda of, rows: getattr(importlib.import_module(module), name)(**parameters)


def intelex(of: Set, rows: Rows) -> Any:
    """scikit-learn-intelex's SVC."""
    return importlib.import_module("sklearnex.svm").SVC(C=of.C, gamma=of.gamma)


class WithRowsHeldOut:
    """xRFM, which wants rows to stop by: a fifth of those that it is trained on."""

    def fit(self, X: Array, y: Array) -> WithRowsHeldOut:
        """Train on four fifths, stop by the others."""
        X, X_held, y, y_held = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
        xrfm = importlib.import_module("xrfm")
        self.model = xrfm.xRFM(device="cpu", tuning_metric="accuracy", verbose=False, random_state=0)
        self.model.fit(X, y, X_held, y_held)
        return self

    def predict(self, X: Array) -> Array:
        """Classes."""
        return self.model.predict(X)


def with_rows_held_out(of: Set, rows: Rows) -> Any:
    """xRFM, imported here so that the fit's time is its own."""
    importlib.import_module("xrfm")
    return WithRowsHeldOut()


def thunder(of: Set, rows: Rows) -> Any:
    """Thundersvm's SVC."""
    gamma = "auto" if of.gamma == "scale" else of.gamma
    return importlib.import_module("thundersvm").SVC(C=of.C, gamma=gamma)


TREES = (30, 100, 300)
LEARNED = 'gamma="learn", solver="exact"'
LEARNED_METRIC = {"gamma": "learn", "solver": "exact"}
METHODS: dict[str, Make] = {
    "SVC()": ours(),
    **{f"max_basis={k}": ours(max_basis=k) for k in (10, 25, 50, 100, 200, 500)},
    'max_basis="auto"': ours(max_basis="auto"),
    **{f'gamma="learn", max_basis={k}': ours(max_basis=k, gamma="learn") for k in (50, 200, 500)},
    'C="validate", gamma="learn", max_basis=200': ours(C="validate", gamma="learn", max_basis=200),
    'C="validate", gamma="validate"': ours(C="validate", gamma="validate"),
    **{f'kernel="{kernel}", C="validate", gamma="validate"': ours(kernel=kernel, C="validate", gamma="validate")
       for kernel in ("laplacian", "matern32")},
    **{f'kernel="{kernel}"': ours(kernel=kernel) for kernel in ("laplacian", "matern32")},
    **{f'{LEARNED}, kernel="{kernel}", C=5': ours(**LEARNED_METRIC, kernel=kernel, C=5.0)
       for kernel in ("laplacian", "matern32")},
    **{f'{LEARNED}, kernel="{kernel}", C="validate"': ours(**LEARNED_METRIC, kernel=kernel, C="validate")
       for kernel in ("rbf", "laplacian", "matern32")},
    'normal ranks, kernel="laplacian", C=5': on_ranks(ours(kernel="laplacian", C=5.0, gamma="scale")),
    'normal ranks, C="validate", gamma="validate"': on_ranks(ours(C="validate", gamma="validate")),
    'normal ranks, kernel="laplacian", C="validate", gamma="validate"': on_ranks(
        ours(kernel="laplacian", C="validate", gamma="validate")),
    **{f'normal ranks, {LEARNED}, kernel="{kernel}", C=5': on_ranks(ours(**LEARNED_METRIC, kernel=kernel, C=5.0))
       for kernel in ("laplacian", "matern32")},
    f'normal ranks, {LEARNED}, kernel="matern32", C="validate"': on_ranks(
        ours(**LEARNED_METRIC, kernel="matern32", C="validate")),
    **{f'learned axes, gamma="learn", max_basis={k}': on_axes(ours(max_basis=k, gamma="learn")) for k in (50, 200)},
    f'learned axes, {LEARNED}, kernel="matern32", C=5': on_axes(ours(**LEARNED_METRIC, kernel="matern32", C=5.0)),
    f'learned axes, {LEARNED}, kernel="matern32", C="validate"': on_axes(
        ours(**LEARNED_METRIC, kernel="matern32", C="validate")),
    **{f"SVC() on {n:,} rows": part_of_rows(ours(), n) for n in (4000, 16_000)},
    "LowRank(200)": ours(solver=LowRank(200)),
    "scikit-learn SVC": theirs,
    **{f"SVC on {n:,} rows": part_of_rows(theirs, n) for n in (500, 1000, 2000, 4000, 8000, 16_000)},
    **{f"Nystroem({k}) + LinearSVC": nystroem(k) for k in (50, 200, 1000)},
    "scikit-learn-intelex SVC": intelex,
    "thundersvm SVC": thunder,
    **{f"HistGradientBoosting, {n}": other(
        "sklearn.ensemble", "HistGradientBoostingClassifier", max_iter=n, random_state=0) for n in TREES},
    **{f"LightGBM, {n}": other("lightgbm", "LGBMClassifier", n_estimators=n, random_state=0, verbose=-1)
       for n in TREES},
    **{f"XGBoost, {n}": other("xgboost", "XGBClassifier", n_estimators=n, random_state=0) for n in TREES},
    **{f"CatBoost, {n}": other(
        "catboost", "CatBoostClassifier", iterations=n, random_state=0, verbose=0, allow_writing_files=False)
       for n in TREES},
    "xRFM": with_rows_held_out,
    "Falkon": other("falkon", "Falkon"),
}  # fmt: skip
OURS = ("SVC()", "max_basis", "gamma", "C=", "kernel", "normal ranks", "learned axes", "LowRank")
QUICK_METHODS = (
    "SVC()", "max_basis=25", "max_basis=100", 'max_basis="auto"', 'gamma="learn", max_basis=50', "scikit-learn SVC",
    "SVC on 500 rows", "Nystroem(200) + LinearSVC", "scikit-learn-intelex SVC", "HistGradientBoosting, 100",
    "LightGBM, 100", "XGBoost, 100", "CatBoost, 100", "xRFM", "Falkon",
)  # fmt: skip
