# `make run` for users, `make quick` while one works, `make test` before it goes out. Each sets up
# what it needs in ./.venv*.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
CORE_VENV := .venv-core
PEERS_VENV := .venv-peers
PEERS := quantecon rlberry-scool autodp clarabel
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check --constraint constraints.txt
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Processes are the parallelism: threads of a matrix library would only wait for each other.
export OPENBLAS_NUM_THREADS ?= 1
# Tests start hundreds of programs and read tens of thousands of lines: byte code is kept.
export PYTHONDONTWRITEBYTECODE :=
EXPERIMENTS ?= $(basename $(notdir $(wildcard src/discreet/lab/experiments/*.toml)))

# A part of `make test` runs and notes its time; the last line prints the minutes of each.
TIMES := .test-minutes
part = started=$$(date +%s); $(2) || exit 1; echo "$(1) $$(( $$(date +%s) - started ))" >> $(TIMES)

# What was changed since the main branch, and its tests: src/discreet/a/_b.py has tests/a/test_b.py.
SINCE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || echo HEAD)
changed = $(shell git diff --name-only --diff-filter=d $(SINCE); git ls-files --others --exclude-standard)
sources = $(filter src/discreet/%.py,$(changed))
mirror = $(subst /test__,/test_,$(patsubst src/discreet/%,tests/%,$(dir $(1)))test_$(notdir $(1)))
tested = $(foreach file,$(changed),$(if $(findstring /test_,$(file)),$(file)))
tested += $(wildcard $(foreach file,$(sources),$(call mirror,$(file))))

PYTEST = $(BIN)/pytest -q -n $(JOBS) --dist worksteal --durations=10

.PHONY: run demo quick room fix test parts lint types imports tests mutants-sample mutants half-noise core-tests core-installed coverage wheel release docs bench bench-peers soak experiments clean help

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

$(CORE_VENV)/.core: pyproject.toml constraints.txt Makefile
	@echo "Setting up $(CORE_VENV) with the core dependencies only (once) ..."
	@test -x $(CORE_VENV)/bin/python || $(PYTHON) -m venv $(CORE_VENV)
	@$(CORE_VENV)/bin/pip install $(PIP_FLAGS) --editable . pytest pytest-xdist hypothesis
	@touch $@

# No constraints here: a peer may need older versions of what both use. The rlberry that fits its agents asks for an
# older Gymnasium than we do and works with ours.
$(PEERS_VENV)/.peers: pyproject.toml Makefile
	@echo "Setting up $(PEERS_VENV) with the packages that we are compared with (once; some minutes) ..."
	@test -x $(PEERS_VENV)/bin/python || $(PYTHON) -m venv $(PEERS_VENV)
	@$(PEERS_VENV)/bin/pip install --quiet --disable-pip-version-check --editable ".[health]" $(PEERS)
	@$(PEERS_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps "rlberry>=0.7.3" adastop
	@touch $@

run: $(VENV)/.run    ## a quick private-learning comparison: table and report page
	@$(BIN)/discreet run price-of-trust --quick --jobs $(JOBS)

demo: $(VENV)/.dev   ## the service on this machine: all roles, a simulated crowd, some kills
	@$(BIN)/discreet service demo --kills 4

quick: lint types    ## seconds: lint, types, and tests and doctests of what you changed since main
	@test -z "$(strip $(sources) $(tested))" || $(PYTEST) $(sort $(sources) $(tested))

room: $(VENV)/.dev   ## tests and doctests of one folder: make room ROOM=privacy
	@test -n "$(ROOM)" || { echo "Say which: make room ROOM=privacy"; exit 1; }
	@$(PYTEST) $(wildcard tests/$(ROOM) src/discreet/$(ROOM))

fix: $(VENV)/.dev    ## format, and mend what ruff can
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

test: $(VENV)/.dev  ## every check, with the minutes of each part
	@rm -f $(TIMES)
	@$(call part,all,$(MAKE) --no-print-directory parts)
	@awk '{printf "  %-10s %5.1f min\n", $$1, $$2 / 60}' $(TIMES) && rm -f $(TIMES)
	@echo "All checks passed."

# Lint, types and imports need one processor each; what follows takes all of them.
parts:
	@$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target lint types imports
	@$(MAKE) --no-print-directory tests mutants-sample core-tests

lint: $(VENV)/.dev   ## ruff check and format
	@$(call part,lint,$(BIN)/ruff check . && $(BIN)/ruff format --check .)

types: $(VENV)/.dev  ## mypy, strict, over src
	@$(call part,types,$(BIN)/mypy)

imports: $(VENV)/.dev  ## which layer may import which
	@$(call part,imports,$(BIN)/lint-imports)

tests: $(VENV)/.dev  ## tests and doctests, warnings are errors
	@$(call part,tests,$(PYTEST) --minimum-tests=11000)

mutants-sample: $(VENV)/.dev  ## some of the planted privacy bugs, others with every commit
	@$(call part,mutants,$(BIN)/python tests/mutants/run.py --sample 6 --jobs $(JOBS))

mutants: $(VENV)/.dev  ## every planted privacy bug must be killed (minutes)
	@$(BIN)/python tests/mutants/run.py --jobs $(JOBS)

half-noise: $(VENV)/.dev  ## half of all noise: for each mechanism and path a test must fail (minutes)
	@$(BIN)/python tests/mutants/half_noise.py

# What only extras bring is hidden from them; `core-installed` has an environment without extras, which takes longer.
CORE = -m core $(shell grep -rl --include='test_*.py' mark.core tests)
core-tests: $(VENV)/.dev  ## the core tests as if no extra were installed
	@$(call part,core,DISCREET_TESTS=core $(PYTEST) $(CORE))

core-installed: $(CORE_VENV)/.core  ## the same with the core dependencies only (continuous integration)
	@$(CORE_VENV)/bin/pytest -q -n $(JOBS) --dist worksteal $(CORE)

coverage: $(VENV)/.dev  ## which part of each room's lines the tests run, in one process
	@$(BIN)/coverage run --data-file=.coverage --source=src/discreet -m pytest -q
	@$(BIN)/coverage json -q -o .coverage.json && $(BIN)/python .ci/covered.py .coverage.json

wheel: $(VENV)/.dev  ## a wheel and a source archive in dist/
	@rm -rf dist build src/discreet.egg-info
	@$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	@ls dist/*

# Beside the wheel: what the service needs, pinned by hash, and a list of it (CycloneDX).
release: wheel       ## wheel, source archive, pins and SBOM, tried on every Python at hand; says what to upload
	@$(BIN)/pip install $(PIP_FLAGS) --dry-run --ignore-installed --report dist/report.json ".[service,postgres]"
	@$(BIN)/python .ci/release.py dist/report.json dist && rm dist/report.json
	@$(BIN)/python .ci/check_release.py dist

docs: $(VENV)/.dev   ## the site, without warnings, in docs/_build/html
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.dev  ## speed against peers, as ratios
	@$(BIN)/discreet bench

bench-peers: $(PEERS_VENV)/.peers  ## the same with the real peers, in an environment of their own
	@$(PEERS_VENV)/bin/discreet bench

soak: $(VENV)/.dev   ## studies and the service under strain: kills, faults, races, many users (an hour)
	@$(BIN)/python -m tests.soak.study
	@$(BIN)/python -m tests.soak.operations
	@$(BIN)/python -m tests.soak.service
	@$(BIN)/pytest -q --long tests/service tests/test_registry.py tests/lab/test_runner.py

experiments: $(VENV)/.dev  ## every shipped experiment in full (hours)
	@for name in $(EXPERIMENTS); do $(BIN)/discreet run $$name --jobs $(JOBS) || exit 1; done

clean:
	@rm -rf $(VENV) $(CORE_VENV) $(PEERS_VENV) docs/_build results dist build
