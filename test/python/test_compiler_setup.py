"""The contexts that the compiler makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mlir import ir

from mlc._native import host_info
from mlc.compiler_setup import DIALECTS, GPU_DIALECTS, new_context
from mlc.passes.base import discover
from mlc.pipelines.cpu import phases
from mlc.targets.cpu import resolve


def test_a_context_has_what_passes_build_with() -> None:
    assert {name for info in discover().values() for name in info.dialects} <= {*DIALECTS, *GPU_DIALECTS}
    with new_context() as context, ir.Location.unknown():
        for name in ("mlc.softmax", "arith.addi", "cf.br", "gpu.thread_id", "llvm.call", "nvvm.barrier0", "ub.poison"):
            assert context.is_registered_operation(name)
        assert not context.is_registered_operation("spirv.FAdd")


def test_a_context_for_cpus_has_what_their_passes_build_with() -> None:
    passes = [p.split("{")[0] for _, names in phases(resolve("x86-64-v3", host_info())) for p in names]
    made = {name for p in passes if p in discover() for name in discover()[p].dialects}
    assert "llvm" in made and made <= set(DIALECTS)
    with new_context(gpu=False) as context, ir.Location.unknown():
        assert context.is_registered_operation("llvm.call")
        assert not context.is_registered_operation("gpu.thread_id")


def test_a_compilation_for_cpus_loads_nothing_for_gpus(tmp_path: Path) -> None:
    """Nor the package that makes the Python of every named operation, which takes as long as a small model."""
    program = f"""
import onnx, sys, mlc
from onnx import TensorProto, helper
values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"])], "g", values[:1], values[1:])
mlc.compile(helper.make_model(graph), output={str(tmp_path / "m.so")!r}, cache=False, load=False)
names = ("mlc.kernels.nvidia", "mlir.dialects.gpu", "mlir.dialects.nvvm", "mlir.dialects.linalg")
print(sorted(m for m in sys.modules if m.startswith(names)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_the_parser_loads_what_else_it_meets() -> None:
    with new_context():
        module = ir.Module.parse(
            "func.func @f(%a: complex<f32>) -> f32 { %0 = complex.re %a : complex<f32> return %0 : f32 }"
        )
        assert "complex.re" in str(module)
