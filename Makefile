# make demo and make test set everything up from nothing; `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo test lint types pytest fuzz bench docs format clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## Make .venv with every pinned dependency (PYTHON=python3.12 chooses the interpreter)

# A virtual environment that is already there is kept, so a smaller CPU build of torch may be put into it first (README.md).
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: leir needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	    echo "       Name another interpreter: make venv PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt hatchling editables
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: $(STAMP) ## Run the whole path on a softmax-matmul program and tell what happened
	$(BIN)/leir demo

test: lint types pytest ## Check everything: ruff, import direction, mypy --strict, pytest

lint: $(STAMP) ## Check style and import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.test_project.import_rules

types: $(STAMP) ## Check types: mypy --strict
	$(BIN)/mypy --strict

pytest: $(STAMP) lint types
	$(BIN)/pytest -q -n $(JOBS)

fuzz: $(STAMP) ## Run the long random tests
	$(BIN)/pytest -q -n $(JOBS) -m slow

bench: $(STAMP) ## Print import times, rates and latencies
	$(BIN)/python -m benchmarks

docs: $(STAMP) ## Write the generated pages under docs/ again
	$(BIN)/python -m docs.generate

format: $(STAMP) ## Format the code and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the virtual environment, caches and what runs wrote
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis out
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
