"""Copies of kernels, and what the attributes of a kernel that is a copy of another one are called.

In a file of its own, so that a compilation for a CPU loads nothing of what makes copies for GPUs.
"""

from __future__ import annotations

from mlir import ir

KERNEL_OF = "mlc.kernel_of"
"""The name of the kernel that a copy for a further architecture was made from."""

VARIANT_OF = "mlc.variant_of"
"""The name of the kernel that a copy for few rows was made from."""

MOST = "mlc.most"
"""Up to what product of the result's dynamic extents a copy for few rows counts."""


def copy_kernel(kernel: ir.Operation, copied: str, place: ir.InsertionPoint) -> ir.Operation:
    """A copy of a kernel module by the name `copied`, and of its function."""
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    clone = kernel.clone(ip=place)
    clone.attributes["sym_name"] = ir.StringAttr.get(copied)
    for view in clone.regions[0].blocks[0].operations:
        function = view.operation
        if function.name == "func.func" and ir.StringAttr(function.attributes["sym_name"]).value == name:
            function.attributes["sym_name"] = ir.StringAttr.get(copied)
    return clone
