"""Imports the ONNX text (as `onnx.parser` reads it) of a lit test and prints the module: lines that start with // are not
part of the model. Options as in `import_model`: --dim NAME=LOW..HIGH[/K], --shape NAME=2,N,3, --output NAME."""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx.parser
from mlir import ir

import mlc.compiler_setup  # noqa: F401
from mlc.frontends.onnx import DimRange, import_model
from mlc.frontends.report import ModelError
from mlc.weights.store import Store


def dim(text: str) -> tuple[str, DimRange]:
    """NAME=LOW..HIGH/K, NAME=N."""
    name, bounds = text.split("=")
    limits, _, multiple = bounds.partition("/")
    low, _, high = limits.partition("..")
    return name, DimRange(int(low), int(high or low), int(multiple or 1))


def shape(text: str) -> tuple[str, list[int | str]]:
    """NAME=2,N,3."""
    name, extents = text.split("=")
    return name, [int(extent) if extent.isdigit() else extent for extent in extents.split(",")]


def main() -> int:
    """Prints the module, or the report of a model that cannot be imported."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--dim", type=dim, action="append", default=[])
    parser.add_argument("--shape", type=shape, action="append", default=[])
    parser.add_argument("--output", action="append")
    parser.add_argument("--locations", action="store_true")
    options = parser.parse_args()
    lines = options.file.read_text().splitlines()
    model = onnx.parser.parse_model("\n".join(line for line in lines if not line.startswith("//")))
    shapes, dims = dict(options.shape), dict(options.dim)
    try:
        module = import_model(
            model, ir.Context(), store=Store(), input_shapes=shapes, dims=dims, outputs=options.output
        )
    except ModelError as error:
        print(error)
        return 1
    print(module.operation.get_asm(enable_debug_info=options.locations))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
