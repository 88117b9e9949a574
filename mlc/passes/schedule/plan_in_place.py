"""Decide which products are written over what is added to them: `mlc.over` on launches.

```mlir
%s = mlc.launch @k(%x, %w, %r) outs(%e) …  →  {mlc.over = 2}    x w + r, and nobody reads r any more
```
A sum that is written where its addend lies touches one line of memory where it touched two, which counts where layers
are larger than caches: residuals of convolutions and of transformers. An input may be written over when the template
reads it at the element that it is about to store alone (`kernels/cpu/in_place.py`), when another launch of the same
block has made it, and when everything else that reads it, or a view of it, comes before this launch.
`mlc-write-in-place` obeys.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.blocks import ancestor_in
from mlc.kernels.common.frame import defining_op, kernel_source
from mlc.kernels.cpu.in_place import replaceable
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import host_blocks, readers_through_views, whole_of
from mlc.passes.schedule.assign_schedules import read_schedule
from mlc.passes.walk import all_kernel_modules, called_kernel

OVER = "mlc.over"


class PlanInPlace(Pass):
    """Decide which products are written over what is added to them."""

    statistics = {"in place": "launches that write over an input"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        inputs = {
            name: replaceable(kernel_source(op), str(read_schedule(op)["template"]))
            for name, op in all_kernel_modules(module).items()
        }
        for block in host_blocks(module):
            for view in block.operations:
                self._plan(view.operation, inputs)

    def _plan(self, op: ir.Operation, inputs: dict[str, list[int]]) -> None:
        if op.name != "mlc.launch" or "mlc.inout" in op.attributes:
            return
        for number in inputs[called_kernel(op)]:
            if is_last_use(op, number):
                op.attributes[OVER] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
                self.count("in place")
                return


def is_last_use(launch: ir.Operation, number: int) -> bool:
    """Does nothing but `launch`, and that only as its operand `number`, need what lies there from here on?"""
    source = whole_of(launch.operands[number])
    op = defining_op(source)
    if op is None or op.name != "mlc.launch" or op.block != launch.block:
        return False
    return _reads_last(launch, source)


def is_last_use_of_carried(launch: ir.Operation, number: int) -> bool:
    """The same of what a loop around `launch` carries: of its memory, if it has some that stays the same."""
    source = whole_of(launch.operands[number])
    if not isinstance(source.owner, ir.Block) or source.owner != launch.block:
        return False
    return source.owner.owner.operation.name == "scf.for" and _reads_last(launch, source)


def _reads_last(launch: ir.Operation, source: ir.Value) -> bool:
    """Does `launch` read `source` once, and nobody else afterwards?"""
    own = 0
    for user in readers_through_views(source):
        if user == launch:
            own += 1
        elif user.name == "tensor.dim":
            continue
        elif user.name not in ("mlc.launch", "tensor.extract") or not _is_before(user, launch):
            return False
    return own == 1


def _is_before(user: ir.Operation, launch: ir.Operation) -> bool:
    """Is all of `user`, or of what it is inside of in the block of `launch`, over when that begins?"""
    return ancestor_in(launch.block, user).is_before_in_block(launch)
