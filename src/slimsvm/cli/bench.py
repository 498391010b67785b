"""Run a benchmark, print its table, and write its numbers (and plots, where matplotlib is installed) to a folder.

A benchmark is a module with `add_arguments(parser)` and `run(args) -> dict`. Of the dict, "table" (a list of dicts, one
per line) is printed where it is there, and everything goes into DIR/NAME.json, with the machine it was measured on. A
module may also have `plot(result, folder) -> paths` for figures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from slimsvm.cli.output import machine, print_json, say, table, write_json


class Bench(NamedTuple):
    """A benchmark's module, imported only when asked for, and what it measures."""

    module: str
    text: str


BENCHES = {
    "kernels": Bench("slimsvm.cli.bench_kernels", "kernel evaluations per second, beside SGEMM of the same shape"),
    "prediction": Bench("slimsvm.cli.bench_prediction", "prediction of many rows, and of one beside SVC"),
    "sampled-cuts": Bench("slimsvm.cli.bench_sampled_cuts", "exact and sampled cuts: the experiments of the paper"),
    "subspace": Bench("slimsvm.cli.bench_subspace", "models of 10 to 2000 vectors against the exact SVM"),
    "exact": Bench(
        "slimsvm.cli.bench_exact", "the exact solver beside scikit-learn, LIBSVM and others: time, objective"
    ),
    "cross-training": Bench(
        "slimsvm.cli.bench_cross_training", "editing of training sets: the experiments of its paper"
    ),
    "budget": Bench("slimsvm.cli.bench_budget", "BSCA and BSGD within budgets of vectors: test error against seconds"),
    "structured": Bench("slimsvm.cli.bench_structured", "sequences, and measures over all rows: words, chunks, F1"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``slimsvm bench``; those behind the name belong to the benchmark."""
    parser.add_argument("name", metavar="NAME", choices=BENCHES, help=f"one of {', '.join(BENCHES)}")
    parser.add_argument(
        "options", nargs=argparse.REMAINDER, help="the benchmark's own, see `slimsvm bench NAME --help`"
    )
    parser.epilog = "benchmarks:\n" + "\n".join(f"  {name:<15} {bench.text}" for name, bench in BENCHES.items())


def run(args: argparse.Namespace) -> int:
    """Run one benchmark and report."""
    bench = import_module(BENCHES[args.name].module)
    options = parse_options(args.name, bench, args.options)
    begun = time.perf_counter()
    result = bench.run(options)
    record = {
        "bench": args.name,
        "seconds": time.perf_counter() - begun,
        "machine": machine(),
        "options": {name: value for name, value in vars(options).items() if isinstance(value, PLAIN)},
        **result,
    }
    path = Path(options.output) / f"{args.name}.json"
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


def parse_options(name: str, bench: Any, argv: list[str]) -> argparse.Namespace:
    """Options of the benchmark, and the two that all have."""
    parser = argparse.ArgumentParser(
        prog=f"slimsvm bench {name}",
        description=bench.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--output", metavar="DIR", default="results", help="folder to write to (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    bench.add_arguments(parser)
    return parser.parse_args(argv)


def draw(plot: Callable[[Any, Path], Any] | None, result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the figures of a benchmark that has some."""
    if plot is None:
        return []
    if find_spec("matplotlib") is None:
        say("no plots: matplotlib is not installed (pip install 'slimsvm[plots]')")
        return []
    return [Path(path) for path in plot(result, folder)]
