"""The pattern of attention: `softmax(f(q k)) v` in the linalg form, between two contractions.

`f` is any chain of elementwise operations on the scores at their own points (scale, soft cap, masks). The softmax is
`exp(x - max(x)) / sum` over the last dimension, where the maximum may be guarded (−inf counts as 0) and the sum may
pass through elementwise operations per row. A weight may be one logit more, which no key belongs to (a sink): it takes
part in the maximum, and its exponential is added to the sum. Reshapes that regroup leading dimensions (grouped heads)
may stand anywhere between the contractions. The contractions are of f32, or of 16-bit floats that accumulate in f32;
then the quotients are rounded before the second one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.analysis import is_contraction, mentions, reachable, touches
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import (
    body_of,
    input_number,
    is_identity,
    is_number,
    is_reduction,
    only_operation,
    operand_map,
    reduces_by,
    starts_at,
)

_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")
_CHOICE = ("arith.select", "arith.constant", "linalg.yield")
_STEPS = 8  # from a weight to where it is used


@dataclass(frozen=True)
class Product:
    """A contraction of attention by its iteration dimensions: `left` has `row` and `inner`, `right` has `column` and
    `inner`; `batch` are the others."""

    op: ir.Operation
    row: int
    column: int
    inner: int

    @property
    def batch(self) -> list[int]:
        """The dimensions that are neither rows, columns nor the reduction."""
        rank = len(self.op.attributes["iterator_types"])
        return [d for d in range(rank) if d not in (self.row, self.column, self.inner)]

    @property
    def order(self) -> list[int]:
        """The iteration dimension of every dimension of the result."""
        return [ir.AffineDimExpr(e).position for e in operand_map(self.op, 2).results]

    @property
    def element(self) -> ir.Type:
        """The type of what is multiplied."""
        return self.op.operands[1].type.element_type


@dataclass(frozen=True)
class Attention:
    """The operations of one attention: `scores`, the chain `between` whose last value `logits` the softmax reads,
    `maximum` and `total` of the rows, `difference` (the logits less their shift, its operand `shifted_by`), `divisor`
    (what the exponentials are divided by; `without_sink` before that of a sink was added) and the `output` product.
    `members` are all of them in the order of their discovery. A sink takes part in the shift, which the divisor is
    computed from then."""

    scores: Product
    output: Product
    logits: ir.Value
    path: tuple[tuple[ir.Operation, int], ...]
    maximum: ir.Operation
    total: ir.Operation
    difference: ir.Operation
    shifted_by: int
    without_sink: ir.Value
    divisor: ir.Value
    quotient: ir.Operation
    members: tuple[ir.Operation, ...]

    @property
    def sink(self) -> bool:
        """Does a weight take part in the softmax?"""
        return self.without_sink != self.divisor

    @property
    def shift(self) -> ir.Value:
        """What the logits are shifted by: the maximum, guarded, or the larger one of that and a sink."""
        return self.difference.operands[self.shifted_by]


def shared_dim(attention: Attention) -> int | None:
    """The batch dimension of the result along which keys and values are the same: that of the heads of a group. None
    where there is none, or not one alone."""
    found = []
    for product in (attention.scores, attention.output):
        own = [d for d in product.batch if not touches(product.op, 1, d) and not _is_unit(product.op, d)]
        found.append([(d, product.op.results[0].type.shape[product.order.index(d)]) for d in own])
    (left, right) = found
    if len(left) != 1 or len(right) != 1 or left[0][1] != right[0][1] or left[0][1] < 0:
        return None
    return right[0][0]


def find_attention(source: KernelSource) -> Attention | None:
    """The attention that a kernel computes, if it does."""
    for op in reachable(source.results):
        if is_contraction(op):
            return attention_of(op)
    return None


def attention_of(output: ir.Operation) -> Attention | None:
    """The attention whose last product is the contraction `output`, if it is one."""
    if not is_contraction(output) or len(output.operands) != 3:
        return None
    product = _product(output, operand_map(output, 0))
    if product is None or not _reads_last_two(product, 0):
        return None
    members: dict[ir.Operation, None] = {output: None}
    quotient = _before_rounding(_through_views(output.operands[0], members), product, members)
    parts = _binary(quotient, "arith.divf")
    if quotient is None or parts is None or not is_identity(quotient, parts[0]):
        return None
    divisor = quotient.operands[parts[1]]
    exponential = defining_op(quotient.operands[parts[0]])
    shift = _argument_of(exponential, "math.exp")
    parts = _binary(shift, "arith.subf")
    if exponential is None or shift is None or parts is None:
        return None
    if not is_identity(shift, parts[0]) or not _per_row(shift, parts[1]) or not _per_row(quotient, 1):
        return None
    logits, top = (shift.operands[part] for part in parts)
    without_sink = _before_sink(divisor, top, members)
    total = _row_reduction(without_sink, "arith.addf", 0.0, members)
    if total is None or total.operands[0] != exponential.results[0]:
        return None
    maximum = _maximum(top if without_sink == divisor else _below_sink(top, members), members)
    if maximum is None or maximum.operands[0] != logits:
        return None
    members.update(dict.fromkeys((quotient, exponential, shift, total, maximum)))
    path = _path(logits)
    if path is None or len(path[-1][0].operands) != 3:
        return None
    scores = _product(path[-1][0], operand_map(path[-1][0], 2))
    if scores is None or scores.order[-2:] != [scores.row, scores.column]:
        return None
    members.update(dict.fromkeys(op for op, _ in path))
    if not _closed(members, output):
        return None
    chain = tuple(path[:-1])
    found = tuple(members)
    softmax = (maximum, total, shift, parts[1], without_sink, divisor, quotient)
    return Attention(scores, product, logits, chain, *softmax, found)


# -- contractions ------------------------------------------------------------------------------------------------------


def _product(op: ir.Operation, rows_in: ir.AffineMap) -> Product | None:
    """`op` as a product of matrices, if it is a contraction over one dimension from zero that accumulates in f32. The
    rows are the last dimension but one of `rows_in`: of grouped heads, which share their keys, the left operand alone
    has several."""
    if not starts_at(op, 0.0) or len(rows_in.results) < 2:
        return None
    left_type, right_type, result_type = (v.type.element_type for v in op.operands)
    if left_type != right_type or not isinstance(result_type, ir.F32Type):
        return None
    if not isinstance(left_type, ir.F32Type | ir.BF16Type | ir.F16Type):
        return None
    out = list(operand_map(op, 2).results)
    if not all(isinstance(e, ir.AffineDimExpr) for e in out):
        return None
    kinds = ["reduction" in str(t) for t in op.attributes["iterator_types"]]
    if sum(kinds) != 1 or len(out) != len(kinds) - 1:
        return None
    left, right = ([d for d in range(len(kinds)) if touches(op, i, d)] for i in range(2))
    inner = kinds.index(True)
    rows = [d for d in left if d not in right and d != inner]
    columns = [d for d in right if d not in left and not _is_unit(op, d)]
    at = list(rows_in.results)[-2]
    row = at.position if isinstance(at, ir.AffineDimExpr) else -1
    if inner not in left or inner not in right or len(columns) != 1 or row not in rows:
        return None
    return Product(op, row, columns[0], inner) if _plain(op, 0, row) and _plain(op, 1, columns[0]) else None


def _is_unit(op: ir.Operation, dim: int) -> bool:
    """Has a dimension of the result one element? Parts of larger tensors are read at a constant there, not at `dim`."""
    shape = op.results[0].type.shape
    return any(
        extent == 1 and isinstance(e, ir.AffineDimExpr) and e.position == dim
        for e, extent in zip(operand_map(op, 2).results, shape, strict=True)
    )


def _plain(op: ir.Operation, operand: int, dim: int) -> bool:
    """Is an operand's coordinate that depends on `dim` that dimension itself?"""
    exprs = [e for e in operand_map(op, operand).results if mentions(e, dim)]
    return len(exprs) == 1 and isinstance(exprs[0], ir.AffineDimExpr)


def _reads_last_two(product: Product, operand: int) -> bool:
    exprs = list(operand_map(product.op, operand).results)[-2:]
    dims = [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in exprs]
    return dims == [product.row, product.inner]


# -- the softmax -------------------------------------------------------------------------------------------------------


def _single(op: ir.Operation | None, name: str) -> ir.Operation | None:
    """The only operation, `name` on inputs, of the body of an elementwise generic over all its points."""
    inner = only_operation(op, name)
    if op is None or inner is None or not is_identity(op, len(op.operands) - 1):
        return None
    return inner if all(input_number(op, v) is not None for v in inner.operands) else None


def _binary(op: ir.Operation | None, name: str) -> tuple[int, int] | None:
    inner = _single(op, name)
    if op is None or inner is None:
        return None
    numbers = [n for n in (input_number(op, v) for v in inner.operands) if n is not None]
    return (numbers[0], numbers[1]) if numbers == [0, 1] else None


def _argument_of(op: ir.Operation | None, name: str) -> ir.Operation | None:
    """What computes the argument of an elementwise function."""
    return None if op is None or _single(op, name) is None or not is_identity(op, 0) else defining_op(op.operands[0])


def _per_row(op: ir.Operation, operand: int) -> bool:
    """Is an operand read at the coordinates of the row, with 0 for extents of 1?"""
    exprs, shape = list(operand_map(op, operand).results), op.operands[operand].type.shape
    rank = len(op.attributes["iterator_types"])
    if len(exprs) not in (rank - 1, rank):
        return False
    for d, (expr, extent) in enumerate(zip(exprs, shape, strict=True)):
        if isinstance(expr, ir.AffineDimExpr) and (expr.position != d or d == rank - 1):
            return False
        if not isinstance(expr, ir.AffineDimExpr) and extent != 1:
            return False
    return True


def _row_reduction(value: ir.Value, name: str, start: float, members: dict[ir.Operation, None]) -> ir.Operation | None:
    """The reduction over the last dimension that `value` is computed from by elementwise operations per row alone;
    those join `members`."""
    op = defining_op(value)
    found: dict[ir.Operation, None] = {}
    reduction: ir.Operation | None = None
    work = [op]
    while work:
        op = work.pop()
        if op is None or op in found:
            if op is None:
                return None
            continue
        if _is_row_reduction(op, name, start):
            if reduction is not None and reduction != op:
                return None
            reduction = op
            continue
        if op.name != "linalg.generic" or is_reduction(op) or not _only_computes(op):
            return None
        found[op] = None
        work.extend(defining_op(v) for v in list(op.operands)[: len(op.operands) - len(op.results)])
    members.update(found)
    return reduction


def _only_computes(op: ir.Operation) -> bool:
    names = [o.name for o in body_of(op)]
    return bool(names) and all(n.startswith(("arith.", "math.")) or n == "linalg.yield" for n in names)


def _is_row_reduction(op: ir.Operation, name: str, start: float) -> bool:
    if not reduces_by(op, name):
        return False
    kinds = ["reduction" in str(t) for t in op.attributes["iterator_types"]]
    rank = len(kinds)
    rows = [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in operand_map(op, 1).results]
    along = kinds == [False] * (rank - 1) + [True] and rows == list(range(rank - 1))
    return along and starts_at(op, start)


def _maximum(value: ir.Value, members: dict[ir.Operation, None]) -> ir.Operation | None:
    """The maximum of the rows that `value` is, or is but for a guard: `max == -inf ? 0 : max`."""
    op, low = defining_op(value), float("-inf")
    if op is not None and _is_row_reduction(op, "arith.maximumf", low):
        return op
    ops = body_of(op)
    if op is None or [o.name for o in ops] != ["arith.select", "linalg.yield"] or is_reduction(op):
        return None
    condition, zero, plain = ops[0].operands
    tested, kept = input_number(op, condition), input_number(op, plain)
    if tested is None or kept is None or not is_number(zero, 0.0) or ops[1].operands[0] != ops[0].results[0]:
        return None
    test = defining_op(op.operands[tested])
    checks = body_of(test)
    if test is None or [o.name for o in checks] != ["arith.cmpf", "linalg.yield"]:
        return None
    equal = ir.IntegerAttr(checks[0].attributes["predicate"]).value == 1  # oeq
    if not equal or input_number(test, checks[0].operands[0]) != 0 or not is_number(checks[0].operands[1], low):
        return None
    if test.operands[0] != op.operands[kept]:
        return None
    reduction = _row_reduction(value, "arith.maximumf", low, members)
    return reduction if reduction is not None and op.operands[kept] == reduction.results[0] else None


def is_share_of_sum(attention: Attention) -> bool:
    """Do the exponentials count by what part they are of their sum (and of a sink's) alone? Then it does not matter
    what they are relative to. Sums of 0, of rows that see nothing, may be replaced."""
    pending = [attention.without_sink]
    while pending:
        op = defining_op(pending.pop())
        if op is None or op == attention.total:
            continue
        if not all(_is_guard(inner) for inner in body_of(op)):
            return False
        pending.extend(list(op.operands)[: len(op.operands) - len(op.results)])
    return True


def _is_guard(op: ir.Operation) -> bool:
    """May an operation be a part of `sum == 0 ? 1 : sum`?"""
    return op.name in _CHOICE or op.name == "arith.cmpf" and is_number(op.operands[1], 0.0)


# -- sinks -------------------------------------------------------------------------------------------------------------


def _before_sink(divisor: ir.Value, top: ir.Value, members: dict[ir.Operation, None]) -> ir.Value:
    """What is the divisor but for `exp(sink - top)`, which is added to it; the operations join `members`. The divisor
    where it is no such sum."""
    op = defining_op(divisor)
    inner = only_operation(op, "arith.addf")
    if op is None or inner is None or {input_number(op, v) for v in inner.operands} != {0, 1}:
        return divisor
    for number in (0, 1):
        exponential = defining_op(op.operands[1 - number])
        if exponential is None or only_operation(exponential, "math.exp") is None:
            continue
        difference = defining_op(exponential.operands[0])
        if difference is not None and _is_below_top(difference, top):
            members.update(dict.fromkeys((op, exponential, difference)))
            return op.operands[number]
    return divisor


def _is_below_top(op: ir.Operation, top: ir.Value) -> bool:
    """Does an operation compute a weight less `top`, or 0 less that?"""
    inner = only_operation(op, "arith.negf") or only_operation(op, "arith.subf")
    if inner is None:
        return False
    *from_, last = inner.operands
    number = input_number(op, last)
    return number is not None and op.operands[number] == top and all(_reads_given(op, value) for value in from_)


def _below_sink(top: ir.Value, members: dict[ir.Operation, None]) -> ir.Value:
    """What `top` is the larger one of, besides a weight; the operation joins `members`. `top` if it is no such one."""
    op = defining_op(top)
    inner = only_operation(op, "arith.maximumf")
    if op is None or inner is None or is_reduction(op):
        return top
    others = [input_number(op, v) for v in inner.operands if not _reads_given(op, v)]
    if len(others) != 1 or others[0] is None:
        return top
    members[op] = None
    return op.operands[others[0]]


def _reads_given(op: ir.Operation, value: ir.Value) -> bool:
    """Is a value in the body of `op` a number, or an element of a weight?"""
    number = input_number(op, value)
    if number is not None:
        return _is_given(op.operands[number])
    source = defining_op(value)
    return source is not None and source.name == "arith.constant"


def _is_given(value: ir.Value) -> bool:
    """Is that a weight or an argument, or one that was moved, repeated or converted?"""
    op = defining_op(value)
    for _ in range(_STEPS):
        if op is None or op.name in ("mlc.weight", "mlc.constant", "arith.constant"):
            return True
        plain = op.name == "linalg.generic" and not is_reduction(op) and len(op.operands) == 2
        if not plain and op.name not in (*_VIEWS, "tensor.cast"):
            return False
        op = defining_op(op.operands[0])
    return False


# -- between -----------------------------------------------------------------------------------------------------------


def _through_views(value: ir.Value, members: dict[ir.Operation, None]) -> ir.Operation | None:
    """What computes `value` before views of leading dimensions, which join `members`."""
    op = defining_op(value)
    while op is not None and _keeps_matrices(op):
        members[op] = None
        op = defining_op(op.operands[0])
    return op


def _before_rounding(
    op: ir.Operation | None, product: Product, members: dict[ir.Operation, None]
) -> ir.Operation | None:
    """What computes the quotients that `op` rounds for a product of narrow floats; the operations between join
    `members`."""
    if op is None or isinstance(product.element, ir.F32Type):
        return op
    if _single(op, "arith.truncf") is None or not is_identity(op, 0):
        return None
    members[op] = None
    return _through_views(op.operands[0], members)


def _keeps_matrices(op: ir.Operation) -> bool:
    """Is `op` a view that leaves the last two dimensions alone?"""
    if op.name not in _VIEWS:
        return False
    groups = list(op.attributes["reassociation"])
    return len(groups) > 2 and all(len(g) == 1 for g in groups[-2:])


def _path(logits: ir.Value) -> list[tuple[ir.Operation, int]] | None:
    """From the logits to the contraction that they come from: every operation and its operand on the way."""
    path: list[tuple[ir.Operation, int]] = []
    op = defining_op(logits)
    while op is not None and not is_contraction(op):
        if _keeps_matrices(op):
            path.append((op, 0))
            op = defining_op(op.operands[0])
            continue
        if op.name != "linalg.generic" or is_reduction(op) or len(op.results) != 1:
            return None
        if not is_identity(op, len(op.operands) - 1):
            return None
        below = [i for i in range(len(op.operands) - 1) if is_identity(op, i) and _leads_down(op.operands[i])]
        if len(below) != 1:
            return None
        path.append((op, below[0]))
        op = defining_op(op.operands[below[0]])
    return None if op is None else [*path, (op, -1)]


def _leads_down(value: ir.Value) -> bool:
    """Is `value` computed by elementwise operations from a contraction?"""
    seen: set[ir.Operation] = set()
    stack = [value]
    while stack:
        op = defining_op(stack.pop())
        if op is None or op in seen:
            continue
        if is_contraction(op):
            return True
        seen.add(op)
        if op.name in _VIEWS:
            stack.append(op.operands[0])
        elif op.name == "linalg.generic" and not is_reduction(op):
            stack.extend(list(op.operands)[: len(op.operands) - len(op.results)])
    return False


def _closed(members: dict[ir.Operation, None], output: ir.Operation) -> bool:
    """Does nothing outside read what is computed inside, but for the output, and is all in one block?"""
    for op in members:
        if op.block != output.block:
            return False
        if op == output:
            continue
        for result in op.results:
            if any(use.owner.operation not in members for use in result.uses):
                return False
    return True


# -- masks -------------------------------------------------------------------------------------------------------------


def grows_with_scores(attention: Attention) -> bool:
    """Are the logits monotone in the scores, and does anything but the scores take part, so that the logits of very
    large scores say what a mask hides?"""
    masked = False
    for op, operand in attention.path:
        if op.name in _VIEWS:
            continue
        block = op.regions[0].blocks[0]
        if not _grows(block, block.arguments[operand]):
            return False
        names = {o.operation.name for o in block.operations}
        others = [i for i in range(len(op.operands) - 1) if i != operand]
        masked = masked or bool(others) or "linalg.index" in names or "tensor.extract" in names
    return masked


def _grows(block: ir.Block, argument: ir.Value) -> bool:
    """Does what a body yields never fall while `argument` grows?"""
    rising: list[ir.Value] = [argument]
    for view in block.operations:
        op = view.operation
        touched = [i for i, v in enumerate(op.operands) if v in rising]
        if not touched:
            if any(v in rising for inner in _nested(op) for v in inner.operands):
                return False
            continue
        if op.name == "linalg.yield":
            return True
        if not _is_rising(op, touched):
            return False
        rising.extend(op.results)
    return False


def _nested(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from _nested(view.operation)


def _is_rising(op: ir.Operation, touched: list[int]) -> bool:
    if op.name in ("arith.addf", "arith.maximumf", "arith.minimumf", "math.tanh"):
        return True
    if op.name == "arith.subf":
        return touched == [0]
    if op.name == "arith.select":
        return 0 not in touched
    if op.name in ("arith.mulf", "arith.divf") and len(touched) == 1 and (op.name == "arith.mulf" or touched == [0]):
        other = defining_op(op.operands[1 - touched[0]])
        if other is not None and other.name == "arith.constant":
            attribute = other.attributes["value"]
            return isinstance(attribute, ir.FloatAttr) and attribute.value > 0
    return False
