"""Pass `mlc-join-groups`: convolutions in groups of few channels get groups that tensor cores and matrix tiles take.

    %0 = mlc.conv %x, %w {groups = 32, layout = "nhwc"} : tensor<1x56x56x128xbf16>, tensor<3x3x4x128xbf16>
becomes
    %b = mlc.select %mask, (mlc.concat %w, %w, …), 0 : tensor<3x3x64x128xbf16>
    %0 = mlc.conv %x, %b {groups = 2, layout = "nhwc", mlc.joined} : tensor<1x56x56x128xbf16>, tensor<3x3x64x128xbf16>

A step of the sum takes 128 bytes of a pixel: so many channels of neighbouring groups become one group's, whose filters
are zero for the channels of the others (a block-diagonal matrix, and a recipe of the weight store). The products with
zeros cost less than doing without tensor cores does. What is infinite or no number in one group makes results of the
groups that it is joined with no numbers. Where one group is left, the convolution is an ordinary one.

Matrix tiles of a CPU take any number of channels: there as many groups are joined as `line` bytes have room for, and
groups stay a dimension (`apart`): without the mark.

Takes convolutions of 16-bit floats (with `f32`, of `f32` too) and of images of known size, except depthwise ones; with
`apart` their number is known, too.
"""

from __future__ import annotations

import numpy as np
from mlir import ir

from mlc.dialects import mlc as m
from mlc.passes.adaptor import OpAdaptor, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.layout.pad_channels import has_types_of_tensor_cores
from mlc.passes.walk import functions, operations

JOINED = "mlc.joined"
FEWEST_FILTERS = 32  # of a group: a tile has the filters of one


class JoinGroups(Pass):
    """Joins groups of convolutions until tensor cores take them."""

    dialects = ("mlc",)
    statistics = {"joined": "convolutions whose groups are larger"}

    f32: bool = False
    "Convolutions of f32 too: they are rounded to tf32"

    line: int = 128
    "Bytes that a step of the sum takes of a pixel"

    apart: bool = False
    "As many groups as a line has room for, which stay a dimension of their own"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            found = [op for op in operations(function) if self._is_taken(op)]
            for op, count in [(op, _within(op, self.line) if self.apart else _together(op, self.line)) for op in found]:
                if count:
                    _join(op, count, self.apart)
                    self.count("joined", 1)

    def _is_taken(self, op: ir.Operation) -> bool:
        if op.name != "mlc.conv" or JOINED in op.attributes or not has_types_of_tensor_cores(op, self.f32):
            return False
        conv = OpAdaptor(op)
        if conv.text("layout", "nchw") != "nhwc" or conv.int("groups", 1) == 1:
            return False
        if self.apart and not op.operands[0].type.has_static_shape:
            return False
        return not (shape_of(op.operands[1])[-2] == 1 and conv.int("groups", 1) == shape_of(op.operands[1])[-1])


def _together(op: ir.Operation, line: int) -> int:
    """How many groups become one; 0 where no number will do."""
    groups, (channels, filters) = OpAdaptor(op).int("groups", 1), shape_of(op.operands[1])[-2:]
    width, each = element(op.operands[0]).width // 8, filters // groups
    for count in range(1, groups + 1):
        whole = count == groups and count * channels * width % 16 == 0
        lines = count * channels * width % line == 0 and count * each % FEWEST_FILTERS == 0
        if groups % count == 0 and (whole or lines):
            return count
    return 0


def _within(op: ir.Operation, line: int) -> int:
    """The most groups that a line has room for; 0 where these are not two."""
    groups, (channels, _) = OpAdaptor(op).int("groups", 1), shape_of(op.operands[1])[-2:]
    room = line // (channels * element(op.operands[0]).width // 8)
    return next((count for count in range(min(room, groups), 1, -1) if groups % count == 0), 0)


def _join(op: ir.Operation, count: int, apart: bool) -> None:
    groups = OpAdaptor(op).int("groups", 1)
    w = op.operands[1]
    *_, channels, filters = shape_of(w)
    if count > 1:
        with ir.InsertionPoint(op), op.location:
            of_channel = _table(np.arange(count * channels)[:, None] // channels)
            of_filter = _table(np.arange(filters)[None, :] // (filters // groups) % count)
            repeated = b.concat([w] * count, w.type.rank - 2)
            own = b.compare("eq", of_channel, of_filter)
            op.operands[1] = b.select(own, repeated, b.like(repeated, 0.0))
    if count == groups:
        del op.attributes["groups"]
        return
    op.attributes["groups"] = b.integer(groups // count)
    if not apart:
        op.attributes[JOINED] = ir.UnitAttr.get()


def _table(numbers: np.ndarray) -> ir.Value:
    type_ = ir.RankedTensorType.get(numbers.shape, ir.IntegerType.get_signless(64))
    return m.constant(ir.DenseElementsAttr.get(np.ascontiguousarray(numbers, np.int64), type=type_))
