"""Steps of a sequence that are written into what a loop carries, against the NumPy interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_templates import check, draw

_T, _U = "tensor<5x3xf32>", "tensor<1x3xf32>"
_STEP = f"""
        %i64 = arith.index_cast %i : index to i64
        %p = tensor.from_elements %i64 : tensor<1x1xi64>
        %u = mlc.slice %a1 [%i, 0] [1, 3] [1, 1] : {_T} -> {_U}"""
_LOOP = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index"""


def test_only_the_step_is_written(tmp_path: Path) -> None:
    body = f"""{_LOOP}
      %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %a0) -> ({_T}) {{{_STEP}
        %n = mlc.scatter_nd %y, %p, %u {{reduction = "add"}} : {_T}, tensor<1x1xi64>, {_U} -> {_T}
        scf.yield %n : {_T}
      }}
      return %r : {_T}"""
    check(tmp_path, body, [_T, _T], [_T], [(draw((5, 3)), draw((5, 3), seed=1))])


@pytest.mark.parametrize("yielded", ["%n, %y", "%y, %n", "%n, %m"])
def test_what_is_read_again_is_copied(tmp_path: Path, yielded: str) -> None:
    body = f"""{_LOOP}
      %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %a0, %z = %a1) -> ({_T}, {_T}) {{{_STEP}
        %n = mlc.scatter_nd %y, %p, %u {{reduction = "add"}} : {_T}, tensor<1x1xi64>, {_U} -> {_T}
        %m = mlc.binary sub %z, %y : {_T}, {_T} -> {_T}
        scf.yield {yielded} : {_T}, {_T}
      }}
      return %r#0, %r#1 : {_T}, {_T}"""
    check(tmp_path, body, [_T, _T], [_T, _T], [(draw((5, 3)), draw((5, 3), seed=1))])


def test_exchanged_results(tmp_path: Path) -> None:
    body = f"""{_LOOP}
      %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %a0, %z = %a1) -> ({_T}, {_T}) {{{_STEP}
        %n = mlc.scatter_nd %y, %p, %u {{reduction = "add"}} : {_T}, tensor<1x1xi64>, {_U} -> {_T}
        %m = mlc.scatter_nd %z, %p, %u {{reduction = "mul"}} : {_T}, tensor<1x1xi64>, {_U} -> {_T}
        scf.yield %m, %n : {_T}, {_T}
      }}
      return %r#0, %r#1 : {_T}, {_T}"""
    check(tmp_path, body, [_T, _T], [_T, _T], [(draw((5, 3)), draw((5, 3), seed=1))])


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_long_sequences(tmp_path: Path, kind: str, direction: str) -> None:
    gates, directions = {"rnn": 1, "gru": 3, "lstm": 4}[kind], 2 if direction == "bidirectional" else 1
    shapes = [(directions, gates * 5, 6), (directions, gates * 5, 5), (directions, gates * 10)]
    w, r, b = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in shapes)
    x, y, h = "tensor<?x2x6xf32>", f"tensor<?x{directions}x2x5xf32>", f"tensor<{directions}x2x5xf32>"
    body = f"""
      %y, %h, %c = mlc.recurrent {kind} %a0, %a1, %a2 bias(%a3 : {b}) {{activations = [], direction = "{direction}"}}
        : {x}, {w}, {r} -> {y}, {h}, {h}
      return %y, %h : {y}, {h}"""
    weights = [(draw(s, seed=i) / 3).astype(np.float32) for i, s in enumerate(shapes)]
    check(tmp_path, body, [x, w, r, b], [y, h], [(draw((n, 2, 6), seed=9), *weights) for n in (1, 2, 40)], 1e-5)
