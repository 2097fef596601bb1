# Two commands set everything up: `make discover` and `make test`.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: discover test install native sanitize bench clean

$(VENV)/.installed: pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*) $(wildcard src/lapsus/*.py src/lapsus/*/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt "torch==2.13.0"
	$(BIN)/python -m pip install -q -c constraints.txt ".[test]"
	@touch $@

install: $(VENV)/.installed

discover: install
	$(BIN)/lapsus train index-quick -o runs/discover 2>&1 || $(BIN)/lapsus resume runs/discover
	$(BIN)/lapsus evaluate runs/discover
	@echo "The trained network and its metrics are in runs/discover"

test: install
	$(BIN)/python -m pytest

clean:
	rm -rf $(VENV) build runs
