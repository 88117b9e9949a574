"""`mlc-convert-host`: the rest of the host (sizes, views, scalar loads) to the LLVM dialect; kernels are
left alone.
"""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.base import Pass
from mlc.passes.host.nested import run_on_host

PASSES = [
    "canonicalize",
    "expand-strided-metadata",
    "lower-affine",
    "canonicalize",
    "cse",
    "finalize-memref-to-llvm{use-generic-functions=false}",
    "convert-math-to-llvm",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
]


class ConvertHost(Pass):
    """Convert the host module to the LLVM dialect."""

    dialects = ("affine", "arith", "cf", "func", "index", "llvm", "math", "memref", "scf", "ub", "vector")  # of PASSES

    def run(self, op: ir.Operation) -> None:
        run_on_host(op, PASSES)
        hidden = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
        for child in _host_functions(op):
            child.attributes["visibility_"] = hidden


def _host_functions(program: ir.Operation) -> list[ir.Operation]:
    from mlc.passes.host.isolate_host import host_module

    host = host_module(program)
    assert host is not None
    return [c.operation for c in host.regions[0].blocks[0].operations if c.operation.name == "llvm.func"]
