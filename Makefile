# make demo      set up what is missing, then learn to read digits from a stream
# make test      set up what is missing, then lint, floors, types and the quick tests: what people run before they push
# make test-all  the same and the rest: the slow and the optimised tests, those that kill processes, and the examples
# make test-rest what make test-all runs after make test
# make affected  the quick tests that a change can reach: since the branch left its upstream, or since SINCE=COMMIT
# make costs     what each test costs, traced, lowered, compiled and run; ARGS="tests/adapt --tests" looks closer
# make thorough  what the other tests sample, in full, before a release: forty minutes more
# make soak      a million rows of every learner that hurt, and a run that is killed again and again; for hours
# make mutants   two hundred small changes of the package, and which of them what tests notice; for hours
# make bench     speed and scores beside named peers, into benchmarks/results.json and the pages; ARGS="--only estimators" runs one
#                section. Then one table of what must be fast, and whether it is; CODES=FOLDER has the official codes
# make docs      the documentation, into site/
#
# Parts of make test: lint floors types tests. Of make test-rest: slow optimised crashes doctests. Others: format, clean, and
# setup, which installs all that make test-all needs. Less is installed where less is enough (pyproject.toml: lint, test, test-all).
#
# Variables: PYTHON (the interpreter to build the environment with), VENV (its folder, .venv), UV=0 (use pip even where uv is at hand),
# WORKERS (test processes), ARGS (passed to pytest, tests/costs.py, benchmarks/run.py or benchmarks/soak.py).

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

# Calls of make by make say nothing of themselves; what each of two parts prints stays together, where make can do so.
MAKEFLAGS += --no-print-directory
TOGETHER := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.DEFAULT_GOAL := help
# Tests start hundreds of processes. Where the shell forbids to keep compiled modules, each of them would compile JAX,
# NumPy and credo anew: 2.0 s of processor time for `import jax` in place of .6.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo setup test test-all test-rest lint floors types mypy pyright tests slow optimised crashes doctests \
    affected costs thorough soak bench mutants docs format clean

help:
	@sed -n '/^$$/q;s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

demo: $(STAMPS)/demo
	$(BIN)/credo learn mnist --out runs/mnist

# The environment comes first, so that the parts find it.
test: $(STAMPS)/test
	@$(MAKE) lint floors
	@echo "mypy and pyright run beside the tests, and say at their end what they found"
	@$(MAKE) types > $(STAMPS)/types.txt 2>&1 & checking=$$!; \
	$(MAKE) tests; tested=$$?; \
	wait $$checking; checked=$$?; \
	cat $(STAMPS)/types.txt; \
	exit $$((tested + checked))

test-all: $(STAMPS)/test-all
	@$(MAKE) test
	@$(MAKE) test-rest

test-rest: $(STAMPS)/test-all
	@$(MAKE) slow
	@$(MAKE) optimised
	@$(MAKE) crashes
	@$(MAKE) doctests

setup: $(STAMPS)/test-all

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

# A shell function that installs what its arguments name, in the versions that constraints/ has for this Python. Files
# compiled ahead are a quarter of an environment, and few of them are used.
define INSTALL
version="$$($(BIN)/python -c 'import sys; print("py%d.%d" % sys.version_info[:2])')"; \
pins="constraints/$$version.txt"; \
if [ -f "$$pins" ]; then \
    echo "Installing $(1) with the versions in $$pins"; pins="-c $$pins"; \
else \
    echo "There is no $$pins for this Python: installing $(1) with the newest versions that fit"; pins=; \
fi; \
install() { \
    if [ -n "$(UV)" ]; then \
        "$(UV)" pip install --quiet --python $(BIN)/python $$pins "$$@"; \
    else \
        $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; \
        $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $$pins "$$@"; \
    fi; \
}
endef

# A list of pyproject.toml, and whether pyright needs a Node.js of its own.
LIST = $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))$(1))')
NODE = node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)' 2>/dev/null

WANTED := pyproject.toml papers/pyproject.toml $(wildcard constraints/*.txt)

# The tools, and the packages that only the checkers read. credo itself is not installed: all three read its sources.
$(STAMPS)/lint: $(WANTED) | $(BIN)/python
	@$(call INSTALL,the tools of make lint floors types); \
	set -- $(call LIST,["project"]["optional-dependencies"]["lint"]); \
	$(NODE) || set -- "$$@" $(call LIST,["project"]["optional-dependencies"]["node"]); \
	install "$$@" && install --no-deps $(call LIST,["dependency-groups"]["types"])
	@mkdir -p $(STAMPS)
	@touch $@

# A larger environment serves for the smaller ones, so its stamp stands for theirs. All have the experiments.
ALSO_test := demo lint
ALSO_test-all := demo lint test
$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/test-all $(STAMPS)/docs: $(STAMPS)/%: $(WANTED) | $(BIN)/python
	@$(call INSTALL,credo[$*] and credo-papers); \
	extras='$*'; case '$*' in test*) $(NODE) || extras='$*,node';; esac; \
	install -e ".[$$extras]" -e papers
	@mkdir -p $(STAMPS)
	@touch $@ $(addprefix $(STAMPS)/,$(ALSO_$*))

lint: $(STAMPS)/lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check

floors: $(STAMPS)/lint
	PYTHONPATH=src:papers/src $(BIN)/lint-imports

# Both take a minute or two, on one core each.
types: $(STAMPS)/lint
	@$(MAKE) -j2 $(TOGETHER) mypy pyright

mypy: $(STAMPS)/lint
	$(BIN)/mypy

pyright: $(STAMPS)/lint
	$(BIN)/pyright --pythonpath $(BIN)/python

# tests/tiers.py says which test is of which kind. None of a kind among those that ARGS names is no error.
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS) $(if $(ARGS),|| [ $$? -eq 5 ])

tests: $(STAMPS)/test
	$(PYTEST)

slow: $(STAMPS)/test-all
	CREDO_TESTS=slow $(PYTEST)

optimised: $(STAMPS)/test-all
	CREDO_TESTS=optimised $(PYTEST)

crashes: $(STAMPS)/test-all
	CREDO_TESTS=crash $(PYTEST)

thorough: $(STAMPS)/test-all
	CREDO_TESTS=thorough $(PYTEST)

doctests: $(STAMPS)/test-all
	PYTHONPATH=. $(BIN)/pytest -p tests.haste -n $(WORKERS) --dist worksteal --import-mode=append --import-mode=append --doctest-modules src papers/src

affected: $(STAMPS)/test
	$(BIN)/python -m tests.affected $(if $(SINCE),--since $(SINCE)) -- -n $(WORKERS) --dist worksteal $(ARGS)

costs: $(STAMPS)/test
	$(BIN)/python tests/costs.py --jobs $(WORKERS) $(ARGS)

# Data sets that cannot be downloaded are looked for in CREDO_DATA_DIR.
soak: $(STAMPS)/test-all
	$(BIN)/python benchmarks/soak.py $(ARGS)
	$(BIN)/python benchmarks/soak_crashes.py
	$(BIN)/python benchmarks/soak_bandit.py

# All sections but `linear` and `estimators` need the extra "bench" as well (benchmarks/README.md).
bench: $(STAMPS)/test-all
	$(BIN)/python benchmarks/run.py $(ARGS)
	$(BIN)/python benchmarks/speed.py $(if $(CODES),--codes $(CODES))

mutants: $(STAMPS)/test-all
	$(BIN)/python benchmarks/mutants.py --count 200 --seed 0 --jobs $(WORKERS) $(ARGS)

# Formulas need MathJax, which a package brings; REPOSITORY_URL=https://... makes links to the source.
docs: $(STAMPS)/docs
	@$(BIN)/python -c 'import mathjax, pathlib, shutil; \
	    shutil.copy(pathlib.Path(mathjax.__file__).parent / "static/mathjax/es5/tex-svg.js", "docs/javascripts/")'
	$(BIN)/zensical build --clean --strict

format: $(STAMPS)/lint
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf build dist site runs $(STAMPS) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
