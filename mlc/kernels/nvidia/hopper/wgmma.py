"""Products of tiles in shared memory by four warps (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

Tiles (`tensor_cores/tiles.py`) are swizzled as the tensor map that loaded them says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.tiles import INSTRUCTION, ROW, Tile
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly, fields

_SWIZZLES = {128: 1, 64: 2, 32: 3}  # bytes of a row -> layout type of the descriptor
_NAMES = {"bf16": "bf16", "f16": "f16", "f32": "tf32", "e4m3": "e4m3", "e5m2": "e5m2"}


def _descriptor(tile: Tile) -> int:
    """The matrix descriptor without its address: swizzle, and the distances between groups of eight rows and between
    blocks, in units of 16 bytes."""
    leading = tile.block >> 4 if tile.across else 1
    return _SWIZZLES[tile.row_bytes] << 62 | (8 * tile.row_bytes >> 4) << 32 | leading << 16


def describe(words: Words, tile: Tile, offset: Scalar) -> ir.Value:
    """The descriptor of a tile at byte `offset` of the shared memory."""
    address = words.math.add(words.shared_address, offset)
    masked = arith.andi(words.value(address), words.value(0x3FFFF))
    low = arith.extui(words.i64, arith.shrui(masked, words.value(4)))
    return arith.ori(low, words.frame.constants.get(words.i64, _signed(_descriptor(tile))))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def multiply_add(
    words: Words,
    accumulators: Sequence[ir.Value],
    left: Tile,
    right: Tile,
    descriptors: tuple[Sequence[ir.Value], ir.Value],
    in_flight: int,
    distances: Sequence[int] = (0,),
) -> list[ir.Value]:
    """Accumulators plus the products of tiles: a descriptor of each 64 rows of the left one, and of the right one.
    There is a pair of tiles at each of the `distances`, in bytes, from those of the descriptors. The accumulators say
    how many columns of the right tile are multiplied.

    Waits until at most `in_flight` groups of instructions, this one included, are under way. All instructions are one
    piece of PTX: ptxas serialises them when accumulators move in between.
    """
    lefts, right_descriptor = descriptors
    blocks, count = len(lefts), len(accumulators)
    each = count // blocks
    names = f"{_NAMES[left.element]}.{_NAMES[right.element]}"
    transposed = f", {int(left.across)}, {int(right.across)}" if left.bytes_each == 2 else ""
    shape = f"m64n{2 * each}k{INSTRUCTION // left.bytes_each}"
    first = 2 * count
    lines = ["wgmma.fence.sync.aligned;", "{ .reg .b64 l, r;"]
    for distance, step in product(distances, range(ROW // INSTRUCTION)):
        lines.append(f"add.s64 r, ${first + blocks}, {distance + step * right.step >> 4};")
        for block in range(blocks):
            registers = ",".join(f"${block * each + i}" for i in range(each))
            lines.append(f"add.s64 l, ${first + block}, {distance + step * left.step >> 4};")
            kind = f"wgmma.mma_async.sync.aligned.{shape}.f32.{names}"
            lines.append(f"{kind} {{{registers}}}, l, r, 1, 1, 1{transposed};")
    lines += ["}", "wgmma.commit_group.sync.aligned;", f"wgmma.wait_group.sync.aligned {in_flight};"]
    constraints = ",".join(["=f"] * count + [str(i) for i in range(count)] + ["l"] * (blocks + 1))
    return _emit(words, [*accumulators, *lefts, right_descriptor], count, "\n".join(lines), constraints)


def sums_of(
    words: Words,
    left: Tile,
    right: Tile,
    stages: Sequence[tuple[ir.Value, ir.Value]],
    distances: Sequence[int],
) -> list[ir.Value]:
    """The product of 64 rows of the left tile and the right one, both along the sum, once it is there, over the stages
    that the descriptors are of; pairs of tiles as in `multiply_add`."""
    count = right.rows // 2
    names = f"{_NAMES[left.element]}.{_NAMES[right.element]}"
    kind = f"wgmma.mma_async.sync.aligned.m64n{right.rows}k{INSTRUCTION // left.bytes_each}.f32.{names}"
    registers = ",".join(f"${i}" for i in range(count))
    lines = ["wgmma.fence.sync.aligned;", "{ .reg .b64 l, r;"]
    steps = product(range(len(stages)), distances, range(0, ROW, INSTRUCTION))
    for number, (stage, distance, step) in enumerate(steps):
        first = count + 2 * stage
        lines += [f"add.s64 {d}, ${first + i}, {distance + step >> 4};" for i, d in enumerate("lr")]
        lines.append(f"{kind} {{{registers}}}, l, r, {int(number > 0)}, 1, 1;")
    lines += ["}", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    descriptors = [descriptor for pair in stages for descriptor in pair]
    constraints = ",".join(["=f"] * count + ["l"] * len(descriptors))
    return _emit(words, descriptors, count, "\n".join(lines), constraints)


def finish(words: Words, accumulators: Sequence[ir.Value]) -> list[ir.Value]:
    """The accumulators once all instructions are done: nothing reads them earlier."""
    count = len(accumulators)
    constraints = ",".join(["=f"] * count + [str(i) for i in range(count)])
    return _emit(words, accumulators, count, "wgmma.wait_group.sync.aligned 0;", constraints)


def start_scores(
    words: Words, descriptors: tuple[ir.Value, ir.Value], steps: Sequence[tuple[int, int]], columns: int, element: str
) -> list[ir.Value]:
    """Starts the product of 64 rows and `columns` columns that both lie along the sum, and does not wait.

    `steps` are the distances in bytes of an instruction's data from either descriptor.
    """
    count, name = columns // 2, _NAMES[element]
    registers = ",".join(f"${i}" for i in range(count))
    lines = ["wgmma.fence.sync.aligned;", "{ .reg .b64 l, r;"]
    for number, (left, right) in enumerate(steps):
        lines += [f"add.s64 l, ${count}, {left >> 4};", f"add.s64 r, ${count + 1}, {right >> 4};"]
        kind = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{name}.{name}"
        lines.append(f"{kind} {{{registers}}}, l, r, {int(number > 0)}, 1, 1, 0, 0;")
    lines += ["}", "wgmma.commit_group.sync.aligned;"]
    return _emit(words, list(descriptors), count, "\n".join(lines), ",".join(["=f"] * count + ["l", "l"]))


def start_sums(
    words: Words,
    accumulators: Sequence[ir.Value],
    left: Sequence[ir.Value],
    right: ir.Value,
    step: int,
    element: str,
) -> list[ir.Value]:
    """Starts adding the product of 64 rows in registers (pairs of 16-bit numbers, four an instruction) and a tile that
    lies across the sum, and does not wait; an instruction's data are `step` bytes apart."""
    count, name = len(accumulators), _NAMES[element]
    registers = ",".join(f"${i}" for i in range(count))
    first = 2 * count
    lines = ["wgmma.fence.sync.aligned;", "{ .reg .b64 r;"]
    for number in range(len(left) // 4):
        fragment = ",".join(f"${first + 4 * number + i}" for i in range(4))
        lines.append(f"add.s64 r, ${first + len(left)}, {number * step >> 4};")
        kind = f"wgmma.mma_async.sync.aligned.m64n{2 * count}k16.f32.{name}.{name}"
        lines.append(f"{kind} {{{registers}}}, {{{fragment}}}, r, 1, 1, 1, 1;")
    lines += ["}", "wgmma.commit_group.sync.aligned;"]
    constraints = ",".join(["=f"] * count + [str(i) for i in range(count)] + ["r"] * len(left) + ["l"])
    return _emit(words, [*accumulators, *left, right], count, "\n".join(lines), constraints)


def wait(words: Words, values: Sequence[ir.Value], in_flight: int, kept: Sequence[ir.Value] = ()) -> list[ir.Value]:
    """`values` once at most `in_flight` groups of instructions are under way. `kept` stay where they are until then:
    they are operands of instructions, or computed before the wait."""
    count = len(values)
    letters = ["f" if v.type == words.f32 else "r" for v in kept]
    constraints = ",".join(["=f"] * count + [str(i) for i in range(count)] + letters)
    text = f"wgmma.wait_group.sync.aligned {in_flight};"
    return _emit(words, [*values, *kept], count, text, constraints)


def _emit(words: Words, operands: Sequence[ir.Value], count: int, text: str, constraints: str) -> list[ir.Value]:
    struct = ir.Type.parse(f"!llvm.struct<({', '.join(['f32'] * count)})>")
    result = assembly(struct, operands, text, constraints)
    assert result is not None
    return fields(result, [words.f32] * count)
