# make demo   set up what is missing, then learn to read digits from a stream
# make test   set up what is missing, then lint, types, floors and the test-suite
# make soak   a million rows of every learner that hurt, and a run that is killed again and again; for hours
# make thorough  what the test-suite samples, in full: half an hour more
# make bench  speed and scores beside named peers, into benchmarks/results.json and the pages; ARGS="--only estimators" runs one section.
#             Then one table of what must be fast, and whether it is; CODES=FOLDER has the official codes
# make mutants  a hundred small changes of the package, each of which a test should notice; for hours
#
# Variables: PYTHON (the interpreter to build the environment with), VENV (its folder, .venv), UV=0 (use pip even where uv is at hand),
# WORKERS (test processes), ARGS (passed to pytest, benchmarks/run.py or benchmarks/soak.py).

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
VENV ?= .venv
BIN := $(VENV)/bin
STAMPS := $(if $(filter .venv,$(VENV)),.stamps,$(VENV)/stamps)

# An environment is kept, so one of another Python than the one that was named is refused.
ifneq ($(filter command line environment,$(origin PYTHON)),)
ifneq ($(wildcard $(BIN)/python),)
OF := import sys; print("%d.%d" % sys.version_info[:2])
HAS := $(shell $(BIN)/python -c '$(OF)' 2>/dev/null)
WANTS := $(shell "$(PYTHON)" -c '$(OF)' 2>/dev/null)
ifeq ($(WANTS),)
$(error PYTHON=$(PYTHON) was not found)
endif
ifneq ($(HAS),$(WANTS))
$(error $(VENV) is not of Python $(WANTS): remove $(VENV) and $(STAMPS), or name another folder, such as VENV=.venv-$(WANTS))
endif
endif
endif

# uv is used where it is on the PATH; UV=0 turns it off, UV=/path/to/uv names one.
UV ?= $(shell command -v uv 2>/dev/null)
ifeq ($(UV),0)
override UV :=
endif
ifeq ($(UV),1)
override UV := uv
endif

.DEFAULT_GOAL := help
.PHONY: help demo test lint types floors tests thorough doctests soak bench mutants docs format clean

help:
	@sed -n '1,10s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))
	@echo "Other targets: lint types floors tests doctests docs format clean"

demo: $(STAMPS)/demo
	$(BIN)/credo learn mnist --out runs/mnist

test: lint types floors tests doctests

# The environment. An existing .venv is kept; the stamps remember what was installed from which file.
$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { \
	    echo "credo needs Python 3.11 or newer, and '$(PYTHON)' was not found; name one with PYTHON=python3.13."; \
	    exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "credo needs Python 3.11 or newer, and '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1); name another with PYTHON=python3.13."; \
	    exit 1; }
ifeq ($(UV),)
	"$(PYTHON)" -m venv $(VENV)
else
	"$(UV)" venv --quiet --allow-existing --python "$$("$(PYTHON)" -c 'import sys; print(sys.executable)')" $(VENV)
endif

# Whatever `make test` installs also serves the demo, so its stamp stands for both. All have the experiments.
$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/docs: $(STAMPS)/%: pyproject.toml papers/pyproject.toml $(wildcard constraints/*.txt) | $(BIN)/python
	@version="$$($(BIN)/python -c 'import sys; print("py%d.%d" % sys.version_info[:2])')"; \
	pins="constraints/$$version.txt"; \
	if [ -f "$$pins" ]; then \
	    echo "Installing credo[$*] and credo-papers with the versions in $$pins"; \
	    set -- -c "$$pins" -e '.[$*]' -e papers; \
	else \
	    echo "There is no $$pins for this Python: installing credo[$*] and credo-papers with the newest versions that fit"; \
	    set -- -e '.[$*]' -e papers; \
	fi; \
	if [ -n "$(UV)" ]; then \
	    "$(UV)" pip install --quiet --python $(BIN)/python "$$@"; \
	else \
	    $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check "$$@"; \
	fi
	@mkdir -p $(STAMPS)
	@touch $@ $(if $(filter test,$*),$(STAMPS)/demo)

lint: $(STAMPS)/test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMPS)/test
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

floors: $(STAMPS)/test
	$(BIN)/lint-imports

tests: $(STAMPS)/test
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)
	CREDO_TESTS=optimised $(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS) -m optimised || [ $$? -eq 5 ]

thorough: $(STAMPS)/test
	CREDO_TESTS=thorough $(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS) -m thorough

doctests: $(STAMPS)/test
	PYTHONPATH=. $(BIN)/pytest -p tests.haste -n $(WORKERS) --dist worksteal --doctest-modules src papers/src

# Data sets that cannot be downloaded are looked for in CREDO_DATA_DIR.
soak: $(STAMPS)/test
	$(BIN)/python benchmarks/soak.py $(ARGS)
	$(BIN)/python benchmarks/soak_crashes.py
	$(BIN)/python benchmarks/soak_bandit.py

# All sections but `linear` and `estimators` need the extra "bench" as well (benchmarks/README.md).
bench: $(STAMPS)/test
	$(BIN)/python benchmarks/run.py $(ARGS)
	$(BIN)/python benchmarks/speed.py $(if $(CODES),--codes $(CODES))

mutants: $(STAMPS)/test
	$(BIN)/python benchmarks/mutants.py --count 100 --seed 0

# Formulas need MathJax, which a package brings; REPOSITORY_URL=https://... makes links to the source.
docs: $(STAMPS)/docs
	@$(BIN)/python -c 'import mathjax, pathlib, shutil; \
	    shutil.copy(pathlib.Path(mathjax.__file__).parent / "static/mathjax/es5/tex-svg.js", "docs/javascripts/")'
	$(BIN)/zensical build --clean --strict

format: $(STAMPS)/test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf build dist site runs $(STAMPS) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
