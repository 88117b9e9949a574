"""Reshapes as free views: `tensor.expand_shape` and `tensor.collapse_shape`."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import tensor

from mlc.passes.adaptor import DYNAMIC, Size, element, shape_of
from mlc.passes.lower.to_linalg.sizes import extent, product, sizes_of

Groups = list[list[int]]


def cast_to(value: ir.Value, type_: ir.Type) -> ir.Value:
    """`value` with more or less of its shape known; free."""
    return value if value.type == type_ else tensor.cast(type_, value)


def _reassociation(groups: Groups) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in g]) for g in groups])


def _static(sizes: Sequence[Size]) -> list[int]:
    return [s if isinstance(s, int) else DYNAMIC for s in sizes]


def collapse(value: ir.Value, groups: Groups) -> ir.Value:
    """Each group of neighbouring dimensions becomes one."""
    if len(groups) == value.type.rank:
        return value
    shape = shape_of(value)
    sizes = []
    for group in groups:
        parts = [shape[i] for i in group]
        sizes.append(DYNAMIC if DYNAMIC in parts else product(parts))
    type_ = ir.RankedTensorType.get(sizes, element(value))
    return tensor.CollapseShapeOp(type_, value, _reassociation(groups)).result


def expand(value: ir.Value, sizes: Sequence[Size], groups: Groups) -> ir.Value:
    """Each dimension becomes the group of `sizes` that its group names."""
    if len(sizes) == value.type.rank:
        return value
    statics = _static(sizes)
    source = [DYNAMIC if any(statics[i] == DYNAMIC for i in g) else product([statics[i] for i in g]) for g in groups]
    value = cast_to(value, ir.RankedTensorType.get(source, element(value)))
    type_ = ir.RankedTensorType.get(statics, element(value))
    dynamic = [s for s in sizes if isinstance(s, ir.Value)]
    return tensor.ExpandShapeOp(type_, value, _reassociation(groups), dynamic, statics).result


def insert_unit_dims(value: ir.Value, positions: Sequence[int]) -> ir.Value:
    """Unit dimensions at `positions` of the result."""
    if not positions:
        return value
    rank = value.type.rank + len(positions)
    own = iter(sizes_of(value))
    sizes = [1 if i in positions else next(own) for i in range(rank)]
    return expand(value, sizes, unit_groups([i in positions for i in range(rank)]))


def drop_unit_dims(value: ir.Value, positions: Sequence[int]) -> ir.Value:
    """Without the dimensions `positions`, whose extent is 1."""
    if not positions:
        return value
    return collapse(value, unit_groups([i in positions for i in range(value.type.rank)]))


def unit_groups(unit: Sequence[bool]) -> Groups:
    """Groups with one dimension that is not `unit` each; units go with the one before them, leading ones after."""
    groups: Groups = []
    leading: list[int] = []
    for i, is_unit in enumerate(unit):
        if not is_unit:
            groups.append([*leading, i])
            leading = []
        elif groups:
            groups[-1].append(i)
        else:
            leading.append(i)
    return groups


def flatten(value: ir.Value) -> ir.Value:
    """A 1-d view."""
    rank = value.type.rank
    if rank == 0:
        return expand(value, [1], [])
    return collapse(value, [list(range(rank))])


def split_dim(value: ir.Value, position: int, parts: Sequence[Size]) -> ir.Value:
    """Dimension `position` as several dimensions."""
    sizes: list[Size] = []
    groups: Groups = []
    for i in range(value.type.rank):
        own = list(parts) if i == position else [extent(value, i)]
        groups.append(list(range(len(sizes), len(sizes) + len(own))))
        sizes += own
    return expand(value, sizes, groups)
