# `make` alone prints what there is. Everything is installed below .venv; PYTHON names the interpreter it is made from.

PYTHON ?= python3
# Processes that run tests side by side: one more than the cores of a small machine, because many tests wait for a
# process, a browser or a client.
JOBS ?= 3
# More arguments for pytest, the benchmark or the mutants: make test ARGS="tests/vskill/kv -k list"
ARGS ?=
# One database alone: make test DB=sqlite, or DB=postgres
DB ?=

BIN := .venv/bin
CLIENTS := tests/clients

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help run test lint format hooks engines bench mutants screenshots clean venv venv-dev clients claude-code codex newer-skills apm tools-seen

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

run: venv ## install what is missing and start everything on HOST and PORT (Ctrl-C ends it)
	@exec $(BIN)/python manage.py up

test: venv-dev clients tools-seen ## run all tests on SQLite, then on PostgreSQL what depends on it (ARGS, DB, JOBS)
	@exec $(BIN)/python -m tests.services.databases $(if $(DB),--only $(DB)) -- -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

lint: venv-dev ## check style, likely bugs and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	# A fixed place for the data directory that settings make: mypy leaves without cleaning up a temporary one.
	@VSKILL_TEST_DATA_DIR=build/mypy $(BIN)/mypy

format: venv-dev ## put the code into its one shape
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

hooks: venv-dev ## run what lint runs before each commit in this clone
	$(BIN)/pre-commit install

engines: ## install semgrep and Cisco's scanner, each into an environment of its own below .engines (1.1 GB; optional)
	@$(call engine,semgrep)
	@$(call engine,cisco)

bench: venv-dev ## measure; prints a table and writes build/bench.json (ARGS)
	@exec $(BIN)/python -m tests.bench $(ARGS)

mutants: venv-dev ## break the code in small ways and count the breaks that tests notice (ARGS); takes hours, no part of CI
	@exec $(BIN)/python -m tests.mutants --jobs $(JOBS) $(ARGS)

screenshots: venv-dev ## take the pictures of docs/screenshots from the running product (needs chromium and a font with Chinese letters)
	@exec $(BIN)/python -m tests.browser.screenshots

clean: ## delete what the tools made; the data of an instance stays
	rm -rf .venv .engines build .mypy_cache .ruff_cache .pytest_cache .hypothesis $(CLIENTS)/node_modules $(CLIENTS)/*/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call install,STAMP,REQUIREMENTS FILE,FILES IT DEPENDS ON)
# Calls pip only when the requirements or the interpreter changed since the last time that it ran to its end. By content
# and not by date, because git sets dates anew at every checkout.
define install
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
  echo "vskill needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) -V 2>&1 | tail -1)." >&2; \
  echo "Name another one like this: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }; \
want="$$($(PYTHON) -VV) $$(cat $(3) | cksum)"; \
if [ ! -x $(BIN)/python ] || [ "$$(cat .venv/$(1) 2>/dev/null)" != "$$want" ]; then \
  echo "Installing $(2) into .venv ..."; \
  $(PYTHON) -m venv .venv || { echo "On Debian the module venv comes with: apt-get install python3-venv" >&2; exit 1; }; \
  $(BIN)/python -m pip install --quiet --requirement $(2) || { \
    echo "The packages could not be installed; nothing else was changed. Once the package index answers, run it again." >&2; \
    exit 1; }; \
  echo "$$want" > .venv/$(1); \
fi
endef

# $(call engine,NAME)
# Into a folder of its own, because an engine pins other versions of packages that the product needs.
define engine
want="$$($(PYTHON) -VV) $$(cat requirements-engines/$(1).txt | cksum)"; \
if [ "$$(cat .engines/$(1)/installed 2>/dev/null)" != "$$want" ]; then \
  echo "Installing requirements-engines/$(1).txt into .engines/$(1) ..."; \
  $(PYTHON) -m venv .engines/$(1) && \
  .engines/$(1)/bin/python -m pip install --quiet --no-deps --requirement requirements-engines/$(1).txt || { \
    echo "$(1) could not be installed; the product works without it. Run it again once the package index answers." >&2; \
    exit 1; }; \
  echo "$$want" > .engines/$(1)/installed; \
fi
endef

venv:
	@$(call install,installed,requirements.txt,requirements.txt)

venv-dev:
	@$(call install,installed-dev,requirements-dev.txt,requirements.txt requirements-dev.txt)

define npm_install
if ! command -v npm >/dev/null; then exit 0; fi; \
	want="$$(cat $(1)/package-lock.json | cksum)"; \
	if [ "$$(cat $(1)/node_modules/.installed 2>/dev/null)" = "$$want" ]; then exit 0; fi; \
	echo "Installing the clients that tests run into $(1)/node_modules ..."; \
	if (cd $(1) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error); then \
	  echo "$$want" > $(1)/node_modules/.installed; \
	elif [ "$${CI:-}" = true ]; then exit 1; \
	else echo "They could not be installed; the tests that need them will be skipped." >&2; fi
endef

# The public clients that tests run against the server, and a package of real skills. No script of theirs runs here.
clients:
	@$(call npm_install,$(CLIENTS))
	@$(call npm_install,$(CLIENTS)/older_clawhub)

claude-code: ## install Claude Code for the tests that run it: 235 MB, so `make test` does not
	@$(call npm_install,$(CLIENTS)/claude_code)

codex: ## install Codex for the tests that run it: 172 MB to download
	@$(call npm_install,$(CLIENTS)/codex)

newer-skills: ## install the newer skills for the tests that run it, with the Node that it wants: 191 MB
	@$(call npm_install,$(CLIENTS)/newer_skills)

apm: ## install Microsoft's apm for the tests that run it, into an environment of its own (150 MB)
	@want="$$($(PYTHON) -VV) $$(cat $(CLIENTS)/apm/requirements.txt | cksum)"; \
	if [ "$$(cat .engines/apm/installed 2>/dev/null)" != "$$want" ]; then \
	  $(PYTHON) -m venv .engines/apm && \
	  .engines/apm/bin/python -m pip install --quiet --no-deps --requirement $(CLIENTS)/apm/requirements.txt && \
	  echo "$$want" > .engines/apm/installed; \
	fi

tools-seen:
	@command -v node >/dev/null && command -v npm >/dev/null || \
	  echo "node and npm are not installed: tests with public clients and real skills will be skipped." >&2
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  echo "chromium and chromedriver are not installed: browser tests will be skipped (Debian: chromium chromium-driver)." >&2
