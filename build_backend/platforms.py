"""Wheels for every platform, and the core's own tests on those that this machine can imitate; all compiled by zig.

`make wheel`, `make wheels` and `make check-core` call this file as a program, in an environment that has the tools:
    python build_backend/platforms.py wheel      a wheel for this machine's platform into dist/
    python build_backend/platforms.py wheels     wheels of all platforms into dist/
    python build_backend/platforms.py check      builds core/tests/run.c for each platform and runs it where that works
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slimsvm_build import BUILD, ROOT, WASM, build_wheel, find_tool, zig_compiler

MOST_MEGABYTES = 3
OLDEST_GLIBC = 28  # 2.28
LIBRARIES = {"Linux": "libslimsvm.so", "Darwin": "libslimsvm.dylib", "Windows": "slimsvm.dll"}


@dataclass(frozen=True)
class Platform:
    """Where a wheel is to run."""

    tag: str  # of the wheel
    target: str  # as zig calls it
    system: str  # as cmake calls it
    processor: str
    runners: tuple[tuple[str, ...], ...] = ()  # commands that run its programs on this machine

    @property
    def folder(self) -> Path:
        """Where its compiler and library lie."""
        return BUILD / self.tag

    def definitions(self) -> dict[str, str]:
        """What cmake has to know."""
        known = {
            "CMAKE_CXX_COMPILER": str(zig_compiler(self.folder, f"-target {self.target}")),
            "CMAKE_SYSTEM_NAME": self.system,
            "CMAKE_SYSTEM_PROCESSOR": self.processor,
        }
        if self.system == "Darwin":  # cmake would ask Apple's tools
            known |= {"CMAKE_INSTALL_NAME_TOOL": "true", "CMAKE_OSX_SYSROOT": ""}
        return known


WINE = {"WINEDEBUG": "-all", "WINEPREFIX": str(BUILD / "wine")}
OLD_PROCESSOR = ("qemu-x86_64", "-cpu", "Nehalem")
AARCH64 = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
PLATFORMS = [
    Platform("manylinux_2_28_x86_64", "x86_64-linux-gnu.2.28", "Linux", "x86_64", ((), OLD_PROCESSOR)),
    Platform("manylinux_2_28_aarch64", "aarch64-linux-gnu.2.28", "Linux", "aarch64", (AARCH64,)),
    Platform("macosx_11_0_arm64", "aarch64-macos.11.0", "Darwin", "arm64"),
    Platform("macosx_11_0_x86_64", "x86_64-macos.11.0", "Darwin", "x86_64"),
    Platform("win_amd64", "x86_64-windows-gnu", "Windows", "AMD64", (("wine",),)),
]


def this_platform() -> Platform:
    """The platform whose wheels this machine's Python installs."""
    from packaging.tags import platform_tags

    installed = set(platform_tags())
    found = [platform for platform in PLATFORMS if platform.tag in installed]
    if not found:
        raise SystemExit("there are no wheels for this platform: pip install . compiles slimsvm")
    return found[0]


def wheels(platforms: Sequence[Platform] = PLATFORMS) -> None:
    """Build a wheel for each platform."""
    for platform in platforms:
        settings = {f"cmake.define.{name}": value for name, value in platform.definitions().items()}
        settings |= {"wheel.tags": f"py3-none-{platform.tag}", "install.strip": "false"}
        wheel = ROOT / "dist" / build_wheel(str(ROOT / "dist"), settings)
        size = wheel.stat().st_size / 1e6
        print(f"{wheel.name}: {size:.2f} MB", flush=True)
        if not any(name.endswith(WASM.name) for name in zipfile.ZipFile(wheel).namelist()):
            raise SystemExit(f"{wheel.name} lacks {WASM.name}: `make wasm` compiles it")
        if size > MOST_MEGABYTES:
            raise SystemExit(f"{wheel.name} is above {MOST_MEGABYTES} MB")
        if platform.system == "Linux":
            audit = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
            said = subprocess.run(audit, check=True, capture_output=True, text=True).stdout
            glibc = re.search(r"manylinux_2_(\d+)_", said.split("consistent with", 1)[1])
            if glibc is None or int(glibc[1]) > OLDEST_GLIBC:
                raise SystemExit(said)
            print(f"    auditwheel: {glibc[0]}{platform.processor}")


def check() -> None:
    """Build the library and its test program for each platform, and run it where something runs it."""
    cmake, ninja, failed = find_tool("cmake"), find_tool("ninja"), []
    for platform in PLATFORMS:
        folder = platform.folder
        options = [f"-D{name}={value}" for name, value in platform.definitions().items()]
        command = [cmake, "-S", str(ROOT / "core"), "-B", str(folder), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([ninja, "--quiet", "-C", str(folder)], check=True)
        program = folder / ("run.exe" if platform.system == "Windows" else "run")
        library = folder / ("libslimsvm.dll.a" if platform.system == "Windows" else LIBRARIES[platform.system])
        source = [str(ROOT / "core" / "tests" / "run.c"), "-I", str(ROOT / "core"), str(library), "-o", str(program)]
        rpath = [] if platform.system == "Windows" else ["-Wl,-rpath," + str(folder)]
        compiler = zig_compiler(folder, f"-target {platform.target}", command="cc")
        subprocess.run([str(compiler), "-std=c11", "-Wall", "-Wextra", *source, *rpath, "-lm"], check=True)
        for runner in platform.runners:
            if runner and not shutil.which(runner[0]):
                print(f"{platform.tag}: not run, since this machine has no {runner[0]}")
                continue
            name = f"{platform.tag} {' '.join(runner)}".strip()
            ended = subprocess.run([*runner, str(program)], env=os.environ | WINE)
            print(f"{name}: {'passed' if ended.returncode == 0 else 'failed'}", flush=True)
            failed += [name] if ended.returncode else []
        if not platform.runners:
            print(f"{platform.tag}: built, not run")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    commands = {"wheel": lambda: wheels([this_platform()]), "wheels": wheels, "check": check}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        raise SystemExit(__doc__)
    commands[sys.argv[1]]()
