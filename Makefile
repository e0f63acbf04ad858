# `make demo` and `make test` work on a fresh clone; `make help` lists the rest.
# Each environment is made from pinned packages on first use, and made anew when pyproject.toml, its
# constraints file, the version of skdp or PYTHON change. pip's own configuration applies.

SHELL = /bin/sh
.NOTPARALLEL:

# Interpreter (>= 3.11) for the environments; empty: the first suitable one on PATH.
PYTHON ?=
# Where the environments live.
VENV ?= .venv
VENV_OLDEST ?= .venv-oldest
# Test processes, and one thread of linear algebra in each.
JOBS ?= 2
ONE_THREAD = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# More arguments for pytest, as in `make test PYTEST_ARGS="-k accounting"`.
PYTEST_ARGS ?=
# More arguments for the fuzzer, as in `make fuzz FUZZ_ARGS='--inputs 1000'`.
FUZZ_ARGS ?=

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' skdp/__init__.py)
# The stamps' names carry what the files they depend on do not say.
STAMP = .skdp-$(VERSION)$(subst /,_,$(PYTHON))
READY = $(VENV)/$(STAMP)
READY_OLDEST = $(VENV_OLDEST)/$(STAMP)
BIN = $(VENV)/bin
INSTALL = -m pip install -q --no-build-isolation -c
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

help:
	@echo 'make demo         fit private and non-private pipelines on real data, print a table'
	@echo 'make test         the tests and their coverage, without the slow ones'
	@echo 'make test-slow    only the slow statistical tests'
	@echo 'make audit        attacks on every estimator against what it promises (an hour)'
	@echo 'make mutations    privacy bugs put into copies of the package, which the tests must catch'
	@echo 'make fuzz         a hundred thousand hostile inputs for every estimator (4 minutes)'
	@echo 'make test-oldest  the tests on the oldest supported dependencies (Python 3.11 or 3.12)'
	@echo 'make lint         ruff and mypy'
	@echo 'make docs         the documentation, into docs/_build/html'
	@echo 'make coverage     line-by-line coverage, into htmlcov'
	@echo 'make dist         the distributions of the last commit, made twice and compared, into dist'
	@echo 'make pins         move constraints/current.txt to the newest packages'
	@echo 'make clean        remove everything that make made, environments included'
	@echo 'Variables: PYTHON=interpreter VENV=directory JOBS=processes PYTEST_ARGS=...'

demo: $(READY)-demo
	$(BIN)/python examples/demo.py

test: $(READY)-tests
	$(ONE_THREAD) $(PYTEST) -m 'not slow' --cov --cov-report=term $(PYTEST_ARGS)

test-slow: $(READY)-tests
	$(ONE_THREAD) $(PYTEST) -m 'slow and not mutation' $(PYTEST_ARGS)

audit: $(READY)-tests
	$(ONE_THREAD) $(BIN)/python tests/audits.py --csv docs/data/audit.csv

mutations: $(READY)-tests
	$(ONE_THREAD) $(PYTEST) tests/test_mutations.py -m mutation -rP $(PYTEST_ARGS)

fuzz: $(READY)-tests
	$(ONE_THREAD) $(BIN)/python tests/fuzzing.py --jobs $(JOBS) $(FUZZ_ARGS)

# No doctests (numpy 1 prints numbers differently), and the deprecations that newer interpreters and
# test tools find in old dependencies are not ours to mend.
test-oldest: $(READY_OLDEST)-tests
	$(ONE_THREAD) $(VENV_OLDEST)/bin/python -m pytest -n $(JOBS) --dist worksteal tests \
	    -m 'not slow' -W default::DeprecationWarning $(PYTEST_ARGS)

lint: $(READY)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)-docs
	MPLBACKEND=Agg $(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo 'Open docs/_build/html/index.html'

coverage: $(READY)-tests
	$(ONE_THREAD) $(PYTEST) -m 'not slow' --cov --cov-report=html $(PYTEST_ARGS)
	@echo 'Open htmlcov/index.html'

# hatchling comes with every environment.
dist: $(READY)
	$(BIN)/python tools/make_dist.py dist

# A new environment without constraints says what pip resolves today.
pins:
	: >.pins
	PYTHON='$(PYTHON)' tools/venv.sh .venv-pins .pins
	.venv-pins/bin/python $(INSTALL) .pins -e '.[fast,plots,demo,tests,docs,benchmarks,dev]'
	{ sed -n '/^#/p' constraints/current.txt; \
	    .venv-pins/bin/python -m pip freeze -q --all --exclude-editable | grep -v '^setuptools=='; \
	    } >.pins
	mv .pins constraints/current.txt
	rm -rf .venv-pins

clean:
	rm -rf $(VENV) $(VENV_OLDEST) .venv-pins .pins .coverage .coverage.* htmlcov build dist
	rm -rf docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst examples/output
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints/current.txt tools/venv.sh
	PYTHON='$(PYTHON)' tools/venv.sh $(VENV) constraints/current.txt
	@touch $@

$(READY)-demo $(READY)-tests $(READY)-dev: $(READY)
	$(BIN)/python $(INSTALL) constraints/current.txt -e '.[$(subst $(READY)-,,$@)]'
	@touch $@

# The gallery runs examples on the demo's data.
$(READY)-docs: $(READY)
	$(BIN)/python $(INSTALL) constraints/current.txt -e '.[docs,demo]'
	@touch $@

$(READY_OLDEST): pyproject.toml constraints/oldest.txt tools/venv.sh
	PYTHON='$(PYTHON)' tools/venv.sh $(VENV_OLDEST) constraints/oldest.txt 13
	@touch $@

$(READY_OLDEST)-tests: $(READY_OLDEST)
	$(VENV_OLDEST)/bin/python $(INSTALL) constraints/oldest.txt -e '.[tests]'
	@touch $@

.PHONY: help demo test test-slow audit mutations fuzz test-oldest lint docs coverage dist pins clean
