"""Pass `mlc-span-groups`: vectors go across the groups of convolutions whose groups have few filters.

    %0 = mlc.conv %x, %w {groups = 32, layout = "nhwc"} : tensor<1x56x56x128xf32>, tensor<3x3x4x128xf32>
becomes
    %0 = mlc.conv %x, %w {groups = 32, layout = "nhwc", mlc.joined} : tensor<1x56x56x128xf32>, tensor<3x3x4x128xf32>

The mark keeps channels and filters in one dimension each: a filter's place says its group. A vector of sixteen lanes
then has the filters of four groups, and of an image each lane reads its own group's channel, by a load and an exchange
of lanes; without it twelve lanes would be idle. A depthwise convolution with several filters a channel is the case of
groups of one channel.

Takes convolutions of f32 with channels last whose groups have 2, 4, … filters and no more channels: up to half as many
as a vector has lanes, or a quarter of more than `EXCHANGED` lanes.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.layout.join_groups import JOINED
from mlc.passes.walk import functions, operations

# Where vectors are longer, what exchanges their lanes is one of the two units that multiply and add.
EXCHANGED = 8


class SpanGroups(Pass):
    """Marks convolutions in narrow groups."""

    dialects = ("mlc",)
    statistics = {"spanned": "convolutions whose vectors go across groups"}

    lanes: int = 16
    "f32 elements of a vector"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in operations(function):
                if op.name == "mlc.conv" and self._is_taken(op):
                    op.attributes[JOINED] = ir.UnitAttr.get()
                    self.count("spanned", 1)

    def _is_taken(self, op: ir.Operation) -> bool:
        conv = OpAdaptor(op)
        groups, is_f32 = conv.int("groups", 1), all(isinstance(element(v), ir.F32Type) for v in op.operands)
        if groups == 1 or not is_f32 or conv.text("layout", "nchw") != "nhwc" or JOINED in op.attributes:
            return False
        channels, filters = shape_of(op.operands[1])[-2:]
        if DYNAMIC in (channels, filters):
            return False
        each, most = filters // groups, self.lanes // (2 if self.lanes <= EXCHANGED else 4)
        return 1 < each <= most and self.lanes % each == 0 and channels <= each
