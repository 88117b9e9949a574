"""`mlc-host-to-cfg`: branches and loops of the host become a control flow graph; kernels are left alone."""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.base import Pass
from mlc.passes.host.nested import run_on_host

PASSES = ["convert-scf-to-cf", "canonicalize"]


class HostToCfg(Pass):
    """Turn the structured control flow of the host into a control flow graph."""

    dialects = ("affine", "arith", "cf", "func", "index", "llvm", "math", "memref", "scf", "ub", "vector")  # of PASSES

    def run(self, op: ir.Operation) -> None:
        run_on_host(op, PASSES)
