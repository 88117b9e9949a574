"""`mlc-isolate-host`: moves the host functions and their constants into a module of their own."""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.base import Pass
from mlc.passes.schedule.copies import KERNEL_OF, MOST, VARIANT_OF
from mlc.passes.walk import all_kernel_modules

HOST = "mlc_host"


def host_module(program: ir.Operation) -> ir.Operation | None:
    """The module that holds the host functions of `program`, once it has been isolated."""
    for child in program.regions[0].blocks[0].operations:
        if child.operation.name == "builtin.module" and "mlc.host" in child.operation.attributes:
            return child.operation
    return None


def kernel_modules(program: ir.Operation) -> list[tuple[str, ir.Operation]]:
    """The kernel modules of `program` and their names, in order; the position is the kernel's number. Copies for
    further architectures have none."""
    return [(name, op) for name, op in all_kernel_modules(program).items() if KERNEL_OF not in op.attributes]


def copies_of(program: ir.Operation) -> dict[str, list[str]]:
    """The names of the copies of every kernel that has some, in the order of the architectures."""
    found: dict[str, list[str]] = {}
    for name, op in all_kernel_modules(program).items():
        if KERNEL_OF in op.attributes:
            found.setdefault(ir.StringAttr(op.attributes[KERNEL_OF]).value, []).append(name)
    return found


def variants_of(program: ir.Operation) -> dict[str, list[tuple[int, str]]]:
    """For every kernel that has copies for few rows: up to what product of the result's dynamic extents each counts,
    and its name, the smallest first."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name, op in kernel_modules(program):
        if VARIANT_OF in op.attributes:
            most = ir.IntegerAttr(op.attributes[MOST]).value
            found.setdefault(ir.StringAttr(op.attributes[VARIANT_OF]).value, []).append((most, name))
    return {name: sorted(variants) for name, variants in found.items()}


class IsolateHost(Pass):
    """Move the host functions into a module of their own.

    From here on the host is compiled like a kernel: one module, one object.

    ```mlir
    func.func @forward(…) { … }
    // becomes
    module @mlc_host attributes {mlc.host} { func.func @forward(…) { … } }
    ```
    """

    def run(self, op: ir.Operation) -> None:
        body = op.regions[0].blocks[0]
        moved = [c for c in body.operations if c.operation.name in ("func.func", "memref.global")]
        attributes = {"sym_name": ir.StringAttr.get(HOST), "mlc.host": ir.UnitAttr.get()}
        ip = ir.InsertionPoint.at_block_begin(body)
        module = ir.Operation.create("builtin.module", attributes=attributes, regions=1, loc=op.location, ip=ip)
        block = module.regions[0].blocks.append()
        for child in moved:
            block.append(child)
