"""Make one kernel of those that differ in numbers only; it takes the numbers as an input.

```mlir
module @k0 { … %cst = arith.constant 0.02 : f32 … }    module @k0 { func.func @k0(…, %n: tensor<1xf32>, …)
module @k1 { … %cst = arith.constant 0.03 : f32 … }  →    … %cst = tensor.extract %n[%c0] : tensor<1xf32> … }
mlc.launch @k0(%x)    mlc.launch @k1(%y)                mlc.launch @k0(%x, %n0)    mlc.launch @k0(%y, %n1)
```
Every layer of a quantized model has its own scales and zero points. Only what is added, subtracted, multiplied with or
divided by in a body becomes an input, where it differs: templates look for other numbers (bounds, what a reduction
begins with) and for those that make an operation a simpler one (`_is_special`), which stay. So do all numbers of
kernels with several contractions: an attention asks for the sign of its scale. A whole number of 32 bits goes into the
vector of floats; `mlc.whole` says of what is read that it is a small whole number, as zero points are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func, tensor

from mlc.dialects import mlc as m
from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.codes import MOST_WHOLE, WHOLE
from mlc.kernels.common.frame import KernelSource, defining_op, kernel_source
from mlc.passes.base import Pass
from mlc.passes.fuse.dedupe_kernels import kernel_text
from mlc.passes.schedule.assign_schedules import collect_launches, constant_inputs
from mlc.passes.walk import operations

_PLAIN = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.addi", "arith.subi", "math.fma")
_MOST = 64  # numbers of a kernel: more are no constant of the host's, but a weight
_ENDS = (-128.0, -32768.0)  # where codes begin: what a ReLU gives needs no other bound there


@dataclass
class _Member:
    """A kernel, the operands that may become inputs, and their numbers."""

    source: KernelSource
    sites: list[tuple[ir.Operation, int]]
    numbers: list[float]


class ShareKernels(Pass):
    """Make one kernel of those that differ in numbers only."""

    dialects = ("arith", "func", "tensor", "mlc")
    statistics = {"removed": "kernels that differed from another in numbers"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        launches = collect_launches(module)
        groups: dict[tuple[object, ...], list[_Member]] = {}
        for view in module.regions[0].blocks[0].operations:
            if "mlc.kernel" not in view.operation.attributes:
                continue
            member = _member(view.operation)
            if member is not None:
                weights = frozenset(constant_inputs(launches.get(_name(member), [])))
                groups.setdefault((weights, *_key(member)), []).append(member)
        for members in groups.values():
            slots = _slots([member.numbers for member in members])
            if not slots or max(slots.values()) >= _MOST:
                continue
            for member in members:
                _pass_numbers(member, slots, launches.get(_name(member), []), _name(members[0]))
            _take_numbers(members[0], slots, [member.numbers for member in members])
            for member in members[1:]:
                member.source.module.erase()
                self.count("removed")


def _name(member: _Member) -> str:
    return str(member.source.func.name.value)


def _member(kernel: ir.Operation) -> _Member | None:
    """What may become inputs of a kernel; None where nothing may."""
    source = kernel_source(kernel)
    bodies = [view.operation for view in source.block.operations if view.operation.name == "linalg.generic"]
    if sum(is_contraction(op) for op in bodies) > 1:
        return None
    found = [
        (op, place, number)
        for body in bodies
        if not is_contraction(body)
        for op in operations(body)
        if op.name in _PLAIN
        for place, value in enumerate(op.operands)
        if (number := _number(value)) is not None and not _is_special(number, op.name)
    ]
    if not found:
        return None
    return _Member(source, [(op, place) for op, place, _ in found], [number for *_, number in found])


def _number(value: ir.Value) -> float | None:
    """The number that a float of 32 bits can hold, if `value` is such a constant."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(value.type, ir.F32Type):
        number = float(ir.FloatAttr(attribute).value)
    elif isinstance(value.type, ir.IntegerType) and value.type.width == 32:
        number = float(ir.IntegerAttr(attribute).value)
        if abs(number) > 1 << 24:  # no float of 32 bits
            return None
    else:
        return None
    return number


def _is_special(number: float, operation: str) -> bool:
    """Is it a number that makes an operation a simpler one, as dividing by a power of two is multiplying?"""
    if not math.isfinite(number) or number in (0, 1, -1) or number in _ENDS:
        return True
    return operation == "arith.divf" and abs(math.frexp(number)[0]) == 0.5


def _is_whole(number: float) -> bool:
    return number.is_integer() and abs(number) < MOST_WHOLE


def _key(member: _Member) -> tuple[object, ...]:
    """Equal for kernels that differ in their numbers only."""
    copy = kernel_source(member.source.module.clone(ip=False))
    found = _member(copy.module)
    assert found is not None
    places = found.sites
    types = dict.fromkeys(op.operands[n].type for op, n in places)
    with ir.InsertionPoint.at_block_begin(copy.block), copy.module.location:
        blanks = {type_: arith.constant(type_, 0.0 if isinstance(type_, ir.F32Type) else 0) for type_ in types}
    old = [op.operands[n] for op, n in places]
    for op, n in places:
        op.operands[n] = blanks[op.operands[n].type]
    for constant in dict.fromkeys(value.owner.operation for value in old):
        if not any(True for _ in constant.results[0].uses):
            constant.erase()
    text = kernel_text(copy.module)
    copy.module.erase()
    return text, tuple(_is_whole(number) for number in member.numbers)


def _slots(numbers: list[list[float]]) -> dict[int, int]:
    """For each place whose number differs, where in the vector it is; places that always agree share one."""
    slots: dict[int, int] = {}
    seen: dict[tuple[float, ...], int] = {}
    for place, values in enumerate(zip(*numbers, strict=True)):
        if len(set(values)) > 1:
            slots[place] = seen.setdefault(values, len(seen))
    return slots


def _pass_numbers(member: _Member, slots: dict[int, int], launches: list[ir.Operation], name: str) -> None:
    """Launch kernel `name` with the numbers of `member` in place of its own."""
    values = dict(sorted((slot, member.numbers[place]) for place, slot in slots.items()))
    for launch in launches:
        count = len(launch.operands) - len(launch.results)
        inputs = list(launch.operands)[:count]
        first = sum(not isinstance(value.type, ir.IndexType) for value in inputs)
        with ir.InsertionPoint(launch), launch.location:
            type_ = ir.RankedTensorType.get([len(values)], ir.F32Type.get())
            elements = [ir.FloatAttr.get(ir.F32Type.get(), value) for value in values.values()]
            numbers = m.constant(ir.DenseElementsAttr.get(elements, type_))
            inputs.insert(first, numbers)
            new = m.launch(name, inputs, list(launch.operands)[count:])[0].owner
        for key in launch.attributes:
            if key not in ("kernel", "operandSegmentSizes"):
                new.attributes[key] = launch.attributes[key]
        for old, result in zip(launch.results, new.results, strict=True):
            old.replace_all_uses_with(result)
        launch.erase()


def _take_numbers(member: _Member, slots: dict[int, int], numbers: list[list[float]]) -> None:
    """Let the kernel read its numbers from one more input, behind its other tensors, in front of sizes."""
    type_ = ir.RankedTensorType.get([1 + max(slots.values())], ir.F32Type.get())
    old = member.source.func
    with old.location:
        block, given = _with_input(old, type_, len(member.source.results))
        read: dict[tuple[int, ir.Type], ir.Value] = {}
        replaced: dict[ir.Operation, None] = {}  # the first operation of the block may be one, and holds the place
        with ir.InsertionPoint.at_block_begin(block):
            for place, slot in slots.items():
                op, n = member.sites[place]
                key = (slot, op.operands[n].type)
                if key not in read:
                    whole = all(_is_whole(values[place]) for values in numbers)
                    read[key] = _read(given, slot, op.operands[n].type, whole)
                replaced[op.operands[n].owner.operation] = None
                op.operands[n] = read[key]
        for constant in replaced:
            if not any(True for _ in constant.results[0].uses):
                constant.erase()


def _with_input(old: func.FuncOp, type_: ir.Type, results: int) -> tuple[ir.Block, ir.Value]:
    """Put a function with one more tensor among its inputs in the place of `old`; gives its block, and the tensor."""
    before = list(old.regions[0].blocks[0].arguments)
    inputs = before[: len(before) - results]
    first = sum(not isinstance(value.type, ir.IndexType) for value in inputs)
    types = [value.type for value in before]
    types.insert(first, type_)
    with ir.InsertionPoint(old):
        new = func.FuncOp(old.name.value, ir.FunctionType.get(types, list(old.type.results)))
    block = new.add_entry_block()
    arguments = list(block.arguments)
    given = arguments.pop(first)
    for one, other in zip(before, arguments, strict=True):
        one.replace_all_uses_with(other)
    for view in list(old.regions[0].blocks[0].operations):
        block.append(view.operation)
    old.operation.erase()
    return block, given


def _read(given: ir.Value, slot: int, type_: ir.Type, whole: bool) -> ir.Value:
    value = tensor.extract(given, [arith.constant(ir.IndexType.get(), slot)])
    if whole:
        value.owner.attributes[WHOLE] = ir.UnitAttr.get()
    return value if value.type == type_ else arith.fptosi(type_, value)
