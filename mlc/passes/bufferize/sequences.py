"""Sequences and optionals on the host: calls of the runtime on handles.

A handle (`!llvm.ptr`) is an immutable value of the runtime that lives until the end of the run. A tensor that
goes into a sequence is copied into one (`mlc_rt_tensor`); one that comes out is read where it lies
(`mlc_rt_data`).

```mlir
%t = mlc.sequence_at %s, %i : !mlc.seq<tensor<?xf32>>, tensor<i64> -> tensor<?xf32>
// becomes
%h = mlc.extern "mlc_rt_sequence_at"(%s, %position) : (!llvm.ptr, i64) -> !llvm.ptr
%t = mlc.extern "mlc_rt_data"(%h) : (!llvm.ptr) -> memref<?xf32>
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import mlir.ir as ir
from mlir.dialects import arith, memref

from mlc.passes.bufferize.signature import innermost
from mlc.passes.bufferize.types import host_type

if TYPE_CHECKING:
    from mlc.passes.bufferize.bufferize_host import HostFunction

Handler = Callable[["HostFunction", ir.Operation], None]


def call(callee: str, operands: Sequence[ir.Value], result: ir.Type, config: str = "") -> ir.Value:
    """A call of the runtime function `callee` at the insertion point."""
    attributes = {"callee": ir.StringAttr.get(callee), "config": ir.StringAttr.get(config)}
    return ir.Operation.create("mlc.extern", [result], list(operands), attributes).result


def _pointer() -> ir.Type:
    return ir.Type.parse("!llvm.ptr")


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _boxed(host: HostFunction, value: ir.Value, container: ir.Type) -> ir.Value:
    """`value` as a handle, for the sequence or optional of type `container`."""
    held = host.buffer(value)
    if not isinstance(held.type, ir.MemRefType):
        return held
    return call("mlc_rt_tensor", [held], _pointer(), host.element_dtype(innermost(container)[1]))


def _unboxed(handle: ir.Value, kind: ir.Type) -> ir.Value:
    """What `handle` holds, as a value of the type `kind` on the host."""
    if not isinstance(kind, ir.RankedTensorType):
        return handle
    return call("mlc_rt_data", [handle], host_type(kind))


def _scalar(host: HostFunction, value: ir.Value) -> ir.Value:
    """The element of a tensor of rank 0."""
    return memref.LoadOp(host.buffer(value), []).result


def _stored(host: HostFunction, value: ir.Value, op: ir.Operation) -> ir.Value:
    """A buffer of rank 0 that holds `value`, the result of `op`."""
    target = memref.AllocOp(host_type(op.results[0].type), [], [], alignment=64).result
    memref.store(value, target, [])
    return target


def _make(host: HostFunction, op: ir.Operation) -> None:
    items = [_boxed(host, value, op.results[0].type) for value in op.operands]
    host.define(op, [call("mlc_rt_sequence", items, _pointer())])


def _at(host: HostFunction, op: ir.Operation) -> None:
    operands = [host.buffer(op.operands[0]), _scalar(host, op.operands[1])]
    handle = call("mlc_rt_sequence_at", operands, _pointer())
    host.define(op, [_unboxed(handle, op.results[0].type)])


def _insert(host: HostFunction, op: ir.Operation) -> None:
    sequence = host.buffer(op.operands[0])
    item = _boxed(host, op.operands[1], op.results[0].type)
    if len(op.operands) > 2:
        position = _scalar(host, op.operands[2])
    else:
        position = call("mlc_rt_length", [sequence], _i64())
    host.define(op, [call("mlc_rt_sequence_insert", [sequence, item, position], _pointer())])


def _erase(host: HostFunction, op: ir.Operation) -> None:
    position = _scalar(host, op.operands[1]) if len(op.operands) > 1 else arith.constant(_i64(), -1)
    host.define(op, [call("mlc_rt_sequence_erase", [host.buffer(op.operands[0]), position], _pointer())])


def _length(host: HostFunction, op: ir.Operation) -> None:
    host.define(op, [_stored(host, call("mlc_rt_length", [host.buffer(op.operands[0])], _i64()), op)])


def _some(host: HostFunction, op: ir.Operation) -> None:
    host.define(op, [call("mlc_rt_optional", [_boxed(host, op.operands[0], op.results[0].type)], _pointer())])


def _none(host: HostFunction, op: ir.Operation) -> None:
    host.define(op, [call("mlc_rt_optional", [], _pointer())])


def _has(host: HostFunction, op: ir.Operation) -> None:
    length = call("mlc_rt_length", [host.buffer(op.operands[0])], _i64())
    # An optional holds no value or one.
    host.define(op, [_stored(host, arith.trunci(ir.IntegerType.get_signless(8), length), op)])


def _get(host: HostFunction, op: ir.Operation) -> None:
    handle = call("mlc_rt_optional_get", [host.buffer(op.operands[0])], _pointer())
    host.define(op, [_unboxed(handle, op.results[0].type)])


def text_call(host: HostFunction, op: ir.Operation, callee: str) -> None:
    """A routine on strings: handles of inputs and configuration go in, a sequence of the results comes out."""
    items = [call("mlc_rt_tensor", [host.buffer(v)], _pointer(), _dtype(host, v)) for v in op.operands]
    config = ir.StringAttr(op.attributes["config"]).value if "config" in op.attributes else ""
    if config:
        i8 = ir.IntegerType.get_signless(8)
        data = [ir.IntegerAttr.get(i8, byte - 256 if byte > 127 else byte) for byte in config.encode()]
        kind = ir.RankedTensorType.get([len(data)], i8)
        held = host.constants.get(ir.DenseElementsAttr.get(data, kind), kind)
        items.append(call("mlc_rt_tensor", [held], _pointer(), "uint8"))
    results = call(callee, items, _pointer())
    outputs = []
    for number, result in enumerate(op.results):
        handle = call("mlc_rt_sequence_at", [results, arith.constant(_i64(), number)], _pointer())
        outputs.append(_unboxed(handle, result.type))
    host.define(op, outputs)


def _dtype(host: HostFunction, value: ir.Value) -> str:
    return host.element_dtype(value.type.element_type)


HANDLERS: dict[str, Handler] = {
    "mlc.sequence_make": _make,
    "mlc.sequence_at": _at,
    "mlc.sequence_insert": _insert,
    "mlc.sequence_erase": _erase,
    "mlc.sequence_length": _length,
    "mlc.optional_some": _some,
    "mlc.optional_none": _none,
    "mlc.optional_has": _has,
    "mlc.optional_get": _get,
}
