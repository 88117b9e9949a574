"""The GPU templates' answers to the fusion planner, by the kind of the kernel's root."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.fusion import Accepts, Dims, Role, accepts_pointwise, accepts_rows, refuses_all


def _contraction(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """Consumers run on the accumulators; operands are read from memory."""
    if role == "producer":
        return "it would be computed again for every tile of the contraction"
    return accepts_pointwise(role, op, dims)


ACCEPTS: dict[str, Accepts] = {
    "contraction": _contraction,
    "rows": accepts_rows,
    "reduction": accepts_pointwise,
    "elementwise": accepts_pointwise,
    "opaque": refuses_all,
}
