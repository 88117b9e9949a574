"""The memref function of a kernel while it is being emitted.

A kernel arrives as a function on tensors (`docs/ir.md` §5) and leaves as a memref function with a grid function
(§6). `Frame` creates both signatures, maps the tensors of the old function to flat buffers of the new one, and
answers what an extent is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlir import ir
from mlir.dialects import arith, func, memref, scf

from mlc.kernels.common.constants import constant_bytes
from mlc.kernels.common.index import Constants, IndexMath, Scalar
from mlc.kernels.common.multiples import multiples

_LINE = 64  # bytes of a line of the cache


def storage_type(element: ir.Type) -> ir.Type:
    """The type of an element in memory: what is narrower than a byte takes one."""
    if isinstance(element, (ir.IntegerType, ir.FloatType)) and element.width < 8:
        return ir.IntegerType.get_signless(8)
    return element


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that defines `value`, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


@dataclass
class Buffer:
    """A contiguous row-major tensor in memory: `memory` is its flat memref, extents and strides are in elements."""

    memory: ir.Value
    element: ir.Type
    shape: list[Scalar]
    strides: list[Scalar] = field(default_factory=list)

    @property
    def flat(self) -> Buffer:
        """Its elements in the order of memory, of which a coordinate is the number."""
        return Buffer(self.memory, self.element, [0], [1])


@dataclass
class KernelSource:
    """The tensor-level function of a kernel module and its parts."""

    module: ir.Operation
    func: func.FuncOp

    @property
    def block(self) -> ir.Block:
        return self.func.regions[0].blocks[0]

    @property
    def results(self) -> list[ir.Value]:
        """Returned tensors, one per destination."""
        return list(self.block.operations[len(self.block.operations) - 1].operands)

    @property
    def tensors(self) -> list[ir.Value]:
        """Tensor arguments: inputs, then destinations."""
        return [a for a in self.block.arguments if isinstance(a.type, ir.RankedTensorType)]

    @property
    def run_time_extents(self) -> list[tuple[ir.Value, int]]:
        """The tensors' dimensions that only a run knows, in the order in which a call gives their extents."""
        return [(t, i) for t in self.tensors for i in range(t.type.rank) if t.type.is_dynamic_dim(i)]

    @property
    def destinations(self) -> list[ir.Value]:
        """The trailing arguments that the results are written to."""
        count = len(self.results)
        return list(self.block.arguments)[-count:] if count else []

    def is_constant(self, tensor: ir.Value) -> bool:
        """Is a tensor argument the same memory with the same contents in all launches, as far as noted?"""
        number, known = self.tensors.index(tensor), constant_bytes(self.module)
        return number < len(known) and known[number] > 0

    @property
    def scalars(self) -> list[ir.Value]:
        """Index arguments."""
        return [a for a in self.block.arguments if isinstance(a.type, ir.IndexType)]


def kernel_source(module: ir.Operation) -> KernelSource:
    """The parts of `module`, a kernel module that has not been expanded."""
    for op in module.regions[0].blocks[0].operations:
        if isinstance(op, func.FuncOp):
            return KernelSource(module, op)
    raise ValueError("kernel module without a function")


class Frame:
    """Signature, buffers, constants and extents of one function under construction.

    With `grid=True` the function is the grid function: sizes only, no memory. `alignment` is what the addresses of all
    tensors are multiples of, in bytes, for targets whose wide accesses need to know it; 0 says nothing. `pointers` is
    the number of pointers that the function has behind everything else, for targets that describe tensors in memory.
    `scalef` says which instructions of AVX-512 exponentials may use (`vector_math.exp_nonpositive`); `sums` is the most
    accumulators that a reduction along vectors has whose terms take long to compute; `in_pieces` says
    that masked stores and gathers take long, as they do where masks are no registers of their own.
    """

    def __init__(
        self,
        source: KernelSource,
        *,
        grid: bool = False,
        vector_lanes: int = 1,
        alignment: int = 0,
        pointers: int = 0,
        scalef: int = 0,
        sums: int = 4,
        in_pieces: bool = False,
    ) -> None:
        self.source = source
        self.grid = grid
        self.alignment = alignment
        self.pointers: list[ir.Value] = []
        self._num_pointers = pointers
        self.vector_lanes = vector_lanes  # lanes that reductions along a contiguous dimension use
        self.scalef = scalef
        self.sums = sums
        self.in_pieces = in_pieces
        self.name = source.func.name.value + ("_grid" if grid else "")
        self.buffers: dict[ir.Value, Buffer] = {}
        self.reductions: dict[ir.Value, bool] = {}
        """Whether a value of the source is a reduction's, as far as somebody asked."""
        self.emitted: dict[ir.Value, Any] = {}
        """What `body` has read of operations of bodies, by their first results."""
        self.patterns: dict[ir.Value, Any] = {}
        """Which peepholes `evaluate` has found generics to fit, by their first results."""
        self.numbers: dict[ir.Value, ir.Value] = {}
        """Numbers outside of bodies that the prologue has computed or read."""
        self.given: dict[Any, Any] = {}
        """What the prologue has made of zero points that are inputs."""
        self._scalars: dict[ir.Value, Scalar] = {}
        self._functions: set[str] = set()
        self.divisors: dict[Scalar, int] = {}
        """What run-time extents are multiples of, where that is known."""
        self._declare()

    @property
    def has_exp2(self) -> bool:
        """Does the target have instructions for 2^x and 1/x? GPUs do, which alone promise how tensors are aligned."""
        return self.alignment > 0

    @property
    def has_warps(self) -> bool:
        """Do threads take all branches that one of them takes? Those of GPUs do."""
        return self.alignment > 0

    def _declare(self) -> None:
        source, index = self.source, ir.IndexType.get()
        tensors = source.tensors
        types: list[ir.Type] = []
        if not self.grid:
            types += [ir.MemRefType.get([], storage_type(t.type.element_type)) for t in tensors]
        dynamic = source.run_time_extents
        types += [index] * (len(dynamic) + len(source.scalars))
        if not self.grid:
            types += [ir.MemRefType.get([2], ir.IntegerType.get_signless(64)), index, index]
            types += [ir.Type.parse("!llvm.ptr")] * self._num_pointers
        with ir.InsertionPoint(source.func):
            results = [index] if self.grid else []
            self.func = func.FuncOp(f"{self.name}__new", ir.FunctionType.get(types, results))
        if not self.grid:
            alias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
            attrs = [alias] * len(tensors) + [ir.DictAttr.get({})] * (len(types) - len(tensors))
            self.func.arg_attrs = ir.ArrayAttr.get(attrs)
        self.entry = self.func.add_entry_block()
        self.constants = Constants(self.entry)
        self.math = IndexMath(self.constants, remember=not self.alignment)
        with ir.InsertionPoint(self.entry):
            self._marker = arith.ConstantOp(index, 0).operation  # prologue ops go in front of it
        args = list(self.entry.arguments)
        memory = [] if self.grid else args[: len(tensors)]
        rest = args[len(memory) :]
        extents = {(t, i): rest[n] for n, (t, i) in enumerate(dynamic)}
        self.divisors.update(zip(rest, multiples(source.module), strict=False))
        for n, scalar in enumerate(source.scalars):
            self._scalars[scalar] = rest[len(dynamic) + n]
        if not self.grid:
            number = len(dynamic) + len(source.scalars)
            self.error, self.begin, self.end = rest[number : number + 3]
            self.pointers = rest[number + 3 :]
        with self.prologue():
            for n, tensor in enumerate(tensors):
                self.buffers[tensor] = self._buffer(tensor, memory[n] if memory else None, extents)

    def prologue(self) -> ir.InsertionPoint:
        """Where values that every part of the function may use are computed."""
        return ir.InsertionPoint(self._marker)

    def call(self, name: str, emit: Callable[[ir.Value], ir.Value], x: ir.Value) -> ir.Value:
        """What `emit` makes of `x`, by a function of the kernel's module that has the type of `x` in its name: micro-
        kernels compute the same of dozens of vectors, and LLVM has each in its place all the same (`always_inline`).
        `emit` must use nothing but its argument. On GPUs, which compile a function at a time, it is emitted here.
        """
        if self.has_exp2:
            return emit(x)
        kind = str(x.type).removeprefix("vector<").removesuffix(">")
        symbol = f"{name}_{kind}"
        if symbol not in self._functions:
            self._functions.add(symbol)
            self._define(symbol, emit, x.type)
        return func.CallOp([x.type], symbol, [x]).result

    def _define(self, symbol: str, emit: Callable[[ir.Value], ir.Value], type_: ir.Type) -> None:
        """Adds the function `symbol` to the module, unless a kernel that this one has become a part of has."""
        ops = self.source.module.regions[0].blocks[0].operations
        if any(isinstance(op, func.FuncOp) and op.name.value == symbol for op in ops):
            return
        with ir.InsertionPoint(self.source.func):
            function = func.FuncOp(symbol, ir.FunctionType.get([type_], [type_]), visibility="private")
        with ir.InsertionPoint(function.add_entry_block()):
            func.ReturnOp([emit(function.arguments[0])])

    def on_stack(self, element: ir.Type, size: int) -> ir.Value:
        """Memory for `size` elements, from the beginning of a line of the cache on, for all of the function."""
        with self.prologue():
            return memref.AllocaOp(ir.MemRefType.get([size], element), [], [], alignment=_LINE).result

    def body(self) -> ir.InsertionPoint:
        """The end of the function."""
        return ir.InsertionPoint(self.entry)

    def _buffer(
        self, tensor: ir.Value, memory: ir.Value | None, extents: dict[tuple[ir.Value, int], ir.Value]
    ) -> Buffer:
        type_ = tensor.type
        shape: list[Scalar] = [
            extents[tensor, i] if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)
        ]
        buffer = Buffer(memory, type_.element_type, shape)
        if memory is not None:
            buffer.memory = self._flat(memory, self.math.product(shape), type_.element_type)
            buffer.strides = self.row_major(shape)
        return buffer

    def _flat(self, memory: ir.Value, size: Scalar, element: ir.Type) -> ir.Value:
        dynamic = ir.ShapedType.get_dynamic_size()
        static = size if isinstance(size, int) else dynamic
        type_ = ir.MemRefType.get([static], storage_type(element))
        sizes = [] if isinstance(size, int) else [size]
        return memref.ReinterpretCastOp(type_, memory, [], sizes, [], [0], [static], [1]).result

    def row_major(self, shape: Sequence[Scalar]) -> list[Scalar]:
        """Strides, in elements, of a contiguous tensor."""
        strides: list[Scalar] = [1]
        for extent in reversed(list(shape)[1:]):
            strides.append(self.math.mul(strides[-1], extent))
        return strides[::-1] if shape else []

    def finish(self) -> None:
        """Put the function in the place of its source; the source's name is free afterwards."""
        self.func.attributes["sym_name"] = ir.StringAttr.get(self.name)

    # -- sizes ------------------------------------------------------------------------------------------------------

    def extent(self, tensor: ir.Value, dim: int) -> Scalar:
        """Extent of dimension `dim` of a tensor of the source function."""
        if not tensor.type.is_dynamic_dim(dim):
            return tensor.type.get_dim_size(dim)
        if tensor in self.buffers:
            return self.buffers[tensor].shape[dim]
        op = defining_op(tensor)
        assert op is not None
        name = op.name
        if name == "tensor.empty":
            position = sum(tensor.type.is_dynamic_dim(i) for i in range(dim))
            return self.scalar(op.operands[position])
        if name == "tensor.cast":
            return self.extent(op.operands[0], dim)
        if name == "tensor.expand_shape":
            position = sum(tensor.type.is_dynamic_dim(i) for i in range(dim))
            return self.scalar(op.operands[1 + position])
        if name == "tensor.collapse_shape":
            group = [a.value for a in op.attributes["reassociation"][dim]]
            with self.prologue():
                return self.math.product([self.extent(op.operands[0], i) for i in group])
        if name == "tensor.extract_slice":
            return self._slice_size(op, dim)
        if name.startswith("linalg."):
            outs = op.operands[len(op.operands) - len(op.results) + ir.OpResult(tensor).result_number]
            return self.extent(outs, dim)
        if name.startswith("mlc."):
            return self._destination_extent(tensor, dim)
        raise ValueError(f"kernel {self.name}: no extent for dimension {dim} of the result of {name}")

    def _destination_extent(self, tensor: ir.Value, dim: int) -> Scalar:
        """An opaque root has its result's shape in its destination."""
        for result, destination in zip(self.source.results, self.source.destinations, strict=True):
            if result == tensor:
                return self.extent(destination, dim)
        raise ValueError(f"kernel {self.name}: an opaque operation is not a root")

    def is_multiple(self, extent: Scalar, divisor: int) -> bool:
        """Is an extent known to be a multiple of `divisor`?"""
        known = extent if isinstance(extent, int) else self.divisors.get(extent, 1)
        return known % divisor == 0

    def _slice_size(self, op: ir.Operation, dim: int) -> Scalar:
        rank_in = op.operands[0].type.rank
        if rank_in != op.results[0].type.rank:
            raise ValueError("rank-reducing slices do not occur in kernels")
        return self.mixed(op, "sizes")[dim]

    def mixed(self, op: ir.Operation, what: str) -> list[Scalar]:
        """Offsets, sizes or strides of a slice operation: static entries as ints."""
        names = ["offsets", "sizes", "strides"]
        first = 2 if op.name == "tensor.insert_slice" else 1
        segments = list(op.attributes["operandSegmentSizes"])[first:]
        start = first + sum(segments[: names.index(what)])
        dynamic = iter(list(op.operands)[start : start + segments[names.index(what)]])
        static = op.attributes[f"static_{what}"]
        marker = ir.ShapedType.get_dynamic_size()
        return [self.scalar(next(dynamic)) if s == marker else s for s in static]

    def scalar(self, value: ir.Value) -> Scalar:
        """The new function's version of an index value of the source function."""
        if value in self._scalars:
            return self._scalars[value]
        op = defining_op(value)
        if op is None:
            raise ValueError(f"kernel {self.name}: an index value of a nested block is no size")
        result: Scalar
        if op.name == "arith.constant":
            result = ir.IntegerAttr(op.attributes["value"]).value
        elif op.name == "tensor.dim":
            which = self.scalar(op.operands[1])
            assert isinstance(which, int)
            result = self.extent(op.operands[0], which)
        else:
            with self.prologue():
                result = self._clone_scalar(op)
        self._scalars[value] = result
        return result

    def _clone_scalar(self, op: ir.Operation) -> Scalar:
        fold = {"arith.addi": self.math.add, "arith.subi": self.math.sub, "arith.muli": self.math.mul}
        args = [self.scalar(v) for v in op.operands]
        if op.name in fold:
            return fold[op.name](*args)
        if not op.name.startswith("arith."):
            raise ValueError(f"kernel {self.name}: a size may not come from {op.name}")
        operands = [self.constants.index(a) if isinstance(a, int) else a for a in args]
        attributes = {n: op.attributes[n] for n in op.attributes}
        return ir.Operation.create(op.name, [r.type for r in op.results], operands, attributes).results[0]


def for_loop(
    frame: Frame,
    low: Scalar,
    high: Scalar,
    step: Scalar,
    inits: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """An `scf.for` whose body is emitted by `body(variable, carried) -> next carried`; gives the final values. One
    iteration is emitted as it is, and none as nothing.
    """
    c = frame.constants.index
    if isinstance(low, int) and isinstance(high, int) and isinstance(step, int) and low + step >= high:
        return list(body(c(low), list(inits))) if low < high else list(inits)
    loop = scf.ForOp(c(low), c(high), c(step), list(inits))
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(list(body(loop.induction_variable, list(loop.inner_iter_args))))
    return list(loop.results)


def if_then(condition: ir.Value, body: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
    """An `scf.if` without results."""
    op = scf.IfOp(condition, has_else=otherwise is not None)
    with ir.InsertionPoint(op.then_block):
        body()
        scf.YieldOp([])
    if otherwise is not None:
        with ir.InsertionPoint(op.else_block):
            otherwise()
            scf.YieldOp([])


def if_values(
    condition: ir.Value,
    types: Sequence[ir.Type],
    body: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """An `scf.if` with results of `types`."""
    op = scf.IfOp(condition, list(types), has_else=True)
    for block, side in ((op.then_block, body), (op.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.YieldOp(list(side()))
    return list(op.results)
