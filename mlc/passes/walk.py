"""Walking over IR: what passes of several phases share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir


def functions(module: Any) -> list[ir.Operation]:
    """The functions with a body of a module, not those of nested modules."""
    return [
        view.operation
        for view in module.operation.regions[0].blocks[0].operations
        if view.operation.name == "func.func" and len(view.operation.regions[0].blocks)
    ]


def all_kernel_modules(module: Any) -> dict[str, ir.Operation]:
    """The kernel modules of a program, by name and in order, those for further architectures included."""
    return {
        ir.StringAttr(view.operation.attributes["sym_name"]).value: view.operation
        for view in module.operation.regions[0].blocks[0].operations
        if view.operation.name == "builtin.module" and "mlc.kernel" in view.operation.attributes
    }


def called_kernel(launch: ir.Operation) -> str:
    """The name of the kernel that an `mlc.launch` calls."""
    return ir.FlatSymbolRefAttr(launch.attributes["kernel"]).value


def behind(value: ir.Value) -> ir.InsertionPoint:
    """Right behind where a value is defined."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner.operation)


def operations(root: ir.Operation) -> list[ir.Operation]:
    """All operations inside `root`, each after those that it follows and before those in its regions."""
    return list(_walk(root))


def _walk(root: ir.Operation) -> Iterator[ir.Operation]:
    for region in root.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                if len(view.operation.regions):
                    yield from _walk(view.operation)
