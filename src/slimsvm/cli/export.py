"""Write a saved model in a form that needs neither this library nor Python.

The file gets the model's name, beside it, unless --output says otherwise. Nothing is trained or changed; see
docs/deploy for what each form holds and how it is used.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from slimsvm.cli.output import CommandError
from slimsvm.deploy import TARGETS, writer_of
from slimsvm.deploy.plain_model import read_plain_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``slimsvm export``."""
    parser.add_argument("model", metavar="MODEL", help="file that `slimsvm train`, or an estimator's save, wrote")
    forms = "; ".join(f"{name}: {target.text}" for name, target in TARGETS.items())
    parser.add_argument("--to", required=True, choices=list(TARGETS), help=forms)
    parser.add_argument("--output", metavar="FILE", help="write to this file")
    parser.add_argument("--name", metavar="NAME", help="c: what names begin with (default: the file's name)")


def run(args: argparse.Namespace) -> int:
    """Read, write, say what was written."""
    if args.name is not None and args.to != "c":
        raise CommandError(f"--name goes with --to c, found --to {args.to}")
    path = Path(args.output) if args.output else Path(args.model).with_suffix(TARGETS[args.to].suffix)
    options = {} if args.name is None else {"name": args.name}
    print(writer_of(args.to)(read_plain_model(args.model), path, **options))
    return 0
