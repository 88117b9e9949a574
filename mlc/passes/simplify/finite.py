"""Values that are finite numbers, and so no NaN: what is computed from codes and weights by ordinary operations."""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op, splat_number
from mlc.passes.simplify.never_negative import has_elements

_FUNCTIONS = ("mlc.activation", "mlc.softmax", "mlc.layer_norm", "mlc.matmul", "mlc.conv", "mlc.concat")
_MOVES = ("mlc.reshape", "mlc.transpose", "mlc.slice", "mlc.broadcast", "mlc.clamp")
_UNARY = ("abs", "neg", "erf", "tanh", "sigmoid")
_BINARY = ("add", "sub", "mul", "max", "min")
_DEEPEST = 32  # operations that are looked through


class Finite:
    """Which values are finite, if the model's weights and scales are, and are no numbers at the end of the range.

    Answers are remembered: while it is in use no operation may be erased, as with `WeightOnly`.
    """

    def __init__(self) -> None:
        self._known: dict[ir.Value, bool] = {}

    def has(self, value: ir.Value, depth: int = 0) -> bool:
        """Whether every element of a value is known to be finite."""
        if depth > _DEEPEST:
            return False
        if value not in self._known:
            self._known[value] = self._answer(value, depth)
        return self._known[value]

    def _answer(self, value: ir.Value, depth: int) -> bool:
        if isinstance(value.type, ir.RankedTensorType) and isinstance(value.type.element_type, ir.IntegerType):
            return True
        op = defining_op(value)
        if op is None or not op.name.startswith("mlc."):
            return False
        view = OpAdaptor(op)
        if op.name in ("mlc.weight", "mlc.constant"):
            number = splat_number(value)
            return number is None or abs(number) < float("inf")

        def known(*operands: ir.Value) -> bool:
            return all(self.has(v, depth + 1) for v in operands)

        if op.name == "mlc.binary":
            divided = view.text() == "div" and splat_number(view.operand(1)) not in (None, 0)
            return (divided or view.text() in _BINARY) and known(*op.operands)
        if op.name == "mlc.unary":
            return view.text() in _UNARY and known(*op.operands)
        if op.name == "mlc.dequantize":
            return known(op.operands[1])
        if op.name == "mlc.pool":
            return has_elements(view) and known(op.operands[0])
        if op.name == "mlc.statistic":
            shape = op.operands[0].type.shape
            return view.text() == "mean" and not {0, DYNAMIC} & {*shape} and known(op.operands[0])
        if op.name in _MOVES:
            return known(op.operands[0])
        return op.name in _FUNCTIONS and known(*op.operands)
