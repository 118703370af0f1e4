# Every target sets up its own .venv first. It needs Python 3.11+, make and pip, and nothing else.
PYTHON ?= python3
PY := .venv/bin/python
BOOTSTRAP := $(PYTHON) tools/bootstrap.py
PYTHON_CODE := src tests bench tools setup.py
# More workers than cores, since many tests wait.
PYTEST_ARGS ?= -q -n 4 --dist loadgroup --durations=20
# Without kept bytecode every process that starts compiles every module again.
unexport PYTHONDONTWRITEBYTECODE
# What depends on the build, so it is judged in both: the compiled modules (src/partita/compiled.py), by the folders of
# their packages, and what runs them most: batches and messages on the wire, the log, groups, reading and writing.
PURE_TESTS := $(addprefix tests/,unit/assignors unit/broker/groups unit/broker/handlers unit/broker/wire unit/consumer \
	unit/group unit/log unit/producer unit/protocol unit/records unit/spark unit/test_compiled.py property scenarios \
	simulation/test_seeds.py simulation/test_transactions.py $(addprefix e2e/test_,broker_wire.py consumer_groups.py \
	consumer_stories.py producer.py producer_many.py producer_refusals.py real_clients_groups.py transactions.py))

# `make bench growth` names a benchmark, no target of its own.
ifeq ($(firstword $(MAKECMDGOALS)),bench)
PICKED := $(filter $(basename $(notdir $(wildcard bench/*.py))),$(wordlist 2,9,$(MAKECMDGOALS)))
ifneq ($(PICKED),)
.PHONY: $(PICKED)
$(PICKED): bench ; @:
endif
endif

.PHONY: help setup taste demo test test-pure check docs bench generate package conformance clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## set up .venv for development
	@$(BOOTSTRAP) dev

taste: ## see a group survive a crash: a broker, two consumers, a kill -9; twenty seconds, no Spark
	@$(BOOTSTRAP) taste
	@.venv/bin/partita taste

demo: ## run the example on real flight data; ends with a table and an HTML report
	@$(BOOTSTRAP) demo
	@.venv/bin/partita demo

test: ## run the whole test suite (with the compiled parts if there is a C compiler)
	@$(BOOTSTRAP) test
	@$(PY) -m pytest $(PYTEST_ARGS)

test-pure: ## run without the compiled parts, in .venv-pure, the tests of what is compiled and of what uses it
	@$(BOOTSTRAP) test
	@$(BOOTSTRAP) test --venv .venv-pure --pure --over .venv
	@PARTITA_PURE=1 .venv-pure/bin/python -m pytest $(PYTEST_ARGS) $(PURE_TESTS)

check: ## run ruff, mypy --strict and the architecture tests; check that generated files are fresh
	@$(BOOTSTRAP) dev
	@$(PY) -m ruff check $(PYTHON_CODE)
	@$(PY) -m ruff format --check $(PYTHON_CODE)
	@$(PY) -m mypy
	@$(PY) -m partita.protocol.generate --check
	@$(PY) tools/option_types.py --check
	@$(PY) tools/error_classes.py --check
	@$(PY) tools/command_line.py --check
	@.venv/bin/hadolint Dockerfile
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.compose-spec compose.yaml
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(PY) -m pytest -q tests/test_tidy.py

docs: ## build the site from docs/ into build/site, in .venv-docs; a link or anchor that leads nowhere fails it
	@$(BOOTSTRAP) docs --venv .venv-docs
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict
	@echo "build/site/index.html is the site"

bench: ## measure speed beside other brokers and clients; `make bench growth`, `make bench ARGS="fetch --page"` pick
	@$(BOOTSTRAP) test
	@$(PY) bench/run.py $(PICKED) $(ARGS)

generate: ## write messages from their schema, the index of APIs from the handlers, errors and types of options from tables
	@$(BOOTSTRAP) dev
	@$(PY) -m partita.protocol.generate
	@$(PY) tools/option_types.py
	@$(PY) tools/error_classes.py
	@$(PY) tools/apis.py
	@$(PY) tools/compatibility.py

package: ## build sdist and wheel; check their metadata, and README's blocks with the wheel in a fresh environment
	@$(BOOTSTRAP) dev
	@$(PY) tools/package_check.py

conformance: ## compare with Apache Kafka itself (needs Java 17 and Maven)
	@$(BOOTSTRAP) test
	@$(PY) -m pytest -q -n 2 --dist loadgroup --durations=20 --conformance --on-kafka tests/conformance \
		tests/e2e/test_spark.py tests/e2e/test_spark_streams.py

clean: ## remove everything that the targets created
	rm -rf .venv .venv-pure build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis partita-demo
	find src tests bench -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -delete
