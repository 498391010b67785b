"""Data of a command: files, files that are read block by block, and benchmark sets, which ``slimsvm datasets`` lists.

The rows of a file are examples each by itself, queries of rows to rank, or sequences of rows to label.
"""

from __future__ import annotations

import argparse
import glob
import os
import stat
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.cli.output import CommandError, print_json, table
from slimsvm.datasets import (
    DataError,
    Dataset,
    DatasetInfo,
    DataWarning,
    available,
    find,
    has_queries,
    hash_columns,
    load,
    read_columns,
    read_libsvm_blocks,
)
from slimsvm.datasets.csv_tables import LABEL_NAMES, UNNAMED, Asked, by_name, is_index, say_index
from slimsvm.datasets.loading import search_folders
from slimsvm.datasets.readers import read_table, whole_numbers
from slimsvm.rows import Blocks, Rows

ZERO_BASED: dict[str, Any] = {"auto": "auto", "yes": True, "no": False}


@dataclass(frozen=True)
class Part:
    """Rows and labels as they were read."""

    name: str  # the file, or the set and its part
    X: Any  # ndarray or csr_array of shape (n, d)
    y: Any  # shape (n,); None if the file has no labels
    # What else `fit` and `score` take: the ``groups`` of rows to rank, the ``lengths`` of sequences.
    extra: dict[str, Any] = field(default_factory=dict)
    names: list[str] | None = None  # of the features, if the file has names of columns
    label: str | None = None  # the column of the labels, if it has a name

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return self.X.shape[0]


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how text is read."""
    group = parser.add_argument_group("reading data")
    group.add_argument(
        "--target", "--label", metavar="NAME", help="column of the label in a CSV or Parquet file, or its array in a "
        ".npz file (default: a column called label, target, y or class, or else the last of a CSV file; array y); its "
        "number, from 1 on, where a CSV file has no header",
    )  # fmt: skip
    group.add_argument(
        "--header", action=argparse.BooleanOptionalAction, default=None,
        help="whether the first line of a CSV file names the columns (default: by what it looks like)",
    )  # fmt: skip
    group.add_argument(
        "--zero-based",
        choices=ZERO_BASED,
        default="auto",
        help="whether indices of LIBSVM text count from 0 (default: auto, they do if a 0 occurs in the file; give "
        "it if files could differ)",
    )


def is_set(source: str) -> bool:
    """Whether a source is the name of a benchmark set: files come first."""
    if os.path.exists(source):
        return False
    try:
        find(source)
    except DataError:
        return False
    return True


@dataclass(frozen=True)
class Trained:
    """The features and the label that a model was trained on; other rows must have the same."""

    n_features: int
    names: Sequence[str] | None = None  # of the features, if they have names
    label: str | None = None  # the column of the labels, if it has a name


def asked_of(args: argparse.Namespace, trained: Trained | None, labels_needed: bool) -> Asked:
    """Return the columns that a file must have, by the options and by the training of the model."""
    if trained is None:
        return Asked(None, args.target, args.header, labels_needed=labels_needed)
    label = None if args.target is not None else trained.label
    n_features = trained.n_features if trained.names is None else None
    return Asked(n_features, args.target, args.header, trained.names, label, labels_needed)


def read_part(
    source: str,
    args: argparse.Namespace,
    trained: Trained | None = None,
    labels_needed: bool = True,
    query_id: bool = False,
) -> Part:
    """Read rows and labels of one file.

    It must have the columns of ``trained``, LIBSVM text may have them. Without ``labels_needed`` a CSV or .npz file may
    hold features alone; with ``query_id`` rows must name their queries.
    """
    if not os.path.exists(source):
        hint = "standard input is /dev/stdin" if source == "-" else "see `slimsvm datasets`"
        raise CommandError(f"{source}: there is no such file, nor a data set of that name ({hint})")
    asked = asked_of(args, trained, labels_needed)
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        found = read_table(source, asked, ZERO_BASED[args.zero_based], query_id=query_id)
    extra = {"groups": found.qid} if query_id else {}
    return Part(source, dense_if_smaller(found.X), found.y, extra, found.names, found.label)


def dense_if_smaller(X: Any) -> Any:
    """Return sparse rows as an array if that takes no more memory: with so few zeros it is faster, too."""
    if isinstance(X, np.ndarray) or X.shape[0] * X.shape[1] * X.dtype.itemsize > X.data.nbytes + X.indices.nbytes:
        return X
    return X.toarray()


# ---- Parquet, folders of it, and several files by a pattern: read block by block


# Rows are read into memory if they take no more than this share of the solver's memory limit.
SHARE = 1 / 4


def is_read_in_blocks(source: str) -> bool:
    """Whether a source is a Parquet file, a folder of such, or a pattern of files' names (``part-*.libsvm.gz``)."""
    if os.path.isdir(source):
        return any(Path(source).rglob("*.parquet"))
    if os.path.exists(source):
        return source.endswith(".parquet")
    return glob.has_magic(source)


def files_of(source: str) -> list[str]:
    """Return the files, or folders, that a source stands for."""
    return [source] if os.path.exists(source) else sorted(glob.glob(source))


def read_blocks(source: str, args: argparse.Namespace, trained: Trained | None, labels_needed: bool) -> Part:
    """Return rows as `Blocks`, and their labels, which Parquet may lack unless they are needed.

    There must be the features of ``trained``; in LIBSVM text there may be.
    """
    files = files_of(source)
    if not files:
        raise CommandError(f"{source}: no file matches this pattern")
    is_parquet = [os.path.isdir(file) or file.endswith(".parquet") for file in files]
    n_features = None if trained is None else trained.n_features
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        if all(is_parquet):
            part = _parquet(source, files, args, trained, labels_needed)
        elif any(is_parquet):
            raise CommandError(f"{source}: some files are Parquet ({files[is_parquet.index(True)]}), others are not")
        else:
            part = Part(source, *read_libsvm_blocks(files, n_features, ZERO_BASED[args.zero_based]))
    if n_features is not None and part.X.n_features != n_features:
        raise CommandError(f"{source}: found {part.X.n_features} features, the model was trained on {n_features}")
    return part


def in_memory(part: Part, megabytes: float) -> Part:
    """Return the part with its blocks as one array, if that takes at most a quarter of the memory limit."""
    X = part.X
    if not isinstance(X, Rows):
        return part
    n_values = X.n_stored if X.is_sparse else X.n_rows * X.n_features
    if n_values * X.exact_dtype.itemsize > SHARE * 1e6 * megabytes:
        return part
    return replace(part, X=dense_if_smaller(X.slice(0, X.n_rows, X.exact_dtype)))


def _parquet(
    source: str, files: list[str], args: argparse.Namespace, trained: Trained | None, labels_needed: bool
) -> Part:
    """Read rows and labels of Parquet files: the column that was named, that of training, or one of the usual names."""
    try:
        import pyarrow  # noqa: F401

        from slimsvm.rows import arrow
    except ImportError:
        raise CommandError(f"{source}: Parquet files need pyarrow: pip install 'slimsvm[parquet]'") from None
    names = arrow.parquet_parts(files)[0].schema.names
    wanted, known = (None, None) if trained is None else (trained.names, trained.label)
    usual = (name for name in (known, *LABEL_NAMES) if name in names and name not in (wanted or ()))
    label: str | None = args.target or next(usual, None)
    if label is None and labels_needed:
        raise CommandError(f"{source}: which column holds the labels? Give it by --label NAME, one of {names}")
    if label not in names and not labels_needed:
        label = None
    if wanted is not None:
        layout = by_name(names, Asked(target=label or False, columns=wanted), source)
        wanted = [names[at] for at in layout.features]
    X, y = _blocks(files, wanted, label)
    features = X.feature_names or []
    numbering = [] if trained is not None else [name for name in features if _numbers_rows(files, name, X.n_rows)]
    if numbering:
        say_index(source, numbering)
        X, y = _blocks(files, [name for name in features if name not in numbering], label)
    return Part(source, X, y, names=X.feature_names, label=label)


def _blocks(files: list[str], columns: Sequence[str] | None, label: str | None) -> tuple[Blocks, Any]:
    if label is None:
        return Blocks.from_parquet(files, columns), None
    X, y = Blocks.from_parquet(files, columns, label)
    return X, whole_numbers(y) if y.dtype.kind == "f" else y


def _numbers_rows(files: list[str], column: str, n_rows: int) -> bool:
    """Whether a column only numbers the rows."""
    if UNNAMED.fullmatch(column) is None:
        return False
    return is_index(column, Blocks.from_parquet(files, [column]).slice(0, n_rows, np.float64)[:, 0])


# ---- rows, queries and sequences


ROWS, QUERIES, SEQUENCES = "rows", "queries", "sequences"
FORMS = {"ranking": QUERIES, "sequence": SEQUENCES}
# Features that the words of columns are hashed to.
N_HASHED = 1 << 18


def form_of(estimator: Any) -> str:
    """Whether an estimator takes rows, queries or sequences."""
    return {"RankSVM": QUERIES, "SequenceSVM": SEQUENCES}.get(type(estimator).__name__, ROWS)


def usual_task(source: str) -> str:
    """Return the default task: ranking of rows that name their queries, otherwise classification."""
    is_text = not is_set(source) and os.path.exists(source) and not is_read_in_blocks(source)
    if is_text and stat.S_ISFIFO(os.stat(source).st_mode):
        raise CommandError(f"{source}: is a pipe, which can be read only once: give --task")
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
    """Read rows, labels and what else `fit` needs, from a file or from a benchmark set's training or test part.

    There must be the features of ``trained``. Without ``labels_needed`` the file may hold no labels (rows), no queries,
    or by ``args.unlabelled`` no label column (sequences).
    """
    n_features = None if trained is None else trained.n_features
    if is_set(source):
        part = part_of_set(form, source, test)
        if n_features is not None and part.X.shape[1] != n_features:
            raise CommandError(f"{source}: found {part.X.shape[1]} features, the model was trained on {n_features}")
        return part
    if is_read_in_blocks(source):
        if form != ROWS:
            raise CommandError(f"{source}: {form} are read from one text file, not from several files or Parquet")
        return read_blocks(source, args, trained, labels_needed)
    if form == SEQUENCES and os.path.exists(source):
        columns, y, lengths = read_columns(source, labels=labels_needed or not args.unlabelled)
        return Part(source, hash_columns(columns, n_features or N_HASHED), y, {"lengths": lengths})
    query_id = form == QUERIES and (labels_needed or (os.path.isfile(source) and has_queries(source)))
    return read_part(source, args, trained, labels_needed, query_id)


def part_of_set(form: str, name: str, test: bool) -> Part:
    """Return the training or test part of a benchmark set."""
    data = load(name)
    if form != SEQUENCES and data.X_train.dtype.kind not in "biuf":
        raise CommandError(f"{name}: its rows are words, and no kernel takes words")
    X, y = (data.X_test, data.y_test) if test else (data.X_train, data.y_train)
    title = f"{name}, test part" if test else name
    if form == ROWS:
        return Part(title, X, y)
    if form == QUERIES:
        raise CommandError(f"{name}: has no queries to rank; give a file of LIBSVM text with qid:")
    X = hash_columns(X, N_HASHED) if X.dtype.kind in "OU" else X
    return Part(title, X, y, {"lengths": np.diff(_offsets(data, test))})


def _offsets(data: Dataset, test: bool) -> np.ndarray:
    offsets = data.test_offsets if test else data.train_offsets
    if offsets is None:
        raise CommandError(f"{data.name}: is not a set of sequences")
    return offsets


# ---- ``slimsvm datasets``

DESCRIPTION = "List the benchmark sets: sizes, and where their files were found."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``slimsvm datasets``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """List the known sets, those found here, and the folders searched."""
    infos, folders = available(), [os.fspath(folder) for folder in search_folders()]
    if args.json:
        print_json({"folders": folders, "datasets": [asdict(info) for info in infos]})
        return 0
    print(table([_line_of(info) for info in infos]))
    print(f"\n{sum(info.found for info in infos)} of {len(infos)} sets found. Folders searched, first one first:")
    for folder in folders:
        print(f"  {folder}{'' if os.path.isdir(folder) else ' (not there)'}")
    return 0


def _line_of(info: DatasetInfo) -> dict[str, Any]:
    """Return a set's line of the table."""
    folders = dict.fromkeys(os.fspath(path.parent) for path in info.paths)
    return {
        "name": info.name,
        "train": info.n_train,
        "test": info.n_test,
        "features": info.n_features,
        "classes": info.n_classes,
        "found in": ", ".join(folders) if info.found else None,
    }
