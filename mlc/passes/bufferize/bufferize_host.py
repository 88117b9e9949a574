"""`mlc-bufferize-host`: turns the host functions from tensors to memrefs, value by value."""

from __future__ import annotations

from collections.abc import Callable

import mlir.ir as ir
import numpy as np
from mlir.dialects import arith, memref

from mlc.interp.from_ir import elements
from mlc.passes.base import Pass
from mlc.passes.bufferize import sequences
from mlc.passes.bufferize.loops import LoopBufferizer, whole_buffer
from mlc.passes.bufferize.place_weights import OFFSET, STRIDE
from mlc.passes.bufferize.signature import argument_dim_names, default_dtype, entry_signature, handle_dtypes
from mlc.passes.bufferize.sizes import SizeAnalysis
from mlc.passes.bufferize.types import host_type, is_abstract, is_tensor, memref_type
from mlc.passes.walk import called_kernel

ALIGNMENT = 64
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def inout_results(launch: ir.Operation, kernels: dict[str, ir.Operation]) -> set[int]:
    """The results of `launch` whose destination the kernel reads first."""
    holders = [launch]
    kernel = kernels.get(called_kernel(launch))
    if kernel is not None:
        holders.append(kernel)
        holders += [o.operation for o in kernel.regions[0].blocks[0].operations]
    for holder in holders:
        if "mlc.inout" in holder.attributes:
            listed = holder.attributes["mlc.inout"]
            if isinstance(listed, ir.DenseI64ArrayAttr):
                return set(ir.DenseI64ArrayAttr(listed))
            return {ir.IntegerAttr(a).value for a in ir.ArrayAttr(listed)}
    return set()


class BufferizeHost(Pass):
    """Turn the host functions from tensors to memrefs.

    Every result of an `mlc.launch` gets an allocation of its own, views become views, weights and constants
    become views of constant memory. No analysis and no hidden copies: a buffer is copied only where the
    program says so (the initial contents of a destination that is updated in place, unless `mlc.in_place` or
    `mlc.overwrite` says that nothing else needs them; values that a loop carries).

    ```mlir
    %e = tensor.empty(%n) : tensor<?x4xf32>
    %r = mlc.launch @k0(%x) outs(%e) : (tensor<?x4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
    // becomes
    %r = memref.alloc(%n) : memref<?x4xf32>
    mlc.launch @k0(%x) outs(%r) : (memref<?x4xf32>) outs(memref<?x4xf32>)
    ```

    The signatures with their names are kept in the module attribute `mlc.entries`.
    """

    dialects = ("memref", "arith", "scf", "llvm", "mlc")

    def run(self, op: ir.Operation) -> None:
        body = op.regions[0].blocks[0]
        kernels: dict[str, ir.Operation] = {}
        functions = []
        for child in list(body.operations):
            child = child.operation
            if child.name == "builtin.module":
                kernels[ir.StringAttr(child.attributes["sym_name"]).value] = child
            elif child.name == "func.func":
                functions.append(child)
        op.attributes["mlc.entries"] = ir.ArrayAttr.get([entry_signature(f) for f in functions])
        constants = Constants(body)
        for function in functions:
            HostFunction(function, kernels, constants).bufferize()


class Constants:
    """Small constants as `memref.global`s of the module, equal ones once."""

    def __init__(self, body: ir.Block) -> None:
        self._body = body
        self._names: dict[ir.Attribute, str] = {}

    def get(self, value: ir.Attribute, tensor: ir.Type) -> ir.Value:
        """The memory that holds `value`, at the insertion point."""
        target = memref_type(tensor)
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = f"mlc_constant_{len(self._names)}"
            with ir.InsertionPoint.at_block_begin(self._body):
                memref.GlobalOp(
                    ir.StringAttr.get(name),
                    ir.TypeAttr.get(target),
                    sym_visibility=ir.StringAttr.get("private"),
                    initial_value=_in_memory(value, target),
                    constant=True,
                    alignment=ALIGNMENT,
                )
        return memref.get_global(target, name)


def _in_memory(value: ir.Attribute, target: ir.MemRefType) -> ir.Attribute:
    """The elements as they lie in memory: those narrower than a byte take one."""
    if value.type.element_type == target.element_type:
        return value
    data = elements(value).view(np.int8)
    return ir.DenseElementsAttr.get(data, type=ir.RankedTensorType.get(target.shape, target.element_type))


class HostFunction:
    """One host function while it is being translated."""

    def __init__(self, function: ir.Operation, kernels: dict[str, ir.Operation], constants: Constants) -> None:
        self.function = function
        self.kernels = kernels
        self.constants = constants
        self.sizes = SizeAnalysis(argument_dim_names(function))
        self.buffers: dict[ir.Value, ir.Value] = {}
        self.dead: list[ir.Operation] = []
        self._dtypes = handle_dtypes(function)
        self.loops = LoopBufferizer(self)

    def bufferize(self) -> None:
        """Translates the whole function in place."""
        entry = self.function.regions[0].blocks[0]
        self.loops.find_carried(entry)
        for argument in entry.arguments:
            argument.set_type(host_type(argument.type))
        self.block(entry)
        for operation in reversed(self.dead):
            operation.erase()
        self.dead.clear()
        terminator = entry.operations[len(entry.operations) - 1]
        inputs = [a.type for a in entry.arguments]
        results = [v.type for v in terminator.operands]
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))

    def block(self, block: ir.Block) -> None:
        """Translates the operations of `block`, nested ones too."""
        for operation in list(block.operations):
            op = operation.operation
            with ir.InsertionPoint(op), op.location:
                handler = HANDLERS.get(op.name)
                if handler is not None:
                    handler(self, op)
                elif any(is_abstract(v) for v in [*op.operands, *op.results]):
                    raise ValueError(f"the host function cannot hold '{op.name}' on tensors (at {op.location})")

    def buffer(self, value: ir.Value) -> ir.Value:
        """The memref that holds `value`; an uninitialised tensor gets a fresh one."""
        if value in self.buffers:
            return self.buffers[value]
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.operation.name == "tensor.empty":
            return self.allocate(value)
        return value

    def element_dtype(self, element: ir.Type) -> str:
        """The dtype of tensors of `element` in sequences."""
        return self._dtypes.get(str(element), default_dtype(element))

    def define(self, old: ir.Operation, new: list[ir.Value]) -> None:
        """The results of `old` now live in the memrefs `new`."""
        for result, value in zip(old.results, new, strict=True):
            self.buffers[result] = value
        self.dead.append(old)

    def allocate(self, like: ir.Value) -> ir.Value:
        """A new buffer with the type and the extents of the tensor `like`."""
        target = memref_type(like.type)
        return memref.AllocOp(target, self.extents(like), [], alignment=ALIGNMENT).result

    def is_in_place(self, launch: ir.Operation, destination: ir.Value) -> bool:
        """Does `launch` update the buffer of `destination` itself: a launch's result, or what a loop owns?"""
        if "mlc.in_place" in launch.attributes:
            return True
        return "mlc.overwrite" in launch.attributes and whole_buffer(self.buffer(destination)) in self.loops.carried

    def extents(self, value: ir.Value) -> list[ir.Value]:
        """The dynamic extents of the tensor (or memref) `value`, in order."""
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.operation.name in ("tensor.empty", "memref.alloc"):
            return list(owner.operation.operands)
        holder = self.buffers.get(value, value)
        dynamic = [i for i in range(holder.type.rank) if holder.type.is_dynamic_dim(i)]
        return [memref.dim(holder, arith.constant(ir.IndexType.get(), i)) for i in dynamic]


def _launch(host: HostFunction, op: ir.Operation) -> None:
    count = len(op.results)
    operands = list(op.operands)
    inputs = [host.buffer(v) for v in operands[: len(operands) - count]]
    inout = inout_results(op, host.kernels)
    outs = []
    for number, destination in enumerate(operands[len(operands) - count :]):
        if number in inout and host.is_in_place(op, destination):
            outs.append(host.buffer(destination))
            continue
        target = host.allocate(destination)
        if number in inout and not _is_empty(destination):
            memref.copy(host.buffer(destination), target)
        outs.append(target)
    attributes = {name: op.attributes[name] for name in op.attributes}
    ir.Operation.create("mlc.launch", [], [*inputs, *outs], attributes)
    host.define(op, outs)


def _is_empty(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "tensor.empty"


def _empty(host: HostFunction, op: ir.Operation) -> None:
    host.dead.append(op)


def _weight(host: HostFunction, op: ir.Operation) -> None:
    attributes = {"where": ir.StringAttr.get("weights")}
    offset = []
    if len(op.operands):
        step, start = (arith.constant(ir.IndexType.get(), n) for n in (_number(op, STRIDE), _number(op, OFFSET)))
        offset = [arith.addi(start, arith.muli(op.operands[0], step))]
    else:
        attributes["static_offset"] = op.attributes[OFFSET]
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(offset), 0])
    if "mlc.placement" in op.attributes:
        attributes["mlc.space"] = op.attributes["mlc.placement"]
    target = memref_type(op.results[0].type)
    host.define(op, [ir.Operation.create("mlc.buffer", [target], offset, attributes).result])


def _number(op: ir.Operation, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)


def _constant(host: HostFunction, op: ir.Operation) -> None:
    if is_tensor(op.results[0]):
        held = host.constants.get(op.attributes["value"], op.results[0].type)
        if "mlc.placement" in op.attributes:  # the GPU's copy of it
            held = sequences.call("mlc_rt_gpu_constant", [held], held.type)
        host.define(op, [held])


def _transfer(host: HostFunction, op: ir.Operation) -> None:
    """`mlc.extern` of a transfer between host and GPU, of a copy that says so, or of a routine on strings."""
    callee = ir.StringAttr(op.attributes["callee"]).value
    if callee.startswith("mlc_text_"):
        sequences.text_call(host, op, callee)
        return
    if callee not in TRANSFERS:
        raise ValueError(f"the host function cannot call '{callee}' on tensors (at {op.location})")
    target = host.allocate(op.operands[0])
    copy = memref.CopyOp(host.buffer(op.operands[0]), target)
    copy.operation.attributes["mlc.transfer"] = ir.StringAttr.get(TRANSFERS[callee])
    host.define(op, [target])


def _expand_shape(host: HostFunction, op: ir.Operation) -> None:
    target = memref_type(op.results[0].type)
    groups = [list(ir.ArrayAttr(g)) for g in ir.ArrayAttr(op.attributes["reassociation"])]
    reassociation = ir.ArrayAttr.get([ir.ArrayAttr.get(g) for g in groups])
    static = ir.DenseI64ArrayAttr(op.attributes["static_output_shape"])
    source = host.buffer(op.operands[0])
    view = memref.ExpandShapeOp(target, source, reassociation, list(op.operands)[1:], static)
    host.define(op, [view.result])


def _collapse_shape(host: HostFunction, op: ir.Operation) -> None:
    target = memref_type(op.results[0].type)
    view = memref.CollapseShapeOp(target, host.buffer(op.operands[0]), op.attributes["reassociation"])
    host.define(op, [view.result])


def _cast(host: HostFunction, op: ir.Operation) -> None:
    target = memref_type(op.results[0].type)
    host.define(op, [memref.cast(target, host.buffer(op.operands[0]))])


def _reshape(host: HostFunction, op: ir.Operation) -> None:
    target = memref_type(op.results[0].type)
    source, shape = (host.buffer(v) for v in op.operands)
    host.define(op, [memref.reshape(target, source, shape)])


def _dim(host: HostFunction, op: ir.Operation) -> None:
    replacement = memref.dim(host.buffer(op.operands[0]), op.operands[1])
    op.results[0].replace_all_uses_with(replacement)
    host.dead.append(op)


def _extract(host: HostFunction, op: ir.Operation) -> None:
    replacement = memref.LoadOp(host.buffer(op.operands[0]), list(op.operands)[1:]).result
    if replacement.type != op.results[0].type:
        replacement = arith.cmpi(arith.CmpIPredicate.ne, replacement, arith.constant(replacement.type, 0))
    op.results[0].replace_all_uses_with(replacement)
    host.dead.append(op)


def _from_elements(host: HostFunction, op: ir.Operation) -> None:
    target = memref.AllocOp(memref_type(op.results[0].type), [], [], alignment=ALIGNMENT).result
    shape = op.results[0].type.shape
    for number, element in enumerate(op.operands):
        position: list[ir.Value] = []
        for extent in reversed(shape):
            position.insert(0, arith.constant(ir.IndexType.get(), number % extent))
            number //= extent
        if element.type != target.type.element_type:
            element = arith.extui(target.type.element_type, element)
        memref.store(element, target, position)
    host.define(op, [target])


def _extract_slice(host: HostFunction, op: ir.Operation) -> None:
    source, result = op.operands[0], op.results[0]
    static = {n: list(ir.DenseI64ArrayAttr(op.attributes[f"static_{n}"])) for n in ("offsets", "sizes", "strides")}
    if source.type.rank != result.type.rank or not _is_leading_slice(source.type, static):
        raise ValueError(f"a slice in the host function must take whole leading rows (at {op.location})")
    operands = list(op.operands)[1:]
    counts = [sum(x == _DYNAMIC for x in static[n]) for n in ("offsets", "sizes", "strides")]
    parts = [operands[: counts[0]], operands[counts[0] : counts[0] + counts[1]], []]
    layout = ir.StridedLayoutAttr.get(_slice_offset(source.type, static), _row_major(source.type.shape))
    target = ir.MemRefType.get(result.type.shape, memref_type(result.type).element_type, layout)
    arrays = [ir.DenseI64ArrayAttr.get(static[n]) for n in ("offsets", "sizes", "strides")]
    view = memref.SubViewOp(target, host.buffer(source), *parts, *arrays)
    host.define(op, [view.result])


def _is_leading_slice(source: ir.Type, static: dict[str, list[int]]) -> bool:
    """Rows [offset, offset + size) of dimension 0 and all of the rest: one contiguous piece."""
    rest = range(1, source.rank)
    whole = all(static["offsets"][i] == 0 and static["sizes"][i] == source.shape[i] != _DYNAMIC for i in rest)
    return whole and all(s == 1 for s in static["strides"])


def _row_major(shape: list[int]) -> list[int]:
    strides = [1]
    for extent in reversed(list(shape)[1:]):
        strides.insert(0, strides[0] * extent)
    return strides[len(strides) - len(shape) :]


def _slice_offset(source: ir.Type, static: dict[str, list[int]]) -> int:
    offset = static["offsets"][0]
    return _DYNAMIC if offset == _DYNAMIC else offset * _row_major(source.shape)[0]


def _select(host: HostFunction, op: ir.Operation) -> None:
    if is_abstract(op.results[0]):
        condition, on_true, on_false = op.operands
        host.define(op, [arith.select(condition, host.buffer(on_true), host.buffer(on_false))])


def _terminator(host: HostFunction, op: ir.Operation) -> None:
    for number, value in enumerate(op.operands):
        if is_abstract(value):
            op.operands[number] = host.buffer(value)


TRANSFERS = {"mlc_rt_to_host": "host", "mlc_rt_to_device": "device"}
HANDLERS: dict[str, Callable[[HostFunction, ir.Operation], None]] = {
    "mlc.launch": _launch,
    "mlc.weight": _weight,
    "mlc.constant": _constant,
    "mlc.extern": _transfer,
    "arith.constant": _constant,
    "arith.select": _select,
    "tensor.empty": _empty,
    "tensor.expand_shape": _expand_shape,
    "tensor.collapse_shape": _collapse_shape,
    "tensor.cast": _cast,
    "tensor.reshape": _reshape,
    "tensor.dim": _dim,
    "tensor.extract": _extract,
    "tensor.from_elements": _from_elements,
    "tensor.extract_slice": _extract_slice,
    "func.return": _terminator,
    "scf.yield": lambda host, op: None,  # of the operation around it
    "scf.condition": lambda host, op: None,
    **sequences.HANDLERS,
    "scf.if": lambda host, op: host.loops.branch(op),
    "scf.index_switch": lambda host, op: host.loops.branch(op),
    "scf.for": lambda host, op: host.loops.for_loop(op),
    "scf.while": lambda host, op: host.loops.while_loop(op),
}
