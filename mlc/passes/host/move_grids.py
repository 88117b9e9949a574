"""`mlc-move-grids`: moves the grid functions of GPU kernels to the host, which runs them."""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.base import Pass
from mlc.passes.host.device import grid_symbol
from mlc.passes.host.isolate_host import host_module
from mlc.passes.walk import all_kernel_modules


class MoveGrids(Pass):
    """Move the grid functions of GPU kernels into the host module.

    Runs after `mlc-lower-host`, whose launches call them, on kernels in the LLVM dialect.

    ```mlir
    module @k0 { llvm.func @k0(…) {nvvm.kernel}   llvm.func @k0_grid(%n: i64) -> i64 { … } }
    // becomes
    module @k0 { llvm.func @k0(…) {nvvm.kernel} }
    module @mlc_host { … llvm.func internal @mlc_kernel______k0_items(%n: i64) -> i64 { … } }
    ```
    """

    dialects = ("llvm",)

    def run(self, op: ir.Operation) -> None:
        host = host_module(op)
        if host is None:
            raise ValueError("no host module; run mlc-isolate-host before")
        block = host.regions[0].blocks[0]
        declared = {_name(o.operation): o.operation for o in block.operations if o.operation.name == "llvm.func"}
        for name, kernel in all_kernel_modules(op).items():
            grid = _grid(kernel, name)
            if grid is None:
                continue
            symbol = grid_symbol(name)
            if symbol not in declared:  # a kernel that nobody launches
                grid.erase()
                continue
            declared[symbol].erase()
            block.append(grid)
            grid.attributes["sym_name"] = ir.StringAttr.get(symbol)
            grid.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _grid(kernel: ir.Operation, name: str) -> ir.Operation | None:
    """The grid function of a GPU kernel, or None: kernels of the host keep theirs."""
    functions = [o.operation for o in kernel.regions[0].blocks[0].operations if o.operation.name == "llvm.func"]
    return next((f for f in functions if _name(f) == f"{name}_grid"), None)
