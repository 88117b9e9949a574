"""Choosing how many sequences of a recurrent layer a work item of CPUs has."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.recurrent_cell import Layer, layer_of
from mlc.kernels.cpu.tiles import LINE, ROWS
from mlc.passes.adaptor import DYNAMIC
from mlc.passes.schedule.extents import VectorUnit

MOST_ROWS = 8
ASSUMED = 4  # rows of a work item where only a run knows how many there are
STREAM = 2  # rows in whose time a work item reads the weights
TILE_STEP = LINE * 8 // 16  # elements of bf16 in a row of a matrix tile
TILE_STREAM = 8  # rows of a tile in whose time a work item reads the weights
THREADS = 2  # that work items should be even for at least


def choose_recurrence(root: ir.Operation, unit: VectorUnit) -> dict[str, int | str]:
    """The schedule of an `mlc.recurrence`."""
    layer = layer_of(root)
    lanes = unit.lanes(layer.inputs.type.element_type)
    given: dict[str, int | str] = {"template": "recurrence", "lanes": lanes, "packed_operand": 1, "panel": lanes}
    if layer.recurrence.type.element_type == layer.inputs.type.element_type:
        return {**given, "rows": _rows(layer, unit.registers), "group": 1}
    if unit.bf16_tiles:
        tiles: dict[str, int | str] = {"template": "tile_recurrence", "panel": ROWS, "group": TILE_STEP}
        return {**given, **tiles, "rows": _even(layer, ROWS, TILE_STREAM)}
    return {**given, "rows": _rows(layer, unit.registers), "group": 2}


def _rows(layer: Layer, registers: int) -> int:
    """As many as have their sums in registers, beside the weights of an element and a state (where there are few
    registers multiply-adds take the weights from memory), and as make work items that threads finish together."""
    beside = layer.gates + 1 if registers >= 32 else 3
    return _even(layer, max(1, min(MOST_ROWS, (registers - beside) // layer.gates)), STREAM)


def _even(layer: Layer, most: int, stream: int) -> int:
    """Up to `most` rows of a work item, so many that threads finish soonest. Each work item takes as long for its
    weights as for so many rows."""
    batch = layer.inputs.type.shape[1]
    if batch == DYNAMIC:
        return min(most, ASSUMED if most <= MOST_ROWS else ROWS)

    def time(rows: int) -> int:
        turns = -(-layer.directions * -(-batch // rows) // THREADS)
        return turns * (rows + stream)

    return min(range(1, most + 1), key=lambda rows: (time(rows), rows))
