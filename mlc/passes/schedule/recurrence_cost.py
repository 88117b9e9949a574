"""Choosing how the threads of a GPU share a recurrent layer."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product

from mlir import ir

from mlc.kernels.common.recurrent_cell import Layer, layer_of
from mlc.kernels.nvidia.recurrence import COLUMNS, PIECE, RecurrenceSchedule, division
from mlc.kernels.nvidia.threads import WARP
from mlc.passes.schedule.gpu_shapes import shape_of
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

MOST_WARPS = 16
FOUR_WARPS = 4 * WARP  # whose registers are given out together
MOST_REGISTERS, GRAIN = 255, 8  # of a thread, and how many it gets at a time
ADDRESSES = 56  # registers for where things are, and for what a cell is computed with
FRAGMENT = 8  # registers of a piece of a tile's rows
LOOP = 16  # more of them for a loop over pieces
STREAMED = 6  # registers of a state while weights are read: its numbers, an input, and where these are


def choose_recurrence(root: ir.Operation, target: NvidiaTarget, precision: str) -> Schedule:
    """The schedule of an `mlc.recurrence`: of the warps that the hidden elements divide among, as many as keep all of
    the weights in registers, or else the most, which keep what fits. Rows are those of one instruction, or of two where
    every multiprocessor has a block all the same."""
    layer = layer_of(root)
    element = str(layer.recurrence.type.element_type)
    if element == "f32":
        if precision != "tf32":
            raise ValueError(f"recurrent weights of f32 have no GPU kernel with precision {precision}")
        element = "tf32"
    batch, blocks = shape_of(layer.inputs.type)[1] or 1, _blocks(layer)
    has_many = layer.directions * -(-batch // (2 * COLUMNS)) >= target.sms
    rows = [2 * COLUMNS, COLUMNS] if has_many else [COLUMNS]
    room = {threads: _room(threads, target) for threads in blocks}
    for count, threads in product(rows, blocks):
        if _keeps_all(layer, count, threads, room[threads]):
            pieces = division(layer, threads).pieces
            return _fields(RecurrenceSchedule(element, count, pieces, 0, threads, threads))
    threads = blocks[0]
    for count, ahead in product(rows, (1, 0)):
        kept = _kept(layer, count, threads, room[threads], ahead)
        if kept >= 0:
            return _fields(RecurrenceSchedule(element, count, kept, ahead, threads, threads))
    return _fields(RecurrenceSchedule(element, COLUMNS, 0, 0, threads, threads))


def _fields(made: RecurrenceSchedule) -> Schedule:
    return {"template": "recurrence", **asdict(made), "blocks": 1}


def _blocks(layer: Layer) -> list[int]:
    """Threads of blocks, the largest first, whose warps all have as many hidden elements, or nearly so."""
    shares = division(layer, WARP).shares
    least = -(-shares // MOST_WARPS)
    return list(dict.fromkeys(WARP * -(-shares // times) for times in range(least, 4 * least + 1)))


def _room(threads: int, target: NvidiaTarget) -> int:
    """Registers of a thread for weights, sums, states and inputs."""
    given = target.registers_per_sm // (-(-threads // FOUR_WARPS) * FOUR_WARPS)
    return min(MOST_REGISTERS, given // GRAIN * GRAIN) - ADDRESSES


def _keeps_all(layer: Layer, rows: int, threads: int, room: int) -> bool:
    """Is there room for all weights, and for what gates get from the input in a step and the next?"""
    parts, groups = division(layer, threads), rows // COLUMNS
    states, tiles = 2 * parts.times * parts.halves * groups, parts.times * parts.tiles
    others = 4 * tiles * groups + states * (2 + 2 * parts.gates)
    return tiles * FRAGMENT * parts.row_bytes <= (room - others) * PIECE


def _kept(layer: Layer, rows: int, threads: int, room: int, ahead: int) -> int:
    """Pieces of the weights that there is room for beside one that is multiplied, and one that is read `ahead`; fewer
    than none where there is not enough for these."""
    parts, groups = division(layer, threads), rows // COLUMNS
    states, tiles = 2 * parts.times * parts.halves * groups, parts.times * parts.tiles
    left = room - LOOP - 4 * tiles * groups - states * STREAMED
    return min(left // (tiles * FRAGMENT) - 1 - ahead, parts.whole)
