"""Run a benchmark, print its table, and write its numbers (and plots, where matplotlib is installed) to a folder.

A benchmark is a module with `add_arguments(parser)` and `run(args) -> dict`. Of the dict, "table" (a list of dicts, one
per line) is printed where it is there, and everything goes into DIR/NAME.json, with the machine it was measured on. A
module may also have `plot(result, folder) -> paths` for figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from slimsvm.cli import exit_code
from slimsvm.cli.output import machine, print_json, say, table, write_json


class Bench(NamedTuple):
    """A benchmark's module, imported only when asked for, and what it measures."""

    module: str
    text: str


BENCHES = {
    "core": Bench("benchmarks.core.command", "two versions of the library side by side: seconds, and what came of it"),
    "kernels": Bench("benchmarks.kernels", "kernel evaluations per second, beside SGEMM of the same shape"),
    "prediction": Bench("benchmarks.prediction", "prediction of many rows, and of one beside SVC"),
    "sampled-cuts": Bench("benchmarks.sampled_cuts.command", "exact and sampled cuts: the experiments of the paper"),
    "subspace": Bench("benchmarks.subspace.command", "models of 10 to 2000 vectors against the exact SVM"),
    "learned-bases": Bench("benchmarks.learned_bases", "learned vectors with their defaults: test error, seconds"),
    "exact": Bench(
        "benchmarks.exact.command", "the exact solver beside scikit-learn, LIBSVM and others: time, objective"
    ),
    "defaults": Bench("benchmarks.defaults", 'SVC(), SVR() and max_basis="auto" beside scikit-learn\'s, default C'),
    "few-vectors": Bench("benchmarks.few_vectors", "error against vectors: README's first screen"),
    "fixed-point": Bench("benchmarks.fixed_point", "C headers in int16 beside the model in Python: test errors"),
    "onnx": Bench("benchmarks.onnx_graphs", "ONNX graphs beside ONNX Runtime's SVMClassifier: time, error of scores"),
    "search": Bench("benchmarks.search", "a grid over C and gamma by five folds beside scikit-learn's GridSearchCV"),
    "cross-training": Bench(
        "benchmarks.cross_training.command", "editing of training sets: the experiments of its paper"
    ),
    "budget": Bench("benchmarks.budget.command", "BSCA and BSGD within budgets of vectors: test error against seconds"),
    "peers": Bench("benchmarks.peers", "what users would take instead: error against seconds and vectors"),
    "scaling": Bench("benchmarks.scaling", "seconds against rows, ours and what users would take instead: exponents"),
    "all": Bench("benchmarks.report.all_cells", "every experiment, cell by cell; what is done is not run again"),
    "report": Bench("benchmarks.report.page", "the page of what `all` measured"),
    "tables": Bench("benchmarks.report.doc_tables", "README's and the docs' tables, written from committed results"),
    "structured": Bench("benchmarks.structured.command", "sequences, and measures over all rows: words, chunks, F1"),
    "ocr-letters": Bench("benchmarks.ocr_letters", "handwritten words: learned vectors beside cuts and pursuit"),
}


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
        "options": {key: value for key, value in vars(options).items() if key != "name" and isinstance(value, PLAIN)},
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


def draw(plot: Callable[[Any, Path], Any] | None, result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the figures of a benchmark that has some."""
    if plot is None:
        return []
    if find_spec("matplotlib") is None:
        say("no plots: matplotlib is not installed (pip install 'slimsvm[plots]')")
        return []
    from matplotlib import style

    style.use("tableau-colorblind10")
    return [Path(path) for path in plot(result, folder)]
