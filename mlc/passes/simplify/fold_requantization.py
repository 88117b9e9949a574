"""Pass `mlc-fold-requantization`: what is computed from integers and quantized again is scaled once.

    %1 = cast(%p) * %m + %b
    %2 = mlc.activation relu %1
    %q = mlc.quantize %2, %s, %z
becomes
    %1 = cast(%p) * (%m / %s) + %b / %s
    %2 = mlc.activation relu %1
    %q = mlc.quantize %2, 1, %z

The division by a constant scale moves through operations that scale with their operands, into factors that are weights:
what `mlc.dequantize` and integer contractions multiply by. Where it comes to something else it is a multiplication by
`1 / %s`. A result may differ by one step from that of the division, where rounding of a float decides.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, element
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_HOMOGENEOUS = ("relu", "leaky_relu")
_DEEPEST = 16  # operations that a factor moves through


class FoldRequantization(Pass):
    """What is computed from integers and quantized again is scaled once."""

    dialects = ("mlc",)
    statistics = {"folded": "divisions by a scale that became part of other factors"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            weights = WeightOnly()
            for inner in operations(function):
                if inner.name == "mlc.quantize" and _is_from_integers(OpAdaptor(inner), weights):
                    _fold(OpAdaptor(inner), weights)
                    self.count("folded")


def _is_from_integers(op: OpAdaptor, weights: WeightOnly) -> bool:
    """Is a tensor of f32 that comes from integers divided by one constant scale?"""
    scale = op.operand(1)
    if scale.type.rank or not isinstance(element(scale), ir.F32Type) or not weights.has(scale):
        return False
    if element(op.operand(0)) != element(scale) or not isinstance(op.types[0].element_type, ir.IntegerType):
        return False
    splat = _scaling_operand(op.operand(0), weights, 0)
    return splat is not None


def _scaling_operand(value: ir.Value, weights: WeightOnly, depth: int) -> ir.Value | None:
    """A tensor of integers that `value` is computed from by operations that scale with it."""
    op = defining_op(value)
    if op is None or depth > _DEEPEST:
        return None
    view = OpAdaptor(op)
    if op.name == "mlc.dequantize" or op.name == "mlc.cast" and isinstance(element(view.operand(0)), ir.IntegerType):
        return view.operand(0)
    for operand in _through(view, weights) or []:
        found = _scaling_operand(operand, weights, depth + 1)
        if found is not None:
            return found
    return None


def _through(op: OpAdaptor, weights: WeightOnly) -> list[ir.Value] | None:
    """The operands that a factor of the result may go to instead; None for an operation that does not scale."""
    if op.name == "mlc.binary" and op.text() in ("add", "sub"):
        return op.operands
    if op.name == "mlc.binary" and op.text() == "mul":
        return next(([v] for v in op.operands if not weights.has(v)), None) if _has_weight(op, weights) else None
    if op.name == "mlc.activation" and op.text() in _HOMOGENEOUS:
        return op.operands
    if op.name == "mlc.clamp":
        return op.operands
    return None


def _has_weight(op: OpAdaptor, weights: WeightOnly) -> bool:
    return any(weights.has(v) for v in op.operands)


def _fold(op: OpAdaptor, weights: WeightOnly) -> None:
    scale = op.operand(1)
    with ir.InsertionPoint(op.op), op.op.location:
        factor = b.div(b.like(scale, 1), scale)
        op.op.operands[0] = _scaled(op.operand(0), factor, weights, 0)
        op.op.operands[1] = b.like(scale, 1)


def _scaled(value: ir.Value, factor: ir.Value, weights: WeightOnly, depth: int) -> ir.Value:
    """`value * factor` at the current insertion point, for a positive rank-0 weight `factor`."""
    if weights.has(value):
        return b.mul(value, factor)
    op = defining_op(value)
    single = len(list(value.uses)) == 1
    if op is None or depth > _DEEPEST:
        return b.mul(value, factor)
    view = OpAdaptor(op)
    if op.name == "mlc.dequantize" and weights.has(view.operand(1)) and isinstance(element(value), ir.F32Type):
        operands = [view.operand(0), b.mul(view.operand(1), factor), *view.operands[2:]]
        return _rebuilt(op, operands)
    targets = _through(view, weights) if single else None
    if targets is None:
        return b.mul(value, factor)
    if op.name == "mlc.binary" and view.text() == "mul":
        [other] = [v for v in view.operands if v != targets[0]]
        return b.mul(targets[0], b.mul(other, factor))
    return _rebuilt(op, [_scaled(v, factor, weights, depth + 1) for v in view.operands])


def _rebuilt(op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
    attributes = {name: op.attributes[name] for name in op.attributes}
    types = [r.type for r in op.results]
    return ir.Operation.create(op.name, types, operands, attributes).results[0]
