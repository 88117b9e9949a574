"""The instructions of Intel's matrix tiles (AMX) as LLVM's intrinsics, which choose registers and configure them.

A tile has up to 16 rows of up to 64 bytes. (Intel, "Architecture Instruction Set Extensions Programming Reference",
chapter 3; LLVM, "X86 AMX", `llvm/include/llvm/IR/IntrinsicsX86.td`.) LLVM lets a value of its type `x86_amx` have one
shape, and gives each register one shape per configuration: kernels that use whole tiles everywhere are configured once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, llvm, memref

from mlc.kernels.common.frame import Frame
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.intrinsics import intrinsic

ROWS = 16  # of a tile
LINE = 64  # bytes of a row

PRODUCTS = {"tdpbf16ps": 16, "tdpbssd": 8, "tdpbsud": 8, "tdpbusd": 8, "tdpbuud": 8}
"""Instructions that multiply tiles, and the bits of an element of their operands."""


@dataclass(frozen=True)
class Place:
    """Rows of a tile in memory: the first byte's address and the distance of rows in bytes, both of type index."""

    address: ir.Value
    stride: ir.Value


class Tiles:
    """Emits the instructions at the current insertion point. Tiles have rows of 64 bytes where nothing else is said."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        # LLVM makes calls of loops that copy or fill; around a call all tiles are stored, configured and loaded anew.
        calls = ("memcpy", "memmove", "memset")
        frame.func.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get(f"no-builtin-{n}") for n in calls])
        self._type = ir.Type.parse("!llvm.x86_amx")
        self._starts: dict[ir.Value, ir.Value] = {}

    def place(self, buffer: ir.Value, first: Scalar, stride: Scalar) -> Place:
        """Rows in `buffer`, a memref: the byte at which the first one begins, and how many bytes lie between two."""
        if buffer not in self._starts:
            with self.frame.prologue():
                self._starts[buffer] = memref.ExtractAlignedPointerAsIndexOp(buffer).result
        math, c = self.frame.math, self.frame.constants
        return Place(c.index(math.add(self._starts[buffer], first)), c.index(stride))

    def zero(self, rows: Scalar) -> ir.Value:
        """A tile of zeros."""
        return self._call("tilezero", [self._short(rows), self._short(LINE)], True)

    def load(self, rows: Scalar, place: Place, width: int = LINE) -> ir.Value:
        """A tile of `rows` of `width` bytes from memory."""
        return self._call("tileloadd64", [self._short(rows), self._short(width), *self._operands(place)], True)

    def store(self, rows: Scalar, place: Place, tile: ir.Value) -> None:
        """`tile`, of `rows`, to memory."""
        self._call("tilestored64", [self._short(rows), self._short(LINE), *self._operands(place), tile], False)

    def multiply(
        self, instruction: str, rows: Scalar, sums: ir.Value, a: ir.Value, b: ir.Value, width: int = LINE
    ) -> ir.Value:
        """`sums` and the products of `a`, of `rows` of `width` bytes, by `b`, whose rows are groups of the rows of a
        matrix, one for four of these bytes."""
        shape = [self._short(rows), self._short(LINE), self._short(width)]
        return self._call(instruction, [*shape, sums, a, b], True)

    def _operands(self, place: Place) -> list[ir.Value]:
        i64 = ir.IntegerType.get_signless(64)
        address, stride = arith.index_cast(i64, place.address), arith.index_cast(i64, place.stride)
        return [llvm.inttoptr(ir.Type.parse("!llvm.ptr"), address), stride]

    def _short(self, value: Scalar) -> ir.Value:
        i16 = ir.IntegerType.get_signless(16)
        return self.frame.constants.get(i16, value) if isinstance(value, int) else arith.index_cast(i16, value)

    def _call(self, name: str, operands: Sequence[ir.Value], has_result: bool) -> ir.Value | None:
        op = intrinsic(f"x86.{name}.internal", [self._type] if has_result else [], operands)
        return op.result if has_result else None
