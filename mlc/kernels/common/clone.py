"""Copies of operations that read other values."""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from mlc.kernels.common.blocks import blocks_of


def remap(op: ir.Operation, mapping: Mapping[ir.Value, ir.Value]) -> None:
    """Lets `op`, and what is inside it, read the values that `mapping` has for those it reads."""
    for number, value in enumerate(op.operands):
        if value in mapping:
            op.operands[number] = mapping[value]
    for block in blocks_of(op):
        for view in block.operations:
            remap(view.operation, mapping)
