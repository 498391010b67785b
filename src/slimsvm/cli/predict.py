"""Predict the labels of a data file with a saved model, one per line in the order of the rows.

DATA is a file in a format of `slimsvm train`, with or without labels (LIBSVM text always has a label at the start of a
line; give --unlabelled for sequences without labels), or the name of a benchmark set, whose test part is used. For a
ranking each line is a score: sort the rows of a query by falling score. Sequences have an empty line between them. With
--probabilities and --alpha the first line has the names of the columns. If DATA has labels, the error is reported too,
on standard error or in the JSON object.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.cli import options
from slimsvm.cli.data import Part, add_reading_options, form_of, read_form
from slimsvm.cli.model_file import check_outputs, scaled, steps_of
from slimsvm.cli.output import CommandError, escaped, print_json, say
from slimsvm.cli.tables import predictions_of, read_texts
from slimsvm.estimators import OneClassSVM, RankSVM, SequenceSVM
from slimsvm.estimators._shared.pipeline_steps import FittedStep
from slimsvm.estimators.files import load
from slimsvm.estimators.tables import TableEstimator
from slimsvm.parts.solver import reading
from slimsvm.whole_file import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``slimsvm predict``."""
    parser.add_argument("model", metavar="MODEL", help="file that `slimsvm train` saved")
    parser.add_argument("data", metavar="DATA", help="data file, or name of a benchmark set")
    parser.add_argument("--output", metavar="FILE", help="write the lines to this file instead of standard output")
    values = parser.add_mutually_exclusive_group()
    values.add_argument(
        "--scores",
        action="store_true",
        help="classification: add the scores after each label, separated by tabs: one score for two classes "
        "(positive for the second) or for one class (positive inside), else one per class",
    )
    values.add_argument(
        "--probabilities",
        action="store_true",
        help="classification: add the probability of each class after each label, separated by tabs, below a line with "
        "their names; for models of train --probabilities",
    )
    values.add_argument(
        "--alpha",
        type=float,
        metavar="A",
        help="add a set of classes (1 for each class in it), or the two ends of an interval, which contains the truth "
        "right with a probability of at least 1 - A; for models of train --calibration-size, and, without this "
        "guarantee, of tables",
    )
    parser.add_argument("--unlabelled", action="store_true", help="sequences: DATA has no column of labels")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.add_argument("--quiet", action="store_true", help="no progress and no error rate on standard error")
    parser.add_argument(
        "--n-jobs", type=options.jobs, default=None, metavar="N", help="number of threads (default: all cores)"
    )
    add_reading_options(parser)


def run(args: argparse.Namespace) -> int:
    """Load, read, predict, report."""
    check_outputs([args.output], [args.model, args.data])
    model = load(args.model)
    if isinstance(model, TableEstimator):
        put_out(args, *predictions_of(model, args))
        return 0
    scalers, estimator, trained = steps_of(model)
    estimator.set_params(n_jobs=args.n_jobs)
    if args.scores and not (hasattr(estimator, "classes_") or isinstance(estimator, OneClassSVM)):
        raise CommandError(f"{args.model}: --scores is for classification, this model predicts numbers")
    if args.probabilities:
        check_probabilities(estimator, args.model)
    if args.alpha is not None:
        check_guarantee(estimator, args.model)
    if scalers is not None and isinstance(scalers[0], FittedStep) and scalers[0].encoding.takes_a_table:
        part = read_texts(scalers[0].encoding, args.data, args.target)
    else:
        part = read_form(form_of(estimator), args.data, args, trained, labels_needed=False, test=True)
    part = scaled(part, scalers)
    if part.y is not None and not hasattr(estimator, "classes_"):
        part = replace(part, y=as_numbers(part.y))
    values, lengths = None, part.extra.get("lengths")
    with reading(part.X, not args.quiet):
        predicted = predict(estimator, part)
        if args.scores:
            keywords = {} if lengths is None else {"lengths": lengths}
            values = estimator.decision_function(part.X, **keywords).reshape(part.n_rows, -1)
        elif args.probabilities:
            values = estimator.predict_proba(part.X)
        elif args.alpha is not None:
            values = promised(estimator, part.X, args.alpha)
    head = None
    if args.probabilities or args.alpha is not None:
        labels = ["label"] if predicted.ndim == 1 else [f"label {j}" for j in range(predicted.shape[1])]
        head = [*labels, *(estimator.classes_.tolist() if hasattr(estimator, "classes_") else ["low", "high"])]
    report: dict[str, Any] = {"model": args.model, "data": part.name, "n_rows": part.n_rows}
    report |= measure(estimator, part, predicted)
    if not args.quiet and not args.json and len(report) > 3:
        say(f"{part.name}: {describe_quality(report)}")
    put_out(args, report, predicted, values, lengths, head)
    return 0


def put_out(
    args: argparse.Namespace,
    report: dict[str, Any],
    predicted: np.ndarray,
    values: np.ndarray | None,
    lengths: np.ndarray | None = None,
    head: list | None = None,
) -> None:
    """Write predictions, and what goes with them, to where the options say."""
    if args.output is not None:
        write_lines(args.output, lines(predicted, values, lengths, head))
        report["output"] = args.output
    elif args.json:
        report["predictions"] = predicted
        if values is not None:
            names = {"probabilities": args.probabilities, "promised": args.alpha is not None, "scores": True}
            report[next(name for name, is_asked in names.items() if is_asked)] = values
    else:
        sys.stdout.writelines(lines(predicted, values, lengths, head))
    if args.json:
        print_json(report)


def check_probabilities(estimator: Any, path: str) -> None:
    """Refuse models without probabilities; say which have them."""
    if not hasattr(estimator, "probability"):
        raise CommandError(f"{path}: --probabilities is for classification, found {type(estimator).__name__}")
    if getattr(estimator, "calibration_", None) is None:
        raise CommandError(
            f"{path}: the model has no probabilities: train it with `slimsvm train --probabilities`, or in Python with "
            "probability=True"
        )


def check_guarantee(estimator: Any, path: str) -> None:
    """Refuse models without sets and intervals; say which have them."""
    if not (hasattr(estimator, "predict_set") or hasattr(estimator, "predict_interval")):
        raise CommandError(
            f"{path}: the model has no sets or intervals: train it with `slimsvm train --calibration-size 0.2`, or in "
            "Python with calibration_size=0.2"
        )


def promised(estimator: Any, X: Any, alpha: float) -> np.ndarray:
    """Return sets of classes, as 0 and 1, or intervals."""
    if hasattr(estimator, "predict_set"):
        return estimator.predict_set(X, alpha).astype(np.int64)
    return estimator.predict_interval(X, alpha)


def measure(estimator: Any, part: Part, predicted: np.ndarray) -> dict[str, Any]:
    """Return the errors of the predictions; empty if DATA has no labels that the model knows."""
    if part.y is None:
        return {}
    if predicted.ndim > 1 and part.y.shape != predicted.shape:
        say(f"{part.name}: it has one label for each row, the model has {predicted.shape[1]}, so no error is computed")
        return {}
    if isinstance(estimator, RankSVM):
        if "groups" not in part.extra:
            return {}
        try:
            return quality(estimator, part, predicted)
        except ValueError as error:  # nothing to rank in any query: the scores are wanted all the same
            say(f"{part.name}: {error}")
            return {}
    if hasattr(estimator, "classes_"):
        if not np.isin(as_classes(part.y, estimator.classes_), estimator.classes_).any():
            say(f"{part.name}: none of its labels is a class of the model, so no error is computed")
            return {}
    elif isinstance(estimator, OneClassSVM) and not np.isin(part.y, (-1, 1)).all():
        say(f"{part.name}: its labels are not 1 (inside) and -1 (outside), so no error is computed")
        return {}
    elif part.y.dtype.kind not in "biuf":
        say(f"{part.name}: its labels are not numbers, so no error is computed")
        return {}
    return quality(estimator, part, predicted)


def lines(
    predicted: np.ndarray, values: np.ndarray | None, lengths: np.ndarray | None = None, head: list | None = None
) -> Any:
    """Yield one line per row: the label, without control characters, then its scores or probabilities, with all digits.
    Sequences are separated by empty lines; the columns' names come first, if there are any.
    """
    if head is not None:
        yield joined(head)
    breaks = set() if lengths is None else set(np.cumsum(lengths)[:-1].tolist())
    for at, label in enumerate(predicted.tolist()):
        if at in breaks:
            yield "\n"
        labels = label if isinstance(label, list) else [label]
        yield joined([*labels, *(values[at].tolist() if values is not None else [])])


def joined(fields: list) -> str:
    """Join fields to a line."""
    return "\t".join(escaped(str(field)) for field in fields) + "\n"


def write_lines(path: str, written: Iterable[str]) -> None:
    """Write the lines to a file."""
    try:
        write_whole(path, written)
    except OSError as error:
        raise CommandError(f"{path}: the predictions could not be written: {error.strerror or error}") from error


# ---- how good predictions are, for numbers and for people


def predict(estimator: Any, part: Part) -> np.ndarray:
    """Predict the rows of a part."""
    if isinstance(estimator, SequenceSVM):
        return estimator.predict(part.X, lengths=part.extra["lengths"])
    return estimator.predict(part.X)


def quality(estimator: Any, part: Part, predicted: np.ndarray) -> dict[str, Any]:
    """Measure predictions against the labels of a part, as its file gave them.

    A classifier has an error rate, a sequence labeller also that of whole sequences; a ranking has its measure and NDCG
    (if no label is negative); a regression has the mean absolute and the root mean squared error.
    """
    y = part.y
    if isinstance(estimator, RankSVM):
        value = estimator.score(part.X, y, **part.extra)
        values = {"share_in_order" if estimator.loss == "swaps" else "average_precision": value}
        return values | ({"ndcg": estimator.ndcg(part.X, y, **part.extra)} if y.min() >= 0 else {})
    if not hasattr(estimator, "classes_") and not isinstance(estimator, OneClassSVM):
        residual = np.asarray(y, dtype=np.float64) - predicted
        return {
            "mean_absolute_error": float(np.abs(residual).mean()),
            "root_mean_squared_error": float(np.sqrt(np.square(residual).mean())),
        }
    wrong = predicted != (as_classes(y, estimator.classes_) if hasattr(estimator, "classes_") else y)
    n_wrong = int(np.count_nonzero(wrong))
    values = {"error_rate": n_wrong / len(y), "n_wrong": n_wrong}
    if "lengths" in part.extra:
        ends = np.cumsum(part.extra["lengths"])
        of_sequence = np.diff(np.cumsum(np.append(0, wrong))[np.append(0, ends)]) > 0
        values |= {"n_sequences_wrong": int(of_sequence.sum()), "n_sequences": len(ends)}
    return values


def as_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return labels in the type of the classes: 1 and 2 in a test file mean "1" and "2" if training had texts, too."""
    return y.astype(str) if classes.dtype.kind in "OU" and y.dtype.kind not in "OU" else y


def as_numbers(y: np.ndarray) -> np.ndarray:
    """Return labels as numbers if all are: 007 is a number where numbers are predicted."""
    try:
        return y.astype(np.float64) if y.dtype.kind in "OU" else y
    except ValueError:
        return y


def describe_quality(values: dict[str, Any]) -> str:
    """Describe the values of `quality` with `n_rows` in words."""
    if "error_rate" in values:
        wrong = f"{values['n_wrong']:,} of {values['n_rows']:,} wrong"
        if "n_sequences" in values:
            wrong += f"; {values['n_sequences_wrong']:,} of {values['n_sequences']:,} sequences"
        return f"error {100 * values['error_rate']:.2f} % ({wrong})"
    gain = f", NDCG {values['ndcg']:.4f}" if "ndcg" in values else ""
    if "share_in_order" in values:
        return f"{100 * values['share_in_order']:.2f} % of the pairs of a query in order, on average{gain}"
    if "average_precision" in values:
        return f"mean average precision {values['average_precision']:.4f}{gain}"
    return (
        f"mean absolute error {values['mean_absolute_error']:.4g}, "
        f"root mean squared error {values['root_mean_squared_error']:.4g} ({values['n_rows']:,} rows)"
    )
