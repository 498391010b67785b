"""Sets of any size as Parquet files: generated, or a real set repeated with noise; each is written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.datasets import checkerboard, load

Rows = tuple[np.ndarray, np.ndarray]

GROUP_ROWS, TEST_ROWS = 250_000, 100_000
# Noise of repeated rows, in standard deviations of each feature.
NOISE = 0.05
REAL = ("ijcnn1", "cod-rna", "covtype")


def generated(n: int) -> Iterator[Rows]:
    """Twenty Gaussian features, five of which say the class, with noise."""
    for i, lo in enumerate(range(0, n, GROUP_ROWS)):
        yield drawn(min(GROUP_ROWS, n - lo), i)


def drawn(size: int, seed: int) -> Rows:
    """Some rows of the generated set."""
    rng = np.random.default_rng([7, seed])
    X = rng.standard_normal((size, 20), dtype=np.float32)
    said = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * X[:, 4] + 0.3 * rng.standard_normal(size)
    return X, said > 0


def squares(n: int) -> Iterator[Rows]:
    """The checkerboard, 4 by 4."""
    for i, lo in enumerate(range(0, n, GROUP_ROWS)):
        X, y = checkerboard(min(GROUP_ROWS, n - lo), random_state=100 + i)
        yield X.astype(np.float32), y > 0


def connections(n: int) -> Iterator[Rows]:
    """Training rows of KDD cup 99, normal connections and attacks, at most so many."""
    X, y = train_of("kddcup99")
    for lo in range(0, min(n, len(y)), GROUP_ROWS):
        yield X[lo : min(n, lo + GROUP_ROWS)], y[lo : min(n, lo + GROUP_ROWS)]


def repeated(name: str, n: int) -> Iterator[Rows]:
    """A real set again and again up to n rows, each time with other noise."""
    X, y = train_of(name)
    spread = X.std(axis=0)
    for i, lo in enumerate(range(0, n, GROUP_ROWS)):
        rng = np.random.default_rng([11, i])
        rows = np.arange(lo, min(n, lo + GROUP_ROWS)) % len(y)
        noise = rng.standard_normal((len(rows), X.shape[1]), dtype=np.float32)
        yield X[rows] + NOISE * spread * noise, y[rows]


def train_of(name: str) -> Rows:
    """Training rows of a real set."""
    data = load(name)
    return dense(data.X_train), data.y_train > 0


def dense(X: Any) -> np.ndarray:
    """Rows as an array of float32."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float32)


def test_of(name: str) -> Rows:
    """Rows for testing of any set here."""
    if name == "generated":
        return drawn(TEST_ROWS, 10**6)
    if name == "checkerboard":
        X, y = checkerboard(TEST_ROWS, random_state=99)
        return X.astype(np.float32), y > 0
    data = load(name)
    return dense(data.X_test), data.y_test > 0


SOURCES: dict[str, Callable[[int], Iterator[Rows]]] = {
    "generated": generated,
    "checkerboard": squares,
    "kddcup99": connections,
}


def file_of(name: str, n: int, folder: Path) -> Path:
    """The Parquet file of so many rows of a set, which is written unless it is there."""
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / f"{name}-{n}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial, writer = path.with_suffix(".partial"), None
    for X, y in SOURCES[name](n) if name in SOURCES else repeated(name, n):
        columns: dict[str, Any] = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}
        table = pa.table(columns | {"y": y.astype(np.int8)})
        if writer is None:
            writer = parquet.ParquetWriter(partial, table.schema, use_dictionary=False)
        writer.write_table(table, row_group_size=GROUP_ROWS)
    if writer is not None:
        writer.close()
    return partial.replace(path)
