"""What the attributes of a kernel that is a copy of another one are called.

In a file of its own, so that a compilation for a CPU reads them off its program without loading what makes copies.
"""

KERNEL_OF = "mlc.kernel_of"
"""The name of the kernel that a copy for a further architecture was made from."""

VARIANT_OF = "mlc.variant_of"
"""The name of the kernel that a copy for few rows was made from."""

MOST = "mlc.most"
"""Up to what product of the result's dynamic extents a copy for few rows counts."""
