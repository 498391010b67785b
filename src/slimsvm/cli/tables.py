"""`slimsvm train` for tables: CSV files as they are, with texts, dates and missing values; also their predictions."""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import re
import warnings
import zlib
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from slimsvm.cli.data import Part
from slimsvm.cli.model_file import check_model_path, check_outputs
from slimsvm.cli.output import CommandError, print_json, say, size
from slimsvm.datasets.csv_tables import LABEL_NAMES, delimiter_of
from slimsvm.datasets.files import encoding_of
from slimsvm.deploy.steps import Encoding
from slimsvm.estimators.tables import TableClassifier, TableRegressor
from slimsvm.tables import table_of
from slimsvm.tables.containers import Column
from slimsvm.tables.texts import STYLES, style_of, without_mark
from slimsvm.tables.texts import as_numbers as numbers_of

Columns = dict[str, Any]

# The largest number of distinct whole numbers that count as classes.
MOST_CLASSES = 20
# Options of `slimsvm train` that go with tables.
TAKEN = ("command", "data", "model", "test", "cv", "json", "quiet", "target", "task", "max_seconds", "n_jobs",
         "random_state", "run", "parser", "version")  # fmt: skip
# What truth values are to steps of a pipeline.
TRUTH = {"True": "1", "False": "0", "true": "1", "false": "0"}
# One row in EVERY is held out where there is no --test.
EVERY = 5
# The rows that tell whether a file is a table.
ROWS_LOOKED_AT = 1000


def is_table(args: argparse.Namespace) -> bool:
    """Whether a CSV file whose first line has names holds texts, dates or gaps beside the label, among its first rows.

    Not where an option is given that does not go with tables.
    """
    if (
        not (args.data.lower().endswith((".csv", ".csv.gz")) and os.path.isfile(args.data))
        or foreign_option(args) is not None
    ):
        return False
    try:
        rows = csv_rows(args.data, ROWS_LOOKED_AT + 1)
    except (OSError, UnicodeDecodeError, EOFError, zlib.error, csv.Error):
        return False
    if not rows or any(is_number(name) for name in rows[0]):
        return False
    names = [name.strip() for name in rows[0]]
    labels = (usual_labels(names) or names[-1:]) if args.target is None else [args.target]
    return any(
        not is_number(value) for row in rows[1:] for name, value in zip(names, row, strict=False) if name not in labels
    )


def is_number(text: str) -> bool:
    """Whether a field is a number, infinite ones too, which no table takes either."""
    try:
        return not np.isnan(float(text))
    except ValueError:
        return False


def foreign_option(args: argparse.Namespace) -> str | None:
    """Return the first given option that does not go with tables."""
    given = (name for name, value in vars(args).items() if value != args.parser.get_default(name))
    return next((name for name in given if name not in TAKEN), None)


def train_table(args: argparse.Namespace) -> int:
    """Train on a table, measure on rows held out, by ``--cv`` or on ``--test``, train on all rows, save."""
    if (foreign := foreign_option(args)) is not None:
        args.parser.error(f"--{foreign.replace('_', '-')} does not go with --task table")
    if args.cv is not None and args.test is not None:
        args.parser.error("--cv and --test both say which rows measure: give one of them")
    check_model_path(args.model)
    check_outputs([args.model], [args.data, args.test])
    columns = read_csv(args.data)
    label = label_of(columns, args.target, args.data)
    y = labels_of(columns.pop(label), label, args.data)
    if not columns:
        raise CommandError(f"{args.data}: has no column besides the label {label!r}")
    options = {"time_limit": args.max_seconds, "n_jobs": args.n_jobs, "random_state": args.random_state}
    cls = TableClassifier if y.dtype.kind == "U" else TableRegressor
    if cls is TableClassifier and len(np.unique(y)) == 1:
        raise CommandError(
            f"{args.data}: the label {label!r} is {str(y[0])!r} in all rows: there must be at least two classes"
        )
    estimator: Any = cls(**options, verbose=not (args.quiet or args.json))
    if args.test is None:
        if len(y) < (args.cv or EVERY):
            raise CommandError(f"{args.data}: has {len(y)} rows, too few to hold some out: give --test FILE")
        found = []
        for train, held in folds_of(y, args.cv or EVERY)[: args.cv or 1]:
            tried = estimator.fit(rows_of(columns, train), y[train])
            found.append(measures(tried, rows_of(columns, held), y[held]))
        test = {"rows": "held out"} | (found[0] if args.cv is None else averaged(found))
    estimator.fit(columns, y)
    estimator.label_name_ = label
    if args.test is not None:
        others = read_csv(args.test)
        if label not in others:
            raise CommandError(f"{args.test}: has no column {label!r}, found {told(others)}")
        test = {
            "rows": args.test,
            **measures(estimator, others, labels_of(others[label], label, args.test, as_numbers=cls is TableRegressor)),
        }
    estimator.save(args.model)
    report = {"data": args.data, "label": label, "test": test, "report": estimator.report_, "model": args.model}
    report["model_bytes"] = os.path.getsize(args.model)
    if args.json:
        print_json(report)
    else:
        kind = f"{len(estimator.classes_)} classes" if hasattr(estimator, "classes_") else "numbers"
        print(f"label {label!r}: {kind}\n{estimator.report_}\n{described(test)}")
        print(f"model {args.model}, {size(report['model_bytes'])}")
    if not args.quiet and not test["is_better"]:
        say("the model is no better than one constant prediction: does any column say something about the label?")
    return 0


def predictions_of(estimator: Any, args: argparse.Namespace) -> tuple[dict[str, Any], Any, Any, None, Any]:
    """Predict the rows of a table, whose columns are found by their names; return a report, predictions, probabilities
    or scores, no lengths, and names of columns.
    """
    is_classifier = hasattr(estimator, "classes_")
    if (args.probabilities or args.scores) and not is_classifier:
        raise CommandError(f"{args.model}: predicts numbers, which have no probabilities or scores")
    estimator.set_params(n_jobs=args.n_jobs)
    columns = read_csv(args.data)
    predicted, values, head = estimator.predict(columns), None, None
    if args.probabilities:
        values, head = estimator.predict_proba(columns), ["label", *estimator.classes_.tolist()]
    elif args.scores:
        values = estimator.decision_function(columns).reshape(len(predicted), -1)
    elif args.alpha is not None and is_classifier:
        values, head = estimator.predict_set(columns, args.alpha).astype(int), ["label", *estimator.classes_.tolist()]
    elif args.alpha is not None:
        values, head = estimator.predict_interval(columns, args.alpha), ["label", "low", "high"]
    report: dict[str, Any] = {"model": args.model, "data": args.data, "n_rows": len(predicted)}
    label = getattr(estimator, "label_name_", None)
    if label in columns and label not in estimator.feature_names_in_ and not is_missing(columns[label]).any():
        y = labels_of(columns[label], label, args.data, as_numbers=not is_classifier)
        report["test"] = measures(estimator, columns, y)
        if not (args.quiet or args.json):
            say(f"{args.data}: {described(report['test'])}")
    return report, predicted, values, None, head


def print_table_model(estimator: Any, args: argparse.Namespace) -> int:
    """Print the contents of a table model's file: its columns, its terms and how much columns count."""
    names = [encoder.name for encoder in estimator.encoding_.encoders]
    importances = dict(zip(names, estimator.feature_importances_.tolist(), strict=True))
    report = {"model": args.model, "estimator": type(estimator).__name__, "report": estimator.report_}
    if args.json:
        print_json(report | {"importances": importances})
        return 0
    print(f"{report['model']}, {report['estimator']}, {size(os.path.getsize(args.model))}\n{estimator.report_}")
    print("importances of columns")
    for name, share in sorted(importances.items(), key=lambda item: -item[1]):
        print(f"  {share:.3f} {name or '(no name)'}")
    return 0


# -- files and labels --------------------------------------------------------------------------------------------------


def csv_rows(path: str, most_lines: int | None = None) -> list[list[str]]:
    """Return the rows of a CSV file, only its first lines on request; separated by commas, semicolons or tabs."""
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    with opened(path, "rb") as file, io.TextIOWrapper(file, encoding_of(file.peek(2)), newline="") as text:
        lines = list(islice(text, most_lines))
    if any("\0" in line for line in lines):
        raise csv.Error("found a zero byte, which no text has")
    if lines and (said := re.fullmatch(r"sep=([,;\t])\r?\n", lines[0])):  # as Excel writes
        return [row for row in csv.reader(lines[1:], delimiter=said[1]) if row]
    return [row for row in csv.reader(lines, delimiter=delimiter_of(lines[0])) if row] if lines else []


def usual_labels(names: Iterable[str]) -> list[str]:
    """Return the columns with a usual name of labels."""
    return [name for name in names if name.lower() in LABEL_NAMES]


def read_csv(path: str) -> Columns:
    """Read the columns of a CSV file whose first line names them; separated by commas, semicolons or tabs."""
    try:
        rows = csv_rows(path)
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, EOFError, zlib.error, csv.Error) as error:
        raise CommandError(f"{path}: is no CSV file in UTF-8 or UTF-16, or one compressed by gzip: {error}") from error
    if len(rows) < 2:
        raise CommandError(f"{path}: holds no rows below a line with the names of the columns")
    names = [name.strip() for name in rows[0]]
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise CommandError(f"{path}: every column needs a name of its own, found more than once: {told(twice)}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(names):
            raise CommandError(f"{path}, row {number}: found {len(row)} values, the first line has {len(names)} names")
    # Sheets write columns without a name or a value at their right edge.
    kept = [at for at, name in enumerate(names) if name or any(row[at].strip() for row in rows[1:])]
    if len(unnamed := [str(at + 1) for at in kept if not names[at]]) > 1:
        raise CommandError(f"{path}: columns {', '.join(unnamed)} have no name: only one may have none")
    return {names[at]: [row[at] for row in rows[1:]] for at in kept}


def read_texts(encoding: Encoding, path: str, label: str | None) -> Part:
    """The columns that the steps of a pipeline take, in their order, and labels where the file has them."""
    columns = read_csv(path)
    label = next(iter(usual_labels(columns)), None) if label is None else label_of(columns, label, path)
    names = encoding.names or tuple(name for name in columns if name != label)
    needed = encoding.needed
    if missing := [name for j, name in enumerate(names) if name not in columns and j in needed]:
        raise CommandError(f"{path}: has no column {told(missing)}, found {told(columns)}")
    values = np.zeros((len(next(iter(columns.values()))), len(names)), object)
    for j, (name, has_texts) in enumerate(zip(names, encoding.texts(), strict=False)):
        if j not in needed:
            continue
        texts = table_of({name: columns[name]}).columns[0].values
        values[:, j] = texts if has_texts else numbers_or_truth(name, texts, path)
    y = None if label is None or label in names else np.array(columns[label])
    return Part(path, values, y, label=label)


def numbers_or_truth(name: str, texts: Any, path: str) -> np.ndarray:
    """Numbers of the texts of a column, 1 and 0 of "True" and "False", NaN where there is none."""
    column = Column(name, "texts", np.array([TRUTH.get(text, text) for text in texts], object))
    style = style_of(column) or "point"
    for row, text in enumerate(column.values):
        if text is not None and STYLES[style].fullmatch(without_mark(text)) is None:
            raise CommandError(f"{path}, row {row + 2}: the column {name!r} is {texts[row]!r}, where a number belongs")
    return numbers_of(column, style)


def label_of(columns: Columns, target: str | None, path: str) -> str:
    """Return the column of the label: the one that was asked for, or one with a usual name."""
    if target is not None:
        if target not in columns:
            raise CommandError(f"{path}: has no column {target!r}, found {told(columns)}")
        return target
    found = usual_labels(columns)
    if len(found) != 1:
        raise CommandError(f"{path}: which column is the label? Give it by --label NAME, one of {told(columns)}")
    return found[0]


def told(names: Any) -> str:
    """Return names in a line."""
    return ", ".join(map(repr, names))


def is_missing(values: list[str]) -> np.ndarray:
    """Return which texts of a file stand for a missing value."""
    return table_of({"": values}).columns[0].is_missing


def labels_of(values: list[str], label: str, path: str, as_numbers: bool | None = None) -> np.ndarray:
    """Return labels, none of which may be missing: numbers if the model predicts numbers, else texts of classes;
    without a model, what they look like. Classes that are whole numbers are the same with a point: 1.0 is "1".
    """
    if is_missing(values).any():
        row = int(np.argmax(is_missing(values)))
        raise CommandError(f"{path}, row {row + 2}: the label {label!r} is missing")
    column = table_of({label: values}).columns[0]
    style = style_of(column)
    if style in (None, "clock") and not as_numbers:
        return np.array(column.values, dtype=str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a label that is no number is an error
        numbers = numbers_of(column, style or "point")
    is_whole, is_text = numbers == np.round(numbers), np.isnan(numbers)
    if as_numbers is None:
        as_numbers = not ((is_whole | is_text).all() and len(np.unique(numbers)) <= MOST_CLASSES)
    if not as_numbers:
        pairs = zip(column.values, numbers, is_whole, strict=True)
        # 10 % is the class that it says.
        plain = [f"{n:.0f}" if whole and without_mark(text) == text else text for text, n, whole in pairs]
        return np.array(plain, dtype=str)
    if is_text.any():
        row = int(np.argmax(is_text))
        raise CommandError(
            f"{path}, row {row + 2}: the label {label!r} is {values[row]!r}, where others are numbers: correct it, or "
            "leave out the row"
        )
    return numbers


def folds_of(y: np.ndarray, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each fold the rows to train on, and those to measure on."""
    is_class = y.dtype.kind == "U"
    few = is_class and min(np.unique(y, return_counts=True)[1]) < n_folds
    folds: Any = StratifiedKFold if is_class and not few else KFold
    return list(folds(n_folds, shuffle=True, random_state=0).split(np.zeros(len(y)), y))


def rows_of(columns: Columns, rows: np.ndarray) -> Columns:
    """Return some rows of the columns."""
    return {name: [values[row] for row in rows] for name, values in columns.items()}


# -- measures ----------------------------------------------------------------------------------------------------------


def measures(estimator: Any, columns: Columns, y: np.ndarray) -> dict[str, Any]:
    """Return how good predictions are, beside one constant prediction for all rows."""
    if not hasattr(estimator, "classes_"):
        errors = estimator.predict(columns) - y
        found = {"n_rows": len(y), "root_mean_squared_error": float(np.sqrt(np.mean(errors**2)))}
        found["of_the_mean"] = float(y.std())
        return found | {"is_better": found["root_mean_squared_error"] < found["of_the_mean"]}
    known = np.isin(y, estimator.classes_)
    probabilities = estimator.predict_proba(columns)
    predicted = estimator.classes_[probabilities.argmax(axis=1)]
    found = {"n_rows": len(y), "error_rate": float(np.mean(predicted != y))}
    found["error_of_the_largest_class"] = 1.0 - max(np.unique(y, return_counts=True)[1]) / len(y)
    if known.all():
        found["log_loss"] = float(log_loss(y, probabilities, labels=estimator.classes_))
        if len(estimator.classes_) == 2 and len(np.unique(y)) == 2:
            found["auc"] = float(roc_auc_score(y == estimator.classes_[1], probabilities[:, 1]))
    return found | {"is_better": bool(found["error_rate"] < found["error_of_the_largest_class"])}


def averaged(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Average measures of several folds: rows in all, and means of what all folds have."""
    names = [name for name in found[0] if all(name in each for each in found)]
    means = {name: float(np.mean([each[name] for each in found])) for name in names}
    is_better = means.pop("is_better") > 0.5
    return {"folds": len(found)} | means | {"n_rows": sum(each["n_rows"] for each in found), "is_better": is_better}


def described(test: dict[str, Any]) -> str:
    """Describe measures in a line."""
    start = f"{test['n_rows']:,} rows" + (" held out" if test.get("rows") == "held out" else "")
    start += f", means of {test['folds']} folds" if "folds" in test else ""
    if "error_rate" not in test:
        return (
            f"{start}: root mean squared error {test['root_mean_squared_error']:.4g}; "
            f"{test['of_the_mean']:.4g} with the mean for all rows"
        )
    more = "".join(
        f", {name} {test[key]:.4g}" for key, name in (("log_loss", "log loss"), ("auc", "AUC")) if key in test
    )
    return (
        f"{start}: error {100 * test['error_rate']:.2f} %{more}; "
        f"{100 * test['error_of_the_largest_class']:.2f} % with the largest class for all rows"
    )
