"""Decide which lines of running sums and of selections fall into parts: `mlc.part` on those, the elements of a part.

```mlir
%s = mlc.scan sum %x {axis = 0 : i64} : tensor<1000000xf32>  →  … {axis = 0 : i64, mlc.part = 5000 : i64} …
```
A GPU has a block for each line, or for neighbouring ones: with few lines most of it would be idle. Takes what has few
and long lines of known extents. A scan in parts is three launches that read everything twice: a line's block must take
longer than these. Parts of a selection need enough elements to be worth what their block does whatever their number,
and to leave out most of them; each has a multiprocessor to itself. `mlc-split-scans` and `mlc-split-selections` obey.
Measured: bench/results/2026-11-24-h200.md.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from mlc.kernels.nvidia.block_select import takes
from mlc.passes.adaptor import DYNAMIC
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import host_blocks

PART = "mlc.part"

MULTIPROCESSORS = 132
MOST_BLOCKS = 2 * MULTIPROCESSORS  # of all parts of a scan together
LAUNCHES = 1700  # nanoseconds that two more kernels take
SCAN, SCAN_BYTE = 0.04, 0.02  # nanoseconds of a block for an element, and for each of its bytes
FLOW = 4200  # bytes that memory gives or takes in a nanosecond
PASSES = 3  # of a scan in parts over its elements: two to read them and one to write them
WIDE = 8  # bytes of elements that fill a multiprocessor's registers with one block
SCANNED = 4096  # elements of a part that are worth a block
LINE = 128  # bytes across a scan that a block has
ACCESS = 16  # bytes of a thread's widest access

MOST_SELECTING = MULTIPROCESSORS  # blocks of all parts of a selection together
SELECTED = 4096  # elements of a part that are worth a block
LEFT_OUT = 8  # times as many elements as the best of all parts are


class PlanParts(Pass):
    """Decide which lines of running sums and of selections fall into parts."""

    statistics = {"planned": "scans and selections whose lines will fall into parts"}

    def run(self, root: ir.OpView) -> None:
        choices = {"mlc.scan": _scanned, "mlc.topk": _selected}
        for block in host_blocks(root.operation):
            for view in block.operations:
                op = view.operation
                part = choices[op.name](op) if op.name in choices and _is_whole(op) else None
                if part is not None:
                    op.attributes[PART] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), part)
                    self.count("planned", 1)


def _is_whole(op: ir.Operation) -> bool:
    """Are the extents of `op` known, and its lines not parts already?"""
    shape = list(op.operands[0].type.shape)
    return "part" not in op.attributes and DYNAMIC not in shape and 0 not in shape


def _lines(op: ir.Operation) -> tuple[int, int, int]:
    """`length` elements of `outer` times `inner` lines, of which those of `inner` lie side by side, as (outer, length,
    inner)."""
    shape, axis = list(op.operands[0].type.shape), ir.IntegerAttr(op.attributes["axis"]).value
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def _scanned(op: ir.Operation) -> int | None:
    """The elements of a part of an `mlc.scan`; None where blocks have whole lines."""
    (outer, length, inner), element = _lines(op), op.operands[0].type.element_type
    if element.width < 8:
        return None
    each = element.width // 8
    across = min(inner, LINE // each)
    blocks = outer * -(-inner // across)
    size = outer * length * inner * each
    if length * across * (SCAN + SCAN_BYTE * each) < LAUNCHES + PASSES * size / FLOW:
        return None
    most = MOST_BLOCKS if each < WIDE else MULTIPROCESSORS
    most = min(most // blocks, length * across // SCANNED)
    if most < 2:
        return None
    return _part(length, most, ACCESS // each if inner == 1 else 1)


def _part(length: int, most: int, multiple: int) -> int:
    """The elements of a part where there are at least half of the `most` parts: of equal ones, if possible, of whole
    accesses of `multiple` elements."""

    def of(parts: int) -> int:
        return -(-length // (parts * multiple)) * multiple

    best = max(range(max(2, -(-most // 2)), most + 1), key=lambda n: (length % of(n) == 0, n))
    return of(best)


def _selected(op: ir.Operation) -> int | None:
    """The elements of a part of an `mlc.topk`; None where a block, or a thread, has a whole line."""
    outer, length, inner = _lines(op)
    if not takes(op) or len(op.operands) > 2:
        return None
    count = list(op.results[0].type.shape)[ir.IntegerAttr(op.attributes["axis"]).value]
    parts = min(MOST_SELECTING // (outer * inner), length // SELECTED, length // (LEFT_OUT * count))
    if parts < 2:
        return None
    part = -(-length // parts)
    return part if length - (-(-length // part) - 1) * part >= count else None
