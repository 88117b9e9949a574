"""Pass `mlc-decompose`: composite operations become other `mlc` operations, except those that the target claims.

    %0 = mlc.activation relu %x : tensor<4xf32>
becomes
    %c = mlc.constant dense<0.0> : tensor<f32>
    %0 = mlc.binary max %x, %c : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mlir import ir

from mlc.kernels.common.streamed import STREAMED
from mlc.passes.adaptor import OpAdaptor, defining_op
from mlc.passes.base import Pass, PipelineError
from mlc.passes.decompose import rules
from mlc.targets.claims import claims_of


class Decompose(Pass):
    """Decomposes the composite operations that the target does not claim."""

    dialects = ("arith", "tensor", "scf", "mlc")
    claims: list[str] = []
    "operations to keep whole, without `mlc.`; the module's target decides when empty"
    none: bool = False
    "keep no operation whole"

    def run(self, op: ir.OpView) -> None:
        kept = set(self.claims) if self.claims else claims_of(op.operation)
        decompose_region(op.operation, set() if self.none else kept)


def decompose_region(root: ir.Operation, claims: Collection[str] = ()) -> None:
    """Decomposes every composite operation inside `root` whose name (without `mlc.`) is not in `claims`, until none is
    left but those of weights that a product reads as they are (`mlc-stream-weights`)."""
    table = rules()
    while True:
        found: list[ir.Operation] = []

        def visit(op: ir.Operation, found: list[ir.Operation] = found) -> ir.WalkResult:
            if op.name in table and op.name.removeprefix("mlc.") not in claims and STREAMED not in op.attributes:
                found.append(op)
            return ir.WalkResult.ADVANCE

        root.walk(visit, ir.WalkOrder.PRE_ORDER)
        if not found:
            return
        for op in found:
            decompose_operation(op)
        _erase_unused_convolutions(root)


def _erase_unused_convolutions(root: ir.Operation) -> None:
    """Those that were replaced by one with a batch normalization folded in."""
    unused: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "mlc.conv" and not any(True for _ in op.results[0].uses):
            unused.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    for op in unused:
        op.erase()


def decompose_operation(op: ir.Operation) -> None:
    """Replaces one composite operation by its decomposition."""
    with ir.InsertionPoint(op), op.location:
        try:
            results = rules()[op.name](OpAdaptor(op))
        except ValueError as error:
            raise PipelineError([str(error)]) from error
        values: Sequence[ir.Value] = [results] if isinstance(results, ir.Value) else results
    for old, new in zip(list(op.results), values, strict=True):
        replace(old, new)
    op.erase()


def replace(old: ir.Value, new: ir.Value) -> None:
    """Replaces a result by a value whose inferred type may know less of the shape."""
    producer = defining_op(new)
    if new.type != old.type and producer is not None and producer.name.startswith("mlc."):
        new.set_type(old.type)
    old.replace_all_uses_with(new)
