#!/usr/bin/env python3
"""One library with dimensions that only a run knows, against libraries that are compiled for one extent each.

    python bench/dynamic.py net.onnx --dim batch=1 --dim tokens=1,7,128,1000

For every combination of the extents given: the results are compared first, then both libraries are timed in
interleaved rounds (one burst of calls each in turn). Prints medians and least times, and the ratio fixed / dynamic
(below 1: a library of that extent is faster). Dimensions are those that the file names; each gets an extent. Exits 1
when results differ by more than 1e-4 of the largest magnitude.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import measure
import onnx

TOLERANCE = 1e-4


def dim_option(text: str) -> tuple[str, list[int]]:
    """`tokens=1,7` -> name and values."""
    name, _, values = text.partition("=")
    return name, [int(value) for value in values.split(",")]


def shapes_at(model: Path, dims: Mapping[str, int]) -> measure.Shapes:
    """The shapes of the model's inputs where its named dimensions have the extents `dims`. Ends the program when one
    has no extent."""
    shapes = {}
    for value in onnx.load(model, load_external_data=False).graph.input:
        extents = [d.dim_value or dims.get(d.dim_param, 0) for d in value.type.tensor_type.shape.dim]
        if 0 in extents:
            unknown = value.type.tensor_type.shape.dim[extents.index(0)].dim_param or "a dimension without a name"
            raise SystemExit(f"{model.name}: input {value.name} has {unknown}; give its extent: --dim {unknown}=8")
        shapes[value.name] = tuple(extents)
    return shapes


def bench(model: Path, dims: Mapping[str, int], free: Path, threads: list[int], rounds: int) -> bool:
    """Prints a line for each number of threads; whether both libraries agree."""
    import mlc

    inputs = measure.random_inputs(model, shapes_at(model, dims))
    shown = " ".join(f"{name}={extent}" for name, extent in dims.items())
    right = True
    with tempfile.TemporaryDirectory() as folder:
        fixed = Path(folder) / "fixed.so"
        mlc.compile(model, output=fixed, dims=dict(dims))
        for count in threads:
            engines = {
                "fixed": measure.mlc_engine(fixed, inputs, count),
                "dynamic": measure.mlc_engine(free, inputs, count),
            }
            error = measure.worst_error(engines["dynamic"](), engines["fixed"]())
            samples = measure.interleave(engines, rounds)
            one, any_ = samples["fixed"], samples["dynamic"]
            ratios = f"fixed / dynamic {one.median / any_.median:5.3f}, least times {one.best / any_.best:5.3f}"
            verdict = "" if error <= TOLERANCE else "   DIFFERS"
            times = f"fixed {one.median:9.3f} ms   dynamic {any_.median:9.3f} ms"
            print(f"{shown:<24} {count} thread(s)  {times}   {ratios}   error {error:.1e}{verdict}", flush=True)
            right &= not verdict
    return right


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("model", type=Path, help="an ONNX file with named dimensions")
    parser.add_argument("--dim", action="append", default=[], type=dim_option, metavar="NAME=1,7", required=True)
    parser.add_argument("--threads", type=lambda t: [int(n) for n in t.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    measure.check_files([options.model])
    names, values = zip(*options.dim, strict=True)
    import mlc

    with tempfile.TemporaryDirectory() as folder:
        free = Path(folder) / "dynamic.so"
        mlc.compile(options.model, output=free)
        results = [
            bench(options.model, dict(zip(names, extents, strict=True)), free, options.threads, options.rounds)
            for extents in itertools.product(*values)
        ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
