"""Pass `mlc-strings-to-records`: elements of string tensors become integers of 128 bits.

```mlir
%0 = mlc.reshape %x [4] : tensor<2x2x!mlc.str> -> tensor<4x!mlc.str>
// becomes
%0 = mlc.reshape %x [4] : tensor<2x2xi128> -> tensor<4xi128>
```

In memory such an element is the record of address and size that `mlc_string` is (docs/abi.md). Kernels move it like a
number; what looks at the text is an `mlc.extern`.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from mlc.passes.base import Pass
from mlc.passes.walk import functions, operations

_STRING, _RECORD = "!mlc.str", "i128"


class StringsToRecords(Pass):
    """Makes the elements of string tensors integers of 128 bits."""

    def run(self, op: Any) -> None:
        for function in functions(op):
            kind = ir.TypeAttr(function.attributes["function_type"]).value
            for block in function.regions[0].blocks:
                for argument in block.arguments:
                    _convert(argument)
            for inner in operations(function):
                for result in inner.results:
                    _convert(result)
                for region in inner.regions:
                    for block in region.blocks:
                        for argument in block.arguments:
                            _convert(argument)
            function.attributes["function_type"] = ir.TypeAttr.get(_converted(kind))


def _convert(value: ir.Value) -> None:
    new = _converted(value.type)
    if new != value.type:
        value.set_type(new)


def _converted(kind: ir.Type) -> ir.Type:
    text = str(kind)
    return ir.Type.parse(text.replace(_STRING, _RECORD)) if _STRING in text else kind
