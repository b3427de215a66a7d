# `make demo` and `make test` each do all their set-up: own .venv, build, install.
SHELL   := /bin/bash
PYTHON  ?= python3
CXX     ?= c++
VENV    ?= .venv
BIN     := $(VENV)/bin
SAN     := .venv-san
DOORS   := $(patsubst src/_native/%.pyx,slotkern.%,$(wildcard src/_native/*.pyx))
SOURCES := pyproject.toml CMakeLists.txt $(shell find src -type f -not -name "*.pyc")

.PHONY: help demo test bench lint sanitize clean toolchain
.DELETE_ON_ERROR:

help:
	@echo "make demo      set up, then find the best windows in a random environment and draw them"
	@echo "make test      set up, then run all tests"
	@echo "make bench     set up, then run the benchmarks"
	@echo "make lint      ruff, mypy --strict, stubs against the compiled modules"
	@echo "make sanitize  the whole test suite under AddressSanitizer and UBSan"
	@echo "make clean     remove everything that make built"

toolchain:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python >= 3.11 (Debian: python3 python3-dev python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: the venv module is missing (Debian: python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sysconfig, pathlib, sys; sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' || { echo "make: Python.h is missing (Debian: python3-dev)" >&2; exit 1; }
	@command -v $(CXX) >/dev/null || { echo "make: no C++ compiler: install one that knows C++20 (Debian: g++)" >&2; exit 1; }
	@echo 'int main(){}' | $(CXX) -std=c++20 -x c++ - -o /dev/null 2>/dev/null || { echo "make: $(CXX) does not compile C++20 (Debian: g++ >= 10)" >&2; exit 1; }

$(BIN)/python: | toolchain
	@echo "make: setting up the environment $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The build tools live in the environment, so that an editable rebuild takes seconds.
$(VENV)/.tools: pyproject.toml | $(BIN)/python
	@echo "make: installing the build tools (cmake, ninja, cython, numpy)"
	$(BIN)/python -m pip install --quiet "scikit-build-core>=1.0" "cython>=3.1,<3.4" "numpy>=2.0" cmake ninja
	@touch $@

$(VENV)/.installed: $(SOURCES) $(VENV)/.tools
	@echo "make: installing slotkern and what its tests need, and compiling it: some minutes the first time"
	set -o pipefail; $(BIN)/python -m pip install --no-build-isolation -e ".[dev]" | sed "/^Requirement already/d"
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py
	@echo "make: slotkern is installed in $(VENV): source $(BIN)/activate, then slotkern --help"

test: $(VENV)/.installed
	$(BIN)/python -m pytest -q -n auto

bench: $(VENV)/.installed
	$(BIN)/python -m pytest -q benchmarks --benchmark-columns=min,median,ops
	$(BIN)/python benchmarks/ratios.py

lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --ignore-disjoint-bases --allowlist ci/stubtest.txt $(DOORS)

# The same tests against kernels and doors built with ASan, UBSan and bounds checks.
# Python itself is not instrumented: the runtime is preloaded, and its leaks are not ours.
$(SAN)/.installed: $(SOURCES) | toolchain
	$(PYTHON) -m venv $(SAN)
	$(SAN)/bin/python -m pip install --quiet --upgrade pip
	$(SAN)/bin/python -m pip install --quiet "scikit-build-core>=1.0" "cython>=3.1,<3.4" "numpy>=2.0" cmake ninja
	SLOTKERN_SANITIZE=1 $(SAN)/bin/python -m pip install --quiet --no-build-isolation -e ".[test]"
	@touch $@

sanitize: $(SAN)/.installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=64 PYTHONMALLOC=malloc SLOTKERN_SANITIZED=1 \
	$(SAN)/bin/python -m pytest -q -n auto -p no:cacheprovider

clean:
	rm -rf $(VENV) $(SAN) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
