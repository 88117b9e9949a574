"""`one_hot`, `trilu` and `insert`: comparisons with coordinates; `unique`: runs of equal elements after sorting."""

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


@decomposition("mlc.insert")
def insert(op: OpAdaptor) -> ir.Value:
    """Each element chooses between the input's and the update's, if there is one at its place."""
    x, update, starts = op.operands
    axis, rank = op.int("axis"), op.types[0].rank
    batch, length = b.size(x, 0), b.size(x, axis)
    others = [i for i in range(1, rank) if i != axis]
    places, first = b.iota([1, length], 1, b.i64()), b.reshape(starts, [batch, 1])
    if update.type.shape[axis] == 1:
        return b.select(b.expand_dims(b.compare("eq", places, first), others), update, x)
    behind = b.sub(places, first)
    last = b.sub(b.size_scalar(update, axis, b.i64()), 1)
    inside = b.binary("and", b.compare("ge", behind, 0), b.compare("le", behind, last))
    index = b.expand_dims(b.minimum(b.maximum(behind, 0), last), [2])
    order = [0, axis, *others]
    attributes: dict[str, ir.Attribute] = {"batch_dims": b.integer(1), "mlc.in_range": ir.UnitAttr.get()}
    [picked] = b.operation("gather_nd", [b.transpose(update, order), index], attributes)
    added = b.transpose(picked, [order.index(i) for i in range(rank)])
    return b.select(b.expand_dims(inside, others), added, x)


@decomposition("mlc.unique")
def unique(op: OpAdaptor) -> list[ir.Value]:
    """A stable sort puts equal elements next to each other, the first occurrence in front: runs of them are the
    distinct values. NaNs count as equal."""
    x = op.operand(0)
    flags = {"axis": b.integer(0), "descending": ir.BoolAttr.get(False)}
    if op.flag("unsigned"):
        flags["unsigned"] = ir.UnitAttr.get()
    ordered, order = b.operation("sort", [x], flags)
    starts = _run_starts(ordered)
    counted = b.cast(starts, b.i64())
    [runs] = b.operation("scan", [counted], {"kind": b.text("sum"), "axis": b.integer(0)})
    group = b.sub(runs, 1)
    [where] = b.operation("nonzero", [starts])
    begin = b.reshape(where, [b.size(where, 1)])
    first = b.gather(order, begin, 0, in_range=True)
    plain = {"axis": b.integer(0), "reduction": b.text("none")}
    [inverse] = b.operation("scatter_elements", [group, order, group], plain)
    distinct = b.size(begin, 0)
    after = b.slice_(b.concat([begin, b.reshape(b.size_scalar(x, 0, b.i64()), [1])], 0), [1], [distinct])
    counts = b.sub(after, begin)
    if not op.flag("sorted", True):
        first, ranks = b.operation("sort", [first], {"axis": b.integer(0), "descending": ir.BoolAttr.get(False)})
        counts = b.gather(counts, ranks, 0, in_range=True)
        [places] = b.operation("sort", [ranks], {"axis": b.integer(0), "descending": ir.BoolAttr.get(False)})[1:]
        inverse = b.gather(places, inverse, 0, in_range=True)
    return [b.gather(x, first, 0, in_range=True), first, inverse, counts]


def _run_starts(ordered: ir.Value) -> ir.Value:
    """Where an element of a sorted tensor differs from the one in front of it; the first always does."""
    position = b.arange(b.size(ordered, 0), b.i64())
    previous = b.gather(ordered, b.maximum(b.sub(position, 1), 0), 0, in_range=True)
    differs = b.compare("ne", ordered, previous)
    if b.is_float(element(ordered)):
        both = b.binary("and", b.unary("isnan", ordered), b.unary("isnan", previous))
        differs = b.binary("and", differs, b.unary("not", both))
    return b.binary("or", b.compare("eq", position, 0), differs)
