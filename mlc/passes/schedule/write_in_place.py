"""Let kernels find an operand in their destination, and write over it: obeys `mlc.over`.

```mlir
%s = mlc.launch @k(%x, %w, %r) outs(%e) {mlc.over = 2} …
// becomes
%s = mlc.launch @k(%x, %w) outs(%r) {mlc.in_place, mlc.inout = array<i64: 0>} …
```
The input goes from the kernel, which reads its destination instead (`mlc.inout`): no two arguments are the same memory.
A kernel that other launches need as it was is copied. Runs when nothing merges or moves launches any more.
"""

from __future__ import annotations

from mlir import ir

from mlc.dialects import mlc as m
from mlc.kernels.common.frame import defining_op, kernel_source
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_schedules import collect_launches
from mlc.passes.schedule.copies import copy_kernel
from mlc.passes.schedule.plan_in_place import OVER
from mlc.passes.walk import all_kernel_modules

FIRST = [0]


class WriteInPlace(Pass):
    """Let kernels find an operand in their destination, and write over it."""

    dialects = ("mlc",)

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        kernels = all_kernel_modules(module)
        for name, launches in collect_launches(module).items():
            groups: dict[int | None, list[ir.Operation]] = {}
            for launch in launches:
                groups.setdefault(_over(launch), []).append(launch)
            wanted = sorted(number for number in groups if number is not None)
            for position, number in enumerate(wanted):
                kept = None in groups or position + 1 < len(wanted)
                kernel, called = kernels[name], name
                if kept:
                    called = next(n for i in range(1 << 30) if (n := f"{name}_in_place{i or ''}") not in kernels)
                    kernel = kernels[called] = copy_kernel(kernel, called, ir.InsertionPoint.after(kernel))
                read_destination(kernel, number)
                for launch in groups[number]:
                    launch_on(launch, called, number, is_in_place=True)


def _over(launch: ir.Operation) -> int | None:
    return ir.IntegerAttr(launch.attributes[OVER]).value if OVER in launch.attributes else None


def read_destination(kernel: ir.Operation, number: int) -> None:
    """Input `number` of the kernel is what its destination holds."""
    source = kernel_source(kernel)
    function, block = source.func.operation, source.block
    block.arguments[number].replace_all_uses_with(source.destinations[0])
    block.erase_argument(number)
    results = [v.type for v in source.results]
    type_ = ir.FunctionType.get([a.type for a in block.arguments], results)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    kernel.attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get(FIRST)


def launch_on(
    launch: ir.Operation, kernel: str, number: int, *, is_in_place: bool, is_overwriting: bool = False
) -> None:
    """A launch of `kernel` in place of `launch`, into its input `number`, or into a copy of that: where the memory is
    not that of a loop, if it `is_overwriting`.
    """
    *inputs, empty = launch.operands
    over = inputs.pop(number)
    with ir.InsertionPoint(launch), launch.location:
        [result] = m.launch(kernel, inputs, [over])
    new = result.owner.operation
    for name in launch.attributes:
        if name not in (OVER, "kernel", "operandSegmentSizes"):
            new.attributes[name] = launch.attributes[name]
    new.attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get(FIRST)
    if is_in_place:
        new.attributes["mlc.in_place"] = ir.UnitAttr.get()
    if is_overwriting:
        new.attributes["mlc.overwrite"] = ir.UnitAttr.get()
    launch.results[0].replace_all_uses_with(result)
    launch.erase()
    made = defining_op(empty)
    if made is not None and made.name == "tensor.empty" and not any(True for _ in made.results[0].uses):
        made.erase()
