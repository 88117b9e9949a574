"""The boundary verifier accepts what each phase may contain and names what it may not."""

from __future__ import annotations

import pytest
from linalg_runner import context
from mlir import ir

from mlc.targets.claims import CLAIMS

ADD = '%r = mlc.binary add %x, %x : tensor<4xf32> loc("encoder/Add")'
SOFTMAX = '%r = mlc.softmax %x {axis = 0 : i64} : tensor<4xf32> loc("encoder/Softmax")'
GENERIC = """%e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) ATTRS {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32> loc("encoder/Mul")"""


def verify(body: str, phase: str, attributes: str = "", result: str = "%r") -> None:
    from mlc.passes.verify import verify_phase

    function = f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body}\nreturn {result} : tensor<4xf32> }}"
    with context():
        verify_phase(ir.Module.parse(f"module {attributes} {{ {function} }}"), phase)


@pytest.mark.parametrize("phase", ["import", "simplify", "decompose", "layout"])
def test_primitives_belong_to_the_tensor_phases(phase: str) -> None:
    verify(ADD, phase)


def test_composites_are_gone_after_decompose_unless_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CLAIMS, "nvidia", frozenset({"attention"}))
    verify(SOFTMAX, "simplify")
    with pytest.raises(ValueError, match=r"mlc.softmax \(node 'encoder/Softmax'\): is a composite"):
        verify(SOFTMAX, "decompose")
    attention = "%q = mlc.reshape %x [1, 1, 2, 2] : tensor<4xf32> -> tensor<1x1x2x2xf32>\n"
    attention += "%a = mlc.attention %q, %q, %q : TYPE, TYPE, TYPE -> TYPE\n".replace("TYPE", "tensor<1x1x2x2xf32>")
    attention += "%r = mlc.reshape %a [4] : tensor<1x1x2x2xf32> -> tensor<4xf32>"
    verify(attention, "layout", 'attributes {mlc.target = "nvidia:h200"}')
    with pytest.raises(ValueError, match="composite"):
        verify(attention, "layout", 'attributes {mlc.target = "cpu:native"}')


def test_linalg_form() -> None:
    verify(GENERIC.replace("ATTRS", ""), "linalg")
    with pytest.raises(ValueError, match=r"mlc.binary \(node 'encoder/Add'\): has not been lowered"):
        verify(ADD, "linalg")
    with pytest.raises(ValueError, match=r"linalg.generic \(node 'encoder/Mul'\): is marked mlc.contraction"):
        verify(GENERIC.replace("ATTRS", "attrs = {mlc.contraction}"), "linalg")


def test_sizes_of_intermediate_results() -> None:
    chain = "%d = mlc.slice %x [0] [%m] [1] : tensor<4xf32> -> tensor<?xf32>"
    body = f"{ADD}\n%c = arith.constant 0 : index\n%m = arith.constant 2 : index\n{chain}\n"
    verify(body, "simplify")
    with pytest.raises(ValueError, match="follows from its operands"):
        verify(body + "%n = tensor.dim %d, %c : tensor<?xf32>", "simplify")


def test_reductions_start_from_a_filled_tensor() -> None:
    generic = """linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%y : tensor<4x1xf32>) outs(START : tensor<4xf32>) {
      ^bb0(%a: f32, %o: f32):
        %0 = arith.addf %a, %o : f32
        linalg.yield %0 : f32
      } -> tensor<4xf32>"""
    before = """%y = tensor.expand_shape %x [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4xf32>
      %s = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>"""
    verify(f"{before}\n%r = {generic.replace('START', '%s')}", "linalg")
    with pytest.raises(ValueError, match="not a filled tensor"):
        verify(f"{before}\n%r = {generic.replace('START', '%e')}", "linalg")


def test_launches_name_kernels() -> None:
    body = """%e = tensor.empty() : tensor<4xf32>
      %r = mlc.launch @k0(%x) outs(%e) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>"""
    with pytest.raises(ValueError, match="launches @k0, which does not exist"):
        verify(body, "kernels")


def test_tensors_are_gone_after_buffers() -> None:
    with pytest.raises(ValueError, match="still works on tensors"):
        verify(ADD, "buffers")


def test_unknown_phase() -> None:
    with pytest.raises(ValueError, match="unknown phase 'lower'"):
        verify(ADD, "lower")
