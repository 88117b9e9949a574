"""The compiler for NVIDIA GPUs: its phases in order, and the passes of each.

Up to `kernels` it is the CPU's compiler, with what the GPU claims kept whole. From `schedule` on only the kernels go
on: `nvvm` leaves each as a module of the LLVM dialect, which `mlc/codegen/ptx.py` turns into PTX and machine code.
"""

from __future__ import annotations

from mlc.pipelines import cpu
from mlc.targets.cpu import CpuTarget
from mlc.targets.nvidia import NvidiaTarget

Phase = tuple[str, list[str]]
SHARED = ("import", "simplify", "decompose", "layout", "linalg", "kernels")
ASKING = ("mlc-fold-views", "mlc-plan-fusion")  # the templates of the target

# The same conversions as for the CPU, but for the functions of the C library: a GPU has none.
TO_NVVM = [
    "inline",
    "symbol-dce",
    "canonicalize",
    "cse",
    "convert-vector-to-scf{full-unroll=true}",
    "expand-strided-metadata",
    "lower-affine",
    "convert-scf-to-cf",
    "canonicalize",
    "cse",
    "convert-vector-to-llvm{reassociate-fp-reductions=true}",
    "convert-math-to-llvm{approximate-log1p=false}",
    "expand-strided-metadata",
    "lower-affine",
    "finalize-memref-to-llvm{use-generic-functions=false}",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-ub-to-llvm",
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true}",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
]


def phases(target: NvidiaTarget, host: CpuTarget) -> list[Phase]:
    """All phases with their passes for `target`; `host` is the CPU that launches the kernels."""
    ours = [phase for phase in cpu.phases(host) if phase[0] in SHARED]
    shared = [(name, [f"{p}{{target=cuda}}" if p in ASKING else p for p in passes]) for name, passes in ours]
    return [
        *shared,
        ("schedule", ["mlc-assign-gpu-schedules"]),
        ("tile", ["mlc-expand-gpu-kernels", "builtin.module(canonicalize,cse)"]),
        ("nvvm", ["mlc-add-gpu-entries", f"builtin.module({','.join(TO_NVVM)})", "mlc-lower-to-nvvm"]),
    ]
