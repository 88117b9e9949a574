"""Attention of shifted windows, as Swin Transformers have it: the mask has a dimension for the batch, of one element."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mlc

WINDOWS, HEADS, TOKENS, WIDTH = 4, 3, 49, 32


def _module() -> str:
    q, s = f"{WINDOWS}x{HEADS}x{TOKENS}x{WIDTH}xf32", f"{WINDOWS}x{HEADS}x{TOKENS}x{TOKENS}xf32"
    b, m = f"{HEADS}x{TOKENS}x{TOKENS}xf32", f"1x{WINDOWS}x1x{TOKENS}x{TOKENS}xf32"
    argument = ", ".join(f'%{n}: tensor<{q}> {{mlc.name = "{n}", mlc.dtype = "float32"}}' for n in "qkv")
    return f"""
module {{ func.func @forward({argument}) -> (tensor<{q}> {{mlc.name = "y", mlc.dtype = "float32"}}) {{
  %bias = mlc.constant dense<"{_hex(_bias())}"> : tensor<{b}>
  %mask = mlc.constant dense<"{_hex(_mask())}"> : tensor<{m}>
  %s = mlc.matmul %q, %k {{transpose_rhs}} : tensor<{q}>, tensor<{q}> -> tensor<{s}>
  %b = mlc.binary add %s, %bias : tensor<{s}>, tensor<{b}> -> tensor<{s}>
  %r = mlc.reshape %b [1, {WINDOWS}, {HEADS}, {TOKENS}, {TOKENS}] : tensor<{s}> -> tensor<1x{s}>
  %a = mlc.binary add %r, %mask : tensor<1x{s}>, tensor<{m}> -> tensor<1x{s}>
  %z = mlc.reshape %a [{WINDOWS}, {HEADS}, {TOKENS}, {TOKENS}] : tensor<1x{s}> -> tensor<{s}>
  %p = mlc.softmax %z {{axis = 3 : i64, log = false}} : tensor<{s}>
  %y = mlc.matmul %p, %v : tensor<{s}>, tensor<{q}> -> tensor<{q}>
  return %y : tensor<{q}>
}} }}"""


def _hex(array: np.ndarray) -> str:
    return "0x" + array.astype("<f4").tobytes().hex()


def _bias() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((HEADS, TOKENS, TOKENS))


def _mask() -> np.ndarray:
    return np.where(np.random.default_rng(2).random((1, WINDOWS, 1, TOKENS, TOKENS)) < 0.4, -100.0, 0.0)


def test_masked_windows_are_one_kernel(tmp_path: Path) -> None:
    source = tmp_path / "windows.mlir"
    source.write_text(_module())
    model = mlc.compile(source, output=tmp_path / "windows.so", from_phase="import", cache=False)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["attention"]
    draw = np.random.default_rng(0)
    q, k, v = (draw.standard_normal((WINDOWS, HEADS, TOKENS, WIDTH)).astype(np.float32) for _ in range(3))
    scores = q.astype(np.float64) @ np.swapaxes(k, 2, 3) + _bias() + _mask()[0]
    power = np.exp(scores - scores.max(axis=3, keepdims=True))
    expected = power / power.sum(axis=3, keepdims=True) @ v
    np.testing.assert_allclose(model(q, k, v)[0], expected, rtol=1e-4, atol=1e-5)
