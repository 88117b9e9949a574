"""Pass `mlc-drop-signs`: codes that instructions want without a sign are written without one.

```mlir
%q = mlc.quantize %x, %s zero_point(%c-5) …      →     %q = mlc.quantize %x, %s zero_point(%c123) {unsigned} …
%f = mlc.dequantize %q, %s zero_point(%c-5) …    →     %f = mlc.dequantize %q, %s zero_point(%c123) {unsigned} …
%y = mlc.conv %f, %w {mlc.integers, …}
```
`vpdpbusd` multiplies bytes of which one has no sign. A contraction that is planned so (`mlc.integers`, without
`mlc.own_signs` or `mlc.never_negative`) would turn over the highest bit of every code that it reads, as often as it
reads it. Codes that are 128 larger, about a zero point that is 128 larger, stand for the same numbers: the kernel that
quantizes them adds another constant, and nobody turns anything over.

That is done where all who read the codes dequantize them, maybe behind reshapes, transposes, slices and maxima of
windows, and what is quantized is known to be finite: NaN has the code 0, with a sign and without one.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from mlc.kernels.common.generics import NEVER_NEGATIVE
from mlc.passes.adaptor import OpAdaptor, splat_number
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.codes import OWN_SIGNS, PLANNED
from mlc.passes.simplify.finite import Finite
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations

_MOVES = ("mlc.reshape", "mlc.transpose", "mlc.slice")
_UNSIGNED = "unsigned"


class DropSigns(Pass):
    """Writes codes without a sign where instructions want them so."""

    dialects = ("mlc",)
    statistics = {"dropped": "quantizations to codes that have no sign any more"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            finite = Finite()
            groups = [_group(inner, finite) for inner in operations(function) if inner.name == "mlc.quantize"]
            for group in groups:
                for inner in group:
                    _drop_sign(inner)
                self.count("dropped", int(bool(group)))


def _group(quantize: ir.Operation, finite: Finite) -> list[ir.Operation]:
    """`quantize` and all operations that say of its codes that they have a sign; none where they are to keep it."""
    if not _has_sign(OpAdaptor(quantize)):
        return []
    group, pending = [quantize], [quantize.results[0]]
    while pending:
        for use in pending.pop().uses:
            reader = use.owner.operation
            view = OpAdaptor(reader)
            if reader.name in _MOVES:
                pending.append(reader.results[0])
            elif reader.name == "mlc.pool" and view.text() == "max" and not view.flag(_UNSIGNED):
                pending.append(reader.results[0])
                group.append(reader)
            elif reader.name == "mlc.dequantize" and use.operand_number == 0 and _has_sign(view):
                group.append(reader)
            else:
                return []
    readers = [op for op in group if op.name == "mlc.dequantize"]
    return group if _suits_contractions(readers) and finite.has(quantize.operands[0]) else []


def _has_sign(op: OpAdaptor) -> bool:
    """Are the codes bytes with a sign, all of them about one known zero point?"""
    codes = op.operand(0) if op.name == "mlc.dequantize" else op.op.results[0]
    zero, byte = op.trailing(2), ir.IntegerType.get_signless(8)
    if codes.type.element_type != byte or op.flag(_UNSIGNED) or op.operand(1).type.rank:
        return False
    return zero is None or zero.type.rank == 0 and splat_number(zero) is not None


def _suits_contractions(readers: list[ir.Operation]) -> bool:
    """Does a contraction read what `readers` dequantize that wants codes without a sign, and none that wants it?"""
    wanted = False
    for dequantize in readers:
        for use in dequantize.results[0].uses:
            attributes = use.owner.operation.attributes
            if PLANNED not in attributes or use.operand_number != 0:
                continue
            if OWN_SIGNS in attributes or NEVER_NEGATIVE in attributes:
                return False
            wanted = True
    return wanted


def _drop_sign(op: ir.Operation) -> None:
    """Says that the codes that `op` reads or writes have no sign, and moves their zero point by 128."""
    op.attributes[_UNSIGNED] = ir.UnitAttr.get()
    if op.name == "mlc.pool":
        return
    zero = OpAdaptor(op).trailing(2)
    known = 0 if zero is None else int(splat_number(zero) or 0)
    with ir.InsertionPoint(op), op.location:
        moved = b.scalar(known % 256 - 128, ir.IntegerType.get_signless(8))  # its bits are those of known + 128
        attributes = {name: op.attributes[name] for name in op.attributes}
        types = [result.type for result in op.results]
        new = ir.Operation.create(op.name, types, [*list(op.operands)[:2], moved], attributes)
    replace(op, list(new.results))
