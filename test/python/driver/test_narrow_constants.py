"""Constants of element types narrower than a byte, and of small floats: in the program and in the weight image."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

TYPES = ["int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float8_e4m3fn", "float8_e8m0fnu", "bfloat16"]


def gathered(table: np.ndarray) -> onnx.ModelProto:
    """Rows of `table` as floats, chosen at run time."""
    nodes = [
        helper.make_node("Gather", ["w", "i"], ["v"]),
        helper.make_node("Cast", ["v"], ["y"], to=TensorProto.FLOAT),
    ]
    inputs = [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", table.shape[1]])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(table, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])


@pytest.mark.parametrize("shape", [(3, 5), (40, 30)])
@pytest.mark.parametrize("name", TYPES)
def test_rows(name: str, shape: tuple[int, int]) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    numbers = np.random.default_rng(2).integers(0, 16, shape)
    bits = ml_dtypes.iinfo(dtype).bits if "int" in name else 4
    if name.startswith("int"):
        numbers = numbers % (1 << bits) - (1 << bits >> 1)
    elif name.startswith("uint"):
        numbers = numbers % (1 << bits)
    real = 2.0 ** (numbers - 8) if name == "float8_e8m0fnu" else numbers / 2 - 3
    table = numbers.astype(dtype) if "int" in name else real.astype(np.float32).astype(dtype)
    chosen = np.array([2, 0, 1, 2], np.int64)
    got = mlc.compile(gathered(table))(i=chosen)[0]
    np.testing.assert_array_equal(got, table[chosen].astype(np.float32))
