"""The file of a model: it holds scalers and names of columns, has a checkpoint beside it, and spares other files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from slimsvm.cli.data import Part, Trained, files_of, is_set
from slimsvm.cli.output import CommandError, say
from slimsvm.datasets import find
from slimsvm.estimators._shared.around_fit import Checkpoint
from slimsvm.estimators._shared.pipeline_steps import SCALERS, scaling_of
from slimsvm.estimators.files import load
from slimsvm.parts.run import Status
from slimsvm.rows import Blocks, Rows, is_sparse

SCALES = {
    "minmax": "every feature to 0 ... 1",
    "standard": "to mean 0 and variance 1 (sparse rows: to variance 1)",
    "maxabs": "by its largest magnitude, which does not change zeros",
}


def fit_scaler(scale: str | None, train: Part) -> Pipeline | None:
    """Fit the scaler of this name to training rows; None without one."""
    if scale is None:
        return None
    rows, sparse = isinstance(train.X, Rows), _is_sparse(train.X)
    if sparse and scale == "minmax":
        raise CommandError(f"{train.name}: its rows are sparse, and --scale minmax would move their zeros, which are "
                           "not stored: take --scale maxabs or --scale standard")  # fmt: skip
    scalers: dict[str, Any] = {"minmax": MinMaxScaler(), "standard": StandardScaler(with_mean=not sparse),
                               "maxabs": MaxAbsScaler()}  # fmt: skip
    scaler = scalers[scale]
    for lo, hi in pairwise(train.X.bounds) if rows else ():
        if lo < hi:
            scaler.partial_fit(train.X.slice(int(lo), int(hi), train.X.exact_dtype))
    return Pipeline([("scaler", scaler if rows else scaler.fit(train.X))])


def scaled(part: Part, scalers: Pipeline | None) -> Part:
    """Return the part, scaled; sparse rows become dense if scaling moves their zeros."""
    if scalers is None:
        return part
    X = part.X
    steps = [step for _, step in scalers.steps]
    has_others = any(type(step) not in SCALERS.values() for step in steps)
    is_filled = _is_sparse(X) and (has_others or bool(scaling_of(steps).offset.any()))
    if not isinstance(X, Blocks):
        return replace(part, X=scalers.transform(X.toarray() if is_filled else X))
    bounds = X.bounds.tolist()
    blocks = [partial(_scaled_rows, X, lo, hi, scalers, is_filled) for lo, hi in pairwise(bounds) if lo < hi]
    n_stored = X.n_stored if X.is_sparse and not is_filled else None
    return replace(part, X=Blocks(blocks, [n for n in np.diff(bounds).tolist() if n], n_stored=n_stored))


def _scaled_rows(X: Blocks, lo: int, hi: int, scalers: Pipeline, is_filled: bool) -> Any:
    """Scale some of the rows."""
    block: Any = X.slice(lo, hi, X.exact_dtype)
    return scalers.transform(block.toarray() if is_filled else block)


def _is_sparse(X: Any) -> bool:
    return X.is_sparse if isinstance(X, Rows) else is_sparse(X)


def load_steps(path: str) -> tuple[Pipeline | None, Any, Trained]:
    """Load a model file and return its `steps_of`."""
    return steps_of(load(path))


def steps_of(model: Any) -> tuple[Pipeline | None, Any, Trained]:
    """Return the steps of a model before its estimator (or None), the estimator, and the rows that it takes.

    Names of features are taken off both: rows that are read here are arrays.
    """
    scalers, estimator = (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)
    names = take_names(scalers, estimator)
    n_features = (estimator if scalers is None else scalers).n_features_in_
    return scalers, estimator, Trained(n_features, names, getattr(estimator, "label_name_", None))


def take_names(scalers: Pipeline | None, estimator: Any) -> list[str] | None:
    """Take the names of features off the scalers and the estimator; None where neither has some."""
    names = None
    for step in [estimator, *(reversed([step for _, step in scalers.steps]) if scalers is not None else ())]:
        names = step.__dict__.pop("feature_names_in_", names)
    return None if names is None else list(names)


def give_names(scalers: Pipeline | None, estimator: Any, part: Part) -> None:
    """Store the names of the columns in a model."""
    take_names(scalers, estimator)
    if part.names is not None:
        first = estimator if scalers is None else scalers.steps[0][1]
        first.feature_names_in_ = np.array(part.names, dtype=object)
    if part.label is not None:
        estimator.label_name_ = part.label


# ---- ``--checkpoint FILE``: a fit is written down as it goes on, and goes on from there after a kill


def add_checkpoint_option(group: Any) -> None:
    """Add ``--checkpoint`` to a command that trains."""
    group.add_argument(
        "--checkpoint",
        type=_path,
        metavar="FILE",
        help="save the state of the fit to this file while it runs, and continue from the file if it exists (with "
        "refine, low-rank, bsca and bsgd); it is removed once the model is saved, unless the fit was interrupted",
    )


def _path(text: str) -> str:
    if not text or set(text) & set("{}"):
        raise ValueError(text)
    return text


_path.__name__ = "path without braces"  # which argparse says


@contextmanager
def checkpointed(estimator: Any, path: str | None, quiet: bool) -> Iterator[None]:
    """Continue an estimator's fit from a checkpoint, if there is one, and write checkpoints.

    The checkpoint is removed after a fit that was not interrupted and the rest of the ``with`` statement.
    """
    if path is None:
        yield
        return
    if os.path.exists(path):
        earlier = load(path)
        if type(earlier) is not type(estimator):
            found, expected = type(earlier).__name__, type(estimator).__name__
            raise CommandError(f"{path}: is a checkpoint of {found}, this fit is one of {expected}")
        if not quiet:
            say(f"{path}: the fit continues from this checkpoint")
        estimator.set_params(warm_start=True)
        estimator._state = getattr(earlier, "_state", None)
    estimator.set_callbacks(Checkpoint(path))
    yield
    if estimator.status_ != Status.INTERRUPTED and os.path.exists(path):
        os.remove(path)


# ---- files that a command reads and files that it writes: none may be both


IGNORES_CASE = sys.platform in ("darwin", "win32")


def check_outputs(outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Refuse to write onto what is read, and to write two things to one file, before anything is written.

    Outputs are files; inputs are also folders, patterns of names and benchmark sets. None is left out. A file is known
    by other names, too (a link, a relative path).
    """
    written = [os.fspath(path) for path in outputs if path is not None]
    read = [(source, file) for source in inputs if source is not None for file in _files_read(os.fspath(source))]
    for k, path in enumerate(written):
        for source, file in read:
            if _is_same(path, file):
                known = "" if path == source else f" ({source})"
                raise CommandError(f"{path}: would overwrite an input of this command{known}: name another output file")
        for other in written[:k]:
            if _place(path) == _place(other) or _is_same(path, other):
                raise CommandError(f"{path} and {other} are the same output file: name another")


def check_model_path(path: str) -> None:
    """Refuse a model's path that cannot be written, before the work begins."""
    target = Path(path)
    folder = target.parent
    try:
        target.exists()
    except OSError as error:  # a name that is too long
        raise CommandError(f"{path}: {error.strerror}") from error
    if target.is_dir() or not os.path.basename(path):
        raise CommandError(f"{path}: is a folder, a file's name is needed for the model")
    if target.exists() and not target.is_file():
        raise CommandError(f"{path}: is not a regular file, the model cannot replace it")
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {os.fspath(folder)!r} to write the model to")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{path}: the folder {os.fspath(folder)!r} is not writable")


def _is_same(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _place(path: str) -> str:
    """Return the resolved path of a file that may not exist yet."""
    place = os.path.realpath(path)
    return place.casefold() if IGNORES_CASE else place


def _files_read(source: str) -> Iterator[str]:
    """Yield the files that a source stands for."""
    if is_set(source):
        yield from map(os.fspath, find(source) or ())
        return
    for path in files_of(source):
        if os.path.isdir(path):
            yield from map(os.fspath, Path(path).rglob("*"))
        yield path
