"""Two work items at once: the bodies of two iterations of a loop, with their inner loops walked together.

A row kernel is a chain: a reduction, a sum across lanes, a function of it, another loop. Each waits for the one before,
and a core looks a few hundred instructions ahead, which is about a row. With two rows in turns there is always
something to do while one waits. Pairs start at even items, whatever thread has them: the code for a pair and that for a
single item may round differently, where LLVM contracts a product and a sum in one of them only.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, scf

from mlc.kernels.common.clone import remap

Mapping = dict[ir.Value, ir.Value]

_CASTS = ("memref.reinterpret_cast", "memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.subview")
# Which operand of a store is the memory.
_STORED = {"memref.store": 1, "vector.store": 1, "vector.maskedstore": 0, "vector.scatter": 0}


def jam(loop: ir.Operation) -> bool:
    """Splits `loop`, an `scf.for` of step 1 that carries nothing, into one over pairs of iterations and one over what
    is left. False, and nothing changed, where iterations share memory that they write to."""
    body = loop.regions[0].blocks[0]
    if len(loop.results) or not _writes_arguments_only(body):
        return False
    low, high, one = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        two = arith.constant(ir.IndexType.get(), 2)
        pairs = arith.divsi(arith.subi(high, low), two)
        middle = arith.addi(low, arith.muli(pairs, two))
        both = scf.ForOp(low, middle, two)
        with ir.InsertionPoint(both.body):
            first = both.induction_variable
            variable = body.arguments[0]
            _emit(body, [{variable: first}, {variable: arith.addi(first, one)}])
            scf.YieldOp([])
    loop.operands[0] = middle
    return True


def _writes_arguments_only(block: ir.Block) -> bool:
    for view in block.operations:
        op = view.operation
        if op.name in ("memref.alloca", "memref.alloc", "scf.while"):
            return False
        stored = _STORED.get(op.name)
        if stored is not None and not _is_argument(op.operands[stored]):
            return False
        if any(not _writes_arguments_only(inner) for region in op.regions for inner in region.blocks):
            return False
    return True


def _is_argument(value: ir.Value) -> bool:
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name not in _CASTS:
            return False
        value = op.operands[0]
    return value.owner.owner.operation.name == "func.func"


def _emit(block: ir.Block, maps: list[Mapping]) -> list[list[ir.Value]]:
    """The operations of `block` once for each of `maps`; gives what its terminator would hand on in each."""
    ops = [view.operation for view in block.operations]
    for op in ops[:-1]:
        bounds = list(op.operands)[:3] if op.name == "scf.for" else []
        if bounds and all(_mapped(maps[0], v) == _mapped(m, v) for m in maps for v in bounds):
            _emit_loop(op, maps)
            continue
        shared = not len(op.operands) and not len(op.regions)
        for mapping in maps[:1] if shared else maps:
            clone = op.clone()
            remap(clone.operation, mapping)
            for m in maps if shared else [mapping]:
                m.update(zip(op.results, clone.operation.results, strict=True))
    return [[_mapped(m, v) for v in ops[-1].operands] for m in maps]


def _emit_loop(op: ir.Operation, maps: list[Mapping]) -> None:
    low, high, step = (_mapped(maps[0], v) for v in list(op.operands)[:3])
    carried = list(op.operands)[3:]
    loop = scf.ForOp(low, high, step, [_mapped(m, v) for m in maps for v in carried])
    body, count = op.regions[0].blocks[0], len(carried)
    inner: list[Mapping] = []
    for i, mapping in enumerate(maps):
        own = dict(mapping)
        own[body.arguments[0]] = loop.induction_variable
        own.update(zip(list(body.arguments)[1:], list(loop.inner_iter_args)[i * count : (i + 1) * count], strict=True))
        inner.append(own)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp([v for values in _emit(body, inner) for v in values])
    for i, mapping in enumerate(maps):
        mapping.update(zip(op.results, list(loop.results)[i * count : (i + 1) * count], strict=True))


def _mapped(mapping: Mapping, value: ir.Value) -> ir.Value:
    return mapping.get(value, value)
