# Every target works on a fresh clone: it makes .venv and installs first, once per change of pyproject.toml or
# constraints.txt, which has the exact versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all fuzz sanitize smoke bench propositions lint docs constraints licences lowest wheel-test clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet pip==26.3
	# By name and first: on a machine without a GPU install the CPU build before.
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --build-constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	rm -rf demo/run
	$(BIN)/graphwright train demo --out demo/run
	$(BIN)/graphwright report demo/run --out demo/report.html --title 'graphwright demo'

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Two processes of one thread each, a file of tests in one of them; make test PARALLEL= for one process.
PARALLEL ?= -n 2 --dist loadfile
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PARALLEL)

# The kernels' own tests run on torch in `test`, too; here everything does.
test-all: lint
	$(BIN)/python -m pytest -m 'slow or not slow'
	GRAPHWRIGHT_NATIVE=off $(BIN)/python -m pytest

# Every reader under a coverage-guided fuzzer, 60,000 inputs each; findings and corpora are in build/fuzzing.
fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[fuzz]'
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

# The newest versions that pyproject.toml allows become the ones that are tested. Then: make licences test.
constraints: $(STAMP)
	rm -rf build/newest
	$(PYTHON) -m venv build/newest
	build/newest/bin/python -m pip install --quiet pip==26.3 torch==2.13.0 setuptools
	build/newest/bin/python -m pip install --quiet '.[dev]'
	build/newest/bin/python -m supply_chain.constraints > build/constraints.txt
	mv build/constraints.txt constraints.txt

licences: $(STAMP)
	$(BIN)/python -m supply_chain.licences > docs/licences.md

# The unit tests with the lowest versions that pyproject.toml allows. Warnings of old libraries are not errors there.
LOWEST_TESTS ?= tests/unit
lowest: $(STAMP)
	mkdir -p build
	$(BIN)/python -m supply_chain.lowest > build/lowest.txt
	test -x build/lowest/bin/python || $(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet torch==2.13.0
	build/lowest/bin/python -m pip install --quiet --constraint build/lowest.txt --editable '.[bench,chem,image,ray,serve,spectra,train]' httpx hypothesis packaging pytest pytest-randomly
	build/lowest/bin/python -m pytest -o filterwarnings=default --disable-warnings $(LOWEST_TESTS)

# The wheel in an environment with nothing else: first the core alone, then every shipped model.
wheel-test: $(STAMP)
	rm -rf build/wheel build/empty build/lib
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet torch==2.13.0
	build/empty/bin/python -m pip install --quiet --constraint constraints.txt build/wheel/*.whl
	cd build && empty/bin/python -I ../supply_chain/core_check.py
	build/empty/bin/python -m pip install --quiet --constraint constraints.txt "$$(ls build/wheel/*.whl)[chem,image,spectra]"
	cd build && empty/bin/python -I ../supply_chain/wheel_check.py

clean:
	rm -rf $(VENV) build site demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
