"""Follows the host program of a model, in its form on tensors and in its form on buffers, without computing anything.

Both give, for every result, a hash of how it came about (`plan/contents.py`). They are equal when the planned buffers hold,
wherever they are read, what the tensors say: lifetimes in the arena, updates in place, copies between the two memories of a
GPU program and the order of everything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import mlir.ir as ir
from plan.arithmetic import computed, is_arithmetic
from plan.contents import CannotFollowError, Memory, Numbers, PlanError, Region

from mlc.passes.bufferize.place_weights import element_bytes

_IGNORED = ("mlc.check", "memref.dealloc", "func.return", "scf.yield", "scf.condition")
_VIEWS = ("expand_shape", "collapse_shape", "cast")
_MOST_TURNS = 20


class Program(ABC):
    """The first entry of a module, with `extent` for every dynamic dimension of its arguments."""

    def __init__(self, module: ir.Module, extent: int) -> None:
        tops = [view.operation for view in module.body.operations]
        self.module = module
        self.function = next(o for o in tops if o.name == "func.func")
        self.kernels = {o.attributes["sym_name"].value: o for o in tops if o.name == "builtin.module"}
        self.extent = extent
        self.numbers = Numbers()
        self.values: dict[ir.Value, Any] = {}

    def results(self) -> list[str]:
        """Runs the program; gives the hashes of its results."""
        block = self.function.regions[0].blocks[0]
        for number, argument in enumerate(block.arguments):
            self.values[argument] = self._argument(number, argument)
        return self._finish(self._block(block))

    @abstractmethod
    def _finish(self, returned: list[Any]) -> list[str]: ...

    def _argument(self, number: int, argument: ir.Value) -> Region:
        if not isinstance(argument.type, ir.ShapedType):
            raise CannotFollowError(f"an argument of type {argument.type}")
        shape = [self.extent if argument.type.is_dynamic_dim(i) else n for i, n in enumerate(argument.type.shape)]
        attributes = self.function.attributes
        named = ir.ArrayAttr(attributes["arg_attrs"])[number] if "arg_attrs" in attributes else ir.DictAttr.get({})
        where = ir.DictAttr(named)["mlc.placement"].value if "mlc.placement" in named else "host"
        source = f"argument {number}"
        return self._allocated(source, shape, argument.type, where, value=source, read_only=True)

    @staticmethod
    def _allocated(name: str, shape: Sequence[int], kind: ir.Type, space: str = "host", **settings: Any) -> Region:
        item = element_bytes(kind.element_type)
        if any(extent < 0 for extent in shape):
            raise CannotFollowError(f"{name} of shape {list(shape)}")
        region = Region(Memory(name, 0, space, **settings), 0, tuple(shape), item)
        region.memory.nbytes = region.nbytes
        return region

    def _sizes(self, kind: ir.Type, dynamic: Sequence[ir.Value]) -> list[int]:
        rest = iter(dynamic)
        return [self.values[next(rest)] if kind.is_dynamic_dim(i) else n for i, n in enumerate(kind.shape)]

    def _block(self, block: ir.Block) -> list[Any]:
        """Runs a block; gives what its terminator hands on."""
        last = None
        for view in block.operations:
            last = view.operation
            if last.name not in _IGNORED:
                self._step(last)
        assert last is not None
        return [self.values[v] for v in last.operands if v in self.values]

    def _step(self, op: ir.Operation) -> None:
        dialect, _, kind = op.name.partition(".")
        if op.name in ("scf.if", "scf.for", "scf.while"):
            self._set(op, getattr(self, f"_{kind}")(op))
        elif is_arithmetic(op):
            self._set(op, [computed(op, [self.values[v] for v in op.operands])])
        elif kind == "dim":
            self._set(op, [self.values[op.operands[0]].shape[self.values[op.operands[1]]]])
        elif kind in _VIEWS and dialect in ("tensor", "memref"):
            self._set(op, [self._view(op, kind)])
        elif kind in ("extract", "load"):
            self._set(op, [self._number(op)])
        elif op.name == "mlc.launch":
            self._launch(op)
        else:
            self._memory_step(op)

    def _set(self, op: ir.Operation, results: Sequence[Any]) -> None:
        self.values.update(zip(op.results, results, strict=True))

    @abstractmethod
    def _memory_step(self, op: ir.Operation) -> None: ...

    def _if(self, op: ir.Operation) -> list[Any]:
        region = op.regions[0 if self.values[op.operands[0]] else 1]
        return self._block(region.blocks[0]) if len(region.blocks) else []

    def _for(self, op: ir.Operation) -> list[Any]:
        first, end, step, *carried = (self.values[v] for v in op.operands)
        turns = range(first, end, step)
        if len(turns) > _MOST_TURNS:
            raise CannotFollowError(f"a loop of {len(turns)} turns")
        block = op.regions[0].blocks[0]
        for number in turns:
            self.values.update(zip(block.arguments, [number, *carried], strict=True))
            carried = self._block(block)
        return carried

    def _while(self, op: ir.Operation) -> list[Any]:
        carried = [self.values[v] for v in op.operands]
        before, after = (region.blocks[0] for region in op.regions)
        for _ in range(_MOST_TURNS):
            self.values.update(zip(before.arguments, carried, strict=True))
            condition, *carried = self._block(before)
            if not condition:
                return carried
            self.values.update(zip(after.arguments, carried, strict=True))
            carried = self._block(after)
        raise CannotFollowError("a loop that does not end")

    def _view(self, op: ir.Operation, kind: str) -> Region:
        source, result = self.values[op.operands[0]], op.results[0].type
        if kind == "expand_shape":
            shape = self._sizes(result, list(op.operands)[1:])
        elif kind == "collapse_shape":
            shape = [1] * result.rank
            for i, group in enumerate(op.attributes["reassociation"]):
                for axis in group:
                    shape[i] *= source.shape[axis.value]
        else:
            shape = list(source.shape)
        view = Region(source.memory, source.offset, tuple(shape), source.item)
        if view.nbytes != source.nbytes:
            raise CannotFollowError(f"{list(source.shape)} seen as {shape}")
        return view

    def _number(self, op: ir.Operation) -> int:
        source, *index = (self.values[v] for v in op.operands)
        if source.memory.space != "host":
            raise PlanError(f"the host reads an element of {source}")
        number = self.numbers.at(source, index)
        # A truth value is a byte in memory, and true where that is not 0.
        return int(number != 0) if op.results[0].type == ir.IntegerType.get_signless(1) else number

    def _launch(self, op: ir.Operation) -> None:
        name = ir.FlatSymbolRefAttr(op.attributes["kernel"]).value
        count = self._destinations(op)
        operands = [self.values[v] for v in op.operands]
        inputs, results = operands[: len(operands) - count], operands[len(operands) - count :]
        kernel = self.kernels[name].attributes
        updated = list(ir.DenseI64ArrayAttr(kernel["mlc.inout"])) if "mlc.inout" in kernel else []
        self._check_places(op, [r for r in operands if isinstance(r, Region)])
        read = [v.digest() if isinstance(v, Region) else str(v) for v in inputs]
        read += [results[number].digest() for number in updated]
        for result in results:
            for other in (*inputs, *results):
                if isinstance(other, Region) and other is not result and result.overlaps(other):
                    raise PlanError(f"@{name} writes {result} while it reads or writes {other}")
        written = [self._destination(op, number, result) for number, result in enumerate(results)]
        for number, result in enumerate(written):
            result.write(f"@{name} {number} of {' '.join(read)}")

    @abstractmethod
    def _destinations(self, op: ir.Operation) -> int: ...

    @abstractmethod
    def _destination(self, op: ir.Operation, number: int, region: Region) -> Region: ...

    @abstractmethod
    def _check_places(self, op: ir.Operation, touched: Sequence[Region]) -> None:
        """Raises PlanError where a kernel touches memory that it cannot."""


class TensorProgram(Program):
    """A program of the phase `tile`: every value is a tensor of its own."""

    def _finish(self, returned: list[Any]) -> list[str]:
        return [value.digest() for value in returned]

    def _memory_step(self, op: ir.Operation) -> None:
        if op.name == "tensor.empty":
            kind = op.results[0].type
            self._set(op, [self._allocated("an empty tensor", self._sizes(kind, op.operands), kind)])
        elif op.name == "mlc.weight":
            kind, source = op.results[0].type, f"weight {op.attributes['name'].value}"
            self._set(op, [self._allocated(source, kind.shape, kind, value=source)])
        elif op.name in ("mlc.constant", "arith.constant"):
            kind = op.results[0].type
            source = self.numbers.constant(op.attributes["value"], kind.shape, element_bytes(kind.element_type))
            self._set(op, [self._allocated("a constant", kind.shape, kind, value=source)])
        elif op.name == "tensor.from_elements" and len(op.operands) == 1:
            kind = op.results[0].type
            source = self.numbers.scalar(self.values[op.operands[0]])
            self._set(op, [self._allocated("a scalar", kind.shape, kind, value=source)])
        else:
            raise CannotFollowError(f"{op.name} on the host")

    def _destinations(self, op: ir.Operation) -> int:
        return len(op.results)

    def _destination(self, op: ir.Operation, number: int, region: Region) -> Region:
        result = op.results[number]
        self.values[result] = self._allocated("a result", region.shape, result.type)
        return self.values[result]

    def _check_places(self, op: ir.Operation, touched: Sequence[Region]) -> None:
        """Tensors are in no memory."""


class BufferProgram(Program):
    """A program of the phase `buffers`."""

    def __init__(self, module: ir.Module, extent: int) -> None:
        super().__init__(module, extent)
        self.outputs: dict[int, Region] = {}
        self.on_gpu = "nvidia" in str(module.operation.attributes["mlc.target"])

    def _finish(self, returned: list[Any]) -> list[str]:
        return [self.outputs[number].digest() for number in sorted(self.outputs)]

    def _memory_step(self, op: ir.Operation) -> None:
        if op.name == "mlc.buffer":
            self._set(op, [self._buffer(op)])
        elif op.name == "memref.view":
            whole, shift, *sizes = (self.values[v] for v in op.operands)
            kind = op.results[0].type
            shape = self._sizes(kind, list(op.operands)[2:])
            self._set(op, [Region(whole.memory, whole.offset + shift, tuple(shape), element_bytes(kind.element_type))])
        elif op.name == "memref.get_global":
            self._set(op, [self._global(op)])
        elif op.name == "memref.copy":
            self._copy(op)
        elif op.name == "memref.store" and all(extent == 1 for extent in op.operands[1].type.shape):
            self.values[op.operands[1]].write(self.numbers.scalar(self.values[op.operands[0]]))
        elif op.name == "mlc.extern" and op.attributes["callee"].value == "mlc_rt_gpu_constant":
            source = self.values[op.operands[0]]
            value = source.memory.value
            copy = Memory("a constant on the GPU", source.memory.nbytes, "device", value, read_only=True)
            self._set(op, [Region(copy, source.offset, source.shape, source.item)])
        else:
            raise CannotFollowError(f"{op.name} on the host")

    def _buffer(self, op: ir.Operation) -> Region:
        where, kind = op.attributes["where"].value, op.results[0].type
        space = op.attributes["mlc.space"].value if "mlc.space" in op.attributes else "host"
        shape = self._sizes(kind, op.operands)
        if where == "weights":
            return self._weight(ir.IntegerAttr(op.attributes["static_offset"]).value, shape, kind, space)
        region = self._allocated(where, shape, kind, space)
        if where == "output":
            number = ir.IntegerAttr(op.attributes["number"]).value
            region = self.outputs.setdefault(number, region)
        return region

    def _weight(self, offset: int, shape: Sequence[int], kind: ir.Type, space: str) -> Region:
        for entry in self.module.operation.attributes["mlc.weight_image"]:
            named = ir.DictAttr(entry)
            if ir.IntegerAttr(named["offset"]).value == offset:
                source = f"weight {named['name'].value}"
                region = self._allocated(source, shape, kind, space, value=source, read_only=True)
                if region.nbytes > ir.IntegerAttr(named["size"]).value:
                    raise PlanError(f"{source} is read as {region.nbytes} bytes")
                return region
        raise PlanError(f"no weight lies at {offset} of the image")

    def _global(self, op: ir.Operation) -> Region:
        name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
        kind = op.results[0].type
        for view in self.module.body.operations:
            other = view.operation
            if other.name == "memref.global" and other.attributes["sym_name"].value == name:
                value = self.numbers.constant(
                    other.attributes["initial_value"], kind.shape, element_bytes(kind.element_type)
                )
                return self._allocated("a constant", kind.shape, kind, value=value, read_only=True)
        raise PlanError(f"there is no constant @{name}")

    def _copy(self, op: ir.Operation) -> None:
        source, target = (self.values[v] for v in op.operands)
        moved = op.attributes["mlc.transfer"].value if "mlc.transfer" in op.attributes else source.memory.space
        if self.on_gpu and target.memory.space != moved:
            raise PlanError(
                f"a copy to the memory of the {moved} writes {target}, which is in the {target.memory.space}'s"
            )
        if source.overlaps(target):
            raise PlanError(f"{source} is copied onto {target}")
        source.digest()
        target.words()[:] = source.words()

    def _destinations(self, op: ir.Operation) -> int:
        return int(list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-1])

    def _destination(self, op: ir.Operation, number: int, region: Region) -> Region:
        return region

    def _check_places(self, op: ir.Operation, touched: Sequence[Region]) -> None:
        if not self.on_gpu:
            return
        where = op.attributes["mlc.placement"].value
        for region in touched:
            if region.memory.space != where:
                raise PlanError(
                    f"a kernel of the {where} touches {region}, which is in the {region.memory.space}'s memory"
                )
