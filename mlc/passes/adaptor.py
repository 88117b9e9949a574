"""Reading an operation: operands by segment, attributes as plain Python values, the name of its source node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mlir import ir

DYNAMIC: int = ir.ShapedType.get_dynamic_size()
TRANSPOSED = ("transpose_lhs", "transpose_rhs")
"""Attributes of a `matmul` whose left, whose right operand has rows and columns the other way round."""

Size: TypeAlias = "int | ir.Value"
"""An extent: a number, or an `index` value."""


class OpAdaptor:
    """A read-only view of one `mlc` operation."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def node(self) -> str:
        """Name of the source node, for messages."""
        return node_name(self.op.location)

    @property
    def operands(self) -> list[ir.Value]:
        return list(self.op.operands)

    def operand(self, number: int) -> ir.Value:
        return self.op.operands[number]

    @property
    def types(self) -> list[ir.RankedTensorType]:
        """Result types."""
        return [r.type for r in self.op.results]

    def segments(self) -> list[list[ir.Value]]:
        """Operands grouped as the operation declares them (only for operations with `operandSegmentSizes`)."""
        values, groups, start = list(self.op.operands), [], 0
        for size in ir.DenseI32ArrayAttr(self.op.attributes["operandSegmentSizes"]):
            groups.append(values[start : start + size])
            start += size
        return groups

    def optional(self, group: int) -> ir.Value | None:
        """The operand of an optional segment."""
        values = self.segments()[group]
        return values[0] if values else None

    def trailing(self, number: int) -> ir.Value | None:
        """Operand `number` of an operation whose last operand is optional."""
        return self.op.operands[number] if len(self.op.operands) > number else None

    def has(self, name: str) -> bool:
        return name in self.op.attributes

    def text(self, name: str = "kind", default: str | None = None) -> str:
        if default is not None and name not in self.op.attributes:
            return default
        return ir.StringAttr(self.op.attributes[name]).value

    def ints(self, name: str) -> list[int]:
        return list(ir.DenseI64ArrayAttr(self.op.attributes[name]))

    def int(self, name: str, default: int | None = None) -> int:
        if default is not None and name not in self.op.attributes:
            return default
        return ir.IntegerAttr(self.op.attributes[name]).value

    def float(self, name: str, default: float | None = None) -> float:
        if default is not None and name not in self.op.attributes:
            return default
        return ir.FloatAttr(self.op.attributes[name]).value

    def flag(self, name: str, default: bool = False) -> bool:
        """A unit attribute, or a bool attribute with `default` where it is absent."""
        if name not in self.op.attributes:
            return default
        attr = self.op.attributes[name]
        return attr.value if isinstance(attr, ir.BoolAttr) else True

    def mixed(self, name: str, dynamic: Sequence[ir.Value]) -> list[Size]:
        """The mixed list `static_<name>` with its dynamic entries taken in order from `dynamic`."""
        rest = iter(dynamic)
        return [next(rest) if v == DYNAMIC else v for v in self.ints(f"static_{name}")]


def node_name(location: ir.Location) -> str:
    """The innermost name in `location`, or its text."""
    if location.is_a_name():
        return location.name_str
    if location.is_a_fused():
        for part in location.locations:
            if part.is_a_name():
                return part.name_str
    return str(location).removeprefix("loc(").removesuffix(")").strip('"')


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that defines `value`, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def readers(value: ir.Value) -> list[ir.Operation]:
    """The operations that read elements of `value`, once for each use; who asks for its extents does not."""
    users = [use.owner.operation for use in value.uses]
    return [user for user in users if user.name != "tensor.dim"]


def lies_along_sum(matmul: ir.Operation, number: int) -> bool:
    """Is the last dimension of operand `number` of a `matmul` the one that is summed over, and not the one before?"""
    return (number == 0) != (TRANSPOSED[number] in matmul.attributes)


def swaps_matrices(op: ir.Operation) -> bool:
    """Does an operation transpose matrices, and nothing else?"""
    if op.name != "mlc.transpose":
        return False
    rank = op.results[0].type.rank
    return rank >= 2 and OpAdaptor(op).ints("permutation") == [*range(rank - 2), rank - 1, rank - 2]


def is_dynamic(size: int) -> bool:
    return size == DYNAMIC


def shape_of(value: ir.Value) -> list[int]:
    """Static extents of a tensor, `DYNAMIC` where unknown."""
    return list(value.type.shape)


def element(value: ir.Value) -> ir.Type:
    return value.type.element_type


def splat_attr(value: ir.Value) -> ir.Attribute | None:
    """The element of a constant tensor whose elements are all equal, else None."""
    op = defining_op(value)
    if op is None or op.name not in ("mlc.constant", "arith.constant"):
        return None
    attr = op.attributes["value"]
    if isinstance(attr, ir.DenseElementsAttr) and attr.is_splat:
        return attr.get_splat_value()
    return None


def splat_number(value: ir.Value) -> int | float | None:
    """The number that every element of a constant tensor is, else None."""
    attr = splat_attr(value)
    return None if attr is None else attr.value


def is_constant(value: ir.Value) -> bool:
    """Is `value` computed from weights and constants alone?"""
    pending, seen = [value], 0
    while pending:
        op = defining_op(pending.pop())
        seen += 1
        if op is None or not op.name.startswith("mlc.") or seen > 32:
            return False
        pending += list(op.operands)
    return True
