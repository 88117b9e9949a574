"""Calls of the runtime's C functions (docs/abi.md, section 2) from host code, and small LLVM dialect
helpers.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlir.ir as ir
from mlir.dialects import arith, llvm

from mlc.codegen.symbols import kernel_symbol

_SIGNATURES = {
    "mlc_rt_arena": "!llvm.func<ptr (ptr, i64)>",
    "mlc_rt_output": "!llvm.func<ptr (ptr, i64, i64, ptr)>",
    "mlc_rt_pool": "!llvm.func<ptr (ptr, i64)>",
    "mlc_rt_weights": "!llvm.func<ptr (ptr)>",
    "mlc_rt_launch": "!llvm.func<i32 (ptr, ptr, ptr, ptr, i64)>",
    "mlc_rt_launch_unless_same": "!llvm.func<i32 (ptr, ptr, ptr, ptr, i64, i64, i64)>",
    "mlc_rt_check": "!llvm.func<i32 (ptr, i64, i64, i64, i64)>",
    "mlc_rt_poll": "!llvm.func<i32 (ptr)>",
    "mlc_rt_tensor": "!llvm.func<ptr (ptr, i64, i64, ptr, ptr)>",
    "mlc_rt_sequence": "!llvm.func<ptr (ptr, i64, ptr)>",
    "mlc_rt_sequence_at": "!llvm.func<ptr (ptr, ptr, i64, i64)>",
    "mlc_rt_sequence_insert": "!llvm.func<ptr (ptr, ptr, ptr, i64, i64)>",
    "mlc_rt_sequence_erase": "!llvm.func<ptr (ptr, ptr, i64, i64)>",
    "mlc_rt_length": "!llvm.func<i64 (ptr)>",
    "mlc_rt_optional": "!llvm.func<ptr (ptr, ptr)>",
    "mlc_rt_optional_get": "!llvm.func<ptr (ptr, ptr, i64)>",
    "mlc_rt_data": "!llvm.func<ptr (ptr)>",
    "mlc_rt_rank": "!llvm.func<i64 (ptr)>",
    "mlc_rt_dim_of": "!llvm.func<i64 (ptr, i64)>",
    "mlc_rt_output_value": "!llvm.func<i32 (ptr, i64, ptr)>",
    "mlc_rt_gpu_arena": "!llvm.func<ptr (ptr, i64)>",
    "mlc_rt_gpu_output": "!llvm.func<ptr (ptr, i64, i64, ptr)>",
    "mlc_rt_gpu_pool": "!llvm.func<ptr (ptr, i64)>",
    "mlc_rt_gpu_weights": "!llvm.func<ptr (ptr)>",
    "mlc_rt_gpu_constant": "!llvm.func<ptr (ptr, ptr, i64)>",
    "mlc_rt_gpu_architecture": "!llvm.func<i64 (ptr)>",
    "mlc_rt_gpu_launch": "!llvm.func<i32 (ptr, i64, i64, i64, ptr)>",
    "mlc_rt_gpu_copy": "!llvm.func<i32 (ptr, ptr, ptr, i64)>",
    "mlc_rt_gpu_to_host": "!llvm.func<i32 (ptr, ptr, ptr, i64)>",
    "mlc_rt_gpu_to_device": "!llvm.func<i32 (ptr, ptr, ptr, i64)>",
    "mlc_rt_failed": "!llvm.func<void (ptr, i64)>",
}
_TEXT = "!llvm.func<ptr (ptr, i64, ptr, i64)>"
_KERNEL = "!llvm.func<void (ptr, ptr, i64, i64)>"
_GRID = "!llvm.func<i64 (ptr)>"


def pointer_type() -> ir.Type:
    """`!llvm.ptr`."""
    return ir.Type.parse("!llvm.ptr")


def i64_type() -> ir.Type:
    """`i64`."""
    return ir.IntegerType.get_signless(64)


def i64_constant(value: int) -> ir.Value:
    """An `i64` constant at the insertion point."""
    return arith.constant(i64_type(), value)


def element_pointer(base: ir.Value, element: ir.Type, index: int | ir.Value) -> ir.Value:
    """`&base[index]` for elements of type `element`."""
    dynamic = [] if isinstance(index, int) else [index]
    constant = index if isinstance(index, int) else -(1 << 31)
    raw = ir.DenseI32ArrayAttr.get([constant])
    flags = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
    return llvm.GEPOp(pointer_type(), base, dynamic, raw, ir.TypeAttr.get(element), flags).result


def descriptor(pointer: ir.Value, extents: Sequence[ir.Value], target: ir.MemRefType) -> ir.Value:
    """The memory at `pointer` as a contiguous memref; `extents` are the dynamic ones, as `index`."""
    rank = target.rank
    arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    struct = llvm.UndefOp(ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{arrays})>")).result

    def insert(value: ir.Value, *position: int) -> None:
        nonlocal struct
        struct = llvm.InsertValueOp(struct, value, ir.DenseI64ArrayAttr.get(position)).result

    insert(pointer, 0)
    insert(pointer, 1)
    insert(i64_constant(0), 2)
    remaining = iter(extents)
    shape = []
    for axis in range(rank):
        if target.is_dynamic_dim(axis):
            shape.append(arith.index_cast(i64_type(), next(remaining)))
        else:
            shape.append(i64_constant(target.get_dim_size(axis)))
    stride = i64_constant(1)
    for axis in reversed(range(rank)):
        insert(shape[axis], 3, axis)
        insert(stride, 4, axis)
        stride = arith.muli(stride, shape[axis]) if axis else stride
    cast = ir.Operation.create("builtin.unrealized_conversion_cast", [target], [struct])
    return cast.result


class Runtime:
    """Emits calls and remembers which functions have to be declared in the module with body `body`."""

    def __init__(self, body: ir.Block) -> None:
        self._body = body
        self._used: dict[str, str] = {}

    def call(self, name: str, operands: Sequence[ir.Value], result: ir.Type | None) -> ir.Value | None:
        """A call of the runtime function `name`."""
        self._used[name] = _TEXT if name.startswith("mlc_text_") else _SIGNATURES[name]
        callee = ir.FlatSymbolRefAttr.get(name)
        op = llvm.CallOp(result, list(operands), [], ir.DenseI32ArrayAttr.get([]), callee=callee)
        return op.result if result is not None else None

    def status(self, name: str, operands: Sequence[ir.Value]) -> ir.Value:
        """A call of a function that returns nonzero when the run must stop; the result is that condition."""
        i32 = ir.IntegerType.get_signless(32)
        result = self.call(name, operands, i32)
        return arith.cmpi(arith.CmpIPredicate.ne, result, arith.constant(i32, 0))

    def kernel(self, name: str) -> tuple[ir.Value, ir.Value]:
        """The addresses of the functions of kernel `name`: its body and its grid."""
        addresses = []
        body = kernel_symbol(name)
        for symbol, signature in ((body, _KERNEL), (f"{body}_grid", _GRID)):
            self._used[symbol] = signature
            addresses.append(llvm.AddressOfOp(pointer_type(), ir.FlatSymbolRefAttr.get(symbol)).result)
        return addresses[0], addresses[1]

    def items(self, symbol: str, sizes: Sequence[ir.Value]) -> ir.Value:
        """A call of the function `symbol`, which says how many items a kernel has for `sizes`."""
        self._used[symbol] = f"!llvm.func<i64 ({', '.join(['i64'] * len(sizes))})>"
        callee = ir.FlatSymbolRefAttr.get(symbol)
        return llvm.CallOp(i64_type(), list(sizes), [], ir.DenseI32ArrayAttr.get([]), callee=callee).result

    def declare(self) -> None:
        """Declares everything that was used; all of it is linked into the same library."""
        hidden = ir.IntegerAttr.get(i64_type(), 1)
        with ir.InsertionPoint.at_block_begin(self._body), ir.Location.unknown():
            for name in sorted(self._used):
                signature = ir.TypeAttr.get(ir.Type.parse(self._used[name]))
                llvm.LLVMFuncOp(ir.StringAttr.get(name), signature, visibility_=hidden)
