"""Factors of slices of a product, and gathers that are slices, keep the results."""

from __future__ import annotations

import numpy as np
import pytest
from linalg_runner import compare, context, interpret
from mlir import ir

import mlc.compiler_setup  # noqa: F401
from mlc.passes.base import run_pipeline

RNG = np.random.default_rng(7)
PASSES = "mlc-slice-gathers,mlc-fold-factors,canonicalize,cse"


def _check(text: str, passes: str) -> str:
    with context(), ir.Location.name("node"):
        module = ir.Module.parse(text)
        arrays = [RNG.standard_normal((3, 5, 4)).astype(np.float32)]
        expected = interpret(module, arrays)
        run_pipeline(module, passes)
        compare(interpret(module, arrays), expected, 1e-5)
        return str(module)


def _projection(bias: bool, transposed: bool, places: tuple[int, ...] = (0, 1, -1)) -> str:
    """A product of 12 columns, of which three parts of four are taken, two of them times a factor."""
    values = RNG.integers(-4, 5, (12, 4) if transposed else (4, 12)).astype(float)
    rows, kind = values.tolist(), "tensor<12x4xf32>" if transposed else "tensor<4x12xf32>"
    added = "%p = mlc.binary add %m, %b : tensor<3x5x12xf32>, tensor<12xf32> -> tensor<3x5x12xf32>"
    parts = "\n".join(
        f"""%i{n} = mlc.constant dense<{place}> : tensor<i64>
      %s{n} = mlc.gather %g, %i{n} {{axis = 0 : i64}} : tensor<3x5x3x4xf32>, tensor<i64> -> tensor<5x3x4xf32>"""
        for n, place in enumerate(places)
    )
    result = "tensor<5x3x4xf32>"
    return f"""func.func @f(%x: tensor<3x5x4xf32>) -> ({result}, tensor<3x5x4xf32>, {result}) {{
      %w = mlc.constant dense<{rows}> : {kind}
      %b = mlc.constant dense<{list(map(float, range(12)))}> : tensor<12xf32>
      %c = mlc.constant dense<0.25> : tensor<1xf32>
      %d = mlc.constant dense<3.0> : tensor<f32>
      %m = mlc.matmul %x, %w {{{"transpose_rhs" if transposed else ""}}} : tensor<3x5x4xf32>, {kind} -> tensor<3x5x12xf32>
      {added if bias else ""}
      %r = mlc.reshape {"%p" if bias else "%m"} [3, 5, 3, 4] : tensor<3x5x12xf32> -> tensor<3x5x3x4xf32>
      %g = mlc.transpose %r {{permutation = array<i64: 2, 1, 0, 3>}} : tensor<3x5x3x4xf32> -> tensor<3x5x3x4xf32>
      {parts}
      %q = mlc.binary mul %s0, %c : {result}, tensor<1xf32> -> {result}
      %t = mlc.transpose %s1 {{permutation = array<i64: 1, 0, 2>}} : {result} -> tensor<3x5x4xf32>
      %k = mlc.binary mul %d, %t : tensor<f32>, tensor<3x5x4xf32> -> tensor<3x5x4xf32>
      return %q, %k, %s2 : {result}, tensor<3x5x4xf32>, {result}
    }}"""


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_factors_become_weights(bias: bool, transposed: bool) -> None:
    changed = _check(_projection(bias, transposed), PASSES)
    assert "mlc.gather" not in changed
    of_slices = [line for line in changed.splitlines() if "mlc.binary mul" in line and "5x3x4" in line]
    assert not of_slices and "mlc.binary mul" in changed


def test_parts_that_overlap_keep_their_factors() -> None:
    changed = _check(_projection(True, True, (0, 0, 1)), PASSES)
    assert changed.count("mlc.binary mul") == 2


def test_gathers_of_several_places_stay() -> None:
    text = """func.func @f(%x: tensor<3x5x4xf32>) -> tensor<2x5x4xf32> {
      %i = mlc.constant dense<[2, 0]> : tensor<2xi64>
      %r = mlc.gather %x, %i {axis = 0 : i64} : tensor<3x5x4xf32>, tensor<2xi64> -> tensor<2x5x4xf32>
      return %r : tensor<2x5x4xf32>
    }"""
    assert "mlc.gather" in _check(text, PASSES)
