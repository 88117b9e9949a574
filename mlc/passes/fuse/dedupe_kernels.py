"""Keep one of each set of identical kernels.

```mlir
mlc.launch @k3(…)  module @k3 {…}        →  mlc.launch @k0(…)
```
Kernels are compared by their text without names and locations.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.base import Pass
from mlc.passes.walk import called_kernel


class DedupeKernels(Pass):
    """Keep one of each set of identical kernels."""

    statistics = {"removed": "kernels that were copies of another"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        first: dict[str, str] = {}
        renamed: dict[str, str] = {}
        for view in list(module.regions[0].blocks[0].operations):
            op = view.operation
            if "mlc.kernel" not in op.attributes:
                continue
            name = ir.StringAttr(op.attributes["sym_name"]).value
            key = kernel_text(op)
            if key in first:
                renamed[name] = first[key]
                op.erase()
                self.count("removed")
            else:
                first[key] = name
        _redirect(module, renamed)


def kernel_text(kernel: ir.Operation) -> str:
    """The kernel's IR without its name and locations: equal texts are equal kernels."""
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    text = kernel.get_asm(enable_debug_info=False, use_local_scope=True, assume_verified=True)
    return text.replace(f"@{name}(", "@kernel(").replace(f"@{name} ", "@kernel ")


def _redirect(op: ir.Operation, renamed: dict[str, str]) -> None:
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if inner.name == "mlc.launch":
                    callee = called_kernel(inner)
                    if callee in renamed:
                        inner.attributes["kernel"] = ir.FlatSymbolRefAttr.get(renamed[callee])
                elif "mlc.kernel" not in inner.attributes:
                    _redirect(inner, renamed)
