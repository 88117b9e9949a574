"""Pass `mlc-float8-contractions`: products of floats of eight bits that were quantized multiply these floats.

```mlir
%a = mlc.dequantize %x, %s : tensor<4x64xf8E4M3FN>, tensor<f32> -> tensor<4x64xf32>
%b = mlc.dequantize %w, %t {axis = 1} : tensor<64x8xf8E4M3FN>, tensor<8xf32> -> tensor<64x8xf32>
%0 = mlc.matmul %a, %b : …
// becomes
%c = mlc.transpose %w [1, 0] : tensor<8x64xf8E4M3FN>
%p = mlc.matmul %x, %c {transpose_rhs, widen} : tensor<4x64xf8E4M3FN>, tensor<8x64xf8E4M3FN> -> tensor<4x8xf32>
%0 = %p * (%s * %t)
```
Tensor cores multiply floats of eight bits exactly, and read both operands along the sum. With `native` they are what is
multiplied, where their rows are multiples of 16 bytes; other products, those of two formats, and those for chips
without such tensor cores, read them as bf16, which holds each of them. Scales that change along the sum, zero points
other than zero and products with an operand that was not quantized stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op, element, splat_number
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.codes import Codes, reduced_dims, turned
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations

_TYPES = (ir.Float8E4M3FNType, ir.Float8E5M2Type)
_ROW = 16  # elements: rows that the copy engine reads are multiples of 16 bytes


class Float8Contractions(Pass):
    """Products of quantized floats of eight bits multiply these floats."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"native": "products of floats of eight bits", "widened": "products that read them as bf16"}

    native: bool = False
    "Whether tensor cores multiply floats of eight bits"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for inner in operations(function):
                found = _sides(OpAdaptor(inner)) if inner.name == "mlc.matmul" else None
                if found is None:
                    continue
                is_native = self.native and found.is_regular
                with ir.InsertionPoint(inner), inner.location:
                    replace(inner, [_rewritten(OpAdaptor(inner), found, is_native)])
                self.count("native" if is_native else "widened")


@dataclass(frozen=True)
class _Sides:
    """The quantized operands of a product, and how many terms it sums."""

    left: Codes
    right: Codes
    depth: int

    @property
    def is_regular(self) -> bool:
        """Are the rows of both what the copy engine reads, and of one format?"""
        same = element(self.left.values) == element(self.right.values)
        return same and self.depth != DYNAMIC and self.depth % _ROW == 0


def _sides(op: OpAdaptor) -> _Sides | None:
    found = [_quantized(op, number) for number in range(2)]
    left, right = found
    if left is None or right is None or op.types[0].element_type.width < 16:
        return None
    return _Sides(left, right, left.values.type.shape[reduced_dims(op, 0)[0]])


def _quantized(op: OpAdaptor, number: int) -> Codes | None:
    """Operand `number` of a product as floats of eight bits and their scale; None when it is none."""
    source = defining_op(op.operand(number))
    if source is None or source.name != "mlc.dequantize":
        return None
    inner = OpAdaptor(source)
    values, scale, zero = inner.operand(0), inner.operand(1), inner.trailing(2)
    if not isinstance(element(values), _TYPES) or inner.int("block_size", 0):
        return None
    if zero is not None and splat_number(zero) != 0:
        return None
    codes = Codes(values, False, None, scale, inner.int("axis", 0))
    return codes if codes.varies_along(reduced_dims(op, number)) is None else None


def _rewritten(op: OpAdaptor, sides: _Sides, is_native: bool) -> ir.Value:
    operands = [_along_the_sum(op, n, c.values) for n, c in enumerate((sides.left, sides.right))]
    if not is_native:
        operands = [b.cast(v, ir.BF16Type.get()) for v in operands]
    names = ("transpose_rhs", "widen")
    total = b.operation("matmul", operands, {name: ir.UnitAttr.get() for name in names})[0]
    factors = []
    for number, codes in enumerate((sides.left, sides.right)):
        scale = codes.factor()
        assert scale is not None
        factors.append(b.cast(turned(op, number, scale), b.f32()))
    if all(f.type.rank for f in factors):  # of rows and of columns
        value = b.mul(b.mul(total, factors[0]), factors[1])
    else:
        value = b.mul(total, b.mul(*factors))
    return b.cast(value, op.types[0].element_type)


def _along_the_sum(op: OpAdaptor, number: int, value: ir.Value) -> ir.Value:
    """The matrices of an operand with the sum as their last dimension."""
    return value if reduced_dims(op, number) == [value.type.rank - 1] else b.transpose_matrices(value)
