"""Products of floats with weights of few bits: against float64, the size of the file, and that no copy in f32 is made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models.few_bits import Weight
from onnx import TensorProto, helper, numpy_helper

import mlc


def _proto(nodes: list[onnx.NodeProto], shape: list[int | str], weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "streamed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=10)


def _check(tmp_path: Path, proto: onnx.ModelProto, weight: np.ndarray, lead: tuple[int, ...], cpu: str) -> mlc.Model:
    path = tmp_path / "model.so"
    model = mlc.compile(proto, output=path, cpu=cpu)
    assert path.stat().st_size < 2 * weight.size + 250_000  # integers and scales; floats would take four bytes each
    for batch in (lead, (1,) * len(lead), (3,) * len(lead)):
        x = np.random.default_rng(len(batch)).standard_normal((*batch, weight.shape[0])).astype(np.float32)
        [got] = model(x)
        want = x.astype(np.float64) @ weight
        np.testing.assert_allclose(got, want, atol=2e-5 * np.abs(want).max())
    return model


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize(("bits", "block", "has_zeros"), [(4, 32, True), (4, 16, False), (8, 64, True), (2, 32, False)])
def test_matmul_n_bits(tmp_path: Path, bits: int, block: int, has_zeros: bool, cpu: str) -> None:
    """The zero points are packed too; a number of columns that panels do not divide; a depth that blocks do not."""
    depth, columns = (700, 1000) if bits == 4 else (512, 640)
    proto, weight = Weight(bits, block, depth, columns, has_zeros).model("b", 0, ("a",))
    model = _check(tmp_path, proto, weight, (2, 5), cpu)
    template = "scaled_blocks" if depth % (32 // bits) == 0 else "contraction"
    assert template in [kernel["template"] for kernel in model.metadata["kernels"]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("kind", ["tensor", "column", "blocks"])
def test_dequantize_linear(tmp_path: Path, kind: str, dtype: type) -> None:
    rng, info = np.random.default_rng(1), np.iinfo(dtype)
    codes = rng.integers(info.min, info.max + 1, (384, 400)).astype(dtype)
    shape = {"tensor": (), "column": (400,), "blocks": (12, 400)}[kind]
    scale = np.asarray(rng.random(shape) + 0.1, np.float32)
    zero = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    attributes = {"tensor": {}, "column": {"axis": 1}, "blocks": {"axis": 0, "block_size": 32}}[kind]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], **attributes),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    wide = [scale.astype(np.float64), np.asarray(zero, np.float64)]
    spread = [v.repeat(32, 0) if kind == "blocks" else v for v in wide]
    weight = (codes.astype(np.float64) - spread[1]) * spread[0]
    proto = _proto(nodes, ["a", 384], {"w": codes, "s": scale, "z": np.asarray(zero)})
    _check(tmp_path, proto, weight, (7,), "native")


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_dequantize_linear_of_four_bits(tmp_path: Path, kind: int, has_zeros: bool) -> None:
    """As onnxruntime's quantizer writes it for engines without `MatMulNBits`: codes with a sign and without."""
    rng, low = np.random.default_rng(2), -8 if kind == TensorProto.INT4 else 0
    codes, zeros = (rng.integers(low, low + 16, shape) for shape in ((512, 416), (16, 416)))
    scale = (rng.random((16, 416)) + 0.1).astype(np.float32)
    given = ["w", "s", "z"] if has_zeros else ["w", "s"]
    nodes = [
        helper.make_node("DequantizeLinear", given, ["d"], axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    proto = _proto(nodes, ["a", 512], {"s": scale})
    for name, values in {"w": codes, "z": zeros}.items():
        if name in given:
            proto.graph.initializer.append(helper.make_tensor(name, kind, values.shape, values.reshape(-1).tolist()))
    weight = (codes - (zeros.repeat(32, 0) if has_zeros else 0)) * scale.repeat(32, 0).astype(np.float64)
    model = _check(tmp_path, proto, weight, (20,), "native")
    assert "scaled_blocks" in [kernel["template"] for kernel in model.metadata["kernels"]]


@pytest.mark.parametrize("kind", ["column", "blocks"])
@pytest.mark.parametrize("rows", [1, 40, "a"])
def test_half_precision(tmp_path: Path, rows: int | str, kind: str) -> None:
    """Rows, scales and results are f16: codes are multiplied as those of a model of f32 are."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 16 if kind == "blocks" else 256, (512, 416)).astype(np.uint8)
    scale = (rng.random((16, 416) if kind == "blocks" else (416,)) * 0.01).astype(np.float16)
    zero = np.full(scale.shape, 8 if kind == "blocks" else 128, np.uint8)
    attributes = {"axis": 0, "block_size": 32} if kind == "blocks" else {"axis": 1}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], **attributes),
        helper.make_node("MatMul", ["x", "d"], ["m"]),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    proto = _proto(nodes, [rows, 512], {"w": codes, "s": scale, "z": zero})
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    model = mlc.compile(proto, output=tmp_path / "model.so")
    assert (tmp_path / "model.so").stat().st_size < 2 * codes.size + 250_000
    spread = scale.astype(np.float64).repeat(32, 0) if kind == "blocks" else scale.astype(np.float64)
    weight = (codes - zero.astype(np.float64)[: 1 if kind == "blocks" else None]) * spread
    for count in (1, 7, 40) if rows == "a" else (rows,):
        x = rng.standard_normal((count, 512)).astype(np.float16)
        [got] = model(x)
        want = np.maximum(x.astype(np.float64) @ weight, 0)
        assert got.dtype == np.float16
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=2**-11, atol=2e-5 * np.abs(want).max())
    if kind == "blocks":
        assert "scaled_blocks" in [kernel["template"] for kernel in model.metadata["kernels"]]
