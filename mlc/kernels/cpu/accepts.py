"""The CPU templates' answers to the fusion planner, by the kind of the kernel's root."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.accesses import read_dim, write_dim
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.fusion import (
    Accepts,
    Dims,
    Role,
    accepts_pointwise,
    accepts_rows,
    loads_at_computed,
    refuses_all,
)
from mlc.kernels.common.generics import is_reduction
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
    if role == "producer" and _is_found(op) and _is_read_across(op, dims):
        return "its elements are found one by one, across the lines that are stored"
    return accepts_pointwise(role, op, dims)


def _is_read_across(op: ir.Operation, dims: Dims) -> bool:
    """Does the kernel transpose what `op` computes: is that contiguous along another dimension than the result?"""
    write = write_dim(dims.reader.results[0].type.shape)
    return dims.is_permutation and read_dim(op.results[0], {tuple(dims.coordinates or ())}, write) is not None


def _is_found(op: ir.Operation) -> bool:
    """Does an elementwise generic load at computed addresses, or compute with what others do for it alone? What reads
    beside the end of its input is no such thing: a transposition leaves the padding out.
    """
    if op.name != "linalg.generic" or padded_tensor(op) is not None:
        return False
    if loads_at_computed(op):
        return True
    if is_reduction(op):
        return False
    alone = [defining_op(value) for value in list(op.operands)[: -len(op.results)] if len(list(value.uses)) == 1]
    return any(_is_found(producer) for producer in alone if producer is not None)


ACCEPTS: dict[str, Accepts] = {
    "attention": attention_fusion.accepts,
    "contraction": contraction_fusion.accepts,
    "rows": accepts_rows,
    "reduction": accepts_reduction,
    "elementwise": accepts_elementwise,
    "opaque": refuses_all,
}
TARGETS = {"cpu": ACCEPTS}
"""The answers by the name that passes have for a kind of CPUs."""
