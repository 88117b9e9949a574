"""Read the rows of a table from the panels that a contraction has of it.

```mlir
%w = mlc.weight "w" : tensor<50257x768xf32>
%p = mlc.transpose (mlc.reshape (mlc.pad %w …) …) : tensor<786x768x64xf32>
mlc.launch @embedding(%ids, %w)          // tensor.extract %w[%id, %k]
mlc.launch @logits(%x, %p)
// becomes
mlc.launch @embedding(%ids, %p)          // tensor.extract %p[%id / 64, %k, %id mod 64]
mlc.launch @logits(%x, %p)
```
Language models multiply by the table that their words come from. It is stored once then: a third of GPT-2. A row's
elements lie in as many lines of the cache, which costs as much as some of the many rows that the contraction reads
whole; so the table must be long. Done where nothing else reads the table as it was, and where kernels do nothing but
extract elements of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.kernels.common.frame import defining_op, kernel_source
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_schedules import collect_launches, read_schedule
from mlc.passes.schedule.pack_weights import retype
from mlc.passes.walk import all_kernel_modules, behind, called_kernel

_LEAST = 8192  # rows of a table, which a contraction reads whole for every one that is looked up
_MOVES = ("mlc.pad", "mlc.reshape", "mlc.transpose")


class Part(NamedTuple):
    """The coordinate `i / divisor mod modulus` of a packed element, of coordinate `i` of the table along `dim`; without
    a modulus where that is 0."""

    dim: int
    divisor: int = 1
    modulus: int = 0


class ReadPanels(Pass):
    """Read the rows of a table from the panels that a contraction has of it."""

    statistics = {"tables": "tables that are stored as panels only"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        kernels = all_kernel_modules(module)
        launches = collect_launches(module)
        weights = {defining_op(v): None for ops in launches.values() for op in ops for v in op.operands}
        for weight in weights:
            if weight is not None and weight.name == "mlc.weight":
                self.count("tables", int(_share(weight, kernels, launches)))


def _share(weight: ir.Operation, kernels: dict[str, ir.Operation], launches: dict[str, list[ir.Operation]]) -> bool:
    """Let all readers of `weight` have the panels of one of them; False where they cannot."""
    table = weight.results[0]
    users = list({use.owner.operation: None for use in table.uses})
    readers = [op for op in users if op.name == "mlc.launch"]
    chains = [_chain(op) for op in users if op.name != "mlc.launch"]
    if not readers or len(chains) != 1 or not chains[0]:
        return False
    [chain] = chains
    parts = _parts(chain, list(table.type.shape))
    if parts is None or not any(p.divisor > 1 and table.type.get_dim_size(p.dim) >= _LEAST for p in parts):
        return False
    places = {(called_kernel(op), i) for op in readers for i, v in enumerate(op.operands) if v == table}
    if not all(_only_looks_up(kernels[name], i, launches[name], table) for name, i in places):
        return False
    _move_behind(table, chain)
    packed = chain[-1].results[0]
    for name, i in sorted(places):
        _look_up(kernels[name], i, packed.type, parts)
        for launch in launches[name]:
            launch.operands[i] = packed
    return True


def _move_behind(table: ir.Value, chain: Sequence[ir.Operation]) -> None:
    """Move `chain` to where `table` is defined, in front of all its readers, with constants of its own."""
    last = table
    for op in chain:
        for number in range(1, len(op.operands)):
            constant = defining_op(op.operands[number])
            assert constant is not None
            last = constant.clone(behind(last)).operation.results[0]
            op.operands[number] = last
        op.move_after(last.owner.operation)
        last = op.results[0]


def _chain(op: ir.Operation) -> list[ir.Operation]:
    """The operations from `op` on that move a weight's elements, up to what launches read; empty for others."""
    chain = [op]
    while True:
        others = [defining_op(v) for v in list(op.operands)[1:]]
        if op.name not in _MOVES or not all(other is not None and other.name == "mlc.constant" for other in others):
            return []
        users = list({use.owner.operation: None for use in op.results[0].uses})
        if all(user.name == "mlc.launch" for user in users):
            return chain
        if len(users) != 1:
            return []
        [op] = users
        chain.append(op)


def _parts(chain: Sequence[ir.Operation], shape: list[int]) -> list[Part] | None:
    """Where an element of the table of `shape` is in what comes out of `chain`; None where that is no such thing."""
    parts: list[Part] | None = [Part(dim) for dim in range(len(shape))]
    for op in chain:
        if parts is None:
            return None
        if op.name == "mlc.transpose":
            parts = [parts[i] for i in ir.DenseI64ArrayAttr(op.attributes["permutation"])]
        elif op.name == "mlc.reshape":
            parts = _split(parts, list(op.operands[0].type.shape), list(op.results[0].type.shape))
        elif ir.StringAttr(op.attributes["mode"]).value != "constant" or any(
            ir.DenseI64ArrayAttr(op.attributes["static_low"])
        ):
            return None
    return parts


def _split(parts: Sequence[Part], old: Sequence[int], new: list[int]) -> list[Part] | None:
    """The coordinates of a reshape from `old` extents to `new` ones that only splits dimensions; None for others."""
    result, rest = list[Part](), list(new)
    for part, extent in zip(parts, old, strict=True):
        pieces = list[int]()
        while rest and (not pieces or math.prod(pieces) < extent):
            pieces.append(rest.pop(0))
        if math.prod(pieces) != extent or (part.modulus and len(pieces) > 1):
            return None
        behind = extent
        for number, piece in enumerate(pieces):
            behind //= piece
            result.append(Part(part.dim, part.divisor * behind, piece if number else part.modulus))
    return None if rest else result


def _only_looks_up(kernel: ir.Operation, number: int, launches: Sequence[ir.Operation], table: ir.Value) -> bool:
    """Does a kernel do nothing with argument `number`, the same in all launches, but extract elements of it?"""
    if read_schedule(kernel).get("template") != "loops" or any(op.operands[number] != table for op in launches):
        return False
    argument = kernel_source(kernel).block.arguments[number]
    return all(use.owner.name == "tensor.extract" for use in argument.uses)


def _look_up(kernel: ir.Operation, number: int, packed: ir.Type, parts: Sequence[Part]) -> None:
    """Let a kernel extract the elements of argument `number` from the `packed` tensor that it becomes."""
    source = kernel_source(kernel)
    argument = source.block.arguments[number]
    extracts = [use.owner.operation for use in argument.uses]
    retype(source.func.operation, argument, number, packed)
    for op in extracts:
        with ir.InsertionPoint(op), op.location:
            place = [_coordinate(op.operands[1 + part.dim], part) for part in parts]
            op.results[0].replace_all_uses_with(tensor.extract(argument, place))
        op.erase()


def _coordinate(value: ir.Value, part: Part) -> ir.Value:
    index = ir.IndexType.get()
    if part.divisor > 1:
        value = arith.divui(value, arith.constant(index, part.divisor))
    return arith.remui(value, arith.constant(index, part.modulus)) if part.modulus else value
