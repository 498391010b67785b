"""Defects on purpose, and whether the suite sees them: `python tests/planted_defects.py [--tests PATH …] [NAME …]`.

`planted_defects.toml` lists texts of the package and the core with a wrong text for each. A copy of the checkout gets
one of them at a time, and the tests that should fail are run on it; the defect is caught where one does that passes
without the defect: the core is compiled quickly here, and rounds otherwise. A text is looked for in the whole tree, so
that code may move. All defects take a quarter of an hour of two cores: run them before and after a large move, not in
`make test`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".mypy_cache", ".hypothesis")


@dataclass(frozen=True)
class Defect:
    """A text in place of another one, and the tests of which one should fail."""

    name: str
    before: str
    after: str
    tests: list[str]
    core: bool = False

    def place(self, root: Path) -> Path:
        """The file that has the text; an error where it does not stand exactly once."""
        folder, endings = (root / "core", (".cc", ".h")) if self.core else (root / "src/slimsvm", (".py",))
        paths = [path for path in sorted(folder.rglob("*")) if path.suffix in endings]
        found = [path for path in paths for _ in range(path.read_text(encoding="utf-8").count(self.before))]
        if len(found) != 1:
            raise ValueError(f"{self.name}: its text stands {len(found)} times in {folder.name}, not once")
        return found[0]


def defects() -> list[Defect]:
    """All that are listed."""
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return [Defect(**entry) for entry in listed["defects"]]


def caught_by(defect: Defect, tests: list[str], root: Path) -> str:
    """Return the line of a test that fails with the defect in the tree at ``root``, and passes without; "" for none."""
    path, left_out = defect.place(root), []
    before = path.read_text(encoding="utf-8")
    while True:
        try:
            path.write_text(before.replace(defect.before, defect.after), encoding="utf-8")
            failed = first_failure([*tests, *left_out], root)
        finally:
            path.write_text(before, encoding="utf-8")
        test = failed.removeprefix("FAILED ").removeprefix("ERROR ").split(" - ")[0]
        if not failed or not first_failure([test], root):
            return failed
        left_out.append(f"--deselect={test}")


def first_failure(tests: list[str], root: Path) -> str:
    """Return the line of the first of some tests that fails in the tree at ``root``; "" where none does."""
    run: dict[str, Any] = {"cwd": root, "env": {**os.environ, "PYTHONPATH": str(root / "src")}, "text": True}
    compile_core(root, run)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    ended = subprocess.run(command, capture_output=True, check=False, **run)
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if ended.returncode and not failed:
        raise RuntimeError(f"{tests}: pytest ended with {ended.returncode}: {ended.stdout[-2000:]}")
    return failed[0] if failed else ""


def compile_core(root: Path, run: dict[str, Any]) -> None:
    """Compile what changed of the core and the runtime of a tree, for one instruction set and quickly."""
    build, tools = root / "build/planted", Path(sys.executable).parent
    settings = {
        "CMAKE_BUILD_TYPE": "None",
        "CMAKE_CXX_FLAGS": "-O1",
        "CMAKE_MAKE_PROGRAM": str(tools / "ninja"),
        "SLIMSVM_ISAS": "avx2",
        "SLIMSVM_RUNTIME": "ON",
    }
    options = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    for command in (
        [tools / "cmake", "-G", "Ninja", "-S", root / "core", "-B", build, *options],
        [tools / "ninja", "-C", build, "all", "slimsvm_predict", "slimsvm_predict_shared"],
    ):
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, **run)
    shutil.copy(next(build.rglob("libslimsvm.so")), root / "src/slimsvm/core/libslimsvm.so")
    for built in (root / "build/runtime/lib").glob("libslimsvm_predict.*"):
        shutil.copy(next(build.rglob(built.name)), built)


def main() -> int:
    """Plant the defects named, or all, one after another; 1 where one was missed."""
    parser = argparse.ArgumentParser(
        description="Plant defects, one at a time, and run the tests that should see them."
    )
    parser.add_argument("names", nargs="*", help="parts of names of defects; without any all are planted")
    parser.add_argument("--tests", nargs="+", help="tests to run in place of those that each defect names")
    options = parser.parse_args()
    chosen = [d for d in defects() if not options.names or any(name in d.name for name in options.names)]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "checkout"
        shutil.copytree(ROOT, root, ignore=NOT_COPIED, symlinks=True)
        for defect in chosen:
            found = caught_by(defect, options.tests or defect.tests, root)
            missed += not found
            print(f"{'caught' if found else 'MISSED'}  {defect.name}  {found}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
