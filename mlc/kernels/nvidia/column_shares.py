"""How threads share columns that they keep in registers, and which columns they can keep.

A block reads `width` accesses of `lanes` elements of each of its rows, and `split` of its threads share each column.
What that needs must be in its registers at a time; what is too long for that is reduced by `columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from mlir import ir

from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_identity, is_reduction
from mlc.kernels.nvidia.combinations import combination
from mlc.kernels.nvidia.threads import WARP

ACCESS = 16  # bytes of the widest access of a thread
LINE = 128  # bytes of a cache line: what neighbouring threads read of a row
SECTOR = 32  # bytes of which memory reads no less
MOST_WARPS = 16  # of a block: each of them has a part of all columns for each reduction
ALONE = 128, 256  # threads of a block that share nothing
FEW_THREADS = 128  # of a block whose warps share nothing
KEPT = 64  # registers that a thread keeps of a column that others share,
KEPT_FEW, FEW_WARPS = 96, 8  # where a block is of few warps, which have more registers each
LEAST = 16  # elements of a thread whose warp is not alone with its columns: fewer are not worth meeting for
KEPT_ALONE = 48  # the same of one that it has to itself


@dataclass(frozen=True)
class ColumnShares:
    """`width` threads side by side with `lanes` columns each; `split` threads, with up to `kept` elements of each of
    these, share a column. They are all `threads` of a block, or a warp; those with columns of their own are as many as
    there are."""

    lanes: int
    width: int
    split: int
    kept: int
    threads: int


def all_shares(depth: int, inner: Sequence[int], size: int, tensors: int = 1) -> list[ColumnShares]:
    """The ways to keep columns of `depth` elements of `size` bytes in each of `tensors`, where the extents `inner` lie
    side by side; none for those that are too long."""
    found, registers = [], tensors * max(1, size // 4)
    widest, *others = _lanes(inner, size)
    for lanes in (widest, *others[:1]):
        there = prod(inner) // lanes
        most_warps = MOST_WARPS if lanes == widest else 1
        if depth * lanes * registers <= KEPT_ALONE:
            found += [ColumnShares(lanes, there, 1, depth, threads) for threads in ALONE]
        for width, warps in product(_widths(lanes * size, there), range(1, most_warps + 1)):
            split = warps * WARP // width
            kept = -(-depth // split)
            most = KEPT_FEW if 1 < warps <= FEW_WARPS else KEPT
            is_much = warps == 1 or kept * lanes >= LEAST
            if split > 1 and kept * lanes * registers <= most and is_much:
                found.append(ColumnShares(lanes, width, split, kept, FEW_THREADS if warps == 1 else warps * WARP))
    return found


def some_shares(inner: Sequence[int], size: int, tensors: int) -> ColumnShares:
    """How as much as fits of columns that are too long is kept."""
    lanes = _lanes(inner, size)[0]
    width = max(1, SECTOR // (lanes * size))
    threads = MOST_WARPS * WARP
    kept = max(1, KEPT // (lanes * tensors * max(1, size // 4)))
    return ColumnShares(lanes, width, threads // width, kept, threads)


def _widths(access: int, there: int) -> list[int]:
    """How many accesses of so many bytes threads read side by side where the columns are as long as `there` of them: a
    sector up to a line."""
    most = min(WARP, max(1, LINE // access), _power_of_two(there))
    least = min(most, max(1, SECTOR // access))
    return [1 << n for n in range(least.bit_length() - 1, most.bit_length())]


def _lanes(inner: Sequence[int], size: int) -> list[int]:
    """Elements of an access that divide the last extent, the most first."""
    widest = max(1, ACCESS // size)
    while inner[-1] % widest:
        widest //= 2
    return [1 << n for n in reversed(range(widest.bit_length()))]


def _power_of_two(count: int) -> int:
    """The smallest power of two that is not below `count`."""
    return 1 << max(0, count - 1).bit_length()


def keeps_columns(op: ir.Operation) -> bool:
    """Do threads keep the columns of a reduction of one tensor across memory?"""
    type_, kinds = op.operands[0].type, ["reduction" in str(t) for t in op.attributes["iterator_types"]]
    extents, first = list(type_.shape), kinds.index(True)
    last = first + kinds.count(True)
    if combination(op) is None or not isinstance(type_.element_type, ir.FloatType):
        return False
    if any(e <= 0 for e in extents[first:]) or last == len(extents):
        return False
    return bool(all_shares(prod(extents[first:last]), extents[last:], _size(op.operands[0])))


def _size(value: ir.Value) -> int:
    """Bytes of an element where it is read from memory: the least of what `value` is computed from point by point, so
    that all reductions of a pattern get one answer."""
    found, work, seen = 8, [value], {value}
    while work:
        now = work.pop()
        op = defining_op(now)
        if op is None or op.name != "linalg.generic" or is_reduction(op):
            found = min(found, int((now.type.element_type.width + 7) // 8))
            continue
        inputs = list(op.operands)[: len(op.operands) - len(op.results)]
        same = [v for i, v in enumerate(inputs) if is_identity(op, i) and v not in seen]
        seen.update(same)
        work.extend(same)
    return found
