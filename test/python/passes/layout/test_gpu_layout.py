"""The layout passes for GPUs keep the results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from linalg_runner import check_lowering, compare, context, interpret
from mlir import ir

import mlc.compiler_setup  # noqa: F401
from mlc.passes.base import run_pipeline

RNG = np.random.default_rng(5)


def _check(text: str, passes: str, *arrays: np.ndarray, tolerance: float = 1e-5) -> str:
    """Runs `passes` and compares results before and after; gives the IR after."""
    with context(), ir.Location.name("node"):
        module = ir.Module.parse(text)
        expected = interpret(module, list(arrays))
        run_pipeline(module, passes)
        compare(interpret(module, list(arrays)), expected, tolerance)
        return str(module)


def _of_any_number(text: str) -> str:
    """The same function for any number of images instead of two."""
    return text.replace("tensor<2x", "tensor<?x")


def _floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _convolution(channels: int, kernel: int, stride: int, padding: tuple[int, ...], dilation: int = 1) -> str:
    size = [(9 + padding[i] + padding[i + 2] - dilation * (kernel - 1) - 1) // stride + 1 for i in range(2)]
    x, w = f"tensor<2x9x9x{channels}xf32>", f"tensor<{kernel}x{kernel}x{channels}x6xf32>"
    y = f"tensor<2x{size[0]}x{size[1]}x6xf32>"
    attributes = (
        f"strides = array<i64: {stride}, {stride}>, padding = array<i64: {', '.join(map(str, padding))}>, "
        f'dilations = array<i64: {dilation}, {dilation}>, layout = "nhwc"'
    )
    line = f"%r = mlc.conv %x, %w {{{attributes}}} : {x}, {w} -> {y}"
    return f"func.func @f(%x: {x}, %w: {w}) -> {y} {{ {line} return %r : {y} }}"


@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 2, 2, 1)])
@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(3, 1, 1), (5, 2, 1), (3, 1, 2), (1, 2, 1)])
def test_lines_of_windows(kernel: int, stride: int, dilation: int, padding: tuple[int, ...]) -> None:
    x, w = _floats(2, 9, 9, 3), _floats(kernel, kernel, 3, 6)
    text, passes = _convolution(3, kernel, stride, padding, dilation), "mlc-unfold-windows{f32=true},mlc-pad-channels{f32=true}"
    assert "mlc.pad" in _check(_of_any_number(text), passes, x, w)
    changed = _check(text, passes, x, w)
    assert ("mlc.gather" in changed) == (kernel > 1 and dilation > 1)
    assert ("x1xf32" not in changed) and (f"tensor<{kernel}x{kernel}x3x6" in changed)
    assert "mlc.pad" in changed


@pytest.mark.parametrize("from_channels_first", [True, False])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "pieces"),
    [
        (7, 2, (3, 3, 3, 3), (4, 4)),
        (3, 2, (1, 1, 1, 1), (2, 2)),
        (3, 2, (0, 0, 1, 1), (2, 2)),
        (4, 2, (1, 2, 1, 0), (3, 2)),
        (5, 4, (2, 1, 1, 2), (2, 2)),
    ],
)
def test_squares_of_pixels(
    kernel: int, stride: int, padding: tuple[int, ...], pieces: tuple[int, int], from_channels_first: bool
) -> None:
    """Windows of squares of pixels; those of a line too long, five pixels four apart of f32, stay as they were."""
    given, image = ("2x2x8x12", "%t") if from_channels_first else ("2x8x12x2", "%x")
    turned = (
        "%t = mlc.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : tensor<2x2x8x12xf32> -> tensor<2x8x12x2xf32>"
    )
    size = [(e + padding[i] + padding[i + 2] - kernel) // stride + 1 for i, e in enumerate((8, 12))]
    x, w, y = "tensor<2x8x12x2xf32>", f"tensor<{kernel}x{kernel}x2x6xf32>", f"tensor<2x{size[0]}x{size[1]}x6xf32>"
    attributes = (
        f"strides = array<i64: {stride}, {stride}>, padding = array<i64: {', '.join(map(str, padding))}>, "
        'dilations = array<i64: 1, 1>, layout = "nhwc"'
    )
    text = f"""func.func @f(%x: tensor<{given}xf32>, %w: {w}) -> {y} {{
      {turned if from_channels_first else ""}
      %r = mlc.conv {image}, %w {{{attributes}}} : {x}, {w} -> {y}
      return %r : {y} }}"""
    shape = [int(e) for e in given.split("x")]
    arrays = _floats(*shape), _floats(kernel, kernel, 2, 6)
    for form in (text, _of_any_number(text)):
        changed = _check(form, "mlc-unfold-windows{f32=true}", *arrays)
        assert (f"tensor<{pieces[0]}x{pieces[1]}x{2 * stride**2}x6xf32>" in changed) == (stride == 2)


@pytest.mark.parametrize("channels", [1, 4, 30])
def test_channels(channels: int) -> None:
    x, w = _floats(2, 9, 9, channels), _floats(3, 3, channels, 6)
    changed = _check(_convolution(channels, 3, 1, (1, 1, 1, 1)), "mlc-pad-channels{f32=true}", x, w)
    assert ("mlc.pad" in changed) == (channels % 4 != 0)


def _two_convolutions(c: int, function: str, images: str) -> str:
    """Between two convolutions of so many channels a pool, a function, a weight for each channel, a gate for each image
    and pixels that come twice."""
    attributes = "strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>"
    pool = f'kernel = array<i64: 3, 3>, {attributes}, layout = "nhwc"'
    conv, n = f'{{{attributes}, layout = "nhwc"}}', "1" if images == "1" else "%n"
    small, large = f"tensor<{images}x9x9x{c}xbf16>", f"tensor<{images}x18x9x{c}xbf16>"
    split, twice = f"tensor<{images}x9x1x9x{c}xbf16>", f"tensor<{images}x9x2x9x{c}xbf16>"
    x, w, v = f"tensor<{images}x9x9x16x", f"tensor<3x3x16x{c}x", f"tensor<3x3x{c}x8x"
    y = f"tensor<{images}x18x9x8x"
    return f"""func.func @f(%xf: {x}f32>, %wf: {w}f32>, %b: tensor<{c}xf32>, %vf: {v}f32>,
        %g: tensor<1x1x1x{c}xbf16>) -> {y}f32> {{
      %z = arith.constant 0 : index
      %n = tensor.dim %xf, %z : {x}f32>
      %x = mlc.cast %xf : {x}f32> -> {x}bf16>
      %w = mlc.cast %wf : {w}f32> -> {w}bf16>
      %v = mlc.cast %vf : {v}f32> -> {v}bf16>
      %s = mlc.constant dense<2.0> : tensor<{c}xbf16>
      %bias = mlc.cast %b : tensor<{c}xf32> -> tensor<{c}xbf16>
      %0 = mlc.conv %x, %w bias(%bias : tensor<{c}xbf16>) {conv} : {x}bf16>, {w}bf16> -> {small}
      %1 = mlc.pool max %0 {{{pool}}} : {small} -> {small}
      %2 = mlc.activation {function} %1 : {small}
      %3 = mlc.binary mul %2, %s : {small}, tensor<{c}xbf16> -> {small}
      %4 = mlc.binary mul %3, %g : {small}, tensor<1x1x1x{c}xbf16> -> {small}
      %5 = mlc.reshape %4 [{n}, 9, 1, 9, {c}] : {small} -> {split}
      %6 = mlc.broadcast %5 [{n}, 9, 2, 9, {c}] : {split} -> {twice}
      %7 = mlc.reshape %6 [{n}, 18, 9, {c}] : {twice} -> {large}
      %8 = mlc.conv %7, %v {conv} : {large}, {v}bf16> -> {y}bf16>
      %9 = mlc.cast %8 : {y}bf16> -> {y}f32>
      return %9 : {y}f32> }}"""


@pytest.mark.parametrize("images", ["1", "?"])
@pytest.mark.parametrize("function", ["silu", "gelu_tanh", "softplus"])
@pytest.mark.parametrize("filters", [12, 18, 20])
def test_filters(filters: int, function: str, images: str) -> None:
    """What lies between convolutions keeps channels of zeros for the second one; softplus makes others of them, and the
    weight zeros again."""
    c, more = filters, -(-filters // 8) * 8
    arrays = _floats(1, 9, 9, 16), _floats(3, 3, 16, c), _floats(c), _floats(3, 3, c, 8)
    gate = _floats(1, 1, 1, c).astype(ml_dtypes.bfloat16)
    text = _two_convolutions(c, function, images)
    changed = _check(text, "mlc-pad-channels,mlc-extend-channels", *arrays, gate, tolerance=0)
    assert f"tensor<{images}x9x9x{more}xbf16>" in changed
    assert f"high [0, 0, 0, {more - c}] : tensor<{images}x18x9x{c}xbf16>" not in changed


@pytest.mark.parametrize(
    ("channels", "filters", "groups", "left"), [(64, 64, 16, 2), (64, 128, 4, 2), (32, 48, 2, 1), (64, 192, 2, 2), (6, 6, 2, 2)]
)
def test_groups(channels: int, filters: int, groups: int, left: int) -> None:
    """Joined, made one, as they were, and of channels that no number of groups makes whole pieces of 16 bytes."""
    x, w = f"tensor<2x9x9x{channels}xf32>", f"tensor<3x3x{channels // groups}x{filters}xf32>"
    y = f"tensor<2x5x5x{filters}xf32>"
    attributes = "strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>"
    line = f'%r = mlc.conv %x, %w {{{attributes}, groups = {groups} : i64, layout = "nhwc"}} : {x}, {w} -> {y}'
    text = f"func.func @f(%x: {x}, %w: {w}) -> {y} {{ {line} return %r : {y} }}"
    arrays = _floats(2, 9, 9, channels), _floats(3, 3, channels // groups, filters)
    changed = _check(text, "mlc-join-groups{f32=true}", *arrays)
    assert (f"groups = {left} : i64" in changed) == (left > 1)
    assert ("mlc.joined" in changed) == (left > 1 and channels > 6)
    lowered = check_lowering(changed, *arrays, tolerance=1e-4)
    assert ("floordiv" in lowered) == ("mlc.joined" in changed)


def test_elementwise_operations_pass_movements() -> None:
    text = """func.func @f(%x: tensor<2x6x4xf32>) -> tensor<2x2x3x4xbf16> {
      %c = mlc.constant dense<[0.5]> : tensor<1xf32>
      %a = mlc.reshape %x [2, 3, 2, 4] : tensor<2x6x4xf32> -> tensor<2x3x2x4xf32>
      %b = mlc.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
      %d = mlc.binary mul %b, %c : tensor<2x2x3x4xf32>, tensor<1xf32> -> tensor<2x2x3x4xf32>
      %e = mlc.unary tanh %d : tensor<2x2x3x4xf32>
      %r = mlc.cast %e : tensor<2x2x3x4xf32> -> tensor<2x2x3x4xbf16>
      return %r : tensor<2x2x3x4xbf16> }"""
    changed = _check(text, "mlc-sink-moves", _floats(2, 6, 4))
    names = [line.split("mlc.")[1].split()[0] for line in changed.splitlines() if "= mlc." in line]
    assert names == ["constant", "binary", "unary", "cast", "reshape", "transpose"]


@pytest.mark.parametrize("from_channels_first", [True, False])
def test_patches(from_channels_first: bool) -> None:
    shape = (2, 3, 8, 12) if from_channels_first else (2, 8, 12, 3)
    x, w = _floats(*shape), _floats(4, 4, 3, 6)
    given = "x".join(map(str, shape))
    turned = "mlc.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : tensor<2x3x8x12xf32> -> tensor<2x8x12x3xf32>"
    image = "%t" if from_channels_first else "%x"
    text = f"""func.func @f(%x: tensor<{given}xf32>, %w: tensor<4x4x3x6xf32>) -> tensor<2x2x3x6xf32> {{
      {f"%t = {turned}" if from_channels_first else ""}
      %r = mlc.conv {image}, %w {{strides = array<i64: 4, 4>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>,
        layout = "nhwc"}} : tensor<2x8x12x3xf32>, tensor<4x4x3x6xf32> -> tensor<2x2x3x6xf32>
      return %r : tensor<2x2x3x6xf32>
    }}"""
    for form in (text, _of_any_number(text)):
        assert "tensor<1x1x48x6xf32>" in _check(form, "mlc-unfold-windows", x, w)


def test_products_pass_transposes_of_few_rows() -> None:
    text = """func.func @f(%x: tensor<3x5x8xf32>) -> tensor<5x3x6xf32> {
      %w = mlc.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
        [0.0, 1.0, 0.5, 0.0, 1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0],
        [3.0, 0.0, 0.0, 3.0, 0.0, 0.0, 3.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0]]> : tensor<6x8xf32>
      %b = mlc.constant dense<[1.0, -1.0, 2.0, 0.5, 0.0, 3.0]> : tensor<6xf32>
      %t = mlc.transpose %x {permutation = array<i64: 1, 0, 2>} : tensor<3x5x8xf32> -> tensor<5x3x8xf32>
      %m = mlc.matmul %t, %w {transpose_rhs} : tensor<5x3x8xf32>, tensor<6x8xf32> -> tensor<5x3x6xf32>
      %r = mlc.binary add %m, %b : tensor<5x3x6xf32>, tensor<6xf32> -> tensor<5x3x6xf32>
      return %r : tensor<5x3x6xf32>
    }"""
    changed = _check(text, "mlc-sink-moves", _floats(3, 5, 8))
    assert changed.index("mlc.matmul") < changed.index("mlc.binary add") < changed.index("mlc.transpose")


def test_parts_of_one_product_are_places() -> None:
    weights = [RNG.integers(-3, 4, (8, 16)).astype(float).tolist() for _ in range(3)]
    kind, result = "tensor<8x16xf32>", "tensor<5x16xf32>"
    made = "\n".join(
        f"""%m{n} = mlc.matmul %x, %w{n} : tensor<5x8xf32>, {kind} -> {result}
      %c{n} = mlc.cast %m{n} : {result} -> tensor<5x16xbf16>
      %r{n} = mlc.reshape %c{n} [80] : tensor<5x16xbf16> -> tensor<80xbf16>"""
        for n in range(3)
    )
    known = "\n".join(f"%w{n} = mlc.constant dense<{values}> : {kind}" for n, values in enumerate(weights))
    results = ", ".join(["tensor<80xbf16>"] * 3)
    text = f"func.func @f(%x: tensor<5x8xf32>) -> ({results}) {{ {known}\n{made}\nreturn %r0, %r1, %r2 : {results} }}"
    changed = _check(text, "mlc-merge-contractions{even=true}", _floats(5, 8), tolerance=1e-2)
    assert changed.count("mlc.matmul") == 1
