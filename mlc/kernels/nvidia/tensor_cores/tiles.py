"""Tiles of operands in shared memory, as tensor cores read them.

A tile of an operand is rows of at most 128 bytes, swizzled in their width. It is either *along the sum* (a row per row
of the matrix, holding steps of the sum) or *across* (a row per step of the sum, holding up to 64 rows of the matrix;
wider tiles are several such blocks behind each other).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

ROW = 128  # bytes of a row of a tile
ROWS = 64  # of the accumulators of one instruction
INSTRUCTION = 32  # bytes of the sum that one instruction takes from each row
ELEMENT_BYTES = {"bf16": 2, "f16": 2, "tf32": 4, "f32": 4, "f8": 1}  # by what a schedule calls the type

FLOATS8 = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
"""Floats of eight bits that tensor cores multiply: the type, and its name in PTX."""


def element_name(tensor: ir.Value) -> str:
    """How PTX calls the elements of `tensor`."""
    name = str(tensor.type.element_type)
    return FLOATS8.get(name, name)


@dataclass(frozen=True)
class Tile:
    """A tile of an operand in shared memory: `rows` of its matrix, `element` the type's name, `bytes_each` its size. Of
    one across the sum that is `cut`, a copy takes such a part of the steps."""

    element: str
    bytes_each: int
    rows: int
    across: bool
    cut: int = 1

    @property
    def depth(self) -> int:
        """Steps of the sum in a tile."""
        return ROW // self.bytes_each

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory, which is the width of its swizzle."""
        return min(ROW, self.rows * self.bytes_each) if self.across else ROW

    @property
    def block(self) -> int:
        """Bytes from a block of a tile to the next: 64 rows of the matrix."""
        return self.depth * self.row_bytes if self.across else ROWS * ROW

    @property
    def size(self) -> int:
        """Bytes of the tile."""
        return self.rows * ROW

    @property
    def step(self) -> int:
        """Bytes from the data of one instruction to those of the next."""
        return INSTRUCTION // self.bytes_each * self.row_bytes if self.across else INSTRUCTION
