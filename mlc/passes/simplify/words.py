"""Integers of few bits in words of 32, as `mlc.unpack` takes them apart, and rows of floats as integers with scales."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.passes.adaptor import Size, element
from mlc.passes.decompose import build as b

WORD, BYTES = 32, 4  # bits of a word, and its bytes
_LARGEST = 127  # of a code of eight bits with a sign


def packed(codes: ir.Value, bits: int) -> ir.Value:
    """Codes `[panels, K, columns]` of `bits` bits, without a sign, as words `[panels, K * bits / 32, columns, 4]`."""
    panels, depth, columns = codes.type.shape
    shifts = 8 // bits
    parts = b.reshape(codes, [panels, depth // (BYTES * shifts), shifts, BYTES, columns])
    words: ir.Value | None = None
    for number in range(shifts):
        part = b.slice_dim(parts, 2, number, 1)
        part = b.binary("shl", part, number * bits) if number else part
        words = part if words is None else b.binary("or", words, part)
    assert words is not None
    return b.transpose(b.reshape(words, [panels, depth // (BYTES * shifts), BYTES, columns]), [0, 1, 3, 2])


def unpacked(words: ir.Value, bits: int, attributes: dict[str, ir.Attribute]) -> ir.Value:
    """What `packed` has packed."""
    return b.operation("unpack", [words], {"bits": b.integer(bits), **attributes})[0]


def coded_rows(x: ir.Value, rows: Sequence[Size], block: int) -> tuple[ir.Value, ir.Value]:
    """Rows `[*rows, K]` as codes of eight bits with a sign, and the scale of every `block` of a row: its largest
    magnitude is 127, and numbers are rounded to nearest even. (onnxruntime, `MatMulNBits` of accuracy level 4.)
    """
    depth = x.type.shape[-1]
    parts, axis = b.reshape(x, [*rows, depth // block, block]), len(rows) + 1
    largest = b.reduce("max", b.unary("abs", parts), [axis], keepdims=False)
    nothing = b.compare("eq", largest, 0)
    factor = b.select(nothing, b.like(largest, 0), b.div(b.scalar(_LARGEST, element(x)), largest))
    scaled = b.mul(parts, b.reshape(factor, [*rows, depth // block, 1]))
    codes = b.cast(b.unary("round", scaled), ir.IntegerType.get_signless(8), saturate=True)
    return b.reshape(codes, [*rows, depth]), b.mul(largest, 1 / _LARGEST)
