"""The fits of the BSCA paper, with C and gamma of its table 1 and without an intercept; each fit is one record."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from slimsvm import BSCA, BSGD, SVC
from slimsvm.budget import Merge, get_budget_rule
from slimsvm.datasets import checkerboard, load

LAST = 5  # epochs at the end of a curve that are taken together
SHOWN = 60  # most epochs of a curve that are kept
DIGITS = 5  # of the numbers of a curve


class Setting(NamedTuple):
    """C and gamma of a set in the paper, where its rows come from, and how the features are scaled.

    ``limit_epochs``: how long the shares of lemma 2 take to their limit on 500 rows. With C large that is thousands of
    epochs, and some time after it rounding stops the steps on free rows too.
    """

    C: float
    gamma: float
    limit_epochs: int
    source: str = ""
    scaling: Literal["default", "minmax"] = "default"


SETS = {
    "adult": Setting(32.0, 2.0**-7, 2000),
    # The exact SVM has the paper's accuracy, 96.33 %, with features scaled to [0, 1]; standardised it has 96.64 %.
    "cod-rna": Setting(32.0, 2.0**-3, 2000, scaling="minmax"),
    "ijcnn1": Setting(32.0, 2.0, 1000),
    "covtype": Setting(128.0, 2.0**-3, 6000, source="covtype-457k"),
    "susy": Setting(32.0, 2.0**-7, 8000),
    "checkerboard": Setting(1.0, 10.0, 150),
}
PAPERS_FORM = {"average": False, "selection": "uniform", "maintenance": Merge(two_signs=False)}
METHODS = ("bsca", "bsgd", "our-bsca", "our-bsgd")
IN_CURVES = ("primal", "dual", "dual_of_model", "merge_fraction", "zero_step_fraction", "degradation", "training_error")
MOST_EXACT = 60_000  # rows up to which the exact SVM is trained


class Trial(NamedTuple):
    """What is fitted: a method in a part of the experiments, with a budget where it has one."""

    part: str
    method: str
    max_basis: int | None = None

    @property
    def is_random(self) -> bool:
        """Whether runs differ, and are worth repeating."""
        return self.part in ("no-budget", "budget")


def trials(args: argparse.Namespace, n_train: int) -> Iterator[Trial]:
    """Everything that is fitted on a set of so many rows."""
    if args.exact and n_train <= MOST_EXACT:
        yield Trial("exact", "exact")
    for part, rows in (("no-budget", args.no_budget_rows), ("lemma-2", args.limit_rows)):
        if rows:
            yield from (Trial(part, method) for method in args.methods)
    for budget in args.max_basis:
        yield from (Trial("budget", method, budget) for method in args.methods)


def measure(trial: Trial, name: str, data: Any, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """The record of one trial with one seed."""
    setting, begun = SETS[name], time.perf_counter()
    if trial.part == "exact":
        found = exact_svm(setting, data, args.n_jobs)
    elif trial.part == "no-budget":
        data = some_rows(data, args.no_budget_rows)
        found = without_budget(trial.method, setting, data, seed, args)
    elif trial.part == "lemma-2":
        data = some_rows(data, args.limit_rows)
        found = lemma_2(trial.method, setting, data, args)
    else:
        found = within_budget(trial, setting, data, seed, args)
    _, y, _, y_test = data
    return {
        **trial._asdict(), "data": name, "seed": seed, "n_train": len(y), "n_test": len(y_test), "C": setting.C,
        "gamma": setting.gamma, **found, "whole_seconds": time.perf_counter() - begun,
    }  # fmt: skip


def within_budget(trial: Trial, setting: Setting, data: Any, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """A fit with its finish, and a curve without it."""
    assert trial.max_basis is not None
    solver = solver_of(trial.method, trial.max_basis, args)
    found = finished(solver, setting, data, seed, args.n_jobs)
    if args.curve_epochs:
        found["curve"] = shortened(curve(solver, setting, data, seed, args.n_jobs, args.curve_epochs))
    return found


def solver_of(method: str, budget: int, args: argparse.Namespace) -> Any:
    """The paper's method, or ours as the options have it."""
    solver = BSCA(budget, epochs=args.epochs) if method.endswith("bsca") else BSGD(budget, epochs=args.epochs)
    if not method.startswith("our-"):
        form = PAPERS_FORM | ({"damping": 0.0} if method == "bsca" else {})
        return solver.set_params(**form)
    rule = get_budget_rule(args.rule)
    if "two_signs" in rule.get_params():
        rule.set_params(two_signs=args.two_signs)
    solver.set_params(maintenance=rule, selection=args.selection, average=args.average)
    return solver.set_params(damping=args.damping) if method == "our-bsca" and args.damping is not None else solver


def exact_svm(setting: Setting, data: Any, n_jobs: int | None) -> dict[str, Any]:
    """The exact SVM: its error, and the shares of rows that lemma 2 says steps will be made on in the limit."""
    X, y, X_test, y_test = data
    begun = time.perf_counter()
    clf = make("exact", setting, 0, n_jobs, tol=1e-4).fit(X, y)
    seconds, alpha = time.perf_counter() - begun, np.abs(clf.basis_coef_[:, 0])
    return {
        "seconds": seconds,
        "test_error": error_of(clf, X_test, y_test),
        "n_features": X.shape[1],
        "n_vectors": clf.n_basis_,
        "limits": {
            "bsca": float(np.mean(alpha < setting.C * (1 - 1e-9)) * len(alpha) / len(y)),
            "bsgd": float(alpha.sum() / (setting.C * len(y))),
        },
    }


def without_budget(method: str, setting: Setting, data: Any, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """A curve with room for every row."""
    # One point less than rows: with room for all, plain ascent to the end would take over.
    solver = solver_of(method, len(data[1]) - 1, args).set_params(maintenance="remove")
    points = shortened(curve(solver, setting, data, seed, args.n_jobs, max(args.curve_epochs, LAST)))
    return {"seconds": points[-1]["seconds"], "test_error": points[-1]["test_error"], "curve": points}


def lemma_2(method: str, setting: Setting, data: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Share of steps that change the model in the last tenth of many epochs without a budget, beside its limit."""
    X, y, X_test, y_test = data
    begun = time.perf_counter()
    solver = solver_of(method, len(y) - 1, args)
    solver.set_params(epochs=args.limit_epochs or setting.limit_epochs, maintenance="remove", finish=False)
    clf = make(solver, setting, 0, args.n_jobs).fit(X, y)
    shares = np.array([1.0 - record["zero_step_fraction"] for record in clf.history_])
    return {
        "seconds": time.perf_counter() - begun,
        "test_error": error_of(clf, X_test, y_test),
        "epochs": len(shares),
        "observed": float(shares[-max(1, len(shares) // 10) :].mean()),
        "limit": exact_svm(setting, data, args.n_jobs)["limits"][method.removeprefix("our-")],
    }


def some_rows(data: Any, n: int) -> Any:
    """The data with at most n of the training rows."""
    X, y, X_test, y_test = data
    chosen = np.random.default_rng(0).permutation(len(y))[:n]
    return X[chosen], y[chosen], X_test, y_test


def read(name: str, quick: bool) -> tuple[Any, Any, Any, Any]:
    """Training rows and labels, test rows and labels."""
    if name == "checkerboard":
        n = 3000 if quick else 100_000
        return *checkerboard(n, random_state=0), *checkerboard(10_000, random_state=1)
    data = load(SETS[name].source or name, scaling=SETS[name].scaling)
    return data.X_train, data.y_train, data.X_test, data.y_test


def make(solver: Any, setting: Setting, seed: int, n_jobs: int | None, **parameters: Any) -> SVC:
    """The estimator with the settings of a set."""
    return SVC(
        C=setting.C, gamma=setting.gamma, solver=solver, intercept="none", random_state=seed, n_jobs=n_jobs,
        precision="float32", **parameters,
    )  # fmt: skip


def error_of(clf: SVC, X_test: Any, y_test: Any) -> float:
    """Share of test rows with a wrong label."""
    return float(np.mean(clf.predict(X_test) != y_test))


def finished(solver: Any, setting: Setting, data: Any, seed: int, n_jobs: int | None) -> dict[str, Any]:
    """One fit with its finish."""
    X, y, X_test, y_test = data
    head = np.linspace(0, len(y) - 1, min(len(y), 5 * solver.max_basis)).astype(int)
    make(solver, setting, seed, n_jobs).fit(X[head], y[head])  # whatever happens once per process
    begun = time.perf_counter()
    clf = make(solver, setting, seed, n_jobs).fit(X, y)
    return {
        "seconds": time.perf_counter() - begun,
        "test_error": error_of(clf, X_test, y_test),
        "objective": clf.objective_,
        "bound_in_basis": clf.counters_["bound_in_basis"],
        "n_vectors": clf.n_basis_,
        "kernel_evals": clf.n_kernel_evals_,
    }


def curve(solver: Any, setting: Setting, data: Any, seed: int, n_jobs: int | None, epochs: int) -> list[dict[str, Any]]:
    """One point per epoch of a fit without finish, each epoch a warm start from the last."""
    X, y, X_test, y_test = data
    solver = clone(solver).set_params(epochs=1, finish=False)
    points, seconds = [], 0.0
    # A generator goes on from epoch to epoch; a number would repeat the first one's order.
    clf = make(solver, setting, seed, n_jobs, warm_start=True).set_params(random_state=np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # drift, which the curve shows
        for epoch in range(1, epochs + 1):
            clf.fit(X, y)
            record = clf.history_[-1]
            seconds += record["seconds"]
            point = {name: record.get(name) for name in IN_CURVES}
            points.append({"epoch": epoch, "seconds": seconds, "test_error": error_of(clf, X_test, y_test), **point})
    return points


def shortened(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The curve with few digits and at most SHOWN epochs, which lie closer together at the start; the LAST all stay."""
    n = len(points)
    epochs = range(1, n + 1) if n <= SHOWN else np.geomspace(1, n, SHOWN - LAST).round().astype(int).tolist()
    kept = sorted({*epochs, *range(max(1, n - LAST + 1), n + 1)})
    return [{name: rounded(value) for name, value in points[epoch - 1].items()} for epoch in kept]


def rounded(value: Any) -> Any:
    """The number with DIGITS digits; whole numbers and None as they are."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
