"""Which benchmarks there are, and how their figures are drawn."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from slimsvm.cli.output import say


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
    "guarantees": Bench("benchmarks.guarantees", "sets, intervals and p-values: how often right, size beside MAPIE's"),
    "probabilities": Bench(
        "benchmarks.probabilities", "probabilities of SVC beside CalibratedClassifierCV's: log loss"
    ),
    "board": Bench("benchmarks.board.command", "tables as they are, ours beside boosted trees and others: losses, Elo"),
    "unscaled": Bench("benchmarks.unscaled", "SVC and SVR beside scikit-learn's on data that nobody scaled"),
    "few-vectors": Bench("benchmarks.few_vectors", "error against vectors: README's first screen"),
    "fixed-point": Bench("benchmarks.fixed_point", "C headers in int16 beside the model in Python: test errors"),
    "onnx": Bench("benchmarks.onnx_graphs", "ONNX graphs beside ONNX Runtime's SVMClassifier: time, error of scores"),
    "search": Bench("benchmarks.search", "a grid over C and gamma by five folds beside scikit-learn's GridSearchCV"),
    "cross-training": Bench(
        "benchmarks.cross_training.command", "editing of training sets: the experiments of its paper"
    ),
    "budget": Bench("benchmarks.budget.command", "BSCA and BSGD within budgets of vectors: test error against seconds"),
    "peers": Bench("benchmarks.peers.command", "what users would take instead: error against seconds and vectors"),
    "scaling": Bench("benchmarks.peers.scaling", "seconds against rows, ours and of what users would take: exponents"),
    "blocks": Bench("benchmarks.blocks.command", "rows from files and by Dask: time, memory, bits, killed workers"),
    "all": Bench("benchmarks.report.all_cells", "every experiment, cell by cell; what is done is not run again"),
    "report": Bench("benchmarks.report.page", "the page of what `all` measured"),
    "tables": Bench("benchmarks.report.doc_tables", "README's and the docs' tables, written from committed results"),
    "structured": Bench("benchmarks.structured.command", "sequences, and measures over all rows: words, chunks, F1"),
    "ocr-letters": Bench("benchmarks.ocr_letters", "handwritten words: learned vectors beside cuts and pursuit"),
}


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
