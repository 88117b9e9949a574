"""`conv` becomes channels-last; its filter is transposed once, as a weight."""

from __future__ import annotations

import math

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, element
from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, channels_last, rebuilt


@moves("conv")
def conv(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """`[O, I/g, k…]` filters become `[k…, I/g, O]`. A convolution that is channels-last already stays."""
    if OpAdaptor(op).text("layout", "nchw") == "nhwc":
        return None
    image, strides = op.operands[0], OpAdaptor(op).ints("strides")
    if _stands_alone(layouts, op):
        if _is_depthwise(op):
            return None
        if _is_product(op):
            return [Moved(_product(layouts, op), (0, 1, 2, 3))]
        if _is_pointwise(op) and math.prod(strides) >= _FEW_POINTS and len(list(image.uses)) == 1:
            image, strides = _points(op), [1] * len(strides)
    rank = op.operands[0].type.rank
    permutation = channels_last(rank)
    filter_ = b.transpose(layouts.materialized(op.operands[1]), [*range(2, rank), 1, 0])
    operands = [layouts.inner(image, permutation), filter_, *map(layouts.materialized, list(op.operands)[2:])]
    new = rebuilt(op, operands, permutation, {"layout": b.text("nhwc"), "strides": b.integers(strides)})
    return [Moved(new.results[0], permutation)]


_LARGE_PLANE, _MANY_CHANNELS = 512, 128  # what a product needs to be faster than a convolution and its transpositions
_FEW_POINTS = 4  # one point in so many: those that are read are picked faster than all are transposed
_LARGEST = 7  # taps along a dimension up to which planes have a kernel of their own
_POINTWISE = frozenset(f"mlc.{name}" for name in ("unary", "binary", "activation", "clamp", "select", "cast", "prelu"))


def _stands_alone(layouts: Layouts, op: ir.Operation) -> bool:
    """Would `op` be transposed before and behind for its own sake?

    The CPU has a kernel for the planes of depthwise convolutions (`mlc/kernels/cpu/planes.py`), and one of 1x1 is a
    product: only between operations that are channels-last anyhow is that layout the better one.
    """
    producer = defining_op(op.operands[0])
    if layouts.target.startswith("cuda") or layouts.of(op.operands[0]) is not None:
        return False
    if producer is not None and producer.name == "mlc.transpose":
        return False
    waiting, seen = [op], {op}
    while waiting:
        for use in (use for result in waiting.pop().results for use in result.uses):
            user = use.owner.operation
            if user.name in ("mlc.conv", "mlc.pool", "mlc.transpose"):
                return False
            if user.name in _POINTWISE and user not in seen:
                seen.add(user)
                waiting.append(user)
    return True


def _is_pointwise(op: ir.Operation) -> bool:
    """Has a convolution of an image of known extents a filter of 1x1, and no padding?"""
    image, filter_ = (list(v.type.shape) for v in list(op.operands)[:2])
    extents = [*image, *op.results[0].type.shape]
    adaptor = OpAdaptor(op)
    plain = adaptor.int("groups", 1) == 1 and not any(adaptor.ints("padding"))
    is_f32 = isinstance(element(op.operands[0]), ir.F32Type)
    return plain and is_f32 and len(image) == 4 and min(extents) >= 1 and filter_[2:] == [1, 1]


def _is_product(op: ir.Operation) -> bool:
    """Is a convolution the product of its 1x1 filter with a large image of known extents, or with every n-th point?"""
    if not _is_pointwise(op):
        return False
    height, width = op.results[0].type.shape[2:]
    return height * width >= _LARGE_PLANE and max(op.operands[1].type.shape[:2]) >= _MANY_CHANNELS


def _product(layouts: Layouts, op: ir.Operation) -> ir.Value:
    """The same as a product: `[O, C]` times `[N, C, H W]`."""
    images, filters, height, width = op.results[0].type.shape
    channels = op.operands[0].type.shape[1]
    matrix = b.reshape(layouts.materialized(op.operands[1]), [filters, channels])
    result = b.matmul(matrix, b.reshape(_points(op), [images, channels, height * width]))
    if len(op.operands) > 2:
        result = b.add(result, b.reshape(layouts.materialized(op.operands[2]), [filters, 1]))
    return b.reshape(result, [images, filters, height, width])


def _points(op: ir.Operation) -> ir.Value:
    """The points of the image that a pointwise convolution reads: the same with strides of 1."""
    image, strides = op.operands[0], OpAdaptor(op).ints("strides")
    if set(strides) == {1}:
        return image
    shape = [*image.type.shape[:2], *op.results[0].type.shape[2:]]
    return b.slice_(image, [0] * 4, shape, [1, 1, *strides])


def _is_depthwise(op: ir.Operation) -> bool:
    """Has a convolution a small filter for every channel of an image of known extents?"""
    image, filter_ = (list(v.type.shape) for v in list(op.operands)[:2])
    if len(image) != 4 or min(image[1:]) < 1 or min(filter_) < 1 or max(filter_[2:]) > _LARGEST:
        return False
    return isinstance(element(op.operands[0]), ir.F32Type) and OpAdaptor(op).int("groups", 1) == image[1] == filter_[0]
