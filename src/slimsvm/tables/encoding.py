"""A table as one array of features, by an encoder for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.tables.containers import Table
from slimsvm.tables.encoders import MOST_VALUES, Encoder, encoder_of, pack_encoder, unpack_encoder

Array = np.ndarray


@dataclass(frozen=True)
class TableEncoding:
    """Encoders of the columns that were there in training, in their order."""

    encoders: tuple[Encoder, ...]
    has_names: bool  # whether the training table had names: then columns are found by name, else by their order

    @classmethod
    def learn(
        cls, table: Table, targets: Array, weights: Array, most_values: int = MOST_VALUES
    ) -> tuple[TableEncoding, Array]:
        """The encoding of a table, and the features of its rows.

        For columns of many levels the features of a row come from the targets (n_rows, m) of other rows. Of a column of
        numbers, or of times, so many values are kept.
        """
        found = [encoder_of(column, targets, weights, most_values) for column in table.columns]
        encoding = cls(tuple(encoder for encoder, _ in found), table.has_names)
        return encoding, _joined([features for _, features in found], table.n_rows)

    @property
    def columns(self) -> Array:
        """The number of the column that each feature comes from."""
        return np.repeat(np.arange(len(self.encoders)), [encoder.width for encoder in self.encoders])

    @property
    def are_flags(self) -> Array:
        """Which features are 0 or 1."""
        flags = np.concatenate([np.arange(e.width) >= e.width - e.n_flags for e in self.encoders])
        return flags if len(flags) else np.array([False])

    def features(self, table: Table) -> Array:
        """Features of new rows, float32 of shape (n_rows, n_features), of the columns that are `needed` at least; a
        ValueError names a column of times or numbers that has something else.
        """
        if table.has_names and self.has_names:
            by_name = {column.name: column for column in table.columns}
            found = [(encoder, by_name[encoder.name]) for encoder in self.encoders if encoder.width]
        else:
            found = [pair for pair in zip(self.encoders, table.columns, strict=True) if pair[0].width]
        return _joined([encoder.features(column) for encoder, column in found], table.n_rows)

    @property
    def needed(self) -> list[str] | None:
        """Names of the columns that features come from; None if there were no names in training."""
        return [encoder.name for encoder in self.encoders if encoder.width] if self.has_names else None

    def told(self) -> list[str]:
        """A line for each column: what it was taken for."""
        return [f"{encoder.name or '(no name)'}: {encoder.told()}" for encoder in self.encoders]

    # -- files --------------------------------------------------------------------------------------------------------

    def pack(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """The encoding as JSON; the numbers of all columns join ``arrays``, as one array of each type."""
        numbers: dict[str, list[Array]] = {}
        columns = [pack_encoder(encoder, numbers) for encoder in self.encoders]
        arrays |= {f"columns_{dtype}": np.concatenate(parts) for dtype, parts in numbers.items()}
        return {"has_names": self.has_names, "columns": columns}

    @classmethod
    def unpack(cls, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> TableEncoding:
        """The encoding that `pack` wrote."""
        start = "columns_"
        numbers = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        columns = [unpack_encoder(part, numbers) for part in facts["columns"]]
        if any(map(len, numbers.values())):
            raise ValueError("columns have more numbers than their encoders")
        return cls(tuple(columns), bool(facts["has_names"]))


def _joined(parts: list[Array], n_rows: int) -> Array:
    """Features side by side; one that is 0 where there are none."""
    features = np.concatenate([np.zeros((n_rows, 0)), *parts], axis=1).astype(np.float32)
    return features if features.shape[1] else np.zeros((n_rows, 1), np.float32)
