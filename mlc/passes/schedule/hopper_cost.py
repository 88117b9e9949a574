"""Choosing tiles for contractions on Hopper's tensor cores.

The model counts clocks of a multiprocessor: of the products, of the copies out of the L2 cache, and of what a tile
costs once. What decides on small shapes is how evenly the tiles go into the multiprocessors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from mlir import ir

from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import is_number, operand_map
from mlc.kernels.common.roles import Roles, roles_of
from mlc.kernels.nvidia.hopper.contraction import GROUP, HopperSchedule
from mlc.kernels.nvidia.hopper.operands import operands_of
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

PRODUCTS = 2048  # of bf16 in a clock of a multiprocessor
COPIED = 48  # bytes in a clock out of the L2 cache, with all multiprocessors at it
STEP = 130  # clocks that the barriers of a stage take at least
LATENCY = 1000  # clocks from the request of a stage until it is there
STORED = 24  # elements of a tile that the epilogue stores in a clock
MOST_STAGES = 12
FEWEST_STAGES = 3
ASSUMED = 512  # for an extent that is known at run time only
SMALLEST_SUM = 16
RESERVED = 1024  # bytes of shared memory that the system keeps for every block
RASTER = 8


@dataclass(frozen=True)
class _Shape:
    """A contraction in numbers: `outer` products of `rows` x `columns`, each a sum of `depth` terms for all `taps`."""

    rows: int
    columns: int
    depth: int
    outer: int
    taps: int = 1


def choose_hopper(source: KernelSource, root: ir.Operation, target: NvidiaTarget, precision: str) -> Schedule | None:
    """The schedule of a contraction for Hopper's tensor cores; None when they cannot do it."""
    element = _element(root, precision)
    if not target.has_wgmma or element is None or not _starts_at_zero(root):
        return None
    roles = roles_of(root, source.results)
    if roles is None or sum(is_contraction(op) for op in _operations(source)) != 1:
        return None
    size = 4 if element == "tf32" else 2
    operands = operands_of(source, root, roles)
    if operands is None or any(o.problem(size) is not None for o in operands):
        return None
    if element == "tf32" and any(o.across for o in operands):
        return None  # the tensor cores take f32 along the sum only
    shape = _shape(source, root, roles)
    if shape.depth < SMALLEST_SUM and not roles.taps:
        return None
    tiles = _candidates(element, operands[1].across, _lanes(source, roles), target)
    best = min(tiles, key=lambda s: _clocks(s, shape, target))
    names = HopperSchedule.__dataclass_fields__
    return {"template": "hopper_contraction", "group": best.threads, **{n: getattr(best, n) for n in names}}


def _operations(source: KernelSource) -> list[ir.Operation]:
    return [view.operation for view in source.block.operations]


def _element(root: ir.Operation, precision: str) -> str | None:
    """What the tensor cores multiply; None for other types."""
    types = {str(v.type.element_type) for v in list(root.operands)[:2]}
    if not isinstance(root.results[0].type.element_type, ir.F32Type) or len(types) != 1:
        return None
    found = types.pop()
    if found == "f32":
        return "tf32" if precision == "tf32" else None
    return found if found in ("bf16", "f16") else None


def _starts_at_zero(root: ir.Operation) -> bool:
    fill = defining_op(root.operands[2])
    return fill is not None and fill.name == "linalg.fill" and is_number(fill.operands[0], 0.0)


def _shape(source: KernelSource, root: ir.Operation, roles: Roles) -> _Shape:
    type_ = root.results[0].type
    extents = [ASSUMED if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]
    rows, columns, outer = (
        prod(extents[p] for p in roles.positions(dims)) for dims in (roles.rows, roles.columns, roles.outer)
    )
    summed = [ASSUMED if e is None else e for e in reduction_shape(root)]
    taps = len(roles.taps)
    return _Shape(rows, columns, prod(summed[taps:]), outer, prod(summed[:taps]))


def reduction_shape(root: ir.Operation) -> list[int | None]:
    """Extents of the dimensions that are summed over; None for those known at run time only."""
    extents: dict[int, int] = {}
    for operand in range(len(root.operands)):
        type_ = root.operands[operand].type
        for position, expr in enumerate(operand_map(root, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and not type_.is_dynamic_dim(position):
                extents[expr.position] = type_.get_dim_size(position)
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    return [extents.get(d) for d, is_reduced in enumerate(kinds) if is_reduced]


def _lanes(source: KernelSource, roles: Roles) -> int:
    """Elements of a row that a thread handles at a time: up to 16 bytes of f32."""
    type_ = source.results[0].type
    extents = [None if type_.is_dynamic_dim(p) else type_.get_dim_size(p) for p in roles.positions(roles.columns)]
    inner = None if None in extents else prod(e for e in extents if e is not None)
    return next(lanes for lanes in (4, 2, 1) if lanes == 1 or (inner is not None and inner % lanes == 0))


def _candidates(element: str, right_across: bool, lanes: int, target: NvidiaTarget) -> Iterator[HopperSchedule]:
    """All tiles that fit, with as many stages as fit with them."""
    for rows, consumers in ((64, 1), (128, 2), (192, 3), (256, 2)):
        for columns in (32, 64, 96, 128, 160, 192, 224, 256):
            accumulators = rows // 64 // consumers * columns // 2
            if accumulators > (128 if consumers < 3 else 48) or (right_across and columns % 64 and columns != 32):
                continue
            for blocks in (1, 2) if accumulators <= 64 and consumers == 1 else (1,):
                made = HopperSchedule(
                    element, rows, columns, 0, consumers, RASTER, lanes, blocks, target.sms, GROUP * (consumers + 1)
                )
                stages = _stages(made, target)
                if stages >= FEWEST_STAGES:
                    yield HopperSchedule(**{**made.__dict__, "stages": stages})


def _stages(s: HopperSchedule, target: NvidiaTarget) -> int:
    room = (target.shared_memory_per_block + RESERVED) // s.blocks - RESERVED - s.shared_bytes
    return min(MOST_STAGES, room // (s.stage_bytes + 16))


def _clocks(s: HopperSchedule, shape: _Shape, target: NvidiaTarget) -> float:
    """Clocks that the contraction takes."""
    tiles = -(-shape.rows // s.tile_rows) * -(-shape.columns // s.tile_columns) * shape.outer
    depth = 128 // s.bytes_each
    steps = shape.taps * -(-shape.depth // depth)
    products = s.tile_rows * s.tile_columns * depth * (s.bytes_each // 2) / PRODUCTS
    copied = s.stage_bytes / COPIED
    each_sm = -(-tiles // target.sms)
    together = min(s.blocks, each_sm)
    step = max(products, copied, STEP / together, LATENCY / (s.stages * together))
    each = steps * step + s.tile_rows * s.tile_columns / STORED / together
    return each_sm * each
