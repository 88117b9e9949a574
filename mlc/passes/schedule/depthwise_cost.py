"""Choosing tiles for depthwise convolutions on GPUs.

The model counts the instructions of a multiprocessor, what its threads load out of the caches, and how long one thread
takes by itself, which decides where there are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from mlir import ir

from mlc.kernels.nvidia.depthwise import Depthwise, DepthwiseSchedule, find_depthwise, images_of
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

WARP = 32
ACCESS, NARROWEST = 16, 4  # bytes of the widest access of a thread, and of the narrowest that pays
THREADS = 128
ASSUMED = 8  # images, where their number is known at run time only
ISSUED = 90  # instructions of threads in a clock of a multiprocessor
L1_BYTES = 64  # that a multiprocessor loads in a clock; a warp's load takes one at least
L2_BYTES = 40  # that it gets out of the L2 cache in a clock
LATENCY = 1200  # clocks until the first loads are there, and the results stored
EACH = 1.6  # clocks of an instruction of a thread that is alone
TAIL = 0.5  # how much of the time of a thread nothing hides
MOST_PRODUCTS = 640  # of a thread: its instructions are all written out
FEW_TAPS, PRODUCTS_OF_MANY = 25, 1400  # more taps want more pixels of a thread, which share what they load
REGISTERS = 200  # of a thread
OF_ADDRESSES = 40  # registers
REGISTER_FILE = 65536
CLOCK = 1.755e9


def choose_depthwise(root: ir.Operation, target: NvidiaTarget) -> Schedule | None:
    """The schedule of a depthwise convolution; None for other contractions."""
    found = ranked_depthwise(root, target)
    return found[0] if found else None


def ranked_depthwise(root: ir.Operation, target: NvidiaTarget) -> list[Schedule]:
    """The schedules of a depthwise convolution, the best first; none for other contractions."""
    conv = find_depthwise(root)
    if conv is None:
        return []
    found = sorted(_candidates(root, conv), key=lambda s: _clocks(s, root, conv, target))
    names = DepthwiseSchedule.__dataclass_fields__
    return [{"template": "depthwise", **{name: getattr(s, name) for name in names}} for s in found]


def _candidates(root: ir.Operation, conv: Depthwise) -> Iterator[DepthwiseSchedule]:
    """All tiles whose values fit into the registers of a thread."""
    _, height, width, channels = images_of(root.results[0].type.shape)
    widest, narrowest = (max(1, size // _bytes(root.operands[0])) for size in (ACCESS, NARROWEST))
    most = (MOST_PRODUCTS if prod(conv.taps) <= FEW_TAPS else PRODUCTS_OF_MANY) // prod(conv.taps)
    for lanes in (n for n in (8, 4, 2, 1) if n <= widest and channels % n == 0 and (n >= narrowest or channels % 2)):
        for rows in range(1, min(max(1, most // lanes), height) + 1):
            for columns in range(1, min(max(1, most // lanes // rows), width) + 1):
                needed = _registers(rows, columns, lanes, root, conv)
                if needed <= REGISTERS or rows * columns * lanes == 1:
                    blocks = REGISTER_FILE // (THREADS * max(needed, 64))
                    yield DepthwiseSchedule(lanes, rows, columns, THREADS, max(1, blocks))


def _bytes(value: ir.Value) -> int:
    return int(value.type.element_type.width) // 8


def _line(columns: int, conv: Depthwise) -> int:
    """Pixels of a line of the input that a tile reads."""
    across = conv.windows[1]
    return (columns - 1) * across.stride + (conv.taps[1] - 1) * max(1, across.dilation) + 1


def _lines(rows: int, conv: Depthwise) -> int:
    down = conv.windows[0]
    return min(rows * conv.taps[0], (rows - 1) * down.stride + (conv.taps[0] - 1) * max(1, down.dilation) + 1)


def _registers(rows: int, columns: int, lanes: int, root: ir.Operation, conv: Depthwise) -> int:
    """Accumulators, the pixels of a line, and the filter, or of many taps what a line of the input meets."""
    width, taps = _bytes(root.results[0]) // 4, prod(conv.taps)
    of_filter = taps if taps <= FEW_TAPS else min(rows, conv.taps[0]) * conv.taps[1]
    kept = rows * columns + min(columns * conv.taps[1], _line(columns, conv)) + of_filter
    return kept * lanes * width + OF_ADDRESSES


def _clocks(s: DepthwiseSchedule, root: ir.Operation, conv: Depthwise, target: NvidiaTarget) -> float:
    """Clocks that the convolution takes."""
    images, height, width, channels = images_of(root.results[0].type.shape)
    images = ASSUMED if root.results[0].type.is_dynamic_dim(0) else images
    threads = images * -(-height // s.rows) * -(-width // s.columns) * (channels // s.lanes)
    taps, tile, lines = prod(conv.taps), s.rows * s.columns, _lines(s.rows, conv)
    size, of_filter = _bytes(root.operands[0]), _bytes(root.operands[1])
    loads = lines * min(s.columns * conv.taps[1], _line(s.columns, conv))
    rounded = 0 if size == _bytes(root.results[0]) else 1
    instructions = s.lanes * (tile * (taps + 4) + rounded * (loads + taps)) + 4 * loads + 2 * taps + 6 * tile + 60
    each_sm = -(-threads // target.sms)
    loaded = loads * max(s.lanes * size, L1_BYTES / WARP) + taps * max(s.lanes * of_filter, L1_BYTES / WARP)
    far = s.lanes * size * tile * (lines / s.rows + 1)
    moved = images * channels * size * height * width * (prod(w.stride for w in conv.windows) + 1)
    memory = moved / target.memory_bandwidth * CLOCK
    alone = LATENCY + EACH * instructions
    throughput = max(each_sm * max(instructions / ISSUED, loaded / L1_BYTES, far / L2_BYTES), memory)
    return max(throughput, alone * -(-each_sm // (s.blocks * s.threads))) + TAIL * alone
