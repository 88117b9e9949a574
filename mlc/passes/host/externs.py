"""Calls of the runtime that make, read and change sequences and optionals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlir.ir as ir
from mlir.dialects import arith, llvm

from mlc.passes.host.device import lower_constant
from mlc.passes.host.runtime_calls import descriptor, i64_constant, i64_type, pointer_type
from mlc.runtime.dtypes import dtype_code

if TYPE_CHECKING:
    from mlc.passes.host.entry import EntryLowering

# Functions that take the source node for their message, and may fail: they return a null handle then.
_CHECKED = {"mlc_rt_sequence_at", "mlc_rt_sequence_insert", "mlc_rt_sequence_erase", "mlc_rt_optional_get"}


def extern_words(op: ir.Operation) -> int:
    """How many words of the argument array a call needs."""
    return max(len(op.operands), *(v.type.rank for v in op.operands if isinstance(v.type, ir.MemRefType)), 0)


def lower_extern(entry: EntryLowering, op: ir.Operation) -> None:
    """`mlc.extern` of a runtime function. ValueError for another one."""
    callee = ir.StringAttr(op.attributes["callee"]).value
    if callee == "mlc_rt_data":
        _require_shape(entry, op)
        with ir.InsertionPoint(entry.current), op.location:
            op.results[0].replace_all_uses_with(_data(entry, op))
    elif callee == "mlc_rt_gpu_constant":
        pointer = lower_constant(entry, op)
        with ir.InsertionPoint(entry.current), op.location:
            op.results[0].replace_all_uses_with(descriptor(pointer, [], op.results[0].type))
    elif callee == "mlc_rt_length":
        length = entry.runtime.call(callee, [op.operands[0]], i64_type())
        op.results[0].replace_all_uses_with(length)
    else:
        handle = entry.runtime.call(callee, _operands(entry, op, callee), pointer_type())
        entry.stop_if_null(handle)
        op.results[0].replace_all_uses_with(handle)
    op.erase()


def _operands(entry: EntryLowering, op: ir.Operation, callee: str) -> list[ir.Value]:
    if callee == "mlc_rt_tensor":
        return _tensor(entry, op)
    if callee == "mlc_rt_sequence" or callee.startswith("mlc_text_"):
        entry.store_words([llvm.PtrToIntOp(i64_type(), item).result for item in op.operands])
        items = entry.array if len(op.operands) else llvm.ZeroOp(pointer_type()).result
        words = [entry.rt, i64_constant(len(op.operands)), items]
        return words if callee == "mlc_rt_sequence" else [*words, i64_constant(entry.node(op))]
    if callee == "mlc_rt_optional":
        return [entry.rt, op.operands[0] if len(op.operands) else llvm.ZeroOp(pointer_type()).result]
    if callee not in _CHECKED:
        raise ValueError(f"no routine '{callee}' is linked into artefacts (at {op.location})")
    return [entry.rt, *op.operands, i64_constant(entry.node(op))]


def _tensor(entry: EntryLowering, op: ir.Operation) -> list[ir.Value]:
    """Data type, rank, extents and data of a buffer."""
    value = op.operands[0]
    words = entry.shape_words(value.type, entry.extents(value))
    entry.store_words(words)
    dims = entry.array if words else llvm.ZeroOp(pointer_type()).result
    dtype = dtype_code(ir.StringAttr(op.attributes["config"]).value)
    data = llvm.IntToPtrOp(pointer_type(), entry.address(value)).result
    return [entry.rt, i64_constant(dtype), i64_constant(value.type.rank), dims, data]


def _require_shape(entry: EntryLowering, op: ir.Operation) -> None:
    """Stops the run when the tensor behind a handle, which may be a caller's, has not the shape of its type."""
    handle, target = op.operands[0], op.results[0].type
    shape = ",".join("?" if target.is_dynamic_dim(axis) else str(target.shape[axis]) for axis in range(target.rank))
    message = f"the elements of a sequence or optional must have the shape [{shape}]"
    rank = entry.runtime.call("mlc_rt_rank", [handle], i64_type())
    right = arith.cmpi(arith.CmpIPredicate.eq, rank, i64_constant(target.rank))
    entry.require(op, right, rank, f"{message}; found a rank of")
    with ir.InsertionPoint(entry.current), op.location:
        holds, wrong = None, i64_constant(0)
        for axis in range(target.rank):
            if target.is_dynamic_dim(axis):
                continue
            extent = entry.runtime.call("mlc_rt_dim_of", [handle, i64_constant(axis)], i64_type())
            right = arith.cmpi(arith.CmpIPredicate.eq, extent, i64_constant(target.shape[axis]))
            wrong = arith.select(right, wrong, extent)
            holds = right if holds is None else arith.andi(holds, right)
        if holds is not None:
            entry.require(op, holds, wrong, f"{message}; found an extent of")


def _data(entry: EntryLowering, op: ir.Operation) -> ir.Value:
    """The memory of a tensor behind a handle, with its extents."""
    handle, target = op.operands[0], op.results[0].type
    pointer = entry.runtime.call("mlc_rt_data", [handle], pointer_type())
    extents = []
    for axis in range(target.rank):
        if target.is_dynamic_dim(axis):
            extent = entry.runtime.call("mlc_rt_dim_of", [handle, i64_constant(axis)], i64_type())
            extents.append(arith.index_cast(ir.IndexType.get(), extent))
    return descriptor(pointer, extents, target)
