"""Layout propagation keeps the results and leaves few transpositions behind."""

from __future__ import annotations

import numpy as np
import pytest
from linalg_runner import check_decomposition, compare, context, entry, interpret
from mlir import ir

RNG = np.random.default_rng(2)
CONV = "{strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}"
POOL = (
    "{kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, "
    "dilations = array<i64: 1, 1>}"
)
X = "tensor<2x3x6x8xf32>"


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def conv(result: str, source: str) -> str:
    return f"%{result} = mlc.conv %{source}, %w {CONV} : {X}, tensor<3x3x3x3xf32> -> {X}"


def relayouts(module: ir.Module) -> int:
    """Transpositions of the pass that move more than unit dimensions."""
    from mlc.passes.layout.context import is_free

    count = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal count
        if op.name == "mlc.transpose" and "mlc.relayout" in op.attributes:
            permutation = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
            count += not is_free(list(op.operands[0].type.shape), permutation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return count


def check(result: str, *lines: str, extra: str = "", inputs: tuple[np.ndarray, ...] = (), moved: int) -> str:
    """Lines use `%x`, `%w` (a 3x3 filter for 3 channels) and `extra` arguments; the last defines `%r`."""
    from mlc.passes.layout.propagate_layout import propagate

    arguments = f"%x: {X}, %w: tensor<3x3x3x3xf32>{extra}"
    text = f"func.func @f({arguments}) -> {result} {{\n" + "\n".join(lines) + f"\nreturn %r : {result} }}"
    arrays = [floats(2, 3, 6, 8), floats(3, 3, 3, 3), *inputs]
    with context(), ir.Location.name("node"):
        module = ir.Module.parse(text)
        expected = interpret(module, arrays)
        propagate(entry(module))
        assert module.operation.verify()
        compare(interpret(module, arrays), expected, 1e-4)
        assert relayouts(module) == moved, str(module)
        changed = str(module)
    check_decomposition(changed, *arrays, tolerance=1e-4)
    return changed


def test_chain_keeps_its_layout() -> None:
    lines = [
        conv("a", "x"),
        f"%b = mlc.unary tanh %a : {X}",
        conv("c", "b"),
        f"%r = mlc.binary add %c, %b : {X}, {X} -> {X}",
    ]
    changed = check(X, *lines, moved=2)
    assert changed.count('layout = "nhwc"') == 2


def test_bias_and_mask_operands_follow() -> None:
    lines = [
        conv("a", "x"),
        f"%b = mlc.binary mul %a, %s : {X}, tensor<3x1x1xf32> -> {X}",
        f"%p = mlc.compare gt %b, %t : {X}, tensor<1x3x1x1xf32> -> tensor<2x3x6x8xi1>",
        "%z = mlc.constant dense<0.0> : tensor<f32>",
        f"%c = mlc.select %p, %b, %z : tensor<2x3x6x8xi1>, {X}, tensor<f32> -> {X}",
        conv("r", "c"),
    ]
    extra = ", %s: tensor<3x1x1xf32>, %t: tensor<1x3x1x1xf32>"
    check(X, *lines, extra=extra, inputs=(floats(3, 1, 1), floats(1, 3, 1, 1)), moved=2)


def test_global_average_pool_ends_without_a_transposition() -> None:
    lines = [
        conv("a", "x"),
        f"%b = mlc.pool max %a {POOL} : {X} -> tensor<2x3x3x4xf32>",
        "%c = mlc.reduce sum %b {axes = array<i64: 2, 3>, keepdims = true}"
        " : tensor<2x3x3x4xf32> -> tensor<2x3x1x1xf32>",
        "%r = mlc.reshape %c [2, 3] : tensor<2x3x1x1xf32> -> tensor<2x3xf32>",
    ]
    check("tensor<2x3xf32>", *lines, moved=1)


@pytest.mark.parametrize("keepdims", ["true", "false"])
@pytest.mark.parametrize("axis", [1, 2])
def test_reductions_rename_their_axes(keepdims: str, axis: int) -> None:
    shape = [2, 3, 6, 8]
    if keepdims == "true":
        shape[axis] = 1
    else:
        del shape[axis]
    result = f"tensor<{'x'.join(map(str, shape))}xf32>"
    attrs = f"{{axes = array<i64: {axis}>, keepdims = {keepdims}}}"
    lines = [conv("a", "x"), f"%r = mlc.reduce max %a {attrs} : {X} -> {result}"]
    check(result, *lines, moved=1 if axis == 1 else 2)


def test_concat_slice_and_pad() -> None:
    lines = [
        conv("a", "x"),
        conv("b", "a"),
        f"%c = mlc.concat %a, %b {{axis = 1 : i64}} : {X}, {X} -> tensor<2x6x6x8xf32>",
        "%d = mlc.slice %c [0, 1, 0, 2] [2, 3, 6, 4] [1, 2, 1, 1] : tensor<2x6x6x8xf32> -> tensor<2x3x6x4xf32>",
        "%e = mlc.pad constant %d low [0, 0, 0, 1] high [0, 0, 0, 3] : tensor<2x3x6x4xf32> -> tensor<2x3x6x8xf32>",
        conv("r", "e"),
    ]
    check(X, *lines, moved=2)


def test_upsampling_by_repetition() -> None:
    lines = [
        conv("a", "x"),
        f"%b = mlc.reshape %a [2, 3, 6, 1, 8, 1] : {X} -> tensor<2x3x6x1x8x1xf32>",
        "%c = mlc.broadcast %b [2, 3, 6, 2, 8, 2] : tensor<2x3x6x1x8x1xf32> -> tensor<2x3x6x2x8x2xf32>",
        "%d = mlc.reshape %c [2, 3, 12, 16] : tensor<2x3x6x2x8x2xf32> -> tensor<2x3x12x16xf32>",
        f"%e = mlc.pool avg %d {POOL} : tensor<2x3x12x16xf32> -> {X}",
        conv("r", "e"),
    ]
    check(X, *lines, moved=2)


def test_patches_to_sequence_need_no_transposition() -> None:
    lines = [
        conv("a", "x"),
        f"%b = mlc.reshape %a [2, 3, 48] : {X} -> tensor<2x3x48xf32>",
        "%r = mlc.transpose %b {permutation = array<i64: 0, 2, 1>} : tensor<2x3x48xf32> -> tensor<2x48x3xf32>",
    ]
    check("tensor<2x48x3xf32>", *lines, moved=1)


def test_flattening_materialises() -> None:
    lines = [conv("a", "x"), f"%r = mlc.reshape %a [2, 144] : {X} -> tensor<2x144xf32>"]
    check("tensor<2x144xf32>", *lines, moved=2)


def test_channels_last_models_cancel() -> None:
    last = "tensor<2x6x8x3xf32>"
    lines = [
        f"%a = mlc.transpose %y {{permutation = array<i64: 0, 3, 1, 2>}} : {last} -> {X}",
        conv("b", "a"),
        f"%r = mlc.transpose %b {{permutation = array<i64: 0, 2, 3, 1>}} : {X} -> {last}",
    ]
    check(last, *lines, extra=f", %y: {last}", inputs=(floats(2, 6, 8, 3),), moved=0)


def test_gather_follows_and_shapes_are_read() -> None:
    lines = [
        conv("a", "x"),
        f"%b = mlc.gather %a, %i {{axis = 2 : i64}} : {X}, tensor<6xi64> -> {X}",
        f"%s = mlc.shape_of %b : {X} -> tensor<4xi64>",
        "%t = mlc.cast %s : tensor<4xi64> -> tensor<4xf32>",
        "%u = mlc.reduce sum %t {axes = array<i64: 0>, keepdims = false} : tensor<4xf32> -> tensor<f32>",
        f"%c = mlc.binary add %b, %u : {X}, tensor<f32> -> {X}",
        conv("r", "c"),
    ]
    indices = np.array([5, 0, -1, 2, 2, 1])
    check(X, *lines, extra=", %i: tensor<6xi64>", inputs=(indices,), moved=2)


def test_without_convolutions_nothing_changes() -> None:
    lines = [f"%r = mlc.pool max %x {POOL} : {X} -> tensor<2x3x3x4xf32>"]
    assert 'layout = "nhwc"' not in check("tensor<2x3x3x4xf32>", *lines, moved=0)


def test_inside_control_flow() -> None:
    lines = [
        conv("a", "x"),
        "%i = arith.constant true",
        f"%r = scf.if %i -> ({X}) {{",
        f"  %b = mlc.unary exp %a : {X}",
        f"  scf.yield %b : {X}",
        "} else {",
        f"  scf.yield %a : {X}",
        "}",
    ]
    check(X, *lines, moved=3)


def test_images_of_tokens_and_tokens_of_images() -> None:
    """An order begins where an image is made of tokens, and ends in a product that takes matrices either way round."""
    t, i, f = "tensor<2x48x3xf32>", "tensor<2x3x48xf32>", "tensor<3x5xf32>"
    lines = (
        f"%t = mlc.transpose %a {{permutation = array<i64: 0, 2, 1>}} : {t} -> {i}",
        f"%i = mlc.reshape %t [2, 3, 6, 8] : {i} -> {X}",
        f"%s = mlc.binary add %i, %x : {X}",
        conv("c", "s"),
        f"%k = mlc.reshape %c [2, 3, 48] : {X} -> {i}",
        f"%p = mlc.matmul %k, %f {{transpose_lhs}} : {i}, {f} -> tensor<2x48x5xf32>",
        f"%r = mlc.matmul %p, %k {{transpose_lhs, transpose_rhs}} : tensor<2x48x5xf32>, {i} -> tensor<2x5x3xf32>",
    )
    extra = f", %a: {t}, %f: {f}"
    changed = check("tensor<2x5x3xf32>", *lines, extra=extra, inputs=(floats(2, 48, 3), floats(3, 5)), moved=1)
    assert "mlc.matmul" in changed and changed.count("transpose_lhs") == 1 and "transpose_rhs" not in changed
