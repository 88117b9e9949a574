"""GPU cases of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.gpu_cases import Arrays, Case, normal


def _convolution(name: str, channels: int, size: int, **options: Any) -> Case:
    """3x3, stride 2, padding 1."""

    def expected(a: Arrays) -> list[np.ndarray]:
        x = np.pad(a["x"].astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)])
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
        return [np.einsum("nchwij,ocij->nohw", windows, a["w"].astype(np.float64)) + a["b"].reshape(1, -1, 1, 1)]

    return Case(
        name,
        [("Conv", ["x", "w", "b"], ["y"], {"strides": [2, 2], "pads": [1, 1, 1, 1]})],
        lambda: {
            "x": normal(2, channels, size, size + 1),
            "w": normal(8, channels, 3, 3, seed=1),
            "b": normal(8, seed=2),
        },
        expected,
        {"y": "float32"},
        tolerance=2e-6,
        **options,
    )


def _transposed_convolution(name: str, kernel: int, stride: int, padding: int) -> Case:
    """Of two axes, in phases of the stride."""

    def expected(a: Arrays) -> list[np.ndarray]:
        x, w = a["x"].astype(np.float64), a["w"].astype(np.float64)
        rows, columns = ((n - 1) * stride + kernel for n in x.shape[2:])
        whole = np.zeros((x.shape[0], w.shape[1], rows, columns))
        for i, j in np.ndindex(kernel, kernel):
            part = np.einsum("nchw,co->nohw", x, w[:, :, i, j])
            whole[:, :, i : i + part.shape[2] * stride : stride, j : j + part.shape[3] * stride : stride] += part
        inside = whole[:, :, padding : rows - padding, padding : columns - padding]
        return [inside + a["b"].reshape(1, -1, 1, 1)]

    options = {"strides": [stride] * 2, "pads": [padding] * 4}
    return Case(
        name, [("ConvTranspose", ["x", "w", "b"], ["y"], options)],
        lambda: {"x": normal(2, 6, 7, 9), "w": normal(6, 5, kernel, kernel, seed=1), "b": normal(5, seed=2)},
        expected, {"y": "float32"}, tolerance=2e-6,
    )  # fmt: skip


def _depthwise(name: str, *window: int) -> Case:
    """Windows of odd sizes, padded so that the image keeps its own."""
    half, size = [n // 2 for n in window], (9, 13)[-len(window) :]

    def expected(a: Arrays) -> list[np.ndarray]:
        x = np.pad(a["x"].astype(np.float64), [(0, 0), (0, 0), *((n, n) for n in half)])
        windows = np.lib.stride_tricks.sliding_window_view(x, window, axis=tuple(range(2, x.ndim)))
        windows = windows.reshape(*a["x"].shape, -1)
        return [np.einsum("nc...i,ci->nc...", windows, a["w"].astype(np.float64).reshape(24, -1))]

    nodes = [("Conv", ["x", "w"], ["y"], {"group": 24, "pads": [*half, *half]})]
    inputs = {"x": normal(2, 24, *size), "w": normal(24, 1, *window, seed=1)}
    return Case(name, nodes, lambda: inputs, expected, {"y": "float32"}, tolerance=2e-6)


def same(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A convolution by windows of three, padded so that the image keeps its size."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64))


def _residual_block(name: str, channels: int, **options: Any) -> Case:
    """Two convolutions with ReLU and what they are added to; the quarter of the result that a slice takes, and twice as
    many pixels of it."""
    constants = {f"w{n}": normal(channels, channels, 3, 3, seed=n) / (9 * channels) ** 0.5 for n in (1, 2, 3)}
    constants = {n: v.astype("f4") for n, v in constants.items()} | {"b": normal(channels, seed=4)}
    part = channels // 4

    def expected(a: Arrays) -> list[np.ndarray]:
        x = np.maximum(same(a["x"], constants["w1"]), 0)
        y = same(x, constants["w2"]) + constants["b"].reshape(1, -1, 1, 1)
        z = np.maximum(x + same(np.maximum(y, 0), constants["w3"]), 0)
        return [z[:, part : 2 * part] + 1, np.repeat(np.repeat(z, 2, 2), 2, 3)]

    pads = {"pads": [1, 1, 1, 1]}
    nodes = [
        ("Conv", ["x", "w1"], ["p"], pads), ("Relu", ["p"], ["q"]), ("Conv", ["q", "w2", "b"], ["r"], pads),
        ("Relu", ["r"], ["s"]), ("Conv", ["s", "w3"], ["t"], pads), ("Add", ["q", "t"], ["u"]), ("Relu", ["u"], ["v"]),
        ("Slice", ["v", "first", "last", "axis"], ["c"]), ("Add", ["c", "one"], ["y"]),
        ("Resize", ["v", "", "scales"], ["z"], {"mode": "nearest"}),
    ]  # fmt: skip
    constants |= {n: np.array([v]) for n, v in (("first", part), ("last", 2 * part), ("axis", 1))}
    constants |= {"one": np.array(1, "f4"), "scales": np.array([1, 1, 2, 2], "f4")}
    outputs = {"y": "float32", "z": "float32"}
    return Case(
        name,
        nodes,
        lambda: {"x": normal(2, channels, 7, 9)},
        expected,
        outputs,
        constants=constants,
        tolerance=2e-6,
        **options,
    )


def _conv_positions(a: Arrays) -> list[np.ndarray]:
    """A window of three and what all samples add to it."""
    x = np.pad(a["x"].astype(np.float64), [(0, 0), (0, 0), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)
    return [np.einsum("nclj,ocj->nol", windows, a["w"].astype(np.float64)) + a["p"]]


def convolution_cases() -> list[Case]:
    """In one group and in others, of few channels and of a number that tensor cores do not take, transposed."""
    return [
        _convolution("conv", 5, 11),
        _convolution("conv_deep", 48, 9),
        _convolution("conv_any_number", 3, 12, dims={"x": ["n", 3, 12, 13]}),
        _transposed_convolution("conv_transposed", 4, 2, 1),
        _transposed_convolution("conv_transposed_odd", 3, 2, 0),
        _transposed_convolution("conv_transposed_apart", 2, 3, 0),  # pixels that no tap reaches
        _residual_block("conv_residual_18", 18),
        _residual_block("conv_residual_20", 20, dims={"x": ["n", 20, 7, 9]}),
        _depthwise("conv_depthwise", 3, 3),
        _depthwise("conv_depthwise_wide", 7, 7),
        _depthwise("conv_depthwise_band", 1, 11),
        _depthwise("conv_depthwise_column", 5, 1),
        _depthwise("conv_depthwise_line", 9),
        Case("conv_positions", [("Conv", ["x", "w"], ["c"], {"pads": [1, 1]}), ("Add", ["c", "p"], ["y"])],
             lambda: {"x": normal(3, 8, 21), "w": normal(24, 8, 3, seed=1), "p": normal(1, 24, 21, seed=2)},
             _conv_positions, {"y": "float32"}, tolerance=2e-6),
    ]  # fmt: skip
