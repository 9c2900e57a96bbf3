# `make` lists the targets. PORT_OFFSET=1000 moves every port of the stack, so that two stacks can run side by side.
VENV := .venv/bin
# `make PYTHON=python3.12 install` makes .venv anew, and later targets stay with its Python.
PYTHON ?= $(or $(wildcard $(VENV)/python),python3)

# A container may set this. Airflow's start would then compile all modules anew, each time: four seconds and not two.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install up down status demo test attack bench lint docs wheel lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: ## Make .venv and fetch the jars (other targets run it if needed; needs Python 3.11 or 3.12, and Java 17)
	@$(PYTHON) -m scripts.stack.install

up: install ## Start Kafka, S3, a schema registry and Airflow, wait until they answer, write .local/env.sh
	@$(VENV)/python -m scripts.stack up

down: ## Stop everything that `make up` started; the data stays in .local
	@if [ -x $(VENV)/python ]; then $(VENV)/python -m scripts.stack down; else echo "nothing is installed here"; fi

status: ## Show which services run
	@$(VENV)/python -m scripts.stack status

demo: install ## Archive a generated stream by hour, kill the job once, backfill an hour, show the result
	@$(VENV)/python -m scripts.demo

test: install ## Run all tests, on real services of their own, in processes side by side
	@$(VENV)/python -m scripts.suite

attack: install ## Search with new random seeds for MINUTES (10) for what the tests' fixed seeds miss
	@$(VENV)/python -m scripts.attack --minutes $(or $(MINUTES),10)

bench: install ## Measure records per second, CPU and memory; compare with a bare program
	@$(VENV)/python -m bench
	@$(VENV)/python -m bench.formats
	@$(VENV)/python -m bench.restore

lint: install ## Check style, docstrings, spelling, types and the import contract
	@$(VENV)/ruff check .
	@$(VENV)/ruff format --check .
	@$(VENV)/codespell
	@$(VENV)/mypy
	@$(VENV)/lint-imports

docs: install ## Write the reference of the YAML's keys, build the site of docs/ into .local/site
	@$(VENV)/python -m scripts.reference
	@$(VENV)/uv venv --quiet --allow-existing --python $(VENV)/python .local/site-env
	@$(VENV)/uv pip install --quiet --python .local/site-env --group docs
	@.local/site-env/bin/mkdocs build --strict --quiet --config-file docs/site/mkdocs.yml

wheel: install ## Build the wheel into dist/
	@$(VENV)/python -m scripts.wheel

lock: install ## Regenerate requirements.txt from pyproject.toml
	@$(VENV)/uv pip compile --quiet --extra dev --python-version 3.11 --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" --output-file requirements.txt pyproject.toml
