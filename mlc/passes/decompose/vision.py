"""`resize`: one dimension after the other, as gathers at computed coordinates, and dimensions along which elements are
repeated together, as one broadcast; `nms`: `suppress`, and where what remains is."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, defining_op, element
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@decomposition("mlc.resize")
def resize(op: OpAdaptor) -> ir.Value:
    """Coordinates in `f32`, as the frameworks compute them; integers interpolate in `f32` and round."""
    x, result, mode = op.operand(0), op.types[0].element_type, op.text("mode")
    if mode != "nearest":
        x = b.cast(x, b.wide_type(result) if b.is_float(result) else b.f32())
    sizes = op.mixed("sizes", op.operands[2:])
    factors = [_Axis(op, x, axis, size).repetition() for axis, size in enumerate(sizes)]
    for axis, size in enumerate(sizes):
        axis_ = _Axis(op, x, axis, size)
        if factors[axis] == 1 and not axis_.is_identity():
            x = axis_.resampled()
    if any(f > 1 for f in factors):
        x = _repeated(x, factors, sizes)
    if mode != "nearest" and not b.is_float(result):
        x = b.unary("round", x)
    return b.cast(x, result, saturate=mode != "nearest" and not b.is_float(result))


def _constant_scale(scales: ir.Value, axis: int) -> float | None:
    """The scale of one dimension where it is known."""
    op = defining_op(scales)
    if op is None or op.name != "mlc.constant":
        return None
    attr = op.attributes["value"]
    if attr.is_splat:
        return attr.get_splat_value().value
    return list(ir.DenseFPElementsAttr(attr))[axis]


def _repeated(x: ir.Value, factors: Sequence[int], sizes: Sequence[Size]) -> ir.Value:
    """Every element `factors` times along each dimension: rows and columns in one walk through the result."""
    apart: list[Size] = []
    wide: list[Size] = []
    together: list[Size] = []
    for own, factor, size in zip(b.sizes(x), factors, sizes, strict=True):
        apart += [own] if factor == 1 else [own, 1]
        wide += [own] if factor == 1 else [own, factor]
        together.append(own if factor == 1 else size)
    return b.reshape(b.broadcast(b.reshape(x, apart), wide), together)


class _Axis:
    """One dimension of a resize."""

    def __init__(self, op: OpAdaptor, x: ir.Value, axis: int, size: Size) -> None:
        self.op, self.x, self.axis, self.size = op, x, axis, size
        self.mode, self.coordinate = op.text("mode"), op.text("coordinate", "half_pixel")
        self.rounding = op.text("nearest_mode", "round_prefer_floor")
        self.extent = x.type.shape[axis]
        self.known_scale = _constant_scale(op.operand(1), axis)

    def is_identity(self) -> bool:
        """Scale 1, or an unknown scale between equal extents."""
        if self.known_scale is not None:
            return self.known_scale == 1 and (self.extent == DYNAMIC or self.size in (self.extent, DYNAMIC))
        return self.extent != DYNAMIC and self.size == self.extent

    def resampled(self) -> ir.Value:
        if self.mode == "nearest":
            return self._nearest()
        position = self._positions()
        base = b.unary("floor", position)
        ratio = b.sub(position, base)
        if self.mode == "linear":
            neighbours, weights = [base, b.add(base, 1)], [b.sub(b.like(ratio, 1), ratio), ratio]
        else:
            neighbours = [b.sub(base, 1), base, b.add(base, 1), b.add(base, 2)]
            weights = _cubic(ratio, self.op.float("cubic_coeff", -0.75))
        if self.op.flag("exclude_outside"):
            weights = self._inside_only(neighbours, weights)
        return self._weighted(neighbours, weights)

    # -- nearest ---------------------------------------------------------------------------------------------------

    def repetition(self) -> int:
        """How often every element is simply repeated; 1 where it is not, or the coordinates are less regular."""
        factor = self.known_scale
        if self.mode != "nearest" or factor is None or factor < 2 or factor != int(factor):
            return 1
        if self.extent != DYNAMIC and self.size != self.extent * int(factor):
            return 1
        aligned = self.coordinate == "asymmetric" and self.rounding == "floor"
        centered = self.coordinate in ("half_pixel", "pytorch_half_pixel") and self.rounding.startswith("round")
        return int(factor) if aligned or centered else 1

    def _nearest(self) -> ir.Value:
        position = self._positions()
        rounded = {
            "floor": lambda: b.unary("floor", position),
            "ceil": lambda: b.unary("ceil", position),
            "round_prefer_floor": lambda: b.unary("ceil", b.sub(position, 0.5)),
            "round_prefer_ceil": lambda: b.unary("floor", b.add(position, 0.5)),
        }[self.rounding]()
        return b.gather(self.x, self._index(rounded), self.axis, in_range=True)

    # -- coordinates -----------------------------------------------------------------------------------------------

    def _length(self) -> ir.Value:
        return b.size_scalar(self.x, self.axis, b.f32())

    def _scale(self) -> ir.Value:
        if self.known_scale is not None:
            return b.scalar(self.known_scale, b.f32())
        return b.cast(b.reshape(b.slice_(self.op.operand(1), [self.axis], [1]), []), b.f32())

    def _positions(self) -> ir.Value:
        """Where each output coordinate lies in the input, `[size] f32`."""
        at, scale = b.arange(self.size, b.f32()), self._scale()
        if self.coordinate == "align_corners":
            return self._align_corners(at, scale)
        if self.coordinate == "asymmetric":
            return b.div(at, scale)
        middle = b.div(b.add(at, 0.5), scale)
        if self.coordinate == "tf_half_pixel_for_nn":
            return middle
        centered = b.sub(middle, 0.5)
        if self.coordinate == "half_pixel_symmetric":
            full = b.mul(scale, self._length())
            adjust = b.sub(b.like(full, 1), b.div(self._size_scalar(at), full))
            return b.add(b.mul(b.div(self._length(), 2), adjust), centered)
        if self.coordinate == "pytorch_half_pixel":
            single = b.compare("eq", self._size_scalar(at), 1)
            return b.select(single, b.like(centered, -0.5), centered)
        return centered

    def _size_scalar(self, at: ir.Value) -> ir.Value:
        return b.size_scalar(at, 0, b.f32())

    def _align_corners(self, at: ir.Value, scale: ir.Value) -> ir.Value:
        """`at * (length - 1) / (scale * length - 1)`, and 0 where a single element leaves nothing to align."""
        full = b.mul(scale, self._length())
        alone = b.binary("or", b.compare("eq", full, 1), b.compare("eq", self._size_scalar(at), 1))
        spread = b.div(b.mul(at, b.sub(self._length(), 1)), b.sub(full, 1))
        return b.select(alone, b.like(at, 0), spread)

    def _index(self, position: ir.Value) -> ir.Value:
        """A whole coordinate clamped into the input, as `i64`."""
        last = b.sub(self._length(), 1)
        return b.cast(b.minimum(b.maximum(position, 0), last), b.i64())

    # -- interpolation ---------------------------------------------------------------------------------------------

    def _inside_only(self, neighbours: list[ir.Value], weights: list[ir.Value]) -> list[ir.Value]:
        """Weights of elements outside of the input are 0, the rest is scaled to a sum of 1."""
        kept, total = [], None
        for neighbour, weight in zip(neighbours, weights, strict=True):
            within = b.binary("and", b.compare("ge", neighbour, 0), b.compare("lt", neighbour, self._length()))
            weight = b.select(within, weight, b.like(weight, 0))
            kept.append(weight)
            total = weight if total is None else b.add(total, weight)
        assert total is not None
        return [b.div(weight, total) for weight in kept]

    def _weighted(self, neighbours: list[ir.Value], weights: list[ir.Value]) -> ir.Value:
        rank, total = self.x.type.rank, None
        for neighbour, weight in zip(neighbours, weights, strict=True):
            value = b.gather(self.x, self._index(neighbour), self.axis, in_range=True)
            factor = b.cast(weight, element(self.x))
            part = b.mul(value, b.channelwise(factor, rank, self.axis) if rank > 1 else factor)
            total = part if total is None else b.add(total, part)
        assert total is not None
        return total


def _cubic(ratio: ir.Value, a: float) -> list[ir.Value]:
    """Weights of the four neighbours at the distances 1 + r, r, 1 - r, 2 - r (Keys' kernel)."""

    def outer(distance: ir.Value) -> ir.Value:
        inner = b.add(b.mul(b.sub(b.mul(distance, a), 5 * a), distance), 8 * a)
        return b.sub(b.mul(inner, distance), 4 * a)

    def middle(distance: ir.Value) -> ir.Value:
        slope = b.sub(b.mul(distance, a + 2), a + 3)
        return b.add(b.mul(b.mul(slope, distance), distance), 1)

    one, two = b.like(ratio, 1), b.like(ratio, 2)
    return [outer(b.add(ratio, 1)), middle(ratio), middle(b.sub(one, ratio)), outer(b.sub(two, ratio))]


@decomposition("mlc.nms")
def nms(op: OpAdaptor) -> ir.Value:
    """`suppress`, and the coordinates of what it keeps: batch, class, and its number. Computes in `f32`."""
    boxes, scores, limit, overlap, least = op.operands
    boxes, scores, overlap, least = (b.cast(x, b.f32()) for x in (boxes, scores, overlap, least))
    corners = _corners(boxes, op.flag("center_point_box", False))
    kept, counts = b.operation("suppress", [corners, scores, overlap, least, limit])
    is_kept = b.compare("lt", b.iota([1, 1, b.size(scores, 2)], 2, b.i64()), b.expand_dims(counts, [2]))
    [where] = b.operation("nonzero", [is_kept])
    where = b.transpose(where, [1, 0])
    [box] = b.operation("gather_nd", [kept, where], {"batch_dims": b.integer(0)})
    return b.concat([b.slice_(where, [0, 0], [b.size(where, 0), 2]), b.expand_dims(box, [1])], 1)


def _corners(boxes: ir.Value, center_point: bool) -> ir.Value:
    """Boxes `[batch, n, 4]` as (y1, x1, y2, x2) with the lower corner first."""
    parts = [b.slice_dim(boxes, 2, i, 1) for i in range(4)]
    if center_point:
        x, y, width, height = parts[0], parts[1], b.mul(parts[2], 0.5), b.mul(parts[3], 0.5)
        parts = [b.sub(y, height), b.sub(x, width), b.add(y, height), b.add(x, width)]
    else:
        y1, x1, y2, x2 = parts
        parts = [b.minimum(y1, y2), b.minimum(x1, x2), b.maximum(y1, y2), b.maximum(x1, x2)]
    return b.concat(parts, 2)
