"""``--checkpoint FILE``: a fit that is written down as it goes on, and goes on from there after a kill."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from slimsvm.cli.output import CommandError, say
from slimsvm.estimators._shared.around_fit import Checkpoint
from slimsvm.estimators.files import load
from slimsvm.parts.run import Status


def add_option(group: Any) -> None:
    """``--checkpoint`` of a command that trains."""
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
    """Have an estimator's fit go on from a checkpoint, and write one; it is removed after a fit that has ended by
    itself and whatever else is done here.
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
            say(f"{path}: the fit goes on from there")
        estimator.set_params(warm_start=True)
        estimator._state = getattr(earlier, "_state", None)
    estimator.set_callbacks(Checkpoint(path))
    yield
    if estimator.status_ != Status.INTERRUPTED and os.path.exists(path):
        os.remove(path)
