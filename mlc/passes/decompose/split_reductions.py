"""Pass `mlc-split-reductions`: long reductions with few results are done in two steps, the first with many results.

```mlir
%0 = mlc.reduce max %x {axes = array<i64: 0, 1>, …} : tensor<16384x4096xf32> -> tensor<f32>
// becomes
%a = mlc.reshape %x [1, 1024, 65536] : tensor<16384x4096xf32> -> tensor<1x1024x65536xf32>
%b = mlc.reduce max %a {axes = array<i64: 2>, …} : tensor<1x1024x65536xf32> -> tensor<1x1024xf32>
%c = mlc.reduce max %b {axes = array<i64: 1>, …} : tensor<1x1024xf32> -> tensor<1xf32>
%0 = mlc.reshape %c [] : tensor<1xf32> -> tensor<f32>
```

A GPU has a block for every result, or a cluster of them where chips have clusters: with few results most of it would be
idle. Takes reductions over the last dimensions, of known extents, which are longer than what the blocks of a cluster
hold between them: a softmax of such rows would be six kernels instead of one. Sums and products of floats narrower than
32 bits are rounded once, at the end. Of the position of an extreme value, the second step compares the extreme values
of the parts, read at the positions that the first one found.
"""

from __future__ import annotations

import math

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.walk import functions, operations

MOST_PARTS = 1024  # of all results together
FEWEST_PARTS = 8
FEW_RESULTS = 64
VECTOR = 8  # elements of the widest accesses


class SplitReductions(Pass):
    """Long reductions with few results are done in two steps."""

    dialects = ("mlc",)
    statistics = {"split": "reductions done in two steps"}

    shortest: int = 65536
    "The fewest elements for a result that are split"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in operations(function):
                parts = _parts(op, self.shortest)
                if parts is not None:
                    (_split if op.name == "mlc.reduce" else _split_position)(op, parts)
                    self.count("split", 1)


def _parts(op: ir.Operation, shortest: int) -> int | None:
    """Into how many parts the elements of each result fall; None when the operation stays."""
    if op.name not in ("mlc.reduce", "mlc.arg_reduce"):
        return None
    adaptor, shape = OpAdaptor(op), shape_of(op.operands[0])
    axes = sorted(adaptor.ints("axes")) if op.name == "mlc.reduce" else [adaptor.int("axis")]
    if DYNAMIC in shape or axes != list(range(len(shape) - len(axes), len(shape))) or not axes:
        return None
    results, length = math.prod(shape[: axes[0]]), math.prod(shape[axes[0] :])
    if not 1 <= results <= FEW_RESULTS or length < shortest:
        return None
    fitting = [n for n in range(FEWEST_PARTS, MOST_PARTS // results + 1) if length % n == 0]
    return max(fitting, key=lambda n: (length // n % VECTOR == 0, n), default=None)


def _split(op: ir.Operation, parts: int) -> None:
    x, kind = op.operands[0], OpAdaptor(op).text("kind")
    axes = OpAdaptor(op).ints("axes")
    results = math.prod(shape_of(x)[: min(axes)])
    narrow = element(x)
    is_rounded = kind in ("sum", "prod") and b.is_float(narrow) and narrow.width < 32
    with ir.InsertionPoint(op), op.location:
        wide = b.cast(x, b.f32()) if is_rounded else x
        first = _reduced(op, b.reshape(wide, [results, parts, math.prod(shape_of(x)) // (results * parts)]), 2)
        total = _reduced(op, first, 1)
        shaped = b.reshape(total, shape_of(op.results[0]))
        op.results[0].replace_all_uses_with(b.cast(shaped, narrow))
    op.erase()


def _split_position(op: ir.Operation, parts: int) -> None:
    x, i64 = op.operands[0], b.i64()
    *outer, length = shape_of(x)
    results, short = math.prod(outer), length // parts
    with ir.InsertionPoint(op), op.location:
        inner = _reduced(op, b.reshape(x, [results, parts, short]), 2)
        found = b.add(inner, b.mul(b.iota([results, parts], 1, i64), short))
        lines = b.mul(b.iota([results, parts], 0, i64), length)
        best = b.gather(b.reshape(x, [results * length]), b.add(found, lines), 0, in_range=True)
        part = b.add(_reduced(op, best, 1), b.mul(b.arange(results, i64), parts))
        total = b.gather(b.reshape(found, [results * parts]), part, 0, in_range=True)
        op.results[0].replace_all_uses_with(b.reshape(total, shape_of(op.results[0])))
    op.erase()


def _reduced(op: ir.Operation, x: ir.Value, axis: int) -> ir.Value:
    """`x` reduced as `op` does it, over `axis`."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    over = {"axes": b.integers([axis])} if op.name == "mlc.reduce" else {"axis": b.integer(axis)}
    return b.operation(op.name.removeprefix("mlc."), [x], {**attributes, **over, "keepdims": ir.BoolAttr.get(False)})[0]
