"""Codes that lose their signs stand for the same numbers: the same bits, whatever is quantized."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from mlir import ir
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.compiler_setup import new_context
from mlc.interp.module import run_function
from mlc.passes.base import run_pipeline
from mlc.weights import Store

FILTERS = ("f1", "f2", "f3")
PRODUCT = """
func.func @f(%x: tensor<16x16xi8>) -> (tensor<16x8xf32>, tensor<16x16xf32>) {{
  %s = mlc.constant dense<0.7> : tensor<f32>
  %t = mlc.constant dense<0.1> : tensor<f32>
  %z = mlc.constant dense<{zero}> : tensor<i8>
  %w = mlc.weight "w" : tensor<16x8xi8>
  %v = mlc.dequantize %w, %t : tensor<16x8xi8>, tensor<f32> -> tensor<16x8xf32>
  %0 = mlc.dequantize %x, %s : tensor<16x16xi8>, tensor<f32> -> tensor<16x16xf32>
  %1 = mlc.quantize %0, %t zero_point(%z : tensor<i8>) : tensor<16x16xf32>, tensor<f32> -> tensor<16x16xi8>
  %2 = mlc.dequantize %1, %t zero_point(%z : tensor<i8>) : tensor<16x16xi8>, tensor<f32> -> tensor<16x16xf32>
  %3 = mlc.matmul %2, %v {{mlc.integers}} : tensor<16x16xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  return %3, %2 : tensor<16x8xf32>, tensor<16x16xf32>
}}
"""


@pytest.fixture
def context() -> Iterator[None]:
    with new_context(), ir.Location.unknown():
        yield


@pytest.mark.parametrize("zero", [-128, -5, 0, 127])
def test_numbers_stay(context: None, zero: int) -> None:
    """All codes of a byte, most of them beyond both ends when they are quantized again."""
    module, store = ir.Module.parse(PRODUCT.format(zero=zero)), Store("test-drop-signs")
    store.add("w", np.random.default_rng(0).integers(-127, 128, (16, 8)).astype(np.int8))
    codes = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
    [function] = module.body.operations
    want = run_function(function, [codes], store)
    run_pipeline(module, ["mlc-drop-signs"])
    assert str(module).count("{unsigned}") == 2
    [function] = module.body.operations
    for one, other in zip(run_function(function, [codes], store), want, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def _network(dtype: type, zero: int) -> onnx.ModelProto:
    """Padded convolutions, plain and depthwise, a sum and maxima of windows, all of them between quantizations."""
    rng = np.random.default_rng(3)
    weights = {"z": dtype(zero), "s": np.float32(0.05), "sw": np.float32(0.01)}
    weights |= {
        name: rng.integers(-127, 128, (16, 16 if name != "f2" else 1, 3, 3)).astype(np.int8) for name in FILTERS
    }
    nodes: list[onnx.NodeProto] = []

    def quantized(source: str, name: str) -> str:
        nodes.append(helper.make_node("QuantizeLinear", [source, "s", "z"], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"], [name]))
        return name

    def convolved(source: str, number: int) -> str:
        nodes.append(helper.make_node("DequantizeLinear", [f"f{number}", "sw"], [f"w{number}"]))
        inputs, groups = [source, f"w{number}"], 16 if number == 2 else 1
        nodes.append(helper.make_node("Conv", inputs, [f"c{number}"], pads=[1, 1, 1, 1], group=groups))
        return quantized(f"c{number}", f"y{number}")

    first = convolved(quantized("x", "a"), 1)
    second = convolved(first, 2)
    nodes.append(helper.make_node("Add", [first, second], ["sum"]))
    nodes.append(helper.make_node("MaxPool", [quantized("sum", "b")], ["p"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    convolved(quantized("p", "c"), 3)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 10, 9])]
    outputs = [helper.make_tensor_value_info("y3", TensorProto.FLOAT, None)]
    initializers = [numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()]
    graph = helper.make_graph(nodes, "network", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("zero", [-128, -9, 0])
def test_networks_with_signs_and_without(tmp_path: Path, zero: int, cpu: str) -> None:
    """Give the same bits."""
    x = np.random.default_rng(4).standard_normal((1, 16, 10, 9)).astype(np.float32) * 3
    results = []
    for dtype, point in ((np.int8, zero), (np.uint8, zero + 128)):
        model = mlc.compile(_network(dtype, point), output=tmp_path / f"{dtype.__name__}.so", cpu=cpu)
        results.append(model(x)[0])
    assert np.unique(results[0]).size > 20
    np.testing.assert_array_equal(*results)
