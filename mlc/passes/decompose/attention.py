"""`attention`: two batched matrix products around a softmax.

For GPUs the products of 16-bit floats read those and accumulate in `f32`, as tensor cores do, so that the probabilities
are rounded as the definition of the operator in its own type says; and the scale is that of the scores.
"""

from __future__ import annotations

import math

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, element
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@decomposition("mlc.attention")
def attention(op: OpAdaptor) -> ir.Value:
    """`softmax(softcap(q k^T * scale) + mask) v`; narrow floats compute in `f32` until the end."""
    on_gpu = _is_for_gpu(op.op)
    query, key, value = (v if on_gpu else b.cast(v, b.wide_type(element(v))) for v in op.operands[:3])
    mask = op.trailing(3)
    groups = _groups(op, query, key)
    if _shares_rows(op, mask, groups):
        heads = b.sizes(query)
        query = b.reshape(query, [heads[0], key.type.shape[1], groups, heads[3]])
        return b.reshape(_attention(op, (query, key, value), mask, 1, on_gpu), [*heads[:3], b.size(value, 3)])
    return _attention(op, (query, key, value), mask, groups, on_gpu)


def _shares_rows(op: OpAdaptor, mask: ir.Value | None, groups: int) -> bool:
    """Can the heads that share keys be the rows of one matrix, as one query each has, so that keys are read once?"""
    if groups == 1 or op.operands[0].type.shape[2] != 1 or op.flag("causal"):
        return False
    return mask is None or mask.type.rank < 3 or mask.type.rank == 3 and mask.type.shape[0] == 1 or (
        mask.type.rank == 4 and mask.type.shape[1] == 1
    )


def _attention(
    op: OpAdaptor, operands: tuple[ir.Value, ir.Value, ir.Value], mask: ir.Value | None, groups: int, on_gpu: bool
) -> ir.Value:
    """`groups` heads of queries share those of keys."""
    query, key, value = operands
    if on_gpu:
        scores = _product(query, key, groups, transpose_rhs=True)
        scores = b.mul(scores, _scale(op, query, element(scores)))
    else:
        scores = _product(b.mul(query, _scale(op, query, element(query))), key, groups, transpose_rhs=True)
    if op.has("softcap") and op.float("softcap") != 0:
        cap = op.float("softcap")
        scores = b.mul(b.unary("tanh", b.div(scores, cap)), cap)
    if mask is not None:
        scores = _masked(scores, mask)
    if op.flag("causal"):
        rows, columns = b.size(scores, 2), b.size(scores, 3)
        allowed = b.compare("le", b.iota([1, columns], 1, b.i64()), b.iota([rows, 1], 0, b.i64()))
        scores = b.select(allowed, scores, b.like(scores, float("-inf")))
    weights = softmax(scores, guarded=mask is not None)
    return b.cast(_product(b.cast(weights, element(value)), value, groups), op.types[0].element_type)


def _is_for_gpu(op: ir.Operation) -> bool:
    """Is the module of `op` for a GPU?"""
    while op.parent is not None:
        op = op.parent.operation
    return "mlc.target" in op.attributes and ir.StringAttr(op.attributes["mlc.target"]).value.startswith("nvidia:")


def _groups(op: OpAdaptor, query: ir.Value, key: ir.Value) -> int:
    """How many query heads share a key head; where that is not known when compiling, none may."""
    heads, own = query.type.shape[1], key.type.shape[1]
    if heads == own or DYNAMIC in (heads, own):
        return 1
    if own == 0 or heads % own:
        raise ValueError(f"{op.node}: {heads} query heads are no multiple of {own} key heads")
    return heads // own


def _scale(op: OpAdaptor, query: ir.Value, type_: ir.Type) -> ir.Value:
    """The factor of the scores, a scalar of `type_`."""
    if op.has("scale"):
        return b.scalar(op.float("scale"), type_)
    width = query.type.shape[3]
    if width != DYNAMIC:
        return b.scalar(1.0 / math.sqrt(width), type_)
    return b.unary("rsqrt", b.size_scalar(query, 3, type_))


def _product(lhs: ir.Value, rhs: ir.Value, groups: int, *, transpose_rhs: bool = False) -> ir.Value:
    """A matrix product per head; grouped heads are a batch dimension along which `rhs` broadcasts."""
    if groups == 1 or rhs.type.shape[1] == 1:  # a single head broadcasts as it is
        return b.wide_matmul(lhs, rhs, transpose_rhs=transpose_rhs)
    batch, heads, rows, depth = b.sizes(lhs)
    assert isinstance(heads, int)
    split = b.reshape(lhs, [batch, heads // groups, groups, rows, depth])
    product = b.wide_matmul(split, b.expand_dims(rhs, [2]), transpose_rhs=transpose_rhs)
    return b.reshape(product, [batch, heads, rows, b.size(product, 4)])


def _masked(scores: ir.Value, mask: ir.Value) -> ir.Value:
    if element(mask) == ir.IntegerType.get_signless(1):
        return b.select(mask, scores, b.like(scores, float("-inf")))
    return b.add(scores, b.cast(mask, element(scores)))


def softmax(scores: ir.Value, *, guarded: bool) -> ir.Value:
    """Softmax over the keys, the last dimension; with `guarded` a row whose every key is masked gives zeros and not
    NaN."""
    keys = scores.type.rank - 1
    if not guarded:
        return b.operation("softmax", [scores], {"axis": b.integer(keys), "log": ir.BoolAttr.get(False)})[0]
    top = b.reduce("max", scores, [keys])
    top = b.select(b.compare("eq", top, float("-inf")), b.like(top, 0), top)
    exponential = b.unary("exp", b.sub(scores, top))
    total = b.reduce("sum", exponential, [keys])
    return b.div(exponential, b.select(b.compare("eq", total, 0), b.like(total, 1), total))
