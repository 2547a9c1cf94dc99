# `make run` and `make test` need nothing but Python >= 3.11 and make.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Experiments: `make leak`, `make bst14_table1 SIZE=full`; `make bst14` runs all of that paper.
SIZE ?= small
# How long `make fuzz` draws: 30s, 10m, 1h.
FUZZ ?= 1m
EXPERIMENTS := $(notdir $(basename $(wildcard conf/experiment/*.yaml)))
PAPERS := bst14 kj16 jt13 djw12

.PHONY: run test test-longer test-slow test-portable test-full nightly faults faults-quick faults-page slurm audit audit-quick audit-power fuzz lint bench bench-scale wheel clean help figures gallery \
	verdicts claims schemas docs dist licences $(PAPERS) $(EXPERIMENTS)

help:
	@echo 'make run        set up and run the main job on embedded real data (offline)'
	@echo 'make test       set up and run the default suite'
	@echo 'make test-longer  its cases of .4 s or more (.ci/run has both)'
	@echo 'make test-slow  its larger cases: more neighbours, mutants and draws (every night)'
	@echo 'make test-portable  where rounding matters, as on an old processor (make nightly: full sizes, kills)'
	@echo 'make test-full  every test there is (hours)'
	@echo 'make faults     all that dperm has to outlive: kills, odd folders, other processors, Pythons and'
	@echo '                libraries (hours), and docs/faults.md; make faults-quick: a slice (minutes)'
	@echo 'make slurm      what needs a SLURM cluster'
	@echo 'make audit      attack every mechanism with fresh seeds (make audit-quick: fewer runs, fixed seeds)'
	@echo 'make audit-power  how many faults the audits find, and how often they accuse sound code (hours)'
	@echo 'make fuzz       whole runs on random neighbours for FUZZ=1m, from a fresh seed that it prints'
	@echo 'make bst14      every experiment of BST14 (SIZE=small or full), or one by its name;'
	@echo '                the same for kj16, jt13 and djw12'
	@echo 'make figures    every experiment, all figures and one table of verdicts (SIZE=small or full)'
	@echo 'make gallery    every figure that dperm makes, at its width in print, with an index page'
	@echo 'make verdicts   the same, and the verdicts kept beside the claims; make claims: docs/claims.md'
	@echo 'make schemas    conf/*/schema.json, from the declared fields of plug-ins and settings'
	@echo 'make lint       ruff, pyright, import rules'
	@echo 'make bench      speed ratios, measured inside one run (make bench-scale: how time and memory grow)'
	@echo 'make wheel      build the wheel and try it in an empty folder'
	@echo 'make dist       wheel and sdist: their contents, their metadata, and a try in an empty environment'
	@echo 'make docs       the documentation as a site that is read offline: site/index.html'
	@echo 'make licences   docs/licences.md, from the packages that come with dperm'
	@echo 'make clean      remove the environment, caches and outputs/first_run (your studies stay)'

$(VENV)/.run: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo 'no Python >= 3.11 with venv found; set PYTHON=/path/to/python' >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@

run: $(VENV)/.run
	$(BIN)/dperm run -m mechanism=noisy_gd,noisy_sgd calibration=tight,paper epsilon=0.1,0.3,1,3,10 trials=20 out=outputs/first_run
	@echo 'make run: for the command dperm, `. $(BIN)/activate` (this shell) or `pip install .`' >&2

# a file goes to one process as a whole: what it makes once for all its tests is made once
SHARED := -n 2 --dist loadfile --no-loadscope-reorder

# tests start many programs, and their workers import the same files: these are compiled once
test test-longer test-slow test-portable nightly: export PYTHONDONTWRITEBYTECODE :=

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(SHARED)

# what CI has, whether it is in `make test` or in `make test-longer`
BY_DAY := not slow and not nightly and not stat_full and not faults and not slurm

# the rest of what CI runs, so that `make test` ends within five minutes
test-longer: $(VENV)/.dev
	$(BIN)/python -m pytest $(SHARED) -m 'longer and $(BY_DAY)'

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest $(SHARED) -m 'slow and not nightly'

# what takes longer than a quarter of an hour is for the night
nightly: $(VENV)/.dev
	$(BIN)/python -m pytest $(SHARED) -m 'nightly or stat_full or faults'

# The products of OpenBLAS, the loops of numpy and numba and the functions of libm as a processor
# without AVX2 has them: their last bits differ, and nothing may hang on those.
PORTABLE ?= tests/problem tests/losses tests/sets tests/datasets tests/solvers tests/kernels tests/views tests/theory tests/loops tests/privacy tests/samplers tests/mechanisms \
	tests/contract tests/runner/test_geometry_rows.py tests/runner/test_run_cell.py tests/runner/test_kernel_cells.py \
	tests/runner/test_local.py tests/runner/test_inner_configuration.py tests/runner/test_metrics.py

test-portable: $(VENV)/.dev
	OPENBLAS_CORETYPE=Prescott NUMBA_CPU_NAME=generic GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2 \
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c 'import numpy as np; \
		print(*np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))')" \
	$(BIN)/python -m pytest $(SHARED) -m '$(BY_DAY)' $(PORTABLE)

# every test, whatever its marks
test-full: $(VENV)/.dev
	$(BIN)/python -m tests.faults.environments
	$(BIN)/python -m pytest $(SHARED) -m ''

# The fault matrix: every test of the folder, in environments that are made when they are missing.
# Verdicts are kept as they come, so that ONLY='-k lives' or ONLY='-m slow' is a part of it.
ONLY ?= -m ''
faults: $(VENV)/.dev
	$(BIN)/python -m tests.faults.environments
	@failed=0; $(BIN)/python -m pytest -p tests.faults.verdicts -m '' $(ONLY) tests/faults || failed=$$?; \
	$(BIN)/python -m tests.faults.page && exit $$failed

# what CI has of those that the other targets leave out; its verdicts are not kept
faults-quick: $(VENV)/.dev
	$(BIN)/python -m tests.faults.environments --short
	$(BIN)/python -m pytest -n 2 --dist load -m faults_quick tests/faults

faults-page: $(VENV)/.dev
	$(BIN)/python -m tests.faults.page

# what needs a SLURM controller (skips without sbatch)
slurm: $(VENV)/.dev
	$(BIN)/python -m pytest -m slurm -rs tests/runner

audit: $(VENV)/.run
	$(BIN)/dperm audit mechanism=all seed=fresh

audit-quick: $(VENV)/.run
	$(BIN)/dperm audit --quick mechanism=all

fuzz: $(VENV)/.run
	$(BIN)/dperm audit fuzz=$(FUZZ)

# planted faults, one at a time, that the audit has to find by itself: takes hours
audit-power: $(VENV)/.dev
	$(BIN)/python -m tests.mutants.power --out docs/audit_power.md
	$(BIN)/python -m tests.audit_faults.power --kept outputs/audit_yours_power.jsonl --out docs/audit_yours_power.md

$(EXPERIMENTS): $(VENV)/.run
	$(BIN)/dperm reproduce $@ size=$(SIZE)

# each runs, whatever another one's verdict; the exit code is that of the whole
$(PAPERS): $(VENV)/.run
	@failed=0; for id in $(if $(filter bst14,$@),leak) $(filter $@_%,$(EXPERIMENTS)); do \
		$(BIN)/dperm reproduce $$id size=$(SIZE) || failed=1; done; exit $$failed

# what has its records is looked up, what has not changed is not drawn again
figures: $(VENV)/.run
	$(BIN)/dperm reproduce all size=$(SIZE) workers=auto

gallery: $(VENV)/.run
	$(BIN)/python -m tests.draw_gallery outputs/gallery

verdicts: $(VENV)/.run
	@failed=0; $(BIN)/dperm reproduce all size=$(SIZE) verdicts=experiments || failed=$$?; \
	$(BIN)/dperm reproduce claims out=docs/claims.md && exit $$failed

# the page of all claims, from the verdicts that are kept
claims: $(VENV)/.run
	$(BIN)/dperm reproduce claims out=docs/claims.md

# what editors, help and completion read of the plug-ins' declared fields
schemas: $(VENV)/.run
	$(BIN)/python -m dperm_cli.runner.editor_schemas

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --threads 2
	PYTHONPATH=. $(BIN)/lint-imports --no-cache

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.bench_loops
	$(BIN)/python -m benchmarks.bench_passes
	$(BIN)/python benchmarks/bench_noisy_gd.py
	$(BIN)/python benchmarks/bench_sweep.py
	$(BIN)/python -m benchmarks.bench_small_runs

# how time and memory of a run grow, and the largest problem of each mechanism (hours)
bench-scale: $(VENV)/.run
	$(BIN)/python -m benchmarks.bench_scale --keep
	$(BIN)/python -m benchmarks.bench_growth --keep
	$(BIN)/python -m benchmarks.bench_bandwidth --keep
	$(BIN)/python -m benchmarks.bench_largest --keep

wheel: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build -q --wheel
	sh tests/wheel.sh $(BIN)/python

# what a release publishes
dist: $(VENV)/.dev
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[publish]'
	rm -rf dist
	$(BIN)/python -m build -q
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tests.distributions dist
	sh tests/wheel.sh $(BIN)/python

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[docs]'
	touch $@

# gathered, built and checked: links, foreign requests, formulas, the search without a network
docs: $(VENV)/.docs
	$(BIN)/codespell *.md docs examples experiments
	$(BIN)/python -m website.build
	$(BIN)/python -m pytest tests/website

licences: $(VENV)/.dev
	$(BIN)/python -m tests.licences > docs/licences.md

clean:
	rm -rf $(VENV) .venv-faults dist build outputs/first_run .pytest_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
