"""List the benchmark sets: sizes, and where their files were found."""

from __future__ import annotations

import argparse
import os
from typing import Any

from slimsvm.cli.output import print_json, table
from slimsvm.datasets import DatasetInfo, available
from slimsvm.datasets.loading import search_folders


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``slimsvm datasets``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """List what is known and what is here."""
    infos = available()
    folders = [os.fspath(folder) for folder in search_folders()]
    if args.json:
        print_json({"folders": folders, "datasets": [describe(info) for info in infos]})
        return 0
    print(table([row(info) for info in infos]))
    print(f"\n{sum(info.found for info in infos)} of {len(infos)} sets found. Folders searched, first one first:")
    for folder in folders:
        print(f"  {folder}{'' if os.path.isdir(folder) else ' (not there)'}")
    return 0


def describe(info: DatasetInfo) -> dict[str, Any]:
    """Everything `--json` says of a set."""
    return {
        "name": info.name,
        "found": info.found,
        "paths": list(map(str, info.paths)),
        "n_train": info.n_train,
        "n_test": info.n_test,
        "n_features": info.n_features,
        "n_classes": info.n_classes,
        "description": info.description,
        "origin": info.origin,
    }


def row(info: DatasetInfo) -> dict[str, Any]:
    """A set's line of the table."""
    folders = dict.fromkeys(os.fspath(path.parent) for path in info.paths)
    return {
        "name": info.name,
        "train": info.n_train,
        "test": info.n_test,
        "features": info.n_features,
        "classes": info.n_classes,
        "found in": ", ".join(folders) if info.found else None,
    }
