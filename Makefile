# make run, make test: everything from a fresh machine. The other targets are their parts.

PYTHON ?= python3
JOBS ?= $(shell nproc)
export CCACHE_SLOPPINESS := pch_defines,time_macros

.PHONY: run test build setup sanitize bench format lint docs clean

run: build
	build/isochron --version

test: setup
	cmake --preset default
	cmake --build --preset default -j $(JOBS)
	ctest --test-dir build --output-on-failure -j $(JOBS)

build: setup
	cmake --preset default -DISOCHRON_BUILD_TESTS=OFF
	cmake --build --preset default -j $(JOBS) --target isochron_program

setup:

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean:
	rm -rf build build-*
