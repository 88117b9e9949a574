"""`one_hot` and `trilu`: comparisons with coordinates."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlc.passes.adaptor import OpAdaptor, Size, element
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@decomposition("mlc.one_hot")
def one_hot(op: OpAdaptor) -> ir.Value:
    """Negative indices count from the end; one out of range matches no coordinate."""
    indices, depth, values = op.operands
    axis, rank = op.int("axis"), op.types[0].rank
    indices = b.expand_dims(b.cast(indices, b.i64()), [axis])
    extent: Size = depth
    known = op.types[0].shape[axis]
    if known != ir.ShapedType.get_dynamic_size():
        extent = known
    limit = index_scalar(depth) if isinstance(extent, ir.Value) else b.scalar(extent, b.i64())
    wrapped = b.select(b.compare("lt", indices, 0), b.add(indices, limit), indices)
    shape: list[Size] = [extent if i == axis else 1 for i in range(rank)]
    hit = b.compare("eq", wrapped, b.iota(shape, axis, b.i64()))
    off, on = (b.reshape(b.slice_(values, [i], [1]), []) for i in (0, 1))
    return b.select(hit, on, off)


def index_scalar(value: ir.Value) -> ir.Value:
    """An `index` value as a rank-0 tensor of `i64`."""
    number = arith.index_cast(b.i64(), value)
    return ir.Operation.create("tensor.from_elements", [ir.RankedTensorType.get([], b.i64())], [number]).results[0]


@decomposition("mlc.trilu")
def trilu(op: OpAdaptor) -> ir.Value:
    """Keeps `column - row >= k` (upper) or `<= k` (lower)."""
    x, k = op.operands
    rows, columns = b.sizes(x)[-2:]
    distance = b.sub(b.iota([1, columns], 1, b.i64()), b.iota([rows, 1], 0, b.i64()))
    keep = b.compare("ge" if op.flag("upper", True) else "le", distance, index_scalar(k))
    return b.select(keep, x, b.scalar(0, element(x)))
