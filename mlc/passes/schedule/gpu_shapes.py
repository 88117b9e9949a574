"""What schedules of GPU kernels ask about extents and accesses."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.generics import operand_map

Extent = int | None  # None: known at run time only

ACCESS = 16  # bytes of the widest access of a thread
CACHED = 64 * 1024  # bytes that stay near a multiprocessor while other data pass
FEW = 16  # times as many elements as a tensor of which each is read often


def shape_of(type_: ir.RankedTensorType) -> list[Extent]:
    """The extents of a type."""
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def product_of(extents: Sequence[Extent]) -> int | None:
    """The product of extents that are all known."""
    return None if any(e is None for e in extents) else prod(e for e in extents if e is not None)


def at_least(extents: Sequence[Extent], assumed: int) -> int:
    """The product where it is known; else that of the known extents, but no less than `assumed`."""
    known = prod(e for e in extents if e is not None)
    return known if all(e is not None for e in extents) else max(known, assumed)


def bytes_of(value: ir.Value) -> int:
    """Bytes of an element."""
    return (value.type.element_type.width + 7) // 8


def widest_lanes(source: KernelSource, *, of_all: bool = False, of_inputs: bool = False) -> int:
    """Elements whose widest tensor fills one access; `of_inputs`: results are written one by one. What is smaller than
    the results by much, as the weights of a norm, comes from the cache by as many accesses as it takes, unless the
    widest `of_all` is asked for."""
    others = source.destinations if of_inputs else []
    read = [t for t in source.tensors if any(True for _ in t.uses) and t not in others]
    shapes = [shape_of(t.type) for t in source.tensors]
    most = [shape for shape in shapes if None in shape] or shapes
    counted = zip(source.tensors, shapes, strict=True)
    large = [t for t, shape in counted if t in read and (of_all or not any(_is_few(shape, other) for other in most))]
    large = large if of_inputs and large else [*large, *source.results]
    return max(1, ACCESS // max(bytes_of(t) for t in large))


def _is_few(shape: Sequence[Extent], other: Sequence[Extent]) -> bool:
    """Are the elements of a tensor few beside those of another one? Extents that only a run knows are taken for equal;
    where only the other one has such, few are those that stay in the cache."""
    count, most = (prod(e or 1 for e in extents) for extents in (shape, other))
    if None in other and None not in shape:
        return count * 4 <= CACHED
    return shape.count(None) <= other.count(None) and count * FEW <= most


def dividing(lanes: int, extents: Sequence[Extent]) -> int:
    """The largest power of two up to `lanes` that divides all `extents`; 1 when one is unknown."""
    while lanes > 1 and any(e is None or e % lanes for e in extents):
        lanes //= 2
    return lanes


def reduced_extents(op: ir.Operation) -> list[Extent]:
    """Extents of the reduction dimensions."""
    extents: dict[int, Extent] = {}
    for operand in range(len(op.operands)):
        shape = shape_of(op.operands[operand].type)
        for position, expr in enumerate(operand_map(op, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and extents.get(expr.position) is None:
                extents[expr.position] = shape[position]
    kinds = ["reduction" in str(t) for t in op.attributes["iterator_types"]]
    return [extents.get(d) for d, is_reduced in enumerate(kinds) if is_reduced]


def power_of_two(extent: int) -> int:
    """The smallest power of two that is not below `extent`."""
    return 1 << max(0, extent - 1).bit_length()
