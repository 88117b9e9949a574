"""Ends of lines that are stored as parts of vectors, and lines that are read backwards, where masks are slow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_templates import check, draw

CPU = "x86-64-v3"


@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i16", "i8", "i1"])
@pytest.mark.parametrize("count", [9, 11, 13, 15, 21, 30])
def test_ends_of_lines(tmp_path: Path, dtype: str, count: int) -> None:
    """What follows the last element in memory stays as it is: the next results are checked as well."""
    source, kind = f"tensor<{count}xf32>", f"tensor<{count}x{dtype}>"
    body = f"""
      %n = mlc.unary neg %a0 : {source}
      %r = mlc.cast %n : {source} -> {kind}
      %s = mlc.unary abs %n : {source}
      return %r, %s : {kind}, {source}"""
    if dtype == "f32":
        body = body.replace(f"%r = mlc.cast %n : {source} -> {kind}", f"%r = mlc.unary exp %n : {source}")
    check(tmp_path, body, [source], [kind, source], [(draw((count,)) * 20,)], 2e-6, cpu=CPU)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "constant"])
@pytest.mark.parametrize("width", [9, 17, 40])
@pytest.mark.parametrize("low, high", [(3, 2), (8, 1), (0, 7), (1, 8)])
@pytest.mark.parametrize("cpu", [CPU, "native"])
def test_padding(tmp_path: Path, mode: str, width: int, low: int, high: int, cpu: str) -> None:
    source, result = f"tensor<3x6x{width}xf32>", f"tensor<3x9x{width + low + high}xf32>"
    body = f"""
      %r = mlc.pad {mode} %a0 low [0, 2, {low}] high [0, 1, {high}] : {source} -> {result}
      return %r : {result}"""
    check(tmp_path, body, [source], [result], [(draw((3, 6, width)),)], 0.0, cpu=cpu)


def test_rows_of_a_softmax(tmp_path: Path) -> None:
    for width in (9, 29, 71, 197):
        t = f"tensor<5x{width}xf32>"
        body = f"%r = mlc.softmax %a0 {{axis = 1 : i64, log = false}} : {t}\nreturn %r : {t}"
        check(tmp_path, body, [t], [t], [(np.float32(3) * draw((5, width)),)], 5e-6, cpu=CPU)
