"""Pass `mlc-plan-norms`: how normalizations of groups beside convolutions are done, `mlc.by_channel` or `mlc.in_rows`.

    %0 = mlc.conv %x, %w {…}
    %1 = mlc.group_norm %0, %scale, %bias {groups = 32}   →   {groups = 32, mlc.by_channel}

Beside a convolution tensors have their channels last, where a group is no row: to be one it would be moved there and
back (`mlc.in_rows`). Statistics of channels are sums across memory, whatever the layout, and groups are made of what is
small (`mlc/passes/decompose/normalization.py`). That is a kernel more, which counts where a launch takes as long as
moving the tensor: up to `rows` elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, readers
from mlc.passes.base import Pass
from mlc.passes.decompose.normalization import BY_CHANNEL, IN_ROWS
from mlc.passes.walk import functions, operations

CONVOLUTIONS = ("mlc.conv", "mlc.conv_transpose")
NEAR = 32  # operations that are looked at
FEWEST_ROWS, LONGEST_ROW = 32, 1 << 15  # groups that fill a chip, and the elements that a multiprocessor keeps of one


class PlanNorms(Pass):
    """Decides how normalizations of groups beside convolutions are done."""

    rows: int = 0
    "groups of up to so many elements in all are made rows, where they are many and short"

    statistics = {"by_channel": "normalizations with statistics by channel", "in_rows": "groups that are made rows"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in operations(function):
                if op.name == "mlc.group_norm" and _is_beside(op, op.operands[0].type.rank):
                    name = IN_ROWS if self._are_rows(op) else BY_CHANNEL
                    op.attributes[name] = ir.UnitAttr.get()
                    self.count(name.removeprefix("mlc."))

    def _are_rows(self, op: ir.Operation) -> bool:
        """Is it worth while to move groups so that they are rows?"""
        type_ = op.operands[0].type
        if not type_.has_static_shape:
            return False
        elements, groups = prod(type_.shape), type_.shape[0] * OpAdaptor(op).int("groups")
        return elements <= self.rows and groups >= FEWEST_ROWS and elements <= groups * LONGEST_ROW


def _is_beside(op: ir.Operation, rank: int) -> bool:
    """Does what `op` normalizes come from a convolution, or go to one, through operations that leave a tensor its
    `rank` dimensions?"""
    known, work = {op}, [op]
    while work and len(known) <= NEAR:
        for other in _neighbours(work.pop(0), rank):
            if other.name in CONVOLUTIONS:
                return True
            if other not in known:
                known.add(other)
                work.append(other)
    return False


def _neighbours(op: ir.Operation, rank: int) -> Iterator[ir.Operation]:
    """What makes and what reads the tensors of `rank` dimensions of `op`."""
    for value in op.operands:
        producer = defining_op(value) if _has_rank(value, rank) else None
        if producer is not None and any(_has_rank(v, rank) for v in producer.operands):
            yield producer
    for value in op.results:
        if _has_rank(value, rank):
            yield from readers(value)


def _has_rank(value: ir.Value, rank: int) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.rank == rank
