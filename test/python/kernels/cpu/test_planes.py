"""Depthwise convolutions that stand alone, and pools along lines: strided loads, padding at the ends of lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc
from mlc.compilation import Compilation
from mlc.options import make_options

# channels, height, width, window, pads (top, left, bottom, right), strides, dilations
CASES = {
    "three vectors and a half": (3, 28, 28, (5, 5), (2, 2, 2, 2), (1, 1), (1, 1)),
    "ends of one, two and four elements": (3, 9, 15, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1)),
    "3x3": (5, 14, 14, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1)),
    "5x5 on half vectors": (3, 7, 7, (5, 5), (2, 2, 2, 2), (1, 1), (1, 1)),
    "strided": (3, 30, 37, (3, 3), (1, 1, 1, 1), (2, 2), (1, 1)),
    "5x5 strided": (2, 29, 56, (5, 5), (2, 2, 2, 2), (2, 2), (1, 1)),
    "5x5 strided by 2 and 1, of padding on one side": (2, 12, 40, (5, 5), (0, 0, 3, 4), (2, 1), (1, 1)),
    "stride 3": (2, 20, 101, (3, 3), (0, 1, 0, 0), (3, 3), (1, 1)),
    "dilated": (4, 15, 50, (3, 3), (2, 2, 2, 2), (1, 1), (2, 2)),
    "dilated and strided": (4, 15, 70, (3, 3), (3, 3, 3, 3), (2, 2), (3, 3)),
    "without padding": (4, 9, 70, (3, 3), (0, 0, 0, 0), (1, 1), (1, 1)),
    "window larger than the image": (3, 2, 3, (7, 7), (3, 3, 3, 3), (1, 1), (1, 1)),
    "one row of the filter": (3, 6, 33, (1, 5), (0, 2, 0, 2), (1, 2), (1, 1)),
    "1x1 strided": (3, 6, 33, (1, 1), (0, 0, 0, 0), (1, 2), (1, 1)),
}
Case = tuple[int, int, int, Sequence[int], Sequence[int], Sequence[int], Sequence[int]]  # as in the comment above


def _compiled(
    tmp_path: Path, nodes: Sequence[onnx.NodeProto], shape: Sequence[int | str], constants: dict[str, np.ndarray]
) -> tuple[mlc.Model, ReferenceEvaluator]:
    """The model, compiled and for the reference evaluator."""
    graph = helper.make_graph(
        list(nodes),
        "planes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(proto, tmp_path / "model.onnx")
    return mlc.compile(tmp_path / "model.onnx", output=tmp_path / "model.so"), ReferenceEvaluator(proto)


def _templates(model: mlc.Model) -> list[str]:
    return [kernel["template"] for kernel in model.metadata["kernels"]]


@pytest.mark.parametrize("name", CASES)
def test_depthwise_convolution_that_stands_alone(tmp_path: Path, name: str) -> None:
    case: Case = CASES[name]
    channels, height, width, window, pads, strides, dilations = case
    rng = np.random.default_rng(1)
    constants = {
        "f": rng.standard_normal((channels, 1, *window)).astype(np.float32),
        "b": rng.standard_normal(channels).astype(np.float32),
    }
    conv = helper.make_node(
        "Conv", ["x", "f", "b"], ["c"], pads=pads, strides=strides, dilations=dilations, group=channels
    )
    nodes = [conv, helper.make_node("Relu", ["c"], ["y"])]
    shape = (2, channels, height, width)
    model, reference = _compiled(tmp_path, nodes, shape, constants)
    assert _templates(model) == ["planes"]
    x = rng.standard_normal(shape).astype(np.float32)
    (expected,) = reference.run(None, {"x": x})
    np.testing.assert_allclose(model(x)[0], expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    "cpu, width, taps, stride, chosen",
    [
        ("x86-64-v3", 28, 5, 1, (8, 1, 0)),  # four vectors take less time than seven halves
        ("x86-64-v3", 56, 3, 2, (8, 1, 1)),
        ("x86-64-v3", 14, 3, 2, (8, 1, 1)),
        ("x86-64-v3", 14, 5, 2, (8, 1, 0)),  # one vector, all of it masked
        ("x86-64-v3", 84, 3, 3, (4, 0, 0)),  # where elements are picked across the halves they do not
        ("x86-64-v3", 7, 3, 1, (8, 1, 0)),
        ("x86-64-v3", 4, 3, 1, (4, 0, 0)),
        ("x86-64-v3", 56, 3, 1, (8, 0, 0)),
        ("znver4", 28, 5, 1, (16, 0, 0)),
        ("znver4", 14, 5, 2, (8, 0, 0)),
    ],
)
def test_choice(tmp_path: Path, cpu: str, width: int, taps: int, stride: int, chosen: tuple[int, ...]) -> None:
    nodes = [helper.make_node("Conv", ["x", "f"], ["y"], pads=[taps // 2] * 4, strides=[stride] * 2, group=3)]
    shapes = {"x": [1, 3, width, width], "y": None}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    weight = numpy_helper.from_array(np.ones((3, 1, taps, taps), np.float32), "f")
    graph = helper.make_graph(nodes, "planes", ends[:1], ends[1:], [weight])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    report = tmp_path / "report.json"
    Compilation(make_options(cpu=cpu, report=report)).run(proto, tmp_path / "m.so")
    schedule = json.loads(report.read_text())["kernels"][0]["schedule"]
    assert (schedule["lanes"], schedule.get("pieces", 0), schedule.get("halves", 0)) == chosen


def test_depthwise_convolution_between_others_is_channels_last(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    constants = {
        "f": rng.standard_normal((4, 1, 3, 3)).astype(np.float32),
        "g": rng.standard_normal((8, 4, 1, 1)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "f"], ["c"], pads=[1] * 4, group=4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "g"], ["y"]),
    ]
    model, reference = _compiled(tmp_path, nodes, (1, 4, 9, 9), constants)
    assert "planes" not in _templates(model)
    x = rng.standard_normal((1, 4, 9, 9)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], reference.run(None, {"x": x})[0], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("width", [15, 41, 64])
def test_strided_pools_along_lines(tmp_path: Path, width: int, stride: int, dynamic: bool) -> None:
    """Every `stride`-th element of a line is read, up to its last one, also in a masked vector."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 3], strides=[2, stride], pads=[0, 1, 1, 1])
    model, reference = _compiled(tmp_path, [node], (1, 3, 8, "w" if dynamic else width), {})
    assert ("planes" in _templates(model)) is not dynamic
    x = np.random.default_rng(0).standard_normal((1, 3, 8, width)).astype(np.float32)
    np.testing.assert_array_equal(model(x)[0], reference.run(None, {"x": x})[0])


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_average_pool_over_planes(tmp_path: Path, stride: int, counted: int) -> None:
    pads, window = [1, 0, 2, 1], [3, 2]
    node = helper.make_node(
        "AveragePool", ["x"], ["y"], kernel_shape=window, strides=[stride] * 2, pads=pads, count_include_pad=counted
    )
    model, reference = _compiled(tmp_path, [node], (2, 3, 9, 35), {})
    assert "planes" in _templates(model)
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 35)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], reference.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_largest_of_lines_with_nan_and_infinities(tmp_path: Path) -> None:
    """What a mask leaves out is less than anything; a NaN is the largest of its windows."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    model, _ = _compiled(tmp_path, [node], (1, 2, 7, 20), {})
    x = np.full((1, 2, 7, 20), -np.inf, np.float32)
    x[0, 1, 3, 5] = np.nan
    (y,) = model(x)
    expected = np.full((1, 2, 4, 10), -np.inf, np.float32)
    expected[0, 1, 1:3, 2:4] = np.nan
    np.testing.assert_array_equal(y, expected)


def _nearest(scales: Sequence[float]) -> tuple[onnx.NodeProto, dict[str, np.ndarray]]:
    node = helper.make_node(
        "Resize",
        ["x", "", "s"],
        ["y"],
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )
    return node, {"s": np.array(scales, np.float32)}


@pytest.mark.parametrize("factor", [2, 3, 4, 8])
@pytest.mark.parametrize("width", [5, 24, 33])
def test_image_enlarged_by_its_nearest_elements(tmp_path: Path, width: int, factor: int) -> None:
    """Every element is stored several times, also in a masked vector; rows and columns in one kernel."""
    node, constants = _nearest([1, 1, factor, factor])
    model, _ = _compiled(tmp_path, [node], (1, 3, 6, width), constants)
    assert _templates(model) == ["loops"]
    x = np.random.default_rng(0).standard_normal((1, 3, 6, width)).astype(np.float32)
    np.testing.assert_array_equal(model(x)[0], x.repeat(factor, 2).repeat(factor, 3))


@pytest.mark.parametrize("scales", [(1, 1, 2, 4), (1, 1, 2, 1), (2, 1, 1, 2), (1, 3, 1, 0.5), (1, 1, 2, 1.5)])
def test_image_enlarged_along_some_dimensions(tmp_path: Path, scales: tuple[float, ...]) -> None:
    node, constants = _nearest(scales)
    model, reference = _compiled(tmp_path, [node], (2, 3, 6, 20), constants)
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 20)).astype(np.float32)
    np.testing.assert_array_equal(model(x)[0], reference.run(None, {"x": x})[0])


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.float16, np.float64])
def test_enlarged_image_of_other_elements_and_any_size(tmp_path: Path, dtype: type[np.generic]) -> None:
    node, constants = _nearest([1, 1, 2, 2])
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("x", element, ["n", 3, "h", "w"])
    y = helper.make_tensor_value_info("y", element, ["n", 3, "h2", "w2"])
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    path = tmp_path / "m.onnx"
    onnx.save(
        helper.make_model(
            helper.make_graph([node], "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
        ),
        path,
    )
    model = mlc.compile(path, output=tmp_path / "m.so")
    for shape in ((1, 3, 4, 16), (2, 3, 5, 33), (1, 3, 1, 1), (0, 3, 4, 4), (1, 3, 2, 0)):
        values = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
        np.testing.assert_array_equal(model(values)[0], values.repeat(2, 2).repeat(2, 3))


@pytest.mark.parametrize("images", [1, 2])
def test_pointwise_convolution_that_stands_alone_is_a_product(tmp_path: Path, images: int) -> None:
    rng = np.random.default_rng(1)
    constants = {
        "f": rng.standard_normal((130, 20, 1, 1)).astype(np.float32),
        "b": rng.standard_normal(130).astype(np.float32),
    }
    nodes = [helper.make_node("Conv", ["x", "f", "b"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    model, reference = _compiled(tmp_path, nodes, (images, 20, 27, 30), constants)
    assert "transpose" not in _templates(model)
    x = rng.standard_normal((images, 20, 27, 30)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], reference.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "shape, strides", [((1, 20, 53, 60), (2, 2)), ((2, 24, 50, 47), (2, 1)), ((1, 9, 70, 91), (3, 3))]
)
def test_pointwise_convolution_with_strides_reads_its_points_only(
    tmp_path: Path, shape: tuple[int, ...], strides: tuple[int, int]
) -> None:
    """The points between are neither moved nor multiplied: what they hold does not matter."""
    rng = np.random.default_rng(1)
    constants = {
        "f": rng.standard_normal((130, shape[1], 1, 1)).astype(np.float32),
        "b": rng.standard_normal(130).astype(np.float32),
    }
    conv = helper.make_node("Conv", ["x", "f", "b"], ["c"], strides=strides)
    model, reference = _compiled(tmp_path, [conv, helper.make_node("Relu", ["c"], ["y"])], shape, constants)
    assert "transpose" not in _templates(model)
    x = np.full(shape, np.nan, np.float32)
    x[:, :, :: strides[0], :: strides[1]] = rng.standard_normal(x[:, :, :: strides[0], :: strides[1]].shape)
    (y,) = model(x)
    assert np.isfinite(y).all()
    np.testing.assert_allclose(y, reference.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "shape, strides", [((1, 20, 13, 17), (2, 2)), ((2, 37, 9, 30), (1, 4)), ((1, 9, 7, 7), (3, 3))]
)
def test_pointwise_convolution_of_few_points_transposes_no_others(
    tmp_path: Path, shape: tuple[int, ...], strides: tuple[int, int]
) -> None:
    rng = np.random.default_rng(1)
    constants = {"f": rng.standard_normal((50, shape[1], 1, 1)).astype(np.float32)}
    conv = helper.make_node("Conv", ["x", "f"], ["y"], strides=strides)
    model, reference = _compiled(tmp_path, [conv], shape, constants)
    x = rng.standard_normal(shape).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], reference.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


def test_pointwise_convolution_between_others_keeps_its_strides(tmp_path: Path) -> None:
    """What is channels-last anyhow is read with the strides by the convolution itself."""
    rng = np.random.default_rng(1)
    constants = {
        "f": rng.standard_normal((32, 8, 3, 3)).astype(np.float32),
        "g": rng.standard_normal((130, 32, 1, 1)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "f"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["c", "g"], ["y"], strides=[2, 2]),
    ]
    model, reference = _compiled(tmp_path, nodes, (1, 8, 47, 50), constants)
    assert "loops" not in _templates(model)
    x = rng.standard_normal((1, 8, 47, 50)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4)
