"""What GPU kernels cannot compute."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import reachable
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.vector_math import SUPPORTED


def missing_functions(source: KernelSource) -> list[tuple[str, str]]:
    """(node, function) wherever a kernel needs a function that no GPU instruction and no expansion of ours computes.

    Those are the transcendental functions of f64: expansions are for f32, and there is no libdevice.
    """
    problems: dict[tuple[str, str], None] = {}
    for op in reachable(source.results):
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    if _is_missing(inner.operation):
                        name = inner.operation.name.removeprefix("math.")
                        problems[_node(inner.location), name] = None
    return list(problems)


def _is_missing(op: ir.Operation) -> bool:
    """Nested regions hold no functions: the branches of a body only load. rsqrt is a root and a division."""
    return op.name in SUPPORTED and op.name != "math.rsqrt" and isinstance(op.operands[0].type, ir.F64Type)


def _node(location: ir.Location) -> str:
    """The first source node that a location names."""
    if location.is_a_name():
        return location.name_str
    return next((n for part in location.locations if (n := _node(part))), "") if location.is_a_fused() else ""
