"""Rounding to bf16 without an instruction for it: integers in place of a call for every element."""

from __future__ import annotations

import mlir.ir as ir
import pytest

import mlc.compiler_setup  # noqa: F401
from mlc import _native
from mlc.codegen.bf16_rounding import round_in_integers, rounds_in_integers
from mlc.codegen.contexts import thread_context
from mlc.codegen.object import Target, Unit, compile_unit
from mlc.targets.cpu import resolve

_KERNEL = """
module @k attributes {{mlc.kernel}} {{
  func.func @k(%o: memref<f32> {{llvm.noalias}}, %error: memref<2xi64>, %begin: index, %end: index) {{
    %m = memref.reinterpret_cast %o to offset: [0], sizes: [64], strides: [1] : memref<f32> to memref<64xf32>
    {body}
    return
  }}
  func.func @k_grid() -> index {{
    %n = arith.constant 1 : index
    return %n : index
  }}
}}"""
_VECTOR = """%v = vector.load %m[%begin] : memref<64xf32>, vector<8xf32>
    %t = arith.truncf %v : vector<8xf32> to vector<8xbf16>
    %r = arith.extf %t : vector<8xbf16> to vector<8xf32>
    vector.store %r, %m[%begin] : memref<64xf32>, vector<8xf32>"""
_NUMBER = """%v = memref.load %m[%begin] : memref<64xf32>
    %t = arith.truncf %v : f32 to bf16
    %r = arith.extf %t : bf16 to f32
    memref.store %r, %m[%begin] : memref<64xf32>"""


@pytest.mark.parametrize("body", [_VECTOR, _NUMBER], ids=["vector", "number"])
@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4"])
def test_no_function_is_called(body: str, cpu: str) -> None:
    chosen = resolve(cpu, _native.host_info())
    data = compile_unit(Unit("k", _KERNEL.format(body=body)), Target(chosen.triple, chosen.cpu, chosen.features))
    assert b"__truncsfbf2" not in data


def test_only_f32_becomes_integers() -> None:
    text = """func.func @f(%a: vector<4xf32>, %b: f32, %c: vector<4xf64>, %d: f32) -> (vector<4xbf16>, bf16, vector<4xf32>, f16) {
      %0 = arith.truncf %a : vector<4xf32> to vector<4xbf16>
      %1 = arith.truncf %b : f32 to bf16
      %2 = arith.truncf %c : vector<4xf64> to vector<4xf32>
      %3 = arith.truncf %d : f32 to f16
      return %0, %1, %2, %3 : vector<4xbf16>, bf16, vector<4xf32>, f16
    }"""
    with thread_context():
        module = ir.Module.parse(text)
        round_in_integers(module)
        assert module.operation.verify()
        rounded = str(module)
    assert rounded.count("arith.truncf") == 2 and rounded.count("arith.cmpf uno") == 2
    assert "vector<4xf64> to vector<4xf32>" in rounded and "f32 to f16" in rounded


def test_which_targets_have_an_instruction() -> None:
    features = {cpu: resolve(cpu, _native.host_info()).features for cpu in ("x86-64-v4", "icelake-server", "znver4")}
    assert {cpu: rounds_in_integers(listed) for cpu, listed in features.items()} == {
        "x86-64-v4": True,
        "icelake-server": True,
        "znver4": False,
    }
