"""Rounding to bf16 in integers, for targets without an instruction for it: LLVM would call a function for each element.

Numbers are rounded to nearest even by half a unit of the last place, less one bit where that is even, before the lower
half of the bits is cut off; a NaN stays one, with its highest bits.
"""

from __future__ import annotations

from typing import Any

ROUNDING = "arith.truncf"
_INSTRUCTIONS = ("+avx512bf16", "+avxneconvert")
_HALF, _QUIET = 0x7FFF, 0x0040


def rounds_in_integers(features: str) -> bool:
    """Does a target with `features` lack an instruction that rounds f32 to bf16?"""
    return not set(_INSTRUCTIONS) & set(features.split(","))


def round_in_integers(module: Any) -> None:
    """Replaces every `arith.truncf` of `module` from f32 to bf16."""
    import mlir.ir as ir

    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == ROUNDING:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in found:
        value, type_ = op.operands[0], op.results[0].type
        if isinstance(_element(value.type), ir.F32Type) and isinstance(_element(type_), ir.BF16Type):
            with ir.InsertionPoint(op), op.location:
                rounded = _rounded(value, type_)
            op.results[0].replace_all_uses_with(rounded)
            op.erase()


def _rounded(value: Any, type_: Any) -> Any:
    """`value`, of f32, as `type_`, of bf16."""
    import mlir.ir as ir
    from mlir.dialects import arith

    wide, narrow = (_of(type_, ir.IntegerType.get_signless(bits)) for bits in (32, 16))

    def constant(number: int) -> ir.Value:
        return _constant(wide, number)

    bits = arith.bitcast(wide, value)
    high = arith.shrui(bits, constant(16))
    bias = arith.addi(arith.andi(high, constant(1)), constant(_HALF))
    nearest = arith.shrui(arith.addi(bits, bias), constant(16))
    is_nan = arith.cmpf(arith.CmpFPredicate.UNO, value, value)
    kept = arith.select(is_nan, arith.ori(high, constant(_QUIET)), nearest)
    return arith.bitcast(type_, arith.trunci(narrow, kept))


def _constant(type_: Any, number: int) -> Any:
    """`number` in every element of `type_`."""
    import mlir.ir as ir
    from mlir.dialects import arith

    attribute = ir.IntegerAttr.get(_element(type_), number)
    if isinstance(type_, ir.VectorType):
        return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, attribute)).result
    return arith.ConstantOp(type_, attribute).result


def _element(type_: Any) -> Any:
    import mlir.ir as ir

    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _of(type_: Any, element: Any) -> Any:
    """`type_` with another element."""
    import mlir.ir as ir

    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element
