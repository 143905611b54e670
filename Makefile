# Two commands do everything on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# What backends do differently: layers; on JAX precision and training too. JAX compiles
# each operation of the theory's tests for each shape, which takes it minutes.
ON_TORCH := tests/test_conformance.py tests/layers tests/theory
ON_JAX := tests/test_conformance.py tests/layers tests/theory/test_bfloat16_precision.py \
	tests/training/test_fit.py

# For daily work: the core.
CORE := tests/test_kernels.py tests/test_spline_kernels.py \
	tests/layers/test_gauss_der_conv.py tests/layers/test_on_grids.py

# Side by side, a file's tests in one process: they share what is slow to make. The
# order of the files is that of tests/conftest.py.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadscope \
	--no-loadscope-reorder
NOT_SLOW := -m "not slow and not endurance"

.PHONY: demo test test-slow slow jax check core lint test-matrix docs endurance bench clean

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py

test: $(INSTALLED)
	$(MAKE) --jobs=2 lint docs
	BUILT_DOCS=build/docs KERAS_BACKEND=tensorflow $(PYTEST) $(NOT_SLOW)

# The rest: what takes long on TensorFlow, and what differs on other backends.
test-slow: $(INSTALLED)
	$(MAKE) --jobs=2 slow jax
	if $(BIN)/python -c "import torch" 2>/dev/null; then \
		KERAS_BACKEND=torch $(PYTEST) $(ON_TORCH); \
		else echo "Not tested on PyTorch, which is not installed."; fi

slow: $(INSTALLED)
	KERAS_BACKEND=tensorflow nice -n 4 $(PYTEST) -m "slow and not endurance"

# One process beside those of TensorFlow, so that it compiles everything once. It goes
# first, for they can use what it leaves at its end, and it could not.
jax: $(INSTALLED)
	@mkdir -p build
	@echo "Testing on JAX too; what it reports comes when it is through."
	@KERAS_BACKEND=jax $(BIN)/python -m pytest $(ON_JAX) > build/jax.txt 2>&1; \
		status=$$?; cat build/jax.txt; exit $$status

check: $(INSTALLED)
	$(MAKE) --jobs=2 lint core

core: $(INSTALLED)
	KERAS_BACKEND=tensorflow $(PYTEST) $(NOT_SLOW) $(CORE)

# On the oldest supported versions, which are those of Colab, and on the newest.
test-matrix:
	$(MAKE) test test-slow VENV=.venv-oldest PINS="keras==3.13.* tensorflow==2.20.*"
	$(MAKE) test test-slow VENV=.venv

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/pyright --pythonpath $(BIN)/python

endurance: $(INSTALLED)
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -m endurance
	KERAS_BACKEND=jax $(BIN)/python -m pytest -m endurance tests/training/test_killed.py
	KERAS_BACKEND=jax $(BIN)/python -m pytest tests/theory tests/models tests/evaluation \
		tests/visualization tests/training/test_killed.py

docs: $(INSTALLED)
	rm -rf build/docs
	TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m sphinx -E -W -q docs build/docs

bench: $(INSTALLED)
	$(BIN)/python benchmarks/run.py

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --editable ".[test]" $(PINS)
	touch $@

clean:
	rm -rf $(VENV) .venv-oldest build dist .pytest_cache .ruff_cache
