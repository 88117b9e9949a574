"""Pass `mlc-merge-contractions`: products of one tensor with several weights become one product, read in parts.

    %q = mlc.binary add (mlc.matmul %x, %wq), %bq : tensor<1x128x768xf32>, …
    %k = mlc.binary add (mlc.matmul %x, %wk), %bk
becomes
    %w = mlc.concat %wq, %wk {axis = 1}           (a recipe of the weight store, as %b is)
    %m = mlc.binary add (mlc.matmul %x, %w), %b : tensor<1x128x1536xf32>, …
    %q = mlc.slice %m [0, 0, 0] [1, 128, 768]     (views)
    %k = mlc.slice %m [0, 0, 768] [1, 128, 768]

Elementwise operations by weights per column, by the same constants, or without another operand move along where all
products have the same ones. Products stay apart whose results are then read by other elementwise operations: those
would be consumers of the contraction's kernel, which they could not be of a part of it. So do products that are results
of the program, those whose columns are no whole vectors, and those of unknown shape: parts of them would be copied.

With the option `even` casts to smaller types move along too, and the parts are read as places of a dimension:

    %r = mlc.reshape %m [1, 128, 2, 768]
    %q = mlc.reshape (mlc.slice %r [0, 0, 0, 0] [1, 128, 1, 768]) [1, 128, 768]

The columns of the narrowest product divide those of all together then. A wider one, as the queries of fewer keys, is a
plain part behind it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from mlir import ir

from mlc.dialects import builders
from mlc.dialects import mlc as m
from mlc.passes.adaptor import OpAdaptor, defining_op
from mlc.passes.base import Pass
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_COLUMNS = 16  # elements of the widest vectors
_ELEMENTWISE = ("mlc.binary", "mlc.unary", "mlc.select", "mlc.cast", "mlc.compare", "mlc.clamp")


@dataclass(frozen=True)
class Member:
    """A product and the elementwise operations that move along with it, in order."""

    product: ir.Operation
    chain: tuple[ir.Operation, ...]

    @property
    def columns(self) -> int:
        """Extent of the last dimension."""
        return int(self.product.results[0].type.shape[-1])

    @property
    def value(self) -> ir.Value:
        """What the users read."""
        return (self.chain[-1] if self.chain else self.product).results[0]


class MergeContractions(Pass):
    """Merges products of one tensor with several weights."""

    dialects = ("mlc",)
    statistics = {"merged": "products that became part of another one"}

    even: bool = False
    "Only products whose parts are places of a dimension, or lie behind such parts; casts behind them move along"

    def run(self, op: Any) -> None:
        for function in functions(op):
            weights = WeightOnly()
            groups: dict[Hashable, list[Member]] = {}
            for inner in operations(function):
                if inner.name == "mlc.matmul" and _is_mergeable(inner, weights):
                    member = Member(inner, _chain(inner, weights, self.even))
                    if not _stands_alone(member):
                        groups.setdefault(_key(member), []).append(member)
            for members in groups.values():
                for group in _even_groups(members) if self.even else [members]:
                    reachable = [other for other in group if _can_stand_at(group[0].product, other)]
                    if len(reachable) > 1 and not (self.even and _misfits(reachable)):
                        _merge(reachable, self.even)
                        self.count("merged", len(reachable) - 1)


def _even_groups(members: list[Member]) -> list[list[Member]]:
    """All of them where that is possible; else those of equally many columns."""
    if not _misfits(members):
        return [members]
    found: dict[int, list[Member]] = {}
    for member in members:
        found.setdefault(member.columns, []).append(member)
    return list(found.values())


def _misfits(members: list[Member]) -> bool:
    """Would the first part, which is the narrowest, be no place of a dimension?"""
    return bool(sum(member.columns for member in members) % min(member.columns for member in members))


# -- what can be merged ------------------------------------------------------------------------------------------------


def _is_mergeable(op: ir.Operation, weights: WeightOnly) -> bool:
    result, weight = op.results[0].type, op.operands[1]
    if result.rank < 2 or weight.type.rank != 2 or not result.has_static_shape or not weight.type.has_static_shape:
        return False
    return bool(result.shape[-1] % _COLUMNS == 0) and weights.has(weight) and not weights.has(op.operands[0])


def _chain(product: ir.Operation, weights: WeightOnly, casts: bool) -> tuple[ir.Operation, ...]:
    """The elementwise operations behind a product that need nothing but weights; a rounding one ends them where `casts`
    says so."""
    chain: list[ir.Operation] = []
    value = product.results[0]
    while True:
        uses = list(value.uses)
        op = uses[0].owner.operation if len(uses) == 1 else None
        if op is None or op.block != product.block:
            return tuple(chain)
        if casts and _is_rounding(op):
            return (*chain, op)
        if op.name not in ("mlc.unary", "mlc.binary"):
            return tuple(chain)
        if op.results[0].type != product.results[0].type:
            return tuple(chain)
        if op.name == "mlc.binary" and _parameter(op, value, weights) is None:
            return tuple(chain)
        chain.append(op)
        value = op.results[0]


def _is_rounding(op: ir.Operation) -> bool:
    """Is `op` a cast to a smaller float?"""
    if op.name != "mlc.cast":
        return False
    before, after = (v.type.element_type for v in (op.operands[0], op.results[0]))
    return isinstance(before, ir.FloatType) and isinstance(after, ir.FloatType) and after.width < before.width


def _parameter(op: ir.Operation, value: ir.Value, weights: WeightOnly) -> ir.Value | None:
    """The other operand of a binary operation when it is a weight of one value, or of one for each column."""
    other = op.operands[1] if op.operands[0] == value else op.operands[0]
    extents = list(other.type.shape)
    columns = value.type.shape[-1]
    plain = not extents or (all(e == 1 for e in extents[:-1]) and extents[-1] in (1, columns))
    return other if plain and weights.has(other) else None


def _is_per_column(parameter: ir.Value, columns: int) -> bool:
    return bool(parameter.type.rank) and parameter.type.shape[-1] == columns


def _stands_alone(member: Member) -> bool:
    """Is the result read by what could not read a part of a larger one as well?"""
    return any(use.owner.operation.name in (*_ELEMENTWISE, "func.return") for use in member.value.uses)


def _key(member: Member) -> Hashable:
    """What members of a group have in common."""
    product, before = member.product, member.product.results[0]
    attributes = _attributes(product)
    steps: list[Hashable] = []
    for op in member.chain:
        position = 0 if op.operands[0] == before else 1
        others = [v for i, v in enumerate(op.operands) if i != position]
        per_column = [_is_per_column(v, member.columns) for v in others]
        same = [(str(v.type.element_type), v.type.rank) if c else v for v, c in zip(others, per_column, strict=True)]
        own = _attributes(op)
        type_ = str(op.results[0].type.element_type)
        steps.append((op.name, own, position, tuple(per_column), tuple(same), type_))
        before = op.results[0]
    lhs, rhs = product.operands
    element = str(product.results[0].type.element_type)
    return (product.block, lhs, str(rhs.type.element_type), element, attributes, tuple(steps))


def _attributes(op: ir.Operation) -> Hashable:
    return tuple(sorted((name, str(op.attributes[name])) for name in op.attributes))


def _can_stand_at(place: ir.Operation, member: Member) -> bool:
    """Are the weights of `member` known at `place`?"""
    values = [v for op in (member.product, *member.chain) for v in op.operands]
    inside = {member.product, *member.chain}
    for value in values:
        op = defining_op(value)
        if op is None or op in inside or value == member.product.operands[0]:
            continue
        if op.block == place.block and not op.is_before_in_block(place):
            return False
    return True


# -- merging -----------------------------------------------------------------------------------------------------------


def _merge(members: list[Member], even: bool) -> None:
    """Products of fewer columns come first: a part at an offset that divides into its rows is a view, and one from the
    beginning is where it is a whole fraction."""
    first = members[0].product
    members = sorted(members, key=lambda member: member.columns)
    products = [member.product for member in members]
    with ir.InsertionPoint(first):
        view = OpAdaptor(first)
        axis = 0 if view.has("transpose_rhs") else 1
        with _together(products):
            weight = m.concat([p.operands[1] for p in products], axis)
            merged = _with_operands(first, [first.operands[0], weight], members)
        befores = [p.results[0] for p in products]
        for ops in zip(*(member.chain for member in members), strict=True):
            position = 0 if ops[0].operands[0] == befores[0] else 1
            with _together(ops):
                operands = [merged if i == position else _joined(ops, i, members) for i in range(len(ops[0].operands))]
                merged = _with_operands(ops[0], operands, members)
            befores = [op.results[0] for op in ops]
        if even:
            _read_places(members, merged)
        else:
            _read_parts(members, merged)
    for member in members:
        for op in reversed([member.product, *member.chain]):
            op.erase()


def _together(ops: Any) -> ir.Location:
    """The location of what stands for several operations."""
    return ir.Location.fused([op.location for op in ops])


def _joined(ops: Any, operand: int, members: list[Member]) -> ir.Value:
    values = [op.operands[operand] for op in ops]
    if not _is_per_column(values[0], members[0].columns):
        return values[0]
    return m.concat(values, values[0].type.rank - 1)


def _with_operands(op: ir.Operation, operands: list[ir.Value], members: list[Member]) -> ir.Value:
    """`op` on other operands, with the columns of all members."""
    type_ = op.results[0].type
    shape = [*list(type_.shape)[:-1], sum(member.columns for member in members)]
    attributes = {name: op.attributes[name] for name in op.attributes}
    result = ir.RankedTensorType.get(shape, type_.element_type)
    return ir.Operation.create(op.name, results=[result], operands=operands, attributes=attributes).result


def _read_parts(members: list[Member], merged: ir.Value) -> None:
    """Lets the users of every member read its columns of `merged`."""
    start, sizes = 0, list(merged.type.shape)[:-1]
    for member in members:
        with member.value.owner.location:
            part = builders.slice(merged, [0] * len(sizes) + [start], [*sizes, member.columns])
        member.value.replace_all_uses_with(part)
        start += member.columns


def _read_places(members: list[Member], merged: ir.Value) -> None:
    """Lets the users of every member read its place in a dimension of `merged`, or its columns behind others."""
    *outer, columns = list(merged.type.shape)
    start = 0
    for member in members:
        own = member.columns
        with member.value.owner.location:
            if columns % own == 0 and start % own == 0:
                split = builders.reshape(merged, [*outer, columns // own, own])
                place = builders.slice(split, [0] * len(outer) + [start // own, 0], [*outer, 1, own])
                part = builders.reshape(place, [*outer, own])
            else:
                part = builders.slice(merged, [0] * len(outer) + [start], [*outer, own])
            member.value.replace_all_uses_with(part)
        start += own
