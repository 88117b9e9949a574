"""Known divisors of index values, and the alignment of memory accesses that follows from them.

A vector load is one instruction on a GPU only when the compiler knows that its address is a multiple of its size. The
address is a tensor's start, whose alignment the frame knows, plus an element offset; the offset's divisor is derived
from the arithmetic that computes it.
"""

from __future__ import annotations

from math import gcd

from mlir import ir

from mlc.kernels.common.frame import Frame
from mlc.kernels.common.index import Scalar

_MANY = 1 << 30  # divides zero, and as much as any alignment asks for


def divisor(value: Scalar) -> int:
    """The largest power of two that `value` is known to be a multiple of (at most 2^30)."""
    if isinstance(value, int):
        return gcd(value, _MANY)
    if isinstance(value.owner, ir.Block):
        return _loop_variable(value)
    op = value.owner.operation
    if op.name == "arith.constant":
        return gcd(ir.IntegerAttr(op.attributes["value"]).value, _MANY)
    if op.name in ("arith.index_cast", "arith.index_castui"):
        return divisor(op.operands[0])
    if op.name == "arith.select":
        return gcd(divisor(op.operands[1]), divisor(op.operands[2]))
    if op.name not in ("arith.addi", "arith.subi", "arith.muli", "arith.remui", "arith.minsi", "arith.maxsi"):
        return 1
    a, b = (divisor(v) for v in op.operands)
    return gcd(a * b, _MANY) if op.name == "arith.muli" else gcd(a, b)


def _loop_variable(value: ir.Value) -> int:
    """The variable of an `scf.for` is its lower bound plus steps."""
    loop = value.owner.owner
    if loop is None or loop.operation.name != "scf.for" or ir.BlockArgument(value).arg_number != 0:
        return 1
    low, _, step = list(loop.operation.operands)[:3]
    return gcd(divisor(low), divisor(step))


def access_alignment(frame: Frame, base: Scalar, element: ir.Type) -> int | None:
    """Bytes that the address of element `base` of a tensor is known to be a multiple of.

    None when the frame promises nothing about tensors, or when it is no more than the element's size.
    """
    if not frame.alignment:
        return None
    size = (element.width + 7) // 8
    known = gcd(divisor(base) * size, frame.alignment)
    return known if known > size else None
