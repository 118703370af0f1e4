# Every target sets up its own .venv first; needs Python 3.11+, make and pip, nothing else by hand.
PYTHON ?= python3
PY := .venv/bin/python
BOOTSTRAP := $(PYTHON) tools/bootstrap.py
PYTHON_CODE := src tests bench tools setup.py
PYTEST_ARGS ?= -q -n 2 --dist loadgroup

.PHONY: help setup demo test test-pure check bench generate conformance clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## set up .venv for development
	@$(BOOTSTRAP) dev

demo: ## run the main job on real flight data; ends with a table and an HTML report
	@$(BOOTSTRAP) demo
	@.venv/bin/partita demo

test: ## run the whole test suite (compiled parts when a compiler is there)
	@$(BOOTSTRAP) test
	@$(PY) -m pytest $(PYTEST_ARGS)

test-pure: ## run the same suite on the pure Python build, in .venv-pure
	@$(BOOTSTRAP) test --venv .venv-pure --pure
	@.venv-pure/bin/python -m pytest $(PYTEST_ARGS)

check: ## ruff, mypy --strict, generated files fresh, architecture rules
	@$(BOOTSTRAP) dev
	@$(PY) -m ruff check $(PYTHON_CODE)
	@$(PY) -m ruff format --check $(PYTHON_CODE)
	@$(PY) -m mypy
	@$(PY) -m partita.protocol.generate --check
	@$(PY) tools/option_types.py --check
	@$(PY) tools/command_line.py --check
	@$(PY) -m pytest -q tests/test_tidy.py

bench: ## measure speed beside peers in the same run; one JSON line each
	@$(BOOTSTRAP) test
	@$(PY) bench/run.py

generate: ## write protocol/messages/ from protocol/schema/, and the types of options from their tables
	@$(BOOTSTRAP) dev
	@$(PY) -m partita.protocol.generate
	@$(PY) tools/option_types.py

conformance: ## histories, tools, consumer and Spark source on Apache Kafka itself (needs Java 17 and Maven)
	@$(BOOTSTRAP) test
	@$(PY) -m pytest -q tests/conformance --conformance
	@$(PY) -m pytest -q tests/e2e/test_spark.py tests/e2e/test_spark_streams.py --on-kafka

clean: ## remove everything that the targets made
	rm -rf .venv .venv-pure build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis partita-demo
	find src tests bench -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -delete
