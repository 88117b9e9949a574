"""What convolution and pooling share: layouts, explicit padding, window coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf, tensor

from mlc.dialects import linalg
from mlc.passes.adaptor import Size, element
from mlc.passes.lower.to_linalg import scalar
from mlc.passes.lower.to_linalg.builder import dim, pointwise, size_value
from mlc.passes.lower.to_linalg.sizes import plus, sizes_of


@dataclass(frozen=True)
class Layout:
    """Positions of the dimensions of an activation tensor."""

    rank: int
    channels_last: bool

    @property
    def channel(self) -> int:
        return self.rank - 1 if self.channels_last else 1

    @property
    def spatial(self) -> list[int]:
        first = 1 if self.channels_last else 2
        return list(range(first, first + self.rank - 2))


def window(position: int, tap: int, stride: int, dilation: int) -> ir.AffineExpr:
    """`d_position * stride + d_tap * dilation`."""
    return dim(position) * stride + dim(tap) * dilation


def padded(value: ir.Value, positions: Sequence[int], padding: Sequence[int], fill: float | int) -> ir.Value:
    """`value` with `fill` around it: `padding` lists the low paddings of `positions`, then the high ones."""
    low, high = list(padding[: len(positions)]), list(padding[len(positions) :])
    if not any(low) and not any(high):
        return value
    own = sizes_of(value)
    sizes = list(own)
    lows: list[Size] = [0] * len(own)
    for position, before, after in zip(positions, low, high, strict=True):
        sizes[position] = plus(sizes[position], before + after)
        lows[position] = before
    guarded = [p for p, b, a in zip(positions, low, high, strict=True) if b or a]
    return shifted(value, sizes, lows, guarded, fill)


def shifted(
    value: ir.Value, sizes: Sequence[Size], low: Sequence[Size], guarded: Sequence[int], fill: float | int | ir.Value
) -> ir.Value:
    """The tensor of `sizes` whose element at `c` is `value[c - low]`, or `fill` (a number, or a rank-0 tensor) where
    that is outside of `value` in a dimension of `guarded`."""
    limits = {p: size_value(s) for p, s in enumerate(sizes_of(value)) if p in guarded}
    offsets = {p: size_value(s) for p, s in enumerate(low) if s != 0}

    def body(args: list[ir.Value]) -> ir.Value:
        coordinates, inside = [], None
        for position in range(len(sizes)):
            coordinate = linalg.IndexOp(position).result
            if position in offsets:
                coordinate = arith.subi(coordinate, offsets[position])
            if position in limits:
                # Unsigned: one comparison for both ends.
                fits = arith.cmpi(scalar.I.ult, coordinate, limits[position])
                inside = fits if inside is None else arith.andi(inside, fits)
            coordinates.append(coordinate)
        if inside is None:
            return tensor.extract(value, coordinates)
        outside = args[0] if args else scalar.constant(element(value), fill)
        branch = scf.IfOp(inside, [element(value)], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([tensor.extract(value, coordinates)])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([outside])
        return branch.results[0]

    from mlc.passes.lower.to_linalg.builder import Source

    sources = [Source(fill, [])] if isinstance(fill, ir.Value) else []
    return pointwise(sizes, element(value), sources, body)
