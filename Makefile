# Everything a contributor does. `make help` lists it; each target sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FUZZ_VENV := .venv-fuzz
FUZZ_READY := $(FUZZ_VENV)/.ready
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready
# Rivals that cannot share an environment with mcp 2.
BENCH_MCP1_VENV := .venv-bench-mcp1
BENCH_FASTMCP_VENV := .venv-bench-fastmcp
RIVALS_READY := $(BENCH_MCP1_VENV)/.ready $(BENCH_FASTMCP_VENV)/.ready
INTEROP_VENV := .venv-interop
INTEROP_READY := $(INTEROP_VENV)/.ready
# Clients that are built on mcp 1 and on mcp 2: they cannot share an environment.
MCP1_VENV := .venv-interop-mcp1
MCP1_READY := $(MCP1_VENV)/.ready
MCP2_VENV := .venv-interop-mcp2
MCP2_READY := $(MCP2_VENV)/.ready
# Servers that are built on mcp 1.
SERVERS_MCP1_VENV := .venv-interop-servers-mcp1
SERVERS_MCP1_READY := $(SERVERS_MCP1_VENV)/.ready
CONFORMANCE_VENV := .venv-conformance
CONFORMANCE_READY := $(CONFORMANCE_VENV)/.ready
MUTANTS_VENV := .venv-mutants
MUTANTS_READY := $(MUTANTS_VENV)/.ready
DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
# How long each fuzz target runs.
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 60
# Cores that tests use. What mostly waits runs in two processes for each.
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
PYTEST = $(BIN)/python -m pytest --terse $(EFFORT)
# Commands that run the tests of $(2) in $(1) processes, a part of the files each.
PARTS = $(foreach part,$(shell seq $(1)),"$(PYTEST) --part $(part)/$(strip $(1)) $(2)")
# Unit tests wait now and then: one process more keeps every core busy.
UNIT = $(call PARTS,$(shell expr $(JOBS) + 1),tests/unit tests/tables)
TYPES = "$(BIN)/mypy" "$(BIN)/python -m tools.run_pyright"
TOGETHER = $(BIN)/python tools/side_by_side.py
# Folders of tests that mostly wait: for processes, terminals and time.
WAITING := faults terminal transports
# Every process here keeps what it compiles: otherwise each that runs tests compiles all of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-full dist test test-all check format lint types unit spec-check screens structs exports \
	sync-client options vectors requirements parity \
	prose census limits proxies interop interop-hosts interop-full conformance docs fuzz soak mutants bench bench-quick bench-gate bench-docs clean

help: ## List every target
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) $(DOCS_READY) $(INTEROP_READY) $(SERVERS_MCP1_READY) $(CONFORMANCE_READY) $(FUZZ_READY) ## Every environment and npm package that CI needs: make -j2 setup
	@$(CONFORMANCE_VENV)/bin/python -m conformance.install interop/typescript interop/matrix/everything interop/oauth/oidc-provider
	@$(BIN)/python -m tools.proxies

demo: $(READY) ## A server, the command line, both eras and the judge, in fifty lines
	@$(BIN)/python examples/demo.py

demo-full: $(READY) ## Every message of longer exchanges, printed: the codec, both eras, the terminal
	@$(BIN)/python examples/messages.py
	@$(BIN)/python examples/eras.py
	@$(BIN)/python examples/terminal.py

dist: $(READY) ## Build the sdist and the wheel into dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . > $(VENV)/dist.log 2>&1 || { cat $(VENV)/dist.log; exit 1; }
	@ls dist/*

test: lint $(DOCS_READY) ## Everything that must hold: check, vectors, conversations, faults and the rest
	@$(TOGETHER) --at-once $(shell expr 3 \* $(JOBS)) \
		$(call PARTS,$(shell expr 2 \* $(JOBS)),$(addprefix tests/,$(WAITING))) \
		$(call PARTS,$(JOBS),tests $(addprefix --ignore=tests/,unit tables docs $(WAITING))) \
		$(UNIT) "$(PYTEST) tests/docs" $(TYPES)

test-all: EFFORT := --full
test-all: test ## The same with every transport in every revision, and every example

screens: $(READY) ## Write the expected screens of tests/terminal again; read the difference before committing
	@UPDATE_SCREENS=1 $(PYTEST) --full -n $(JOBS) -k colour tests/terminal

check: lint ## Format, lint, types, tables and unit tests, in two minutes
	@$(TOGETHER) $(UNIT) $(TYPES)

lint: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: $(READY)
	@$(TOGETHER) $(TYPES)

unit: $(READY)
	@$(TOGETHER) $(UNIT)

format: $(READY) ## Format the code and sort its imports
	@$(BIN)/ruff check --select I --fix .
	@$(BIN)/ruff format .

spec-check: $(READY) ## Re-check the rows against official files: make spec-check SCHEMAS=DIR EXAMPLES=DIR
	@test -n "$(SCHEMAS)" || { echo "name a folder of official schema files: SCHEMAS=DIR"; exit 2; }
	@$(BIN)/python tools/import_schema.py tests/tables/digests --schemas $(SCHEMAS) --check
	@test -z "$(EXAMPLES)" || $(BIN)/python tools/judge_examples.py $(EXAMPLES)

structs: $(READY) ## Write the wire types from the rows
	@$(BIN)/python tools/generate_structs.py

exports: $(READY) ## Write the stubs of packages that export lazily
	@$(BIN)/python -m tools.generate_exports

sync-client: $(READY) ## Write the synchronous client from the async one
	@$(BIN)/python tools/generate_sync_client.py

options: $(READY) ## Write the methods of `Server` and `Client` that take options from the fields of the options
	@$(BIN)/python tools/generate_options.py

vectors: $(READY) ## Write the judge's vectors from the rows
	@$(BIN)/python tools/judge_vectors.py

requirements: $(READY) ## Print which requirement is judged by what
	@$(BIN)/python tools/requirements_table.py

parity: $(READY) ## Count, per system, what works here already and what the rest waits for
	@$(BIN)/python tools/parity.py

prose: $(READY) ## Count turns of phrase in docstrings, comments and docs that have a plainer wording
	@$(BIN)/python -m tools.prose --check

census: $(READY) ## Count folders, modules, lines and names of the source: make census AGAINST=COMMIT
	@$(BIN)/python -m tools.census $(addprefix --against ,$(AGAINST))

limits: $(READY) ## Print the costs that are limited without a clock: calls, modules, bytes
	@$(BIN)/python -m bench.limits

proxies: $(READY) ## nginx and Caddy for the tests of docs/deploying.md, into .proxies/ unless they are installed
	@$(BIN)/python -m tools.proxies

interop: $(INTEROP_READY) $(SERVERS_MCP1_READY) ## Talk to the official SDKs and FastMCP, over stdio and HTTP, both directions, both eras
	@$(INTEROP_VENV)/bin/python -m interop.run
	@$(INTEROP_VENV)/bin/python -m interop.oauth.run
	@$(INTEROP_VENV)/bin/python -m interop.matrix.run --diagonal
	@$(INTEROP_VENV)/bin/python -m interop.command.run

interop-hosts: $(INTEROP_READY) ## Real hosts, such as Claude Code, with a model that follows a script: make interop-hosts ONLY=codex; WRITE=1 writes docs/interop.md
	@$(INTEROP_VENV)/bin/python -m interop.hosts.run $(addprefix --only ,$(ONLY)) $(if $(WRITE),--write)

interop-full: $(INTEROP_READY) $(MCP1_READY) $(MCP2_READY) $(SERVERS_MCP1_READY) ## Every client and agent framework with every server, and the tables of docs/interop.md
	@$(INTEROP_VENV)/bin/python -m interop.matrix.run --write
	@$(INTEROP_VENV)/bin/python -m interop.command.run --write

conformance: $(CONFORMANCE_READY) ## Run the official conformance suites: examples/everything_server.py, and our client; WRITE=1 writes docs/conformance.md
	@$(CONFORMANCE_VENV)/bin/python -m conformance $(if $(WRITE),--write)

docs: $(DOCS_READY) ## Build docs/ into a site that needs no server: site/index.html
	@rm -rf site
	@$(DOCS_VENV)/bin/python -m sphinx -W --keep-going -q -E -d $(DOCS_VENV)/doctrees docs site
	@echo "built site/index.html"

fuzz: $(FUZZ_READY) ## Feed random bytes to the decoder, the framings, SSE, a server and HTTP for FUZZ_SECONDS each
	@$(FUZZ_VENV)/bin/python tools/fuzz.py --seconds $(FUZZ_SECONDS)

soak: $(READY) ## Run mixed clients against real servers on pipes, sockets, HTTP and ASGI: make soak SOAK_SECONDS=600
	@$(BIN)/python -m tools.soak --seconds $(SOAK_SECONDS)

mutants: $(MUTANTS_READY) ## Put faults into copies of the source: make mutants SAMPLE=100 SEED=1 PACKAGE=server
	@$(MUTANTS_VENV)/bin/python -m tools.mutants $(addprefix --sample ,$(SAMPLE)) \
		$(addprefix --seed ,$(SEED)) $(addprefix --package ,$(PACKAGE))

bench: $(BENCH_READY) $(RIVALS_READY) ## Measure everything against the rivals: make bench SECTIONS="codec stdio"
	@$(BENCH_VENV)/bin/python -m bench.run $(SECTIONS)

bench-quick: $(BENCH_READY) $(RIVALS_READY) ## The same with short rounds, for a first look
	@$(BENCH_VENV)/bin/python -m bench.run --quick $(SECTIONS)

bench-gate: $(READY) ## Compare a result with bench/targets.json: make bench-gate RESULT=bench/reference.json
	@$(BIN)/python -m bench.gate $(RESULT)

bench-docs: $(READY) ## Write docs/benchmarks.md and its charts: make bench-docs RESULT=bench/results/latest.json
	@$(BIN)/python -m bench.report $(RESULT)

clean: ## Remove what was made here
	rm -rf $(VENV) $(FUZZ_VENV) $(BENCH_VENV) $(BENCH_MCP1_VENV) $(BENCH_FASTMCP_VENV) $(INTEROP_VENV) $(MCP1_VENV) $(MCP2_VENV) $(SERVERS_MCP1_VENV) $(CONFORMANCE_VENV) $(MUTANTS_VENV) $(DOCS_VENV) .conformance .proxies .mypy_cache .pytest_cache .ruff_cache .hypothesis dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml requirements/dev.txt
	@$(PYTHON) tools/environment.py $(VENV) requirements/dev.txt
	@touch $@

$(DOCS_READY): pyproject.toml requirements/docs.txt
	@$(PYTHON) tools/environment.py $(DOCS_VENV) requirements/docs.txt
	@touch $@

$(FUZZ_READY): pyproject.toml requirements/fuzz.txt
	@$(PYTHON) tools/environment.py $(FUZZ_VENV) requirements/fuzz.txt
	@touch $@

$(BENCH_READY): pyproject.toml requirements/bench.txt
	@$(PYTHON) tools/environment.py $(BENCH_VENV) requirements/bench.txt
	@touch $@

$(BENCH_MCP1_VENV)/.ready: pyproject.toml requirements/bench-mcp1.txt
	@$(PYTHON) tools/environment.py $(BENCH_MCP1_VENV) requirements/bench-mcp1.txt
	@touch $@

$(BENCH_FASTMCP_VENV)/.ready: pyproject.toml requirements/interop.txt requirements/interop-fastmcp.txt
	@$(PYTHON) tools/environment.py $(BENCH_FASTMCP_VENV) requirements/interop.txt requirements/interop-fastmcp.txt
	@touch $@

$(INTEROP_READY): pyproject.toml requirements/interop.txt requirements/interop-servers.txt requirements/interop-fastmcp.txt
	@$(PYTHON) tools/environment.py $(INTEROP_VENV) requirements/interop.txt requirements/interop-fastmcp.txt
	@touch $@

$(MCP1_READY): pyproject.toml requirements/interop-mcp1.txt
	@$(PYTHON) tools/environment.py $(MCP1_VENV) requirements/interop-mcp1.txt
	@touch $@

$(MCP2_READY): pyproject.toml requirements/interop-mcp2.txt
	@$(PYTHON) tools/environment.py $(MCP2_VENV) requirements/interop-mcp2.txt
	@touch $@

$(SERVERS_MCP1_READY): pyproject.toml requirements/interop-servers-mcp1.txt
	@$(PYTHON) tools/environment.py $(SERVERS_MCP1_VENV) requirements/interop-servers-mcp1.txt
	@touch $@

$(CONFORMANCE_READY): pyproject.toml requirements/conformance.txt
	@$(PYTHON) tools/environment.py $(CONFORMANCE_VENV) requirements/conformance.txt
	@touch $@

$(MUTANTS_READY): pyproject.toml requirements/mutants.txt requirements/dev.txt requirements/docs.txt
	@$(PYTHON) tools/environment.py $(MUTANTS_VENV) requirements/mutants.txt
	@touch $@
