# The first target of any kind builds .venv by itself, once. `make VENV= ...` uses the Python that is active and
# installs nothing.
VENV ?= .venv
PROFILE ?= quick
RESULTS ?= results
PYTHON := $(if $(VENV),$(VENV)/bin/python,python3)
READY := $(if $(VENV),$(VENV)/ready)
BENCH := $(PYTHON) -m benchmarks --results $(RESULTS) $(foreach name,$(SWEEP),--sweep $(name)) \
	$(if $(DEVICE),--device $(DEVICE)) $(if $(RUN),--run $(RUN)) $(if $(PASSES),--passes $(PASSES)) \
	$(if $(MAX_PASSES),--max-passes $(MAX_PASSES)) $(if $(PRECISION),--precision $(PRECISION)) \
	$(if $(BUDGET),--budget $(BUDGET)) $(if $(CACHE),--cache $(CACHE))

.PHONY: help bench dry-run verify report compare counters accuracy validate doctor test faults lint cuda
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

bench: $(READY) ## measure attention on this machine, then report (PROFILE= SWEEP= DEVICE= RUN= RESULTS= PASSES= ...)
	$(BENCH) --profile $(PROFILE)

dry-run: $(READY) ## list the cases that bench would run
	$(BENCH) --profile $(PROFILE) --dry-run

verify: $(READY) ## prove the counts: closed form = dispatch on meta = dispatch on the device; fvcore explained
	$(PYTHON) -m analysis verify --profile $(PROFILE) $(foreach name,$(SWEEP),--sweep $(name)) $(if $(DEVICE),--device $(DEVICE))

compare: $(READY) ## what became slower: A=run B=run, or A=backend B=backend RUN=run (MARGIN= ACROSS=1)
	$(PYTHON) -m analysis compare $(A) $(B) $(if $(RUN),--run $(RUN)) $(if $(MARGIN),--margin $(MARGIN)) \
	$(if $(ACROSS),--across-machines)

counters: $(READY) ## every counter on models of many kinds: errors, time, memory, reasons (RUN=, default the newest)
	$(PYTHON) -m benchmarks.counters --results $(RESULTS) $(if $(RUN),--run $(RUN))

accuracy: $(READY) ## train small models on scikit-learn's digits: accuracy beside MACs and time (RUN=, default the newest; SEEDS=)
	$(PYTHON) -m benchmarks.accuracy --results $(RESULTS) $(if $(RUN),--run $(RUN)) $(if $(SEEDS),--seeds $(SEEDS))

validate: $(READY) ## hold predicted times against published ones: TABLES="a.csv b.csv" of timm's results folder (RUN=, FIT=1 keeps constants)
	$(PYTHON) -m analysis.validate $(TABLES) --results $(RESULTS) $(if $(RUN),--run $(RUN)) $(if $(FIT),--fit)

doctor: $(READY) ## what this machine has, how quiet it is, what is missing and how to mend it
	$(PYTHON) -m vitbench doctor $(if $(DEVICE),--device $(DEVICE))

report: $(READY) ## write the report of a run again (RUN=, default the newest under RESULTS)
	$(PYTHON) -m analysis report $(RUN) --results $(RESULTS)

test: $(READY) ## run the tests, two at a time where pytest-xdist is installed
	$(PYTHON) -m pytest $(shell $(PYTHON) -c "import xdist" 2>/dev/null && echo "-n 2 --dist loadfile")

faults: $(READY) ## run every fault and write the table in README.md
	$(PYTHON) -m pytest tests/test_faults.py --fault-table README.md

lint: $(READY) ## ruff and mypy --strict
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

# Three passes of 236 cases take some twenty minutes, by estimate and never run; SWEEP= takes a part of them. PASSES=6
# settles the figures and gives verdicts.
cuda: $(READY) ## on a machine with CUDA: its tests, quick and verify on the GPU, all said and kept under RESULTS
	mkdir -p $(RESULTS); status=0; \
	$(PYTHON) -m pytest -m cuda -p no:cacheprovider > $(RESULTS)/tests.txt 2>&1 || status=1; tail -n 20 $(RESULTS)/tests.txt; \
	$(MAKE) -s --no-print-directory bench PROFILE=quick DEVICE=cuda PASSES=$(or $(PASSES),3) || status=1; \
	$(MAKE) -s --no-print-directory verify PROFILE=quick DEVICE=cuda > $(RESULTS)/verify.txt || status=1; tail -n 1 $(RESULTS)/verify.txt; \
	exit $$status

ifneq ($(VENV),)
$(VENV)/ready: pyproject.toml constraints.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt torch torchvision
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@
endif
