"""Layers that differ in scales and zero points only: as many kernels as of equal layers, and the same bits as with a
kernel for each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.passes.fuse.share_kernels import ShareKernels

WIDTH = 48
DIFFERENT = [(0.0213, 125), (0.0187, 130), (0.0304, 133)]
EQUAL = [DIFFERENT[0]] * 3


def _model(layers: Sequence[tuple[float, int]], codes: type, rows: int | str) -> onnx.ModelProto:
    """Products whose left operands are rounded to codes, each by a scale and a zero point of its own."""
    rng = np.random.default_rng(7)
    nodes, weights, value = [], [], "x"
    for n, (scale, zero) in enumerate(layers):
        weights += [
            numpy_helper.from_array(np.float32(scale), f"s{n}"),
            numpy_helper.from_array(codes(zero if codes is np.uint8 else zero - 128), f"z{n}"),
            numpy_helper.from_array(rng.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32), f"w{n}"),
        ]
        nodes += [
            helper.make_node("QuantizeLinear", [value, f"s{n}", f"z{n}"], [f"q{n}"]),
            helper.make_node("DequantizeLinear", [f"q{n}", f"s{n}", f"z{n}"], [f"d{n}"]),
            helper.make_node("Softmax", [f"d{n}"], [f"p{n}"]),
            helper.make_node("Add", [f"d{n}", f"p{n}"], [f"a{n}"]),
            helper.make_node("MatMul", [f"a{n}", f"w{n}"], [f"y{n}"]),
        ]
        value = f"y{n}"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, WIDTH])]
    outputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "layers", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _compiled(proto: onnx.ModelProto, path: Path, **options: object) -> list[dict]:
    """The kernels of the library that is written to `path`."""
    report = path.with_suffix(".json")
    mlc.compile(proto, output=path, report=report, cache=False, load=False, **options)
    kernels: list[dict] = json.loads(report.read_text())["kernels"]
    return kernels


def _input(rows: int, scale: float) -> np.ndarray:
    """Numbers between codes, where ties go to even, beyond the last code, and some that are no numbers."""
    x = np.random.default_rng(3).integers(-300, 300, (rows, WIDTH)).astype(np.float32) * np.float32(0.5 * scale)
    x[0, :3] = 1e9, -1e9, -0.0
    x[-1, :3] = np.inf, -np.inf, np.nan
    return x


@pytest.mark.parametrize("rows", [5, "n"])
@pytest.mark.parametrize(("codes", "precision"), [(np.uint8, "fp32"), (np.int8, "fp32"), (np.uint8, "bf16")])
def test_layers_with_other_numbers_share_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codes: type, precision: str, rows: int | str
) -> None:
    proto = _model(DIFFERENT, codes, rows)
    shared = _compiled(proto, tmp_path / "shared.so", precision=precision)
    equal = _compiled(_model(EQUAL, codes, rows), tmp_path / "equal.so", precision=precision)
    assert len(shared) == len(equal)
    assert sorted(k["launches"] for k in shared) == sorted(k["launches"] for k in equal)
    _compiled(proto, tmp_path / "again.so", precision=precision)
    assert (tmp_path / "again.so").read_bytes() == (tmp_path / "shared.so").read_bytes()

    monkeypatch.setattr(ShareKernels, "run", lambda self, root: None)
    apart = _compiled(proto, tmp_path / "apart.so", precision=precision)
    assert len(apart) > len(shared)
    libraries = [mlc.load(tmp_path / f"{name}.so") for name in ("shared", "apart")]
    for scale, _ in DIFFERENT:
        x = _input(5, scale)
        one, other = (list(library.run({"x": x}).values())[0] for library in libraries)
        assert one.tobytes() == other.tobytes()
        assert np.isfinite(one[1:-1]).all() and one[1:-1].std() > 0


@pytest.mark.parametrize("codes", [np.uint8, np.int8])
def test_codes_about_a_zero_point_that_is_an_input(tmp_path: Path, codes: type) -> None:
    """Two kernels of the same shape that give the codes themselves: those of the definition."""
    nodes, weights, outputs = [], [], []
    for n, (scale, zero) in enumerate(DIFFERENT):
        zero = zero if codes is np.uint8 else zero - 128 + 5
        weights.append(numpy_helper.from_array(np.float32(scale), f"s{n}"))
        weights.append(numpy_helper.from_array(codes(zero), f"z{n}"))
        nodes += [
            helper.make_node("Neg", [f"x{n}"], [f"m{n}"]),
            helper.make_node("QuantizeLinear", [f"m{n}", f"s{n}", f"z{n}"], [f"q{n}"]),
        ]
        outputs.append(helper.make_tensor_value_info(f"q{n}", helper.np_dtype_to_tensor_dtype(np.dtype(codes)), [4, 37]))
    inputs = [helper.make_tensor_value_info(f"x{n}", TensorProto.FLOAT, [4, 37]) for n in range(3)]
    graph = helper.make_graph(nodes, "codes", inputs, outputs, weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    assert len(_compiled(proto, tmp_path / "codes.so")) == 1
    values = {f"x{n}": np.random.default_rng(n).integers(-400, 400, (4, 37)) * 0.5 for n in range(3)}
    x = {name: (v * DIFFERENT[n][0]).astype(np.float32) for n, (name, v) in enumerate(values.items())}
    found = mlc.load(tmp_path / "codes.so").run(x)
    limits = np.iinfo(codes)
    for n, (scale, zero) in enumerate(DIFFERENT):
        zero = zero if codes is np.uint8 else zero - 128 + 5
        wanted = np.clip(np.rint(-x[f"x{n}"] / np.float32(scale)) + zero, limits.min, limits.max)
        np.testing.assert_array_equal(found[f"q{n}"], wanted.astype(codes))
