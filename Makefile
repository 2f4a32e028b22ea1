# Plain `make` lists what there is to make. Everything is installed into .venv; only `containers`, `monitoring` and
# `browser`, as root, install elsewhere.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-long check ci bench screenshots clean requirements
.PHONY: java containers monitoring browser

# Two processes run the tests, a file at a time.
IN_TWO_PROCESSES := -n 2 --dist loadfile --no-loadscope-reorder

help:
	@echo "make demo       copy topics between two real Kafka clusters, and show it (KEEP=1: leave it running)"
	@echo "make test       run the tests except those marked long, on real Kafka brokers (ARGS=... goes to pytest)"
	@echo "make test-long  run the tests marked long, which make test leaves out"
	@echo "make check      lint, formatting, types, import rules, documents, known vulnerabilities in packages"
	@echo "make ci         what CI runs: check, then all tests; reruns each failed test once, alone"
	@echo "make bench      measure sparkmirror and MirrorMaker 2 on the same brokers (ARGS=...)"
	@echo "make screenshots  redraw docs/images with Debian's Chromium"
	@echo "make clean      delete what the others made"

demo: java $(INSTALLED)
	@$(BIN)/sparkmirror demo $(if $(KEEP),--keep) $(ARGS)

test: java monitoring browser $(INSTALLED)
	$(BIN)/pytest $(IN_TWO_PROCESSES) $(ARGS)

test-long: java containers monitoring browser $(INSTALLED)
	$(BIN)/pytest $(IN_TWO_PROCESSES) -m long $(ARGS)

ci: check java containers monitoring browser
	$(BIN)/python tools/ci_tests.py $(IN_TWO_PROCESSES) --- $(IN_TWO_PROCESSES) -m long

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m sparkmirror.config.docs --check
	$(BIN)/python -m sparkmirror.logs.message_docs --check
	$(BIN)/python tools/vendored_ui.py --check
	$(BIN)/python -m sparkmirror.monitoring.metrics.docs --check
	@$(BIN)/python tools/audit.py $(BIN)/pip-audit requirements.txt

bench: java $(INSTALLED)
	$(BIN)/python -m bench $(ARGS)

screenshots: browser $(INSTALLED)
	PYTHONPATH=. $(BIN)/python tools/screenshots.py

clean:
	rm -rf .venv build dist bench/out spark-warehouse
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

java:
	@tools/preflight $(PYTHON) java

containers monitoring browser:
	@tools/preflight $(PYTHON) $@

$(INSTALLED): requirements.txt pyproject.toml
	@tools/preflight $(PYTHON) python disk
	@echo "Installing Python packages into .venv (once; about 700 MB, most of it Spark) ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes -r requirements.txt || { echo "sparkmirror: the Python packages of requirements.txt could not be installed (see above); is the package registry that pip uses reachable, and is there room on the disk?" >&2; exit 1; }
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# After a change of the dependencies in pyproject.toml; needs uv.
requirements:
	{ sed -n '/^#/p;/^$$/q' requirements.txt; echo; \
	  uv pip compile pyproject.toml tools/requirements.in --extra dev --generate-hashes --universal \
	    --no-emit-index-url --no-header --quiet -p 3.11; } > requirements.part
	mv requirements.part requirements.txt
