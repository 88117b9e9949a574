"""Drops operations whose results nothing uses: what is left of shape computations that were known at import."""

from __future__ import annotations

from mlir import ir

_EFFECTS = {"mlc.check", "mlc.extern"}
_PURE = {"tensor.dim", "tensor.extract", "tensor.cast", "tensor.from_elements"}
_REGIONS = {"scf.if", "scf.for", "scf.while"}


def drop_unused(block: ir.Block) -> None:
    """Erases unused operations without effects from `block` and the blocks nested in it."""
    for op in reversed(list(block.operations)):
        operation = op.operation
        for region in operation.regions:
            for nested in region.blocks:
                drop_unused(nested)
        if _removable(operation) and all(next(iter(result.uses), None) is None for result in operation.results):
            operation.erase()


def _removable(operation: ir.Operation) -> bool:
    name = operation.name
    if name in _REGIONS:
        inner = (op.operation for region in operation.regions for block in region.blocks for op in block.operations)
        return all(_removable(op) or op.name in ("scf.yield", "scf.condition") for op in inner)
    if name.startswith("mlc."):
        return name not in _EFFECTS and len(operation.results) > 0
    return name in _PURE or name.startswith("arith.")
