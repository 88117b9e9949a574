"""Products of tiles in shared memory by warps: `ldmatrix` and `mma.sync` (PTX ISA, "Warp Level Matrix Instructions").

An instruction multiplies 16 rows by 8 columns over 32 bytes of the sum. A warp loads 16 rows of either operand at a
time: four matrices of 8 by 8 16-bit numbers, or of 8 by 4 32-bit numbers, which are the same bytes. Tiles across the
sum are transposed on the way, which only 16-bit numbers can be; 32-bit ones are loaded one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import llvm, nvvm

from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.tiles import INSTRUCTION, ROW, Tile
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly, fields

BLOCK = 16  # rows of an operand that a warp loads at a time
STEPS = ROW // INSTRUCTION  # instructions along the sum of a tile
_EIGHT = 8  # rows of a matrix
_KINDS = {"bf16": ("m16n8k16", "bf16"), "f16": ("m16n8k16", "f16"), "tf32": ("m16n8k8", "tf32")}


class Fragments:
    """A warp's part of an operand's tile, which begins at byte `offset` of a stage: rows from `first` on.

    Instructions take the halves of 16 rows and those of the sum in one order on the left and in another on the right.
    """

    def __init__(self, words: Words, tile: Tile, offset: int, first: Scalar, element: str, is_left: bool) -> None:
        self.words, self.tile, self.rounded = words, tile, element == "tf32"
        math, lane = words.math, words.math.rem(words.thread(), 32)
        matrix, self.line = math.div(lane, _EIGHT), math.rem(lane, _EIGHT)
        halves = math.rem(matrix, 2), math.div(matrix, 2)
        self.row_half, self.sum_half = halves if is_left else halves[::-1]
        self.first, self.offset = first, offset
        piece = words.xor(self.sum_half, self.line)
        line = math.add(first, math.add(math.mul(self.row_half, _EIGHT), self.line))
        self.along = math.add(math.mul(line, ROW), math.mul(piece, 16))

    def load(self, stage: Scalar, step: int, block: int) -> list[ir.Value]:
        """Four registers of 16 rows, number `block` of the warp's, at `step` of the tile's instructions."""
        words, math = self.words, self.words.math
        at = math.add(stage, self.offset)
        if self.tile.across:
            at = math.add(math.add(at, self._across(block)), step * BLOCK * ROW)
        else:
            at = math.add(words.xor(math.add(at, self.along), step * INSTRUCTION), block * BLOCK * ROW)
        layout = "col" if self.tile.across else "row"
        registers = ir.Type.parse("!llvm.struct<(i32, i32, i32, i32)>")
        found = nvvm.LdMatrixOp(
            registers,
            words.place(at),
            4,
            ir.Attribute.parse(f"#nvvm.mma_layout<{layout}>"),
            ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
            ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
        ).res
        values = fields(found, [words.i32] * 4)
        return [to_tf32(words, v) for v in values] if self.rounded else values

    def _across(self, block: int) -> Scalar:
        """The byte of this thread's line and piece: a line is a step of the sum and has 64 rows."""
        words, math = self.words, self.words.math
        row = math.add(self.first, block * BLOCK)
        each = ROW // self.tile.bytes_each
        piece = words.xor(words.xor(math.div(math.rem(row, each), _EIGHT), self.row_half), self.line)
        line = math.add(math.mul(self.sum_half, _EIGHT), self.line)
        inside = math.add(math.mul(line, ROW), math.mul(piece, 16))
        return math.add(math.mul(math.div(row, each), self.tile.block), inside)


class Columns:
    """A warp's part of a right operand of 32-bit numbers whose tile lies across the sum: of every eight steps, thread
    4r + t has numbers 2t and 2t + 1 of column r.

    That is the order in which accumulators hold columns, so that they can be the left operand as they are; the
    instructions, which want t and t + 4, add the same products. No two threads of a warp meet in a bank.
    """

    def __init__(self, words: Words, tile: Tile, offset: int) -> None:
        self.words, self.tile, self.offset = words, tile, offset
        math, lane = words.math, words.math.rem(words.thread(), 32)
        column, pair = math.div(lane, 4), math.mul(math.rem(lane, 4), 2)
        piece = words.xor(math.div(column, 4), pair)
        inside = math.add(math.mul(pair, ROW), math.mul(math.rem(column, 4), tile.bytes_each))
        self.along = math.add(inside, math.mul(piece, 16))

    def load(self, stage: Scalar, step: int, block: int) -> list[ir.Value]:
        """Two registers for each eight of 16 columns, number `block` of the tile's, at `step` of eight."""
        return [self._one(stage, step, block * BLOCK + half, odd) for half in (0, _EIGHT) for odd in range(2)]

    def _one(self, stage: Scalar, step: int, column: int, odd: int) -> ir.Value:
        words, math = self.words, self.words.math
        part, inside = divmod(column, ROW // self.tile.bytes_each)
        moved = words.xor(self.along, (inside // 4 ^ odd) * 16)
        first = self.offset + part * self.tile.block + (step * _EIGHT + odd) * ROW
        return to_tf32(words, llvm.LoadOp(words.i32, words.place(math.add(math.add(moved, stage), first))).res)


def to_tf32(words: Words, value: ir.Value) -> ir.Value:
    """The nearest number of tf32: the instructions would cut f32 off."""
    found = assembly(words.i32, [value], "cvt.rna.tf32.f32 $0, $1;", "=r,r", pure=True)
    assert found is not None
    return found


def multiply_add(
    words: Words, element: str, left: Sequence[ir.Value], right: Sequence[ir.Value], sums: Sequence[ir.Value]
) -> list[ir.Value]:
    """Four accumulators plus a product of 16 rows and 8 columns: thread 4r + t has columns 2t and 2t + 1 of the rows r
    and r + 8."""
    shape, name = _KINDS[element]
    kind = f"mma.sync.aligned.{shape}.row.col.f32.{name}.{name}.f32"
    text = f"{kind} {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, {{$8, $9}}, {{$10, $11, $12, $13}};"
    constraints = ",".join(["=f"] * 4 + ["r"] * 6 + ["f"] * 4)
    struct = ir.Type.parse("!llvm.struct<(f32, f32, f32, f32)>")
    found = assembly(struct, [*left, *right, *sums], text, constraints, pure=True)
    assert found is not None
    return fields(found, [words.f32] * 4)
