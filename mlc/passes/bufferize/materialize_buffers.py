"""`mlc-materialize-buffers`: puts every buffer where `mlc-plan-arena` said."""

from __future__ import annotations

import mlir.ir as ir
from mlir.dialects import arith, memref

from mlc.kernels.common.blocks import ancestor_in
from mlc.passes.base import Pass
from mlc.passes.bufferize.place_weights import ALIGNMENT, align, element_bytes
from mlc.passes.bufferize.plan_arena import dimension_names
from mlc.passes.bufferize.sizes import Size, SizeAnalysis, SizeEmitter
from mlc.passes.bufferize.spaces import DEVICE, HOST, SpaceAnalysis
from mlc.passes.walk import functions


class MaterializeBuffers(Pass):
    """Put every buffer where the plan says.

    The function reserves its arena once, before the first buffer in it; buffers are views of the arena,
    buffers of the caller or of the pool. Results are written to output buffers, so the function returns
    nothing any more.

    ```mlir
    %0 = memref.alloc(%n) {mlc.place = {where = "arena", region = 0, offset = 64}} : memref<?x4xf32>
    // becomes
    %arena = mlc.buffer arena (%bytes) {static_offset = 0} : memref<?xi8>
    %0 = memref.view %arena[%c64][%n] : memref<?xi8> to memref<?x4xf32>
    ```
    """

    dialects = ("memref", "arith")

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            _Materializer(function).run()


class _Materializer:
    def __init__(self, function: ir.Operation) -> None:
        self.function = function
        self.entry = function.regions[0].blocks[0]
        self.analysis = SizeAnalysis(dimension_names(function))
        self.allocs = _allocations(function)
        self.spaces = SpaceAnalysis(function)
        self.emitter = SizeEmitter(function)

    def run(self) -> None:
        """Replaces allocations, then results."""
        # Everything that is derived from a size is computed while the allocations still exist.
        views = {n: self._result_dims(v) for n, v in enumerate(self._returned())}
        places = [self._space(value) for value in self._returned()]
        self._mark_copies()
        self._reserve()
        written: dict[int, ir.Value] = {}
        for alloc, place in self.allocs:
            with ir.InsertionPoint(alloc), alloc.location:
                where = ir.StringAttr(place["where"]).value
                if where == "arena":
                    replacement = self._in_arena(alloc, place)
                elif where == "output":
                    number = ir.IntegerAttr(place["number"]).value
                    replacement = written[number] = self._output(alloc, number, views[number])
                else:
                    space = self._space(alloc.results[0])
                    replacement = _buffer("pool", alloc.results[0].type, list(alloc.operands), space)
            alloc.results[0].replace_all_uses_with(replacement)
        self._return(written, views, places)
        for alloc, _ in self.allocs:
            alloc.erase()

    def _returned(self) -> list[ir.Value]:
        return list(self.entry.operations[len(self.entry.operations) - 1].operands)

    def _result_dims(self, value: ir.Value) -> list[Size]:
        if not isinstance(value.type, ir.MemRefType):
            return []
        return [self.analysis.dim(value, i) for i in range(value.type.rank) if value.type.is_dynamic_dim(i)]

    # --- Memories -----------------------------------------------------------------------------------------

    def _space(self, value: ir.Value) -> str:
        return self.spaces.space(value) if isinstance(value.type, ir.MemRefType) else HOST

    def _mark_copies(self) -> None:
        """What happens in the GPU's memory says so from here on."""
        if not self.spaces.placed:
            return

        def mark(op: ir.Operation) -> ir.WalkResult:
            inside = op.name == "memref.copy" and "mlc.transfer" not in op.attributes
            if inside and self._space(op.operands[0]) == DEVICE:
                op.attributes["mlc.space"] = ir.StringAttr.get(DEVICE)
            return ir.WalkResult.ADVANCE

        self.function.walk(mark)

    # --- The arena ----------------------------------------------------------------------------------------

    def _reserve(self) -> None:
        """Computes where the regions begin and reserves their sum before the first buffer of the arena."""
        inside = [(a, p) for a, p in self.allocs if ir.StringAttr(p["where"]).value == "arena"]
        if not inside:
            return
        members: dict[int, list[Size]] = {}
        for alloc, place in inside:
            value = alloc.results[0]
            size = self.analysis.elements(value) * Size.constant(element_bytes(value.type.element_type))
            members.setdefault(ir.IntegerAttr(place["region"]).value, []).append(size)
        static, self.starts, self.units = 0, {}, {}
        dynamic: ir.Value | None = None
        for number, region in enumerate(ir.ArrayAttr(self.function.attributes["mlc.arena"])):
            attributes = {named.name: named.attr for named in ir.DictAttr(region)}
            self.starts[number] = (static, dynamic)
            if "bytes" in attributes and "unit" not in attributes:
                static += ir.IntegerAttr(attributes["bytes"]).value
                continue
            if "bytes" in attributes:
                unit = Size.of({members[number][0].terms[0][0]: 1})
                self.units[number] = unit
                bytes_ = self.emitter.emit(unit * Size.constant(ir.IntegerAttr(attributes["bytes"]).value))
            else:
                bytes_ = self._largest(members[number])
            with ir.InsertionPoint(ancestor_in(self.entry, inside[0][0])), self.function.location:
                dynamic = bytes_ if dynamic is None else arith.addi(dynamic, bytes_)
        self._emit_reservation(ancestor_in(self.entry, inside[0][0]), static, dynamic)

    def _largest(self, sizes: list[Size]) -> ir.Value:
        first = next(a for a, p in self.allocs if ir.StringAttr(p["where"]).value == "arena")
        values = [self.emitter.emit(size) for size in dict.fromkeys(sizes)]
        with ir.InsertionPoint(ancestor_in(self.entry, first)), self.function.location:
            largest = values[0]
            for value in values[1:]:
                largest = arith.maxsi(largest, value)
            raised = arith.addi(largest, arith.constant(ir.IndexType.get(), ALIGNMENT - 1))
            return arith.andi(raised, arith.constant(ir.IndexType.get(), -ALIGNMENT))

    def _emit_reservation(self, before: ir.Operation, static: int, dynamic: ir.Value | None) -> None:
        i8 = ir.IntegerType.get_signless(8)
        with ir.InsertionPoint(before), before.location:
            if dynamic is None:
                self.arena = self._arena(ir.MemRefType.get([align(static)], i8), [])
                return
            total = arith.addi(dynamic, arith.constant(ir.IndexType.get(), align(static)))
            target = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], i8)
            self.arena = self._arena(target, [total])

    def _arena(self, target: ir.Type, sizes: list[ir.Value]) -> ir.Value:
        return _buffer("arena", target, sizes, DEVICE if self.spaces.placed else HOST, static_offset=0)

    def _in_arena(self, alloc: ir.Operation, place: ir.DictAttr) -> ir.Value:
        number = ir.IntegerAttr(place["region"]).value
        offset = ir.IntegerAttr(place["offset"]).value
        static, dynamic = self.starts[number]
        if number not in self.units:
            static += offset
        shift = arith.constant(ir.IndexType.get(), static)
        if dynamic is not None:
            shift = arith.addi(dynamic, shift)
        if number in self.units and offset:
            shift = arith.addi(shift, self.emitter.emit(self.units[number] * Size.constant(offset)))
        return memref.ViewOp(alloc.results[0].type, self.arena, shift, list(alloc.operands)).result

    # --- Results ------------------------------------------------------------------------------------------

    def _output(self, alloc: ir.Operation, number: int, dims: list[Size]) -> ir.Value:
        """The buffer of a result, in the shape in which the function writes it."""
        returned, space = self._returned()[number], self._space(alloc.results[0])
        if returned == alloc.results[0]:
            return _buffer("output", returned.type, list(alloc.operands), space, number=number)
        sizes = [self.emitter.emit(dim) for dim in dims]
        target = ir.MemRefType.get(returned.type.shape, returned.type.element_type)
        buffer = _buffer("output", target, sizes, space, number=number)
        return _reshaped(buffer, alloc.results[0].type, list(alloc.operands))

    def _return(self, written: dict[int, ir.Value], dims: dict[int, list[Size]], places: list[str]) -> None:
        """Copies what was not written in place; what is still returned are handles and empty buffers, as the
        results that `mlc.numbers` says.
        """
        terminator = self.entry.operations[len(self.entry.operations) - 1].operation
        handles: dict[int, ir.Value] = {}
        with ir.InsertionPoint(terminator), terminator.location:
            for number, value in enumerate(terminator.operands):
                if not isinstance(value.type, ir.MemRefType):
                    handles[number] = value
                if number in written or number in handles:
                    continue
                dynamic = [i for i in range(value.type.rank) if value.type.is_dynamic_dim(i)]
                extents = [self._extent(value, i, size) for i, size in zip(dynamic, dims[number], strict=True)]
                target = ir.MemRefType.get(value.type.shape, value.type.element_type)
                buffer = _buffer("output", target, extents, places[number], number=number)
                copy = memref.CopyOp(value, buffer).operation
                if places[number] == DEVICE:
                    copy.attributes["mlc.space"] = ir.StringAttr.get(DEVICE)
                if 0 in value.type.shape:
                    handles[number] = buffer  # a copy of nothing goes away, and the unused buffer with it
            left = ir.Operation.create("func.return", [], list(handles.values()))
            if handles:
                left.attributes["mlc.numbers"] = ir.DenseI64ArrayAttr.get(list(handles))
        terminator.erase()
        inputs = [a.type for a in self.entry.arguments]
        self.function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, [v.type for v in handles.values()])
        )
        if "res_attrs" in self.function.attributes:
            del self.function.attributes["res_attrs"]

    def _extent(self, value: ir.Value, axis: int, size: Size) -> ir.Value:
        if size.known_at_entry:
            return self.emitter.emit(size)
        return memref.dim(value, arith.constant(ir.IndexType.get(), axis))


def _allocations(function: ir.Operation) -> list[tuple[ir.Operation, ir.DictAttr]]:
    found: list[tuple[ir.Operation, ir.DictAttr]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.alloc":
            if "mlc.place" not in op.attributes:
                raise ValueError(f"an allocation without a place (at {op.location}); run mlc-plan-arena before")
            found.append((op, ir.DictAttr(op.attributes["mlc.place"])))
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _buffer(where: str, target: ir.Type, sizes: list[ir.Value], space: str = HOST, **numbers: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    attributes: dict[str, ir.Attribute] = {name: ir.IntegerAttr.get(i64, value) for name, value in numbers.items()}
    attributes["where"] = ir.StringAttr.get(where)
    if space == DEVICE:
        attributes["mlc.space"] = ir.StringAttr.get(space)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([0, len(sizes)])
    return ir.Operation.create("mlc.buffer", [target], sizes, attributes).result


def _reshaped(buffer: ir.Value, target: ir.Type, extents: list[ir.Value]) -> ir.Value:
    """`buffer` seen in the shape of `target`: flattened, then expanded."""
    flat = _flattened(buffer)
    wanted = 1
    for extent in target.shape:
        wanted = -1 if wanted < 0 or extent == ir.ShapedType.get_dynamic_size() else wanted * extent
    dynamic = ir.ShapedType.get_dynamic_size()
    line = ir.MemRefType.get([dynamic if wanted < 0 else wanted], target.element_type)
    if flat.type != line:
        flat = memref.cast(line, flat)
    i64 = ir.IntegerType.get_signless(64)
    if target.rank == 1:
        return flat
    group = [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in range(target.rank)])]
    if target.rank == 0:
        return memref.CollapseShapeOp(target, flat, ir.ArrayAttr.get([])).result
    static = ir.DenseI64ArrayAttr.get(list(target.shape))
    return memref.ExpandShapeOp(target, flat, ir.ArrayAttr.get(group), extents, static).result


def _flattened(buffer: ir.Value) -> ir.Value:
    shape, element = list(buffer.type.shape), buffer.type.element_type
    i64 = ir.IntegerType.get_signless(64)
    if len(shape) == 1:
        return buffer
    if not shape:
        one = ir.MemRefType.get([1], element)
        return memref.ExpandShapeOp(one, buffer, ir.ArrayAttr.get([]), [], ir.DenseI64ArrayAttr.get([1])).result
    dynamic = ir.ShapedType.get_dynamic_size()
    total = 1
    for extent in shape:
        total = dynamic if dynamic in (total, extent) else total * extent
    group = ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in range(len(shape))])
    target = ir.MemRefType.get([total], element)
    return memref.CollapseShapeOp(target, buffer, ir.ArrayAttr.get([group])).result
