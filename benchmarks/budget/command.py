"""Training on a budget: BSCA and BSGD with the settings of the BSCA paper (its table 1), without an intercept.

bsca and bsgd are as in the paper: steps as they are (damping 0), the model after the last step, rows drawn with
replacement, mergers of points of one sign. our-bsca and our-bsgd are the library's defaults, or what the options say.

finish: a few epochs and the convex finish. curves: one epoch after another without it, each with its objectives,
fractions and test error. In both the clock stops while the model is tested. no budget: the same steps with room for
every row, on some of the rows. lemma 2: on fewer rows, so long that the share of steps that change the model comes to
its limit, beside what the exact SVM's free and bounded rows say it is. --quick takes a minute.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks.budget.figures import plot
from slimsvm import BSCA, BSGD, SVC
from slimsvm.budget import BUDGET_RULES, Merge, get_budget_rule
from slimsvm.cli import options
from slimsvm.cli.output import say
from slimsvm.datasets import checkerboard, load

LAST = 5  # epochs at the end of a curve that its mean and deviation are taken over


class Setting(NamedTuple):
    """C and gamma of a set, and the test error (%) of the exact SVM as published or, where ``ours``, as measured.

    ``limit_epochs``: how long lemma 2's shares take to their limit on 500 rows. With C large that is thousands of
    epochs, and some time after it rounding stops the steps on free rows too.
    """

    C: float
    gamma: float
    exact: float
    source: str
    limit_epochs: int


PAPER, OURS = "paper's table 1", "scikit-learn's SVC, this split"
SETS = {
    "adult": Setting(32.0, 2.0**-7, 14.93, OURS, 2000),
    "cod-rna": Setting(32.0, 2.0**-3, 3.36, OURS, 2000),
    "ijcnn1": Setting(32.0, 2.0, 1.30, OURS, 1000),
    "covtype": Setting(128.0, 2.0**-3, 24.12, PAPER, 6000),
    "susy": Setting(32.0, 2.0**-7, 20.21, PAPER, 8000),
    "checkerboard": Setting(1.0, 10.0, float("nan"), "", 150),
}
PAPERS_FORM = {"average": False, "selection": "uniform", "maintenance": Merge(two_signs=False)}
METHODS = ("bsca", "bsgd", "our-bsca", "our-bsgd")
IN_CURVES = ("primal", "dual", "dual_of_model", "merge_fraction", "zero_step_fraction", "degradation", "training_error")
MOST_EXACT = 60_000  # rows up to which the exact SVM is trained

__all__ = ["add_arguments", "plot", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks budget``."""
    parser.add_argument("--quick", action="store_true", help="a minute: the checkerboard, two seeds, short curves")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all of them")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all four")
    parser.add_argument(
        "--max-basis", nargs="+", type=options.positive_integer, default=[200, 500, 1000], metavar="B", help="budgets"
    )
    ours = parser.add_argument_group("our-bsca and our-bsgd")
    ours.add_argument("--rule", choices=BUDGET_RULES, default="merge", help="default: %(default)s")
    ours.add_argument("--two-signs", action=argparse.BooleanOptionalAction, default=True, help="merge points of both")
    ours.add_argument(
        "--selection", choices=("permutation", "uniform", "adaptive"), default="permutation", help="order of rows"
    )
    ours.add_argument("--damping", type=float, metavar="D", help="of our-bsca's steps (default: the library's)")
    ours.add_argument("--average", action=argparse.BooleanOptionalAction, default=True, help="of the last models")
    parser.add_argument(
        "--epochs", type=options.positive_integer, default=3, help="before the finish (default: %(default)s)"
    )
    parser.add_argument("--curve-epochs", type=int, default=20, metavar="E", help="of the curves; 0 for none")
    parser.add_argument(
        "--no-budget-rows", type=int, default=5000, metavar="N", help="rows of the curves without budget; 0 for none"
    )
    parser.add_argument("--limit-rows", type=int, default=500, metavar="N", help="rows for lemma 2; 0 for none")
    parser.add_argument(
        "--limit-epochs", type=options.positive_integer, metavar="E", help="epochs for lemma 2 (default: by set)"
    )
    parser.add_argument(
        "--exact", action=argparse.BooleanOptionalAction, default=True, help=f"the exact SVM, up to {MOST_EXACT} rows"
    )
    parser.add_argument("--seeds", type=options.positive_integer, default=5, help="runs (default: %(default)s)")
    parser.add_argument("--n-jobs", type=options.jobs, default=None, metavar="T", help="threads (default: all)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit everything.

    Returns
    -------
    dict
        ``records`` (one per fit, curves within), and ``table``: means over the seeds.
    """
    if args.quick:
        args.sets, args.max_basis, args.seeds, args.curve_epochs = ["checkerboard"], [50], 2, LAST
        args.no_budget_rows, args.limit_rows = min(args.no_budget_rows, 500), min(args.limit_rows, 300)
    records: list[dict[str, Any]] = []
    exact: list[dict[str, Any]] = []
    free: list[dict[str, Any]] = []
    limits: list[dict[str, Any]] = []
    for name in args.sets:
        data = read(name, args.quick)
        if args.no_budget_rows:
            free += without_budget(name, data, args)
        if args.limit_rows:
            limits += lemma_2(name, data, args)
        if args.exact and len(data[1]) <= MOST_EXACT:
            exact.append({"data": name, **exact_svm(SETS[name], data, args.n_jobs)})
            say(f"{name}, exact SVM: {100 * exact[-1]['test_error']:.2f} % in {exact[-1]['seconds']:.1f} s")
        for method, budget, seed in trials(args):
            solver = solver_of(method, budget, args)
            record = {"data": name, "method": method, "max_basis": budget, "seed": seed, "n_train": len(data[1])}
            record |= finished(solver, SETS[name], data, seed, args.n_jobs)
            if args.curve_epochs:
                record["curve"] = curve(solver, SETS[name], data, seed, args.n_jobs, args.curve_epochs)
            told = f"{100 * record['test_error']:.2f} % in {record['seconds']:.2f} s"
            say(f"{name}, {method}, B={budget}, seed {seed}: {told}")
            records.append(record)
    return {
        "records": records,
        "exact": exact,
        "no_budget": free,
        "lemma_2": limits,
        "table_1": table_1(args.sets, exact),
        "acceptance": comparison(records),
        "table": summary(records, exact),
    }


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
        "test_error": float(np.mean(clf.predict(X_test) != y_test)),
        "n_train": len(y),
        "n_features": X.shape[1],
        "n_vectors": clf.n_basis_,
        "limits": {
            "bsca": float(np.mean(alpha < setting.C * (1 - 1e-9)) * len(alpha) / len(y)),
            "bsgd": float(alpha.sum() / (setting.C * len(y))),
        },
    }


def without_budget(name: str, data: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Curves with room for every row."""
    part, records = some_rows(data, args.no_budget_rows), []
    for method in args.methods:
        # One point less than rows: with room for all, plain ascent to the end would take over.
        solver = solver_of(method, len(part[1]) - 1, args).set_params(maintenance="remove")
        points = curve(solver, SETS[name], part, 0, args.n_jobs, max(args.curve_epochs, LAST))
        records.append({"data": name, "method": method, "curve": points})
    return records


def some_rows(data: Any, n: int) -> Any:
    """The data with at most n of the training rows."""
    X, y, X_test, y_test = data
    chosen = np.random.default_rng(0).permutation(len(y))[:n]
    return X[chosen], y[chosen], X_test, y_test


def lemma_2(name: str, data: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Shares of steps that change the model, without a budget, beside their limits; observed: in the last tenth."""
    part, records = some_rows(data, args.limit_rows), []
    limits = exact_svm(SETS[name], part, args.n_jobs)["limits"]
    for method in args.methods:
        epochs = args.limit_epochs or SETS[name].limit_epochs
        solver = solver_of(method, len(part[1]) - 1, args)
        solver.set_params(epochs=epochs, maintenance="remove", finish=False)
        clf = make(solver, SETS[name], 0, args.n_jobs).fit(*part[:2])
        shares = np.array([1.0 - record["zero_step_fraction"] for record in clf.history_])
        observed = float(shares[-max(1, len(shares) // 10) :].mean())
        record = {"data": name, "method": method, "rows": len(part[1]), "epochs": len(shares)}
        record |= {
            "limit": limits[method.removeprefix("our-")],
            "observed": observed,
            "shares": shares[:: max(1, len(shares) // 100)].tolist(),
        }
        records.append(record)
        say(f"{name}, {method}, no budget: {observed:.4f} of the steps change the model, limit {record['limit']:.4f}")
    return records


def table_1(sets: list[str], exact: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The paper's table 1, with what the exact SVM came to here."""
    rows = []
    for name in sets:
        setting, ours = SETS[name], next((r for r in exact if r["data"] == name), {})
        accuracy = 100 * (1 - ours["test_error"]) if ours else 100 - setting.exact
        rows.append(
            {
                "data": name, "n": ours.get("n_train"), "features": ours.get("n_features"), "C": setting.C,
                "gamma": setting.gamma, "accuracy %": round(accuracy, 2), "seconds": ours.get("seconds"),
                "source": "this run" if ours else setting.source,
            }
        )  # fmt: skip
    return rows


def deviation(errors: np.ndarray) -> float:
    """Mean over the runs of the deviation over the last epochs, in %."""
    return float(100 * errors[:, -LAST:].std(axis=1).mean())


def comparison(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Set by set and budget: how soon the paper's BSCA is as good as the mean of its BSGD's last epochs, and how steady
    both end.
    """
    rows = []
    curves = {
        key: [r["curve"] for r in records if (r["data"], r["max_basis"], r["method"]) == key]
        for key in dict.fromkeys((r["data"], r["max_basis"], r["method"]) for r in records if r.get("curve"))
    }
    for name, budget in dict.fromkeys(key[:2] for key in curves):
        if not {(name, budget, "bsca"), (name, budget, "bsgd")} <= curves.keys():
            continue
        error, seconds = (
            {
                method: np.array([[p[what] for p in c] for c in curves[name, budget, method]])
                for method in ("bsca", "bsgd")
            }
            for what in ("test_error", "seconds")
        )  # fmt: skip
        target = error["bsgd"][:, -LAST:].mean()
        reached = np.flatnonzero(error["bsca"].mean(axis=0) <= target)
        share = (
            float(seconds["bsca"].mean(axis=0)[reached[0]] / seconds["bsgd"][:, -1].mean()) if len(reached) else None
        )
        rows.append(
            {
                "data": name, "B": budget, "mean of BSGD's last epochs %": round(100 * float(target), 2),
                "mean of BSCA's %": round(100 * float(error["bsca"][:, -LAST:].mean()), 2),
                "BSCA is there after this share of BSGD's time": share,
                **{f"± of {m}'s last epochs %": deviation(error[m]) for m in error},
            }
        )  # fmt: skip
    return rows


def trials(args: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Method, budget and seed of every fit on a set."""
    for budget in args.max_basis:
        for method in args.methods:
            for seed in range(args.seeds):
                yield method, budget, seed


def read(name: str, quick: bool) -> tuple[Any, Any, Any, Any]:
    """Training rows and labels, test rows and labels."""
    if name == "checkerboard":
        n = 3000 if quick else 100_000
        return *checkerboard(n, random_state=0), *checkerboard(10_000, random_state=1)
    data = load(name)
    return data.X_train, data.y_train, data.X_test, data.y_test


def make(solver: Any, setting: Setting, seed: int, n_jobs: int | None, **parameters: Any) -> SVC:
    """The estimator with the settings of a set."""
    return SVC(
        C=setting.C, gamma=setting.gamma, solver=solver, intercept="none", random_state=seed, n_jobs=n_jobs,
        precision="float32", **parameters,
    )  # fmt: skip


def finished(solver: Any, setting: Setting, data: Any, seed: int, n_jobs: int | None) -> dict[str, Any]:
    """One fit with its finish."""
    X, y, X_test, y_test = data
    head = np.linspace(0, len(y) - 1, min(len(y), 5 * solver.max_basis)).astype(int)
    make(solver, setting, seed, n_jobs).fit(X[head], y[head])  # whatever happens once per process
    begun = time.perf_counter()
    clf = make(solver, setting, seed, n_jobs).fit(X, y)
    return {
        "seconds": time.perf_counter() - begun,
        "epoch_seconds": float(np.diff([0.0] + [record["seconds"] for record in clf.history_])[1:-1].mean())
        if len(clf.history_) > 2
        else float("nan"),
        "test_error": float(np.mean(clf.predict(X_test) != y_test)),
        "objective": clf.objective_,
        "bound_in_basis": clf.counters_["bound_in_basis"],
        "n_vectors": clf.n_basis_,
        "kernel_evals": clf.n_kernel_evals_,
    }


def curve(solver: Any, setting: Setting, data: Any, seed: int, n_jobs: int | None, epochs: int) -> list[dict[str, Any]]:
    """One record per epoch of a fit without finish, each epoch a warm start from the last."""
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
            error = float(np.mean(clf.predict(X_test) != y_test))
            points.append({"epoch": epoch, "seconds": seconds, "test_error": error, **point})
    return points


def summary(records: list[dict[str, Any]], exact: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds, errors in %; of curves the last epochs; limit: lemma 2's of the share of steps."""
    table = []
    limits = {record["data"]: record["limits"] for record in exact}
    for key in dict.fromkeys((r["data"], r["method"], r["max_basis"]) for r in records):
        group = [r for r in records if (r["data"], r["method"], r["max_basis"]) == key]
        errors = 100 * np.array([r["test_error"] for r in group])
        row: dict[str, Any] = {
            "data": key[0],
            "method": key[1],
            "B": key[2],
            "finished %": round(float(errors.mean()), 2),
            "±": round(float(errors.std()), 2),
            "exact %": SETS[key[0]].exact,
            "seconds": round(float(np.mean([r["seconds"] for r in group])), 2),
        }
        if "curve" in group[0]:
            ends = 100 * np.array([[p["test_error"] for p in r["curve"][-LAST:]] for r in group])
            row |= {
                "plain %": round(float(ends.mean()), 2),
                "± last epochs": round(float(ends.std(axis=1).mean()), 2),
                "s/epoch": round(float(np.mean([r["curve"][-1]["seconds"] / len(r["curve"]) for r in group])), 3),
                "merges": round(float(np.mean([r["curve"][-1]["merge_fraction"] for r in group])), 3),
                "steps": round(float(np.mean([1 - r["curve"][-1]["zero_step_fraction"] for r in group])), 3),
                "limit": round(limits[key[0]][key[1].removeprefix("our-")], 3) if key[0] in limits else None,
            }
        table.append(row)
    return table
