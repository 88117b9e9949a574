"""Count before `mlc.nonzero`, so that its destination can be allocated.

```mlir
%r = mlc.nonzero %x   →   %n = linalg.generic … sum of (%x != 0)   %c = tensor.extract %n[]   %i = arith.index_cast %c
                          %r = mlc.launch @nonzero0(%x) outs(tensor.empty(%i))
```
The count is an ordinary reduction that fusion places like any other.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, func, tensor

from mlc.dialects import linalg
from mlc.dialects import mlc as m
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import host_blocks


class CountNonzero(Pass):
    """Count before mlc.nonzero, so that its destination can be allocated."""

    dialects = ("linalg", "tensor", "arith", "func", "mlc")

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        self.module_block = module.regions[0].blocks[0]
        number = 0
        for block in host_blocks(module):
            for view in list(block.operations):
                op = view.operation
                if op.name == "mlc.nonzero":
                    with ir.InsertionPoint(op), op.location:
                        self._replace(op, f"nonzero{number}")
                    number += 1

    def _replace(self, op: ir.Operation, name: str) -> None:
        source, result = op.operands[0], op.results[0]
        count = arith.index_cast(ir.IndexType.get(), tensor.extract(_count(source), []))
        type_ = result.type
        destination = tensor.EmptyOp(
            [type_.get_dim_size(0), count] if type_.is_dynamic_dim(1) else list(type_.shape), type_.element_type
        ).result
        _kernel(self.module_block, name, source.type, type_)
        result.replace_all_uses_with(m.launch(name, [source], [destination])[0])
        op.erase()


def _count(source: ir.Value) -> ir.Value:
    """Number of non-zero elements as an i64 scalar tensor."""
    i64 = ir.IntegerType.get_signless(64)
    rank, element = source.type.rank, source.type.element_type
    zero = arith.constant(i64, 0)
    empty = tensor.EmptyOp([], i64).result
    init = linalg.fill(zero, outs=[empty])
    maps = [ir.AffineMap.get_identity(rank), ir.AffineMap.get(rank, 0, [])]
    kinds = ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<reduction>")] * rank)
    generic = linalg.GenericOp(
        [init.type], [source], [init], ir.ArrayAttr.get([ir.AffineMapAttr.get(x) for x in maps]), kinds
    )
    body = generic.regions[0].blocks.append(element, i64)
    with ir.InsertionPoint(body):
        value, total = body.arguments
        if isinstance(element, ir.FloatType):
            found = arith.cmpf(arith.CmpFPredicate.UNE, value, arith.constant(element, 0.0))
        elif element.width == 1:
            found = value
        else:
            found = arith.cmpi(arith.CmpIPredicate.ne, value, arith.constant(element, 0))
        linalg.YieldOp([arith.addi(total, arith.extui(i64, found))])
    return generic.results[0]


def _kernel(block: ir.Block, name: str, source: ir.Type, result: ir.Type) -> None:
    attributes = {"sym_name": ir.StringAttr.get(name), "mlc.kernel": ir.UnitAttr.get()}
    with ir.InsertionPoint(block):
        module = ir.Operation.create("builtin.module", regions=1, attributes=attributes)
    with ir.InsertionPoint(module.regions[0].blocks.append()):
        function = func.FuncOp(name, ir.FunctionType.get([source, result], [result]))
    entry = function.add_entry_block()
    with ir.InsertionPoint(entry):
        func.ReturnOp([m.nonzero(entry.arguments[0], results=[result])])
