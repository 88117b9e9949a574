"""Make one kernel of contractions that differ in how many products they sum.

```mlir
mlc.launch @k0(%x, %v) : (tensor<49x64xf32>, tensor<2x64x16xf32>)    mlc.launch @k0(%x', %v')
mlc.launch @k1(%y, %w) : (tensor<49x96xf32>, tensor<2x96x16xf32>)  → mlc.launch @k0(%y', %w')
                                                                     : (tensor<49x?xf32>, tensor<2x?x16xf32>)
```
Every layer of a dense block reads some channels more than the one before. The kernels have one text where the extent is
one that a run knows, with the same schedule, which was chosen for known extents; `mlc.multiples` notes what all of them
are multiples of, so that the loop stays unrolled. What is left are strides that are numbers of a register.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import gcd

from mlir import ir
from mlir.dialects import tensor

from mlc.kernels.common.analysis import mentions, root_operation
from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.kernels.common.generics import operand_map, reduced_loops
from mlc.kernels.common.multiples import MULTIPLES
from mlc.passes.adaptor import DYNAMIC
from mlc.passes.base import Pass
from mlc.passes.fuse.dedupe_kernels import kernel_text
from mlc.passes.schedule.assign_schedules import collect_launches, read_schedule
from mlc.passes.schedule.pack_weights import retype
from mlc.passes.walk import all_kernel_modules


@dataclass
class _Sum:
    """A kernel, the extent of its sums, and the argument and dimension of each of its tensors that have it."""

    source: KernelSource
    extent: int
    places: list[tuple[int, int]]

    @property
    def name(self) -> str:
        return str(self.source.func.name.value)

    @property
    def schedule(self) -> ir.Attribute:
        return self.source.module.attributes["mlc.schedule"]


class ShareSums(Pass):
    """Make one kernel of contractions that differ in how many products they sum."""

    dialects = ("tensor", "mlc")
    statistics = {"removed": "kernels that differed from another in how many products they sum"}

    fewest: int = 4
    "fewer kernels that differ so stay what they are: a shared one is up to three percent slower"

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        sources = map(kernel_source, all_kernel_modules(module).values())
        sums = [found for source in sources if (found := _sum(source)) is not None]
        # To write a kernel's text takes long: of those whose schedule and results are alike only.
        alike = self._groups(sums, lambda each: (each.schedule, *(d.type for d in each.source.destinations)))
        launches = collect_launches(module)
        for members in [group for some in alike for group in self._groups(some, _text)]:
            for member in members:
                _launch(members[0].name, member.places, launches.get(member.name, []))
            _forget_extent(members[0])
            _note_divisor(members[0], gcd(*(member.extent for member in members)))
            for member in members[1:]:
                member.source.module.erase()
                self.count("removed")

    def _groups(self, sums: Sequence[_Sum], key: Callable[[_Sum], Hashable]) -> list[list[_Sum]]:
        """Those with equal keys, where there are enough of them."""
        groups: dict[Hashable, list[_Sum]] = {}
        for each in sums:
            groups.setdefault(key(each), []).append(each)
        return [group for group in groups.values() if len(group) >= self.fewest]


def _sum(source: KernelSource) -> _Sum | None:
    """A contraction that may take an extent of its sums from the run: the largest that is a plain dimension of both
    operands, which are arguments; None where there is none, or another template would take it."""
    if read_schedule(source.module)["template"] != "contraction":
        return None
    root, arguments = root_operation(source), list(source.block.arguments)
    operands = list(root.operands)[:2]
    if not all(operand in arguments and len(list(operand.uses)) == 1 for operand in operands):
        return None
    sums = [_Sum(source, *found) for dim in reduced_loops(root) if (found := _places(root, arguments, dim)) is not None]
    return max(sums, key=lambda each: each.extent, default=None)


def _places(root: ir.Operation, arguments: list[ir.Value], dim: int) -> tuple[int, list[tuple[int, int]]] | None:
    """The extent of a loop, and which dimensions of which arguments it walks along; None where it is none of one of the
    operands, indexes one together with another loop, or is left to the run already."""
    places = []
    for number, operand in enumerate(list(root.operands)[:2]):
        exprs = [(i, e) for i, e in enumerate(operand_map(root, number).results) if mentions(e, dim)]
        if not exprs or not all(isinstance(e, ir.AffineDimExpr) for _, e in exprs):
            return None
        places += [(arguments.index(operand), i) for i, _ in exprs]
    extents = {arguments[number].type.get_dim_size(at) for number, at in places}
    if len(extents) > 1 or DYNAMIC in extents:
        return None
    return int(extents.pop()), places


def _text(member: _Sum) -> str:
    """Equal for kernels that differ in that extent only."""
    copy = kernel_source(member.source.module.clone(ip=False))
    _forget_extent(_Sum(copy, member.extent, member.places))
    text = kernel_text(copy.module)
    copy.module.erase()
    return text


def _forget_extent(member: _Sum) -> None:
    """Leave the extent to the run."""
    for number, at in member.places:
        argument = member.source.block.arguments[number]
        retype(member.source.func.operation, argument, number, _dynamic(argument.type, at))


def _note_divisor(member: _Sum, divisor: int) -> None:
    """Note what the extent that the run knows is a multiple of; nothing is known of others."""
    source, arguments = member.source, list(member.source.block.arguments)
    divisors = [divisor if (arguments.index(t), at) in member.places else 1 for t, at in source.run_time_extents]
    source.module.attributes[MULTIPLES] = ir.DenseI64ArrayAttr.get(divisors)


def _dynamic(type_: ir.RankedTensorType, at: int) -> ir.RankedTensorType:
    shape = list(type_.shape)
    shape[at] = DYNAMIC
    return ir.RankedTensorType.get(shape, type_.element_type, type_.encoding)


def _launch(name: str, places: list[tuple[int, int]], launches: list[ir.Operation]) -> None:
    """Launch kernel `name`, which takes an extent from its operands."""
    for launch in launches:
        with ir.InsertionPoint(launch), launch.location:
            for number in dict.fromkeys(number for number, _ in places):
                value = launch.operands[number]
                type_ = value.type
                for at in (at for place, at in places if place == number):
                    type_ = _dynamic(type_, at)
                launch.operands[number] = tensor.cast(type_, value)
            launch.attributes["kernel"] = ir.FlatSymbolRefAttr.get(name)
