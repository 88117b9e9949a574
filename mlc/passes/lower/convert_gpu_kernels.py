"""Convert the GPU's kernels to the LLVM dialect; those of the host are left to code generation.

```mlir
func.func @k0(%t: memref<f32>, …)  →  llvm.func @k0(%t: !llvm.ptr, …)
```
"""

from __future__ import annotations

from mlir import ir

from mlc.codegen.object import KERNEL_TO_LLVM
from mlc.passes.base import Pass, run_pipeline
from mlc.passes.schedule.assign_placement import is_host_kernel

TO_NVVM = [
    "inline",
    "symbol-dce",
    "canonicalize",
    "cse",
    *(name for name in KERNEL_TO_LLVM if name != "convert-math-to-libm"),  # a GPU has no C library
    "canonicalize",
    "cse",
    "convert-nvvm-to-llvm",
    "reconcile-unrealized-casts",
]


def gpu_kernels(program: ir.Operation) -> list[ir.Operation]:
    """The kernel modules of `program` that run on the GPU."""
    kernels = []
    for view in program.regions[0].blocks[0].operations:
        op = view.operation
        if "mlc.kernel" in op.attributes and not is_host_kernel(op):
            kernels.append(op)
    return kernels


class ConvertGpuKernels(Pass):
    """Convert the GPU's kernels to the LLVM dialect."""

    dialects = ("affine", "arith", "cf", "func", "index", "llvm", "math", "memref", "nvvm", "scf", "ub", "vector")

    def run(self, root: ir.OpView) -> None:
        for kernel in gpu_kernels(root.operation):
            run_pipeline(kernel, TO_NVVM)
