"""Benchmarks are no part of the installed package: run `python -m benchmarks NAME` in a checkout of the sources."""

from __future__ import annotations

import argparse

from slimsvm.cli.output import say

WRONG_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whatever followed ``slimsvm bench`` when it ran a benchmark."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="a benchmark")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="its options")


def run(args: argparse.Namespace) -> int:
    """Say where the benchmarks went."""
    words = " ".join([args.name or "NAME", *args.options])
    say(f"error: benchmarks run from a checkout of the sources: `python -m benchmarks {words}`")
    return WRONG_USAGE
