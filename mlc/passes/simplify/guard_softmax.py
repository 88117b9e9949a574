"""Pass `mlc-guard-softmax`: a softmax whose NaN become zeros is one whose masked rows give zeros.

    %s = mlc.softmax %x {axis = 3}
    %n = mlc.unary isnan %s
    %y = mlc.select %n, 0, %s
becomes the softmax of `%x` whose maximum counts as 0 where it is −inf, and whose sum counts as 1 where it is 0.

Exporters of PyTorch write it for the weights of attention with a mask (`aten._safe_softmax`), in which a row whose
every key is masked gives zeros. Between two products it is attention then (`mlc/kernels/common/attention.py`). As in
`_safe_softmax`, rows with a NaN, or an infinity above zero, stay NaN.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, splat_number
from mlc.passes.base import Pass
from mlc.passes.decompose.attention import softmax
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations


class GuardSoftmax(Pass):
    """Turns softmaxes whose NaN become zeros into ones of which masked rows are zeros."""

    dialects = ("mlc",)
    statistics = {"guarded": "softmaxes whose NaN became zeros"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in operations(function):
                if op.name == "mlc.select" and _guard(op):
                    self.count("guarded")


def _guard(select: ir.Operation) -> bool:
    """Replaces `select` where it is the last operation of the pattern."""
    condition, zero, value = select.operands
    test, source = defining_op(condition), defining_op(value)
    if test is None or source is None or test.name != "mlc.unary" or source.name != "mlc.softmax":
        return False
    view, rank = OpAdaptor(source), value.type.rank
    is_pattern = OpAdaptor(test).text() == "isnan" and test.operands[0] == value and splat_number(zero) == 0
    if not is_pattern or view.flag("log") or view.int("axis") != rank - 1 or value.type != select.results[0].type:
        return False
    with ir.InsertionPoint(select), source.location:
        guarded = softmax(source.operands[0], guarded=True)
    replace(select, [guarded])
    for op in (test, source):
        if not any(True for _ in op.results[0].uses):
            op.erase()
    return True
