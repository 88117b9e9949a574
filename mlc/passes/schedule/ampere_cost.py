"""Choosing tiles for contractions on the tensor cores of Ampere and later chips.

The model counts clocks of a multiprocessor, as `hopper_cost` does: of the products, of the copies out of the L2 cache,
of what warps read from shared memory, and of what a stage and a tile cost in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlir import ir

from mlc.kernels.common.frame import KernelSource
from mlc.kernels.nvidia.ampere.attention import AmpereAttentionSchedule
from mlc.kernels.nvidia.ampere.contraction import AmpereSchedule
from mlc.kernels.nvidia.tensor_cores.tiles import ROW
from mlc.kernels.nvidia.threads import WARP
from mlc.passes.schedule.matrices import Matrices, MatrixShape, exact_matrices_of, matrices_of
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

COPIED = 40  # bytes in a clock out of the L2 cache, with all multiprocessors at it
SHARED = 128  # bytes in a clock out of shared memory
EXACT_PRODUCTS = 128  # of f32 in a clock
EXACT_LOAD = 8.4  # clocks that a warp's load of 16 bytes a thread takes the units that multiply: fitted to 13 tiles
NARROW_EXACT = 64 * 32  # of a warp's tile, where addresses of windows, or another chip's code, leave fewer registers
WINDOW_ADDRESSES = 20  # registers of a thread for the addresses of windows, of a product that is exact
CLOCK = 1.5e9
STAGE = 350  # clocks that the barrier of a stage, and the first loads behind it, take a block that is alone
LATENCY = 1200  # clocks from the request of a stage until it is there
TILE = 2000  # clocks that a block takes before its first and after its last product
STORED = 24  # elements of a tile that the epilogue stores in a clock
RESERVED = 1024  # bytes of shared memory that the system keeps for every block
MOST_STAGES = 5
FEWEST_STAGES = 2
WIDEST = 4  # elements of a row of the result that a thread takes at a time
RASTER = 8
THREADS = 2048  # of a multiprocessor, at most
MOST_BLOCKS = 4
# Rows and columns of a block, and of each of its warps.
TILES = (
    (128, 256, 64, 64), (256, 128, 64, 64), (128, 128, 64, 64), (128, 128, 64, 32), (64, 256, 64, 64),
    (256, 64, 64, 64), (128, 64, 64, 32), (64, 128, 32, 64), (128, 64, 32, 32), (64, 128, 32, 32), (64, 64, 32, 32),
    (32, 128, 32, 32), (32, 64, 16, 32), (64, 32, 32, 16), (32, 32, 16, 16), (16, 128, 16, 32), (16, 64, 16, 16),
)  # fmt: skip


def choose_ampere(source: KernelSource, root: ir.Operation, target: NvidiaTarget, precision: str) -> Schedule | None:
    """The schedule of a contraction for the tensor cores of `mma.sync`; None when they cannot do it."""
    found = matrices_of(source, root, precision)
    return None if found is None or found.element == "f8" or found.shape.twins > 1 else _best(found, target)


def choose_exact(source: KernelSource, root: ir.Operation, target: NvidiaTarget) -> Schedule | None:
    """The schedule of a contraction of f32 that is multiplied exactly, in tiles; None for other ones and small ones."""
    found = exact_matrices_of(source, root)
    return None if found is None else _best(found, target)


def _best(found: Matrices, target: NvidiaTarget) -> Schedule:
    shape = found.shape
    more = WINDOW_ADDRESSES if found.element == "f32" and found.roles.windows else 0
    tiles = _candidates(found.element, shape.left_across, shape.right_across, min(found.lanes, WIDEST), target, more)
    if found.element == "f32" and (found.roles.windows or not target.has_wgmma):
        tiles = (s for s in tiles if s.warp_rows * s.warp_columns <= NARROW_EXACT)
    best = min(tiles, key=lambda s: _clocks(s, found.shape, target))
    fields = {name: getattr(best, name) for name in AmpereSchedule.__dataclass_fields__}
    schedule = {"template": "ampere_contraction", "group": best.threads, **fields}
    count = found.shape.tiles(best.tile_rows, best.tile_columns)
    is_alone = found.element == "f32" and fits_at_once(count, best, target)
    return {**schedule, "early": 0} if is_alone else schedule


def fits_at_once(tiles: int, s: AmpereSchedule | AmpereAttentionSchedule, target: NvidiaTarget) -> bool:
    """Do all tiles run at a time? Blocks of an early launch would be put beside each other where the launch in front
    leaves room, and the rest of the chip would idle when that is done: long ones, as exact products are, lose."""
    return tiles <= s.blocks * target.sms


def _candidates(
    element: str, left_across: bool, right_across: bool, lanes: int, target: NvidiaTarget, more: int
) -> Iterator[AmpereSchedule]:
    """All tiles that fit, with as many stages as fit with them and with the other blocks of a multiprocessor; a thread
    takes `more` registers than its tile says."""
    for rows, columns, warp_rows, warp_columns in TILES:
        threads = WARP * (rows // warp_rows) * (columns // warp_columns)
        whole = all(extent * 8 % threads == 0 for extent in (rows, columns))  # pieces of either tile for every thread
        if not whole or left_across and rows % 64 or right_across and columns % 64:
            continue
        made = AmpereSchedule(element, rows, columns, warp_rows, warp_columns, 0, RASTER, lanes, threads, 1)
        held = target.registers_per_sm // (threads * (_registers(made) + more))
        most = max(1, min(MOST_BLOCKS, held, THREADS // threads))
        for blocks in range(1, most + 1):
            room = (target.shared_memory_per_block + RESERVED) // blocks - RESERVED
            stages = min(MOST_STAGES, room // made.stage_bytes)
            ready = replace(made, stages=stages, blocks=blocks)
            if stages >= FEWEST_STAGES and ready.shared_bytes <= room:
                yield ready


def _registers(s: AmpereSchedule) -> int:
    """Registers of a thread: its accumulators, two steps' operands, addresses."""
    if s.element == "f32":
        return s.warp_rows * s.warp_columns // WARP + s.warp_rows // 2 + 56
    return s.warp_rows * s.warp_columns // WARP + (s.warp_rows + s.warp_columns) // 2 + 64


def _clocks(s: AmpereSchedule, shape: MatrixShape, target: NvidiaTarget) -> float:
    """Clocks that the contraction takes."""
    depth = ROW // s.bytes_each
    tiles, steps = shape.tiles(s.tile_rows, s.tile_columns), shape.steps(depth)
    each_sm = -(-tiles // target.sms)
    together = min(s.blocks, each_sm)
    products = s.tile_rows * s.tile_columns * depth * (s.bytes_each // 2) / target.products
    if s.element == "f32":
        loads = 8 / s.warp_rows + 4 / s.warp_columns  # for four products of a thread
        products = s.tile_rows * s.tile_columns * depth / EXACT_PRODUCTS * (1 + EXACT_LOAD / 4 * loads)
        if tiles < s.blocks * target.sms:  # those that fit beside each other are put there, others idle
            each_sm = max(each_sm, s.blocks)
    copied = (min(shape.rows, s.tile_rows) + s.tile_columns) * ROW / COPIED
    warps = s.threads // WARP
    loaded = 0.0 if s.element == "f32" else warps * (s.warp_rows + s.warp_columns) * ROW / SHARED
    idle = (STAGE + LATENCY / (s.stages - 1)) / together
    ends = (TILE + s.tile_rows * s.tile_columns / STORED) / together  # the others multiply meanwhile
    memory = shape.bytes(s.bytes_each) / target.memory_bandwidth * CLOCK
    return max(each_sm * (steps * max(products, copied, loaded, idle) + ends), memory)
