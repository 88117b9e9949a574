"""What is known while layouts are propagated through a function."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, element, is_constant, shape_of
from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved
from mlc.passes.lower.to_linalg.context import DimFacts

RELAYOUT = "mlc.relayout"


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    result = [0] * len(permutation)
    for position, source in enumerate(permutation):
        result[source] = position
    return tuple(result)


def permuted(values: Sequence, permutation: Sequence[int]) -> list:
    """A list over the dimensions of a value as the list over those of the inner value."""
    result = [None] * len(permutation)
    for position, source in enumerate(permutation):
        result[source] = values[position]
    return result


def channels_last(rank: int) -> tuple[int, ...]:
    """The permutation that makes `[N, C, …]` out of `[N, …, C]`."""
    return (0, rank - 1, *range(1, rank - 1))


def is_free(shape: Sequence[int], permutation: Sequence[int]) -> bool:
    """Does the transposition move nothing but unit dimensions?"""
    moving = [p for p in permutation if shape[p] != 1]
    return moving == sorted(moving)


class Layouts:
    """Which values are known in another order, and the operations that were replaced."""

    def __init__(self, function: ir.Operation) -> None:
        self.facts = DimFacts(function)
        self.target = _target(function)
        self.moved: dict[ir.Value, Moved] = {}
        self._materialized: dict[ir.Value, ir.Value] = {}

    def of(self, value: ir.Value) -> Moved | None:
        return self.moved.get(value)

    def inner(self, value: ir.Value, permutation: Sequence[int]) -> ir.Value:
        """A value of which `value` is the transposition by `permutation`."""
        permutation = tuple(permutation)
        moved = self.moved.get(value)
        if moved is None:
            op = defining_op(value)
            if op is not None and op.name == "mlc.transpose":
                moved = Moved(op.operands[0], tuple(OpAdaptor(op).ints("permutation")))
        if moved is None:
            return relayout(value, inverse(permutation))
        if moved.permutation == permutation:
            return moved.inner
        order = [moved.permutation[p] for p in inverse(permutation)]
        return relayout(moved.inner, order)

    def materialized(self, value: ir.Value) -> ir.Value:
        """`value` itself, transposed right behind its inner value."""
        moved = self.moved.get(value)
        if moved is None:
            return value
        if value not in self._materialized:
            owner = moved.inner.owner
            if isinstance(owner, ir.Block):
                point = ir.InsertionPoint.at_block_begin(owner)
            else:
                point = ir.InsertionPoint.after(owner.operation)
            with point, self._location(owner):
                result = relayout(moved.inner, moved.permutation)
                result.set_type(value.type)
            self._materialized[value] = result
        return self._materialized[value]

    @staticmethod
    def _location(owner: ir.Block | ir.OpView) -> ir.Location:
        return owner.owner.operation.location if isinstance(owner, ir.Block) else owner.operation.location

    def is_cheap(self, value: ir.Value, permutation: Sequence[int]) -> bool:
        """Does reading `value` in the order of `permutation` cost nothing at run time?"""
        if value in self.moved:
            return True
        if is_free(shape_of(value), inverse(permutation)):
            return True
        return is_constant(value)


def _target(function: ir.Operation) -> str:
    """What the function is compiled for, as `mlc.target` names it; empty when the module does not say."""
    module = function.parent
    known = module is not None and "mlc.target" in module.attributes
    return ir.StringAttr(module.attributes["mlc.target"]).value if known else ""


def relayout(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """A transposition made by this pass."""
    if list(permutation) == list(range(len(permutation))):
        return value
    attributes = {"permutation": b.integers(permutation), RELAYOUT: ir.UnitAttr.get()}
    return b.operation("transpose", [value], attributes)[0]


def rebuilt(
    op: ir.Operation,
    operands: Sequence[ir.Value],
    permutation: Sequence[int],
    changes: dict[str, ir.Attribute] | None = None,
) -> ir.Operation:
    """`op` again on inner operands; its results have the shapes of the old ones in the inner order."""
    types = []
    for result in op.results:
        shape = permuted(list(result.type.shape), permutation)
        types.append(ir.RankedTensorType.get(shape, element(result)))
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes.update(changes or {})
    return ir.Operation.create(op.name, types, list(operands), attributes)
