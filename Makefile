# Everything a person or a machine runs. Needs make and Python >= 3.11; the rest is set up here, inside .venv.

VENV := .venv
BIN := $(VENV)/bin
READY_TO_SERVE := $(VENV)/.ready-to-serve
READY := $(VENV)/.ready
READY_TO_CHECK := $(VENV)/.ready-to-check
# Serving needs a fifth of what the tests do. Where everything is set up, serving needs nothing more.
AT_LEAST_SERVES := $(if $(wildcard $(READY)),$(READY),$(READY_TO_SERVE))

# The interpreter .venv is made with (only when it is made): `make setup PYTHON=python3.12`.
PYTHON ?=
# `make serve PORT=9000 DB=sqlite:///my.db`; without them the service's own defaults hold.
PORT ?=
DB ?=
# `make test ARGS='tests/unit -k tokens'`.
ARGS ?=
# `make image TAG=pagefile:0.1.0`.
TAG ?= pagefile
# How many test files run at once; six keep two cores busy, since many tests wait for processes.
WORKERS ?= 6
# `make soak SOAK_MINUTES=6 CROSSING_CALLS=20000`.
SOAK_MINUTES ?= 30
CROSSING_CALLS ?= 200000
# `make soak KILLS=200`; the count is kept in this folder, and a run that was interrupted goes on.
KILLS ?= 2000
SOAK_STATE ?= soak-state
# `make races ROUNDS=300 FIRST=701` plays rounds 701 to 1000.
ROUNDS ?= 1000
FIRST ?= 1

# pyright's wheel brings the checker itself: use that one, and ask nobody whether there is a newer one.
unexport PYRIGHT_PYTHON_FORCE_VERSION
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# The tests start hundreds of processes: where no bytecode is kept, each of them compiles everything once more.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup serve test check bench soak races wheel dist image sbom chart sizes platforms fuzz findings docs pictures traceability lock format clean typescript pythons frameworks frameworks-lock encrypted

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## Make .venv with the locked dependencies and this package
	@echo "$(VENV) is ready: $$($(BIN)/python --version)"

# The service answers Ctrl-C itself and exits with 0; `exec` leaves no shell in between to die noisily.
serve: $(AT_LEAST_SERVES) ## Start the service on 127.0.0.1 (PORT=…, DB=… to choose)
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

# Needs Chromium, and Pillow, which no lock has: the script says how to install them.
pictures: $(READY) ## Take the pictures of the READMEs and of docs/ from the running inspector
	$(BIN)/python scripts/pictures.py

# `make wheel ARGS='--extras client service'` also installs these alone.
wheel: $(READY) ## Build the wheel, install it alone, print its size and import time (ARGS=--extras …)
	$(BIN)/python scripts/wheel.py $(ARGS)

dist: $(AT_LEAST_SERVES) ## Build the wheel and the source distribution into dist/
	$(BIN)/python scripts/wheel.py --into dist

image: ## Build the container image with docker, podman, buildah, nerdctl or kaniko (TAG=pagefile)
	@scripts/image.sh '$(TAG)'

sbom: $(BIN)/uv ## Write dist/pagefile.cdx.json: what the image is made of, with versions and hashes (CycloneDX)
	@mkdir -p dist
	$(BIN)/uv tool run --quiet --from cyclonedx-bom cyclonedx-py requirements --pyproject pyproject.toml \
		--output-reproducible --of JSON -o dist/pagefile.cdx.json requirements-image.lock

chart: ## Package the Helm chart into dist/ (with the helm of `make check`, or one of yours)
	PATH="$(CURDIR)/$(BIN):$$PATH" helm package deploy/helm/pagefile --destination dist

sizes: $(READY) ## Set up what serving and what testing needs, each in a folder of its own, and print what they take
	$(BIN)/python scripts/sizes.py

platforms: $(READY) ## Write docs/install.md's table: on which systems every package of the lock has a wheel
	$(BIN)/python scripts/platforms.py

# Needs atheris, which no lock has: the script says how to install it.
fuzz: $(READY) ## Fuzz the readers of text and files, guided by coverage (ARGS='times --seconds 300')
	$(BIN)/python scripts/fuzz.py $(ARGS)

findings: $(READY) ## Run what strangers found, with the races and loads, and print what is still open (ARGS=… goes to pytest)
	$(BIN)/python scripts/findings.py $(ARGS)

# Needs npm packages, half of them for the AI SDK and Mastra, against which it is tested.
typescript: $(READY) ## Build and test the client in clients/typescript (ARGS=--write after a change of the API)
	$(BIN)/python scripts/typescript.py $(ARGS)

# `make pythons ARGS='--python /opt/python3.14/bin/python3'` where one is not on the path.
pythons: $(READY) ## Run a smoke set of the tests on each Python from 3.11 to 3.14 that is here, and name those that are not
	$(BIN)/python scripts/pythons.py $(ARGS)

soak: $(READY) ## Load the service for SOAK_MINUTES=30, flat; CROSSING_CALLS=200000, none crosses; KILLS=2000, nothing lost (resumes)
	$(BIN)/python -m tests.faults.soak --minutes $(SOAK_MINUTES)
	$(BIN)/python -m tests.crossing --calls $(CROSSING_CALLS)
	$(BIN)/python -m tests.faults.killing --kills $(KILLS) --state $(SOAK_STATE)

# On SQLite, then on PostgreSQL with Valkey; every ten rounds it prints what it has counted, and where to go on after a break.
races: $(READY) ## Erase in the middle of everything, ROUNDS=1000 times on each database: nothing comes back, nothing is left
	$(BIN)/python -m tests.races.racing --engine sqlite --rounds $(ROUNDS) --first $(FIRST)
	$(BIN)/python -m tests.races.racing --engine postgres --rounds $(ROUNDS) --first $(FIRST)

format: $(READY) ## Format the code and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# Versions and hashes only: where packages come from is the business of the machine that installs them.
# The first has everything but the heaviest; the others take their versions from it: what runs is what was tested.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-emit-index-annotation --custom-compile-command "make lock" $(ARGS) pyproject.toml
SAME = --constraint requirements.lock
# What the image can speak to; `make serve` can do without the databases.
IMAGE_EXTRAS := postgres redis milvus openai otel mcp

lock: $(BIN)/uv ## Resolve the dependencies again into the four locks and that of `make encrypted` (ARGS=--upgrade for newer ones)
	$(COMPILE) --extra all --group dev -o requirements.lock
	$(COMPILE) $(SAME) --extra openai --extra mcp --group setup -o requirements-serve.lock
	$(COMPILE) $(SAME) $(IMAGE_EXTRAS:%=--extra %) --group build -o requirements-image.lock
	$(COMPILE) $(SAME) --extra all --extra claude --group dev --group check -o requirements-check.lock
	$(COMPILE) $(SAME) --extra all --group dev --group encrypted --no-emit-package apsw -o locks/encrypted.lock

# The frameworks that do not resolve beside the main lock have locks of their own: the newest versions that our bounds allow, and the
# lowest. CrewAI wants another `openai` than the OpenAI Agents SDK, so it is alone.
TOGETHER := langchain langgraph pydantic-ai openai-agents adk agent-framework llama-index agno smolagents strands
FRAMEWORKS = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-emit-index-annotation --custom-compile-command "make frameworks-lock" --group frameworks

# Environments of their own, so that `make test` stays as it is. LOWEST=1 plays the lowest versions, too.
frameworks: $(READY) .venv-frameworks/.ready .venv-crewai/.ready $(if $(LOWEST),.venv-frameworks-lowest/.ready .venv-crewai-lowest/.ready) ## Play vendors' suites and our contract with every agent framework (LOWEST=1 for the lowest versions, too)
	$(BIN)/pyright --project locks/pyright.json
	$(BIN)/pagefile bench frameworks
	$(if $(LOWEST),$(BIN)/pagefile bench frameworks --lowest)

# `apsw-sqlite3mc` is apsw with another SQLite: it takes the place of apsw, so it has an environment of its own.
encrypted: $(READY) .venv-encrypted/.ready ## Test SQLite databases with a SQLite that encrypts them
	.venv-encrypted/bin/pytest tests/integration/sqlite tests/acceptance/test_backup.py $(ARGS)

.venv-%/.ready: locks/%.lock pyproject.toml | $(BIN)/uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-$*
	$(BIN)/uv pip sync --quiet --python .venv-$*/bin/python --require-hashes locks/$*.lock
	$(BIN)/uv pip install --quiet --python .venv-$*/bin/python --no-deps --no-build-isolation -e .
	@touch $@

frameworks-lock: $(BIN)/uv ## Resolve the frameworks again into locks/ (ARGS=--upgrade for newer ones)
	$(FRAMEWORKS) $(ARGS) $(TOGETHER:%=--extra %) --extra claude pyproject.toml -o locks/frameworks.lock
	$(FRAMEWORKS) $(ARGS) --extra crewai pyproject.toml -o locks/crewai.lock
	@mkdir -p build
	$(BIN)/python scripts/lowest_frameworks.py $(filter-out langgraph,$(TOGETHER)) claude > build/lowest.txt
	$(FRAMEWORKS) $(ARGS) $(TOGETHER:%=--extra %) --extra claude --constraint build/lowest.txt pyproject.toml -o locks/frameworks-lowest.lock
	$(BIN)/python scripts/lowest_frameworks.py crewai > build/lowest.txt
	$(FRAMEWORKS) $(ARGS) --extra crewai --constraint build/lowest.txt pyproject.toml -o locks/crewai-lowest.lock

clean: ## Remove .venv, caches and builds; databases stay
	rm -rf $(VENV) .venv-* .pythons clients/typescript/node_modules clients/typescript/dist build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A pyenv shim can be on the path for a Python that is not there, so each candidate is asked for its version.
$(BIN)/python:
	@set -e; \
	for candidate in $(if $(PYTHON),'$(PYTHON)',python3.14 python3.13 python3.12 python3.11 python3 python); do \
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
	@awk '/^[^ #]/ { mine = /^uv==/ } mine && !/^ *#/' requirements-serve.lock > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(VENV)/uv.txt

# The lock and this package, and nothing else.
INSTALL = $(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(1) && \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .

$(READY_TO_SERVE): requirements-serve.lock pyproject.toml $(BIN)/python | $(BIN)/uv
	@echo "Installing what serving needs: about a minute."
	$(call INSTALL,requirements-serve.lock)
	@touch $@

$(READY): requirements.lock pyproject.toml $(BIN)/python | $(BIN)/uv
	@rm -f $(READY_TO_SERVE)
	$(call INSTALL,requirements.lock)
	@touch $@

# The same and the heaviest: the Claude command, a Milvus server, helm.
$(READY_TO_CHECK): requirements-check.lock $(READY)
	$(call INSTALL,requirements-check.lock)
	@touch $@
