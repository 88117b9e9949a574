"""`mlc-lower-host`: the host functions as calls of the runtime."""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.base import Pass
from mlc.passes.host.entry import EntryLowering
from mlc.passes.host.isolate_host import host_module, kernel_modules
from mlc.passes.host.nodes import Table
from mlc.passes.host.runtime_calls import Runtime


class LowerHost(Pass):
    """Turn the host functions into calls of the runtime.

    Runs on control flow graphs (`mlc-isolate-host`, `mlc-host-to-cfg` before). Every entry `f` becomes `i32
    mlc_entry_f(rt, args)`; whatever can fail ends its block, and a failure leaves the function at once with
    a nonzero value. Arguments of a kernel are stored into one array on the stack and handed over with the
    kernel's two functions.

    ```mlir
    mlc.launch @k0(%x) outs(%y) : (memref<?xf32>) outs(memref<?xf32>)
    // becomes
    llvm.store %x_pointer, %args[0] … llvm.store %n, %args[3]
    %failed = llvm.call @mlc_rt_launch(%rt, @k0, @k0_grid, %args, 0)
    cf.cond_br %failed, ^fail, ^next
    ```

    The tables that numbers refer to are module attributes: `mlc.nodes` (source node names) and
    `mlc.messages`.
    """

    dialects = ("llvm", "cf", "arith", "memref", "func")

    def run(self, op: ir.Operation) -> None:
        host = host_module(op)
        if host is None:
            raise ValueError("no host module; run mlc-isolate-host before")
        kernels = {name: number for number, (name, _) in enumerate(kernel_modules(op))}
        nodes, messages = Table(), Table()
        runtime = Runtime(host.regions[0].blocks[0])
        functions = [
            c.operation for c in host.regions[0].blocks[0].operations if c.operation.name == "func.func"
        ]
        for function in functions:
            if len(function.regions[0].blocks):
                EntryLowering(function, runtime, kernels, nodes, messages).lower()
        runtime.declare()
        op.attributes["mlc.nodes"] = nodes.attribute()
        op.attributes["mlc.messages"] = messages.attribute()
