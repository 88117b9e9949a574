"""Pass `mlc-narrow-contractions`: contractions of `f32` read their operands as `bf16` and still accumulate in `f32`.

```mlir
%0 = mlc.matmul %x, %w : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
// becomes
%a = mlc.cast %x : tensor<4x8xf32> -> tensor<4x8xbf16>
%b = mlc.cast %w : tensor<8x16xf32> -> tensor<8x16xbf16>
%0 = mlc.matmul %a, %b {widen} : tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xf32>
```

A value that only contractions read, directly or through operations that move elements, is rounded where it is computed,
so that it is stored in `bf16`. Casts of weights become weights (`mlc-hoist-weights`). A table that nothing else reads
but what looks rows up in it is stored in `bf16` only: rows that are looked up are rounded as well. Products read the
left operand along its rows and an activation on the right along its rows: others are transposed first. What sums fewer
than eight products stays (small products are often coordinates), and so do products of activations of fewer than eight
rows or columns: rounding takes as long as they do (with `bytes` not those of hundreds of matrices, which attention
within a few frames or windows has). Where bf16 is multiplied no faster than f32, all products of
activations stay (`weights_only`): there is no weight that takes half the room. A depthwise convolution has no products
to pair; it stays too unless the option `bytes` says that half the bytes are worth it. Weights of few bits are not
rounded either (`mlc-stream-weights`). The weights that steps of a recurrent layer multiply are rounded where there are
units for bf16; its kernel rounds the states.
"""

from __future__ import annotations

import math

from mlir import ir

from mlc.kernels.common.streamed import STREAMED
from mlc.passes.adaptor import DYNAMIC, TRANSPOSED, OpAdaptor, defining_op, element, readers, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.walk import functions, operations

FEWEST = 8
"""Products that a contraction must sum to be narrowed, and rows and columns of products of activations, unless their
number is known at run time only."""

MANY = 256
"""Matrices of a product of activations that are worth their bytes, however small they are."""

_MOVES = frozenset({"mlc.reshape", "mlc.transpose", "mlc.broadcast", "mlc.slice", "mlc.concat", "mlc.pad"})


class NarrowContractions(Pass):
    """Contractions of f32 read bf16 and accumulate in f32."""

    dialects = ("mlc",)
    statistics = {"narrowed": "contractions that read bf16"}

    bytes: bool = False
    "Where less to read and write is worth it: depthwise convolutions too, and what pools take the largest of"

    weights_only: bool = False
    "Where bf16 is multiplied no faster than f32: products of activations stay as they are"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            self.count("narrowed", narrow_function(function, self.bytes, self.weights_only))


def narrow_function(function: ir.Operation, for_bytes: bool = False, weights_only: bool = False) -> int:
    """Narrows every contraction of `function`, also inside control flow, with `for_bytes` what is bound by memory, and
    with `weights_only` those that read a weight; gives their number.
    """
    weights = _weights(function)
    contractions = [
        op
        for op in operations(function)
        if _is_wide(op, weights, for_bytes) and not (weights_only and weights.isdisjoint(list(op.operands)[:2]))
    ]
    casts: dict[ir.Value, ir.Value] = {}
    for op in contractions:
        is_packed = op.operands[1] in weights
        for number in range(2):
            op.operands[number] = _narrowed(op.operands[number], casts)
        op.attributes["widen"] = ir.UnitAttr.get()
        if op.name == "mlc.matmul":
            _put_in_order(op, is_packed)
    recurrences = [] if weights_only else [op for op in operations(function) if _multiplies_wide_states(op)]
    for op in recurrences:
        op.operands[1] = _narrowed(op.operands[1], casts)
    for value, rounded in casts.items():
        _look_up(value, rounded)
    _round_early(function, for_bytes)
    return len(contractions) + len(recurrences)


def _weights(function: ir.Operation) -> set[ir.Value]:
    """The values that are computed from weights only."""
    found: set[ir.Value] = set()
    for op in operations(function):
        tensors = _tensor_operands(op)
        known = all(v in found for v in tensors) if tensors else op.name in ("mlc.weight", "mlc.constant")
        if known and op.name.startswith("mlc."):
            found.update(op.results)
    return found


def _is_wide(op: ir.Operation, weights: set[ir.Value], for_bytes: bool) -> bool:
    """A contraction of `f32` that sums enough products, a pair of them of adjacent channels unless it is narrowed
    `for_bytes`."""
    if op.name not in ("mlc.matmul", "mlc.conv") or not all(
        isinstance(element(v), ir.F32Type) for v in list(op.operands)[:2]
    ):
        return False
    weight = defining_op(op.operands[1])
    if weight is not None and STREAMED in weight.attributes:
        return False
    terms = _terms(OpAdaptor(op))
    if op.name == "mlc.conv":
        return DYNAMIC in terms or (math.prod(terms) >= FEWEST and (terms[0] > 1 or for_bytes))
    if any(v in weights for v in op.operands):
        return terms[0] == DYNAMIC or terms[0] >= FEWEST
    if for_bytes and all(_matrices(v) >= MANY for v in op.operands):
        return True
    between = shape_of(op.results[0])[-2:]
    return all(extent == DYNAMIC or extent >= FEWEST for extent in [*terms, *between])


def _multiplies_wide_states(op: ir.Operation) -> bool:
    """Is `op` the steps of a recurrent layer of `f32`?"""
    return op.name == "mlc.recurrence" and isinstance(element(op.operands[1]), ir.F32Type)


def _matrices(value: ir.Value) -> int:
    """How many matrices a tensor is, as far as that is known."""
    return math.prod(extent for extent in shape_of(value)[:-2] if extent != DYNAMIC)


def _terms(op: OpAdaptor) -> list[int]:
    """Extents that are summed over; a convolution's channels come first."""
    if op.name == "mlc.matmul":
        return [shape_of(op.operand(0))[-2 if op.flag("transpose_lhs") else -1]]
    shape = shape_of(op.operand(1))
    return [shape[-2], *shape[:-2]] if op.text("layout", "nchw") == "nhwc" else shape[1:]


def _narrowed(value: ir.Value, casts: dict[ir.Value, ir.Value]) -> ir.Value:
    """`value` as bf16, rounded once for all that read it."""
    if value not in casts:
        casts[value] = b.cast_behind(value, ir.BF16Type.get())
    return casts[value]


def _put_in_order(op: ir.Operation, is_packed: bool) -> None:
    """The left operand as `[…, M, K]`, and the right one as `[…, K, N]` unless it is a weight, which is packed."""
    for number, name in enumerate(TRANSPOSED):
        value = op.operands[number]
        if name not in op.attributes or (number == 1 and is_packed):
            continue
        with ir.InsertionPoint(op), op.location:
            op.operands[number] = b.transpose_matrices(value)
        del op.attributes[name]


def _look_up(table: ir.Value, rounded: ir.Value) -> None:
    """Let gathers of rows of a weight read it `rounded`, where nobody needs it as it was then."""
    weight, cast = defining_op(table), defining_op(rounded)
    lookups = [op for op in readers(table) if op != cast]
    if weight is None or weight.name != "mlc.weight" or not all(op.name == "mlc.gather" for op in lookups):
        return
    for op in lookups:
        old = op.results[0]
        with ir.InsertionPoint(op), op.location:
            new = b.again(op, [rounded, *list(op.operands)[1:]], shape_of(old), element(rounded))
            old.replace_all_uses_with(b.cast(new, element(old)))
        op.erase()


# -- rounding where a value is computed --------------------------------------------------------------------------------


def _round_early(function: ir.Operation, for_bytes: bool) -> None:
    """Moves casts to bf16 in front of operations that only move elements, from the last one on; with `for_bytes` of
    pools too that give one of their elements."""
    moves = [op for op in operations(function) if _is_move(op) or (for_bytes and _is_largest(op))]
    for op in reversed(_worth_rounding(moves)):
        reading = readers(op.results[0])
        if reading and all(_is_narrowing(r) for r in reading):
            _swap(op, reading)


def _worth_rounding(moves: list[ir.Operation]) -> list[ir.Operation]:
    """Those of `moves` whose operands may be stored rounded: all that read them read them rounded, or move them to
    where they are only read rounded."""
    rounded: set[ir.Value] = set()
    for op in reversed(moves):
        reading = readers(op.results[0])
        if reading and all(_is_narrowing(r) or _gives(r, rounded) for r in reading):
            rounded.add(op.results[0])

    def is_free(value: ir.Value) -> bool:
        return all(_is_narrowing(r) or _gives(r, rounded) for r in readers(value))

    return [op for op in moves if op.results[0] in rounded and all(is_free(v) for v in _tensor_operands(op))]


def _gives(op: ir.Operation, values: set[ir.Value]) -> bool:
    return len(op.results) == 1 and op.results[0] in values


def _is_move(op: ir.Operation) -> bool:
    """Does rounding the elements before `op` give what rounding them after it does?"""
    if op.name not in _MOVES or not isinstance(element(op.results[0]), ir.F32Type):
        return False
    return op.name != "mlc.pad" or not OpAdaptor(op).segments()[1]


def _is_largest(op: ir.Operation) -> bool:
    """Is `op` a pool that takes the largest element? Rounding keeps the order."""
    return op.name == "mlc.pool" and OpAdaptor(op).text() == "max" and isinstance(element(op.results[0]), ir.F32Type)


def _tensor_operands(op: ir.Operation) -> list[ir.Value]:
    """The operands with elements, rather than sizes."""
    return [v for v in op.operands if isinstance(v.type, ir.RankedTensorType)]


def _is_narrowing(op: ir.Operation) -> bool:
    return op.name == "mlc.cast" and isinstance(element(op.results[0]), ir.BF16Type)


def _swap(op: ir.Operation, casts: list[ir.Operation]) -> None:
    """`cast(move(x))` becomes `move(cast(x))`."""
    bf16 = ir.BF16Type.get()
    with ir.InsertionPoint(op), op.location:
        operands = [b.cast(v, bf16) if isinstance(v.type, ir.RankedTensorType) else v for v in op.operands]
        new = b.again(op, operands, shape_of(op.results[0]), bf16)
    for cast in casts:
        cast.results[0].replace_all_uses_with(new)
        cast.erase()
    op.results[0].replace_all_uses_with(new)  # extents
    op.erase()
