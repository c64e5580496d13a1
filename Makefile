# The two commands: `make run` and `make test`. Both set up everything they need in ./.venv*.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
CORE_VENV := .venv-core
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check --constraint constraints.txt
JOBS ?= 2
STUDIES ?= price-of-trust price-of-epsilon beyond-riverswim shuffle-riverswim dp-ucbvi ldp-mechanisms ldp-random-mdp adversarial icu-sepsis

.PHONY: run test lint types imports tests core-tests docs bench study clean help

help:                ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.run: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once; about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install $(PIP_FLAGS) --editable ".[lab]"
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) with everything for the checks (once; a few minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install $(PIP_FLAGS) --editable ".[dev]"
	@touch $(VENV)/.run $@

$(CORE_VENV)/.core: pyproject.toml constraints.txt
	@echo "Setting up $(CORE_VENV) with the core dependencies only (once) ..."
	@test -x $(CORE_VENV)/bin/python || $(PYTHON) -m venv $(CORE_VENV)
	@$(CORE_VENV)/bin/pip install $(PIP_FLAGS) --editable . pytest
	@touch $@

run: $(VENV)/.run    ## a quick private-learning comparison: table and report page
	@$(BIN)/discreet run price-of-trust --quick --jobs $(JOBS)

test: lint types imports tests core-tests   ## every check
	@echo "All checks passed."

lint: $(VENV)/.dev   ## ruff check and format
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy, strict, over src
	@$(BIN)/mypy

imports: $(VENV)/.dev  ## mdp <- privacy <- learners <- lab <- cli
	@$(BIN)/lint-imports

tests: $(VENV)/.dev  ## tests and doctests, warnings are errors
	@$(BIN)/pytest -q -n $(JOBS) --minimum-tests=2050

core-tests: $(CORE_VENV)/.core  ## the core tests without any extra installed
	@$(CORE_VENV)/bin/pytest -q -m core tests

docs: $(VENV)/.dev   ## the site, without warnings, in docs/_build/html
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.dev  ## speed against peers, as ratios
	@$(BIN)/python -m benchmarks

study: $(VENV)/.dev  ## every shipped experiment in full (hours)
	@for name in $(STUDIES); do $(BIN)/discreet run $$name --jobs $(JOBS) || exit 1; done

clean:
	@rm -rf $(VENV) $(CORE_VENV) docs/_build results
