"""The CPU templates' answers to the fusion planner, by the kind of the kernel's root."""

from __future__ import annotations

from functools import partial

from mlir import ir

from mlc.kernels.common.fusion import (
    Accepts,
    Dims,
    Role,
    accepts_pointwise,
    accepts_rows,
    loads_at_computed,
    refuses_all,
)
from mlc.kernels.common.padding import padded_tensor, padding_of
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


def accepts_elementwise(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """The rule of elementwise kernels: a transposition loads lines and exchanges their elements in registers, which
    takes a pass of its own but less than to load element by element at addresses that are computed.
    """
    if role == "producer" and dims.is_permutation and dims.moves_lines and _is_found(op):
        return "its elements are found one by one, across the lines that are stored"
    return accepts_pointwise(role, op, dims)


def _is_found(op: ir.Operation) -> bool:
    """Does an elementwise generic load at computed addresses, or compute with what others do for it alone? What reads
    beside the end of its input is no such thing: a transposition leaves the padding out.
    """
    if op.name != "linalg.generic" or padded_tensor(op) is not None:
        return False
    if loads_at_computed(op):
        return True
    if "reduction" in str(op.attributes["iterator_types"]):
        return False
    inputs = [value.owner.operation for value in list(op.operands)[:-1] if not isinstance(value.owner, ir.Block)]
    return any(_is_found(owner) for owner in inputs if len(list(owner.results[0].uses)) == 1)


ACCEPTS: dict[str, Accepts] = {
    "attention": attention_fusion.accepts,
    "contraction": contraction_fusion.accepts,
    "rows": accepts_rows,
    "reduction": accepts_reduction,
    "elementwise": accepts_elementwise,
    "opaque": refuses_all,
}
TARGETS: dict[str, dict[str, Accepts]] = {
    "cpu": ACCEPTS,
    "cpu-tiles": {**ACCEPTS, "attention": partial(attention_fusion.accepts, tiles=True)},
}
"""The answers by the name that passes have for a kind of CPUs: `cpu-tiles` have matrix tiles that multiply bf16."""
