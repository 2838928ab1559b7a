# make run, make test: everything from a fresh machine. The other targets are their parts.
#
#   JOBS=2        compile and test in parallel; all cores by default
#   PYTHON=..     the python to use
#   LENGTHS=..    make bench: a folder of length files

PYTHON ?= python3
JOBS ?= $(shell nproc)
LENGTHS ?= $(wildcard ../shared/lengths)
SOURCES = git ls-files '*.h' '*.cpp' '*.cu' '*.cuh'
export CCACHE_SLOPPINESS := pch_defines,time_macros
# Paths relative to the tree: a second clone finds what the first one compiled.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := true
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: run test build wheel stubs bench bench-context bench-peers bench-training mutations format lint docs clean

run: build
	PYTHONPATH=python .venv/bin/python examples/first_run.py build/isochron recipes build/run

test:
	cmake/setup.sh program engine python tests peers
	cmake --preset engine -DISOCHRON_BUILD_TESTS=ON -DISOCHRON_BUILD_PYTHON=ON -DISOCHRON_BUILD_BENCH=ON
	cmake --build --preset engine -j $(JOBS)
	cmake --preset sanitize
	cmake --build --preset sanitize -j $(JOBS)
	$(PYTHON) tests/run.py $(JOBS) engine sanitize

# Tests stay on where `make test` has switched them on: nothing is configured back and forth.
build:
	cmake/setup.sh program engine
	cmake --preset engine $(if $(wildcard build/CMakeCache.txt),,-DISOCHRON_BUILD_TESTS=OFF)
	cmake --build --preset engine -j $(JOBS) --target isochron_program

# The Python package with the planner: dist/isochron-*.whl
wheel:
	cmake/setup.sh python
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) .venv/bin/pip wheel -q --disable-pip-version-check \
	  --no-build-isolation --no-deps -w dist .

# The types of the extension, for editors and type checkers.
stubs:
	cmake/setup.sh program python
	cmake --preset default -DISOCHRON_BUILD_PYTHON=ON
	cmake --build --preset default -j $(JOBS) --target isochron_python
	PYTHONPATH=python .venv/bin/python -m nanobind.stubgen -q -P -m isochron._planner -o python/isochron/_planner.pyi

bench:
	cmake/setup.sh program bench
	cmake --preset bench
	cmake --build --preset bench -j $(JOBS) --target planner_bench plan_bench
	$(PYTHON) bench/compare.py --program build-bench/bench/planner_bench --lengths "$(LENGTHS)"
	$(PYTHON) bench/compare_plans.py --program build-bench/bench/plan_bench --lengths "$(LENGTHS)"

# The drop-ins beside verl, slime and Megatron; WRITE=--write keeps the page.
bench-peers:
	cmake/setup.sh program engine python peers
	cmake --preset default -DISOCHRON_BUILD_PYTHON=ON
	cmake --build --preset default -j $(JOBS) --target isochron_python
	PYTHONPATH=python .venv/bin/python bench/compare_peers.py --lengths "$(LENGTHS)" $(WRITE)

# Training beside transformers: the cores are for this alone.
bench-training: build
	.venv/bin/python bench/compare_training.py --program build/isochron

# Ranks that share long rows, planned and measured: the cores are for this alone.
bench-context: build
	.venv/bin/python bench/compare_context.py --program build/isochron --lengths "$(LENGTHS)"

# Breaks the engine on purpose: every mutation must fail the tests. Takes a quarter of an hour.
mutations:
	cmake/setup.sh program engine tests
	cmake --preset engine -DISOCHRON_BUILD_TESTS=ON
	$(PYTHON) tests/engine/mutations.py build --jobs $(JOBS)

format:
	cmake/setup.sh lint
	$(SOURCES) | xargs clang-format -i
	.venv/bin/ruff format

lint:
	cmake/setup.sh program tests lint
	$(SOURCES) | xargs clang-format --dry-run -Werror
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	cmake --preset default -DISOCHRON_BUILD_TESTS=ON
	git ls-files 'isochron/*.cpp' 'apps/*.cpp' ':!isochron/engine' | xargs -P $(JOBS) -n 1 clang-tidy -p build --quiet

docs:
	cmake/setup.sh program tests
	cmake --preset default -DISOCHRON_BUILD_TESTS=ON
	cmake --build --preset default -j $(JOBS) --target print_options
	build/docs/print_options > docs/options.md.tmp
	mv docs/options.md.tmp docs/options.md

clean:
	rm -rf build build-* dist python/isochron/_planner*.so
