# SPDX-License-Identifier: Apache-2.0
# Needs Python 3.11 or later, make and g++. Everything else is installed into .venv, from PyPI.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
JOBS ?= 2
PYTEST_ARGS ?=
PEERS_ARGS ?=

BIN := .venv/bin
DEMO := build/demo

.PHONY: help
help:  ## Say what there is to make
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Each stamp is an environment with what its users need; the larger one builds on the smaller.
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $(PYTHON) is older than 3.11; try: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/run.stamp: pyproject.toml | .venv/bin/python
	@command -v g++ >/dev/null || { echo "error: g++ is missing; nvcc needs it" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[toolchain]'
	@touch $@

.venv/dev.stamp: .venv/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[toolchain,tirx,dev]'
	@touch $@

.PHONY: demo
demo: .venv/run.stamp  ## Emit the step-6 kernel, compile it for sm_100a, prove it on the emulator
	@mkdir -p $(DEMO)
	@echo "== The kernel: tmagen emit --preset step6 -o $(DEMO)/step6.cu"
	@$(BIN)/tmagen emit --preset step6 -o $(DEMO)/step6.cu
	@echo
	@echo "== What was decided: tmagen explain --preset step6 --shape 4096,4096,4096"
	@$(BIN)/tmagen explain --preset step6 --shape 4096,4096,4096
	@echo
	@echo "== Compiled for sm_100a and emulated, by the file's own host part: tmagen verify $(DEMO)/step6.cu"
	@$(BIN)/tmagen verify $(DEMO)/step6.cu --shape 512,512,512 --shape 129,136,72 --shape 1664,3080,72
	@echo
	@echo "== Right. Read the kernel in $(DEMO)/step6.cu; what else there is: $(BIN)/tmagen --help"

.PHONY: test
test: .venv/dev.stamp  ## Run every test
	$(BIN)/python -m pytest -q -n $(JOBS) $(PYTEST_ARGS)

.PHONY: lint
lint: .venv/dev.stamp  ## Check style, types, import layers, templates and the format of generated kernels
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(shell find generated -name '*.cu')
	$(BIN)/python -m pytest -q tests/test_template_logic.py

.PHONY: regen
regen: .venv/dev.stamp  ## Write generated/ anew from the templates, and the pages that are made from the code
	$(BIN)/python -m tools.regen
	$(BIN)/python -m tools.emulator_docs
	$(BIN)/python -m tools.check_docs
	$(BIN)/python -m tools.mutant_docs
	$(BIN)/python -m tools.diff_docs
	$(BIN)/python -m tools.timeline_docs
	$(BIN)/python -m tests.gpu.conformance docs

.PHONY: bench
bench: .venv/dev.stamp  ## Measure what the project promises to be fast at
	$(BIN)/python -m benchmarks

.PHONY: mutants
mutants: .venv/dev.stamp  ## Break kernels one way after another, and see that the checker names the rule
	$(BIN)/python -m tools.mutants

.PHONY: conformance
conformance: .venv/dev.stamp  ## Hold the emulator against what an H200 answered
	$(BIN)/python -m tests.gpu.conformance replay

.PHONY: peers
peers: .venv/dev.stamp  ## Fetch other compilers, and run their kernels on the emulator
	$(BIN)/python -m tools.peers $(PEERS_ARGS)

.PHONY: clean
clean:  ## Remove what was built, and the environment
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
