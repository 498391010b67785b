"""Run a benchmark, print its table, and write its numbers (and plots, where matplotlib is installed) to a folder.

A benchmark is a module with `add_arguments(parser)` and `run(args) -> dict`. Of the dict, "table" (a list of dicts, one
per line) is printed where it is there, and everything goes into DIR/NAME.json, with the machine it was measured on. A
module may also have `plot(result, folder) -> paths` for figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.shared.registry import BENCHES, draw
from slimsvm.cli import exit_code
from slimsvm.cli.output import machine, print_json, say, table, write_json


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line of the benchmarks; exit codes are those of `slimsvm.cli.main`."""
    return exit_code(run_benchmark, sys.argv[1:] if argv is None else list(argv))


def build_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Parser of the whole command line; only the benchmark that ``argv`` begins with knows its options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Benchmarks of slimsvm.",
        epilog="`python -m benchmarks NAME --help` says more.",
    )
    benches = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for name, bench in BENCHES.items():
        known = benches.add_parser(
            name, help=bench.text, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )
        if name in argv[:1]:
            module = import_module(bench.module)
            known.description = module.__doc__
            known.add_argument(
                "--output", metavar="DIR", default="results", help="folder to write to (default: %(default)s)"
            )
            known.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
            module.add_arguments(known)
    return parser


def run_benchmark(argv: list[str]) -> int:
    """Run one benchmark and report."""
    options = build_parser(argv).parse_args(argv)
    name = options.name
    bench = import_module(BENCHES[name].module)
    begun = time.perf_counter()
    result = bench.run(options)
    record = {
        "bench": name,
        "seconds": time.perf_counter() - begun,
        "machine": machine(),
        "options": {
            key: value for key, value in vars(options).items() if key not in UNTOLD and isinstance(value, PLAIN)
        },
        **result,
    }
    path = Path(options.output) / f"{name}.json"
    write_json(path, record)
    paths = [path, *draw(getattr(bench, "plot", None), result, path.parent)]
    if options.json:
        print_json(record)
    elif "table" in result:
        print(table(result["table"]))
    for written in paths:
        say(f"written: {written}")
    return 0


PLAIN = (str, int, float, bool, list, tuple, type(None))
UNTOLD = ("name", "output", "peers_python")  # options that say nothing of what was measured
