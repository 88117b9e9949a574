"""Depthwise convolutions of bytes, bit by bit against NumPy: windows, strides, tails of channels, ends of lines, threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from test_dot_quads import _compile, _convolved, _model, _numbers, _templates

import mlc
from mlc import _native
from mlc.targets.cpu import resolve

# Channels, height, width; taps, strides, pads (top, left, bottom, right).
WINDOWS = {
    "3x3": (64, 9, 14, (3, 3), (1, 1), (1, 1, 1, 1)),
    "3x3, two panels and a part": (149, 6, 7, (3, 3), (1, 1), (1, 1, 1, 1)),
    "3x3, half vectors": (32, 9, 13, (3, 3), (1, 1), (1, 1, 1, 1)),
    "3x3, few channels": (19, 9, 13, (3, 3), (1, 1), (1, 1, 1, 1)),
    "3x3, every other pixel": (96, 15, 17, (3, 3), (2, 2), (1, 1, 1, 1)),
    "3x3, every other pixel of an even image": (24, 16, 16, (3, 3), (2, 2), (0, 0, 1, 1)),
    "5x5": (72, 12, 11, (5, 5), (1, 1), (2, 2, 2, 2)),
    "5x5, every other pixel": (40, 12, 19, (5, 5), (2, 2), (2, 2, 2, 2)),
    "7x7": (17, 9, 18, (7, 7), (1, 1), (3, 3, 3, 3)),
    "4x2, every third pixel": (33, 9, 18, (2, 4), (3, 3), (0, 0, 0, 0)),
    "1x2 without padding": (65, 3, 9, (1, 2), (1, 1), (0, 0, 0, 0)),
    "9 taps in a line": (20, 3, 30, (1, 9), (1, 2), (0, 4, 0, 4)),
}
SIGNS = [(np.uint8, np.int8), (np.int8, np.uint8)]


def _depthwise(
    tmp_path: Path, name: str, zero: int, dynamic: bool = False, signs: tuple[type, type] = SIGNS[0]
) -> tuple[mlc.Model, np.ndarray, dict[str, object]]:
    """The model, its filter and the attributes of its node."""
    channels, height, width, taps, strides, pads = WINDOWS[name]
    left, right = signs
    w = _numbers(8, (channels, 1, *taps), right)
    attributes = {"pads": list(pads), "strides": list(strides), "dilations": [1, 1], "group": channels}
    node = helper.make_node("ConvInteger", ["x", "f", "zx"], ["y"], **attributes)
    shape: list[int | str] = ["n", channels, "h", "w"] if dynamic else [2, channels, height, width]
    model = _model(node, {"x": (left, shape)}, {"f": w, "zx": np.asarray(zero, left)})
    return _compile(tmp_path, model, "native"), w, attributes


@pytest.mark.parametrize("zero", [0, 7])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution(tmp_path: Path, name: str, zero: int) -> None:
    """With a zero point of 0 the template leaves out the padding, else it reads a padded copy."""
    channels, height, width, *_ = WINDOWS[name]
    signs = SIGNS[(channels + zero) % 2]
    model, w, attributes = _depthwise(tmp_path, name, zero, signs=signs)
    assert ("depthwise_quads" in _templates(model)) == resolve("native", _native.host_info()).int8_dot
    x = _numbers(3, (2, channels, height, width), signs[0])
    expected = _convolved(x.astype(np.float64) - zero, w.astype(np.float64), attributes)
    np.testing.assert_array_equal(model(x)[0], expected)


@pytest.mark.parametrize("name", ["3x3", "3x3, two panels and a part", "3x3, every other pixel", "5x5"])
def test_images_of_any_size(tmp_path: Path, name: str) -> None:
    model, w, attributes = _depthwise(tmp_path, name, 0, dynamic=True)
    channels = WINDOWS[name][0]
    for n, height, width in ((1, 5, 5), (2, 7, 18), (3, 12, 11)):
        x = _numbers(width, (n, channels, height, width), np.uint8)
        np.testing.assert_array_equal(model(x)[0], _convolved(x.astype(np.float64), w.astype(np.float64), attributes))


def test_threads_give_the_same_bits(tmp_path: Path) -> None:
    _, _, attributes = _depthwise(tmp_path, "5x5", 0)
    x = _numbers(3, (2, *WINDOWS["5x5"][:3]), np.uint8)
    results = [mlc.load(tmp_path / "model0.so", threads=n)(x)[0] for n in (1, 2, 3)]
    assert all(np.array_equal(results[0], r) for r in results)
