"""Builds slimsvm by scikit-build-core, with this machine's C++ compiler, or with zig from PyPI where none works.

pip calls the functions that PEP 517 names. `make` calls this file as a program, in an environment that has the tools:
    python build_backend/slimsvm_build.py requirements     what building needs from PyPI here
    python build_backend/slimsvm_build.py library          builds the library into src/slimsvm/core, if anything changed
    python build_backend/slimsvm_build.py runtime          builds the runtime for C into build/runtime
    python build_backend/slimsvm_build.py wasm             builds it for browsers into src/slimsvm/deploy, by zig
    python build_backend/slimsvm_build.py wasm-requirements     what that needs from PyPI here; nothing if it is done
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
TOOLS = ["scikit-build-core>=1.0", "cmake>=3.20", "ninja>=1.11"]
ZIG = "ziglang>=0.14,<0.18"

# What the core asks of a compiler: C++17, vector types and their conversions, the instruction sets of x86-64.
PROBE = """
#include <atomic>
#include <math.h>
typedef float narrow __attribute__((vector_size(32)));
typedef double wide __attribute__((vector_size(64)));
std::atomic<int> count{0};
#if defined(__x86_64__)
#include <immintrin.h>
__attribute__((target("avx512f,avx512dq"))) __m512 rest(__m512 x) { return _mm512_maskz_reduce_ps(0xffff, x, 0); }
#endif
extern "C" void probe(const narrow* x, wide* y) {
    if constexpr (sizeof(narrow) == 32) *y = __builtin_convertvector(*x > 0.0f ? *x : -*x, wide) + sqrt(++count);
}
"""

# zig takes the processor it runs on for its target, and adds debugging information and checks of undefined behaviour,
# unless told otherwise. Only what links names the C++ library to be left out: with -c the flag would hide the library's
# headers, too. With -O3, zig's own runtime is made in 5 seconds instead of 25.
WRAPPER = """#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR={caches} ZIG_LOCAL_CACHE_DIR={caches}
for argument; do
    case $argument in -c | -E | -S | -M | -MM) exec {zig} {options} -g0 -fno-sanitize=undefined "$@" ;; esac
done
exec {zig} {options} -g0 -fno-sanitize=undefined -O3 -s -nostdlib++ "$@"
"""
WRAPPER_WINDOWS = """@echo off
set ZIG_GLOBAL_CACHE_DIR={caches}
set ZIG_LOCAL_CACHE_DIR={caches}
echo.%* | findstr /r /c:" -[cES] " /c:" -MM* " > nul && goto compile
{zig} {options} -g0 -fno-sanitize=undefined -O3 -s -nostdlib++ %*
exit /b
:compile
{zig} {options} -g0 -fno-sanitize=undefined %*
"""


def _works(compiler: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cc")
        source.write_text(PROBE)
        flags = ["-std=c++17", "-Os", "-shared", "-fPIC", "-Wno-psabi", "-o", str(Path(folder, "probe.so"))]
        command = [*shlex.split(compiler), *flags, str(source)]
        try:
            return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


@cache
def system_compiler() -> str | None:
    """The first C++ compiler that can build the core: what CXX names, else c++, g++ or clang++; None without one."""
    named = os.environ.get("CXX")
    if named:
        if not _works(named):
            raise SystemExit(f"slimsvm cannot be built with CXX={named}: name a compiler of C++17 (gcc 10 or clang 12)")
        return named
    return next((path for name in ("c++", "g++", "clang++") if (path := shutil.which(name)) and _works(path)), None)


def zig_compiler(folder: Path, options: str = "-mcpu=baseline", command: str = "c++") -> Path:
    """A script in `folder` that compiles and links with zig from PyPI; zig's caches lie in the build folder."""
    import ziglang

    folder.mkdir(parents=True, exist_ok=True)
    zig, options = Path(ziglang.__file__).with_name("zig.exe" if os.name == "nt" else "zig"), f"{command} {options}"
    if os.name == "nt":
        script = folder / f"zig-{command}.cmd"
        text = WRAPPER_WINDOWS.format(zig=f'"{zig}"', caches=BUILD / "zig", options=options)
    else:
        script = folder / f"zig-{command}"
        text = WRAPPER.format(zig=shlex.quote(str(zig)), caches=shlex.quote(str(BUILD / "zig")), options=options)
    if not script.exists() or script.read_text() != text:
        script.write_text(text)
        script.chmod(0o755)
    return script


def zig_notices() -> dict[str, str]:
    """Settings that put the licences of what zig may link into the library beside ours: parts of its own runtime, of
    LLVM's, and what every library of Linux (glibc) and Windows (mingw-w64) begins with.
    """
    import ziglang

    zig, folder = Path(ziglang.__file__).parent, BUILD / "notices"
    folder.mkdir(parents=True, exist_ok=True)
    notices = {"zig": "LICENSE", "llvm": "lib/libunwind/LICENSE.TXT"}
    notices |= {"glibc": "lib/libc/glibc/LICENSES", "mingw-w64": "lib/libc/mingw/COPYING"}
    settings = {}
    for name, path in notices.items():
        shutil.copy(zig / path, folder / f"LICENSE-{name}.txt")
        place = f"wheel.force-include.build/notices/LICENSE-{name}.txt"
        settings[place] = f"${{SKBUILD_METADATA_DIR}}/licenses/LICENSE-{name}.txt"
    return settings


def compiler() -> str:
    """The value of CMAKE_CXX_COMPILER on this machine."""
    return ";".join(shlex.split(system_compiler() or shlex.quote(str(zig_compiler(BUILD / "zig")))))


def announce(compiler: str) -> None:
    """Say what takes the time; pip shows it with -v alone."""
    print(f"slimsvm: compiling the core with {compiler}, for several instruction sets: minutes on one core", flush=True)


def find_tool(name: str) -> str:
    """A tool that lies beside the interpreter, or on the path."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which(name, path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if found is None:
        raise SystemExit(f"slimsvm needs {name} to be built: pip install {name}")
    return found


def configured() -> Path:
    """The folder that this machine's libraries are built in, configured."""
    folder, cmake, ninja = BUILD / "core", find_tool("cmake"), find_tool("ninja")
    options = ["-DSLIMSVM_WERROR=OFF", "-DSLIMSVM_RUNTIME=ON"]
    tools, known = "\n".join([cmake, ninja, os.environ.get("CXX", ""), *options]), folder / "tools.txt"
    if not known.exists() or known.read_text() != tools:
        shutil.rmtree(folder, ignore_errors=True)
        definitions = [
            f"-DCMAKE_CXX_COMPILER={compiler()}",
            f"-DCMAKE_MAKE_PROGRAM={ninja}",
            *options,
        ]
        configure = [cmake, "-S", str(ROOT / "core"), "-B", str(folder), "-G", "Ninja", *definitions]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        known.write_text(tools)
    return folder


def _build(targets: list[str], prefix: Path, component: str) -> None:
    folder = configured()
    subprocess.run([find_tool("ninja"), "--quiet", "-C", str(folder), *targets], check=True)
    install = [find_tool("cmake"), "--install", str(folder), "--prefix", str(prefix), "--component", component]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)


def build_library() -> None:
    """Build the library beside the package's Python files; nothing is done where nothing changed."""
    _build([], ROOT / "src", "library")


def build_runtime() -> None:
    """Build the runtime for C, a header and two libraries, in build/runtime."""
    _build(["slimsvm_predict", "slimsvm_predict_shared"], BUILD / "runtime", "runtime")


# ---------------------------------------------------------------- the runtime for browsers

WASM = ROOT / "src" / "slimsvm" / "deploy" / "slimsvm_predict.wasm"
WASM_NOTICES = WASM.with_name("slimsvm_predict.LICENSES.txt")
# Vectors of 16 bytes, which every browser has since 2023.
WASM_TARGET = "-target wasm32-wasi -mexec-model=reactor -msimd128"
WASM_FLAGS = [
    "-std=c++17", "-Os", "-ffp-contract=fast", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics",
    "-fno-math-errno", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-psabi", "-Werror",
    "-DSLIMSVM_API=", "-DSLIMSVM_ISA=baseline", "-DSLIMSVM_PREDICT_ONE_THREAD",
]  # fmt: skip


def wasm_sources() -> list[Path]:
    """Files that are compiled; a browser has no files to load."""
    return sorted(path for path in (ROOT / "core" / "predict").glob("*.cc") if path.name != "load_file.cc")


def wasm_digest() -> str:
    """A digest of all that the module is made of: the sources, the core's headers that they read, and the flags."""
    waiting, known = wasm_sources(), set()
    while waiting:
        path = waiting.pop()
        known.add(path)
        named = re.findall(r'^#include "(.+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        waiting += {ROOT / "core" / name for name in named} - known
    texts = [WASM_TARGET, *WASM_FLAGS, *(path.read_text(encoding="utf-8") for path in sorted(known))]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def wasm_is_current() -> bool:
    """Whether the module, which git has beside the sources, was compiled from these ones."""
    return WASM.exists() and WASM_NOTICES.exists() and wasm_digest() in WASM_NOTICES.read_text(encoding="utf-8")


def build_wasm() -> None:
    """Compile core/predict to one module without imports; nothing is done where that is done."""
    if wasm_is_current():
        return
    folder, sources = BUILD / "wasm", wasm_sources()
    compiler = str(zig_compiler(folder, WASM_TARGET))
    objects = [str(folder / f"{source.stem}.o") for source in sources]

    def compile_one(source: Path, target: str) -> None:
        subprocess.run([compiler, *WASM_FLAGS, "-I", str(ROOT / "core"), "-c", str(source), "-o", target], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, sources, objects))
    header = (ROOT / "core" / "predict" / "slimsvm_predict.h").read_text(encoding="utf-8")
    names = set(re.findall(r"^SLIMSVM_PREDICT_API [\w *]+?(slimsvm_\w+)\(", header, re.MULTILINE)) - {"slimsvm_load"}
    exports = [f"-Wl,--export={name}" for name in ("malloc", "free", *sorted(names))]
    subprocess.run([compiler, *objects, *exports, "-o", str(folder / WASM.name)], check=True)
    WASM_NOTICES.write_text(_wasm_notices(), encoding="utf-8")
    shutil.copyfile(folder / WASM.name, WASM)


def _wasm_notices() -> str:
    """The licences of what zig linked into the module: parts of its own runtime, of LLVM's, and of WASI's C library."""
    import ziglang

    zig, parts = Path(ziglang.__file__).parent, ["LICENSE", "lib/libunwind/LICENSE.TXT", "lib/libc/musl/COPYRIGHT"]
    parts += [f"lib/libc/wasi/LICENSE{name}" for name in ("", "-MIT", "-APACHE-LLVM", "-APACHE")]
    texts = [f"{part}\n\n{(zig / part).read_text(encoding='utf-8')}" for part in parts]
    begins = [
        f"Licences of what {WASM.name} has beside slimsvm's own code, by their places in zig.",
        f"It was compiled by zig from sources with the digest {wasm_digest()}.",
    ]
    return f"\n\n{'-' * 80}\n".join(["\n".join(begins), *texts])


# ---------------------------------------------------------------- what pip calls

Settings = Mapping[str, "str | list[str]"]


def _zig_where_needed() -> list[str]:
    return [] if system_compiler() else [ZIG]


def get_requires_for_build_sdist(config_settings: Settings | None = None) -> list[str]:
    """Nothing is compiled for an sdist."""
    from scikit_build_core import build

    return build.get_requires_for_build_sdist(config_settings)


def get_requires_for_build_wheel(config_settings: Settings | None = None) -> list[str]:
    """Cmake and ninja where they are not there, and zig where no C++ compiler works."""
    from scikit_build_core import build

    return build.get_requires_for_build_wheel(config_settings) + _zig_where_needed()


def get_requires_for_build_editable(config_settings: Settings | None = None) -> list[str]:
    """The same for an editable installation, whose library lies in the checkout."""
    return ["cmake>=3.20", "ninja>=1.11", *_zig_where_needed()]


def build_sdist(sdist_directory: str, config_settings: Settings | None = None) -> str:
    """The sources."""
    from scikit_build_core import build

    return build.build_sdist(sdist_directory, config_settings)


def _wheel_settings(config_settings: Settings | None) -> dict[str, str | list[str]]:
    """The settings of a wheel: the compiler, and the licences of what zig links where it is the compiler."""
    settings = dict(config_settings or {})
    settings.setdefault("cmake.define.CMAKE_CXX_COMPILER", compiler())
    if Path(str(settings["cmake.define.CMAKE_CXX_COMPILER"])).stem == "zig-c++":
        settings |= zig_notices()
    return settings


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings | None = None) -> str:
    """Name, version and requirements. Without this function pip would compile, and say "Preparing metadata"."""
    from scikit_build_core import build

    return build.prepare_metadata_for_build_wheel(metadata_directory, _wheel_settings(config_settings))


def build_wheel(
    wheel_directory: str, config_settings: Settings | None = None, metadata_directory: str | None = None
) -> str:
    """A wheel with the library, for every Python of this platform."""
    from scikit_build_core import build

    settings = _wheel_settings(config_settings)
    announce(str(settings["cmake.define.CMAKE_CXX_COMPILER"]))
    return build.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings | None = None, metadata_directory: str | None = None
) -> str:
    """A wheel that puts src on the path, and no more: scikit-build-core's own would import a finder in every process.

    The library is built in src, too, unless library=apart says that `make` does that.
    """
    from scikit_build_core import build

    settings = dict(config_settings or {})
    if settings.pop("library", None) != "apart":
        build_library()
    BUILD.mkdir(exist_ok=True)
    (BUILD / "slimsvm.pth").write_text(f"{ROOT / 'src'}\n")
    settings |= {"wheel.cmake": "false", "wheel.packages": [], "wheel.force-include.build/slimsvm.pth": "slimsvm.pth"}
    return build.build_wheel(wheel_directory, settings, metadata_directory)


if __name__ == "__main__":
    if sys.argv[1:] == ["requirements"]:
        print(*TOOLS, *_zig_where_needed())
    elif sys.argv[1:] == ["library"]:
        build_library()
    elif sys.argv[1:] == ["runtime"]:
        build_runtime()
    elif sys.argv[1:] == ["wasm"]:
        build_wasm()
    elif sys.argv[1:] == ["wasm-requirements"]:
        print(*([] if wasm_is_current() else [ZIG]))
    else:
        raise SystemExit(__doc__)
