"""Row numbers where none is left out: an index that takes no memory, whatever the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np


class EveryRow:
    """In the place of ``np.arange(n)``.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.estimators._shared.every_row import EveryRow
    >>> EveryRow(5)[np.array([4, 2])], np.asarray(EveryRow(3))
    (array([4, 2]), array([0, 1, 2]))
    """

    def __init__(self, n: int):
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.arange(self.n, dtype=dtype)
