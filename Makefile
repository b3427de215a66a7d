# `make demo` and `make test` do all their set-up themselves: .venv, build, installation.
SHELL   := /bin/bash
PYTHON  ?= python3
CXX     ?= c++
VENV    ?= .venv
BIN     := $(VENV)/bin
SAN     := .venv-san
CLANG   ?= clang++
FUZZ    := build/fuzz
BEGIN   := $(shell date +%s)
# With worksteal, an idle worker takes tests from the queue of another.
PARALLEL := -n auto --dist worksteal
FUZZ_RUNS    ?= 1000000
BRIEF_RUNS   ?= 20000
BUILD_TOOLS := "scikit-build-core>=1.0" "cython>=3.2.1,<3.4" "numpy>=2.0" cmake ninja
, := ,
install = set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check --no-build-isolation -e ".[$(1)]" | sed "/^Requirement already/d"
TARGETS := search constrained groups alternatives pool choose values tariffs replay withdraw shares trees
BINDINGS := $(subst /,.,$(patsubst src/%.pyx,%,$(subst _native,slotkern,$(shell find src -name "*.pyx"))))
SOURCES := pyproject.toml CMakeLists.txt $(shell find src -type f -not -path "*/__pycache__/*")

.PHONY: help demo test programs digests fresh docs bench bench-briefly fuzz fuzz-readers fuzz-searches fuzz-kernels fuzz-briefly sdist lint sanitize sanitize-briefly clang mutants viewer clean toolchain
.DELETE_ON_ERROR:

help:
	@echo "make demo      set up, then find the best windows in a random environment and draw them"
	@echo "make test      set up, then run all tests"
	@echo "make programs  compile the C and C++ programs that tests run"
	@echo "make digests   compare the results of builds for each instruction set and compiler"
	@echo "make fresh     set up, then run the hypothesis tests with new random cases"
	@echo "make docs      set up, then build the site into build/site and test its pages"
	@echo "make bench     set up, then run the benchmarks and rewrite the tables and pictures of the pages"
	@echo "make fuzz      run all fuzzers: EXECUTIONS=100000 inputs per reader, FUZZ_RUNS=1000000 per kernel, CASES=1000000 per kind of search"
	@echo "make sdist     build the source distribution, install it in a new environment and use it"
	@echo "make lint      run ruff, codespell and mypy --strict, compare stubs with the compiled modules"
	@echo "make sanitize  run the test suite on a clang++ build with AddressSanitizer and UBSan; sanitize-briefly: its kernels' part"
	@echo "make clang     run the test suite on a release build by clang++"
	@echo "make mutants   mutation tests of the kernels: COUNT=100 mutants, one change each"
	@echo "make viewer    build the script of the viewer's pages from viewer/source (needs node)"
	@echo "make clean     remove everything that make built"

toolchain:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python >= 3.11 (Debian: python3 python3-dev python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: the venv module is missing (Debian: python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sysconfig, pathlib, sys; sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' || { echo "make: Python.h is missing (Debian: python3-dev)" >&2; exit 1; }
	@command -v $(CXX) >/dev/null || { echo "make: no C++ compiler: install one that supports C++20 (Debian: g++)" >&2; exit 1; }
	@echo 'int main(){}' | $(CXX) -std=c++20 -x c++ - -o /dev/null 2>/dev/null || { echo "make: $(CXX) does not compile C++20 (Debian: g++ >= 10)" >&2; exit 1; }

# The build tools are installed in the environment, so an editable rebuild takes seconds.
$(VENV)/.tools: pyproject.toml | toolchain
	@echo "make: setting up the environment $(VENV) with the build tools (cmake, ninja, cython, numpy)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(BUILD_TOOLS)
	@touch $@

# An installation with only the extras that `slotkern demo` needs.
$(VENV)/.runnable: $(SOURCES) $(VENV)/.tools
	@echo "make: compiling and installing slotkern: two minutes the first time"
	$(call install,cli$(,)plot)
	@touch $@

# An installation with everything that the tests need.
$(VENV)/.installed: $(SOURCES) $(VENV)/.tools
	@echo "make: compiling slotkern and installing it with the packages of its tests: some minutes the first time"
	$(call install,dev)
	@touch $@ $(VENV)/.runnable

demo: $(VENV)/.runnable
	@echo "make: finding windows and drawing them: slotkern demo"
	@$(BIN)/slotkern demo
	@echo "make: setting up and drawing took $$(($$(date +%s) - $(BEGIN))) s"
	@echo "make: slotkern is installed in $(VENV): source $(BIN)/activate, then slotkern --help"

# Builds the C and C++ programs that tests run, with the headers of the package in an environment.
# Ninja rebuilds only what has changed.
define build_programs
	@echo "make: compiling the programs that tests run: some minutes the first time"
	@export PATH="$(CURDIR)/$(1)/bin:$$PATH" && \
	root="$$($(1)/bin/python -c 'import slotkern; print(slotkern.get_include())')" && \
	cmake -S tests/native -B $(2) -G Ninja -Dslotkern_ROOT="$$root" $(3) >/dev/null && cmake --build $(2)
endef
PROGRAMS := build/programs
programs: $(VENV)/.installed
	$(call build_programs,$(VENV),$(PROGRAMS))

digests: $(VENV)/.installed
	$(call build_programs,$(VENV),$(PROGRAMS)-every,-DSLOTKERN_EVERY_DIGEST=ON)
	SLOTKERN_PROGRAMS=$(PROGRAMS)-every $(BIN)/python -m pytest -q tests/native -k digests

# If PostgreSQL is installed (Debian: postgresql), the tests of ledgers start a server on loopback.
test: $(VENV)/.installed programs
	SLOTKERN_PROGRAMS=$(PROGRAMS) $(BIN)/python -m pytest -q $(PARALLEL)

# Every run uses new random cases; SEED=... repeats an earlier run.
fresh: SEED ?= $(shell date +%s)
fresh: $(VENV)/.installed
	@echo "SEED=$(SEED)"
	HYPOTHESIS_PROFILE=fresh $(BIN)/python -m pytest -q $(PARALLEL) -m hypothesis --hypothesis-seed=$(SEED)

# Every example runs, and every warning is an error. If chromium is installed, the tests open the
# pages in it (Debian: chromium). No step needs a network.
$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --no-build-isolation -e ".[docs]"
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W -n --keep-going -b html docs build/site
	$(BIN)/python -m pytest -q tests/docs/test_site.py
	@echo "make: the site is build/site/index.html"

bench: $(VENV)/.installed
	$(BIN)/python -m pytest -q benchmarks --benchmark-columns=min,median,ops
	$(BIN)/python benchmarks/ratios.py --keep
	$(BIN)/python benchmarks/alternatives.py --keep
	$(BIN)/python benchmarks/additive.py --worst-of 20 --keep
	$(BIN)/python benchmarks/loop.py --quick --keep
	$(BIN)/python benchmarks/layers.py --keep
	$(BIN)/python ci/measured.py

# Runs every benchmark once, for its assertions, except test_growth.py, which compares times.
bench-briefly: $(VENV)/.installed
	$(BIN)/python -m pytest -q benchmarks --benchmark-disable --ignore=benchmarks/test_growth.py
	$(BIN)/python benchmarks/layers.py --brief

# The number of inputs for each target of fuzz/readers.py.
EXECUTIONS ?= 100000

fuzz-readers: $(VENV)/.installed
	$(BIN)/python fuzz/readers.py --executions $(EXECUTIONS)

# The number of cases for each target of fuzz/searches.py, and of searches for fuzz/tariffs.py,
# which derive from FUZZ_SEED.
CASES     ?= 1000000
# The number of tiny batches for fuzz/batches.py.
BATCHES   ?= 10000
FUZZ_SEED ?= 1

fuzz-searches: $(VENV)/.installed
	$(BIN)/python fuzz/searches.py --cases $(CASES) --seed $(FUZZ_SEED)
	$(BIN)/python fuzz/tariffs.py --cases $(CASES) --seed $(FUZZ_SEED)
	$(BIN)/python fuzz/batches.py --cases $(BATCHES) --seed $(FUZZ_SEED)

fuzz: fuzz-readers fuzz-searches fuzz-kernels

lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --ignore-disjoint-bases --allowlist ci/stubtest.txt $(BINDINGS)

# Runs the tests on kernels and bindings built by clang++ with ASan, UBSan and bounds checks. Python
# itself is not instrumented, so the runtime is preloaded and leaks are not reported. A sanitizer
# writes its report to stderr before it ends the process, so stderr is not captured. Excluded are
# folders whose tests build programs or call the kernels in the same way as other tests. Hypothesis
# runs a third of the cases, because the fuzzers run far more under the same sanitizers.
UNSANITIZED := architecture browser calendars docs native notebooks service studies
$(SAN)/.installed: $(SOURCES) | toolchain
	@command -v $(CLANG) >/dev/null || { echo "make: $(CLANG) is missing (Debian: clang)" >&2; exit 1; }
	$(PYTHON) -m venv $(SAN)
	$(SAN)/bin/python -m pip install --quiet --upgrade pip
	$(SAN)/bin/python -m pip install --quiet $(BUILD_TOOLS)
	CXX=$(CLANG) SLOTKERN_SANITIZE=1 $(SAN)/bin/python -m pip install --quiet --no-build-isolation -e ".[test]"
	@touch $@

# Kernels, bindings and numpy allocate with new and malloc, which ASan checks. Python's own allocator
# hides only the ends of objects such as bytes from it: the tests in which bindings read or write
# bytes run with PYTHONMALLOC=malloc, which takes twice as long.
IN_BYTES := traces ledger/test_ledger_caps.py ledger/test_ledger_check.py ledger/test_ledger_model.py ledger/test_shared_pool.py
sanitized = LD_PRELOAD="$$($(CLANG) -print-file-name=libclang_rt.asan-$$(uname -m).so) $$($(CLANG) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=64 SLOTKERN_SANITIZED=1 HYPOTHESIS_PROFILE=brief \
	$(SAN)/bin/python -m pytest -q $(PARALLEL) -p no:cacheprovider --capture=sys
sanitize sanitize-briefly: $(SAN)/.installed
	$(sanitized) $(UNSANITIZED:%=--ignore=tests/%) $(IN_BYTES:%=--ignore=tests/%)
	PYTHONMALLOC=malloc $(sanitized) $(IN_BYTES:%=tests/%)
# Without folders in which most of the time is spent in Python.
sanitize-briefly: UNSANITIZED += clusters commands plotting

# Runs the tests on a release build by clang++.
clang: | toolchain
	@command -v $(CLANG) >/dev/null || { echo "make: $(CLANG) is missing (Debian: clang)" >&2; exit 1; }
	$(PYTHON) -m venv .venv-clang
	.venv-clang/bin/python -m pip install --quiet $(BUILD_TOOLS)
	CXX=$(CLANG) .venv-clang/bin/python -m pip install --quiet --no-build-isolation \
	    -C build-dir=build/clang -e ".[test,browser]"
	$(call build_programs,.venv-clang,build/programs-clang,-DCMAKE_CXX_COMPILER=$(CLANG))
	CXX=$(CLANG) SLOTKERN_PROGRAMS=build/programs-clang \
	.venv-clang/bin/python -m pytest -q $(PARALLEL) -p no:cacheprovider

# Fuzzers that compare kernels with exhaustive search under ASan and UBSan. Their pools are small
# and use all search structures. fuzz-briefly makes a fixed number of reproducible runs from one
# seed; fuzz-kernels continues from the corpus of earlier runs.
# The sweeps of all criteria and shapes are most of the compile time; the fuzzers share one object.
define fuzzer
	@command -v $(CLANG) >/dev/null || { echo "make: $(CLANG) is missing (Debian: clang)" >&2; exit 1; }
	@mkdir -p $(FUZZ)
	$(CLANG) -std=c++20 -O2 -g1 -Wall -Wextra -Werror -ffp-contract=off \
	    -fsanitize=fuzzer,address,undefined,float-cast-overflow -fno-sanitize-recover=all \
	    -fno-sanitize-coverage=trace-cmp,trace-gep,trace-div,indirect-calls \
	    -Isrc/_native $(1) -o $@
endef
KERNELS := $(wildcard tests/native/*.hpp tests/native/fuzz/*.hpp) $(shell find src/_native -name "*.hpp")
SWEEPS  := $(FUZZ)/sweeps.o
$(SWEEPS): src/_native/compiled/search.cpp $(KERNELS)
	$(call fuzzer,-c $<)
$(FUZZ)/%: tests/native/fuzz/%.cpp $(SWEEPS) $(KERNELS)
	$(call fuzzer,-DSLOTKERN_SEARCH_DECLARED $< $(SWEEPS))

# An input of tariffs holds up to 40 searches by the plain definition: ten times the work of others.
briefly-tariffs: BRIEF_RUNS := 4000
# Each run is a target of its own, so make -j runs several at a time.
BRIEFLY := $(TARGETS:%=briefly-%)
.PHONY: $(BRIEFLY)
fuzz-briefly: $(BRIEFLY)
$(BRIEFLY): briefly-%: $(FUZZ)/%
	@$< -seed=1 -runs=$(BRIEF_RUNS) -max_len=256 -len_control=0 \
	    -entropic=0 -verbosity=0 -print_funcs=0 -artifact_prefix=$<-

fuzz-kernels: $(TARGETS:%=$(FUZZ)/%)
	@for target in $^; do mkdir -p $$target.corpus && $$target -runs=$(FUZZ_RUNS) \
	    -max_len=256 -len_control=0 -entropic=0 -verbosity=0 -print_funcs=0 -print_final_stats=1 \
	    -artifact_prefix=$$target- $$target.corpus || exit 1; done

# Builds the source distribution, and installs and uses it in a new environment. It is compiled
# without optimization, because `make test` has already compiled the same sources with it.
define FOUND_THERE
import slotkern as sk

slots = sk.generate_environment("aep", seed=1).slots
window = sk.find_window(slots, sk.Request(5, 310, budget=1500), "cost", shape="ragged")
assert window is not None and window.cost <= 1500, window
print("sdist:", sk.__version__, window)
endef
export FOUND_THERE
sdist: $(VENV)/.installed
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	$(BIN)/python -m build --sdist --no-isolation --outdir "$$work" >/dev/null; \
	$(PYTHON) -m venv "$$work/venv"; \
	"$$work/venv/bin/python" -m pip install --quiet --config-settings=cmake.build-type=None "$$work"/slotkern-*.tar.gz; \
	cd "$$work"; venv/bin/python -c "$$FOUND_THERE"

# docs/develop/mutants.md lists the mutants that change no result, with reasons.
COUNT ?= 100
mutants: SEED ?= $(shell date +%s)
mutants: $(VENV)/.installed
	@echo "SEED=$(SEED)"
	$(BIN)/python ci/mutants.py --count $(COUNT) --seed $(SEED) --python

# Builds the script and the style of the pages that sk.view creates; the built files are committed.
viewer:
	cd viewer && npm ci --no-audit --no-fund && npm run check && npm run build

clean:
	rm -rf $(VENV) $(SAN) .venv-clang viewer/node_modules build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
