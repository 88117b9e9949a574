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
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, for_loop
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction, ContractionSchedule, Tile, tile_grid


@dataclass(frozen=True)
class DotProductSchedule(ContractionSchedule):
    """Parameters of the template; see the module's description."""

    vector_operand: int
    stored: str
    instruction: str


def expand(source: KernelSource, schedule: DotProductSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_DotProduct(source, schedule).emit(), tile_grid(source, schedule)]


class _DotProduct(Contraction):
    s: DotProductSchedule

    def _reduce(
        self,
        ev: Evaluator,
        tile: Tile,
        loops: list[tuple[int, Scalar]],
        position: dict[int, Idx],
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """The innermost dimension goes by pairs; what an odd extent leaves is a pair with a zero."""
        if len(loops) != 1:
            return super()._reduce(ev, tile, loops, position, carried)
        (dim, extent), math = loops[0], self.frame.math
        pairs, level = math.div(extent, 2), 3 + len(position)
        unroll = self.s.unroll if isinstance(pairs, int) and pairs % self.s.unroll == 0 else 1

        def step(pair: Scalar, sums: list[ir.Value], whole: bool) -> list[ir.Value]:
            at = Idx(math.mul(pair, 2), tile=(pair, 2, 0), level=level)
            return self._add_pairs(ev.child(), tile, {**position, dim: at}, sums, whole)

        def body(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            for u in range(unroll):
                sums = step(math.add(variable, u), sums, True)
            return sums

        sums = for_loop(self.frame, 0, pairs, unroll, carried, body)
        if isinstance(extent, int):
            return step(pairs, sums, False) if extent % 2 else sums
        return for_loop(self.frame, pairs, math.ceildiv(extent, 2), 1, sums, lambda v, c: step(v, c, False))

    def _add_pairs(
        self, ev: Evaluator, tile: Tile, position: dict[int, Idx], carried: Sequence[ir.Value], whole: bool
    ) -> list[ir.Value]:
        loaded: dict[tuple[int, int, int], list[ir.Value]] = {}
        results = []
        for (name, point), accumulator in zip(tile.points.items(), carried, strict=True):
            dims = self._iteration(point, position)
            scope = ev.child(mask=tile.masks[name[1]])
            operands = [self._pairs(scope, tile, i, name, dims, whole, loaded) for i in range(2)]
            results.append(self._dot(accumulator, operands[1 - self.s.vector_operand], operands[self.s.vector_operand]))
        return results

    # -- operands ---------------------------------------------------------------------------------------------------

    def _pairs(
        self,
        ev: Evaluator,
        tile: Tile,
        i: int,
        name: tuple[int, int],
        dims: list[Idx],
        whole: bool,
        loaded: dict[tuple[int, int, int], list[ir.Value]],
    ) -> list[ir.Value]:
        """Input `i` as `_dot` wants it, made once for all accumulators that share it."""
        exprs = operand_map(self.root, i).results
        rows = self.s.row_last >= 0 and any(mentions(e, self.order[self.s.row_last]) for e in exprs)
        key = (i, name[0] if rows else -1, name[1] if i == self.s.vector_operand else -1)
        if key not in loaded:
            coords = [ev.idx.affine(e, dims) for e in exprs]
            if i != self.s.vector_operand:
                pairs = self._broadcast(ev, tile, i, coords, whole)
            elif self.s.stored == "pairs":
                pairs = self._stored(ev, i, coords)
            else:
                pairs = self._interleaved(ev, i, dims, whole)
            loaded[key] = self._prepared(pairs)
        return loaded[key]

    def _broadcast(self, ev: Evaluator, tile: Tile, i: int, coords: Sequence[Idx], whole: bool) -> ir.Value:
        """The pair at `coords` in every lane; its second element is zero unless it is `whole`."""
        i32, source, inside = ir.IntegerType.get_signless(32), self.root.operands[i], None
        if i in self.padded:
            source = self.padded[i].source
            coords, inside = self._in_source(ev, tile, self.padded[i], coords)
        if source in self.frame.buffers and whole:
            buffer = self.frame.buffers[source]
            base = [self.frame.constants.index(memory.address(buffer, coords, ev.idx).base)]
            pair = vector.LoadOp(ir.VectorType.get([2], buffer.element), buffer.memory, base).result
            bits = vector.extract(vector.bitcast(ir.VectorType.get([1], i32), pair), [], [0])
        else:
            bits = self._bits(ev, source, coords)
            if whole:
                after = [*coords[:-1], ev.idx.add(coords[-1], Idx(1))]
                high = arith.shli(self._bits(ev, source, after), self.frame.constants.get(i32, 16))
                bits = arith.ori(bits, high)
        if inside is not None:
            bits = arith.select(inside, bits, self.frame.constants.get(i32, 0))
        return vector.broadcast(ir.VectorType.get([self.s.lanes], i32), bits)

    @staticmethod
    def _bits(ev: Evaluator, source: ir.Value, coords: Sequence[Idx]) -> ir.Value:
        """The lower half of a pair."""
        value = arith.bitcast(ir.IntegerType.get_signless(16), ev.child(lanes=1).tensor(source, coords))
        return arith.extui(ir.IntegerType.get_signless(32), value)

    def _stored(self, ev: Evaluator, i: int, coords: Sequence[Idx]) -> ir.Value:
        """A vector of pairs from a packed weight, whose panels are full."""
        buffer = self.frame.buffers[self.root.operands[i]]
        base = [self.frame.constants.index(memory.address(buffer, coords, ev.idx).base)]
        return vector.LoadOp(self._pair_type(buffer), buffer.memory, base).result

    def _interleaved(self, ev: Evaluator, i: int, dims: list[Idx], whole: bool) -> ir.Value:
        """Pairs of two adjacent rows."""
        buffer = self.frame.buffers[self.root.operands[i]]
        inner, rows = self.reductions[-1][0], []
        for k in range(2 if whole else 1):
            at = list(dims)
            at[inner] = ev.idx.add(dims[inner], Idx(k))
            coords = [ev.idx.affine(e, at) for e in operand_map(self.root, i).results]
            rows.append(ev.splat(memory.load(self.frame, ev.idx, buffer, coords, ev.mask)))
        if not whole:
            rows.append(ev.splat(self.frame.constants.get(buffer.element, 0.0)))
        return vector.InterleaveOp(*rows).result

    def _pair_type(self, buffer: Buffer) -> ir.VectorType:
        return ir.VectorType.get([2 * self.s.lanes], buffer.element)

    # -- arithmetic -------------------------------------------------------------------------------------------------

    def _prepared(self, pairs: ir.Value) -> list[ir.Value]:
        """Pairs as operands of the instruction: themselves, or first and second elements widened to f32."""
        lanes, i32 = self.s.lanes, ir.IntegerType.get_signless(32)
        if self.s.instruction == "vdpbf16ps":
            return [vector.bitcast(ir.VectorType.get([2 * lanes], ir.BF16Type.get()), pairs)]
        bits_type, wide = ir.VectorType.get([lanes], i32), ir.VectorType.get([lanes], ir.F32Type.get())
        bits = vector.bitcast(bits_type, pairs)
        shift, mask = (memory.splat(self.frame.constants.get(i32, n), lanes) for n in (16, -65536))
        return [vector.bitcast(wide, arith.shli(bits, shift)), vector.bitcast(wide, arith.andi(bits, mask))]

    def _dot(self, accumulator: ir.Value, a: Sequence[ir.Value], b: Sequence[ir.Value]) -> ir.Value:
        if self.s.instruction == "vdpbf16ps":
            attributes = {
                "intrin": ir.StringAttr.get(f"llvm.x86.avx512bf16.dpbf16ps.{32 * self.s.lanes}"),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            }
            operands = [accumulator, b[0], a[0]]
            return ir.Operation.create("llvm.call_intrinsic", [accumulator.type], operands, attributes).result
        for left, right in zip(a, b, strict=True):
            accumulator = vector.FMAOp(left, right, accumulator).result
        return accumulator
