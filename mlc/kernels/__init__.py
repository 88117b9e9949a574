"""Kernel templates: Python that emits the memref function of a kernel for one target."""
