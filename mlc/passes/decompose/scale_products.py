"""Pass `mlc-scale-products`: what rows of an operand are divided by, the rows of the product are multiplied by.

    %q = mlc.binary div %queries, %norms : tensor<1x4x48x196xf32>, tensor<1x4x48x1xf32>
    %s = mlc.matmul %q, %k               : 1x4x48x196, 1x4x196x48 -> 1x4x48x48
becomes
    %p = mlc.matmul %queries, %k
    %r = mlc.unary reciprocal %norms     : tensor<1x4x48x1xf32>
    %s = mlc.binary mul %p, %r           : tensor<1x4x48x48xf32>, tensor<1x4x48x1xf32>

A factor that is the same along the sum may come before or behind it, for columns of the right operand as for rows of
the left one. Attention of channels (XCiT, Restormer) divides them by their lengths over all tokens, and has them from a
product or a convolution that gives them token by token: the quotient would be a tensor in an order of its own, of which
sums are made in another one again, while products read either order (tensor cores with rows that are multiples of
16 bytes: the option `even`). So factors are moved where the sum is not over what lies together, and where the product
is no larger than the operand; nobody else may read the operand with it. Quotients of integers are rounded, and stay.
Products of 16-bit floats keep their accumulators then: without its factor an element may be too large for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir import ir

from mlc.passes.adaptor import TRANSPOSED, OpAdaptor, defining_op, element, lies_along_sum, readers, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import erase_unread
from mlc.passes.walk import functions, operations

_CHANNELS_FIRST = ("mlc.conv", "mlc.conv_transpose")
_LOOKED_THROUGH = ("mlc.slice", "mlc.cast", "mlc.binary", "mlc.unary", "mlc.activation")


class ScaleProducts(Pass):
    """Multiplies products instead of what they sum."""

    dialects = ("mlc",)
    statistics = {"moved": "factors that products have now"}

    even: int = 1
    "What rows of an operand, across the sum, are a multiple of"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in [op for op in operations(function) if op.name == "mlc.matmul"]:
                product = op
                for side in range(2):
                    while (found := _factor(product, side, self.even)) is not None:
                        product = _move(product, found)
                        self.count("moved")


@dataclass(frozen=True)
class _Factor:
    """The operation `op` that multiplies by operand `number`, or divides by it, what operand `side` of a product is
    made of by `moves`, the last one first."""

    op: ir.Operation
    number: int
    side: int
    moves: list[ir.Operation]


def _factor(op: ir.Operation, side: int, even: int) -> _Factor | None:
    """A factor of one side that is better off behind the product, if its rows are a multiple of `even`."""
    value: ir.Value = op.operands[side]
    moves: list[ir.Operation] = []
    types = [*(v.type for v in op.operands), op.results[0].type]
    if not all(t.has_static_shape for t in types) or not b.is_float(element(value)):
        return None
    if prod(op.results[0].type.shape) > prod(value.type.shape):
        return None
    last = lies_along_sum(op, side)
    if value.type.shape[-2 if last else -1] % even:
        return None
    at = value.type.rank - (1 if last else 2)
    while (source := defining_op(value)) is not None and len(readers(value)) == 1:
        if source.name == "mlc.binary":
            numbers = {"mul": (1, 0), "div": (1,)}.get(OpAdaptor(source).text(), ())
            number = next((n for n in numbers if _is_factor(source, n, at, moves)), None)
            is_better_off = number is not None and _is_across(source.operands[1 - number], at)
            return _Factor(source, number, side, moves) if number is not None and is_better_off else None
        before = _before(source, at)
        if before is None:
            return None
        value, at, moves = source.operands[0], before, [*moves, source]
    return None


def _before(op: ir.Operation, at: int) -> int | None:
    """Which dimension `at` of the result of a movement is of its operand; None where it is no whole one."""
    if op.name == "mlc.transpose":
        return OpAdaptor(op).ints("permutation")[at]
    if op.name != "mlc.reshape":
        return None
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    return len(old) - 1 if at == len(new) - 1 and old and old[-1] == new[-1] else None


def _is_factor(op: ir.Operation, number: int, at: int, moves: list[ir.Operation]) -> bool:
    """Is this operand one number along dimension `at`, and several in all? Where dimensions are joined or split it has
    all of the others."""
    factor, main = op.operands[number], op.operands[1 - number]
    if main.type != op.results[0].type or element(factor) != element(main) or not factor.type.has_static_shape:
        return False
    shape = [1] * (main.type.rank - factor.type.rank) + shape_of(factor)
    whole = [1 if i == at else extent for i, extent in enumerate(shape_of(main))]
    is_same = shape == whole or not any(move.name == "mlc.reshape" for move in moves)
    return shape[at] == 1 and is_same and prod(shape) > 1


def _is_across(value: ir.Value, at: int) -> bool:
    """Do the elements along dimension `at` lie apart where `value` comes from? Convolutions will have channels last."""
    moved = False
    while (op := defining_op(value)) is not None:
        last = at == value.type.rank - 1
        if op.name in _CHANNELS_FIRST:
            return at != 1
        if op.name == "mlc.transpose":
            at = OpAdaptor(op).ints("permutation")[at]
            moved = True
        elif op.name == "mlc.reshape":
            if not last:
                return moved
            at = op.operands[0].type.rank - 1
        elif op.name not in _LOOKED_THROUGH or op.operands[0].type.rank != value.type.rank:
            return moved and not last
        value = op.operands[0]
    return moved and at != value.type.rank - 1


def _move(op: ir.Operation, found: _Factor) -> ir.Operation:
    """The product without the factor, which its result has then."""
    kind, factor = OpAdaptor(found.op).text(), found.op.operands[found.number]
    main = found.op.operands[1 - found.number]
    wide = element(op.results[0]) if element(op.results[0]).width > 16 else b.f32()
    with ir.InsertionPoint(op), op.location:
        if factor.type.rank < main.type.rank:
            factor = b.expand_dims(factor, list(range(main.type.rank - factor.type.rank)))
        for move in reversed(found.moves):
            if move.name == "mlc.transpose":
                permutation = OpAdaptor(move).ints("permutation")
                main, factor = b.transpose(main, permutation), b.transpose(factor, permutation)
            else:
                shape = shape_of(move.results[0])
                main, factor = b.reshape(main, shape), b.reshape(factor, [*shape[:-1], 1])
        if TRANSPOSED[found.side] in op.attributes:
            factor = b.transpose_matrices(factor)
        operands = [main if side == found.side else v for side, v in enumerate(op.operands)]
        widen = b.unit(wide != element(op.results[0]), "widen")
        product = b.again(op, operands, shape_of(op.results[0]), wide, widen)
        factor = b.cast(factor, wide)
        factor = b.unary("reciprocal", factor) if kind == "div" else factor
        scaled = b.mul(product, factor)
        op.results[0].replace_all_uses_with(b.cast(scaled, element(op.results[0])))
    erase_unread(op)
    return product.owner.operation
