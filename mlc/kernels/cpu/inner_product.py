"""Contractions whose operands both lie along the reduction: few rows times a matrix that is stored by columns.

The tiles and epilogues of `contraction`, one vector wide. What differs is the way of the sum: vectors run along the
reduction, an accumulator for every element of the result, as many of them at a time as a vector has lanes (4 rows and
4 columns, 2 and 8, 1 and 16). Their lanes are added up together, in a tree whose every step halves the number of
vectors: half of the lanes of one and half of the other, and the rest of both, are added. What comes out is one vector
with the elements in order. So nothing has to be transposed first, for about three instructions an element.

Takes f32 and f64 with a single reduction dimension, the last one of both operands. Schedule parameters: those of
`contraction`; `vectors` is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import is_plain_fma, mentions
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import ContractionSchedule, tile_grid
from mlc.kernels.cpu.register_tile import Loops, Position, Tile
from mlc.kernels.cpu.transpose import dealt


class InnerProductSchedule(ContractionSchedule):
    """Parameters of the template; see the module's description."""


def expand(source: KernelSource, schedule: InnerProductSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_InnerProduct(source, schedule).emit(), tile_grid(source, schedule)]


def lies_along_sum(root: ir.Operation, exprs: Sequence[Sequence[ir.AffineExpr]] | None = None) -> bool:
    """Is a contraction one that this template takes: a plain product of floats, both of whose operands are contiguous
    along its only reduction dimension? `exprs` are the operands' indices, where they are not to be those of `root`."""
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    if sum(kinds) != 1 or not is_plain_fma(root):
        return False
    if len({str(v.type.element_type) for v in root.operands}) != 1:
        return False
    exprs = exprs or [list(operand_map(root, i).results) for i in range(2)]
    return all(_ends_with(e, kinds.index(True)) for e in exprs)


_SUMMED = 8  # steps of the reduction for each row of the result that pay for what sums along vectors take at the end


def has_few_rows(rows: int, depth: int) -> bool:
    """Do sums along vectors of `depth` steps take less time than to transpose what is read for so many `rows`?"""
    return rows * _SUMMED <= depth


def _ends_with(exprs: Sequence[ir.AffineExpr], dim: int) -> bool:
    """Is `dim` the last of an operand's indices, and in none of the others?"""
    last = exprs[-1] if exprs else None
    inner = isinstance(last, ir.AffineDimExpr) and last.position == dim
    return inner and not any(mentions(e, dim) for e in exprs[:-1])


def lane_sums(vectors: Sequence[ir.Value]) -> ir.Value:
    """The sums of the lanes of as many vectors as each has lanes, a power of two: lane i of the result is that of
    vector i.
    """
    current, distance = list(vectors), len(vectors) // 2
    while distance:
        pairs = zip(current[: len(current) // 2], current[len(current) // 2 :], strict=True)
        current = [_half_summed(a, b, distance, len(vectors)) for a, b in pairs]
        distance //= 2
    return current[0]


def _half_summed(a: ir.Value, b: ir.Value, distance: int, lanes: int) -> ir.Value:
    """Lanes whose number has the bit `distance` are sums of two lanes of `b`, the others of two of `a`."""
    own = [lanes + lane if lane & distance else lane for lane in range(lanes)]
    other = [lanes + lane - distance if lane & distance else lane + distance for lane in range(lanes)]
    parts = [vector.ShuffleOp(a, b, ir.DenseI64ArrayAttr.get(order)).result for order in (own, other)]
    return arith.addf(*parts)


class _InnerProduct(Contraction):
    def __init__(self, source: KernelSource, schedule: InnerProductSchedule) -> None:
        super().__init__(source, schedule)
        moving = [(d, e) for d, e in self.reductions if e != 1]
        if schedule.vectors != 1 or len(moving) > 1 or not self.fma:
            raise ValueError(f"kernel {self.frame.name}: an inner product has one dimension that is summed over")
        self.dim, self.extent = moving[0] if moving else self.reductions[0]

    def _reduce(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums of a tile, row by row: a few columns of all rows at a time."""
        rows = 1 << (len(tile.points) - 1).bit_length()
        width = self.s.lanes // rows

        def columns(first: ir.Value, parts: list[ir.Value]) -> list[ir.Value]:
            return [*parts[1:], self._columns(tile, first, width)]

        # A loop, though short: of what is written out LLVM would keep the rows in registers, where sums belong.
        parts = for_loop(self.frame, 0, self.s.lanes, width, [self._zero()] * rows, columns)
        sums = dealt(parts, width)[: len(tile.points)]
        return [arith.addf(start, total) for start, total in zip(carried, sums, strict=True)]

    def _zero(self) -> ir.Value:
        element = self.root.results[0].type.element_type
        return memory.splat(self.frame.constants.get(element, 0.0), self.s.lanes)

    def _columns(self, tile: Tile, first: Scalar, width: int) -> ir.Value:
        """The sums of `width` columns of a tile from `first` on: those of a row are adjacent lanes."""
        s, math, frame = self.s, self.frame.math, self.frame
        columns = [self._column_at(tile, math.add(first, c)) for c in range(width)]
        points = [self._at(tile, row, column) for row in range(len(tile.points)) for column in columns]

        def step(at: Scalar, sums: Sequence[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            ev = Evaluator(frame, s.lanes, mask)
            return [self._add(ev, point, Idx(at, 1, level=4), old) for point, old in zip(points, sums, strict=True)]

        whole = math.mul(math.div(self.extent, s.lanes), s.lanes)
        sums = for_loop(frame, 0, whole, s.lanes, [self._zero()] * len(points), lambda at, old: step(at, old, None))
        rest = math.sub(self.extent, whole)
        if not (isinstance(rest, int) and rest == 0):
            mask = lane_mask(frame, s.lanes, frame.constants.index(rest))
            sums = step(whole, sums, mask)
        return lane_sums([*sums, *[self._zero()] * (s.lanes - len(sums))])

    def _column_at(self, tile: Tile, number: Scalar) -> Idx:
        """A column of a tile; behind the last column of the result it is the last one again."""
        math, axis = self.frame.math, self.s.vector_dim
        at = math.add(tile.points[0, 0][axis].base, number)
        if tile.columns[0].mask is not None:
            at = math.minimum(at, math.sub(self.shape[axis], 1))
        return Idx(at, level=3)

    def _at(self, tile: Tile, row: int, column: Idx) -> list[Idx]:
        """The coordinates of an element of the result."""
        point = list(tile.points[row, 0])
        point[self.s.vector_dim] = column
        return point

    def _add(self, ev: Evaluator, point: list[Idx], at: Idx, total: ir.Value) -> ir.Value:
        """`total` and the products of the elements from `at` on."""
        dims = self._iteration(point, {self.dim: at})
        operands = []
        for operand, (exprs, _, _) in zip(self.root.operands, self.reads, strict=False):
            value = ev.tensor(operand, [ev.idx.affine(e, dims) for e in exprs])
            operands.append(ev.splat(value))
        return vector.FMAOp(operands[0], operands[1], total).result
