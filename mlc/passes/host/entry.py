"""One host function, from control flow graph and memrefs to calls of the runtime."""

from __future__ import annotations

from collections.abc import Callable

import mlir.ir as ir
from mlir.dialects import arith, cf, llvm, memref

from mlc.codegen.symbols import entry_symbol
from mlc.passes.host import device
from mlc.passes.host.externs import extern_words, lower_extern
from mlc.passes.host.nodes import Tables, node_name
from mlc.passes.host.runtime_calls import (
    Runtime,
    descriptor,
    element_pointer,
    i64_constant,
    i64_type,
    pointer_type,
)
from mlc.passes.walk import called_kernel


class EntryLowering:
    """Lowers one function in place."""

    def __init__(self, function: ir.Operation, runtime: Runtime, tables: Tables) -> None:
        self.function = function
        self.runtime = runtime
        self.tables = tables
        self.entry: ir.Block = function.regions[0].blocks[0]
        self._polled = False
        self._weights: ir.Value | None = None

    def lower(self) -> None:
        """The whole function."""
        blocks = list(self.function.regions[0].blocks)
        words = _largest_call(blocks)
        with ir.InsertionPoint.at_block_begin(self.entry), self.function.location:
            self._signature()
            self.array = self._stack(words) if words else None
            if _uses_weights(blocks):
                self._weights = self.runtime.call("mlc_rt_weights", [self.rt], pointer_type())
            self._inputs()
        i64 = i64_type()
        self.fail = blocks[-1].create_after(i64, arg_locs=[self.function.location])
        with ir.InsertionPoint(self.fail), self.function.location:
            self.runtime.call("mlc_rt_failed", [self.rt, self.fail.arguments[0]], None)
            self._leave(1)
        for block in blocks:
            self._block(block)

    # --- The signature ------------------------------------------------------------------------------------

    def _signature(self) -> None:
        pointer, i32 = pointer_type(), ir.IntegerType.get_signless(32)
        self._old = list(self.entry.arguments)
        self.rt = self.entry.add_argument(pointer, self.function.location)
        self._args = self.entry.add_argument(pointer, self.function.location)
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([pointer, pointer], [i32]))
        name = ir.StringAttr(self.function.attributes["sym_name"]).value
        self.function.attributes["sym_name"] = ir.StringAttr.get(entry_symbol(name))
        for attribute in ("arg_attrs", "res_attrs"):
            if attribute in self.function.attributes:
                del self.function.attributes[attribute]

    def _inputs(self) -> None:
        """The inputs as memrefs: data pointers come first in the array, then all dynamic extents."""
        index = ir.IndexType.get()
        position = len(self._old)
        for number, argument in enumerate(self._old):
            address = element_pointer(self._args, i64_type(), number)
            data = llvm.LoadOp(pointer_type(), address).result
            if not isinstance(argument.type, ir.MemRefType):
                argument.replace_all_uses_with(data)
                continue
            extents = []
            for axis in range(argument.type.rank):
                if argument.type.is_dynamic_dim(axis):
                    extent = llvm.LoadOp(i64_type(), element_pointer(self._args, i64_type(), position)).result
                    extents.append(arith.index_cast(index, extent))
                    position += 1
            argument.replace_all_uses_with(descriptor(data, extents, argument.type))
        for _ in self._old:
            self.entry.erase_argument(0)

    def _stack(self, words: int) -> ir.Value:
        return llvm.AllocaOp(pointer_type(), i64_constant(words), ir.TypeAttr.get(i64_type())).result

    # --- Blocks -------------------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> None:
        """Lowers the operations of `block`, which falls into a chain of blocks, one more for each that may
        fail.
        """
        self._polled = False
        self.current = block
        for operation in list(block.operations):
            op = operation.operation
            if self.current != block:
                self.current.append(op)
            handler = _HANDLERS.get(op.name)
            if handler is not None:
                with ir.InsertionPoint(op), op.location:
                    handler(self, op)

    def stop_if(self, failed: ir.Value, node: int) -> None:
        """Leaves the function when `failed`; what follows goes into a new block."""
        following = self.current.create_after()
        cf.CondBranchOp(failed, [i64_constant(node)], [], self.fail, following)
        self.current = following

    def stop_if_null(self, pointer: ir.Value) -> None:
        null = llvm.ZeroOp(pointer_type()).result
        self.stop_if(llvm.ICmpOp(ir.IntegerAttr.get(i64_type(), 0), pointer, null).result, -1)

    def _leave(self, code: int) -> None:
        value = arith.constant(ir.IntegerType.get_signless(32), code)
        ir.Operation.create("func.return", [], [value])

    def node(self, op: ir.Operation) -> int:
        return self.tables.nodes.number(node_name(op.location))

    # --- Operands -----------------------------------------------------------------------------------------

    def address(self, value: ir.Value) -> ir.Value:
        """The address of the first element of a memref, as `i64`."""
        base = memref.extract_aligned_pointer_as_index(value)
        offset = value.type.get_strides_and_offset()[1]
        if offset:
            element = _element_bytes(value.type.element_type)
            if offset == ir.ShapedType.get_dynamic_stride_or_offset():
                elements = _metadata_offset(value)
            else:
                elements = arith.constant(ir.IndexType.get(), offset)
            base = arith.addi(base, arith.muli(elements, arith.constant(ir.IndexType.get(), element)))
        return arith.index_cast(i64_type(), base)

    def extents(self, value: ir.Value) -> list[ir.Value]:
        index = ir.IndexType.get()
        dynamic = [i for i in range(value.type.rank) if value.type.is_dynamic_dim(i)]
        return [memref.dim(value, arith.constant(index, i)) for i in dynamic]

    def store_words(self, words: list[ir.Value]) -> None:
        for number, word in enumerate(words):
            llvm.StoreOp(word, element_pointer(self.array, i64_type(), number))

    # --- Operations ---------------------------------------------------------------------------------------

    def launch(self, op: ir.Operation) -> None:
        """`mlc.launch`."""
        values = list(op.operands)
        memrefs = [v for v in values if isinstance(v.type, ir.MemRefType)]
        words = [self.address(v) for v in memrefs]
        sizes = [extent for v in memrefs for extent in self.extents(v)]
        sizes += [v for v in values if not isinstance(v.type, ir.MemRefType)]
        words += [arith.index_cast(i64_type(), size) for size in sizes]
        if device.on_device(op, "mlc.placement"):
            device.lower_launch(self, op, words, len(memrefs))
            return
        self.store_words(words)
        name = called_kernel(op)
        if name not in self.tables.kernels:
            raise ValueError(f"no module for kernel @{name} (at {op.location})")
        kernel, grid = self.runtime.kernel(name)
        number, node = self.tables.launch(name, op.location)
        array = self.array if self.array is not None else llvm.ZeroOp(pointer_type()).result
        call, arguments = "mlc_rt_launch", [self.rt, kernel, grid, array, i64_constant(number)]
        if "mlc.unless_same" in op.attributes:
            own = values[ir.IntegerAttr(op.attributes["mlc.unless_same"]).value]
            call = "mlc_rt_launch_unless_same"
            arguments += [i64_constant(memrefs.index(own)), i64_constant(len(memrefs) - 1)]
        failed = self.runtime.status(call, arguments)
        self.stop_if(failed, node)
        self._polled = False
        op.erase()

    def check(self, op: ir.Operation) -> None:
        """`mlc.check`."""
        value = arith.index_cast(i64_type(), op.operands[1])
        self.require(op, op.operands[0], value, ir.StringAttr(op.attributes["message"]).value)
        op.erase()

    def require(self, op: ir.Operation, holds: ir.Value, value: ir.Value, text: str) -> None:
        """Leaves the function with a message about the node of `op` and `value` unless `holds`; a new block follows."""
        message = self.tables.messages.number(text)
        operands = [self.rt, arith.extui(i64_type(), holds), i64_constant(self.node(op)), i64_constant(message), value]
        self.stop_if(self.runtime.status("mlc_rt_check", operands), -1)

    def buffer(self, op: ir.Operation) -> None:
        """`mlc.buffer`."""
        target = op.results[0].type
        where = ir.StringAttr(op.attributes["where"]).value
        prefix = "mlc_rt_gpu_" if device.on_device(op, "mlc.space") else "mlc_rt_"
        offsets = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
        extents = list(op.operands)[offsets:]
        if where == "weights":
            if offsets:
                offset = arith.index_cast(i64_type(), op.operands[0])
            else:
                offset = i64_constant(ir.IntegerAttr(op.attributes["static_offset"]).value)
            on_device = device.on_device(op, "mlc.space")
            base = device.weights_pointer(self) if on_device else self._weights
            pointer = element_pointer(base, ir.IntegerType.get_signless(8), offset)
        elif where == "output":
            number = ir.IntegerAttr(op.attributes["number"]).value
            words = self.shape_words(target, extents)
            self.store_words(words)
            array = self.array if words else llvm.ZeroOp(pointer_type()).result
            operands = [self.rt, i64_constant(number), i64_constant(target.rank), array]
            pointer = self.runtime.call(f"{prefix}output", operands, pointer_type())
            self.stop_if_null(pointer)
        else:
            size = i64_constant(_element_bytes(target.element_type))
            for word in self.shape_words(target, extents):
                size = arith.muli(size, word)
            pointer = self.runtime.call(f"{prefix}{where}", [self.rt, size], pointer_type())
            self.stop_if_null(pointer)
        with (
            ir.InsertionPoint(op) if self.current == op.block else ir.InsertionPoint(self.current),
            op.location,
        ):
            op.results[0].replace_all_uses_with(descriptor(pointer, extents, target))
        op.erase()

    def shape_words(self, target: ir.MemRefType, extents: list[ir.Value]) -> list[ir.Value]:
        remaining = iter(extents)
        words = []
        for axis in range(target.rank):
            if target.is_dynamic_dim(axis):
                words.append(arith.index_cast(i64_type(), next(remaining)))
            else:
                words.append(i64_constant(target.get_dim_size(axis)))
        return words

    def copy(self, op: ir.Operation) -> None:
        """`memref.copy` of contiguous buffers."""
        source, target = op.operands
        size = i64_constant(_element_bytes(source.type.element_type))
        for axis in range(source.type.rank):
            extent = memref.dim(source, arith.constant(ir.IndexType.get(), axis))
            size = arith.muli(size, arith.index_cast(i64_type(), extent))
        pointers = [llvm.IntToPtrOp(pointer_type(), self.address(v)).result for v in (target, source)]
        if "mlc.transfer" in op.attributes or device.on_device(op, "mlc.space"):
            device.lower_copy(self, op, pointers[0], pointers[1], size)
            return
        volatile = ir.BoolAttr.get(False)
        llvm.MemcpyOp(pointers[0], pointers[1], size, volatile)
        op.erase()

    def load(self, op: ir.Operation) -> None:
        """`memref.load`: nothing that a failed kernel has left is ever read."""
        if not self._polled:
            self.stop_if(self.runtime.status("mlc_rt_poll", [self.rt]), -1)
            self.current.append(op)
            self._polled = True

    def view(self, op: ir.Operation) -> None:
        """`memref.expand_shape`, `collapse_shape`: the same contiguous memory in another shape."""
        target = op.results[0].type
        if op.name == "memref.expand_shape":
            extents = list(op.operands)[1:]
        else:
            groups = [[ir.IntegerAttr(a).value for a in g] for g in ir.ArrayAttr(op.attributes["reassociation"])]
            dynamic = [g for axis, g in enumerate(groups) if target.is_dynamic_dim(axis)]
            extents = [self._product(op.operands[0], g) for g in dynamic]
        pointer = llvm.IntToPtrOp(pointer_type(), self.address(op.operands[0])).result
        op.results[0].replace_all_uses_with(descriptor(pointer, extents, target))
        op.erase()

    def _product(self, value: ir.Value, axes: list[int]) -> ir.Value:
        index = ir.IndexType.get()
        total = arith.constant(index, 1)
        for axis in axes:
            total = arith.muli(total, memref.dim(value, arith.constant(index, axis)))
        return total

    def leave(self, op: ir.Operation) -> None:
        """`func.return`."""
        if "mlc.numbers" in op.attributes:
            numbers = list(ir.DenseI64ArrayAttr(op.attributes["mlc.numbers"]))
            for number, value in zip(numbers, list(op.operands), strict=True):
                if isinstance(value.type, ir.MemRefType):
                    continue  # an empty output: asking for it was all
                with ir.InsertionPoint(op), op.location:  # stop_if ends the block that the point was in
                    failed = self.runtime.status("mlc_rt_output_value", [self.rt, i64_constant(number), value])
                    self.stop_if(failed, -1)
                self.current.append(op)
        with ir.InsertionPoint(op), op.location:
            self._leave(0)
        op.erase()


def _metadata_offset(value: ir.Value) -> ir.Value:
    index = ir.IndexType.get()
    base = ir.MemRefType.get([], value.type.element_type)
    results = [base, index, *[index] * (2 * value.type.rank)]
    return ir.Operation.create("memref.extract_strided_metadata", results, [value]).results[1]


def _element_bytes(element: ir.Type) -> int:
    if isinstance(element, ir.ComplexType):
        return 2 * _element_bytes(ir.ComplexType(element).element_type)
    return 8 if isinstance(element, ir.IndexType) else -(-element.width // 8)


def _largest_call(blocks: list[ir.Block]) -> int:
    """How many words the argument array needs."""
    words = 0
    for block in blocks:
        for operation in block.operations:
            op = operation.operation
            if op.name == "mlc.launch":
                ranks = [v.type.rank for v in op.operands if isinstance(v.type, ir.MemRefType)]
                spare = device.LAUNCH_WORDS if device.on_device(op, "mlc.placement") else 0
                words = max(words, len(op.operands) + sum(ranks) + spare)
            elif op.name == "mlc.extern":
                words = max(words, extern_words(op))
            elif op.name == "mlc.buffer":
                words = max(words, op.results[0].type.rank)
    return words


def _uses_weights(blocks: list[ir.Block]) -> bool:
    return any(
        op.operation.name == "mlc.buffer"
        and ir.StringAttr(op.operation.attributes["where"]).value == "weights"
        and not device.on_device(op.operation, "mlc.space")
        for block in blocks
        for op in block.operations
    )


_HANDLERS: dict[str, Callable[[EntryLowering, ir.Operation], None]] = {
    "mlc.launch": EntryLowering.launch,
    "mlc.check": EntryLowering.check,
    "mlc.buffer": EntryLowering.buffer,
    "memref.copy": EntryLowering.copy,
    "memref.expand_shape": EntryLowering.view,
    "memref.collapse_shape": EntryLowering.view,
    "memref.load": EntryLowering.load,
    "func.return": EntryLowering.leave,
    "mlc.extern": lower_extern,
}
