"""Codes from two multiplications are those of a division, next to where they change and at the ends of the floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.passes.lower import invert_scales
from mlc.passes.lower.invert_scales import inverse

SCALES = [0.0173, 0.02, 1 / 3, 0.25, 1.0078125, 3.7e-3, 16777215.0, 1.1e-17]


def _numbers(scale: np.float32, low: int, high: int) -> np.ndarray:
    """Floats about everything that may be rounded up or down, some in between, and the ends of what a float can be."""
    halves = np.arange(2 * low - 9, 2 * high + 9, dtype=np.float64) / 2
    about = (halves * scale).astype(np.float32)
    near = np.unique((about.view(np.int32)[:, np.newaxis] + np.arange(-40, 41, dtype=np.int32)).ravel())
    between = np.random.default_rng(5).uniform(low - 40, high + 40, 100_000) * scale
    ends = [np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, -1e-45, 1e-38, 0.0, -0.0]
    numbers = np.concatenate([near.view(np.float32), between.astype(np.float32), np.array(ends, np.float32)])
    return numbers[~np.isnan(numbers)]


def _codes(x: np.ndarray, scale: np.float32, zero: int, dtype: type) -> np.ndarray:
    with np.errstate(over="ignore"):
        whole = np.rint(x / scale) + zero
    info = np.iinfo(dtype)
    return np.clip(whole, info.min, info.max).astype(dtype)


@pytest.mark.parametrize("scale", SCALES)
def test_both_parts_have_one_sign_and_add_up(scale: float) -> None:
    exact = float(np.float32(scale))
    parts = inverse(exact, -128, 127)
    assert parts is not None
    high, low = parts
    assert high > 0 and low > 0 and abs((high + low) * exact - 1) < 2.0**-45


@pytest.mark.parametrize("scale", [0.0, -0.02, float("inf"), float("nan"), 1e-30, 1e30])
def test_scales_that_keep_their_division(scale: float) -> None:
    assert inverse(scale, -128, 127) is None


def test_a_scale_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """One float beside the right one is found out."""

    def beside(x: np.ndarray, factor: np.float32, addend: np.ndarray) -> np.ndarray:
        return np.nextafter((x.astype(np.float64) * factor + addend).astype(np.float32), np.float32(np.inf))

    monkeypatch.setattr(invert_scales, "_fused", beside)
    assert inverse(float(np.float32(0.0871)), -128, 127) is None


def test_sums_are_rounded_once() -> None:
    """Products and addends of which a sum in f64 is between two floats only after it was rounded."""
    x, factor = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-12)  # 1 + 2^-11 + 2^-24: halfway between two floats
    for addend, expected in ((2.0**-70, 1 + 2.0**-11 + 2.0**-23), (-(2.0**-70), 1 + 2.0**-11), (0.0, 1 + 2.0**-11)):
        assert invert_scales._fused(np.array([x]), factor, np.array([addend], np.float32)) == np.float32(expected)


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, 114), (np.int8, -5)])
@pytest.mark.parametrize("scale", SCALES)
def test_codes_are_those_of_a_division(scale: float, dtype: type, zero: int, cpu: str, tmp_path: Path) -> None:
    step, info = np.float32(scale), np.iinfo(dtype)
    x = _numbers(step, info.min - zero, info.max - zero)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    outputs = [helper.make_tensor_value_info("y", kind, x.shape)]
    constants = [numpy_helper.from_array(step, "s"), numpy_helper.from_array(np.array(zero, dtype), "z")]
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    graph = helper.make_graph([node], "quantize", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    compiled = mlc.compile(model, output=tmp_path / "q.so", cpu=cpu)
    np.testing.assert_array_equal(compiled(x=x)[0], _codes(x, step, zero, dtype))
