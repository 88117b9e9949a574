"""The CPU templates' answers to the fusion planner, by the kind of the kernel's root."""

from __future__ import annotations

from functools import partial

from mlir import ir

from mlc.kernels.common.fusion import Accepts, Dims, Role, accepts_pointwise, accepts_rows, refuses_all
from mlc.kernels.common.padding import padding_of
from mlc.kernels.cpu import attention_fusion, contraction_fusion
from mlc.kernels.cpu.padded_pool import padded_pool
from mlc.kernels.cpu.planes import find_plane, plane_padding


def accepts_reduction(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """The rule of reductions: pools take the padding of their input, which they leave out."""
    if role == "producer" and dims.reader == dims.root and dims.operand == 0 and padding_of(op) is not None:
        is_plane = find_plane(dims.root) is not None and plane_padding(dims.root) is not None
        if is_plane or padded_pool(dims.root) is not None:
            return None
    return accepts_pointwise(role, op, dims)


ACCEPTS: dict[str, Accepts] = {
    "attention": attention_fusion.accepts,
    "contraction": contraction_fusion.accepts,
    "rows": accepts_rows,
    "reduction": accepts_reduction,
    "elementwise": accepts_pointwise,
    "opaque": refuses_all,
}
TARGETS: dict[str, dict[str, Accepts]] = {
    "cpu": ACCEPTS,
    "cpu-tiles": {**ACCEPTS, "attention": partial(attention_fusion.accepts, tiles=True)},
}
"""The answers by the name that passes have for a kind of CPUs: `cpu-tiles` have matrix tiles that multiply bf16."""
