# Every target works on a fresh machine that has Python >= 3.11 (with pip) and make: the first one called makes .venv.
# PYTHON=python3.12 make test    chooses the interpreter that .venv is made with.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
# Without compiling what most tests never import: half the time of the installation.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Numba's files lie in __pycache__ anyway; without bytecode beside them every process of the tests would compile each
# module that it imports, 4 seconds, again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: setup lint test test-all demo docs clean

setup: $(STAMP)

# Installed again only when pyproject.toml is newer than the last installation.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "slimsvm needs Python 3.11 or newer, $(PYTHON) is %d.%d" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --editable '.[test]'
	touch $@

$(DOCS_STAMP): $(STAMP)
	$(PIP_INSTALL) --editable '.[docs]'
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# One pytest process per usable core, at most eight; a free one takes tests over from a busy one.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

# The type check has one core only: beside the tests, which have all of them; what it found comes last.
test test-all: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy > $(VENV)/mypy.txt 2>&1 & types=$$!; \
	$(PYTEST) $(if $(filter test-all,$@),--full); tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/mypy.txt; test $$tests$$types = 00

demo: $(STAMP)
	$(BIN)/python -m slimsvm.cli.demo

docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --fresh-env --quiet docs docs/_build
	@echo docs/_build/index.html

clean:
	rm -rf docs/_build demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info $(STAMP) $(DOCS_STAMP)
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
