"""Pass `mlc-lower-to-linalg`: primitive operations become `linalg.generic`s and free views.

    %0 = mlc.binary add %x, %y : tensor<4xf32>
becomes
    %e = tensor.empty() : tensor<4xf32>
    %0 = linalg.generic {…} ins(%x, %y) outs(%e) { arith.addf } -> tensor<4xf32>

Opaque operations (sort, scan, scatter, …) stay as they are. Sizes are `index` arithmetic over `tensor.dim` of function
arguments and of data-dependent results.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.passes.adaptor import node_name
from mlc.passes.base import Pass, PipelineError
from mlc.passes.lower.to_linalg import OPAQUE, rules
from mlc.passes.lower.to_linalg.context import DimFacts, Lowering
from mlc.passes.lower.to_linalg.sizes import resolve_dims
from mlc.passes.lower.to_linalg.views import cast_to
from mlc.passes.walk import functions


class LowerToLinalg(Pass):
    """Lowers primitive mlc operations to linalg on tensors."""

    dialects = ("arith", "math", "scf", "cf", "tensor", "linalg", "mlc")

    def run(self, op: ir.OpView) -> None:
        for function in functions(op):
            lower_function(function)


def lower_function(function: ir.Operation) -> None:
    """Lowers every `mlc` operation of `function`, also inside control flow.

    Raises `PipelineError` with the node's name for an operation without a lowering."""
    facts = DimFacts(function)
    targets: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("mlc.") and op.name not in OPAQUE:
            targets.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in targets:
        lower_operation(op, facts)
    resolve_dims(function)
    erase_unused(function)


def lower_operation(op: ir.Operation, facts: DimFacts) -> None:
    """Replaces one operation by its lowering."""
    rule = rules().get(op.name)
    if rule is None:
        message = f"{node_name(op.location)}: {op.name} has no lowering and was not decomposed"
        raise PipelineError([message])
    with ir.InsertionPoint(op), op.location:
        results = rule(Lowering(op, facts))
        values: Sequence[ir.Value] = [results] if isinstance(results, ir.Value) else results
        values = [cast_to(v, r.type) for v, r in zip(values, op.results, strict=True)]
    for old, new in zip(list(op.results), values, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


_PURE_PREFIXES = ("arith.", "tensor.", "mlc.constant", "mlc.weight", "linalg.fill")


def erase_unused(function: ir.Operation) -> None:
    """Drops size arithmetic and sources that nothing reads any more."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith(_PURE_PREFIXES):
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in reversed(found):
        if is_unused(op):
            op.erase()


def is_unused(op: ir.Operation) -> bool:
    return not any(True for result in op.results for _ in result.uses)
