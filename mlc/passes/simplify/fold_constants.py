"""Pass `mlc-fold-constants`: operations on constants become constants, as `mlc.interp` evaluates them.

    %a = mlc.constant dense<[1, 2]> : tensor<2xi64>
    %0 = mlc.binary add %a, %a : tensor<2xi64>
becomes
    %0 = mlc.constant dense<[2, 4]> : tensor<2xi64>

Only results of at most `limit` elements fold: larger ones belong to the weight store (`mlc-hoist-weights`). Results
that have no elements do whatever they are computed from: no kernel is made of them. An operation whose evaluation is a
run-time error of the model (an index out of range) stays, so that the error happens where and when the model says.
Constant tensors of other dialects become `mlc.constant`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mlir import ir

from mlc.interp import InterpError, evaluate
from mlc.interp.dtypes import numpy_dtype
from mlc.interp.from_ir import attributes, elements, result_type
from mlc.passes.base import Pass
from mlc.passes.simplify.rewrite import (
    constant_array,
    constant_before,
    constant_index,
    element_count,
    is_pure_mlc,
    is_static,
    replace,
)
from mlc.passes.walk import functions, operations

_NEVER = {"mlc.constant", "mlc.weight", "mlc.random"}


class FoldConstants(Pass):
    """Evaluates operations on constants."""

    dialects = ("mlc",)
    statistics = {"folded": "operations replaced by constants"}

    limit: int = 64
    """Largest element count of a folded result."""

    def run(self, op: Any) -> None:
        for function in functions(op):
            for inner in operations(function):
                self._visit(inner)

    def _visit(self, op: ir.Operation) -> None:
        if op.name == "arith.constant":
            _to_mlc(op)
            return
        arrays = self._evaluate(op)
        if arrays is None:
            return
        try:
            values = [constant_before(op, array) for array in arrays]
        except (TypeError, ValueError):  # an element type without dense constants
            return
        replace(op, values)
        self.count("folded")

    def _evaluate(self, op: ir.Operation) -> list[np.ndarray] | None:
        """The results of an operation on constants, or None when it must stay."""
        if op.name == "tensor.from_elements":
            return _from_elements(op, self.limit)
        if not is_pure_mlc(op) or op.name in _NEVER:
            return None
        if not all(is_static(r.type) and element_count(r.type) <= self.limit for r in op.results):
            return None
        types = [result_type(r.type) for r in op.results]
        if all(element_count(r.type) == 0 for r in op.results):
            return [np.zeros(type_.shape, numpy_dtype(type_.dtype)) for type_ in types]
        operands = [_constant(v) for v in op.operands]
        if any(value is None for value in operands):
            return None
        try:
            return evaluate(op.name, operands, attributes(op), types)
        except InterpError:
            return None


def _constant(value: ir.Value) -> np.ndarray | int | None:
    return constant_array(value) if isinstance(value.type, ir.RankedTensorType) else constant_index(value)


def _from_elements(op: ir.Operation, limit: int) -> list[np.ndarray] | None:
    numbers = [constant_index(v) for v in op.operands]
    type_ = result_type(op.results[0].type)
    if any(n is None for n in numbers) or len(numbers) > limit or type_.dtype not in ("i8", "i16", "i32", "i64"):
        return None
    return [np.array(numbers, f"int{type_.dtype[1:]}").reshape(type_.shape)]


def _to_mlc(op: ir.Operation) -> None:
    attr = op.attributes["value"]
    if isinstance(attr, ir.DenseElementsAttr) and isinstance(op.results[0].type, ir.RankedTensorType):
        replace(op, [constant_before(op, elements(attr))])
