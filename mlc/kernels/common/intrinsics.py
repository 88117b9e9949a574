"""Instructions that MLIR has no operation for, as calls of LLVM's intrinsics."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir


def intrinsic(name: str, types: Sequence[ir.Type], operands: Sequence[ir.Value]) -> ir.Operation:
    """A call of `llvm.<name>` with results of `types`."""
    attributes = {
        "intrin": ir.StringAttr.get(f"llvm.{name}"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return ir.Operation.create("llvm.call_intrinsic", list(types), list(operands), attributes)


def x86(name: str, type_: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    """What the instruction `name` of x86 gives."""
    return intrinsic(f"x86.{name}", [type_], operands).result
