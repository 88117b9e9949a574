"""What the run-time extents of a kernel's tensors are multiples of, where all of its launches are known."""

from __future__ import annotations

from mlir import ir

MULTIPLES = "mlc.multiples"
"""The attribute of a kernel module with a divisor of each dynamic extent of its tensors, in the order of arguments."""


def multiples(kernel: ir.Operation) -> list[int]:
    """The divisors of a kernel module's dynamic extents, as far as noted."""
    return list(ir.DenseI64ArrayAttr(kernel.attributes[MULTIPLES])) if MULTIPLES in kernel.attributes else []
