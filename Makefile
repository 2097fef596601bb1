# Two commands set everything up: `make discover` and `make test`.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
SOURCES := $(shell find src native -type f -not -name '*.pyc' -not -name '*.so' 2>/dev/null)

.PHONY: discover check test fast long sweep-test times install torture audit sanitize neon wheel-test wheels lowest docs version-check bench clean

# The package itself is installed last and alone, so that a change of ours does not look for dependencies again.
$(VENV)/.installed: pyproject.toml constraints.txt CMakeLists.txt $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt "torch==2.13.0"
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt ".[test,dev,docs]"
	@touch $@

install: $(VENV)/.installed

# The embedded example, from a trial table to a report; going on where it stopped if it was interrupted.
discover: install
	$(BIN)/lapsus discover -o runs/discover

test: install
	$(BIN)/python -m pytest

fast: install
	$(BIN)/python -m pytest -m "not slow"

long: install
	$(BIN)/python -m pytest -m long

# Sweeps against real daemons (SLURM, Dask) and ten interruptions: some minutes on a machine with nothing else to do.
sweep-test: install
	timeout --kill-after=60 2400 $(BIN)/python -m pytest -m long --durations=0 \
		tests/test_sweep.py tests/test_sweep_slurm.py tests/test_sweep_dask.py

# What each test costs in processor time, the sums, and which carry a marker that is wrong.
times: install
	$(BIN)/python -m pytest --processor-time

# Faults at every write, hostile files for every reader: `make torture MINUTES=30` (docs/reliability.md). One process.
MINUTES ?= 30
torture: install
	cd tests && OMP_NUM_THREADS=1 LAPSUS_THREADS=1 ../$(BIN)/python -m torture.campaign --minutes $(MINUTES) --inputs 20000

# Known vulnerabilities of what is installed; needs network access, and says so where there is none.
audit: install
	-@$(BIN)/python -m pip install -q --disable-pip-version-check pip-audit 2> /dev/null
	@$(BIN)/python .ci/audit.py

# Style, types and which room may import which: lint, format, types, layers.
check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=src $(BIN)/lint-imports
	$(BIN)/mypy

# The kernel under the address, undefined-behaviour and thread sanitizers.
sanitize:
	sh native/sanitize.sh

# The kernel for 64-bit ARM, cross-compiled and run under an emulator.
neon:
	sh native/neon.sh

# Source archive and wheel, and the wheel in an environment that has no compiler.
wheel-test:
	PYTHON=$(PYTHON) sh .ci/wheel.sh

# Wheels of this system for every Python, in dist/ (needs Docker on Linux).
wheels:
	$(PYTHON) -m pip install -q "cibuildwheel==4.3.3"
	$(PYTHON) -m cibuildwheel --output-dir dist

# The quick tests with the oldest versions that pyproject.toml allows. Old versions warn about newer neighbours.
lowest:
	test -x $(VENV)-lowest/bin/python || $(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install -q --disable-pip-version-check -c .ci/lowest.txt ".[test]"
	$(VENV)-lowest/bin/python -m pytest -W default -m "not slow"

# The site in site/: tutorials run, every link checked, no warning, no network.
docs: install
	$(BIN)/python docs/making/build_site.py

# A tag must be the version that the package, CITATION.cff, codemeta.json and the changelog name.
version-check:
	$(PYTHON) .ci/version.py $(TAG)

bench: install
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf $(VENV) build dist site
