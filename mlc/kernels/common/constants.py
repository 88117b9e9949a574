"""Tensors of a kernel that are weights in every launch: the same memory, which no launch writes."""

from __future__ import annotations

from mlir import ir

CONSTANTS = "mlc.constants"
"""The attribute of a kernel module with the bytes of the tensors, in order, that are weights in every launch; of other
tensors 0. Those behind the last weight are left out."""


def constant_bytes(kernel: ir.Operation) -> list[int]:
    """The bytes of a kernel module's tensors that are weights in every launch, and 0 for others, as far as noted."""
    return list(ir.DenseI64ArrayAttr(kernel.attributes[CONSTANTS])) if CONSTANTS in kernel.attributes else []
