"""Pass `mlc-fold-factors`: constant factors of slices of a product's columns become part of its weights.

    %p = mlc.binary add (mlc.matmul %x, %w), %bias : …                      (queries, keys and values side by side)
    %q = mlc.binary mul (mlc.slice %p [0, 0] [8, 64] [1, 1]), %scale
    %k = mlc.binary mul (mlc.slice %p [0, 64] [8, 64] [1, 1]), %scale
becomes
    %p = mlc.binary add (mlc.matmul %x, (%w * %f)), (%bias * %f) : …        (%f: a factor for each column)
    %q = mlc.slice %p [0, 0] [8, 64] [1, 1]
    %k = mlc.slice %p [0, 64] [8, 64] [1, 1]

So the slices only move elements, and what reads them can read the product where it lies. Factors are found behind
reshapes and transposes of the slices, which may be of reshapes and transposes of the product; nobody else may read what
lies in between. A factor of the whole product becomes part of its weights too: products of one tensor that only differ
in such factors can be one. Takes slices along one dimension of known extent that do not overlap, behind dimensions that
may be dynamic, and a product with a weight that nobody else reads; or a convolution, whose columns are its channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mlir import ir

from mlc.dialects import builders
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import constant_array, replace
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_MOVES = ("mlc.reshape", "mlc.transpose")


class FoldFactors(Pass):
    """Multiplies weights by the factors of slices of products."""

    dialects = ("mlc",)
    statistics = {"folded": "factors that became part of weights"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            weights = WeightOnly()
            plans = [_plan(op, weights) or _plan_whole(op, weights) for op in operations(function)]
            found = [plan for plan in plans if plan is not None]
            for plan in found:
                self.count("folded", _fold(plan))


@dataclass
class _Plan:
    """The product (`product`, and `add` of a bias where there is one), the factor of each column, and the
    multiplications that are no longer needed, with their numbers of the operand that stays."""

    product: ir.Operation
    add: ir.Operation | None
    factors: np.ndarray
    done: list[tuple[ir.Operation, int]]


def _plan(op: ir.Operation, weights: WeightOnly) -> _Plan | None:
    """What to do about the slices of the result of `op`."""
    if not op.name.startswith("mlc.") or len(op.results) != 1 or not _is_ranked(op.results[0]):
        return None
    users = [use.owner.operation for use in op.results[0].uses]
    cuts = [_cut(user) for user in users]
    if not users or None in cuts or len({axis for axis, _, _ in filter(None, cuts)}) != 1:
        return None
    shape = shape_of(op.results[0])
    axis = next(axis for axis, _, _ in filter(None, cuts))
    factors, taken, done = np.ones(shape[axis]), np.zeros(shape[axis], bool), []
    for user, (_, first, size) in zip(users, filter(None, cuts), strict=True):
        if taken[first : first + size].any():
            return None
        taken[first : first + size] = True
        multiplied = _multiplication(user)
        if multiplied is not None:
            factors[first : first + size] = multiplied[2]
            done.append(multiplied[:2])
    value, spread = _source(op.results[0], factors.reshape([-1 if i == axis else 1 for i in range(len(shape))]))
    product = _product(value, weights)
    column = -1 if product is None else _column(product[0])
    if not done or product is None or shape_of(value)[column] == DYNAMIC or spread.size != spread.shape[column]:
        return None
    return _Plan(*product, np.broadcast_to(spread.reshape(-1), (shape_of(value)[column],)), done)


def _plan_whole(op: ir.Operation, weights: WeightOnly) -> _Plan | None:
    """What to do about a factor of a whole product, `op`."""
    if len(op.results) != 1 or not _is_ranked(op.results[0]) or op.name not in ("mlc.matmul", "mlc.conv", "mlc.binary"):
        return None
    multiplied, product = _multiplication(op), _product(op.results[0], weights)
    if multiplied is None or product is None:
        return None
    columns = shape_of(op.results[0])[_column(product[0])]
    if columns == DYNAMIC:
        return None
    return _Plan(*product, np.full(columns, multiplied[2]), [multiplied[:2]])


def _is_ranked(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.rank > 0


def _cut(op: ir.Operation) -> tuple[int, int, int] | None:
    """(axis, offset, size) of a slice along one dimension of known extent; None for others. Along dynamic dimensions a
    slice may have a part only: what matters is that nobody else reads its elements."""
    if op.name != "mlc.slice" or not _is_ranked(op.operands[0]):
        return None
    cut, shape = OpAdaptor(op), shape_of(op.operands[0])
    offsets, sizes, strides = (cut.ints(f"static_{name}") for name in ("offsets", "sizes", "strides"))
    known = [i for i, extent in enumerate(shape) if extent != DYNAMIC]
    if any(DYNAMIC in (offsets[i], sizes[i]) for i in known) or any(s != 1 for s in strides):
        return None
    axes = [i for i in known if sizes[i] != shape[i]]
    return (axes[0], offsets[axes[0]], sizes[axes[0]]) if len(axes) == 1 else None


def _multiplication(op: ir.Operation) -> tuple[ir.Operation, int, float] | None:
    """The multiplication by a number behind `op` and movements, the number of its other operand, and the factor."""
    while True:
        uses = list(op.results[0].uses)
        if len(uses) != 1:
            return None
        before, op = op, uses[0].owner.operation
        if op.name not in _MOVES:
            break
    if op.name != "mlc.binary" or OpAdaptor(op).text() != "mul":
        return None
    number = next(i for i in range(2) if op.operands[i] == before.results[0])
    factor = constant_array(op.operands[1 - number])
    same = shape_of(op.results[0]) == shape_of(before.results[0])
    return (op, number, float(factor.reshape(-1)[0])) if factor is not None and factor.size == 1 and same else None


def _source(value: ir.Value, factors: np.ndarray) -> tuple[ir.Value, np.ndarray]:
    """What `value` is a reshape or transpose of, and the factors of its elements."""
    while True:
        op = defining_op(value)
        if op is None or op.name not in _MOVES or not _is_ranked(op.operands[0]) or len(list(value.uses)) == 0:
            return value, factors
        before = op.operands[0]
        if len(list(before.uses)) != 1:
            return value, factors
        if op.name == "mlc.transpose":
            factors = factors.transpose(np.argsort(OpAdaptor(op).ints("permutation")))
        else:
            moved = _reshaped(factors, shape_of(value), shape_of(before))
            if moved is None:
                return value, factors
            factors = moved
        value = before


def _reshaped(factors: np.ndarray, shape: list[int], to: list[int]) -> np.ndarray | None:
    """`factors` that broadcast to `shape`, so that they broadcast to the shape `to` of as many elements. From the last
    dimension to the first: where a dynamic one comes, all that is in front of it is one group. None when the factors
    vary in there."""
    result: list[int] = []
    full: list[int] = []
    i, j = len(shape), len(to)
    while i > 0 or j > 0:
        start, other = i, j
        i, j = _group(shape, to, i, j)
        varies = any(e != 1 for e in factors.shape[i:start])
        if varies and DYNAMIC in (*shape[i:start], *to[j:other]):
            return None
        full = (shape[i:start] if varies else [1] * (start - i)) + full
        result = (to[j:other] if varies else [1] * (other - j)) + result
    return np.broadcast_to(factors, full).reshape(result)


def _group(shape: list[int], to: list[int], i: int, j: int) -> tuple[int, int]:
    """Where the smallest groups of dimensions with as many elements begin that end at `i` and `j`."""
    have = wanted = 1
    start, other = i, j
    while True:
        if have <= wanted and i > 0:
            i -= 1
            have *= shape[i]
        elif j > 0:
            j -= 1
            wanted *= to[j]
        if have < 0 or wanted < 0:  # a dynamic extent
            return 0, 0
        if have == wanted and (j < other or j == 0) and (i < start or i == 0):
            return i, j


def _product(value: ir.Value, weights: WeightOnly) -> tuple[ir.Operation, ir.Operation | None] | None:
    """The product with a weight that `value` is, and the addition of a bias behind it; who reads `value` is known."""
    op = defining_op(value)
    if op is None:
        return None
    add = None
    if op.name == "mlc.binary" and OpAdaptor(op).text() == "add":
        sides = [i for i in range(2) if weights.has(op.operands[i])]
        if len(sides) != 1 or shape_of(op.operands[1 - sides[0]]) != shape_of(value):
            return None
        add, product = op, op.operands[1 - sides[0]]
        op = defining_op(product)
        if op is None or len(list(product.uses)) != 1:
            return None
    is_convolution = op.name == "mlc.conv" and OpAdaptor(op).text("layout", "nchw") == "nchw" and add is None
    weight = op.operands[1] if op.name == "mlc.matmul" or is_convolution else None
    if weight is None or element(weight).width < 16:  # eight bits would round the products with a factor
        return None
    if not all(map(weights.has, list(op.operands)[1:])) or weights.has(op.operands[0]):
        return None
    return (op, add) if all(len(list(v.uses)) == 1 for v in list(op.operands)[1:]) else None


def _column(product: ir.Operation) -> int:
    """The dimension of a product's result that belongs to columns of its weight."""
    return 1 if product.name == "mlc.conv" else product.results[0].type.rank - 1


def _fold(plan: _Plan) -> int:
    """Multiplies the weights; gives how many multiplications are no longer needed."""
    product = plan.product
    is_convolution, weight = product.name == "mlc.conv", product.operands[1]
    behind = weight.type.rank - 1 if is_convolution else int("transpose_rhs" in product.attributes)
    _multiply(product, 1, plan.factors, behind)
    for number in range(2, len(product.operands)):
        _multiply(product, number, plan.factors)
    if plan.add is not None:
        _multiply(plan.add, 0 if plan.add.operands[1] == product.results[0] else 1, plan.factors)
    for op, number in plan.done:
        replace(op, [op.operands[number]])
    return len(plan.done)


def _multiply(op: ir.Operation, number: int, factors: np.ndarray, behind: int = 0) -> None:
    """Multiplies a weight that `op` reads by a factor for each element of a dimension with so many `behind` it; where
    the weight is known."""
    weight = op.operands[number]
    known = defining_op(weight)
    assert known is not None
    with ir.InsertionPoint.after(known), op.location:
        spread = _spread(factors, element(weight))
        factor = b.reshape(spread, [factors.size, *[1] * behind]) if behind else spread
        op.operands[number] = b.binary("mul", weight, factor)


def _spread(factors: np.ndarray, type_: ir.Type) -> ir.Value:
    """`factors` as a tensor, made of its runs: they are few, and constants are better small."""
    edges = [0, *(np.flatnonzero(np.diff(factors)) + 1), factors.size]
    parts = []
    for first, last in zip(edges, edges[1:], strict=False):
        one = b.cast(builders.constant(np.array([factors[first]], np.float32)), type_)
        parts.append(b.broadcast(one, [int(last - first)]))
    return b.concat(parts, 0)
