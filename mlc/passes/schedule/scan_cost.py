"""Choosing how the threads of a GPU share the lines of a scan."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.nvidia.scan import PART, BlockScanSchedule
from mlc.passes.schedule.gpu_shapes import ACCESS, Extent, dividing, power_of_two, product_of, shape_of

Schedule = dict[str, int | str]

WARP = 32
THREADS = 256  # of a block whose groups are warps or parts of them
MOST_THREADS = 1024
MOST_ACROSS = 512  # of a block that goes along columns, each with several of them in registers
MULTIPROCESSORS = 132
ELEMENTS = 64  # bytes, as they are combined, that a thread has in a chunk
MOST_ELEMENTS = 16
MOST_LANES = 4  # columns of a thread, of each of which it knows what came before
LARGE = 512  # threads of a multiprocessor that have two chunks in registers, or what all warps have found for columns
SECTOR, LINE = 32, 128  # bytes that memory gives at once at least, and at best
SHORT = 8  # vectors of a line that is better covered by narrower ones than by others' halves
ASSUMED = 1 << 16  # elements of a line, where only a run knows


def choose_scan(root: ir.Operation) -> Schedule:
    """The schedule of an `mlc.scan`."""
    type_, axis = root.operands[0].type, ir.IntegerAttr(root.attributes["axis"]).value
    shape, each = shape_of(type_), (type_.element_type.width + 7) // 8
    outer, extent, inner = product_of(shape[:axis]), shape[axis], product_of(shape[axis + 1 :])
    if PART in root.attributes and extent is not None:  # lines of their own
        whole, extent = extent, ir.IntegerAttr(root.attributes[PART]).value
        outer = None if outer is None else outer * -(-whole // extent)
    own = min(MOST_ELEMENTS, ELEMENTS // max(each, 4))
    chosen = _row(outer, extent, each, own) if inner == 1 else _columns(outer, extent, inner, each, own)
    schedule: Schedule = {"template": "scan", **vars(chosen)}
    is_large = chosen.ahead or (chosen.width and chosen.group > WARP)
    return {**schedule, "blocks": max(1, LARGE // chosen.threads)} if is_large else schedule


def _row(outer: Extent, extent: Extent, each: int, own: int) -> BlockScanSchedule:
    """Contiguous lines: as many threads as have `own` elements, and more where there are few lines."""
    lanes = min(ACCESS // each, MOST_ELEMENTS)
    length = ASSUMED if extent is None else extent
    if length < SHORT * lanes:
        lanes = dividing(lanes, [extent])
    slots = -(-length // lanes)
    if slots <= WARP:
        return BlockScanSchedule(THREADS, power_of_two(slots), lanes, 1)
    accesses = max(1, own // lanes)
    if outer is not None and outer < 2 * MULTIPROCESSORS:
        accesses = min(accesses, power_of_two(-(-slots // MOST_THREADS)))
    group = min(MOST_THREADS, power_of_two(-(-slots // accesses)))
    if group <= WARP:
        return BlockScanSchedule(THREADS, WARP, lanes, power_of_two(-(-slots // WARP)))
    if group * accesses >= slots:
        return BlockScanSchedule(group, group, lanes, accesses)
    return BlockScanSchedule(group, group, lanes, max(1, accesses // 2), ahead=1)


def _columns(outer: Extent, extent: Extent, inner: Extent, each: int, own: int) -> BlockScanSchedule:
    """Lines across memory: blocks as wide as lines of the memory, or narrower where there are few columns; as many
    threads along the lines as have elements."""
    length, columns = ASSUMED if extent is None else extent, ASSUMED if inner is None else inner
    lanes = dividing(min(ACCESS // each, MOST_LANES), [inner])

    def blocks(wide: int) -> int:
        return (outer or 1) * -(-columns * each // wide)

    wide = next((w for w in (LINE, LINE // 2) if blocks(w) >= MULTIPROCESSORS // 2), SECTOR)
    width = min(WARP, power_of_two(-(-columns // lanes)), max(1, wide // (lanes * each)))
    most = MOST_ACROSS if blocks(wide) < 4 * MULTIPROCESSORS else THREADS
    accesses = max(1, own // lanes)
    group = max(WARP, min(most, width * power_of_two(-(-length // accesses))))
    along = group // width
    is_whole = along * accesses >= length
    accesses = min(accesses, power_of_two(-(-length // along))) if is_whole else max(1, accesses // 2)
    return BlockScanSchedule(group if group > WARP else THREADS, group, lanes, accesses, width, ahead=int(not is_whole))
