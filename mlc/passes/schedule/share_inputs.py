"""Let callers give results the memory of the inputs that they continue.

```mlir
%g = mlc.launch @grown(%past) …                                      →  {mlc.unless_same = 0}
%r = mlc.launch @insert(%new, %n) outs(%g) {mlc.in_place, …} …
return %r                                                            →  {mlc.shares = 3} of the result: argument 3
```
A cache of keys is an input and, with the new ones, a result. Where both are the same memory, only what is new has to be
written: a launch that would write over its input `mlc.unless_same` what that holds already is left out. That is right
for one that copies its input, or fills it up behind, when nothing else reads that; for one that keeps some elements and
makes others a number where the insertion is `open_end`. The runtime takes an output's buffer that is the input's
(`mlc.shares`) in no other case.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from mlc.kernels.common.frame import defining_op, kernel_source
from mlc.kernels.common.generics import is_identity
from mlc.kernels.common.padding import padding_of
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import readers_through_views, whole_of
from mlc.passes.walk import all_kernel_modules, called_kernel, functions


class ShareInputs(Pass):
    """Let callers give results the memory of the inputs that they continue."""

    statistics = {"shared": "results that may lie where an input does"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        kernels = all_kernel_modules(module)
        for function in functions(module):
            self._function(function, kernels)

    def _function(self, function: ir.Operation, kernels: Mapping[str, ir.Operation]) -> None:
        block = function.regions[0].blocks[0]
        returned = list(block.operations[len(block.operations) - 1].operands)
        shared: dict[int, int] = {}
        for number, value in enumerate(returned):
            started = _start(value, kernels)
            if started is None or returned.count(value) > 1:
                continue
            launch, is_open = started
            operand = _continued(kernels[called_kernel(launch)], is_open)
            argument = None if operand is None else whole_of(launch.operands[operand])
            if argument is None or argument.owner != block or not _is_only_reader(launch, argument):
                continue
            launch.attributes["mlc.unless_same"] = _integer(operand)
            shared[number] = ir.BlockArgument(argument).arg_number
            self.count("shared")
        if shared:
            _note(function, len(returned), shared)


def _integer(value: int | None) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _start(value: ir.Value, kernels: Mapping[str, ir.Operation]) -> tuple[ir.Operation, bool] | None:
    """The launch that makes what an insertion with the result `value` updates, and whether that one is `open_end`."""
    insertion = defining_op(whole_of(value))
    if insertion is None or insertion.name != "mlc.launch" or "mlc.in_place" not in insertion.attributes:
        return None
    root = defining_op(kernel_source(kernels[called_kernel(insertion)]).results[0])
    if root is None or root.name != "mlc.insert":
        return None
    launch = defining_op(whole_of(insertion.operands[len(insertion.operands) - 1]))
    if launch is None or launch.name != "mlc.launch" or len(launch.results) != 1:
        return None
    return launch, "open_end" in root.attributes


def _continued(kernel: ir.Operation, is_open: bool) -> int | None:
    """The number of the input that the kernel's result is where both have the same extents; only in front of the update
    where the insertion `is_open`.
    """
    source = kernel_source(kernel)
    read = _chosen(source.results[0], is_open)
    if read is None or len(read) != 1:
        return None
    [argument] = read
    return ir.BlockArgument(argument).arg_number if argument.owner == source.block else None


def _chosen(value: ir.Value, is_open: bool) -> set[ir.Value] | None:
    """The tensors of which `value` has the elements at its own coordinates, chosen by anything where the insertion
    `is_open`, or numbers; None when it is anything else."""
    op = defining_op(value)
    if op is None:
        return {value}
    if op.name == "arith.constant":
        return set() if is_open else None
    if op.name != "linalg.generic" or len(op.results) != 1:
        return None
    padding = padding_of(op)
    if padding is not None:
        return None if any(padding.low) else {padding.source}
    body = op.regions[0].blocks[0]
    *computed, end = [view.operation for view in body.operations]
    parts = list(end.operands)
    if len(computed) == 1 and computed[0].name == "arith.select" and is_open:
        parts = list(computed[0].operands)[1:]
    elif computed:
        return None
    found: set[ir.Value] = set()
    for part in parts:
        if part.owner == body:
            number = ir.BlockArgument(part).arg_number
            if number >= len(op.operands) - 1 or not is_identity(op, number):
                return None
            part = op.operands[number]
        elements = _chosen(part, is_open)
        if elements is None:
            return None
        found |= elements
    return found if is_identity(op, len(op.operands) - 1) else None


def _is_only_reader(launch: ir.Operation, argument: ir.Value) -> bool:
    """Does nothing but `launch` read what lies in `argument`?"""
    return [user for user in readers_through_views(argument) if user.name != "tensor.dim"] == [launch]


def _note(function: ir.Operation, results: int, shared: Mapping[int, int]) -> None:
    """Says of results whose memory they may have."""
    told = list(ir.ArrayAttr(function.attributes["res_attrs"])) if "res_attrs" in function.attributes else []
    told = told or [ir.DictAttr.get({})] * results
    for number, argument in shared.items():
        known = {named.name: named.attr for named in ir.DictAttr(told[number])}
        told[number] = ir.DictAttr.get({**known, "mlc.shares": _integer(argument)})
    function.attributes["res_attrs"] = ir.ArrayAttr.get(told)
