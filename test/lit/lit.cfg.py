"""lit's settings: IR tests, `// RUN: mlc-opt %s … | FileCheck %s`.

Run `lit test/lit` with the interpreter whose environment has mlc installed; `mlc-opt` and the others come from that
environment's `bin`, FileCheck and `not` from the LLVM wheel that mlc is built with.
"""

# ruff: noqa: F821  (lit defines `config`)
from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import lit.formats

config.name = "mlc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(__file__).resolve().parents[2] / "out" / "lit")

spec = importlib.util.find_spec("llvm")
tools = [str(Path(sys.executable).parent)]
tools += [str(Path(folder) / "bin") for folder in (spec.submodule_search_locations or [])] if spec else []
config.environment["PATH"] = os.pathsep.join([*tools, os.environ.get("PATH", "")])
# Assertions of FileCheck are easier to read with the input around them.
config.environment["FILECHECK_OPTS"] = "--dump-input=fail --dump-input-context=10"
