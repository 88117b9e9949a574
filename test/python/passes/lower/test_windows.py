"""`conv` and `pool` lowered, run, and compared with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from linalg_runner import check_lowering

RNG = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def kind(shape: Sequence[int | str], element: str = "f32") -> str:
    return f"tensor<{'x'.join(map(str, [*shape, element]))}>"


def ints(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def extents(
    sizes: Sequence[int], taps: Sequence[int], strides: Sequence[int], padding: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    rank = len(sizes)
    return [
        (sizes[i] + padding[i] + padding[rank + i] - (taps[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(rank)
    ]


# sizes, channels in, channels out, groups, taps, strides, padding, dilations
CONVS = [
    ((6, 7), 3, 4, 1, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((6, 7), 3, 4, 1, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((7, 7), 4, 4, 4, (3, 3), (2, 2), (1, 0, 1, 2), (1, 1)),
    ((7, 7), 4, 6, 2, (3, 2), (1, 2), (0, 1, 0, 1), (1, 1)),
    ((7, 7), 2, 4, 2, (2, 2), (1, 1), (0, 0, 0, 0), (2, 2)),
    ((9,), 3, 2, 1, (3,), (2,), (2, 2), (2,)),
    ((4, 5, 4), 2, 3, 1, (2, 2, 3), (1, 2, 1), (0, 1, 1, 1, 0, 1), (1, 1, 1)),
]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("case", CONVS, ids=str)
def test_conv(case: tuple, layout: str) -> None:
    sizes, inputs, outputs, groups, taps, strides, padding, dilations = case
    out = extents(sizes, taps, strides, padding, dilations)
    if layout == "nchw":
        x, w, y = [2, inputs, *sizes], [outputs, inputs // groups, *taps], [2, outputs, *out]
    else:
        x, w, y = [2, *sizes, inputs], [*taps, inputs // groups, outputs], [2, *out, outputs]
    attrs = f"{{strides = {ints(strides)}, padding = {ints(padding)}, dilations = {ints(dilations)}, "
    attrs += f'groups = {groups} : i64, layout = "{layout}"}}'
    text = f"""func.func @f(%x: {kind(x)}, %w: {kind(w)}, %b: {kind([outputs])}) -> {kind(y)} {{
      %r = mlc.conv %x, %w bias(%b : {kind([outputs])}) {attrs} : {kind(x)}, {kind(w)} -> {kind(y)}
      return %r : {kind(y)} }}"""
    assert "mlc.contraction" in check_lowering(text, floats(*x), floats(*w), floats(outputs), tolerance=1e-4)


def test_conv_over_unknown_extents() -> None:
    x, w, y = kind(["?", 2, "?", "?"]), kind([3, 2, 3, 3]), kind(["?", 3, "?", "?"])
    attrs = "{strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}"
    text = f"""func.func @f(%x: {x}, %w: {w}) -> {y} {{
      %r = mlc.conv %x, %w {attrs} : {x}, {w} -> {y}
      return %r : {y} }}"""
    check_lowering(text, floats(2, 2, 5, 8), floats(3, 2, 3, 3), tolerance=1e-4)


POOLS = [
    ((6, 7), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), ""),
    ((6, 7), (2, 3), (1, 1), (0, 0, 0, 0), (1, 1), ""),
    ((8, 8), (3, 2), (2, 1), (1, 0, 2, 1), (2, 1), ""),
    ((7, 7), (3, 3), (2, 2), (1, 1, 2, 2), (1, 1), ", ceil_extra = array<i64: 1, 1>"),
    ((9,), (4,), (3,), (2, 1), (1,), ""),
    ((4, 4, 5), (2, 2, 2), (2, 2, 2), (0, 0, 1, 0, 0, 0), (1, 1, 1), ""),
]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("function", ["max", "avg", "avg_include_pad", "sum"])
@pytest.mark.parametrize("case", POOLS, ids=str)
def test_pool(case: tuple, function: str, layout: str) -> None:
    sizes, taps, strides, padding, dilations, extra = case
    out = extents(sizes, taps, strides, padding, dilations)
    x, y = ([2, 3, *sizes], [2, 3, *out]) if layout == "nchw" else ([2, *sizes, 3], [2, *out, 3])
    include = str(function == "avg_include_pad").lower()
    attrs = f"{{kernel = {ints(taps)}, strides = {ints(strides)}, padding = {ints(padding)}, "
    attrs += f'dilations = {ints(dilations)}, count_include_pad = {include}, layout = "{layout}"{extra}}}'
    text = f"""func.func @f(%x: {kind(x)}) -> {kind(y)} {{
      %r = mlc.pool {function.split("_")[0]} %x {attrs} : {kind(x)} -> {kind(y)}
      return %r : {kind(y)} }}"""
    check_lowering(text, floats(*x))


def test_max_pool_of_unsigned_integers() -> None:
    attrs = "{kernel = array<i64: 2>, strides = array<i64: 1>, padding = array<i64: 1, 0>, "
    attrs += "dilations = array<i64: 1>, unsigned}"
    text = f"""func.func @f(%x: tensor<1x1x4xi8>) -> tensor<1x1x4xi8> {{
      %r = mlc.pool max %x {attrs} : tensor<1x1x4xi8> -> tensor<1x1x4xi8>
      return %r : tensor<1x1x4xi8> }}"""
    check_lowering(text, np.array([[[1, -1, 5, -128]]], np.int8))
