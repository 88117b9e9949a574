#!/usr/bin/env python3
"""A matrix product against the machine's arithmetic peak.

    python bench/gemm.py [--sizes 256,512,1024] [--threads 1,2] [--rounds 15]

Makes an ONNX model of one MatMul, `[N, N] x [N, N]` with a constant right side (the usual case: a weight),
compiles it with mlc, and times it against onnxruntime in interleaved rounds. Prints medians, GFLOP/s and the
share of the fp32 peak: what a loop of multiply-adds reaches on this machine in the same rounds. Exits
1 when a result is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import measure
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mlc.bench.peak import Peak, build

TOLERANCE = 1e-5


def write_model(size: int, weight: np.ndarray, path: Path) -> None:
    """`y = x @ w` of `size` cubed, `w` constant."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "gemm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size, size])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def bench(size: int, thread_counts: list[int], rounds: int) -> bool:
    """Prints one line for each engine and thread count; whether every result was right."""
    generator = np.random.default_rng(size)
    x = generator.standard_normal((size, size), dtype=np.float32)
    weight = generator.standard_normal((size, size), dtype=np.float32)
    expected = x.astype(np.float64) @ weight.astype(np.float64)
    right = True
    with tempfile.TemporaryDirectory() as folder:
        model, library = Path(folder) / "gemm.onnx", Path(folder) / "gemm.so"
        write_model(size, weight, model)
        seconds = measure.compile_model(model, library)
        print(f"{size}^3: compiled in {seconds:.1f} s")
        program = build(Path(folder))
        for threads in thread_counts:
            peak = Peak(program, threads)
            engines = {
                "mlc": measure.mlc_engine(library, {"x": x}, threads),
                "onnxruntime": measure.onnxruntime_engine(model, {"x": x}, threads),
            }
            errors = {name: measure.worst_error(run(), [expected]) for name, run in engines.items()}
            samples = measure.interleave(engines, rounds, peak.sample)
            for name, sample in samples.items():
                rate = 2.0 * size**3 / sample.median * 1e-6
                share = f"{rate / peak.best:6.1%} of {peak.best:.0f}" if peak.best else ""
                verdict = "" if errors[name] <= TOLERANCE else "   WRONG"
                right &= not verdict
                print(
                    f"  {threads} thread(s)  {name:<12} {sample.median:8.3f} ms  {rate:7.1f} GFLOP/s  "
                    f"{share}   error {errors[name]:.1e}{verdict}"
                )
    return right


def integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--sizes", type=integers, default=[512], help="comma-separated (default 512)")
    parser.add_argument("--threads", type=integers, default=[1, 2], help="comma-separated (default 1,2)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    results = [bench(size, options.threads, options.rounds) for size in options.sizes]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
