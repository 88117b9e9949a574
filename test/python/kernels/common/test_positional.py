"""Conditions that positions alone decide."""

from __future__ import annotations

import pytest

pytest.importorskip("mlir.ir")
pytest.importorskip("mlc.compiler_setup")

from mlir import ir

from mlc.kernels.common.positional import is_positional, last_visible

TEXT = """
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %c3 = arith.constant 3 : index
  %r = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]
    }} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    {body}
    %s = arith.select %shown, %in, %low : f32
    linalg.yield %s : f32
  }} -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}}
"""

SHARED = """
func.func @f(%x: tensor<2x4x8xf32>, %m: tensor<4x8xi1>) -> tensor<2x4x8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<1x8xi64>
  %columns = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]
    } outs(%e0 : tensor<1x8xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<1x8xi64>
  %e1 = tensor.empty() : tensor<4x8xi1>
  %mask = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%columns : tensor<1x8xi64>) outs(%e1 : tensor<4x8xi1>) {
  ^bb0(%in: i64, %out: i1):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %b = arith.cmpi sge, %n, %in : i64
    linalg.yield %b : i1
  } -> tensor<4x8xi1>
  %e2 = tensor.empty() : tensor<2x4x8xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
                       affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } ins(%mask, %x : tensor<4x8xi1>, tensor<2x4x8xf32>) outs(%e2 : tensor<2x4x8xf32>) {
  ^bb0(%shown: i1, %in: f32, %out: f32):
    %s = arith.select %shown, %in, %low : f32
    linalg.yield %s : f32
  } -> tensor<2x4x8xf32>
  return %r : tensor<2x4x8xf32>
}
"""


def _last_generic(module: ir.Module) -> ir.Operation:
    function = module.body.operations[0]
    ops = [o.operation for o in function.regions[0].blocks[0].operations]
    return [op for op in ops if op.name == "linalg.generic"][-1]


def _offset(generic: ir.Operation) -> int | None:
    body = [o.operation for o in generic.regions[0].blocks[0].operations]
    select = next(op for op in body if op.name == "arith.select")
    return last_visible(generic, select.operands[0])


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("%shown = arith.cmpi sle, %column, %row : index", 0),
        ("%shown = arith.cmpi slt, %column, %row : index", -1),
        ("%shown = arith.cmpi sge, %row, %column : index", 0),
        ("%k = arith.addi %row, %c3 : index\n%shown = arith.cmpi slt, %column, %k : index", 2),
        ("%k = arith.subi %column, %c3 : index\n%shown = arith.cmpi sgt, %row, %k : index", 2),
        ("%shown = arith.cmpi sge, %column, %row : index", None),
        ("%shown = arith.cmpi eq, %column, %row : index", None),
        ("%shown = arith.cmpi sle, %column, %c3 : index", None),
        ("%k = arith.addi %row, %row : index\n%shown = arith.cmpi sle, %column, %k : index", None),
        ("%k = arith.muli %row, %c3 : index\n%shown = arith.cmpi sle, %column, %k : index", None),
    ],
)
def test_conditions_in_the_body(body: str, offset: int | None) -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT.format(body=body))
        assert _offset(_last_generic(module)) == offset


def test_a_mask_of_other_generics() -> None:
    """Coordinates go through broadcasts; a mask that is data says nothing."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(SHARED)
        generic = _last_generic(module)
        assert _offset(generic) == 0
        assert is_positional(generic.operands[0].owner.operation) and not is_positional(generic)
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(SHARED.replace("ins(%mask, %x", "ins(%m, %x"))
        assert _offset(_last_generic(module)) is None
