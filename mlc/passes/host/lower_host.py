"""`mlc-lower-host`: the host functions as calls of the runtime."""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.base import Pass
from mlc.passes.host.entry import EntryLowering
from mlc.passes.host.isolate_host import copies_of, host_module, kernel_modules, variants_of
from mlc.passes.host.nodes import Tables
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

    The tables that numbers refer to are module attributes: `mlc.nodes` (source node names), `mlc.messages`
    and `mlc.kernels` (name, template and nodes of every kernel). `mlc.memory` has the arena's size for
    every entry.
    """

    dialects = ("llvm", "cf", "arith", "memref", "func")

    def run(self, op: ir.Operation) -> None:
        host = host_module(op)
        if host is None:
            raise ValueError("no host module; run mlc-isolate-host before")
        kernels = {name: number for number, (name, _) in enumerate(kernel_modules(op))}
        tables = Tables(kernels, copies_of(op), variants_of(op))
        runtime = Runtime(host.regions[0].blocks[0])
        functions = [c.operation for c in host.regions[0].blocks[0].operations if c.operation.name == "func.func"]
        memory: dict[str, ir.Attribute] = {}
        for function in functions:
            name = ir.StringAttr(function.attributes["sym_name"]).value
            for attribute in ("mlc.arena", "mlc.arena_formula"):
                if attribute in function.attributes:
                    memory[name] = function.attributes[attribute]
                    del function.attributes[attribute]
            if "mlc.placed" in function.attributes:
                del function.attributes["mlc.placed"]
            EntryLowering(function, runtime, tables).lower()
        runtime.declare()
        op.attributes["mlc.nodes"] = tables.nodes.attribute()
        op.attributes["mlc.messages"] = tables.messages.attribute()
        op.attributes["mlc.kernels"] = _kernel_table(op, tables)
        op.attributes["mlc.memory"] = ir.DictAttr.get(memory)


def _kernel_table(program: ir.Operation, tables: Tables) -> ir.Attribute:
    rows = []
    for name, module in kernel_modules(program):
        template = ""
        if "mlc.schedule" in module.attributes:
            schedule = ir.DictAttr(ir.ArrayAttr(module.attributes["mlc.schedule"])[0])
            if "template" in schedule:
                template = ir.StringAttr(schedule["template"]).value
        nodes = [ir.StringAttr.get(node) for node in tables.launched.get(name, {})]
        row = {
            "name": ir.StringAttr.get(name),
            "template": ir.StringAttr.get(template),
            "nodes": ir.ArrayAttr.get(nodes),
        }
        rows.append(ir.DictAttr.get(row))
    return ir.ArrayAttr.get(rows)
