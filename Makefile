# Assay's commands. `make` alone lists them.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NAMESPACE ?= assay
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo serve bench test test-system test-cluster lint types fmt lock manifests docs contact-sheets image cluster up swap load monitoring down clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

# --- on this machine, without a cluster -------------------------------------

demo: $(VENV)/.build ## build, quantise and check a model, serve it, classify three photos (about two minutes)
	$(BIN)/python -m assay demo

serve: $(VENV)/.build ## serve the model in the foreground, on http://127.0.0.1:8000
	$(BIN)/python -m assay demo --serve

bench: $(VENV)/.build ## what each technique is worth on this machine, in short (a few minutes); more: assay bench --help
	$(BIN)/python -m assay bench variants --calls 30 --warmups 3
	$(BIN)/python -m assay bench input --calls 20 --warmups 2
	$(BIN)/python -m assay bench batching --window-ms 20 --batch-max 8 --rate 20 --seconds 5 --pairs 1 --rounds 1
	$(BIN)/python -m assay bench cache --pairs 50 --hits 50
	$(BIN)/python -m assay bench storage --latency-ms 50 --seconds 3 --rounds 2
	$(BIN)/python -m assay capacity

# --- tests ------------------------------------------------------------------

test: $(VENV)/.test ## every test that needs nothing but PyPI packages
	$(BIN)/python -m pytest -m "not system and not e2e" --junitxml=.results/test.xml --numprocesses auto --maxprocesses 4 --dist loadfile

test-system: $(VENV)/.test ## tests that need Debian packages or Go
	$(BIN)/python -m pytest -m system tests/apiserver --junitxml=.results/apiserver.xml --numprocesses 4 --dist loadfile
	$(BIN)/python -m pytest -m "system and not e2e" --ignore tests/apiserver

test-cluster: $(VENV)/.test ## end-to-end tests on the cluster of `make cluster`
	PATH="$(CURDIR)/.cluster/bin:$$PATH" $(BIN)/python -m pytest -m e2e -rP $(OPTIONS) tests/e2e  # -rP: the figures that passing tests print

lint: $(VENV)/.test ## style, import contracts, and that generated files are fresh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	UV=$(CURDIR)/$(BIN)/uv requirements/lock.sh --check

types: $(VENV)/.test ## strict type checks
	$(BIN)/mypy

fmt: $(VENV)/.test ## format the sources, and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(VENV)/.test ## write requirements/*.txt anew from requirements/*.in
	UV=$(CURDIR)/$(BIN)/uv requirements/lock.sh

manifests: $(VENV)/.test ## write dashboards, rules, k8s/install.yaml, the chart's table of values and its copy of k6/ anew (needs helm)
	$(BIN)/python grafana/generate.py
	PATH="$(CURDIR)/.cluster/bin:$$PATH" $(BIN)/python charts/generate.py

docs: $(VENV)/.test ## write the table of settings in service/README.md and docs/faults.md anew
	$(BIN)/python service/generate.py
	$(BIN)/python operator/generate.py

contact-sheets: $(VENV)/.test ## draw docs/dashboards/*.png anew (needs Debian's prometheus, and Go once)
	PYTHONPATH=tests:grafana PATH="$(CURDIR)/.cluster/bin:$$PATH" $(BIN)/python tests/measure/contact_sheets.py

clean: ## remove what these commands made here, the virtual environment included
	@test ! -e .cluster/made || { echo "a cluster of \`make cluster\` may still run: \`make down\` first" >&2; exit 1; }
	rm -rf $(VENV) .demo .cluster load-report .results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# --- a cluster ------------------------------------------------------------------
# kind where Docker runs, else k8s/one-node. Another cluster: KUBECONFIG=... CONTEXT=its-context.

local_cluster = PYTHONPATH=k8s PYTHONDONTWRITEBYTECODE=1 NAMESPACE=$(NAMESPACE) $(PYTHON) -m local_cluster

cluster: ## start a Kubernetes on this machine (a first k8s/one-node builds it with Go: about ten minutes)
	@$(local_cluster) cluster

image: ## build both images and give them to the cluster
	@$(local_cluster) image

up: ## images, then install or upgrade the release, and wait until it is ready
	@$(local_cluster) up

swap: ## ask for the INT8 model (SAMPLE=int8), and watch its check and rollout
	@$(local_cluster) swap

load: ## run a load test as a Job and print its verdict (SCENARIO=load RATE=10 DURATION=60s MIX=distinct)
	@$(local_cluster) load

monitoring: ## a Prometheus and a Grafana with Assay's dashboards and alerts, for development
	@$(local_cluster) monitoring

down: ## remove the release, and stop the cluster if `make cluster` made it
	@$(local_cluster) down

# --- the virtual environment -------------------------------------------------

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Assay needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.13 ...")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "This Python lacks venv or ensurepip: on Debian and Ubuntu, apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.build: $(VENV)/.python requirements/build.txt requirements/data.txt service/pyproject.toml
	$(BIN)/pip install --quiet --require-hashes -r requirements/build.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/data.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e service
	touch $@

$(VENV)/.s3: $(VENV)/.python requirements/s3.txt
	$(PYTHON) -m venv --clear $(VENV)/s3
	$(VENV)/s3/bin/pip install --quiet --require-hashes -r requirements/s3.txt
	touch $@

$(VENV)/.test: $(VENV)/.build $(VENV)/.s3 requirements/test.txt requirements/load.txt operator/pyproject.toml
	$(BIN)/pip install --quiet --require-hashes -r requirements/test.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/load.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e operator
	touch $@
