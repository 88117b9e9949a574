"""Register-tiled contractions of 8-bit integers that sum products in fours, exactly, in 32 bits.

The tiles, loops and epilogues of `contraction`, and the groups of `dot_product`: a step takes four adjacent elements
of the innermost reduction dimension. Operands are stored as there, in quads: weights as `[panels, …, K / 4, panel, 4]`
with zeros behind a K that is no multiple of four (`mlc-pack-weights`); of another operand with the vectors' dimension
four rows are interleaved on the way. The other operand is read as 32 bits and broadcast.

`vpdpbusd` multiplies bytes without a sign by bytes with one and adds the four products to the accumulator without
saturation (Intel, "Intrinsics Guide"). It takes operands of these two kinds, in either order; where the broadcast
operand is another tensor with its highest bits turned over (`x ^ 0x80`), these are turned over on the way. `vpmaddwd`
adds products of pairs of 16 bits, for operands with and without signs: bytes 0 and 2 of every quad make up one pair,
bytes 1 and 3 the other. `vpmaddubsw` adds products of pairs of bytes in 16 bits, and `vpmaddwd` by ones adds pairs of
those: for a left operand below 128 (`mlc.never_negative`), as sums of larger products saturate. `mul` is ordinary
arithmetic. All of them give the same bits.

Schedule parameters: those of `contraction`; `vector_operand`: the input with the vector dimension; `stored`: `quads` or
`rows`; `instruction`: `vpdpbusd`, `vpmaddubsw`, `vpmaddwd` or `mul`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, defining_op
from mlc.kernels.common.generics import is_unsigned_input, turned_over
from mlc.kernels.common.index import Idx
from mlc.kernels.common.intrinsics import x86
from mlc.kernels.cpu.contraction_grid import tile_grid
from mlc.kernels.cpu.dot_product import DotProduct, DotProductSchedule, in_every_lane, words_of
from mlc.kernels.cpu.register_tile import Tile

_PAIR_PRODUCTS = {512: "avx512.pmaddw.d.512", 256: "avx2.pmadd.wd", 128: "sse2.pmadd.wd"}
_BYTE_PAIR_PRODUCTS = {512: "avx512.pmaddubs.w.512", 256: "avx2.pmadd.ub.sw", 128: "ssse3.pmadd.ub.sw.128"}
_OF_BYTES = ("vpdpbusd", "vpmaddubsw")  # of one operand with a sign and one without
_HIGHEST = 0x80808080 - (1 << 32)  # the highest bit of every byte


class DotQuadsSchedule(DotProductSchedule):
    """Parameters of the template; see the module's description."""


def expand(source: KernelSource, schedule: DotQuadsSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_DotQuads(source, schedule).emit(), tile_grid(source, schedule)]


class _DotQuads(DotProduct):
    group = 4

    def __init__(self, source: KernelSource, schedule: DotQuadsSchedule) -> None:
        super().__init__(source, schedule)
        self.unsigned = [is_unsigned_input(self.root, i) for i in range(2)]
        if schedule.instruction in _OF_BYTES and self.unsigned[0] == self.unsigned[1]:
            raise ValueError(f"kernel {self.frame.name}: {schedule.instruction} takes one operand with a sign")

    def _broadcast(self, ev: Evaluator, tile: Tile, i: int, coords: Sequence[Idx], live: int) -> ir.Value:
        """Bits that an operation in front turns over are turned over in the vector."""
        source = self.root.operands[i] if i not in self.padded else self.padded[i].source
        original = turned_over(defining_op(source))
        if original is None:
            return super()._broadcast(ev, tile, i, coords, live)
        inside = None
        if i in self.padded:
            coords, inside = self._in_source(ev, tile, self.padded[i], coords)
        bits = self._scalar_group(ev, original, coords, live)
        lanes, i32 = ev.lanes, ir.IntegerType.get_signless(32)
        highest = memory.splat(self.frame.constants.get(i32, _HIGHEST), lanes)
        turned = arith.xori(in_every_lane(bits, lanes), highest)
        if inside is None:
            return turned
        zero = memory.splat(self.frame.constants.get(i32, 0), lanes)
        return arith.select(memory.splat(inside, lanes), turned, zero)

    # -- arithmetic -------------------------------------------------------------------------------------------------

    def _prepared(self, i: int, groups: ir.Value) -> list[ir.Value]:
        """Quads of input `i` as operands of the instruction: bytes, two pairs of 16 bits, or four numbers of 32."""
        lanes, i32, i16 = words_of(groups), ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(16)
        if self.s.instruction in _OF_BYTES:
            return [vector.bitcast(ir.VectorType.get([4 * lanes], ir.IntegerType.get_signless(8)), groups)]
        words = vector.bitcast(ir.VectorType.get([lanes], i32), groups)
        shift_right = arith.shrui if self.unsigned[i] else arith.shrsi
        if self.s.instruction == "vpmaddwd":
            halves = vector.bitcast(ir.VectorType.get([2 * lanes], i16), words)
            eight = memory.splat(self.frame.constants.get(i16, 8), 2 * lanes)
            return [shift_right(arith.shli(halves, eight), eight), shift_right(halves, eight)]
        by = {n: memory.splat(self.frame.constants.get(i32, n), lanes) for n in (0, 8, 16, 24)}
        return [shift_right(arith.shli(words, by[24 - n]), by[24]) for n in by]

    def _dot(self, accumulator: ir.Value, a: Sequence[ir.Value], b: Sequence[ir.Value]) -> ir.Value:
        if self.s.instruction in _OF_BYTES:
            first, second = (a, b) if self.unsigned[1 - self.s.vector_operand] else (b, a)
            if self.s.instruction == "vpmaddubsw":
                return self._quads_by_pairs(accumulator, first[0], second[0])
            return quad_products(accumulator, first[0], second[0])
        for left, right in zip(a, b, strict=True):
            if self.s.instruction == "vpmaddwd":
                product = pair_products(left, right)
            else:
                product = arith.muli(left, right)
            accumulator = arith.addi(accumulator, product)
        return accumulator

    def _quads_by_pairs(self, accumulator: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
        """`accumulator` and the products of quads of bytes, of which those without a sign are below 128."""
        pairs = byte_pair_products(unsigned, signed)
        ones = memory.splat(self.frame.constants.get(pairs.type.element_type, 1), pairs.type.shape[0])
        return arith.addi(accumulator, pair_products(pairs, ones))


def quad_products(accumulator: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
    """`accumulator` and the products of quads of bytes, without a sign and with one, by `vpdpbusd`."""
    name = f"avx512.vpdpbusd.{32 * accumulator.type.shape[0]}"
    return x86(name, accumulator.type, [accumulator, unsigned, signed])


def byte_pair_products(unsigned: ir.Value, signed: ir.Value) -> ir.Value:
    """The products of pairs of bytes, without a sign and with one, in 16 bits for each pair, by `vpmaddubsw`."""
    pairs = unsigned.type.shape[0] // 2
    type_ = ir.VectorType.get([pairs], ir.IntegerType.get_signless(16))
    return x86(_BYTE_PAIR_PRODUCTS[16 * pairs], type_, [unsigned, signed])


def pair_products(a: ir.Value, b: ir.Value) -> ir.Value:
    """The products of pairs of words, in 32 bits for each pair, by `vpmaddwd`."""
    pairs = a.type.shape[0] // 2
    type_ = ir.VectorType.get([pairs], ir.IntegerType.get_signless(32))
    return x86(_PAIR_PRODUCTS[32 * pairs], type_, [a, b])
