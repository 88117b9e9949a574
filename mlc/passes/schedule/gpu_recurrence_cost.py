"""Choosing how the threads of a GPU share a recurrent layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from mlir import ir

from mlc.kernels.common.recurrent_cell import Layer, layer_of
from mlc.kernels.nvidia.recurrence import RecurrenceSchedule
from mlc.kernels.nvidia.recurrent_operands import COLUMNS, PIECE, Division
from mlc.kernels.nvidia.threads import WARP
from mlc.passes.schedule.gpu_shapes import shape_of
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

MOST_WARPS = 16
MOST_CLUSTER = 8  # blocks: more are not to be had everywhere
FOUR_WARPS = 4 * WARP  # whose registers are given out together
MOST_REGISTERS, GRAIN = 255, 8  # of a thread, and how many it gets at a time
ADDRESSES = 56  # registers for where things are, and for what a cell is computed with
FRAGMENT = 8  # registers of a piece of a tile's rows
LOOP = 16  # more of them for a loop over pieces
STREAMED = 6  # registers of a state while weights are read: its numbers, an input, and where these are
# Clocks of an H200, as they fit what layers of 64 to 512 hidden elements took alone and in clusters.
STEP = 150  # what a step takes in any case,
CLUSTER_STEP, CLUSTER_UNIT, CLUSTER_BLOCK = 650, 3, 20  # and in a cluster for all, each hidden element and each block
FUNCTIONS, AT_A_TIME = {"lstm": 10, "gru": 6, "tanh": 2, "relu": 0}, 16  # of a cell, and of a multiprocessor
BYTES, NEAR_BYTES = 40, 115  # of weights from the cache, and from shared memory
PRODUCT = 6.4  # of 16 rows and 8 columns, 32 bytes deep, by a quarter of a multiprocessor


def choose_recurrence(root: ir.Operation, target: NvidiaTarget, precision: str) -> Schedule:
    """The schedule of an `mlc.recurrence`: what takes the fewest clocks."""
    layer = layer_of(root)
    element = str(layer.recurrence.type.element_type)
    if element == "f32":
        if precision != "tf32":
            raise ValueError(f"recurrent weights of f32 have no GPU kernel with precision {precision}")
        element = "tf32"
    found = list(_candidates(layer, element, target))
    return _fields(min(found, key=lambda s: _clocks(layer, s, target)))


def _fields(made: RecurrenceSchedule) -> Schedule:
    return {"template": "recurrence", **asdict(made), "blocks": 1}


def _candidates(layer: Layer, element: str, target: NvidiaTarget) -> Iterator[RecurrenceSchedule]:
    """Blocks alone and in clusters, of those that keep all weights in registers those of the most threads."""
    clusters = [1 << n for n in range(MOST_CLUSTER.bit_length())] if target.has_clusters else [1]
    for cluster in clusters:
        if layer.hidden % (cluster * Division(layer, WARP).units):
            continue
        made = [_made(layer, element, n, cluster, target) for n in _sizes(Division(layer, WARP, cluster))]
        whole = [s for s in made if s.kept == Division(layer, s.threads).pieces]
        yield (whole or made)[0]


def _sizes(of_warp: Division) -> list[int]:
    """Threads of blocks, the largest first, whose warps all have as many hidden elements, or nearly so; `of_warp` is a
    division among one."""
    least = -(-of_warp.shares // MOST_WARPS)
    return list(dict.fromkeys(WARP * -(-of_warp.shares // times) for times in range(least, 4 * least + 1)))


def _made(layer: Layer, element: str, threads: int, cluster: int, target: NvidiaTarget) -> RecurrenceSchedule:
    """The schedule that keeps as many pieces of the weights in registers as there is room for, beside the sums, the
    states and their inputs: all, or else some beside one that is multiplied, and if possible one that is read ahead and
    the inputs of the next step."""
    parts, room = Division(layer, threads, cluster), _room(threads, target)
    states, tiles = 2 * parts.times * parts.halves, parts.times * parts.tiles
    kept, ahead, near = parts.pieces, 0, 0
    inputs = states * (2 + 2 * parts.layer.gates)  # of this step and of the next
    if tiles * FRAGMENT * parts.row_bytes > (room - 4 * tiles - inputs) * PIECE:
        both = [(room - LOOP - 4 * tiles - others) // (tiles * FRAGMENT) for others in (inputs, states * STREAMED)]
        ahead = int(both[0] >= 2)
        kept = max(0, min(both[0] - 2 if ahead else both[1] - 1, parts.whole))
        shared = target.shared_memory_per_block - 2 * parts.copy_bytes
        near = max(0, min(parts.whole - kept, shared // parts.piece_bytes))
    return RecurrenceSchedule(element, kept, ahead, threads, threads, cluster, near)


def _room(threads: int, target: NvidiaTarget) -> int:
    """Registers of a thread for weights, sums, states and inputs."""
    given = target.registers_per_sm // (-(-threads // FOUR_WARPS) * FOUR_WARPS)
    return min(MOST_REGISTERS, given // GRAIN * GRAIN) - ADDRESSES


def _clocks(layer: Layer, s: RecurrenceSchedule, target: NvidiaTarget) -> tuple[float, int]:
    """Of a step, for all blocks of the grid, and the blocks of a cluster."""
    batch = shape_of(layer.inputs.type)[1] or 1
    parts = Division(layer, s.threads, s.cluster)
    blocks = layer.directions * -(-batch // COLUMNS) * s.cluster
    states = 2 * parts.times * parts.halves * s.threads
    products = parts.times * parts.tiles * 2 * parts.pieces * -(-parts.warps // 4)
    streamed = (parts.pieces - s.kept - s.near) * parts.piece_bytes
    clocks = STEP + states * FUNCTIONS[layer.kind] / AT_A_TIME + products * PRODUCT
    clocks += streamed / BYTES + s.near * parts.piece_bytes / NEAR_BYTES
    if s.cluster > 1:
        clocks += CLUSTER_STEP + CLUSTER_UNIT * layer.hidden + CLUSTER_BLOCK * s.cluster
    return -(-blocks // target.sms) * clocks, s.cluster
