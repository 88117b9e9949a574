"""The elementwise operations that only one reduction reads: what its kernel computes on the way.

`Chain` finds them, with the place that a group of the reduction's neighbouring dimensions has in each, and computes
the same values anew where that group is other dimensions (`Cut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.dialects import linalg
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_identity, is_reduction, operand_map

Group = tuple[int, int]
"""The first of neighbouring dimensions, and the last one."""
NONE: Group = (0, -1)
"""No dimensions."""


@dataclass(frozen=True)
class Cut:
    """The elements that a group of dimensions, walked as one, becomes: those from `first` on, in as many dimensions as
    `extents` has, of which the last one is contiguous."""

    first: int
    extents: tuple[int, ...]
    is_all: bool

    @property
    def count(self) -> int:
        """Dimensions that take the place of the group."""
        return len(self.extents)

    def place(self, at: int) -> ir.AffineExpr:
        """Where the elements lie among those of the group, as dimensions from `at` on say."""
        found = ir.AffineExpr.get_constant(self.first)
        stride = 1
        for number in reversed(range(self.count)):
            found = found + ir.AffineExpr.get_dim(at + number) * stride
            stride *= self.extents[number]
        return found


def group_in(op: ir.Operation, operand: int, group: Group) -> Group | None:
    """The dimensions of an operand that are those of the `group` of iteration dimensions, all in order, or `NONE`; None
    where it is read in another way."""
    wanted = list(range(group[0], group[1] + 1))
    exprs = list(operand_map(op, operand).results) if wanted else []
    if not all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in exprs):
        return None
    plain = [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in exprs]
    touching = [i for i, position in enumerate(plain) if position in wanted]
    if not touching:
        return NONE
    in_order = [plain[i] for i in touching] == wanted and touching[-1] - touching[0] == len(wanted) - 1
    return (touching[0], touching[-1]) if in_order else None


class Chain:
    """The chain of operations that the reduction `root` alone reads, whose dimensions `group` are to be others.

    `is_whole`: may all of it be computed anew? What an operation that stays makes would be written to memory only for
    the reduction.
    """

    def __init__(self, root: ir.Operation, group: Group) -> None:
        self.root, self.group = root, group
        self.groups: dict[ir.Operation, Group] = {root: group}
        self.is_whole = self._follow()

    def _follow(self) -> bool:
        block = [view.operation for view in self.root.block.operations]
        for op in reversed(block[: block.index(self.root)]):
            users = [use.owner.operation for use in op.results[0].uses] if len(op.results) == 1 else []
            is_read = bool(users) and all(user in self.groups for user in users)
            if op.name != "linalg.generic" or not is_read or is_reduction(op):
                continue
            asked = {self._asked(op, user) for user in users}
            group = asked.pop() if len(asked) == 1 else None
            if group is None or not _is_movable(op, group):
                return False
            self.groups[op] = group
        inputs = range(len(self.root.operands) - len(self.root.results))
        return all(group_in(self.root, i, self.group) is not None for i in inputs)

    def _asked(self, op: ir.Operation, user: ir.Operation) -> Group | None:
        """The dimensions of the result of `op` that are the group, as a reader says."""
        numbers = [i for i, value in enumerate(user.operands) if value == op.results[0]]
        asked = {group_in(user, i, self.groups[user]) for i in numbers}
        return asked.pop() if len(asked) == 1 else None

    def recut(self, cut: Cut) -> _Recut:
        """The chain with other dimensions; operations come in front of the insertion point."""
        return _Recut(self, cut)


def _is_movable(op: ir.Operation, group: Group) -> bool:
    """Can `op`, an elementwise generic, have other dimensions in place of `group`? Without any it stays as it is."""
    count = len(op.operands) - 1
    if group == NONE:
        return True
    if not is_identity(op, count) or any(group_in(op, i, group) is None for i in range(count)):
        return False
    return group[0] == group[1] or not any(inner.name == "linalg.index" for inner in _within(op))


class _Recut:
    """Values with other dimensions in place of the group."""

    def __init__(self, chain: Chain, cut: Cut) -> None:
        self.chain, self.cut = chain, cut
        self.known: dict[tuple[ir.Value, Group], ir.Value] = {}

    def value(self, value: ir.Value, group: Group) -> ir.Value:
        """`value`, of which `group` are the dimensions in question."""
        if group == NONE:
            return value
        if (value, group) not in self.known:
            op = defining_op(value)
            if op is not None and self.chain.groups.get(op) == group:
                found = self._computed(op, group)
            elif op is not None and op.name == "linalg.fill":
                found = linalg.fill(op.operands[0], outs=[self._empty(value, group)])
            else:
                found = self._view(value, group) if self.cut.is_all else self._moved(value, group)
            self.known[value, group] = found
        return self.known[value, group]

    def generic(self, op: ir.Operation, group: Group, outs: Sequence[ir.Value], kinds: Sequence[str]) -> ir.Operation:
        """`op` with other dimensions, of iterators `kinds`, in place of `group`."""
        count = len(op.operands) - len(op.results)
        ins = [self.value(op.operands[i], group_in(op, i, group) or NONE) for i in range(count)]
        maps = [self._map(operand_map(op, i), group) for i in range(len(op.operands))]
        every = [*op.attributes["iterator_types"]]
        every[group[0] : group[1] + 1] = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes |= {"indexing_maps": ir.ArrayAttr.get(maps), "iterator_types": ir.ArrayAttr.get(every)}
        made = ir.Operation.create(
            "linalg.generic", [v.type for v in outs], [*ins, *outs], attributes, regions=1, loc=op.location
        )
        clone = op.clone()
        clone.regions[0].blocks[0].append_to(made.regions[0])
        clone.erase()
        self._place_indices(made, group)
        return made

    def _computed(self, op: ir.Operation, group: Group) -> ir.Value:
        outs = [self._empty(op.results[0], group)]
        return self.generic(op, group, outs, ["parallel"] * self.cut.count).results[0]

    def _shape(self, value: ir.Value, group: Group) -> list[int]:
        shape = list(value.type.shape)
        return [*shape[: group[0]], *self.cut.extents, *shape[group[1] + 1 :]]

    def _empty(self, value: ir.Value, group: Group) -> ir.Value:
        return tensor.empty(self._shape(value, group), value.type.element_type)

    def _map(self, old: ir.AffineMap, group: Group) -> ir.AffineMapAttr:
        first, last = group
        rank = old.n_dims - (last - first + 1) + self.cut.count
        exprs: list[ir.AffineExpr] = []
        for expr in old.results:
            position = expr.position if isinstance(expr, ir.AffineDimExpr) else None
            if position is None:
                exprs.append(expr)
            elif position == first:
                exprs += [ir.AffineExpr.get_dim(first + i) for i in range(self.cut.count)]
            elif not first < position <= last:
                shift = self.cut.count - (last - first + 1) if position > last else 0
                exprs.append(ir.AffineExpr.get_dim(position + shift))
        return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, exprs))

    def _view(self, value: ir.Value, group: Group) -> ir.Value:
        """All elements, as a view."""
        value = _walked_as_one(value, group)
        if self.cut.count == 1:
            return value
        shape, first, count = self._shape(value, (group[0], group[0])), group[0], self.cut.count
        apart = [[i] for i in range(first)] + [list(range(first, first + count))]
        apart += [[i] for i in range(first + count, len(shape))]
        type_ = ir.RankedTensorType.get(shape, value.type.element_type)
        return tensor.expand_shape(type_, value, apart, [], shape)

    def _moved(self, value: ir.Value, group: Group) -> ir.Value:
        """Some of the elements, read where they are."""
        value, first = _walked_as_one(value, group), group[0]
        out = self._empty(value, (first, first))
        rank, shift = out.type.rank, self.cut.count - 1
        exprs = [ir.AffineExpr.get_dim(i if i < first else i + shift) for i in range(value.type.rank)]
        exprs[first] = self.cut.place(first)
        maps = [ir.AffineMap.get(rank, 0, exprs), ir.AffineMap.get_identity(rank)]
        kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank)
        attributes = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
        generic = linalg.GenericOp([out.type], [value], [out], attributes, kinds)
        element = value.type.element_type
        with ir.InsertionPoint(body := generic.regions[0].blocks.append(element, element)):
            linalg.YieldOp([body.arguments[0]])
        return generic.results[0]

    def _place_indices(self, op: ir.Operation, group: Group) -> None:
        """Coordinates in the body become those of the dimensions that are now."""
        first, last = group
        shift = self.cut.count - (last - first + 1)
        for inner in _within(op):
            if inner.name != "linalg.index":
                continue
            dim = ir.IntegerAttr(inner.attributes["dim"]).value
            if dim > last:
                inner.attributes["dim"] = ir.IntegerAttr.get(inner.attributes["dim"].type, dim + shift)
            elif dim >= first:
                with ir.InsertionPoint(inner), inner.location:
                    place = self._index(first)
                inner.results[0].replace_all_uses_with(place)
                inner.erase()

    def _index(self, first: int) -> ir.Value:
        """The place among the elements of the group."""
        index = ir.IndexType.get()
        found, stride = arith.constant(index, self.cut.first), 1
        for number in reversed(range(self.cut.count)):
            step = arith.muli(linalg.IndexOp(first + number).result, arith.constant(index, stride))
            found = arith.addi(found, step)
            stride *= self.cut.extents[number]
        return found


def _walked_as_one(value: ir.Value, group: Group) -> ir.Value:
    """A view of `value` with one dimension for those of the group."""
    (first, last), shape = group, list(value.type.shape)
    if first == last:
        return value
    together = [[i] for i in range(first)] + [list(range(first, last + 1))]
    together += [[i] for i in range(last + 1, len(shape))]
    shape = [*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]]
    return tensor.collapse_shape(ir.RankedTensorType.get(shape, value.type.element_type), value, together)


def _within(op: ir.Operation) -> list[ir.Operation]:
    found = []
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                found += [view.operation, *_within(view.operation)]
    return found
