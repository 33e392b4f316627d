# Makefile: every chore by one command, from a machine that has make, a C++20 compiler and Python >= 3.10.
#
# The tools and libraries go into a virtual environment beside this file, never elsewhere:
#   make test                      .venv, with every library in LIBS
#   make test PYTHON=python3.13    .venv-3.13, beside the other
#   make test LIBS="numpy"         .venv-numpy: other LIBS, other environment, so none claims what it lacks

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The array libraries, then two that move what they are given to other processes.
ALL_LIBS := numpy torch jax tensorflow-cpu paddlepaddle pyarrow ml_dtypes apache-tvm-ffi pandas polars distributed ray
LIBS ?= $(ALL_LIBS)
# Empty, unless LIBS was changed.
LIBS_KEY := $(if $(filter-out $(ALL_LIBS),$(LIBS))$(filter-out $(LIBS),$(ALL_LIBS)),-$(shell \
	printf %s "$(strip $(LIBS))" | tr -c 'A-Za-z0-9._' '-'))

PYTHON_KEY := $(if $(filter undefined,$(origin PYTHON)),,yes)
PYTHON ?= python3
# 3.13, or 3.13t for the free-threaded build.
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2] + getattr(sys, "abiflags", ""))')

VENV := .venv$(if $(PYTHON_KEY),-$(VERSION))$(LIBS_KEY)
BUILD := build/$(VERSION)$(LIBS_KEY)
PY := $(VENV)/bin/python
UV_INSTALL := $(PY) -m uv pip install --quiet -p $(PY)
CMAKE := $(VENV)/bin/cmake
CMAKE_FLAGS = -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(VENV)/bin/ninja \
	-DPython_EXECUTABLE=$(CURDIR)/$(PY) -DTENON_WERROR=ON
say = @echo "==> $(1)"
# Each has all the libraries in its memory: 3 GB.
WORKERS ?= 2
# A worker that crashes is not followed by another: that one would begin the file anew and crash again, and the run might
# never end. Without it the run ends, failed, and names the test.
XDIST = -n $(WORKERS) --dist loadfile --max-worker-restart=0
# ctest names every test twice; only the failures and the count matter.
TERSE = grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* Passed )'

# Folders too: their time changes when a file goes away.
SOURCES = $(shell find include src python cmake CMakeLists.txt pyproject.toml README.md LICENSE \
	-not -path '*__pycache__*' 2>/dev/null)
CXX_FILES = $(shell find include src python tests bench examples fuzz tools \
	-not -path '*/build/*' \
	\( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.c' -o -name '*.cu' \) 2>/dev/null)

PYTHON_FILES := python tests tools bench examples

.PHONY: help demo test test-rest test-all test-cpp test-python test-long test-kept test-leaks test-gpu test-gpu-sanitizers \
	test-asan test-asan-cpp test-asan-python bench-quick bench-instructions bench-compile bench-gpu bench-gpu-here check \
	check-format check-tidy check-python check-layers check-foreign-code check-headers fmt clean FORCE

help: ## list the targets
	@echo 'make TARGET [PYTHON=python3.13] [LIBS="numpy torch"]'; echo
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 23

# --- the environment ------------------------------------------------------------------------------

$(VENV)/.made-$(VERSION):
	$(call say,making the virtual environment $(VENV))
	@test -n "$(VERSION)" || { echo "$(PYTHON) does not run: set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "$(PYTHON) is $(VERSION): Python 3.10 or newer is needed" >&2; exit 1; }
	@# An environment of another version cannot be upgraded in place.
	@if ls -d $(VENV)/lib/python* 2>/dev/null | grep -qvE '/python$(VERSION)$$'; then rm -rf $(VENV); fi
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check uv
	@touch $@

$(VENV)/.tools-%: requirements/%.txt $(VENV)/.made-$(VERSION)
	$(call say,installing requirements/$*.txt into $(VENV))
	@$(UV_INSTALL) -r $<
	@touch $@

# Changes only when LIBS does, within one environment.
$(VENV)/.libs-asked: $(VENV)/.made-$(VERSION) FORCE
	@[ "$$(cat $@ 2>/dev/null)" = "$(strip $(LIBS))" ] || echo "$(strip $(LIBS))" > $@

# Finished only when nothing was skipped, so that a library that could not be had is asked for again.
$(VENV)/.libs-done: $(VENV)/.libs-asked tools/install_libs.py
	$(call say,installing into $(VENV): $(LIBS))
	$(if $(filter torch%,$(LIBS)),@echo "    torch brings about 5 GB with it; with every library $(VENV) takes about 9 GB")
	@$(PY) tools/install_libs.py $(VENV)/libs.txt $(LIBS)
	@grep -q ' skipped: ' $(VENV)/libs.txt || touch $@

# --- the package ----------------------------------------------------------------------------------

# Not editable: what is tested is what a user gets. Only the build folder is kept between builds.
# uv would serve its cached wheel unless told to build anew.
PACKAGE_INSTALL = $(UV_INSTALL) --no-deps --no-build-isolation --reinstall --no-cache

$(VENV)/.package: $(SOURCES) $(VENV)/.tools-build
	$(call say,building the package and installing it into $(VENV))
	@$(PACKAGE_INSTALL) -C build-dir=$(BUILD)/wheel -C cmake.define.TENON_WERROR=ON .
	@touch $@

demo: $(VENV)/.package ## the two-minute tour: builds the package, installs NumPy alone, runs examples/demo.py
	@$(PY) -c 'import numpy' 2> /dev/null || { echo "==> installing into $(VENV): numpy"; $(UV_INSTALL) numpy; }
	$(call say,running examples/demo.py)
	@$(PY) examples/demo.py

# --- tests ----------------------------------------------------------------------------------------

test: ## layers, calls of others, headers, C++ tests, Python tests but the slow ones, and a summary
	@$(MAKE) check-layers
	@$(MAKE) check-foreign-code
	@$(MAKE) check-headers
	@$(MAKE) test-cpp
	@$(MAKE) test-python MARKED="not slow"
	@$(PY) tools/test_summary.py $(VENV)/libs.txt $(BUILD)/cpp.xml $(BUILD)/python.xml

test-rest: ## what `make test` leaves out: the Python tests that are marked slow
	@$(MAKE) test-python MARKED=slow REPORT=python-slow
	@$(PY) tools/test_summary.py $(VENV)/libs.txt $(BUILD)/python-slow.xml

test-all: ## every test: `make test`, then what it leaves out
	@$(MAKE) test
	@$(MAKE) test-rest

test-cpp: $(VENV)/.tools-build ## the C++ tests
	$(call say,building and running the C++ tests)
	@$(CMAKE) $(CMAKE_FLAGS) -B $(BUILD)/tests -DCMAKE_BUILD_TYPE=Debug > /dev/null
	@$(CMAKE) --build $(BUILD)/tests
	@$(VENV)/bin/ctest --test-dir $(BUILD)/tests --output-on-failure --no-tests=error -j $$(nproc) \
		--output-junit $(CURDIR)/$(BUILD)/cpp.xml | $(TERSE)

# pytest's -m; empty for all of them.
MARKED ?=
REPORT ?= python

test-python: $(VENV)/.libs-done $(VENV)/.tools-build $(VENV)/.tools-test $(VENV)/.package ## the Python tests, the slow ones too
	$(call say,building the native modules of the Python tests)
	@$(CMAKE) $(CMAKE_FLAGS) -B $(BUILD)/tests -DCMAKE_BUILD_TYPE=Debug > /dev/null
	@$(CMAKE) --build $(BUILD)/tests --target tenon_tests_native
	$(call say,running the Python tests$(if $(MARKED), that are $(MARKED)))
	@# The seed: the workers must give every test the same name.
	@PYTHONHASHSEED=0 PYTHONPATH=$(BUILD)/tests/tests/native $(PY) -m pytest -rs $(XDIST) \
		$(if $(MARKED),-m "$(MARKED)") --junitxml=$(BUILD)/$(REPORT).xml $(PYTEST_ARGS)

test-long: ## what takes too long for every run: exits by the hundred, interpreters by the dozen, others' crashes
	@TENON_EXIT_RUNS=1000 TENON_SUBINTERPRETER_CYCLES=200 TENON_TRY_CRASHES=1 \
		$(MAKE) test-python PYTEST_ARGS="tests/python/test_lifetimes.py tests/python/test_kept.py \
		tests/python/test_explain.py $(PYTEST_ARGS)"

test-kept: ## arrays kept past their call, in a thousand processes that end with them, under AddressSanitizer
	@TENON_EXIT_RUNS=$${TENON_EXIT_RUNS:-1000} TENON_TEST_TIMEOUT=7200 $(MAKE) test-asan-python LIBS=numpy \
		PYTEST_ARGS="-k test_kept $(PYTEST_ARGS)"

test-leaks: ## a million round trips by every way out: nothing may grow
	@TENON_LEAK_ROUNDS=1000000 TENON_TEST_TIMEOUT=1800 \
		$(MAKE) test-python PYTEST_ARGS="tests/python/test_leaks.py --durations=0 $(PYTEST_ARGS)"

# Installs nothing: a machine with a GPU has its own Python, libraries, CMake and CUDA.
GPU_PYTHON ?= python3

test-gpu: ## everything about CUDA, on a machine with a GPU, with what GPU_PYTHON=python3 has; else says so
	@$(GPU_PYTHON) tools/test_gpu.py $(GPU_ARGS)

test-gpu-sanitizers: ## the CUDA tests under compute-sanitizer: memcheck, racecheck, initcheck
	@$(GPU_PYTHON) tools/test_gpu.py --sanitizers $(GPU_ARGS)

ASAN := $(BUILD)/asan
ASAN_PATH := $(CURDIR)/$(ASAN)/site:$(CURDIR)/$(ASAN)/tests/tests/native
STACKS ?= fast
# GCC's flow warnings see dangling pointers and unset variables in instrumented code that are not there.
ASAN_FLAGS = $(CMAKE_FLAGS) -B $(ASAN)/tests -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTENON_SANITIZE=ON -DTENON_WERROR=OFF

test-asan: ## all tests under AddressSanitizer and UBSan, leaks included
	@$(MAKE) test-asan-cpp
	@$(MAKE) test-asan-python STACKS=fast
	@# Slow but exact stacks, where a leaked Python object shows who made it: without the large libraries, and
	@# without the large tables, which go the same ways a thousand times.
	@$(MAKE) test-asan-python STACKS=exact LIBS=numpy PYTEST_ARGS="--ignore=tests/python/test_real_consumers.py \
		--ignore=tests/python/test_real_like.py"

test-asan-cpp: $(VENV)/.tools-build
	$(call say,building the C++ tests with the sanitizers and running them)
	@$(CMAKE) $(ASAN_FLAGS) > /dev/null
	@$(CMAKE) --build $(ASAN)/tests
	@ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
		$(VENV)/bin/ctest --test-dir $(ASAN)/tests --output-on-failure --no-tests=error -j $$(nproc) \
		| $(TERSE)

$(ASAN)/.package: $(SOURCES) $(VENV)/.tools-build
	$(call say,building the package with the sanitizers)
	@rm -rf $(ASAN)/site
	@$(PACKAGE_INSTALL) -C build-dir=$(ASAN)/wheel -C cmake.build-type=RelWithDebInfo \
		-C install.strip=false -C cmake.define.TENON_SANITIZE=ON --target $(ASAN)/site .
	@touch $@

test-asan-python: $(ASAN)/.package $(VENV)/.libs-done $(VENV)/.tools-build $(VENV)/.tools-test
	@$(CMAKE) $(ASAN_FLAGS) > /dev/null
	@$(CMAKE) --build $(ASAN)/tests --target tenon_tests_native
	$(call say,running the Python tests under the sanitizers with $(STACKS) stacks: $(LIBS))
	@grep -q __asan_init $(ASAN)/site/tenon/_core*.so || { echo "_core has no sanitizer in it" >&2; exit 1; }
	@# --capture=sys: UBSan reports to the standard error stream and aborts, and pytest must not hold that back.
	@# The limit: with exact stacks everything takes ten times as long.
	@status=0; TENON_TEST_TIMEOUT=$${TENON_TEST_TIMEOUT:-3600} PYTHONHASHSEED=0 PYTHONPATH=$(ASAN_PATH) tools/asan/run $(STACKS) $(ASAN)/logs-$(STACKS) \
		$(PY) -m pytest -rs $(XDIST) -p tenon_leak_canary --capture=sys tests/python \
		$(PYTEST_ARGS) || status=$$?; \
	$(PY) tools/check_leaks.py --ours include --ours python/src --ours tests/python/native \
		--ours $(ASAN)/site --ours $(ASAN)/tests $(ASAN)/logs-$(STACKS) || exit 1; exit $$status

# --- benchmarks -----------------------------------------------------------------------------------

BENCH_CONFIGURE = $(CMAKE) $(CMAKE_FLAGS) -B $(BUILD)/bench -DCMAKE_BUILD_TYPE=Release -DTENON_BUILD_BENCH=ON \
	-DTENON_BUILD_TESTS=OFF -DTENON_BENCH_DIR=$(CURDIR)/$(BUILD)/bench/modules

bench-quick: $(VENV)/.libs-done $(VENV)/.tools-build $(VENV)/.tools-bench ## time both ways across against the peers
	$(call say,building the benchmarks and running bench/quick.py)
	@$(BENCH_CONFIGURE) > /dev/null
	@$(CMAKE) --build $(BUILD)/bench
	@PYTHONPATH=$(BUILD)/bench/modules $(PY) bench/quick.py $(BENCH_ARGS)

bench-instructions: $(VENV)/.libs-done $(VENV)/.tools-build ## count the instructions of a borrowed argument, by callgrind
	$(call say,building the benchmark's module and running bench/instructions.py)
	@$(BENCH_CONFIGURE) > /dev/null
	@$(CMAKE) --build $(BUILD)/bench --target bench_tenon
	@PYTHONPATH=$(BUILD)/bench/modules $(PY) bench/instructions.py $(BENCH_ARGS)

bench-compile: $(VENV)/.made-$(VERSION) $(VENV)/.tools-bench ## time compiling modules, and count their code, against the peers'
	$(call say,running bench/compile_time.py)
	@$(PY) bench/compile_time.py $(BENCH_ARGS)

GPU_BUILD := build/bench-gpu

bench-gpu: ## time CUDA arrays and their streams against the peers, with what GPU_PYTHON=python3 has
	@if $(GPU_PYTHON) bench/gpu.py --can-run; then $(MAKE) bench-gpu-here; fi

bench-gpu-here:
	$(call say,building the GPU page and running bench/gpu.py)
	@cmake -S . -B $(GPU_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DTENON_WERROR=OFF -DTENON_BUILD_TESTS=OFF \
		-DTENON_BUILD_BENCH=ON -DTENON_BENCH_GPU=ON -DTENON_BENCH_DIR=$(CURDIR)/$(GPU_BUILD)/modules \
		-DPython_EXECUTABLE="$$($(GPU_PYTHON) -c 'import sys; print(sys.executable)')" > /dev/null
	@cmake --build $(GPU_BUILD) --target bench_gpu -- -k 0 \
		|| echo "==> not everything was built: what is missing is left out, and named"
	@PYTHONPATH=$(GPU_BUILD)/modules $(GPU_PYTHON) bench/gpu.py $(BENCH_ARGS)

# --- checks ---------------------------------------------------------------------------------------

check: ## format, ruff and mypy, layers, calls of others, headers, clang-tidy
	@$(MAKE) check-format
	@$(MAKE) check-python
	@$(MAKE) check-layers
	@$(MAKE) check-foreign-code
	@$(MAKE) check-headers
	@$(MAKE) check-tidy

check-format: $(VENV)/.tools-lint ## is every C and C++ file formatted?
	$(call say,checking the format of $(words $(CXX_FILES)) files)
	@$(VENV)/bin/clang-format --dry-run -Werror $(CXX_FILES)

# The engine in one piece, as it is compiled.
TIDY_FILES = src/core.cpp src/python.cpp $(shell find python/src tests/cpp tests/python/native -name '*.cpp')

check-tidy: $(VENV)/.tools-lint $(VENV)/.tools-build $(VENV)/.tools-test ## clang-tidy over the extension and the tests
	$(call say,running clang-tidy)
	@$(CMAKE) $(CMAKE_FLAGS) -B $(BUILD)/tidy -DCMAKE_BUILD_TYPE=Debug -DTENON_BUILD_PYTHON=ON > /dev/null
	@printf '%s\n' $(TIDY_FILES) | xargs -P $$(nproc) -n 1 $(VENV)/bin/clang-tidy --quiet -p $(BUILD)/tidy \
		--header-filter='^$(CURDIR)/(include/tenon|src|python/src)/' --extra-arg=-Wno-unknown-warning-option

check-layers: $(VENV)/.made-$(VERSION) ## does any #include go up or sideways?
	$(call say,checking the layers)
	@$(PY) tools/check_layers

check-foreign-code: $(VENV)/.made-$(VERSION) ## does anything call code of others but through foreign_code?
	$(call say,checking the calls that can run code of others)
	@$(PY) tools/check_foreign_code

check-headers: $(VENV)/.made-$(VERSION) $(VENV)/.tools-test ## does every header compile alone, with a banner, within 500 lines?
	$(call say,compiling every header alone)
	@$(PY) tools/check_headers

check-python: $(VENV)/.tools-lint $(VENV)/.tools-test ## ruff over all Python files, mypy over the package
	$(call say,running ruff)
	@$(VENV)/bin/ruff check --quiet $(PYTHON_FILES)
	$(call say,running mypy)
	@$(PY) -m mypy

fmt: $(VENV)/.tools-lint ## format every C and C++ file
	$(call say,formatting $(words $(CXX_FILES)) files)
	@$(VENV)/bin/clang-format -i $(CXX_FILES)

clean: ## remove build/; the virtual environments stay (rm -rf .venv*)
	$(call say,removing build/)
	@rm -rf build
	@rm -f .venv*/.package

FORCE:
