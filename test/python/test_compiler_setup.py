"""The contexts that the compiler makes."""

from __future__ import annotations

from mlir import ir

from mlc.compiler_setup import DIALECTS, new_context
from mlc.passes.base import discover


def test_a_context_has_what_passes_build_with() -> None:
    assert {name for info in discover().values() for name in info.dialects} <= set(DIALECTS)
    with new_context() as context, ir.Location.unknown():
        for name in ("mlc.softmax", "arith.addi", "cf.br", "gpu.thread_id", "llvm.call", "nvvm.barrier0", "ub.poison"):
            assert context.is_registered_operation(name)
        assert not context.is_registered_operation("spirv.FAdd")


def test_the_parser_loads_what_else_it_meets() -> None:
    with new_context():
        module = ir.Module.parse(
            "func.func @f(%a: complex<f32>) -> f32 { %0 = complex.re %a : complex<f32> return %0 : f32 }"
        )
        assert "complex.re" in str(module)
