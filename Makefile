PYTHON ?= python3
BIN := .venv/bin

.PHONY: run demo test lint bench soak reference

.venv/ready: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

run: .venv/ready
	$(BIN)/cotlab demo --if-empty
	$(BIN)/streamlit run app.py

demo: .venv/ready
	$(BIN)/cotlab demo

test: .venv/ready
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/mypy --strict cotlab

bench: .venv/ready
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

soak: .venv/ready
	$(BIN)/python -m pytest -n 2 -m soak

reference: .venv/ready
	$(BIN)/python -m cotlab.cli.reference
