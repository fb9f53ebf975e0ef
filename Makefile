# Relaxide: `make demo` shows it at work, `make test` checks it. Both install what is missing, build and run.
SHELL := /bin/sh
.DEFAULT_GOAL := help

LLVM = $(shell scripts/llvm-version)
PY := .venv/bin/python
# llvm-sys finds its LLVM through a variable with the version in its name.
export LLVM_SYS_191_PREFIX := /usr/lib/llvm-19
export LLVM_SYS_201_PREFIX := /usr/lib/llvm-20
export LLVM_SYS_211_PREFIX := /usr/lib/llvm-21
export LLVM_SYS_221_PREFIX := /usr/lib/llvm-22
FEATURES = --no-default-features --features llvm$(LLVM)
# The extension takes the interpreter's symbols from the process that loads it.
export PYO3_BUILD_EXTENSION_MODULE := 1

.PHONY: help setup compiler build release demo page test test-deep bench package size docs fuzz asan tsan lint clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: ## install LLVM and the Python environment if they are missing
	@scripts/setup

compiler:
	@scripts/setup compiler

# Packages for Python come over the network while the processors compile.
PACKAGES = scripts/setup
# What is compiled beside the runtime of WebAssembly modules, which keeps one core busy.
BESIDE = :
COMPILE = cargo build --quiet --release -p relaxide-cli -p relaxide-python -p relaxide-onnxruntime $(FEATURES)
build: compiler ## the `relaxide` command and libonnxruntime.so (in build/), and the Python package (in .venv)
	@echo "Compiling; the first time takes some minutes ..."
	@($(PACKAGES)) & packages=$$!; trap 'kill $$packages' INT TERM; $(COMPILE) || { kill $$packages; exit 1; }; wait $$packages
	@mkdir -p build && ln -sf ../target/release/relaxide build/relaxide
	@for name in libonnxruntime.so libonnxruntime.so.1; do ln -sf ../target/release/libonnxruntime.so build/$$name; done
	@($(BESIDE)) & beside=$$!; scripts/wasm-runtime if-possible && wait $$beside
	@scripts/install-python
	@$(PY) -m relaxide.relax.op._stub
	@echo "built: build/relaxide, build/libonnxruntime.so, and 'relaxide' for $(PY)"

release: compiler ## the command, libonnxruntime and a wheel with LLVM inside, for machines without it (in dist/)
	@scripts/setup static-libraries
	@scripts/release

demo: build ## read the text in two pictures with three compiled networks
	@$(PY) examples/ocr/ocr.py

# Many tests wait for another process, so one more at a time than there are cores keeps all of them busy.
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell echo $$(($$(nproc) + 1)))
export RUST_TEST_THREADS ?= $(shell nproc)

# Random tests draw the same cases every time; test-deep draws new ones.
test: export PROPTEST_RNG_SEED ?= 20260911
# All at once, so that what both are made of is compiled once and no processor waits for the last crate of the first half.
test: COMPILE = cargo build --quiet --release --workspace --lib --bins --tests --examples $(FEATURES)
# The C library with remote calls, which tests link.
test: BESIDE = cargo build --quiet --release -p relaxide-capi --features rpc
test: export RUSTC_WRAPPER ?= $(CURDIR)/scripts/rustc-of-tests
test: PACKAGES += && scripts/setup test-tools
test: build ## all tests that a change must pass
	scripts/tests $(FEATURES)

test-deep: test ## exhaustive sweeps and long fuzzing
	RELAXIDE_DEEP=1 cargo test --release --workspace --no-fail-fast $(FEATURES)
	RELAXIDE_DEEP=1 $(PY) -m pytest -q -n auto --dist loadfile --no-loadscope-reorder --timeout 0 tests python/tests

page: build ## a page that reads the text in pictures, on http://127.0.0.1:8000
	@$(PY) examples/browser/serve.py

bench: build ## Relaxide, ONNX Runtime and TVM side by side on the models
	$(PY) bench/models.py

package: ## the runtime as a Debian package for C and C++, and as a wheel for Python (in dist/)
	@scripts/debian
	@scripts/wheel

size: ## how large the runtime alone is
	@scripts/size

docs: ## the documentation as a site (in build/site)
	@scripts/site

fuzz: ## every fuzz target for ten minutes
	@scripts/fuzz

asan: ## the runtime's tests under AddressSanitizer
	@scripts/sanitize address

tsan: ## the runtime's concurrent tests under ThreadSanitizer
	@scripts/sanitize thread

lint: ## formatting, clippy, licences; also advisories where cargo-deny is installed
	@scripts/lint

clean: ## remove everything that was built
	rm -rf target build dist .venv
