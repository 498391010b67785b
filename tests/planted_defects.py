"""Defects on purpose, and whether the suite sees them: `python tests/planted_defects.py [--tests PATH …] [NAME …]`.

`planted_defects.toml` lists texts of the package and the core with a wrong text for each. A copy of the checkout gets
one of them at a time, and the tests that should fail are run on it; the defect is caught where one does that passes
in another copy, which has no defect: the core is compiled quickly here, and rounds otherwise. A text is looked for in
the whole tree, so that code may move. All defects take a quarter of an hour of one core: run them before and after a
large move, not in `make test`, which looks whether they can be planted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".mypy_cache", ".hypothesis", "build")
OBJECTS, RUNTIME, BORDER = Path("build/planted"), Path("build/runtime"), Path("src/slimsvm/core")


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


@dataclass(frozen=True)
class Checkouts:
    """Two compiled copies of the checkout: one that gets the defects, and one that stays sound."""

    planted: Path
    sound: Path

    @classmethod
    def copied(cls, folder: Path) -> Checkouts:
        """Copy the checkout into a folder, compile it there and copy the result, with all times of files."""
        copies = cls(folder / "planted", folder / "sound")
        shutil.copytree(ROOT, copies.planted, ignore=NOT_COPIED, symlinks=True)
        compile_core(copies.planted)
        shutil.copytree(copies.planted, copies.sound, symlinks=True)
        return copies

    def first_failure(self, defect: Defect, tests: list[str], left_out: set[str]) -> str:
        """Return the first of some tests that fails with the defect, but for those left out; "" where none does."""
        path = defect.place(self.planted)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(defect.before, defect.after), encoding="utf-8")
        try:
            if defect.core:
                compile_core(self.planted)
            without = [f"--deselect={test}" for test in sorted(left_out)]
            runs = (failures(["-x", file, *without], self.planted) for file in tests)
            return next((failed[0] for failed in runs if failed), "")
        finally:
            self._mend(path.relative_to(self.planted), defect.core)

    def _mend(self, path: Path, core: bool) -> None:
        """Copy back what a defect changed: with the objects and their times, nothing is compiled again."""
        shutil.copy2(self.sound / path, self.planted / path)
        for built in (OBJECTS, RUNTIME, BORDER) if core else ():
            shutil.rmtree(self.planted / built)
            shutil.copytree(self.sound / built, self.planted / built, symlinks=True)


def plant(chosen: list[Defect], tests: list[str], checkouts: Checkouts) -> list[Defect]:
    """Plant defects one after another, print what sees each, and return those that no test sees."""
    seen_by: dict[str, str] = {}
    fail_anyway: set[str] = set()
    again = chosen
    while again:
        for defect in again:
            began = time.monotonic()
            test = seen_by[defect.name] = checkouts.first_failure(defect, tests or defect.tests, fail_anyway)
            took = f"{time.monotonic() - began:4.0f} s"
            print("seen  " if test else "MISSED", took, f" {defect.name} ", test, flush=True)
        seen = sorted(set(seen_by.values()) - {""} - fail_anyway)
        fail_anyway |= set(failures(seen, checkouts.sound) if seen else [])
        again = [defect for defect in chosen if seen_by[defect.name] in fail_anyway]
        print("".join(f"fails without a defect, too: {test}\n" for test in sorted(fail_anyway)), end="", flush=True)
    return [defect for defect in chosen if not seen_by[defect.name]]


def failures(options: list[str], root: Path) -> list[str]:
    """Return the tests that fail in the tree at ``root``, of a call of pytest with these options."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options]
    ended = subprocess.run(command, capture_output=True, check=False, **in_the(root))
    lines = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if ended.returncode < 0:  # a signal: what the defect wrote where it must not ended the process
        return [option for option in options if not option.startswith("-")]
    if ended.returncode and not lines:
        raise RuntimeError(f"{options}: pytest ended with {ended.returncode}: {ended.stdout[-2000:]}")
    return [line.split(" ", 1)[1].split(" - ")[0] for line in lines]


def compile_core(root: Path) -> None:
    """Compile what changed of the core and the runtime of a tree, for one instruction set and quickly."""
    tools = Path(sys.executable).parent
    settings = {
        "CMAKE_BUILD_TYPE": "None",
        "CMAKE_CXX_FLAGS": "-O1",
        "CMAKE_MAKE_PROGRAM": str(tools / "ninja"),
        "SLIMSVM_ISAS": "",
        "SLIMSVM_RUNTIME": "ON",
    }
    options = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    cmake, objects = tools / "cmake", root / OBJECTS
    for command in (
        [cmake, "-G", "Ninja", "-S", root / "core", "-B", objects, *options],
        [tools / "ninja", "-C", objects, "all", "slimsvm_predict", "slimsvm_predict_shared"],
        [cmake, "--install", objects, "--component", "library", "--prefix", root / "src"],
        [cmake, "--install", objects, "--component", "runtime", "--prefix", root / RUNTIME],
    ):
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, **in_the(root))


def in_the(root: Path) -> dict[str, Any]:
    """Return the options of a process that runs in the tree at ``root`` and imports the package from there."""
    ours = {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": ""}
    return {"cwd": root, "env": {**os.environ, **ours}, "text": True}


def main() -> int:
    """Plant the defects named, or all, one after another; 1 where one was missed."""
    parser = argparse.ArgumentParser(
        description="Plant defects, one at a time, and run the tests that should see them."
    )
    parser.add_argument("names", nargs="*", help="parts of names of defects; without any all are planted")
    parser.add_argument("--tests", nargs="+", help="tests to run in place of those that each defect names")
    options = parser.parse_args()
    chosen = [d for d in defects() if not options.names or any(name in d.name for name in options.names)]
    with tempfile.TemporaryDirectory() as folder:
        missed = plant(chosen, options.tests or [], Checkouts.copied(Path(folder)))
    print(f"{len(chosen) - len(missed)} of {len(chosen)} are caught")
    return int(len(missed) > 0)


if __name__ == "__main__":
    sys.exit(main())
