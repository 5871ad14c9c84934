# Every command a developer needs; bare `make` lists them. `demo` and `test` set up everything by themselves.
SHELL := /bin/bash
# The first Python that runs, is new enough and can make a virtual environment: a version manager's launcher may be on PATH
# for a version that is not active, and a system Python may come without ensurepip. A distribution's comes first: it is
# compiled with a profile, a version manager's mostly is not and takes an eighth more processor time.
FIT := import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in /usr/bin/python3.11 python3.11 python3.12 python3.13 python3 python; do \
	"$$p" -c "$(FIT)" >/dev/null 2>&1 && { command -v "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# pyspark is built from its source: 450 MB of jars would be compressed and unpacked again
UNPACKED := --config-settings-package pyspark:--build-option=--compression=stored
VENV_112 := .venv-dbt-1.12
READY_112 := $(VENV_112)/.ready
PYSPARK_TESTS := $(addprefix integration_tests/,spark/test_statement_runner.py spark/test_write.py spark/test_skipping.py \
	spark/test_traced_query.py spark/test_read_ways.py adapter/test_stateful_streaming.py adapter/test_several_inputs.py)
READY_DOCS := $(VENV)/.ready-docs
SITE := build/site
CACHE := $(or $(TABLESTORE_CACHE),$(XDG_CACHE_HOME:%=%/dbt-tablestore),$(HOME)/.cache/dbt-tablestore)
export TABLESTORE_CACHE := $(CACHE)
# A setting of the shell would have every process compile the sources, and pytest rewrite all tests, again
unexport PYTHONDONTWRITEBYTECODE
FILES := tablestore_engine tablestore_demo dbt tests integration_tests benchmarks setup.py

.DEFAULT_GOAL := help
.PHONY: help install demo broker dist check format lint types layers spelling unit test test-nightly interop-matrix test-adapter test-packages test-interop test-kafka test-s3 test-ui screenshots test-pyspark test-conformance test-kills soak soak-broker chaos pipelines fuzz bench docs clean

help: ## Start: list the targets
	@awk 'BEGIN{FS=":.*## "} /^[a-z-]+:.*## /{split($$2,a,": "); if(a[1]!=g){g=a[1]; printf "\n%s\n", g} printf "  make %-20s %s\n", $$1, a[2]}' $(MAKEFILE_LIST)

$(READY): setup.py constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11 to 3.13 with venv found; name one: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up $(VENV) (Python: $$($(PYTHON) --version 2>&1)); the first time takes one to three minutes."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv -c constraints.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode $(UNPACKED) --editable '.[dev]' -c constraints.txt \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' -c constraints.txt
	@touch $(READY)

$(READY_112): setup.py constraints.txt constraints-dbt-1.12.txt $(READY)
	@echo "Setting up $(VENV_112) with dbt-core 1.12; the first time takes one to three minutes."
	@test -x $(VENV_112)/bin/python || $(BIN)/python -m venv $(VENV_112)
	@$(VENV_112)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r constraints.txt
	@$(VENV_112)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r constraints-dbt-1.12.txt --editable .
	@touch $(READY_112)

.SECONDARY:
.venv-pyspark-%/.ready: setup.py constraints.txt constraints-pyspark-%.txt $(READY)
	@echo "Setting up $(@D) with pyspark $*; the first time takes one to three minutes."
	@test -x $(@D)/bin/python || $(BIN)/python -m venv $(@D)
	@grep -v '^pyspark==' constraints.txt > $(@D)/others.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $(@D)/others.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r constraints-pyspark-$*.txt --editable .
	@touch $@

$(READY_DOCS): constraints-docs.txt $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]' -c constraints.txt -c constraints-docs.txt
	@touch $(READY_DOCS)

install: $(READY) ## Start: make the virtual environment with everything in it

demo: $(READY) ## Start: flights -> tested snapshots -> exactly-once Kafka topic (ARGS="--warehouse s3 --cluster")
	@$(BIN)/tablestore demo $(ARGS)

broker: $(READY) ## Start: run a Kafka broker for development
	@$(BIN)/tablestore broker start

check: $(READY) ## Develop: format, lint, types, layers, spelling, quick unit and law tests (a minute on two cores)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync format lint types layers spelling unit

format: $(READY) ## Develop: is every file formatted
	@$(BIN)/ruff format --quiet --check $(FILES)

lint: $(READY) ## Develop: ruff
	@$(BIN)/ruff check --quiet $(FILES)

types: $(READY) ## Develop: mypy --strict
	@$(BIN)/mypy

layers: $(READY) ## Develop: the import contract
	@$(BIN)/python -m tests.house.layers

spelling: $(READY) ## Develop: codespell, over pages and code
	@$(BIN)/codespell

# Thousands of tables are written, each with several fsyncs: they lie in memory where there is room.
unit: $(READY) ## Develop: unit, law and house tests that are not in tests/slow_tests.txt; they need no service
	@folder=$$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	PYTEST_DEBUG_TEMPROOT=$$folder $(BIN)/python -m pytest tests/unit tests/laws tests/house tests/macros \
		-m "not slow and not nightly" -n auto --dist worksteal

test: $(READY) ## Test: everything (broker, Spark, dbt, real Paimon readers)
	@$(BIN)/python -m integration_tests.run

test-changed: $(READY) ## Test: what the changes since main concern, by imports and suites (BASE=… for another base)
	@BASE=$(or $(BASE),main) $(BIN)/python -m tests.changed

interop-matrix: $(READY) ## Test: 300 random tables through all engines, into docs/interop.json; continues where it ended
	@$(BIN)/python -m integration_tests.interop.matrix --tables 300 --seconds 1500

test-nightly: $(READY) ## Test: what make test leaves out: kills, other seeds each day, 3,000 random queries (hours)
	@$(BIN)/python -m integration_tests.run --nightly
	@$(MAKE) --no-print-directory test-conformance test-pyspark
	@$(BIN)/python -m integration_tests.soak.run queries --count 3000 --changes 5

dist: $(READY) ## Release: source distribution and wheel in dist/ (HOMEPAGE=https://… for the links of the package page)
	@test -n "$(HOMEPAGE)" || { echo "Name the repository's address: make dist HOMEPAGE=https://…"; exit 1; }
	@rm -rf dist && TABLESTORE_HOMEPAGE=$(HOMEPAGE) $(BIN)/python -m build --outdir dist . && $(BIN)/python -m twine check --strict dist/*

test-adapter: $(READY) ## Test: the adapter and the selection of dbt's conformance classes
	@$(BIN)/python -m integration_tests.run adapter conformance

test-pyspark: test-pyspark-4.1 test-pyspark-4.2 ## Test: statements, plans and streams on each older pyspark that setup.py allows

test-pyspark-4.1: PYSPARK_TESTS += integration_tests/spark/pyspark_lowest.py
test-pyspark-%: .venv-pyspark-%/.ready
	@TABLESTORE_NIGHTLY=1 $(<D)/bin/python -m pytest $(PYSPARK_TESTS)

test-conformance: $(READY) $(READY_112) ## Test: all of dbt's conformance classes on dbt-core 1.11 and 1.12; writes docs/conformance.md
	@$(BIN)/python -m integration_tests.conformance.run

test-packages: $(READY) ## Test: dbt packages of others, from checkouts in TABLESTORE_DBT_PACKAGES; writes docs/packages.md (ARGS="dbt-utils" for one)
	@$(BIN)/python -m integration_tests.packages.run $(ARGS)

test-interop: $(READY) ## Test: real Paimon readers only
	@$(BIN)/python -m pytest integration_tests/interop

test-kafka: $(READY) ## Test: real broker only
	@$(BIN)/python -m pytest integration_tests/kafka

test-s3: $(READY) ## Test: object store only, on the S3 server for development (compiled once, some minutes)
	@$(BIN)/python -m pytest integration_tests/s3

test-ui: $(READY) ## Test: the page of tablestore ui in a real browser
	@$(BIN)/python -m pytest integration_tests/ui

screenshots: $(READY) ## Develop: make the pictures of docs/ui.md again
	@TABLESTORE_SCREENSHOTS=docs/images $(BIN)/python -m pytest integration_tests/ui/test_pictures.py -k 'not of_the_docs'

test-kills: $(READY) ## Test: dbt build killed at every crash point (make test tries one of each kind)
	@$(BIN)/python -m pytest integration_tests/kills

soak: $(READY) ## Test: the long attacks of docs/reliability.md (hours; ARGS='kills --count 50' for a part)
	@$(BIN)/python -m integration_tests.soak.run $(ARGS)

soak-broker: $(READY) ## Test: kill the broker again and again, count what is doubled or lost (KILLS=40)
	@$(BIN)/python -m integration_tests.soak.broker_kills --kills $(or $(KILLS),40)

chaos: $(READY) ## Test: everything killed 2,000 times over a bad network (BROKERS=3; ARGS='--kills 200 --seed 7' for a part)
	@$(BIN)/python -m integration_tests.chaos.run --brokers $(or $(BROKERS),1) $(ARGS)

pipelines: $(READY) ## Measure: changed_keys models after TPC-H or TPC-DI, each judged and beside its full refresh (ARGS='tpch --scale 0.1')
	@$(BIN)/python -m integration_tests.pipelines.run $(or $(ARGS),tpch)

fuzz: $(READY) ## Test: 20,000 changes of each kind of metadata file (some hours)
	@$(BIN)/python -m tests.fuzz.metadata

bench: $(READY) ## Measure: the workloads of docs/performance.md with their limits and peers (ARGS='--only kafka' for a part)
	@$(BIN)/python -m benchmarks.run $(ARGS)

docs: $(READY_DOCS) ## Develop: write the generated pages (options, errors), build the site; a broken link fails
	@$(BIN)/python -m docs.generate
	@$(BIN)/sphinx-build --quiet --fresh-env --write-all --fail-on-warning --keep-going -c docs -d build/site-cache . $(SITE)
	@echo "$(SITE)/index.html"

clean: ## Develop: remove the virtual environment and build leftovers
	rm -rf $(VENV) $(VENV_112) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
