"""Whether a file is still what it was when it was first read."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Stamp:
    """Size and time of the last change of a file."""

    path: str
    n_bytes: int
    changed: int

    @classmethod
    def of(cls, path: str | os.PathLike) -> Stamp:
        """The stamp that a file has now."""
        found = os.stat(path)
        return cls(os.fspath(path), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that has changed.

        Raises
        ------
        ValueError
            It has another size or was written to.
        FileNotFoundError
            It is gone.
        """
        now = Stamp.of(self.path)
        if now != self:
            raise ValueError(
                f"the file {self.path} has changed since it was first read: it had {self.n_bytes} bytes and has "
                f"{now.n_bytes}"
            )
