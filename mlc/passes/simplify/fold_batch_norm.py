"""Pass `mlc-fold-batch-norm`: scales and shifts by weights move into the convolution before them.

    %0 = mlc.conv %x, %w {…} : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
    %1 = mlc.batch_norm %0, %scale, %bias, %mean, %variance {epsilon = 1e-5} : …
becomes
    %s = %scale / sqrt(%variance + 1e-5)
    %1 = mlc.conv %x, (%w * %s) bias((%bias - %mean * %s)) {…} : …

in two steps: a `batch_norm` with weights for parameters is a `mul` and an `add` per channel; a `mul`, `div`, `add` or
`sub` by a weight that has one value (or one for each channel) goes into the filter and the bias of a convolution whose
only user it is. The arithmetic on weights is `mlc` operations, which `mlc-hoist-weights` makes recipes; it is done in
f32 at least.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mlir import ir

from mlc.dialects import builders
from mlc.dialects import mlc as m
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op
from mlc.passes.base import Pass
from mlc.passes.simplify.rewrite import element_count
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_CONVOLUTIONS = {"mlc.conv", "mlc.conv_transpose"}
_FILTER_KINDS = {"mul", "div"}
_KINDS = {"mul", "div", "add", "sub"}


class FoldBatchNorm(Pass):
    """Folds batch normalisation and per-channel arithmetic into convolutions."""

    dialects = ("mlc",)
    statistics = {"expanded": "batch norms turned into mul and add", "folded": "operations folded into a convolution"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            self._expand_all(function)
            self._fold_all(function)

    def _expand_all(self, function: ir.Operation) -> None:
        weights, dead = WeightOnly(), []
        for op in operations(function):
            if op.name == "mlc.batch_norm" and all(weights.has(v) for v in list(op.operands)[1:]):
                _expand(op)
                dead.append(op)
                self.count("expanded")
        for op in dead:
            op.erase()

    def _fold_all(self, function: ir.Operation) -> None:
        weights, dead = WeightOnly(), []
        for op in operations(function):
            if op.name == "mlc.binary" and (conv := self._fold(OpAdaptor(op), weights)) is not None:
                dead += [conv, op]
                self.count("folded")
        for op in reversed(dead):
            op.erase()

    def _fold(self, op: OpAdaptor, weights: WeightOnly) -> ir.Operation | None:
        """The convolution that `op` has gone into, which nothing but `op` uses any more."""
        kind = op.text()
        lhs, rhs = op.operands
        if kind in ("mul", "add") and weights.has(lhs):
            lhs, rhs = rhs, lhs
        conv = defining_op(lhs)
        if kind not in _KINDS or conv is None or conv.name not in _CONVOLUTIONS or not weights.has(rhs):
            return None
        view = OpAdaptor(conv)
        if len(list(lhs.uses)) != 1 or view.text("layout", "nchw") != "nchw" or not weights.has(view.operand(1)):
            return None
        bias = view.trailing(2)
        if (bias is not None and not weights.has(bias)) or op.types[0] != lhs.type:
            return None
        channels = lhs.type.shape[1]
        if not _is_per_channel(rhs, lhs.type.rank, channels) or not _is_float(lhs.type.element_type):
            return None
        with ir.InsertionPoint(op.op), conv.location:
            op.op.results[0].replace_all_uses_with(_rebuilt(view, kind, rhs, channels))
        return conv


def _is_float(element: ir.Type) -> bool:
    return isinstance(element, ir.FloatType)


def _is_per_channel(value: ir.Value, rank: int, channels: int) -> bool:
    """Whether a weight has one value, or one for each channel (axis 1 of a tensor of `rank`)."""
    shape = list(value.type.shape)
    if len(shape) > rank or channels == DYNAMIC:
        return False
    full = [1] * (rank - len(shape)) + shape
    return all(extent == 1 for axis, extent in enumerate(full) if axis != 1) and full[1] in (1, channels)


def _wide(value: ir.Value) -> ir.Value:
    """A weight in f32 at least, from before it was rounded where that is known."""
    element, op = value.type.element_type, defining_op(value)
    if ir.FloatType(element).width >= 32:
        return value
    if op is not None and op.name == "mlc.cast" and isinstance(op.operands[0].type.element_type, ir.F32Type):
        return op.operands[0]
    return builders.cast(value, ir.F32Type.get())


def _narrow(value: ir.Value, element: ir.Type) -> ir.Value:
    return value if value.type.element_type == element else builders.cast(value, element)


def _scalar(number: float, like: ir.Value) -> ir.Value:
    dtype = np.float64 if isinstance(like.type.element_type, ir.F64Type) else np.float32
    return builders.constant(np.asarray(number, dtype))


def _expand(op: ir.Operation) -> None:
    """A `batch_norm` as `input * s + t` with s and t of shape `[C, 1, ...]`."""
    view = OpAdaptor(op)
    value, element = view.operand(0), view.operand(0).type.element_type
    channel_shape = [view.operand(1).type.shape[0], *[1] * (value.type.rank - 2)]
    with ir.InsertionPoint(op), op.location:
        scale, bias, mean, variance = (_wide(v) for v in view.operands[1:])
        deviation = m.unary("sqrt", m.binary("add", variance, _scalar(view.float("epsilon"), variance)))
        factor = m.binary("div", scale, deviation)
        shift = m.binary("sub", bias, m.binary("mul", mean, factor))
        factor, shift = (_narrow(builders.reshape(v, channel_shape), element) for v in (factor, shift))
        scaled = m.binary("mul", value, factor, results=[op.results[0].type])
        op.results[0].replace_all_uses_with(m.binary("add", scaled, shift, results=[op.results[0].type]))


def _rebuilt(view: OpAdaptor, kind: str, operand: ir.Value, channels: int) -> ir.Value:
    """The convolution followed by `kind operand`, as one convolution at the insertion point."""
    value, filter_ = view.operand(0), view.operand(1)
    bias, element = view.trailing(2), view.types[0].element_type
    per_channel = _per_channel(_wide(operand), channels)
    new_bias = None if bias is None else _wide(bias)
    if kind in _FILTER_KINDS:
        filter_ = _narrow(_scaled_filter(view, kind, per_channel), filter_.type.element_type)
        new_bias = None if new_bias is None else m.binary(kind, new_bias, per_channel)
    elif new_bias is not None:
        new_bias = m.binary(kind, new_bias, per_channel)
    else:
        new_bias = per_channel if kind == "add" else m.unary("neg", per_channel)
    operands = [value, filter_] + ([] if new_bias is None else [_narrow(new_bias, element)])
    attributes = {name: view.op.attributes[name] for name in view.op.attributes}
    return ir.Operation.create(view.name, [view.types[0]], operands, attributes).result


def _per_channel(value: ir.Value, channels: int) -> ir.Value:
    """A weight with one value or one for each channel as `[channels]`."""
    count = element_count(value.type)
    flat = builders.reshape(value, [count]) if list(value.type.shape) != [count] else value
    return flat if count == channels else builders.broadcast(flat, [channels])


def _scaled_filter(view: OpAdaptor, kind: str, per_channel: ir.Value) -> ir.Value:
    """The filter with each output channel multiplied (divided) by its factor."""
    filter_ = _wide(view.operand(1))
    shape = list(filter_.type.shape)
    ones = [1] * (len(shape) - 2)
    if view.name == "mlc.conv":
        return m.binary(kind, filter_, builders.reshape(per_channel, [shape[0], 1, *ones]))
    groups = view.int("groups", 1)
    split = builders.reshape(filter_, [groups, shape[0] // groups, *shape[1:]])
    factors = builders.reshape(per_channel, [groups, 1, shape[1], *ones])
    return builders.reshape(m.binary(kind, split, factors), shape)
