"""Pass `mlc-narrow-stores`: what kernels with contractions of `bf16` hand to other kernels is stored as `bf16`.

```mlir
%m = linalg.generic … ins(%a, %w : bf16, bf16) -> f32 {mlc.cluster = 0, mlc.contraction}
%s = linalg.generic … %m + %x                  -> f32 {mlc.cluster = 0}
%n = linalg.generic … sum of %s over rows             {mlc.cluster = 1}
// becomes
%s = linalg.generic … %m + %x                  -> f32  {mlc.cluster = 0}
%t = linalg.generic … %s rounded               -> bf16 {mlc.cluster = 0}
%u = linalg.generic … %t widened               -> f32  {mlc.cluster = 1}
%n = linalg.generic … sum of %u over rows              {mlc.cluster = 1}
```
The sums of a residual stream, which are added to and normalised later, take half the bytes, and so does what is
computed of them element by element or reads parts of them, as gates and concatenations do; what is stored rounded for a
contraction anyway is not stored a second time. All
arithmetic stays in `f32`: a value is rounded once, where it leaves its kernel, as the operands of contractions are.
What stays is what the host needs, what kernels read that only complete results of the model element by element, or take
the largest of something (of the logits of a softmax the exponential makes an absolute error a relative one), operands
of contractions that are not rounded, and tensors of few elements. Depthwise convolutions, which have no products to
pair, read tensors of `depthwise` elements rounded, if windows are small: every tap widens what it reads. Rounding takes
the unit that divides, so that tensors behind quotients have to be larger. Pools of few elements read and give rounded
ones. The largest of what others read, padded or not, may be taken of rounded elements where it is rounded itself and
nothing else reads it: rounding keeps the order, so that the result is the same. Obeys and extends `mlc.cluster`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cmp_to_key

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.analysis import is_contraction, touches
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import body_of, is_identity, is_reduction, only_operation, operand_map
from mlc.kernels.common.padding import padding_of
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import host_blocks
from mlc.passes.lower.to_linalg.builder import elementwise
from mlc.passes.schedule.extents import known, summed

UNKNOWN = 16
"""What an extent counts that is known at run time only."""
MOST_TAPS = 9
"""Of a depthwise convolution that reads rounded elements, and of a pool."""
LANES = 16
"""Channels of a vector: loads of a part of one, which are masked, take several times as long where elements are narrow.
"""
BEHIND_QUOTIENTS = 4
"""Times as many elements as of others are worth rounding for a depthwise convolution."""

_CLUSTER = "mlc.cluster"
_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")
_ENDS = ("func.return", "scf.yield", "scf.condition")
_LARGEST = ("arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf")


class NarrowStores(Pass):
    """What kernels with contractions of bf16 hand to other kernels is stored as bf16."""

    dialects = ("linalg", "tensor", "arith", "mlc")
    statistics = {"narrowed": "tensors between kernels that are stored as bf16"}

    fewest: int = 16384
    "Elements of a tensor that is worth it; an extent that is not known counts 16"

    depthwise: int = 0
    "Elements of a tensor that is worth it where depthwise convolutions read it; 0: none is"

    def run(self, root: ir.OpView) -> None:
        for block in host_blocks(root.operation):
            self.count("narrowed", narrow_block(block, self.fewest, self.depthwise))


def narrow_block(block: ir.Block, fewest: int, depthwise: int = 0) -> int:
    """Narrows what the clusters of `block` store of at least `fewest` elements, for convolutions of at least
    `depthwise`, if that is not 0; gives the number of tensors."""
    clusters: dict[int, list[ir.Operation]] = {}
    for view in block.operations:
        number = _cluster(view.operation)
        if number is not None:
            clusters.setdefault(number, []).append(view.operation)
    exact = {number for number, ops in clusters.items() if any(map(_wants_exact, ops)) or _only_completes(ops)}
    replaced: list[ir.Operation] = []
    count = 0
    for number, ops in clusters.items():
        multiplies = any(_is_narrowed(op) for op in ops)
        enough = depthwise * BEHIND_QUOTIENTS if any(map(_divides, ops)) else depthwise
        for value in [result for op in ops for result in op.results]:
            if not _is_large(value, fewest):
                continue
            rounded, is_very_large = _rounded(value, number), enough > 0 and _is_large(value, enough)
            is_narrow = multiplies or rounded or _comes_rounded(value, number)
            if is_narrow and _is_read(value, number, exact, is_very_large):
                replaced += [*_narrow(value, number, rounded), *rounded]
                count += 1
    for op in reversed(replaced):
        op.erase()
    return count


def _cluster(op: ir.Operation) -> int | None:
    return ir.IntegerAttr(op.attributes[_CLUSTER]).value if _CLUSTER in op.attributes else None


def _is_narrowed(op: ir.Operation) -> bool:
    """A contraction whose operands are bf16."""
    return is_contraction(op) and isinstance(op.operands[0].type.element_type, ir.BF16Type)


def _takes_largest(op: ir.Operation) -> bool:
    """A reduction by maximum or minimum."""
    if op.name != "linalg.generic" or not is_reduction(op):
        return False
    return any(inner.operation.name in _LARGEST for inner in op.regions[0].blocks[0].operations)


def _wants_exact(op: ir.Operation) -> bool:
    """Does `op` take the largest of what it reads, unless of windows or where rounding that first gives the same?"""
    return _takes_largest(op) and not _is_pool(op) and not _takes_largest_of_rounded(op)


def _is_pool(op: ir.Operation) -> bool:
    """Does a reduction have windows of few elements, of which nobody subtracts the largest?"""
    if op.name != "linalg.generic" or not is_reduction(op) or is_contraction(op):
        return False
    taps, plain = known(summed(op)), all(isinstance(e, ir.AffineDimExpr) for e in operand_map(op, 0).results)
    return not plain and taps is not None and taps <= MOST_TAPS


def _takes_largest_of_rounded(op: ir.Operation) -> bool:
    """Is `op` an extreme of elements of other kernels, or of their padding, as they are, and read rounded only?"""
    names, users = [inner.name for inner in body_of(op)], _users(op)
    is_extreme = len(names) == 2 and names[0] in _LARGEST
    inputs = list(op.operands)[: len(op.operands) - len(op.results)]
    return is_extreme and bool(users) and all(map(_rounds, users)) and all(_is_from_outside(v, op) for v in inputs)


def _is_from_outside(value: ir.Value, reader: ir.Operation) -> bool:
    """Does the cluster of `reader` read `value`, or what it is padded from, as it is?"""
    producer = defining_op(value)
    if producer is None or _cluster(producer) != _cluster(reader):
        return True
    padding = padding_of(producer)
    source = None if padding is None else defining_op(padding.source)
    return padding is not None and (source is None or _cluster(source) != _cluster(reader))


def _rounds(op: ir.Operation) -> bool:
    """Does `op` round its operand to bf16, element by element?"""
    rounds = only_operation(op, "arith.truncf") is not None and is_identity(op, 0) and is_identity(op, 1)
    return rounds and isinstance(op.results[0].type.element_type, ir.BF16Type)


def _only_completes(ops: list[ir.Operation]) -> bool:
    """Is a kernel of `ops` elementwise, and its result one of the model?"""
    reduces = any(op.name == "linalg.generic" and is_reduction(op) for op in ops)
    return not reduces and any(map(_gives_result, ops))


def _gives_result(op: ir.Operation) -> bool:
    """Is a result of `op` given away by a function or a loop?"""
    return any(u.name in _ENDS or (u.name in _VIEWS and _gives_result(u)) for u in _users(op))


def _rounded(value: ir.Value, number: int) -> list[ir.Operation]:
    """The operations of cluster `number` that round `value` to bf16, if others read what they give."""
    found = []
    for use in value.uses:
        op = use.owner.operation
        if _cluster(op) == number and _rounds(op):
            found.append(op)
    return found if any(_cluster(u.owner.operation) != number for op in found for u in op.results[0].uses) else []


def _comes_rounded(value: ir.Value, number: int) -> bool:
    """Is `value` computed from a tensor of bf16 of another kernel, element by element, as the sum of two of them is, or
    of the windows of a pool?"""
    stack, seen = [value], set()
    while stack:
        op = defining_op(stack.pop())
        if op is None or op in seen:
            continue
        seen.add(op)
        if _cluster(op) == number:
            is_elementwise = op.name == "linalg.generic" and not is_reduction(op)
            stack += list(op.operands) if is_elementwise or _is_pool(op) else []
            padding = padding_of(op) if is_elementwise else None
            stack += [] if padding is None else [padding.source]
        elif op.name in _VIEWS:
            stack.append(op.operands[0])
        elif _cluster(op) is not None and isinstance(op.results[0].type.element_type, ir.BF16Type):
            return True
    return False


def _is_large(value: ir.Value, fewest: int) -> bool:
    """Is `value` a tensor of at least `fewest` f32?"""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not isinstance(type_.element_type, ir.F32Type):
        return False
    return math.prod(UNKNOWN if type_.is_dynamic_dim(i) else type_.shape[i] for i in range(type_.rank)) >= fewest


def _is_read(value: ir.Value, number: int, exact: set[int], depthwise: bool) -> bool:
    """Do kernels other than those in `exact` read `value`, and nothing else?"""
    readers, block = list(_readers(value, number)), value.owner.operation.block
    return bool(readers) and all(op.block == block and _may_read(op, exact, depthwise) for op in readers)


def _readers(value: ir.Value, number: int) -> Iterator[ir.Operation]:
    """The operations outside of cluster `number` that read elements of `value`, through views."""
    for use in value.uses:
        op = _reader(use.owner.operation)
        if op.name in _VIEWS and _cluster(op) is None:
            yield from _readers(op.results[0], number)
        elif op.name != "tensor.dim" and _cluster(op) != number:
            yield op


def _reader(op: ir.Operation) -> ir.Operation:
    """The elementwise operation whose body `op` is in, also the padding that a pool or a depthwise convolution takes;
    `op` itself anywhere else."""
    around = op.parent
    while around is not None and around.operation.name == "scf.if":
        around = around.operation.parent
    generic = None if around is None else around.operation
    if generic is None or generic.name != "linalg.generic":
        return op
    if padding_of(generic) is None:
        return op if is_reduction(generic) else generic
    is_taken = all(
        _cluster(u) == _cluster(generic) and is_reduction(u) and (not is_contraction(u) or _is_small_depthwise(u))
        for u in _users(generic)
    )
    return generic if is_taken else op


def _is_small_depthwise(op: ir.Operation) -> bool:
    """Does a contraction of few taps have neighbouring results of neighbouring elements of both operands, whole vectors
    of them?"""
    last = ir.AffineDimExpr(operand_map(op, len(op.operands) - 1).results[-1]).position
    channels, taps = op.results[0].type.shape[-1], known(summed(op))
    is_small = taps is not None and taps <= MOST_TAPS and channels > 0 and channels % LANES == 0
    return is_small and all(touches(op, number, last) for number in range(2))


def _divides(op: ir.Operation) -> bool:
    """Does a cluster's operation compute quotients?"""
    return op.name == "linalg.generic" and any(inner.name == "arith.divf" for inner in body_of(op))


def _may_read(op: ir.Operation, exact: set[int], depthwise: bool) -> bool:
    """Can a cluster's operation read a widened tensor instead? What is padded for a contraction is padded for a
    depthwise one (`_reader`)."""
    number = _cluster(op)
    if op.name != "linalg.generic" or number is None or number in exact:
        return False
    readers = [op] if padding_of(op) is None else _users(op)
    contractions = [reader for reader in readers if is_contraction(reader)]
    return not contractions or depthwise and all(map(_is_small_depthwise, contractions))


def _users(op: ir.Operation) -> list[ir.Operation]:
    return [use.owner.operation for result in op.results for use in result.uses]


# -- doing it ----------------------------------------------------------------------------------------------------------


def _narrow(value: ir.Value, number: int, rounded: list[ir.Operation]) -> list[ir.Operation]:
    """Lets all that is outside of cluster `number` read `value` rounded, as readers of what is `rounded` do; gives what
    nobody needs any more, each behind what it reads."""
    op = defining_op(value)
    assert op is not None
    with ir.InsertionPoint.after(op), op.location:
        stored = _converted(value, ir.BF16Type.get(), number)
    for other in rounded:
        other.results[0].replace_all_uses_with(stored)
    return _redirect(value, stored, number)


def _redirect(value: ir.Value, stored: ir.Value, number: int) -> list[ir.Operation]:
    """Readers of `value` outside of cluster `number` get `stored`: views as it is, others widened in their cluster. It
    is what a kernel of its own would round `value` to; gives these and the views that only they read."""
    done: list[ir.Operation] = []
    widened: dict[int, ir.Value] = {}
    uses = [(_reader(use.owner.operation), use) for use in value.uses]
    here = [(op, use) for op, use in uses if op.block == stored.owner.operation.block]
    for op, use in sorted(here, key=cmp_to_key(_in_order)):
        operand, cluster = use.operand_number, _cluster(op)
        if op.name in _VIEWS and cluster is None:
            with ir.InsertionPoint(op), op.location:
                behind = _redirect(op.results[0], _viewed(op, stored), number)
            if behind:
                done += [op, *behind]
            else:
                op.erase()
        elif cluster != number and _rounds(op) and op.results[0].type == stored.type:
            op.results[0].replace_all_uses_with(stored)
            done.append(op)
        elif op.name == "tensor.dim" and stored.owner.operation.is_before_in_block(op):
            op.operands[0] = stored
        elif cluster is not None and cluster != number:
            if cluster not in widened:
                with ir.InsertionPoint(op), op.location:
                    widened[cluster] = _converted(stored, ir.F32Type.get(), cluster)
            use.owner.operation.operands[operand] = widened[cluster]
    return done


def _viewed(op: ir.Operation, stored: ir.Value) -> ir.Value:
    """The view `op` of `stored` instead."""
    type_ = op.results[0].type
    attributes = {name: op.attributes[name] for name in op.attributes}
    types = [ir.RankedTensorType.get(list(type_.shape), stored.type.element_type)]
    return ir.Operation.create(op.name, types, [stored, *list(op.operands)[1:]], attributes).results[0]


def _in_order(a: tuple[ir.Operation, ir.OpOperand], b: tuple[ir.Operation, ir.OpOperand]) -> int:
    """Compares the uses by operations of one block by their place there."""
    first, second = a[0], b[0]
    return 0 if first == second else -1 if first.is_before_in_block(second) else 1


def _converted(value: ir.Value, element: ir.Type, cluster: int) -> ir.Value:
    """`value` with other elements, computed in `cluster`."""
    convert = arith.truncf if isinstance(element, ir.BF16Type) else arith.extf
    result = elementwise(value, element, lambda x: convert(element, x))
    result.owner.attributes[_CLUSTER] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), cluster)
    return result
