# Everything a person or a machine runs. Needs make and Python >= 3.11; the rest is set up here, inside .venv.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_TO_CHECK := $(VENV)/.ready-to-check

# The interpreter .venv is made with (only when it is made): `make setup PYTHON=python3.12`.
PYTHON ?=
# `make serve PORT=9000 DB=sqlite:///my.db`; without them the service's own defaults hold.
PORT ?=
DB ?=
# `make test ARGS='tests/unit -k tokens'`.
ARGS ?=
# How many test files run at once; six keep two cores busy, since many tests wait for processes.
WORKERS ?= 6
# `make soak SOAK_MINUTES=6 CROSSING_CALLS=20000`.
SOAK_MINUTES ?= 30
CROSSING_CALLS ?= 200000
# `make races ROUNDS=300 FIRST=701` plays rounds 701 to 1000.
ROUNDS ?= 1000
FIRST ?= 1

# pyright's wheel brings the checker itself: use that one, and ask nobody whether there is a newer one.
unexport PYRIGHT_PYTHON_FORCE_VERSION
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# The tests start hundreds of processes: where no bytecode is kept, each of them compiles everything once more.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup serve test check bench soak races wheel fuzz findings docs traceability lock format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## Make .venv with the locked dependencies and this package
	@echo "$(VENV) is ready: $$($(BIN)/python --version)"

# The service answers Ctrl-C itself and exits with 0; `exec` leaves no shell in between to die noisily.
serve: $(READY) ## Start the service on 127.0.0.1 (PORT=…, DB=… to choose)
	@exec $(BIN)/pagefile serve $(if $(PORT),--port '$(PORT)') $(if $(DB),--db '$(DB)')

# A file at a time: the slow tests wait for processes and disks more than they compute.
PYTEST = $(BIN)/pytest --forks $(WORKERS)

# No test runs in both: `test` leaves out those that need a browser, the Claude command or a Milvus server, and says so;
# `check` runs these and no others, and fails where one of the three is missing.
test: $(READY) ## Run the tests, but for those that need the heavy parts (ARGS=… goes to pytest)
	$(PYTEST) --heavy left-out $(ARGS)

check: $(READY_TO_CHECK) ## The rest of what must hold: format, lint, types, layers, tests that need the heavy parts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo --no-cache
	$(PYTEST) --heavy required -m heavy $(ARGS)

bench: $(READY) ## Measure the core on this machine
	$(BIN)/pagefile bench core

traceability: $(READY) ## Write docs/traceability.md: each requirement, its tests, what was measured
	$(BIN)/python scripts/traceability.py
	$(BIN)/python scripts/claims.py

docs: $(READY) ## Build the pages of docs/ into site/
	$(BIN)/python scripts/reference.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The pages are in site/: open site/index.html"

# `make wheel ARGS='--extras client service'` also installs these alone.
wheel: $(READY) ## Build the wheel, install it alone, print its size and import time (ARGS=--extras …)
	$(BIN)/python scripts/wheel.py $(ARGS)

# Needs atheris, which no lock has: the script says how to install it.
fuzz: $(READY) ## Fuzz the readers of text and files, guided by coverage (ARGS='times --seconds 300')
	$(BIN)/python scripts/fuzz.py $(ARGS)

findings: $(READY) ## Run what strangers found, with the races and loads, and print what is still open (ARGS=… goes to pytest)
	$(BIN)/python scripts/findings.py $(ARGS)

soak: $(READY) ## Load the service for SOAK_MINUTES=30, which must stay flat; then CROSSING_CALLS=200000 calls, of which none may cross
	$(BIN)/python -m tests.faults.soak --minutes $(SOAK_MINUTES)
	$(BIN)/python -m tests.crossing --calls $(CROSSING_CALLS)

# On SQLite, then on PostgreSQL with Valkey; every ten rounds it prints what it has counted, and where to go on after a break.
races: $(READY) ## Erase in the middle of everything, ROUNDS=1000 times on each database: nothing comes back, nothing is left
	$(BIN)/python -m tests.races.racing --engine sqlite --rounds $(ROUNDS) --first $(FIRST)
	$(BIN)/python -m tests.races.racing --engine postgres --rounds $(ROUNDS) --first $(FIRST)

format: $(READY) ## Format the code and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# Versions and hashes only: where packages come from is the business of the machine that installs them.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-emit-index-annotation --custom-compile-command "make lock" --extra all --group dev

lock: $(BIN)/uv ## Resolve the dependencies again into the two locks (ARGS=--upgrade for newer ones)
	$(COMPILE) $(ARGS) pyproject.toml -o requirements.lock
	$(COMPILE) --extra claude --group check --constraint requirements.lock pyproject.toml -o requirements-check.lock

clean: ## Remove .venv, caches and builds; databases stay
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A pyenv shim can be on the path for a Python that is not there, so each candidate is asked for its version.
$(BIN)/python:
	@set -e; \
	for candidate in $(if $(PYTHON),'$(PYTHON)',python3.13 python3.12 python3.11 python3 python); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $(VENV) with $$("$$candidate" --version)"; \
			"$$candidate" -m venv --clear $(VENV) && exit 0; \
			rm -rf $(VENV); \
			echo "error: '$$candidate -m venv' failed; on Debian and Ubuntu, install the package python3-venv." >&2; \
			exit 1; \
		fi; \
	done; \
	echo "error: no Python >= 3.11 found$(if $(PYTHON), as $(PYTHON)); install one, or say 'make setup PYTHON=/path/to/python3'." >&2; \
	exit 1

# uv itself comes by pip, in the version and with the hashes that the lock names.
$(BIN)/uv: | $(BIN)/python
	@awk '/^[^ #]/ { mine = /^uv==/ } mine && !/^ *#/' requirements.lock > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(VENV)/uv.txt

$(READY): requirements.lock pyproject.toml $(BIN)/python | $(BIN)/uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

# The same and the two heaviest: the Claude command and a Milvus server.
$(READY_TO_CHECK): requirements-check.lock $(READY)
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-check.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@
