# Everything here runs on a machine that has Python (3.11 to 3.13), pip and make; the rest is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CODE := agentgym_jax envs_jax experiments tests

.PHONY: help install demo test lint gates clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

install: $(STAMP) ## create .venv and install the project with its development tools (PYTHON=python3.13 to choose one)

# Debian ships Python without ensurepip; pip from outside then fills the environment. The pinned set is for Python 3.11.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else \
	  "agentgym-jax needs Python 3.11 to 3.13, this is %d.%d: choose one with make install PYTHON=python3.12" % v)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || $(PYTHON) -m venv --without-pip --clear $(VENV)
	$(BIN)/python -m pip --version || $(PYTHON) -m pip --python $(BIN)/python install pip
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]' $$($(BIN)/python -c \
	  'import sys; print("--constraint constraints.txt" if sys.version_info[:2] == (3, 11) else "")')
	touch $@

demo: install ## train a multi-agent and a single-agent task, several seeds each, and explain the results
	$(BIN)/python experiments/demo.py

test: install ## the fast, complete suite; ARGS=... goes to pytest
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --durations 10 $(ARGS)

lint: install ## ruff, pyright, import-linter, pylint (copies and file length only)
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/pylint --jobs 2 --recursive y --score n --disable=all --enable=duplicate-code,too-many-lines $(CODE)

gates: install ## the learning gates, all or ONLY=name; numbers go to experiments/results/gates
	$(BIN)/python experiments/gates.py $(ONLY)

clean: ## remove .venv, caches and build products; runs stay
	rm -rf $(VENV) .cache build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
