PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test test-all mutants aarch64 lint bench bench-quick conformance docs clean

## Load, check and run the example model, and show what came out.
run: $(VENV)/.run
	$(BIN)/sardonyx run examples/digits.onnx --input pixels=examples/digits_input.npy

## The tests, in a few minutes.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m "not slow" tests

## Everything, the long tests included.
test-all: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 tests
	$(BIN)/python -m tests.fuzz.run --count 100000

## Whether tests notice small changes of the code, 300 of them; most of an hour on two cores.
mutants: $(VENV)/.test
	$(BIN)/python -m tests.mutants.run --count 300

## Tests of machine code on an emulated aarch64 processor, which takes long; see CONTRIBUTING.
aarch64: build/aarch64/usr/bin/python
	$< -m pytest -p no:cacheprovider -n 2 -m "not slow" tests/compiler
	$< -m tests.conformance.suite --compiled --every 12

build/aarch64/usr/bin/python: pyproject.toml tools/emulate_aarch64.sh
	tools/emulate_aarch64.sh build/aarch64

## The official ONNX backend suite, as a table.
conformance: $(VENV)/.test
	$(BIN)/python -m tests.conformance.suite

## Style and types.
lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

## Timings beside the peers, taking turns with them; an hour or so on a quiet machine.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.chain
	$(BIN)/python -m benchmarks.dynamic
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks.plot

## The same for a few models, with fewer calls; results go to build/.
bench-quick: $(VENV)/.bench
	mkdir -p build
	$(BIN)/python -m benchmarks.run --quick --runs 20 --seconds 5 --json build/results.json
	$(BIN)/python -m benchmarks.chain --runs 2000 --json build/results.json
	$(BIN)/python -m benchmarks.plot build/results.json build/benchmarks

## The documentation as a site, in build/site.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) --editable .
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) --editable ".[test]"
	touch $@

$(VENV)/.lint: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) --editable ".[test,lint]"
	touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) --editable ".[docs]"
	touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) --editable ".[test,bench]"
	touch $@
