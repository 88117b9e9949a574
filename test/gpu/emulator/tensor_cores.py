"""Tensor cores (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions" and "Asynchronous Warpgroup Level Matrix
Multiply-Accumulate Instructions"). Sums are made in float64 and rounded once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import ml_dtypes
import numpy as np
from gpu.emulator.arithmetic import to_tf32
from gpu.emulator.decode import DTYPES, TABLE, Decoder, Read
from gpu.emulator.machine import LANES, Array, Run, Warp
from gpu.emulator.memory import EmulationError, SharedMemory
from gpu.emulator.parse import Instruction

_SMALL = {"e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
_ROW, _COLUMN = LANES // 4, LANES % 4 * 2  # of a thread among accumulators
_SQUARE = 8  # rows of the squares that ldmatrix and stmatrix move


def _dtype(kind: str) -> np.dtype:
    return _SMALL.get(kind) or DTYPES[kind]


def _elements(words: Array, kind: str) -> Array:
    """Words of 32 bits as float64: a row for each."""
    values = np.ascontiguousarray(words).view(np.uint32)
    if kind == "tf32":
        return to_tf32(values.view(np.float32)).astype(np.float64)
    return values.view(_dtype(kind)).astype(np.float64)


# -- squares in shared memory ------------------------------------------------------------------------------------------


def _squares(source: Instruction) -> int:
    return next(int(p[1]) for p in source.parts if re.fullmatch(r"x[124]", p))


def _ldmatrix(d: Decoder, source: Instruction) -> Run:
    count, turned = _squares(source), "trans" in source.parts
    puts, address = [d.write(t) for t in d.vector(source.operands[0])], d.address(source.operands[1])

    def run(warp: Warp, mask: Array) -> None:
        warp.need_all(mask)
        rows = warp.block.shared.read(address(warp)[: count * _SQUARE], 16)
        squares = rows.view(np.uint16).reshape(count, _SQUARE, _SQUARE)
        for number, put in enumerate(puts):
            square = squares[number].T if turned else squares[number]
            pairs = np.ascontiguousarray(square).view(np.uint32)  # 8 x 4
            put(warp, np.ascontiguousarray(pairs.reshape(-1)), mask)

    return run


def _stmatrix(d: Decoder, source: Instruction) -> Run:
    count, turned = _squares(source), "trans" in source.parts
    address, reads = d.address(source.operands[0]), [d.read(t, "b32") for t in d.vector(source.operands[1])]

    def run(warp: Warp, mask: Array) -> None:
        warp.need_all(mask)
        squares = [np.ascontiguousarray(r(warp)).view(np.uint16).reshape(_SQUARE, _SQUARE) for r in reads]
        rows = np.concatenate([np.ascontiguousarray(s.T if turned else s).view(np.uint8) for s in squares])
        warp.block.shared.write(address(warp)[: count * _SQUARE], rows)

    return run


TABLE["ldmatrix"], TABLE["stmatrix"] = _ldmatrix, _stmatrix


# -- products of a warp ------------------------------------------------------------------------------------------------


def _shape(source: Instruction) -> tuple[int, int, int]:
    found = next(m for m in (re.fullmatch(r"m(\d+)n(\d+)k(\d+)", p) for p in source.parts) if m)
    return int(found[1]), int(found[2]), int(found[3])


def fragment(words: Sequence[Array], kind: str, rows: int) -> Array:
    """A matrix of `rows` rows of which threads have words: eight rows by four words at a time, all rows first."""
    blocks = rows // 8
    columns = [
        np.concatenate([_elements(w, kind).reshape(8, -1) for w in words[i : i + blocks]])
        for i in range(0, len(words), blocks)
    ]
    return np.concatenate(columns, axis=1)


def _mma(d: Decoder, source: Instruction) -> Run:
    rows, columns, _ = _shape(source)
    kinds = [p for p in source.parts if p in DTYPES or p in _SMALL]
    puts = [d.write(t) for t in d.vector(source.operands[0])]
    left, right = ([d.read(t, "b32") for t in d.vector(o)] for o in source.operands[1:3])
    if kinds[0] != "f32" or kinds[3] != "f32":
        raise NotImplementedError(source.name)
    added = [d.read(t, "f32") for t in d.vector(source.operands[3])]

    def run(warp: Warp, mask: Array) -> None:
        warp.need_all(mask)
        a = fragment([r(warp) for r in left], kinds[1], rows)
        b = fragment([r(warp) for r in right], kinds[2], columns)
        product = a @ b.T
        for number, (put, read) in enumerate(zip(puts, added, strict=True)):
            mine = product[_ROW + 8 * (number // 2), _COLUMN + number % 2]
            put(warp, (read(warp).astype(np.float64) + mine).astype(np.float32), mask)

    return run


TABLE["mma"] = _mma


# -- products of four warps --------------------------------------------------------------------------------------------

_SWIZZLES = {0: 0, 1: 3, 2: 2, 3: 1}  # code of the descriptor -> bits that are mixed


def swizzled(addresses: Array, bits: int) -> Array:
    """Where the copy engine and the tensor cores put the bytes of these addresses: 16-byte pieces are permuted."""
    return addresses ^ ((addresses >> 7 & ((1 << bits) - 1)) << 4) if bits else addresses


def described(memory: SharedMemory, descriptor: int, lines: int, depth: int, size: int, across: bool) -> Array:
    """The bytes of the matrix of a descriptor: `lines` x `depth` elements of `size` bytes. With `across` neighbours in
    memory are of different lines."""
    start, leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    bits = _SWIZZLES[descriptor >> 62 & 3]
    if not bits:
        raise NotImplementedError("matrices that are not swizzled")
    width = 16 << bits
    line, inner = np.meshgrid(np.arange(lines), np.arange(depth), indexing="ij")
    if across:
        each = width // size
        place = line // each * leading + inner // 8 * stride + inner % 8 * width + line % each * size
    else:
        place = line // 8 * stride + line % 8 * width + inner * size
        if depth * size > width:
            raise EmulationError("a line of the operand is longer than its pattern")
    addresses = swizzled(start + place, bits)
    return memory.read(addresses.reshape(-1), size).reshape(lines, depth, size)


def _matrix(memory: SharedMemory, descriptor: int, shape: tuple[int, int], kind: str, across: bool) -> Array:
    dtype = _dtype(kind)
    found = described(memory, descriptor, *shape, dtype.itemsize, across)
    values = np.ascontiguousarray(found).view(dtype)[..., 0]
    return (to_tf32(values) if kind == "tf32" else values).astype(np.float64)


def _wgmma(d: Decoder, source: Instruction) -> Run:
    if source.parts[1] in ("fence", "commit_group", "wait_group"):
        return lambda warp, mask: warp.need_all(mask)
    _, columns, depth = _shape(source)
    kinds = [p for p in source.parts if p in DTYPES or p in _SMALL]
    if kinds[0] != "f32":
        raise NotImplementedError(source.name)
    sums = d.vector(source.operands[0])
    puts, reads = [d.write(t) for t in sums], [d.read(t, "f32") for t in sums]
    in_registers = source.operands[1].startswith("{")
    left = [d.read(t, "b32" if in_registers else "b64") for t in d.vector(source.operands[1])]
    right = d.read(source.operands[2], "b64")
    adds, *rest = source.operands[3:]
    keeps = d.read(adds, "pred")
    signs, turned = [int(v) for v in rest[:2]], [int(v) for v in rest[2:]]
    across = (0, *turned, 0)[:2] if in_registers else (*turned, 0, 0)[:2]

    def run(warp: Warp, mask: Array) -> None:
        warp.need_all(mask)
        memory = warp.block.shared
        if in_registers:
            a = fragment([r(warp) for r in left], kinds[1], 16)
        else:
            whole = _matrix(memory, _one(left[0], warp), (64, depth), kinds[1], bool(across[0]))
            a = whole[16 * (warp.number % 4) : 16 * (warp.number % 4) + 16]
        b = _matrix(memory, _one(right, warp), (columns, depth), kinds[2], bool(across[1]))
        product = (signs[0] * signs[1]) * (a @ b.T)
        kept = keeps(warp)
        for number, (put, read) in enumerate(zip(puts, reads, strict=True)):
            mine = product[_ROW + 8 * (number // 2 % 2), _COLUMN + number % 2 + 8 * (number // 4)]
            before = np.where(kept, read(warp).astype(np.float64), 0.0)
            put(warp, (before + mine).astype(np.float32), mask)

    return run


def _one(read: Read, warp: Warp) -> int:
    values = np.unique(read(warp))
    if len(values) != 1:
        raise EmulationError("threads of a warp have different descriptors")
    return int(values[0])


TABLE["wgmma"] = _wgmma
