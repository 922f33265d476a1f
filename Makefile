# What one does with a clone. Everything runs in .venv, which the first target that needs it makes.
#
#   make demo                    install, run the quickstart sweep here, print the report's path
#   make test                    install, then every check and every test that needs no GPU
#   make demo TORCH_INDEX=URL    take torch from another wheel index (its CPU builds are small)
#   make demo PYTHON=python3.12  use this interpreter (3.11 or newer)

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
TORCH_INDEX ?=
PINS := deploy/constraints.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# What is imported is compiled when it is: the rest of it is most of what a new clone would wait for.
INSTALL := $(PIP) install --progress-bar off --no-compile --constraint $(PINS)
RUN := $(VENV)/.ready-to-run
WORK := $(VENV)/.ready-to-work
PYTEST := $(BIN)/python -m pytest
# A file stays together, in the order of the tree: few tests that take long would else come last.
SPREAD := $(PYTEST) --numprocesses auto --dist loadfile --no-loadscope-reorder --durations=10
SERVERS := redis or s3 or browser or gpu or timing

.PHONY: help demo test check unit integration format-check lint types imports \
        test-long bench audit format wheel lock clean browser forget-seeds

help:
	@sed -n 's/^#   //p' Makefile
	@echo 'further: check unit bench test-long audit format wheel lock clean'

# ── the two commands ─────────────────────────────────────────────────────────────────────────────

demo: $(RUN)
	$(BIN)/farm run configs/sweeps/quickstart.yaml

# Each run of pytest adds to one file which lines of the checklist its tests proved.
SEEDS := .seeds.jsonl
test: export FARM_SEEDS := $(CURDIR)/$(SEEDS)
test: forget-seeds check integration
	$(BIN)/python -m tests.checklist $(SEEDS)

forget-seeds:
	@rm -f $(SEEDS)

# ── the environment ──────────────────────────────────────────────────────────────────────────────

# A Python without ensurepip (Debian's, bare) still makes an environment if it has a pip to lend.
$(BIN)/python:
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  for each in python3 python3.14 python3.13 python3.12 python3.11; do \
	    if "$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      python="$$each"; break; fi; done; fi; \
	if [ -z "$$python" ]; then \
	  echo 'error: no python3 of version 3.11 or newer on PATH' >&2; \
	  echo 'hint: install one, or name it: make PYTHON=/path/to/python3.12 …' >&2; exit 2; fi; \
	echo "making $(VENV) with $$python"; \
	if "$$python" -c 'import ensurepip' 2>/dev/null; then "$$python" -m venv $(VENV); \
	elif "$$python" -m pip --version >/dev/null 2>&1; then \
	  "$$python" -m venv --without-pip $(VENV); \
	  "$$python" -m pip --python $(BIN)/python install --progress-bar off pip; \
	else echo "error: $$python has neither ensurepip nor pip" >&2; \
	  echo 'hint: install them (on Debian: apt-get install python3-venv)' >&2; exit 2; fi

# torch first, so that nothing which depends on it chooses another one; the index, if one is given,
# is asked for torch alone. The zoo goes without its dependencies: some would bring another torch, and
# what its graphs need is there already.
$(RUN): $(BIN)/python pyproject.toml $(PINS) deploy/zoo.txt
	$(if $(TORCH_INDEX),$(INSTALL) --no-deps --index-url $(TORCH_INDEX) torch)
	$(INSTALL) torch hatchling editables
	$(INSTALL) --no-build-isolation --editable '.[worker]'
	$(INSTALL) --no-deps --requirement deploy/zoo.txt
	@touch $@

$(WORK): $(RUN)
	$(INSTALL) --no-build-isolation --editable '.[worker,dev]'
	@touch $@

# ── checks: format, lint, types, imports, then the tests that need no server ─────────────────────

check: format-check lint types imports unit

format-check: $(WORK)
	$(BIN)/ruff format --check

lint: $(WORK)
	$(BIN)/ruff check
	$(BIN)/codespell
	$(BIN)/validate-pyproject pyproject.toml

types: $(WORK)
	$(BIN)/mypy

imports: $(WORK)
	$(BIN)/lint-imports

unit: $(WORK)
	$(SPREAD) -m 'not long and not ($(SERVERS))'

# Two that measure disturb each other, and two that drive a farm share the device: those run alone.
integration: $(WORK) browser
	$(SPREAD) --ignore tests/integration \
	  -m 'not long and ($(SERVERS)) and not (timing or browser)'
	$(PYTEST) --durations=10 -m 'not long and ($(SERVERS))' tests/integration
	$(PYTEST) --durations=10 --ignore tests/integration -m 'not long and (timing or browser)'

# The browser tests skip, with their reason, where nobody may install a browser.
browser:
	@if [ -d tests/browser ] && ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] \
	  && command -v apt-get >/dev/null; then \
	  { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -q -y --no-install-recommends chromium; } \
	  || echo 'no chromium: the browser tests will skip' >&2; fi

# ── further ──────────────────────────────────────────────────────────────────────────────────────

test-long: $(WORK)
	$(PYTEST) --durations=10 -m long

bench: $(WORK)
	$(BIN)/python -m tests.bench

audit: $(WORK)
	$(BIN)/python -m venv --clear $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --progress-bar off pip-audit
	$(VENV)/audit/bin/pip-audit --no-deps --requirement $(PINS)

format: $(WORK)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

wheel: $(WORK)
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .

# New pins: what the newest releases resolve to, except torch, which is moved by hand. The local part
# of a version (+cpu) and what only some builds of torch need are left out.
lock: $(BIN)/python
	$(BIN)/python -m venv --clear $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --progress-bar off \
	  "$$(grep '^torch==' $(PINS))" '.[worker,dev]'
	{ grep '^#' $(PINS); $(VENV)/lock/bin/python -m pip list --format=freeze \
	  --exclude pip --exclude profiling-farm \
	  | sed 's/+[a-z0-9.]*$$//' | grep -v -i -E '^(cuda|nvidia|triton)'; } > $(PINS).new
	mv $(PINS).new $(PINS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find farm workers tests -name __pycache__ -prune -exec rm -rf {} +
