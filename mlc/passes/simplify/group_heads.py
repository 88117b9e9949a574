"""Pass `mlc-group-heads`: an attention whose keys and values are repeated for groups of heads reads them once.

    %r = mlc.reshape %k [2, 8, 1, 64, 16]                                      : 2x8x64x16 -> 2x8x1x64x16
    %b = mlc.broadcast %r [2, 8, 4, 64, 16]                                    : … -> 2x8x4x64x16
    %h = mlc.reshape %b [2, 32, 64, 16]                                        : … -> 2x32x64x16
    %y = mlc.attention %q, %h, …
becomes `mlc.attention %q, %k, …`: the heads of keys and values are a divisor of the query's. Models of PyTorch write it
(`repeat_kv` of Hugging Face): a token would copy whole caches for it.
"""

from __future__ import annotations

from mlir import ir

from mlc.dims import DimAnalysis, constant_of
from mlc.passes.adaptor import defining_op
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.walk import functions, operations

_HEADS, _EACH = 1, 2  # dimensions of a tensor [batch, heads, each, keys, dim]


class GroupHeads(Pass):
    """Lets attention read keys and values without the repetition of their heads."""

    dialects = ("mlc",)
    statistics = {"grouped": "attentions that read their keys without repetition"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            found = [op for op in operations(function) if op.name == "mlc.attention"]
            if found:  # an analysis of all extents takes long
                analysis = DimAnalysis(function)
                self.count("grouped", sum(_group(analysis, op) for op in found))


def _group(analysis: DimAnalysis, op: ir.Operation) -> bool:
    """Gives `op` the keys and values that its own are repetitions of, if both are, and as often."""
    sources = [_source(analysis, operand) for operand in list(op.operands)[1:3]]
    key, value = sources
    if key is None or value is None or not analysis.equal(_heads(analysis, key), _heads(analysis, value)):
        return False
    for number, source in enumerate(sources, 1):
        with ir.InsertionPoint(op), op.location:
            sizes = b.sizes(source)
            op.operands[number] = source if len(sizes) == 4 else b.reshape(source, sizes[:_EACH] + sizes[_EACH + 1 :])
    return True


def _heads(analysis: DimAnalysis, tensor: ir.Value) -> ir.AffineExpr:
    return analysis.dims(tensor)[_HEADS]


def _source(analysis: DimAnalysis, tensor: ir.Value) -> ir.Value | None:
    """What `tensor` repeats the heads of: a tensor of one head, or `[batch, heads, 1, keys, dim]`; None: nothing."""
    op, place = defining_op(tensor), _HEADS
    if op is not None and op.name == "mlc.reshape":
        op, place = _joined(analysis, op), _EACH
    if op is None or op.name != "mlc.broadcast":
        return None
    source, result = op.operands[0], op.results[0]
    before, after = analysis.dims(source), analysis.dims(result)
    if len(before) != len(after) or constant_of(before[place]) != 1 or constant_of(after[place]) in (None, 1):
        return None
    same = all(analysis.equal(x, y) for i, (x, y) in enumerate(zip(before, after, strict=True)) if i != place)
    return source if same else None


def _joined(analysis: DimAnalysis, reshape: ir.Operation) -> ir.Operation | None:
    """What makes the tensor of which `reshape` joins the heads and the repetitions of each."""
    before, after = analysis.dims(reshape.operands[0]), analysis.dims(reshape.results[0])
    if len(before) != 5 or len(after) != 4:
        return None
    heads, each = constant_of(before[_HEADS]), constant_of(before[_EACH])
    kept = zip(before[:_HEADS] + before[_EACH + 1 :], after[:_HEADS] + after[_HEADS + 1 :], strict=True)
    if heads is None or each is None or constant_of(after[_HEADS]) != heads * each:
        return None
    return defining_op(reshape.operands[0]) if all(analysis.equal(x, y) for x, y in kept) else None
