"""Train a model on a data file, or on a benchmark set by its name, and save it.

DATA is LIBSVM text (also .gz, .bz2, .xz), CSV with a header line, .npz with arrays X and y, or a name that
`slimsvm datasets` lists. --task ranking reads LIBSVM text with qid:. --task sequence reads text with one word per line,
columns separated by blanks, the label last, and an empty line between sequences. --task table takes a CSV file with
texts, dates and missing values as it is, and prints what every column was taken for. A benchmark set is tested on its
own test part, unless --test names a file.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from slimsvm.cli import options
from slimsvm.cli.data import FORMS, ROWS, Part, Trained, add_reading_options, in_memory, is_set, read_form, usual_task
from slimsvm.cli.model_file import (
    SCALES,
    add_checkpoint_option,
    check_model_path,
    check_outputs,
    checkpointed,
    fit_scaler,
    give_names,
    scaled,
    take_names,
)
from slimsvm.cli.output import CommandError, count, describe_error, print_fields, print_json, say, size
from slimsvm.cli.predict import as_numbers, describe_quality, predict, quality
from slimsvm.cli.tables import is_table, train_table
from slimsvm.estimators import SVC, SVR, RankSVM, SequenceSVM
from slimsvm.estimators._shared.automatic import ChoiceSettings
from slimsvm.estimators.files import save as save_model
from slimsvm.kernels import KERNELS
from slimsvm.parts.solver import Solver
from slimsvm.rows import as_rows
from slimsvm.solvers import SOLVERS

KERNEL_NAMES = sorted(set(KERNELS) - {"callable"})
# Options that are short forms of --set.
SOLVER_OPTIONS = ("sample_size", "tol_relative", "max_basis")
DEFAULTS = SVC().get_params(deep=False)
EPSILON = SVR().epsilon
ESTIMATOR_OF: dict[str, Any] = {"classification": SVC, "regression": SVR, "ranking": RankSVM, "sequence": SequenceSVM}
# Options that are for some tasks only.
TAKEN = {
    "classification": ("class_weight", "loss", "probability", "calibration_size"),
    "regression": ("epsilon", "loss", "calibration_size"),
    "ranking": ("loss",),
    "sequence": ("loss", "window"),
}
# Options with another name than the parameter.
FLAGS = {"probability": "probabilities"}


def solver_help() -> str:
    """Return every solver with the parameters that --set takes and their defaults."""
    lines = ["parameters of the solvers, for --set NAME=VALUE:"]
    for name, solver in SOLVERS.items():
        lines.append(f"  {name:<15} {_parameters(solver())}")
    return "\n".join(lines)


def _parameters(solver: Solver) -> str:
    return ", ".join(f"{name}={value}" for name, value in solver.get_params(deep=False).items())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``slimsvm train``."""
    parser.epilog = solver_help()
    parser.add_argument("data", metavar="DATA", help="data file (LIBSVM text, CSV, .npz, Parquet, a "
                        "folder of Parquet, or a pattern, 'part-*.libsvm.gz'), or name of a benchmark set")  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="file to save the model in")
    parser.add_argument("--test", metavar="FILE", help="print the error on this file too; it plays no part in training")
    parser.add_argument(
        "--cv",
        type=options.folds,
        metavar="N",
        help="table: measure on N folds of the rows, each held out once (default: on a fifth of the rows)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no notes on standard error")
    add_reading_options(parser)
    group = parser.add_argument_group("what is trained")
    _add_task_options(group)
    _add_kernel_options(group)
    _add_loss_options(group)
    group = parser.add_argument_group("how it is trained")
    _add_solver_options(group)
    _add_limit_options(group)


def _add_task_options(group: Any) -> None:
    group.add_argument(
        "--task",
        choices=(*ESTIMATOR_OF, "table"),
        help="table: a CSV file with texts, dates and missing values, as it is; its label decides between classes and "
        "numbers (default: ranking if the rows of the file have qid:, table if a CSV file with a header has texts or "
        "missing values beside the label, else classification)",
    )
    group.add_argument(
        "--loss",
        help="classification: hinge, logistic, squared_hinge, or for two classes f1, roc_auc, prbep, precision_at_k, "
        "recall_at_k, ramp; regression: epsilon_insensitive, squared, huber, poisson, quantile (the median); ranking: "
        "swaps or average_precision; sequence: hamming or zero-one (default: the first of each)",
    )
    group.add_argument(
        "--probabilities",
        dest="probability",
        action="store_true",
        default=None,
        help="classification: calibrate probabilities, for predict --probabilities and exports; scores stay the same",
    )
    group.add_argument(
        "--calibration-size",
        type=options.literal,
        metavar="S",
        help="classification, regression: share or number of rows set aside to calibrate sets and intervals, for "
        "predict --alpha; out-of-fold: calibrate on folds, and set no rows aside",
    )
    group.add_argument(
        "--window",
        type=options.not_negative_integer,
        metavar="N",
        help="sequence: add the features of N rows before and of N rows after each row (default: 1)",
    )
    group.add_argument(
        "--scale",
        choices=tuple(SCALES),
        help="scale the features by what the training rows say; the model keeps the scaling, so predict and "
        f"exports take unscaled rows; {'; '.join(f'{name}: {text}' for name, text in SCALES.items())} (default: none)",
    )


def _add_kernel_options(group: Any) -> None:
    group.add_argument("--kernel", choices=KERNEL_NAMES, default=DEFAULTS["kernel"], help="default: %(default)s")
    group.add_argument(
        "--gamma",
        type=options.gamma,
        default=DEFAULTS["gamma"],
        metavar="G",
        help="a positive number; several separated by commas, one per feature (rbf and other kernels of "
        "distances); scale: 1 / (features x variance of all entries); auto: 1 / features; "
        "learn: one per feature, learned in training; "
        "validate: a multiple of scale, chosen on a held-out fifth of the rows (default: %(default)s)",
    )
    group.add_argument(
        "--degree",
        type=options.positive_integer,
        default=DEFAULTS["degree"],
        help="degree of the polynomial kernel (default: %(default)s)",
    )
    group.add_argument(
        "--coef0",
        type=options.finite,
        default=DEFAULTS["coef0"],
        help="constant of the polynomial and sigmoid kernels (default: %(default)s)",
    )


def _add_loss_options(group: Any) -> None:
    group.add_argument(
        "-C",
        type=options.positive_or_validate,
        default=DEFAULTS["C"],
        help="weight of the loss of a row, sequence or query; validate: chosen on a held-out fifth "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--epsilon",
        type=options.not_negative,
        help=f"regression: half-width of the tube in which residuals have no loss (default: {EPSILON})",
    )
    group.add_argument(
        "--class-weight",
        type=options.class_weight,
        metavar="W",
        help="classification: balanced, or weights as in --class-weight=-1:1,1:5 (default: equal weights)",
    )
    group.add_argument(
        "--intercept",
        choices=("auto", "regularized", "free", "none"),
        default=DEFAULTS["intercept"],
        help="regularized: the penalty includes the intercept; free: it does not (if the solver can); none: no "
        "intercept; auto: free with the exact solver, regularized with others (default: %(default)s)",
    )


def _add_solver_options(group: Any) -> None:
    group.add_argument(
        "--solver",
        choices=("auto", *SOLVERS),
        default="auto",
        help="auto: exact; exact-cuts for sequences, rankings and losses over all rows, above "
        f"{ChoiceSettings.most_cut_rows:,} rows violated-cuts; with --max-basis or --gamma learn: refine, or cpsp for "
        "kernels without derivatives and for text (default: auto)",
    )
    group.add_argument(
        "--max-basis",
        type=options.size_or_auto,
        default=argparse.SUPPRESS,
        metavar="N",
        help="at most this many basis vectors in the model; auto: the smallest number that does not raise the error on "
        "held-out rows (default: the solver's; most have no limit)",
    )
    group.add_argument(
        "--tol",
        type=options.positive,
        default=DEFAULTS["tol"],
        help="exact: largest violation of the optimality conditions; cutting planes: allowed error in mean loss "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--tol-relative",
        type=options.positive_or_none,
        default=argparse.SUPPRESS,
        metavar="T",
        help="also required to stop: a gap of at most this share of the objective; none: --tol alone decides, as in "
        "the paper (default: the solver's)",
    )
    group.add_argument(
        "--sample-size",
        type=options.positive_integer,
        default=argparse.SUPPRESS,
        metavar="R",
        help="number of rows in a sampled cut (default: the solver's)",
    )
    group.add_argument(
        "--set",
        type=options.assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the solver, listed below; may be given several times",
    )


def _add_limit_options(group: Any) -> None:
    group.add_argument(
        "--max-iter",
        type=options.positive_integer,
        default=None,
        metavar="N",
        help="limit on iterations (default: none)",
    )
    group.add_argument(
        "--max-seconds",
        type=options.positive,
        default=None,
        metavar="SECONDS",
        help="time limit (default: none). A fit stopped by a limit, or by Ctrl-C, saves the best model so far",
    )
    add_checkpoint_option(group)
    group.add_argument(
        "--precision",
        choices=("auto", "float32", "float64"),
        default=DEFAULTS["precision"],
        help="type of kernel values; auto: float64 up to 2,000 rows and if gamma is large, else float32 "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--memory-limit",
        type=options.positive,
        default=DEFAULTS["memory_limit"],
        metavar="MB",
        help="memory the solver may take besides data and model (default: %(default)s)",
    )
    group.add_argument(
        "--n-jobs",
        type=options.jobs,
        default=None,
        metavar="N",
        help="number of threads (default: all cores); no effect on results",
    )
    group.add_argument(
        "--random-state",
        type=options.seed,
        default=0,
        metavar="SEED",
        help="seed of the solvers that sample (default: 0, so the same command gives the same model)",
    )


def run(args: argparse.Namespace) -> int:
    """Read, train, save, test, report."""
    if args.task is None and is_table(args):
        args.task = "table"
        if not args.quiet:
            say(f"{args.data}: has texts, dates or missing values, so it is taken as a table (--task table)")
    if args.task == "table":
        return train_table(args)
    if args.cv is not None:
        args.parser.error("--cv is for --task table only")
    if args.task is None:
        args.task = usual_task(args.data)
        if args.task == "ranking" and not args.quiet:
            say(f"{args.data}: its rows have qid:, so they are ranked; --task classification would not look at it")
    estimator = make_estimator(args)
    check_model_path(args.model)
    check_outputs([args.model, args.checkpoint], [args.data, args.test])
    train, test = read_parts(args)
    if args.task in ("regression", "ranking"):
        train = replace(train, y=as_numbers(train.y))
        test = None if test is None else replace(test, y=as_numbers(test.y))
    if args.task in ("classification", "regression"):
        check_labels(train, args.task)
    scalers = fit_scaler(args.scale, train)
    train = scaled(train, scalers)
    with checkpointed(estimator, args.checkpoint, args.quiet):
        seconds = fit(estimator, train)
        give_names(scalers, estimator, train)
        save(estimator, args.model, scalers)
        take_names(scalers, estimator)
    report = describe_fit(estimator, train, seconds)
    report |= {} if args.scale is None else {"scale": args.scale}
    if test is not None and test.y is not None:
        test = scaled(test, scalers)
        report["test"] = {
            "data": test.name,
            "n_rows": test.n_rows,
            **quality(estimator, test, predict(estimator, test)),
        }
    report["model"], report["model_bytes"] = args.model, os.path.getsize(args.model)
    if args.json:
        print_json(report)
    else:
        print_report(report)
    return 0


def make_estimator(args: argparse.Namespace) -> Any:
    """Make the estimator that the options describe; usage errors end the program."""
    names = ("kernel", "gamma", "degree", "coef0", "C", "intercept", "tol", "precision", "memory_limit", "n_jobs")
    params = {name: getattr(args, name) for name in names}
    if isinstance(params["gamma"], list):
        params["gamma"] = np.array(params["gamma"])
    params |= {"random_state": args.random_state, "verbose": 0 if args.quiet else 1, "solver": make_solver(args)}
    params |= {"max_iter": args.max_iter or -1, "max_seconds": args.max_seconds}
    if args.solver == "auto":
        params["max_basis"] = getattr(args, "max_basis", None)
    given = {"class_weight": args.class_weight, "epsilon": args.epsilon, "loss": args.loss, "window": args.window}
    given |= {"probability": args.probability, "calibration_size": args.calibration_size}
    if args.scale is not None and args.task == "sequence":
        args.parser.error("--scale is for rows of numbers, --task sequence has words")
    taken = TAKEN[args.task]
    for name, value in given.items():
        if value is None:
            continue
        if name not in taken:
            tasks = " and ".join(task for task, names in TAKEN.items() if name in names)
            args.parser.error(f"--{FLAGS.get(name, name).replace('_', '-')} is for --task {tasks} only")
        params[name] = value
    if args.task == "ranking":
        del params["intercept"]
    if args.task == "sequence":
        params = {"window": 1, **params}
    return ESTIMATOR_OF[args.task](**params)


def make_solver(args: argparse.Namespace) -> Any:
    """Return ``auto``, or the solver with the parameters given."""
    given = dict(args.set)
    given |= {name: getattr(args, name) for name in SOLVER_OPTIONS if hasattr(args, name)}
    if args.solver == "auto":
        given.pop("max_basis", None)
        if given:
            args.parser.error(f"{', '.join(given)}: parameters of a solver need --solver NAME, auto chooses one itself")
        return "auto"
    solver = SOLVERS[args.solver]()
    defaults = solver.get_params(deep=False)
    for name, value in given.items():
        if name not in defaults:
            args.parser.error(f"{args.solver} has no parameter {name!r}; it has {_parameters(solver)}")
        _check_kind(args.parser, name, value, defaults[name])
    return solver.set_params(**given)


def _check_kind(parser: argparse.ArgumentParser, name: str, value: Any, default: Any) -> None:
    """Refuse values that are no truth value where the default is one, and no number or none where it is a number."""
    if isinstance(default, bool):
        if not isinstance(value, bool):
            parser.error(f"{name} must be true or false, found {value!r}")
    elif isinstance(default, (int, float)) and (isinstance(value, (bool, str))):
        parser.error(f"{name} must be a number, found {value!r}")


def read_parts(args: argparse.Namespace) -> tuple[Part, Part | None]:
    """Read training rows, and test rows if there are any."""
    form = FORMS.get(args.task, ROWS)
    train = in_memory(read_form(form, args.data, args), args.memory_limit)
    test = read_form(form, args.data, args, test=True) if is_set(args.data) else None
    if args.test is not None:
        test = read_form(form, args.test, args, Trained(train.X.shape[1], train.names, train.label))
    if not args.quiet:
        kind = "sparse" if as_rows(train.X).is_sparse else "dense"
        say(f"{train.name}: {train.n_rows:,} rows of {train.X.shape[1]:,} features, {kind}")
    return train, test


def check_labels(train: Part, task: str) -> None:
    """Refuse labels that the task cannot have, in terms of the command's options."""
    if task == "regression" and train.y.dtype.kind not in "biuf":
        raise CommandError(f"{train.name}: found the label {str(train.y[0])!r}, regression needs numbers")
    if task == "classification" and train.y.dtype.kind == "f":
        fraction = train.y[train.y != np.floor(train.y)]
        found = f"found the label {fraction[0]}, which is not a whole number; " if len(fraction) else ""
        raise CommandError(f"{train.name}: {found}to predict numbers give --task regression")
    if task == "classification" and np.all(train.y == train.y[0]):
        raise CommandError(f"{train.name}: found one class only, {train.y[0]}; at least two are needed")


def fit(estimator: Any, train: Part) -> float:
    """Train, and return the seconds it took."""
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit(train.X, train.y, **train.extra)
    return time.perf_counter() - begun


def save(estimator: Any, path: str, scalers: Pipeline | None = None) -> None:
    """Save the model; an older file of its name survives a failure."""
    # The command decides on threads and output, not the model.
    estimator.set_params(n_jobs=None, verbose=False, warm_start=False)
    try:
        save_model(estimator if scalers is None else Pipeline([*scalers.steps, ("machine", estimator)]), path)
    except OSError as error:
        raise CommandError(
            f"{path}: the model could not be saved: {error.strerror or describe_error(error)}"
        ) from error


def describe_fit(estimator: Any, train: Part, seconds: float) -> dict[str, Any]:
    """Return the part of the `--json` report that describes the fit."""
    classes = getattr(estimator, "classes_", None)
    return {
        "data": train.name,
        "n_rows": train.n_rows,
        "n_features": train.X.shape[1],
        **counted(train),
        "classes": None if classes is None else classes.tolist(),
        "estimator": type(estimator).__name__,
        "kernel": repr(estimator.kernel_),
        "C": estimator.C_,
        "solver": type(estimator.solver_).__name__,
        "solver_parameters": estimator.solver_.get_params(deep=False),
        "random_state": estimator.random_state,
        "precision": estimator.precision_,
        "status": estimator.status_,
        "n_iter": int(np.sum(estimator.n_iter_)),
        "seconds": seconds,
        "n_kernel_evals": estimator.n_kernel_evals_,
        "n_basis": estimator.n_basis_,
        "objective": estimator.objective_,
        "lower_bound": estimator.lower_bound_,
    }


def counted(train: Part) -> dict[str, int]:
    """Return the number of queries or sequences that the rows form."""
    if "groups" in train.extra:
        return {"n_queries": len(np.unique(train.extra["groups"]))}
    return {"n_sequences": len(train.extra["lengths"])} if "lengths" in train.extra else {}


def print_report(report: dict[str, Any]) -> None:
    """Print the report in lines."""
    classes = report["classes"]
    fields = {
        "data": f"{report['data']}: {report['n_rows']:,} rows, {report['n_features']:,} features"
        + "".join(f", {report[name]:,} {name[2:]}" for name in ("n_queries", "n_sequences") if name in report)
        + (f", {len(classes)} classes" if classes else ""),
        "scale": report.get("scale"),
        "kernel": report["kernel"],
        "C": f"{report['C']:g}",
        "solver": report["solver"],
        "status": f"{report['status']}, {report['n_iter']:,} iterations",
        "seconds": f"{report['seconds']:.2f}",
        "kernel evaluations": count(report["n_kernel_evals"]),
        "basis vectors": f"{report['n_basis']:,}",
        "objective": describe_objective(report["objective"], report["lower_bound"], report["solver"]),
        "test": describe_quality(report["test"]) if "test" in report else None,
        "model": f"{report['model']}, {size(report['model_bytes'])}",
    }
    print_fields(fields)


def describe_objective(objective: float, lower_bound: float | None, solver: str) -> str:
    """Return the objective, with its lower bound and gap if they are known."""
    if objective is None or np.isnan(objective):
        return "not computed"
    if lower_bound is None:
        is_convex = solver != "Ramp"
        hint = "this solver gives no lower bound; slimsvm info --certificate does" if is_convex else "no bound is known"
        return f"{objective:.6g} ({hint})"
    gap = (objective - lower_bound) / objective if objective > 0 else 0.0
    return f"{objective:.6g}, optimum at least {lower_bound:.6g} (gap {100 * gap:.2g} %)"
