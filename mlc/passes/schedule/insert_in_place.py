"""Let insertions find what they update in their destination.

```mlir
%r = mlc.launch @k(%x, %u, %n) outs(%e) …
// becomes
%r = mlc.launch @k(%u, %n) outs(%x) {mlc.in_place, mlc.inout = array<i64: 0>} …     where nobody else reads x
```
Where somebody does, or x is an argument, or a number that the kernel makes, a launch of its own writes that before:
`@k_start`. What a loop carries is written over where the loop has memory for it (`mlc.overwrite`).
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.frame import defining_op, kernel_source
from mlc.passes.base import Pass
from mlc.passes.lower.to_linalg.builder import Source, generic
from mlc.passes.schedule.assign_schedules import collect_launches
from mlc.passes.schedule.plan_in_place import is_last_use, is_last_use_of_carried
from mlc.passes.schedule.starts import filled_with, number_of, start, start_kernel, started_by, update
from mlc.passes.schedule.write_in_place import launch_on, read_destination
from mlc.passes.walk import all_kernel_modules


class InsertInPlace(Pass):
    """Let insertions find what they update in their destination."""

    dialects = ("mlc", "func", "linalg", "tensor", "arith")
    statistics = {"in place": "insertions that copy nothing"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        launches = collect_launches(module)
        for name, kernel in all_kernel_modules(module).items():
            source = kernel_source(kernel)
            op = defining_op(source.results[0])
            if op is None or op.name != "mlc.insert" or op.operands[0] == source.destinations[0]:
                continue
            data, called = op.operands[0], launches.get(name, [])
            if isinstance(data.owner, ir.Block) and list(op.operands).count(data) == 1:
                self._replace(kernel, name, ir.BlockArgument(data).arg_number, called)
            else:  # a number, or what is inserted too
                _begin(kernel, name, data, called)
                op.operands[0] = source.destinations[0]
                kernel.attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get([0])

    def _replace(self, kernel: ir.Operation, name: str, number: int, launches: list[ir.Operation]) -> None:
        """Input `number` becomes the destination, or a copy of it does."""
        over = [is_last_use(launch, number) for launch in launches]
        carried = [is_last_use_of_carried(launch, number) for launch in launches]
        self.count("in place", sum(over) + sum(carried))
        if not all(o or c for o, c in zip(over, carried, strict=True)):
            type_ = launches[0].operands[number].type
            start_kernel(kernel, started_by(name), [type_], type_, _copied)
        for launch, is_over, is_carried in zip(launches, over, carried, strict=True):
            if not is_over and not is_carried:
                launch.operands[number] = start(launch, started_by(name), [launch.operands[number]])
            launch_on(launch, name, number, is_in_place=not is_carried, is_overwriting=is_carried)
        read_destination(kernel, number)


def _begin(kernel: ir.Operation, name: str, data: ir.Value, launches: list[ir.Operation]) -> None:
    """Launches begin with a destination that holds `data`, a number or an input that stays one."""
    value, numbers = number_of(data), list[int]()
    if isinstance(data.owner, ir.Block):
        numbers = [ir.BlockArgument(data).arg_number]
    elif value is None:
        raise ValueError(f"kernel {name} inserts into what it computes")
    body = _copied if value is None else filled_with(value)
    start_kernel(kernel, started_by(name), [data.type for _ in numbers], data.type, body)
    for launch in launches:
        update(launch, start(launch, started_by(name), [launch.operands[number] for number in numbers]))


def _copied(given: list[ir.Value], destination: ir.Value) -> ir.Value:
    """The input, element by element."""
    exprs = [ir.AffineExpr.get_dim(i) for i in range(destination.type.rank)]
    iterators = "p" * destination.type.rank
    return generic([destination], [exprs], iterators, [Source(given[0], exprs)], lambda elements: elements[0])[0]
