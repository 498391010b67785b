"""What the rows of a file are: examples each by itself, queries of rows to rank, sequences of rows to label."""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from slimsvm.cli.block_data import is_read_in_blocks, read_blocks
from slimsvm.cli.data import Part, Trained, is_set, load_set, read_part
from slimsvm.cli.output import CommandError
from slimsvm.datasets import Dataset, has_queries, hash_columns, load, read_columns
from slimsvm.estimators import RankSVM, SequenceSVM

ROWS, QUERIES, SEQUENCES = "rows", "queries", "sequences"
FORMS = {"ranking": QUERIES, "sequence": SEQUENCES}
# Features that the words of columns are hashed to.
N_HASHED = 1 << 18


def form_of(estimator: Any) -> str:
    """What an estimator's data are."""
    kinds = {RankSVM: QUERIES, SequenceSVM: SEQUENCES}
    return kinds.get(type(estimator), ROWS)


def usual_task(source: str) -> str:
    """The task where none is named: ranking of rows that name their queries, else classification."""
    is_text = not is_set(source) and os.path.exists(source) and not is_read_in_blocks(source)
    is_ranking = is_text and has_queries(source)
    return "ranking" if is_ranking else "classification"


def read_form(
    form: str,
    source: str,
    args: argparse.Namespace,
    trained: Trained | None = None,
    labels_needed: bool = True,
    test: bool = False,
) -> Part:
    """Rows, labels and what else `fit` needs, of a file or a part of a benchmark set.

    Parameters
    ----------
    form : {"rows", "queries", "sequences"}
    source : str
        File, or name of a benchmark set.
    args : Namespace
        With what `data.add_reading_options` asks for.
    trained : Trained, optional
        What the model was trained on: features that there must be.
    labels_needed : bool
        False: the file may hold no labels (rows), no queries, or by ``args.unlabelled`` no label column (sequences).
    test : bool
        Of a benchmark set the test part.
    """
    n_features = None if trained is None else trained.n_features
    if is_set(source):
        part = part_of_set(form, source, test)
        if n_features is not None and part.X.shape[1] != n_features:
            raise CommandError(f"{source}: found {part.X.shape[1]} features, the model was trained on {n_features}")
        return part
    if is_read_in_blocks(source):
        if form != ROWS:
            raise CommandError(f"{source}: is read in blocks of rows, found {form} to read; give one file of text")
        return read_blocks(source, args, trained, labels_needed)
    if form == SEQUENCES and os.path.exists(source):
        columns, y, lengths = read_columns(source, labels=labels_needed or not args.unlabelled)
        return Part(source, hash_columns(columns, n_features or N_HASHED), y, {"lengths": lengths})
    if form == QUERIES and (labels_needed or _has_queries(source)):
        return read_part(source, args, trained, labels_needed, query_id=True)
    return read_part(source, args, trained, labels_needed)


def _has_queries(source: str) -> bool:
    return os.path.exists(source) and has_queries(source)


def part_of_set(form: str, name: str, test: bool) -> Part:
    """The training or test part of a benchmark set."""
    data = load(name) if form == SEQUENCES else load_set(name)
    X, y = (data.X_test, data.y_test) if test else (data.X_train, data.y_train)
    title = f"{name}, test part" if test else name
    if form == ROWS:
        return Part(title, X, y)
    if form == QUERIES:
        raise CommandError(f"{name}: has no queries to rank; give a file of LIBSVM text with qid:")
    return Part(title, _numbers(X), y, {"lengths": np.diff(_offsets(data, test))})


def _offsets(data: Dataset, test: bool) -> np.ndarray:
    offsets = data.test_offsets if test else data.train_offsets
    if offsets is None:
        raise CommandError(f"{data.name}: is not a set of sequences")
    return offsets


def _numbers(X: Any) -> Any:
    """Words as hashed features."""
    return hash_columns(X, N_HASHED) if X.dtype.kind in "OU" else X
