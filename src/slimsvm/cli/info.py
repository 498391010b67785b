"""Print what is in a model file: kernel, basis vectors, classes, objective, how the fit ended, parameters.

With --certificate and the training data DATA (a file, or a benchmark set's training part) it prints a bound on the
distance of the model from the exact SVM of its kernel and C, computed only from the file and the data.
"""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import asdict
from typing import Any

import numpy as np

from slimsvm.cli import options
from slimsvm.cli.data import Trained, add_reading_options, form_of, read_form
from slimsvm.cli.model_file import scaled, steps_of
from slimsvm.cli.output import CommandError, print_fields, print_json, size
from slimsvm.cli.predict import as_classes
from slimsvm.cli.tables import print_table_model
from slimsvm.estimators import OF_ONE_MODEL
from slimsvm.estimators.files import load
from slimsvm.estimators.tables import TableEstimator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``slimsvm info``."""
    parser.add_argument("model", metavar="MODEL", help="file that `slimsvm train`, or an estimator's save, wrote")
    parser.add_argument("data", metavar="DATA", nargs="?", help="training data, for --certificate")
    parser.add_argument("--certificate", action="store_true", help="bound how far the model is from the exact SVM")
    parser.add_argument(
        "--max-seconds", type=options.positive, default=None, metavar="SECONDS", help="time limit of the certificate"
    )
    parser.add_argument(
        "--n-jobs", type=options.jobs, default=None, metavar="N", help="number of threads (default: all cores)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    add_reading_options(parser)


def run(args: argparse.Namespace) -> int:
    """Load the file and describe it."""
    if args.certificate != (args.data is not None):
        raise CommandError("--certificate and the training data DATA go together")
    model = load(args.model)
    if isinstance(model, TableEstimator):
        if args.certificate:
            raise CommandError(f"{args.model}: a {type(model).__name__} has no certificate")
        return print_table_model(model, args)
    scalers, estimator, trained = steps_of(model)
    report = describe(estimator, args.model) | {"n_features": trained.n_features}
    report["feature_names"] = trained.names
    report["scaling"] = None if scalers is None else [repr(step) for _, step in scalers.steps]
    if args.certificate:
        report["certificate"] = certificate(estimator, args, scalers, trained)
    if args.json:
        print_json(report)
    else:
        print_report(report)
    return 0


def certificate(estimator: Any, args: argparse.Namespace, scalers: Any, trained: Trained) -> dict[str, Any]:
    """Return the model's certificate on the data, as a dict."""
    if not hasattr(estimator, "certificate"):
        raise CommandError(f"{args.model}: a {type(estimator).__name__} has no certificate")
    part = scaled(read_form(form_of(estimator), args.data, args, trained), scalers)
    y = as_classes(part.y, estimator.classes_) if hasattr(estimator, "classes_") else part.y
    estimator.set_params(n_jobs=args.n_jobs, verbose=0 if args.json else 1)
    found = estimator.certificate(part.X, y, max_seconds=args.max_seconds, **part.extra)
    return {**asdict(found), "gap": found.gap}


def describe(estimator: Any, path: str) -> dict[str, Any]:
    """Return the report that `--json` prints."""
    classes = getattr(estimator, "classes_", None)
    return {
        "model": path,
        "model_bytes": os.path.getsize(path),
        "estimator": type(estimator).__name__,
        "kernel": repr(estimator.kernel_),
        "n_features": estimator.n_features_in_,
        "classes": None if classes is None else classes.tolist(),
        "has_probabilities": getattr(estimator, "calibration_", None) is not None,
        "n_basis": estimator.n_basis_,
        "n_outputs": estimator.basis_coef_.shape[1],
        "intercept": estimator.intercept_,
        "precision": estimator.precision_,
        "status": estimator.status_,
        "n_iter": int(np.sum(estimator.n_iter_)),
        "objective": estimator.objective_,
        "lower_bound": estimator.lower_bound_,
        "parameters": {name: describe_value(value) for name, value in estimator.get_params(deep=False).items()},
    }


def describe_value(value: Any) -> Any:
    """Return a parameter's value; a solver as its name and its own parameters."""
    if hasattr(value, "get_params"):
        return {"name": type(value).__name__, **value.get_params(deep=False)}
    return value


def print_report(report: dict[str, Any]) -> None:
    """Print the report in lines."""
    objective, bound, classes = report["objective"], report["lower_bound"], report["classes"]
    names = report["feature_names"]
    fields = {
        "model": f"{report['model']}, {size(report['model_bytes'])}",
        "estimator": report["estimator"],
        "scaling": None if report["scaling"] is None else ", ".join(report["scaling"]),
        "kernel": report["kernel"],
        "features": f"{report['n_features']:,}" if names is None else short_list(names),
        "classes": None if classes is None else short_list(classes),
        "probabilities": None if classes is None else "calibrated" if report["has_probabilities"] else "none",
        "basis vectors": f"{report['n_basis']:,}",
        "precision": report["precision"],
        "status": f"{report['status']}, {report['n_iter']:,} iterations",
        "objective": "not computed" if math.isnan(objective) else f"{objective:.6g}",
        "lower bound": None if bound is None else f"{bound:.6g}",
        "parameters": changed(report),
    }
    if "certificate" in report:
        found = report["certificate"]
        fields["certificate"] = (
            f"objective {found['objective']:.6g}, optimum at least {found['lower_bound']:.6g} "
            f"(gap {100 * found['gap']:.2g} %)"
        )
    print_fields(fields)


def changed(report: dict[str, Any]) -> str:
    """Return the parameters that differ from their defaults."""
    defaults = OF_ONE_MODEL[report["estimator"]]().get_params(deep=False)
    parts = [
        f"{name}={show(value)}"
        for name, value in report["parameters"].items()
        if str(value) != str(describe_value(defaults[name]))
    ]
    return ", ".join([*parts, "others as by default"])


def short_list(things: list) -> str:
    """Return the number of classes or features, and the first of them."""
    shown = ", ".join(map(str, things[:10])) + (", ..." if len(things) > 10 else "")
    return f"{len(things):,}: {shown}"


def show(value: Any) -> str:
    """Return a parameter's value in a line."""
    if isinstance(value, dict) and "name" in value:
        return f"{value['name']}({', '.join(f'{k}={v}' for k, v in value.items() if k != 'name')})"
    return str(value)
