# Every target works on a fresh clone: it makes .venv and installs first, once per change of pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all fuzz sanitize smoke bench propositions lint docs clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	# Pinned, so that the same build is tested everywhere; on a machine without a GPU install the CPU build first.
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	rm -rf demo/run
	$(BIN)/graphwright train demo --out demo/run
	$(BIN)/graphwright report demo/run --out demo/report.html --title 'graphwright demo'

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest

# The kernels' own tests run on torch in `test`, too; here everything does.
test-all: lint
	$(BIN)/python -m pytest -m 'slow or not slow'
	GRAPHWRIGHT_NATIVE=off $(BIN)/python -m pytest

# Every reader under a coverage-guided fuzzer, 1,140,000 inputs in all; findings and corpora are in build/fuzzing.
fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]'
	$(BIN)/python -m fuzzing

# The tests of plans on kernels that end the process where they leave an array or do what C++ does not define.
# Python's own leaks are none of ours. Torch asks for a name that only the C++ library knows, before it loads it.
PRELOADED = $(foreach name,libasan.so libubsan.so libstdc++.so,$(shell g++ -print-file-name=$(name)))
sanitize: $(STAMP)
	CXX=$(CURDIR)/fuzzing/sanitizing-c++ GRAPHWRIGHT_CACHE=$(CURDIR)/build/sanitized GRAPHWRIGHT_SANITIZED=on \
	LD_PRELOAD="$(PRELOADED)" ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
	$(BIN)/python -m pytest -p no:cacheprovider tests/unit/transport tests/unit/losses tests/unit/matching \
	tests/property/test_transport.py tests/property/test_theory.py

# Every table and figure of the paper with models that have learned nothing; tests do the same.
smoke: $(STAMP)
	$(BIN)/graphwright reproduce all --scale smoke --out build/smoke

bench: $(STAMP)
	mkdir -p build
	$(BIN)/python -m benchmarks all --json build/bench.json

# The paper's propositions, computed and drawn.
propositions: $(STAMP)
	$(BIN)/graphwright reproduce propositions --scale cpu --out build

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build site demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
