"""`conv`, `conv_transpose`, `pool`, `pool_indices` against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_oracle import check, interp, onnx_run

RNG = np.random.default_rng(1)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("x", "w", "strides", "padding", "dilations", "groups"),
    [
        ((2, 3, 9), (4, 3, 3), [2], [1, 2], [1], 1),
        ((2, 4, 7, 8), (6, 2, 3, 2), [1, 2], [1, 0, 2, 1], [2, 1], 2),
        ((1, 5, 6, 6), (5, 1, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 5),
        ((1, 5, 6, 6), (10, 1, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 5),
        ((1, 2, 5, 4, 6), (3, 2, 2, 1, 3), [1, 1, 2], [0, 0, 1, 1, 0, 1], [1, 1, 1], 1),
        ((0, 3, 9), (4, 3, 3), [1], [0, 0], [1], 1),
    ],
)
def test_conv(
    x: tuple[int, ...],
    w: tuple[int, ...],
    strides: list[int],
    padding: list[int],
    dilations: list[int],
    groups: int,
) -> None:
    data, weights, bias = rand(*x), rand(*w), rand(w[0])
    attrs = {"strides": strides, "padding": padding, "dilations": dilations, "groups": groups}
    (want,) = onnx_run("Conv", [data, weights, bias], strides=strides, pads=padding, dilations=dilations, group=groups)
    check("mlc.conv", [data, weights, bias], attrs, want, rtol=1e-4, atol=1e-5)
    last = np.moveaxis(data, 1, -1), np.moveaxis(weights, (0, 1), (-1, -2)), bias
    check("mlc.conv", last, {**attrs, "layout": "nhwc"}, np.moveaxis(want, 1, -1), rtol=1e-4, atol=1e-5)


def test_conv_int8_accumulates_int32() -> None:
    x, w = np.full((1, 64, 3, 3), 127, np.int8), np.full((1, 64, 3, 3), -128, np.int8)
    attrs = {"strides": [1, 1], "padding": [0] * 4, "dilations": [1, 1], "groups": 1}
    check("mlc.conv", [x, w], attrs, np.full((1, 1, 1, 1), -127 * 128 * 576, np.int32))


@pytest.mark.parametrize(
    ("x", "w", "strides", "padding", "dilations", "groups", "extra"),
    [
        ((1, 3, 5), (3, 2, 3), [2], [1, 0], [1], 1, [1]),
        ((2, 4, 4, 5), (4, 3, 3, 2), [2, 3], [1, 0, 1, 1], [1, 2], 2, [1, 2]),
        ((1, 2, 3, 3, 2), (2, 2, 2, 2, 2), [1, 2, 2], [0] * 6, [1, 1, 1], 1, [0, 1, 0]),
    ],
)
def test_conv_transpose(
    x: tuple[int, ...],
    w: tuple[int, ...],
    strides: list[int],
    padding: list[int],
    dilations: list[int],
    groups: int,
    extra: list[int],
) -> None:
    data, weights, bias = rand(*x), rand(*w), rand(w[1] * groups)
    (want,) = onnx_run(
        "ConvTranspose",
        [data, weights, bias],
        strides=strides,
        pads=padding,
        dilations=dilations,
        group=groups,
        output_padding=extra,
    )
    attrs = {
        "strides": strides,
        "padding": padding,
        "dilations": dilations,
        "groups": groups,
        "output_padding": extra,
    }
    check("mlc.conv_transpose", [data, weights, bias], attrs, want, rtol=1e-4, atol=1e-5)


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ((2, 3, 8, 7), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    ((1, 2, 9, 9), {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [0, 1, 0, 1], "dilations": [2, 1]}),
    ((1, 1, 5, 6, 4), {"kernel_shape": [2, 2, 2], "strides": [1, 2, 1], "pads": [0, 1, 0, 1, 0, 0]}),
]


def pool_attrs(attrs: dict[str, Any]) -> dict[str, Any]:
    rank = len(attrs["kernel_shape"])
    return {
        "kernel": attrs["kernel_shape"],
        "strides": attrs["strides"],
        "padding": attrs["pads"],
        "dilations": attrs.get("dilations", [1] * rank),
    }


@pytest.mark.parametrize(("shape", "attrs"), POOLS)
@pytest.mark.parametrize("include", [False, True])
def test_pool(shape: tuple[int, ...], attrs: dict[str, Any], include: bool) -> None:
    x = rand(*shape)
    (largest,) = onnx_run("MaxPool", [x], **attrs)
    check("mlc.pool", [x], {"kind": "max", **pool_attrs(attrs)}, largest)
    (mean,) = onnx_run("AveragePool", [x], opset=21, count_include_pad=int(include), **attrs)
    check("mlc.pool", [x], {"kind": "avg", "count_include_pad": include, **pool_attrs(attrs)}, mean)
    last = {"kind": "max", "layout": "nhwc", **pool_attrs(attrs)}
    check("mlc.pool", [np.moveaxis(x, 1, -1)], last, np.moveaxis(largest, 1, -1))


@pytest.mark.parametrize("include", [False, True])
def test_ceil_mode_is_extra_padding_that_avg_never_counts(include: bool) -> None:
    x = rand(1, 1, 6, 6)
    attrs = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    (want,) = onnx_run(
        "AveragePool", [x], ceil_mode=1, count_include_pad=int(include), opset=19, reference=True, **attrs
    )
    extra = {**pool_attrs(attrs), "padding": [0, 0, 1, 1], "ceil_extra": [1, 1]}
    check("mlc.pool", [x], {"kind": "avg", "count_include_pad": include, **extra}, want)


@pytest.mark.parametrize("column_major", [False, True])
def test_pool_indices(column_major: bool) -> None:
    x = rand(2, 2, 6, 5)
    x[0, 0] = 0
    attrs = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    values, indices = onnx_run("MaxPool", [x], outputs=2, storage_order=int(column_major), **attrs)
    check("mlc.pool_indices", [x], {"column_major": column_major, **pool_attrs(attrs)}, [values, indices])


def test_max_pool_keeps_nan_and_lowest_integers() -> None:
    x = np.float32([[[1, np.nan, 2, 3]]])
    attrs = {"kind": "max", "kernel": [2], "strides": [2], "padding": [0, 0], "dilations": [1]}
    (y,) = interp("mlc.pool", [x], attrs, like=x[..., :2])
    assert np.isnan(y[0, 0, 0]) and y[0, 0, 1] == 3
    low = np.full((1, 1, 2), -128, np.int8)
    check("mlc.pool", [low], {**attrs, "padding": [1, 1]}, np.full((1, 1, 2), -128, np.int8))
