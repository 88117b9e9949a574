"""What host code does with the GPU: launches, copies and memory, as calls of the runtime's `mlc_rt_gpu_` functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlir.ir as ir
from mlir.dialects import arith, llvm

from mlc.codegen.symbols import kernel_symbol
from mlc.passes.host.runtime_calls import i64_constant, pointer_type
from mlc.passes.walk import called_kernel

if TYPE_CHECKING:
    from mlc.passes.host.entry import EntryLowering

LAUNCH_WORDS = 3  # behind the arguments of a launch: for the error word, the number of items and the workspace


def on_device(op: ir.Operation, attribute: str) -> bool:
    """Whether `op` concerns the GPU, as `attribute` says."""
    return attribute in op.attributes and ir.StringAttr(op.attributes[attribute]).value == "device"


def grid_symbol(kernel: str) -> str:
    """The function of host code that says how many items a kernel has; it takes the sizes, not an array of them."""
    return f"{kernel_symbol(kernel)}_items"


def lower_launch(entry: EntryLowering, op: ir.Operation, words: list[ir.Value], tensors: int) -> None:
    """`mlc.launch` on the GPU; `words` are its arguments, of which the first `tensors` are addresses."""
    entry.store_words(words)
    name = called_kernel(op)
    if name not in entry.tables.kernels:
        raise ValueError(f"no module for kernel @{name} (at {op.location})")
    number, node = entry.tables.launch(name, op.location)
    chosen, items = i64_constant(number), _items(entry, name, words[tensors:])
    if name in entry.tables.variants:
        chosen, items = _variant(entry, op, chosen, items, words[tensors:])
    operands = [entry.rt, chosen, i64_constant(node), items, entry.array]
    entry.stop_if(entry.runtime.status("mlc_rt_gpu_launch", operands), -1)
    op.erase()


def _variant(
    entry: EntryLowering, op: ir.Operation, number: ir.Value, items: ir.Value, sizes: list[ir.Value]
) -> tuple[ir.Value, ir.Value]:
    """The number and the items of the kernel `number`, or of the copy for as few rows as the result has."""
    result = op.operands[ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]]
    extent = i64_constant(1)
    for factor in entry.extents(result):
        extent = arith.muli(extent, arith.index_cast(extent.type, factor))
    for most, name in reversed(entry.tables.variants[called_kernel(op)]):
        copy, _ = entry.tables.launch(name, op.location)
        is_few = arith.cmpi(arith.CmpIPredicate.sle, extent, i64_constant(most))
        number = arith.select(is_few, i64_constant(copy), number)
        items = arith.select(is_few, _items(entry, name, sizes), items)
    return number, items


def _items(entry: EntryLowering, name: str, sizes: list[ir.Value]) -> ir.Value:
    """How many items a launch has: what the grid function of the architecture says that the runtime has chosen."""
    items = entry.runtime.items(grid_symbol(name), sizes)
    copies = entry.tables.copies.get(name, [])
    if not copies:
        return items
    chosen = entry.runtime.call("mlc_rt_gpu_architecture", [entry.rt], ir.IntegerType.get_signless(64))
    for number, copy in enumerate(copies, 1):
        is_chosen = arith.cmpi(arith.CmpIPredicate.eq, chosen, i64_constant(number))
        items = arith.select(is_chosen, entry.runtime.items(grid_symbol(copy), sizes), items)
    return items


def lower_copy(entry: EntryLowering, op: ir.Operation, target: ir.Value, source: ir.Value, size: ir.Value) -> None:
    """`memref.copy` in the GPU's memory, or between it and the host's."""
    way = ir.StringAttr(op.attributes["mlc.transfer"]).value if "mlc.transfer" in op.attributes else "inside"
    function = {"inside": "mlc_rt_gpu_copy", "host": "mlc_rt_gpu_to_host", "device": "mlc_rt_gpu_to_device"}[way]
    entry.stop_if(entry.runtime.status(function, [entry.rt, target, source, size]), -1)
    op.erase()


def lower_constant(entry: EntryLowering, op: ir.Operation) -> ir.Value:
    """The address in the GPU's memory of a constant of the host."""
    value = op.operands[0]
    size = i64_constant(_bytes(value.type))
    address = llvm.IntToPtrOp(pointer_type(), entry.address(value)).result
    pointer = entry.runtime.call("mlc_rt_gpu_constant", [entry.rt, address, size], pointer_type())
    entry.stop_if_null(pointer)
    return pointer


def weights_pointer(entry: EntryLowering) -> ir.Value:
    """The address in the GPU's memory of the weight image."""
    return entry.runtime.call("mlc_rt_gpu_weights", [entry.rt], pointer_type())


def _bytes(kind: ir.MemRefType) -> int:
    total = -(-kind.element_type.width // 8)
    for extent in kind.shape:
        total *= extent
    return total
