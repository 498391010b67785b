"""Write a saved model in a form that needs neither this library nor Python.

The file is written beside the model, under the model's name, unless --output names another. Nothing is trained or
changed. The documentation has a page on each form: "Deploying models".
"""

from __future__ import annotations

import argparse
from pathlib import Path

from slimsvm.cli.data import ROWS, add_reading_options, in_memory, read_form
from slimsvm.cli.model_file import check_outputs, load_steps
from slimsvm.cli.output import CommandError
from slimsvm.deploy import TARGETS, forms_with, writer_of
from slimsvm.deploy.c_header import DTYPES
from slimsvm.deploy.plain_model import plain_model_of_parts
from slimsvm.deploy.table_model import table_model
from slimsvm.modelfile import damage_named, read_model

# Rows may take a quarter of these megabytes in memory.
MEMORY_LIMIT = 2000
# Options of a writer that have another name on the command line.
FLAGS = {"dtype": "type"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``slimsvm export``."""
    parser.add_argument("model", metavar="MODEL", help="file that `slimsvm train`, or an estimator's save, wrote")
    forms = "; ".join(f"{name}: {target.text}" for name, target in TARGETS.items())
    parser.add_argument("--to", required=True, choices=list(TARGETS), help=forms)
    parser.add_argument("--output", metavar="FILE", help="write to this file")
    parser.add_argument("--name", metavar="NAME", help="c: beginning of the names (default: the file's name)")
    parser.add_argument(
        "--type",
        choices=DTYPES,
        help="c: type of rows, scores and everything between; int16: fixed point, with rows and scores in float32 "
        "(default: auto, float32 if scores are right to 5e-6 of the largest, else float64). "
        "onnx: float32 or float64 for all of the graph (default: auto, as much float64 as that needs)",
    )
    parser.add_argument(
        "--rows", metavar="DATA", help="c: data file or set on which the error is measured (default: rows near "
        "the model's vectors)",
    )  # fmt: skip
    parser.add_argument(
        "--alpha", type=float, metavar="A", help="c, onnx: add sets of classes, or intervals, which contain the "
        "truth with a probability of at least 1 - A; for models of train --calibration-size",
    )  # fmt: skip
    add_reading_options(parser)


def run(args: argparse.Namespace) -> int:
    """Read, write, say what was written."""
    given = {"name": args.name, "dtype": args.type, "rows": args.rows, "alpha": args.alpha}
    for name, value in given.items():
        if value is not None and args.to not in (forms := forms_with(name)):
            raise CommandError(f"--{FLAGS.get(name, name)} goes with --to {' or '.join(forms)}, found --to {args.to}")
    if args.to == "onnx" and args.type == "int16":
        raise CommandError("--type int16 goes with --to c, found --to onnx")
    path = Path(args.model).with_suffix(TARGETS[args.to].suffix) if args.output is None else Path(args.output)
    check_outputs([path], [args.model, args.rows])
    options = {name: value for name, value in given.items() if value is not None}
    header, arrays = read_model(args.model)
    if "table" in header:
        with damage_named(f"{args.model}: not a model this version knows"):
            table = table_model(header, arrays)
        print(writer_of(args.to, of_table=True)(table, path, **options))
        return 0
    model = plain_model_of_parts(args.model, header, arrays, by_columns=False)
    if args.rows is not None:
        trained = load_steps(args.model)[2]
        part = read_form(ROWS, args.rows, args, trained, labels_needed=False, test=True)
        options["rows"] = in_memory(part, MEMORY_LIMIT).X
    print(writer_of(args.to)(model, path, **options))
    return 0
