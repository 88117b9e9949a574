"""What depends on weights and constants only, and so can be computed before the model runs."""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import defining_op
from mlc.passes.simplify.rewrite import constant_index, is_pure_mlc, is_static


class WeightOnly:
    """Which values depend on weights and constants only.

    Answers are remembered: while it is in use no operation may be erased, as a new value could get the address, and so
    the identity, of an erased one.
    """

    def __init__(self) -> None:
        self._known: dict[ir.Value, bool] = {}

    def has(self, value: ir.Value) -> bool:
        """Whether a value does."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current not in self._known:
                answer = self._answer(current)
                if isinstance(answer, ir.Value):
                    pending.append(answer)
                    continue
                self._known[current] = answer
            pending.pop()
        return self._known[value]

    def _answer(self, value: ir.Value) -> bool | ir.Value:
        """Whether `value` does, or the operand of which that must be known first."""
        op = defining_op(value)
        if op is None or not is_pure_mlc(op) or op.name == "mlc.random" or not is_static(value.type):
            return op is not None and constant_index(value) is not None
        if op.name in ("mlc.weight", "mlc.constant"):
            return True
        operands = list(op.operands)
        for operand in operands:
            known = self._known.get(operand)
            if known is None:
                return operand
            if not known:
                return False
        return bool(operands)
