PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check
# Which build of torch: cpu where there is no NVIDIA GPU, else that of the default index (CUDA on
# Linux). To choose yourself: make TORCH=default, or make TORCH=cpu, before the first install.
TORCH ?= $(if $(shell command -v nvidia-smi),default,cpu)
CPU_INDEX := --index-url https://download.pytorch.org/whl/cpu --no-deps --retries 0 --timeout 10

.PHONY: run demo test lint ruff types site bench golden soak proofs wheel reference

.venv/ready: requirements.txt pyproject.toml setup.py
	$(PYTHON) -m venv .venv
ifeq ($(TORCH),cpu)
	$(PIP) install $(CPU_INDEX) $(shell grep '^torch==' requirements.txt) 2>/dev/null || \
	  echo "The index of CPU builds cannot be reached: torch comes from the default index."
endif
	$(PIP) install -r requirements.txt
	$(PIP) install --no-deps -e .
	touch $@

run: .venv/ready
	$(BIN)/cotlab demo --if-empty
	$(BIN)/cotlab app

demo: .venv/ready
	$(BIN)/cotlab demo

# make test ONLY=metrics: the tests of one room, those that import from it, floors and golden digests
test: .venv/ready
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0 $(if $(ONLY),$(sort tests/$(ONLY)/ tests/golden/ tests/test_floors.py $(shell grep -rlE 'cotlab[./]$(ONLY)\b' tests --include='test_*.py')))

# what moved beside tests/golden/frozen; make golden WRITE=1 writes it anew
golden: .venv/ready
	$(BIN)/python tests/golden/freeze.py $(if $(WRITE),,--compare)

# make -j2 lint: its parts side by side, each on one core
lint: ruff types site

ruff: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy --strict cotlab

site: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: .venv/ready
	.ci/wheel.sh

bench: .venv/ready
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

# make proofs AREA=run: the long proofs of one room; make proofs: all that have not passed for this commit
proofs: .venv/ready
	.ci/proofs $(AREA)

soak: proofs

reference: .venv/ready
	$(BIN)/python -m cotlab.cli.reference
	$(BIN)/python docs/generate.py
