"""Register-tiled contractions of bf16 that sum products in pairs, in f32.

The tiles, loops and epilogues of `contraction`; what differs is the innermost step. It takes two adjacent elements of
the innermost reduction dimension, `sum += a[k] * b[k] + a[k + 1] * b[k + 1]`, which is one instruction (`vdpbf16ps`)
where the target has it and two multiply-adds on widened operands elsewhere. The operand that is read along the
reduction gives a pair as 32 bits, broadcast to all lanes. The operand of the vectors is a weight stored as pairs,
`[panels, …, K / 2, panel, 2]` with a zero behind an odd K (`mlc-pack-weights`), or two rows of it are interleaved on
the way.

`vdpbf16ps` takes denormal numbers for zeros, rounds to nearest even whatever the mode, and adds its two products in an
order of its own (Intel, "Architecture Instruction Set Extensions Programming Reference", VDPBF16PS), so that results
differ from those of the multiply-adds in the last bits.

Schedule parameters: those of `contraction`; `vector_operand`: the input with the vector dimension; `stored`: `pairs` or
`rows`; `instruction`: `vdpbf16ps` or `fma`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, for_loop
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.intrinsics import x86
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import GroupedSchedule, tile_grid
from mlc.kernels.cpu.register_tile import Loops, Position, Tile


@dataclass(frozen=True)
class DotProductSchedule(GroupedSchedule):
    """Parameters of the template; see the module's description."""

    instruction: str


def expand(source: KernelSource, schedule: DotProductSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [DotProduct(source, schedule).emit(), tile_grid(source, schedule)]


class DotProduct(Contraction):
    """The loops of the template; `group` adjacent elements of the reduction are a step."""

    s: DotProductSchedule
    group = 2

    def _reduce(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The innermost dimension goes by groups; what an odd extent leaves is a group with zeros."""
        if len(loops) != 1:
            return super()._reduce(ev, tile, loops, position, carried)
        (dim, extent), math = loops[0], self.frame.math
        groups, level = math.div(extent, self.group), 3 + len(position)
        unroll = self.s.unroll if isinstance(groups, int) and groups % self.s.unroll == 0 else 1

        def step(at: Idx, sums: list[ir.Value], live: int) -> list[ir.Value]:
            return self._add_group(ev.child(), tile, {**position, dim: at}, sums, live)

        def group(number: Scalar) -> Idx:
            return Idx(math.mul(number, self.group), tile=(number, self.group, 0), level=level)

        def body(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            if self.next is not None:
                self._fetch(self.next, tile, position, math.div(variable, unroll), math.div(groups, unroll))
            for u in range(unroll):
                sums = step(group(math.add(variable, u)), sums, self.group)
            return sums

        sums = for_loop(self.frame, 0, groups, unroll, carried, body)
        if isinstance(extent, int):
            return step(group(groups), sums, extent % self.group) if extent % self.group else sums
        rest = math.mul(groups, self.group)
        return for_loop(self.frame, rest, extent, 1, sums, lambda v, c: step(Idx(v, level=level), c, 1))

    def _add_group(
        self, ev: Evaluator, tile: Tile, position: Position, carried: Sequence[ir.Value], live: int
    ) -> list[ir.Value]:
        """`live` elements of the reduction from `position` on, at most a group."""
        loaded: dict[tuple[int, int, int], list[ir.Value]] = {}
        results = []
        for (name, point), accumulator in zip(tile.points.items(), carried, strict=True):
            dims = self._iteration(point, position)
            scope = ev.child(tile.columns[name[1]].lanes, tile.columns[name[1]].mask)
            operands = [self._groups(scope, tile, i, name, dims, live, loaded) for i in range(2)]
            results.append(self._dot(accumulator, operands[1 - self.s.vector_operand], operands[self.s.vector_operand]))
        return results

    # -- operands ---------------------------------------------------------------------------------------------------

    def _groups(
        self,
        ev: Evaluator,
        tile: Tile,
        i: int,
        name: tuple[int, int],
        dims: list[Idx],
        live: int,
        loaded: dict[tuple[int, int, int], list[ir.Value]],
    ) -> list[ir.Value]:
        """Input `i` as `_dot` wants it, made once for all accumulators that share it."""
        exprs = operand_map(self.root, i).results
        rows = self.s.row_last >= 0 and any(mentions(e, self.order[self.s.row_last]) for e in exprs)
        key = (i, name[0] if rows else -1, name[1] if i == self.s.vector_operand else -ev.lanes)
        if key not in loaded:
            coords = [ev.idx.affine(e, dims) for e in exprs]
            if i != self.s.vector_operand:
                groups = self._broadcast(ev, tile, i, coords, live)
            elif self.s.stored != "rows":
                groups = self._stored(ev, i, coords)
            else:
                groups = self._interleaved(ev, i, dims, live)
            loaded[key] = self._prepared(i, groups)
        return loaded[key]

    def _broadcast(self, ev: Evaluator, tile: Tile, i: int, coords: Sequence[Idx], live: int) -> ir.Value:
        """The group at `coords`, 32 bits in every lane; what is not `live` is zero."""
        i32, source, inside = ir.IntegerType.get_signless(32), self.root.operands[i], None
        if i in self.padded:
            source = self.padded[i].source
            coords, inside = self._in_source(ev, tile, self.padded[i], coords)
        bits = self._scalar_group(ev, source, coords, live)
        if inside is not None:
            bits = arith.select(inside, bits, self.frame.constants.get(i32, 0))
        return in_every_lane(bits, ev.lanes)

    def _scalar_group(self, ev: Evaluator, source: ir.Value, coords: Sequence[Idx], live: int) -> ir.Value:
        """The group at `coords` of `source` as 32 bits."""
        i32 = ir.IntegerType.get_signless(32)
        if source in self.frame.buffers and live == self.group:
            buffer = self.frame.buffers[source]
            base = [self.frame.constants.index(memory.address(buffer, coords, ev.idx).base)]
            group = vector.LoadOp(ir.VectorType.get([live], buffer.element), buffer.memory, base).result
            return vector.extract(vector.bitcast(ir.VectorType.get([1], i32), group), [], [0])
        bits = self._bits(ev, source, coords)
        for k in range(1, live):
            shift = self.frame.constants.get(i32, k * 32 // self.group)
            after = self._bits(ev, source, [*coords[:-1], ev.idx.add(coords[-1], Idx(k))])
            bits = arith.ori(bits, arith.shli(after, shift))
        return bits

    def _bits(self, ev: Evaluator, source: ir.Value, coords: Sequence[Idx]) -> ir.Value:
        """The lowest element of a group."""
        value = ev.child(lanes=1).tensor(source, coords)
        if isinstance(value.type, ir.FloatType):
            value = arith.bitcast(ir.IntegerType.get_signless(32 // self.group), value)
        return arith.extui(ir.IntegerType.get_signless(32), value)

    def _stored(self, ev: Evaluator, i: int, coords: Sequence[Idx]) -> ir.Value:
        """A vector of pairs from a packed weight, whose panels are full."""
        buffer = self.frame.buffers[self.root.operands[i]]
        base = [self.frame.constants.index(memory.address(buffer, coords, ev.idx).base)]
        type_ = ir.VectorType.get([self.group * ev.lanes], buffer.element)
        return vector.LoadOp(type_, buffer.memory, base).result

    def _interleaved(self, ev: Evaluator, i: int, dims: list[Idx], live: int) -> ir.Value:
        """Groups of adjacent rows; zeros for those that are not `live`."""
        buffer = self.frame.buffers[self.root.operands[i]]
        inner, rows = self.reductions[-1][0], []
        for k in range(live):
            at = list(dims)
            at[inner] = ev.idx.add(dims[inner], Idx(k))
            coords = [ev.idx.affine(e, at) for e in operand_map(self.root, i).results]
            rows.append(ev.splat(memory.load(self.frame, ev.idx, buffer, coords, ev.mask)))
        zero = 0.0 if isinstance(buffer.element, ir.FloatType) else 0
        rows += [ev.splat(self.frame.constants.get(buffer.element, zero))] * (self.group - live)
        return interleaved(rows)

    # -- arithmetic -------------------------------------------------------------------------------------------------

    def _prepared(self, i: int, pairs: ir.Value) -> list[ir.Value]:
        """Pairs of input `i` as operands of the instruction: themselves, or first and second elements in f32."""
        i32 = ir.IntegerType.get_signless(32)
        lanes = words_of(pairs)
        if self.s.instruction == "vdpbf16ps":
            return [vector.bitcast(ir.VectorType.get([2 * lanes], ir.BF16Type.get()), pairs)]
        bits_type, wide = ir.VectorType.get([lanes], i32), ir.VectorType.get([lanes], ir.F32Type.get())
        bits = vector.bitcast(bits_type, pairs)
        shift, mask = (memory.splat(self.frame.constants.get(i32, n), lanes) for n in (16, -65536))
        return [vector.bitcast(wide, arith.shli(bits, shift)), vector.bitcast(wide, arith.andi(bits, mask))]

    def _dot(self, accumulator: ir.Value, a: Sequence[ir.Value], b: Sequence[ir.Value]) -> ir.Value:
        if self.s.instruction == "vdpbf16ps":
            name = f"avx512bf16.dpbf16ps.{32 * accumulator.type.shape[0]}"
            return x86(name, accumulator.type, [accumulator, b[0], a[0]])
        for left, right in zip(a, b, strict=True):
            accumulator = vector.FMAOp(left, right, accumulator).result
        return accumulator


def in_every_lane(bits: ir.Value, lanes: int) -> ir.Value:
    """32 bits in all lanes, by way of a float: of an integer that vectors of two widths need LLVM makes loads into
    ordinary registers and a transfer for each."""
    number = arith.bitcast(ir.F32Type.get(), bits)
    spread = vector.broadcast(ir.VectorType.get([lanes], ir.F32Type.get()), number)
    return vector.bitcast(ir.VectorType.get([lanes], ir.IntegerType.get_signless(32)), spread)


def interleaved(rows: list[ir.Value]) -> ir.Value:
    """Two or four vectors as one, of groups of an element of each."""
    while len(rows) > 1:
        half = len(rows) // 2
        rows = [vector.InterleaveOp(a, b).result for a, b in zip(rows[:half], rows[half:], strict=True)]
    return rows[0]


def words_of(groups: ir.Value) -> int:
    """How many groups, of 32 bits each, a vector holds."""
    return int(groups.type.shape[0]) * int(groups.type.element_type.width) // 32
