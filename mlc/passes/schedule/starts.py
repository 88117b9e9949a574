"""Launches of their own for what a kernel that updates its destination begins with.

In a file of its own, so that a compilation for a CPU loads nothing of what scatters for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, func

from mlc.dialects import linalg
from mlc.dialects import mlc as m
from mlc.kernels.common.frame import defining_op

Body = Callable[[list[ir.Value], ir.Value], ir.Value]
"""What a kernel computes of its inputs and its destination."""

_PLACEMENT = "mlc.placement"


def started_by(kernel: str) -> str:
    """The name of the kernel that writes what the one of this name begins with."""
    return f"{kernel}_start"


def number_of(data: ir.Value) -> ir.Attribute | None:
    """The number that all elements are, if a kernel fills a tensor with one."""
    op = defining_op(data)
    if op is None:
        return None
    if op.name == "linalg.fill":
        filled = defining_op(op.operands[0])
        return filled.attributes["value"] if filled is not None and filled.name == "arith.constant" else None
    if op.name in ("arith.constant", "mlc.constant"):
        dense = op.attributes["value"]
        is_splat = isinstance(dense, ir.DenseElementsAttr) and dense.is_splat
        return dense.get_splat_value() if is_splat else None
    return None


def filled_with(value: ir.Attribute) -> Body:
    """A tensor that is `value` everywhere."""

    def body(_: list[ir.Value], destination: ir.Value) -> ir.Value:
        number = arith.ConstantOp(destination.type.element_type, value).result
        return linalg.fill(number, outs=[destination])

    return body


def start_kernel(kernel: ir.Operation, name: str, inputs: Sequence[ir.Type], result: ir.Type, body: Body) -> None:
    """Adds the kernel `name` in front of `kernel`, and for where that runs."""
    attributes = {"sym_name": ir.StringAttr.get(name), "mlc.kernel": ir.UnitAttr.get()}
    if _PLACEMENT in kernel.attributes:
        attributes[_PLACEMENT] = kernel.attributes[_PLACEMENT]
    with ir.InsertionPoint(kernel), kernel.location:
        module = ir.Operation.create("builtin.module", regions=1, attributes=attributes)
        with ir.InsertionPoint(module.regions[0].blocks.append()):
            function = func.FuncOp(name, ir.FunctionType.get([*inputs, result], [result]))
        *given, destination = function.add_entry_block().arguments
        with ir.InsertionPoint(function.entry_block):
            func.ReturnOp([body(given, destination)])


def start(launch: ir.Operation, kernel: str, inputs: Sequence[ir.Value]) -> ir.Value:
    """The result of a launch of `kernel` in front of `launch`, into what that has as its destination."""
    with ir.InsertionPoint(launch), launch.location:
        [made] = m.launch(kernel, list(inputs), [launch.operands[len(launch.operands) - 1]])
    if _PLACEMENT in launch.attributes:
        made.owner.attributes[_PLACEMENT] = launch.attributes[_PLACEMENT]
    return made


def update(launch: ir.Operation, started: ir.Value) -> None:
    """Lets `launch` update `started`, which nobody else needs."""
    launch.operands[len(launch.operands) - 1] = started
    launch.attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get([0])
    launch.attributes["mlc.in_place"] = ir.UnitAttr.get()
