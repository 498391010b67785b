"""`Blocks` of Arrow tables and Parquet files: one block for each batch of a table or row group of a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.rows.arrays import Stamp, in_pieces
from slimsvm.rows.labels import Labelled

# Columns are copied side by side in tiles that the processor's cache holds. TILES_READ tiles of Parquet are decoded
# together: this takes as long as a whole row group, and a fraction of its memory.
TILE_VALUES, TILES_READ = 1 << 17, 4


@dataclass(frozen=True)
class Part:
    """A table that is read on demand: its schema, its number of rows, and a function that reads columns in batches."""

    name: str
    schema: Any
    n_rows: int
    read: Callable[[list[str]], Iterable[Any]]


def parquet_parts(paths: str | os.PathLike | Iterable[str | os.PathLike]) -> list[Part]:
    """Return the row groups of files and of folders' files, in order."""
    from pyarrow import ArrowException, parquet

    parts = []
    for path in parquet_files(paths):
        try:
            with parquet.ParquetFile(path) as file:
                schema, metadata, stamp = file.schema_arrow, file.metadata, Stamp.of(path)
        except (ArrowException, OSError) as error:
            raise ValueError(f"{path}: cannot be read as Parquet: {error}") from error
        n_groups = metadata.num_row_groups
        for i in range(n_groups):
            n_rows = metadata.row_group(i).num_rows
            read = partial(_read_group, stamp, i, n_groups, n_rows)
            parts.append(Part(f"{path}, row group {i}", schema, n_rows, read))
    if not parts:
        raise ValueError(f"{os.fspath(paths) if isinstance(paths, str | os.PathLike) else 'the files'}: hold no rows")
    return parts


def parquet_files(paths: str | os.PathLike | Iterable[str | os.PathLike]) -> list[Path]:
    """Return files in the given order; a folder's files, and those of its folders, are in the order of their names."""
    files = []
    for path in map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths):
        if not path.is_dir():
            files.append(path)
            continue
        found = sorted(file for file in path.rglob("*.parquet") if file.is_file())
        if not found:
            raise ValueError(f"{path}: the folder has no file whose name ends in .parquet")
        files += found
    return files


def _read_group(stamp: Stamp, i: int, n_groups: int, n_rows: int, columns: list[str]) -> Iterator[Any]:
    from pyarrow import parquet

    n_read, size = 0, max(1, TILES_READ * TILE_VALUES // len(columns))
    with parquet.ParquetFile(stamp.path) as file:
        if file.num_row_groups != n_groups:
            raise ValueError(f"the file has {file.num_row_groups} row groups now, and had {n_groups}")
        for batch in file.iter_batches(size, row_groups=[i], columns=columns, use_threads=False):
            n_read += batch.num_rows
            yield batch
    if n_read == n_rows:  # the caller notices other numbers
        stamp.check()


def table_parts(tables: Any) -> list[Part]:
    """Return the batches of a table, or of several."""
    import pyarrow

    parts: list[Part] = []
    for table in [tables] if isinstance(tables, pyarrow.Table | pyarrow.RecordBatch) else tables:
        if not isinstance(table, pyarrow.Table | pyarrow.RecordBatch):
            raise TypeError(f"tables must be tables or record batches of pyarrow, found {type(table).__name__}")
        for batch in table.to_batches() if isinstance(table, pyarrow.Table) else [table]:
            own = pyarrow.Table.from_batches([batch])
            parts.append(Part(f"batch {len(parts)}", own.schema, own.num_rows, partial(_selected, own)))
    if not parts:
        raise ValueError("the tables hold no rows")
    return parts


def _selected(table: Any, columns: list[str]) -> list[Any]:
    return [table.select(columns)]


def blocks_of(parts: list[Part], columns: Sequence[str] | None, label: str | None, weight: str | None) -> Labelled:
    """Look at the columns of all parts, and read labels and weights.

    A ValueError names a column that is missing, has another type in one part than in the first, holds no numbers or a
    null; or says that there is no feature.
    """
    if weight is not None and label is None:
        raise ValueError(f"weight={weight!r} goes with a label: name its column, too")
    schema, targets = parts[0].schema, [name for name in (label, weight) if name is not None]
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    names = [name for name in schema.names if name not in (*targets, *index)] if columns is None else list(columns)
    _check_names(schema, names, targets)
    if weight is not None and not _is_number(schema.field(weight).type):
        raise ValueError(f"weights must be numbers, found {schema.field(weight).type} in {weight!r}")
    kinds = _kinds(schema, names)
    for i, part in enumerate(parts):
        for name in [*names, *targets]:
            count = part.schema.names.count(name)
            found = part.schema.field(name).type if count == 1 else "there twice" if count else "missing"
            if found != schema.field(name).type:
                raise ValueError(
                    f"block {i} ({part.name}) has other columns than the first: {name!r} is {found}, expected is "
                    f"{schema.field(name).type}"
                )
    n_rows = [part.n_rows for part in parts]
    if not any(n_rows):
        raise ValueError(f"the parts hold no rows: {', '.join(part.name for part in parts[:3])}")
    firsts = np.concatenate([[0], np.cumsum(n_rows)]).tolist()
    makers = [partial(_features, part, first, names, np.result_type(*kinds)) for part, first in zip(parts, firsts)]
    labels, weights = _targets(parts, firsts, label, weight)
    options = {"names": [part.name for part in parts], "columns": names}
    return Labelled(makers, n_rows, options, labels, weights)


def _check_names(schema: Any, names: list[str], targets: list[str]) -> None:
    for name in [*names, *targets]:
        if schema.names.count(name) != 1:
            there = "there are several" if name in schema.names else f"there are {schema.names}"
            raise ValueError(f"there is no column {name!r}: {there}")
    both = [name for name in targets if name in names]
    if len(set(targets)) < len(targets):
        raise ValueError(f"label and weight must be two columns, found {targets[0]!r} for both")
    if both or not names or len(set(names)) < len(names):
        raise ValueError(f"columns must name features, each once, without {targets}; found {names}")


def _kinds(schema: Any, names: list[str]) -> list[Any]:
    """Return NumPy's types of the features' columns."""
    types = {name: schema.field(name).type for name in names}
    others = [f"{name!r} ({kind})" for name, kind in types.items() if not _is_number(kind)]
    if others:
        raise ValueError(
            f"X must hold numbers (booleans, integers, floats), found the columns {', '.join(others)}: convert "
            "them to numbers, or leave them out (columns=[...])"
        )
    return [np.dtype(kind.to_pandas_dtype()) for kind in types.values()]


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind))


def _features(part: Part, first: int, names: list[str], dtype: np.dtype) -> np.ndarray:
    """Return the rows of a part; ``first`` is the number of its first row."""
    rows, n_read = np.empty((part.n_rows, len(names)), dtype), 0
    for batch in part.read(names):
        values, out = [_values(batch, name, first + n_read) for name in names], rows[n_read : n_read + batch.num_rows]
        if len(out) < batch.num_rows:
            raise ValueError(f"there are more than the {part.n_rows} rows that there were")
        n_read += batch.num_rows
        for tile in in_pieces(len(out), TILE_VALUES // len(names)):
            for j, column in enumerate(values):
                out[tile, j] = column[tile]
    return rows[:n_read]


def _values(table: Any, name: str, first: int) -> np.ndarray:
    """Return a column as an array; refuse nulls."""
    from pyarrow import types

    column = table.column(name)
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"column {name!r} is null at row {first + row}; a value is needed in every row")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.to_numpy(zero_copy_only=False)


def _targets(
    parts: list[Part], firsts: list[int], label: str | None, weight: str | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Read labels and weights in one pass."""
    if label is None:
        return None, None
    asked = [label] if weight is None else [label, weight]
    read: dict[str, list[np.ndarray]] = {name: [] for name in asked}
    for i, (part, first) in enumerate(zip(parts, firsts)):
        for batch in part.read(asked):
            for name in asked:
                try:
                    read[name].append(_values(batch, name, first))
                except ValueError as error:
                    raise ValueError(f"block {i} ({part.name}): {error}") from None
            first += batch.num_rows
    labels = np.concatenate(read[label])
    if labels.dtype.kind == "O":
        if not all(isinstance(value, str) for value in labels):
            raise ValueError(
                f"labels must be numbers or strings, found {parts[0].schema.field(label).type} in {label!r}"
            )
        labels = labels.astype(str)
    return labels, None if weight is None else np.concatenate(read[weight]).astype(np.float64)
