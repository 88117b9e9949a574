"""Conditions that positions alone decide."""

from __future__ import annotations

import pytest

pytest.importorskip("mlir.ir")
pytest.importorskip("mlc.compiler_setup")

from mlir import ir

from mlc.kernels.common.positional import Linear, band_of, is_mask, is_positional

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


def _offset(limit: Linear) -> int:
    """What a limit is more than the row's number."""
    assert limit.factors == ((0, 1),) and not limit.terms or limit.factors == ((1, 1),) and not limit.terms
    return limit.constant


def _band(generic: ir.Operation) -> tuple[int | None, int | None, bool]:
    """The largest first column and the least last one, less the row's number, and whether that is all."""
    body = [o.operation for o in generic.regions[0].blocks[0].operations]
    select = next(op for op in body if op.name == "arith.select")
    band = band_of(generic, select.operands[0])
    firsts, lasts = ([_offset(limit) for limit in limits] for limits in (band.firsts, band.lasts))
    return max(firsts, default=None), min(lasts, default=None), band.is_whole


ALL = (None, None)


@pytest.mark.parametrize(
    ("body", "band"),
    [
        ("%shown = arith.cmpi sle, %column, %row : index", (None, 0)),
        ("%shown = arith.cmpi slt, %column, %row : index", (None, -1)),
        ("%shown = arith.cmpi sge, %row, %column : index", (None, 0)),
        ("%k = arith.addi %row, %c3 : index\n%shown = arith.cmpi slt, %column, %k : index", (None, 2)),
        ("%k = arith.subi %column, %c3 : index\n%shown = arith.cmpi sgt, %row, %k : index", (None, 2)),
        ("%shown = arith.cmpi sge, %column, %row : index", (0, None)),
        ("%k = arith.subi %row, %c3 : index\n%shown = arith.cmpi sgt, %column, %k : index", (-2, None)),
        ("%k = arith.addi %column, %c3 : index\n%shown = arith.cmpi slt, %row, %k : index", (-2, None)),
        ("%shown = arith.cmpi eq, %column, %row : index", None),
        ("%k = arith.addi %row, %row : index\n%shown = arith.cmpi sle, %column, %k : index", None),
        ("%k = arith.muli %row, %c3 : index\n%shown = arith.cmpi sle, %column, %k : index", None),
    ],
)
def test_conditions_in_the_body(body: str, band: tuple[int | None, int | None] | None) -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT.format(body=body))
        assert _band(_last_generic(module)) == (*(band or ALL), band is not None)


def test_several_conditions() -> None:
    """Of each kind the narrowest counts; what says nothing of positions is left for others to compute."""
    body = """
    %a = arith.cmpi sle, %column, %row : index
    %k = arith.subi %row, %c3 : index
    %b = arith.cmpi sgt, %column, %k : index
    %c = arith.cmpi slt, %column, %row : index
    %d = arith.andi %a, %b : i1
    %g = arith.andi %d, %c : i1
    """
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT.format(body=f"{body}\n%shown = arith.andi %g, %a : i1"))
        assert _band(_last_generic(module)) == (-2, -1, True)
        other = "%h = arith.cmpf ogt, %in, %low : f32\n%shown = arith.andi %g, %h : i1"
        module = ir.Module.parse(TEXT.format(body=f"{body}\n{other}"))
        assert _band(_last_generic(module)) == (-2, -1, False)


def test_a_mask_of_other_generics() -> None:
    """Coordinates go through broadcasts; a mask that is data says nothing."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(SHARED)
        generic = _last_generic(module)
        assert _band(generic) == (None, 0, True)
        assert is_positional(generic.operands[0].owner.operation) and not is_positional(generic)
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(SHARED.replace("ins(%mask, %x", "ins(%m, %x"))
        assert _band(_last_generic(module)) == (None, None, False)


def test_masks_of_columns() -> None:
    """Booleans that are the same for all rows leave a mask one that a kernel computes for itself; those of rows do
    not."""
    both = SHARED.replace("ins(%mask, %x", "ins(%both, %x").replace(
        "  %e2 =",
        """  %both = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, d1)>,
                       affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%mask, %m : tensor<4x8xi1>, tensor<4x8xi1>) outs(%e1 : tensor<4x8xi1>) {
  ^bb0(%a: i1, %b: i1, %out: i1):
    %c = arith.andi %a, %b : i1
    linalg.yield %c : i1
  } -> tensor<4x8xi1>
  %e2 =""",
    )
    of_rows = both.replace(
        "-> (0, d1)>,\n                       affine", "-> (d0, d1)>,\n                       affine"
    )
    for text, found in ((both, True), (of_rows, False)):
        with ir.Context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            generic = _last_generic(module)
            mask = generic.operands[0].owner.operation
            assert is_mask(mask) == found and not is_positional(mask)
            assert _band(generic) == (None, 0, False)
