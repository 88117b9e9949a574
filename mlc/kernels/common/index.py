"""Index algebra of the emitters: extents, coordinates and affine maps over them.

A coordinate is uniform over the lanes of a vector (`Idx.step == 0`), advances by a constant per lane, or is an
arbitrary `vector<LxIndex>`. Keeping that distinction while maps are applied is what lets a load become one contiguous
vector load, one scalar load, or a gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlir import ir
from mlir.dialects import arith

Scalar: TypeAlias = int | ir.Value
"""An index known while emitting (int) or computed by the kernel (a Value of type index)."""


class Constants:
    """Constants of the function under construction, each materialised once at its entry."""

    def __init__(self, block: ir.Block) -> None:
        self._block = block
        self._known: dict[tuple[ir.Type, str], ir.Value] = {}
        self._indices: dict[int, ir.Value] = {}

    def get(self, type_: ir.Type, value: int | float) -> ir.Value:
        """The constant `value` of scalar type `type_`."""
        key = (type_, repr(value))
        if key not in self._known:
            with ir.InsertionPoint.at_block_begin(self._block):
                self._known[key] = arith.constant(type_, value)
        return self._known[key]

    def index(self, value: Scalar) -> ir.Value:
        """`value` as a Value of type index."""
        if not isinstance(value, int):
            return value
        known = self._indices.get(value)
        if known is None:
            known = self._indices[value] = self.get(ir.IndexType.get(), value)
        return known


class IndexMath:
    """Arithmetic on `Scalar`s that folds what is known.

    With `remember` a sum or product that the block has already is given again: half of what a micro-kernel says about
    addresses it has said before. It looks in the block that operations are being added to only, and forgets when that
    is another one.
    """

    def __init__(self, constants: Constants, remember: bool = False) -> None:
        self.constants = constants
        self._remember = remember
        self._no_wrap = {"overflowFlags": ir.Attribute.parse("#arith.overflow<nsw>")}
        self._block: ir.Block | None = None
        self._known: dict[tuple[str, int, int], ir.Value] = {}
        self._steps: dict[ir.Value, tuple[ir.Value, int]] = {}

    def _emit(self, name: str, a: Scalar, b: Scalar) -> ir.Value:
        """`a` and `b` combined without wrapping around."""
        operands = [self.constants.index(a), self.constants.index(b)]
        point = ir.InsertionPoint.current
        if not self._remember or point.ref_operation is not None:  # what is in the block may come behind this point
            return ir.Operation.create(name, [operands[0].type], operands, self._no_wrap).result
        if self._block is None or self._block != point.block:
            self._block = point.block
            self._known.clear()
        key = (name, hash(operands[0]), hash(operands[1]))
        known = self._known.get(key)
        if known is None:
            type_ = operands[0].type
            known = self._known[key] = ir.Operation.create(name, [type_], operands, self._no_wrap).result
        return known

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(a, int) and a == 0:
            return b
        if isinstance(b, int) and b == 0:
            return a
        return self._emit("arith.addi", a, b)

    def sub(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if isinstance(b, int) and b == 0:
            return a
        return self._emit("arith.subi", a, b)

    def mul(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int) and x in (0, 1):
                return y if x else 0
            if isinstance(x, int) and not isinstance(y, int) and y in self._steps:
                start, number = self._steps[y]
                return self.add(self.mul(start, x), number * x)
        return self._emit("arith.muli", a, b)

    def step(self, variable: Scalar, number: int) -> Scalar:
        """Step `number` of a loop's unrolled body, or row `number` of a tile: `variable + number`, of which known
        multiples are said as multiples of `variable` and constants, that loads take as offsets.
        """
        value = self.add(variable, number)
        if not isinstance(variable, int) and not isinstance(value, int) and number:
            self._steps[value] = variable, number
        return value

    def div(self, a: Scalar, b: Scalar) -> Scalar:
        """Quotient of two non-negative extents."""
        if isinstance(b, int) and b == 1:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        c = self.constants
        return arith.divui(c.index(a), c.index(b))

    def rem(self, a: Scalar, b: Scalar) -> Scalar:
        """Remainder of two non-negative extents."""
        if isinstance(b, int) and b == 1:
            return 0
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        c = self.constants
        return arith.remui(c.index(a), c.index(b))

    def floordiv(self, a: Scalar, b: Scalar) -> Scalar:
        """Quotient rounded towards minus infinity."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        c = self.constants
        return arith.floordivsi(c.index(a), c.index(b))

    def ceildiv(self, a: Scalar, b: Scalar) -> Scalar:
        """Quotient of non-negative extents, rounded up."""
        if isinstance(b, int) and b == 1:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return -(-a // b)
        return self.div(self.add(a, self.sub(b, 1)), b)

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        c = self.constants
        return arith.minsi(c.index(a), c.index(b))

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        c = self.constants
        return arith.maxsi(c.index(a), c.index(b))

    def product(self, extents: Sequence[Scalar]) -> Scalar:
        """Product; the known factors are multiplied first."""
        known = 1
        result: Scalar = 1
        for extent in extents:
            if isinstance(extent, int):
                known *= extent
            else:
                result = self.mul(result, extent)
        return self.mul(result, known)

    def delinearize(self, linear: Scalar, extents: Sequence[Scalar]) -> list[Scalar]:
        """Row-major coordinates of `linear` in a box of `extents`."""
        coords: list[Scalar] = []
        for extent in reversed(extents[1:]):
            coords.append(self.rem(linear, extent))
            linear = self.div(linear, extent)
        if extents:
            coords.append(linear)
        return coords[::-1]


@dataclass(slots=True)
class Idx:
    """One coordinate over the lanes of a vector: `base + lane // repeat * step`, or any `lanes` vector. Nothing changes
    one; it is not frozen as that would make it three times as slow to make, and kernels are full of them.

    `tile = (high, size, low)` says that `base == high * size + low` with `0 <= low + lane * step < size`, so that
    `floordiv size` and `mod size` of a blocked layout stay affine. `level` is the depth of the innermost loop whose
    variable the coordinate depends on; addresses are summed outermost level first so that invariant parts hoist.
    `bounds` are the least and the greatest value, where a loop makes them known: comparisons with constants fold.
    """

    base: Scalar = 0
    step: int = 0
    lanes: ir.Value | None = None
    tile: tuple[Scalar, int, int] | None = None
    level: int = 0
    bounds: tuple[int, int] | None = None
    repeat: int = 1

    @property
    def span(self) -> tuple[int, int] | None:
        """The least and the greatest value that is known."""
        return (self.base, self.base) if self.uniform and isinstance(self.base, int) else self.bounds

    @property
    def uniform(self) -> bool:
        return self.step == 0 and self.lanes is None

    def key(self) -> tuple[object, ...]:
        """Hashable identity: equal keys are equal coordinates."""
        base = self.base if isinstance(self.base, int) else ("v", hash(self.base))
        lanes = None if self.lanes is None else hash(self.lanes)
        return (base, self.step, lanes, self.repeat if self.step else 1)


def _is_zero(at: Idx) -> bool:
    """Is a coordinate without lanes known to be 0 in all of them?"""
    return at.step == 0 and isinstance(at.base, int) and at.base == 0


class IdxMath:
    """Affine expressions over `Idx` coordinates for vectors of `lanes` lanes."""

    def __init__(self, math: IndexMath, lanes: int) -> None:
        self.math = math
        self.lanes = lanes

    def vector(self, x: Idx) -> ir.Value:
        """`x` as a `vector<LxIndex>`."""
        if x.lanes is not None:
            return x.lanes
        type_ = ir.VectorType.get([self.lanes], ir.IndexType.get())
        from mlir.dialects import vector

        base = vector.broadcast(type_, self.math.constants.index(x.base))
        if x.step == 0:
            return base
        iota = ir.DenseElementsAttr.get(
            [ir.IntegerAttr.get(ir.IndexType.get(), i // x.repeat * x.step) for i in range(self.lanes)], type_
        )
        return arith.addi(base, arith.ConstantOp(type_, iota).result)

    def value(self, x: Idx) -> ir.Value:
        """`x` as an index scalar when it is uniform, else as a vector."""
        return self.math.constants.index(x.base) if x.uniform else self.vector(x)

    def add(self, a: Idx, b: Idx) -> Idx:
        level = max(a.level, b.level)
        if a.lanes is None and b.lanes is None and (a.repeat == b.repeat or not a.step or not b.step):
            if _is_zero(b):
                return a
            if _is_zero(a):
                return b
            repeat = a.repeat if a.step else b.repeat
            one, other = a.span, b.span
            bounds = (one[0] + other[0], one[1] + other[1]) if one and other else None
            return Idx(self.math.add(a.base, b.base), a.step + b.step, level=level, bounds=bounds, repeat=repeat)
        return Idx(lanes=arith.addi(self.vector(a), self.vector(b)), level=level)

    def scale(self, a: Idx, factor: Scalar) -> Idx:
        if isinstance(factor, int) and factor == 1:
            return a
        if a.lanes is None and (isinstance(factor, int) or a.step == 0):
            step = a.step * factor if isinstance(factor, int) else 0
            bounds = a.span if isinstance(factor, int) else None
            if bounds is not None:
                low, high = bounds[0] * factor, bounds[1] * factor
                bounds = (low, high) if factor >= 0 else (high, low)
            return Idx(self.math.mul(a.base, factor), step, level=a.level, bounds=bounds, repeat=a.repeat)
        return Idx(lanes=arith.muli(self.vector(a), self.vector(Idx(factor))), level=a.level)

    def floordiv(self, a: Idx, size: int) -> Idx:
        if a.tile is not None and a.tile[1] == size:
            return Idx(a.tile[0], level=a.level)
        if a.uniform:
            return Idx(self.math.floordiv(a.base, size), level=a.level)
        if a.tile is not None and a.step == 1 and a.repeat == 1 and a.lanes is None:
            high, whole, low = a.tile
            if whole % size == 0 and low % size == 0 and self.lanes % size == 0:  # whole groups of lanes
                first = self.math.add(self.math.mul(high, whole // size), low // size)
                return Idx(first, 1, level=a.level, repeat=size)
        return Idx(lanes=arith.floordivsi(self.vector(a), self.vector(Idx(size))), level=a.level)

    def mod(self, a: Idx, size: int) -> Idx:
        if a.tile is not None and a.tile[1] == size:
            return Idx(a.tile[2], a.step, level=a.level)
        if isinstance(a.base, int) and a.uniform:
            return Idx(a.base % size)
        return self.add(a, self.scale(self.floordiv(a, size), -size))

    def affine(self, expr: ir.AffineExpr, dims: Sequence[Idx]) -> Idx:
        """Value of `expr` at the coordinates `dims`; symbols do not occur in kernels."""
        expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
        if isinstance(expr, ir.AffineDimExpr):
            return dims[expr.position]
        if isinstance(expr, ir.AffineConstantExpr):
            return Idx(expr.value)
        if isinstance(expr, ir.AffineAddExpr):
            return self.add(self.affine(expr.lhs, dims), self.affine(expr.rhs, dims))
        if isinstance(expr, ir.AffineMulExpr):
            factor = expr.rhs.maybe_downcast()
            if isinstance(factor, ir.AffineConstantExpr):
                return self.scale(self.affine(expr.lhs, dims), factor.value)
        if isinstance(expr, ir.AffineFloorDivExpr | ir.AffineModExpr):
            size = expr.rhs.maybe_downcast()
            if isinstance(size, ir.AffineConstantExpr):
                inner = self.affine(expr.lhs, dims)
                divide = isinstance(expr, ir.AffineFloorDivExpr)
                return self.floordiv(inner, size.value) if divide else self.mod(inner, size.value)
        raise ValueError(f"kernel emitter: affine expression {expr} is not supported")
