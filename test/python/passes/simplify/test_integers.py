"""Quantized graphs whose contractions multiply integers: within one step of the graph's definition, whole networks
against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from models.processors import templates_of_bytes
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc import _native

OF_BYTES = templates_of_bytes()


def _quantized_chain(
    middle: Sequence[onnx.NodeProto], left: type, right: type, weight: np.ndarray, per_channel: bool, axis: int
) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Nodes from codes `x` to codes `q` around `middle`, which reads the floats `a`, `b` and gives `y`."""
    top = np.iinfo(right).max if right is np.int8 else 127
    extent = weight.shape[axis]
    axes = tuple(i for i in range(weight.ndim) if i != axis) if per_channel else None
    scale = (np.abs(weight).max(axes) / top).astype(np.float32)
    spread = scale.reshape([extent if i == axis else 1 for i in range(weight.ndim)]) if per_channel else scale
    zero = np.full(extent if per_channel else (), 0 if right is np.int8 else 128, right)
    offset = 0 if right is np.int8 else 128
    codes = np.clip(np.rint(weight / spread) + offset, np.iinfo(right).min, np.iinfo(right).max).astype(right)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["b"], axis=axis),
        *middle,
        helper.make_node("QuantizeLinear", ["y", "sy", "zy"], ["q"]),
    ]
    weights = {"sx": np.float32(0.02), "zx": left(40 if left is np.uint8 else -20), "w": codes, "sw": scale, "zw": zero}
    return nodes, {**weights, "zy": left(3)}


def _proto(
    nodes: Sequence[onnx.NodeProto], shape: Sequence[int], left: type, weights: dict, result: str = "q"
) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(left))
    graph = helper.make_graph(
        list(nodes),
        "quantized",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT if result == "y" else kind, None)],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _defined(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """The result of onnxruntime without optimisations: floats between the nodes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def _check(
    tmp_path: Path,
    nodes: list[onnx.NodeProto],
    shape: Sequence[int],
    left: type,
    weights: dict,
    cpu: str = "native",
) -> mlc.Model:
    """Differences from the definition of at most one step, and few."""
    info = np.iinfo(left)
    x = np.random.default_rng(1).integers(info.min, info.max + 1, shape).astype(left)
    top = np.abs(_defined(_proto(nodes[:-1], shape, left, weights, "y"), x)).max()
    proto = _proto(nodes, shape, left, {**weights, "sy": np.float32(top / 100)})
    want = _defined(proto, x)
    model = mlc.compile(proto, output=tmp_path / "model.so", cpu=cpu)
    [got] = model(x)
    steps = np.abs(got.astype(np.int32) - want.astype(np.int32))
    assert got.dtype == want.dtype and np.unique(want).size > 20
    assert steps.max() <= 1 and (steps > 0).mean() < 0.01
    return model


@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("signs", [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)], ids=str)
def test_product(tmp_path: Path, signs: tuple[type, type], per_channel: bool) -> None:
    """One kernel from codes to codes."""
    left, right = signs
    w = np.random.default_rng(0).standard_normal((70, 90)).astype(np.float32)
    middle = [
        helper.make_node("MatMul", ["a", "b"], ["m"]),
        helper.make_node("Add", ["m", "bias"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    nodes, weights = _quantized_chain(middle, left, right, w, per_channel, 1)
    bias = np.random.default_rng(2).standard_normal(90).astype(np.float32)
    model = _check(tmp_path, nodes, [11, 70], left, {**weights, "bias": bias})
    [kernel] = model.metadata["kernels"]
    assert kernel["template"] in OF_BYTES


@pytest.mark.parametrize("groups", [1, 4, 16], ids=["plain", "grouped", "depthwise"])
@pytest.mark.parametrize("signs", [(np.uint8, np.int8), (np.int8, np.int8)], ids=str)
def test_convolution(tmp_path: Path, signs: tuple[type, type], groups: int) -> None:
    """With a bias, a residual sum and padding that stands for the zero point."""
    left, right = signs
    w = np.random.default_rng(0).standard_normal((16, 16 // groups, 3, 3)).astype(np.float32)
    middle = [
        helper.make_node("Conv", ["a", "b", "bias"], ["m"], pads=[1, 1, 1, 1], group=groups),
        helper.make_node("Add", ["m", "a"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    nodes, weights = _quantized_chain(middle, left, right, w, True, 0)
    bias = np.random.default_rng(2).standard_normal(16).astype(np.float32)
    model = _check(tmp_path, nodes, [2, 16, 9, 9], left, {**weights, "bias": bias})
    templates = [k["template"] for k in model.metadata["kernels"]]
    if groups < 16 or {"+avx512vnni", "+avxvnni"} & set(_native.host_info()["features"]):
        assert (OF_BYTES if groups < 16 else {"depthwise_quads"}) & set(templates)


@pytest.mark.parametrize("cpu", ["native", "x86-64"])
def test_convolution_of_codes_that_are_never_negative(tmp_path: Path, cpu: str) -> None:
    """Codes with a sign of what a ReLU gives: only the change of layout makes a copy of them, padding does not."""
    w = np.random.default_rng(0).standard_normal((24, 10, 3, 3)).astype(np.float32)
    middle = [
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sr", "zr"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "sr", "zr"], ["d"]),
        helper.make_node("Conv", ["d", "b"], ["y"], pads=[1, 1, 1, 1]),
    ]
    nodes, weights = _quantized_chain(middle, np.int8, np.int8, w, True, 0)
    weights |= {"sr": np.float32(0.02), "zr": np.int8(0)}
    model = _check(tmp_path, nodes, [2, 10, 9, 11], np.int8, weights, cpu)
    templates = [k["template"] for k in model.metadata["kernels"]]
    assert len(templates) == 3 and OF_BYTES & set(templates)


def test_of_two_activations_stay_floats(tmp_path: Path) -> None:
    """And the module says why."""
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["a"]),
        helper.make_node("Transpose", ["a"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["a", "t"], ["y"]),
        helper.make_node("QuantizeLinear", ["y", "sy", "zx"], ["q"]),
    ]
    weights = {"sx": np.float32(0.1), "zx": np.uint8(9)}
    model = _check(tmp_path, nodes, [12, 20], np.uint8, weights)
    assert not OF_BYTES & {k["template"] for k in model.metadata["kernels"]}


@pytest.mark.parametrize("form", ["QDQ", "QOperator", "dynamic"])
def test_network_of_onnxruntime(tmp_path: Path, form: str) -> None:
    """What onnxruntime's quantizer makes of a small network, against onnxruntime."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    source, target = tmp_path / "float.onnx", tmp_path / "quantized.onnx"
    onnx.save(_network(), source)
    x = np.random.default_rng(3).standard_normal((1, 8, 16, 16)).astype(np.float32)
    if form == "dynamic":
        quantization.quantize_dynamic(source, target, weight_type=quantization.QuantType.QInt8, reduce_range=True)
    else:

        class Reader(quantization.CalibrationDataReader):
            rest = [{"x": x}]

            def get_next(self) -> dict[str, np.ndarray] | None:
                return self.rest.pop() if self.rest else None

        # Weights of seven bits: onnxruntime adds two products in 16 bits where a processor has AVX2 and no VNNI.
        chosen = quantization.QuantFormat[form]
        quantization.quantize_static(source, target, Reader(), quant_format=chosen, reduce_range=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    [want] = onnxruntime.InferenceSession(target, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    model = mlc.compile(target, output=tmp_path / "model.so")
    [got] = model(x)
    assert OF_BYTES & {k["template"] for k in model.metadata["kernels"]}
    # Steps of the quantized results, and what differences of one step before them come to.
    assert np.abs(got - want).max() <= 0.03 * np.abs(want).max()


def _network() -> onnx.ModelProto:
    rng = np.random.default_rng(4)
    weights = {
        "f1": rng.standard_normal((16, 8, 3, 3)) * 0.2,
        "b1": rng.standard_normal(16),
        "f2": rng.standard_normal((16, 16, 1, 1)) * 0.3,
        "b2": rng.standard_normal(16),
        "w": rng.standard_normal((16, 40)) * 0.3,
    }
    nodes = [
        helper.make_node("Conv", ["x", "f1", "b1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "f2", "b2"], ["c2"]),
        helper.make_node("Add", ["r1", "c2"], ["s"]),
        helper.make_node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Flatten", ["g"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 40])],
        [numpy_helper.from_array(v.astype(np.float32), name) for name, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
