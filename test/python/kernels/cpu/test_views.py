"""Kernels that read and write through views against the NumPy interpreter: attention, transposed and sliced operands."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_templates import check, draw


@pytest.mark.parametrize("batch", ["1", "3", "?"])
@pytest.mark.parametrize("tokens, heads, depth", [(5, 2, 16), (17, 3, 24), (33, 4, 64)])
def test_attention_over_one_projection(tmp_path: Path, batch: str, tokens: int, heads: int, depth: int) -> None:
    width = heads * depth
    x, part = f"tensor<{batch}x{tokens}x{3 * width}xf32>", f"tensor<{batch}x{tokens}x{width}xf32>"
    split, head = (f"tensor<{batch}x{s}xf32>" for s in (f"{tokens}x{heads}x{depth}", f"{heads}x{tokens}x{depth}"))
    keys, scores = (f"tensor<{batch}x{heads}x{s}xf32>" for s in (f"{depth}x{tokens}", f"{tokens}x{tokens}"))
    n = "%n" if batch == "?" else batch
    lines = ["%c0 = arith.constant 0 : index", f"%n = tensor.dim %a0, %c0 : {x}"]
    for i, (name, type_, order) in enumerate(
        (("q", head, "0, 2, 1, 3"), ("k", keys, "0, 2, 3, 1"), ("v", head, "0, 2, 1, 3"))
    ):
        lines += [
            f"%{name}0 = mlc.slice %a0 [0, 0, {i * width}] [{n}, {tokens}, {width}] [1, 1, 1] : {x} -> {part}",
            f"%{name}1 = mlc.reshape %{name}0 [{n}, {tokens}, {heads}, {depth}] : {part} -> {split}",
            f"%{name} = mlc.transpose %{name}1 {{permutation = array<i64: {order}>}} : {split} -> {type_}",
        ]
    lines += [
        f"%s0 = mlc.matmul %q, %k : {head}, {keys} -> {scores}",
        f"%s1 = mlc.binary mul %s0, %a1 : {scores}, tensor<f32> -> {scores}",
        f"%s = mlc.softmax %s1 {{axis = 3 : i64, log = false}} : {scores}",
        f"%o = mlc.matmul %s, %v : {scores}, {head} -> {head}",
        f"%t = mlc.transpose %o {{permutation = array<i64: 0, 2, 1, 3>}} : {head} -> {split}",
        f"%r = mlc.reshape %t [{n}, {tokens}, {width}] : {split} -> {part}",
        f"return %r : {part}",
    ]
    inputs = draw((2 if batch == "?" else int(batch), tokens, 3 * width)), draw(()) / 8
    check(tmp_path, "\n".join(lines), [x, "tensor<f32>"], [part], [inputs], 1e-5)


@pytest.mark.parametrize("order", ["1, 0, 2", "2, 1, 0", "0, 2, 1", "1, 2, 0"])
def test_transposed_result_of_a_product(tmp_path: Path, order: str) -> None:
    a, b, m = "tensor<3x7x20xf32>", "tensor<20x35xf32>", "tensor<3x7x35xf32>"
    o = f"tensor<{'x'.join(str((3, 7, 35)[int(d)]) for d in order.split(', '))}xf32>"
    body = f"""
      %m = mlc.matmul %a0, %a1 : {a}, {b} -> {m}
      %r = mlc.transpose %m {{permutation = array<i64: {order}>}} : {m} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [a, b], [o], [(draw((3, 7, 20)), draw((20, 35), seed=1))], 1e-5)


@pytest.mark.parametrize("depth", [8, 64, 100])
def test_product_of_a_transposed_slice(tmp_path: Path, depth: int) -> None:
    x, t, b, o = f"tensor<{depth + 3}x9xf32>", f"tensor<9x{depth}xf32>", f"tensor<{depth}x18xf32>", "tensor<9x18xf32>"
    body = f"""
      %s = mlc.slice %a0 [2, 0] [{depth}, 9] [1, 1] : {x} -> tensor<{depth}x9xf32>
      %t = mlc.transpose %s {{permutation = array<i64: 1, 0>}} : tensor<{depth}x9xf32> -> {t}
      %r = mlc.matmul %t, %a1 : {t}, {b} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [x, b], [o], [(draw((depth + 3, 9)), draw((depth, 18), seed=1))], 1e-5)


@pytest.mark.parametrize("offset", [0, 1, 6])
def test_elementwise_of_slices_of_a_transpose(tmp_path: Path, offset: int) -> None:
    x, t, o = "tensor<5x12x9xf32>", "tensor<12x9x5xf32>", "tensor<6x9x5xf32>"
    body = f"""
      %t = mlc.transpose %a0 {{permutation = array<i64: 1, 2, 0>}} : {x} -> {t}
      %a = mlc.slice %t [{offset}, 0, 0] [6, 9, 5] [1, 1, 1] : {t} -> {o}
      %b = mlc.slice %t [0, 0, 0] [6, 9, 5] [2, 1, 1] : {t} -> {o}
      %r = mlc.binary sub %a, %b : {o}, {o} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [x], [o], [(draw((5, 12, 9)),)])


@pytest.mark.parametrize("stride", [1, 2])
def test_transpose_before_a_padded_convolution(tmp_path: Path, stride: int) -> None:
    size = (13 + 2 - 3) // stride + 1
    x, t, w, o = (
        "tensor<2x3x13x13xf32>",
        "tensor<2x13x13x3xf32>",
        "tensor<3x3x3x20xf32>",
        f"tensor<2x{size}x{size}x20xf32>",
    )
    body = f"""
      %t = mlc.transpose %a0 {{permutation = array<i64: 0, 2, 3, 1>}} : {x} -> {t}
      %r = mlc.conv %t, %a1 {{strides = array<i64: {stride}, {stride}>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc"}} : {t}, {w} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [x, w], [o], [(draw((2, 3, 13, 13)), draw((3, 3, 3, 20), seed=1))], 1e-5)
