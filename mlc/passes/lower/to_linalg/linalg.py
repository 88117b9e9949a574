"""`matmul`: a contraction whose index maps carry transposition and batch broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.generics import NEVER_NEGATIVE
from mlc.passes.adaptor import Size, element
from mlc.passes.layout.align_products import ALONG_SUM
from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import Source, dim, dims, elementwise, filled, generic, pointwise
from mlc.passes.lower.to_linalg.context import Lowering
from mlc.passes.lower.to_linalg.sizes import extent


def accumulator_type(element_type: ir.Type) -> ir.Type:
    """Narrow floats accumulate in `f32`, `i8` in `i32`."""
    if isinstance(element_type, ir.IntegerType) and element_type.width < 32:
        return ir.IntegerType.get_signless(32)
    return scalar.compute_type(element_type)


@dataclass(frozen=True)
class Signs:
    """Which operands of a contraction of integers have no sign, and whether the left one is below 128."""

    unsigned: tuple[bool, bool] = (False, False)
    never_negative: bool = False


def multiply_add(signs: Signs) -> Callable[[list[ir.Value]], ir.Value]:
    """The body of a contraction: `acc + lhs * rhs` after widening."""

    def body(args: list[ir.Value]) -> ir.Value:
        lhs, rhs, acc = args
        left = scalar.convert(lhs, acc.type, unsigned_in=signs.unsigned[0])
        right = scalar.convert(rhs, acc.type, unsigned_in=signs.unsigned[1])
        if signs.never_negative and signs.unsigned[0]:
            left.owner.attributes[NEVER_NEGATIVE] = ir.UnitAttr.get()
        return scalar.add(acc, scalar.mul(left, right))

    return body


def contraction(
    sizes: Sequence[Size],
    out_exprs: Sequence[ir.AffineExpr],
    iterators: str,
    lhs: Source,
    rhs: Source,
    result: ir.Type,
    signs: Signs | None = None,
) -> ir.Value:
    """A contraction marked `mlc.contraction` and the narrowing of its accumulator to `result`."""
    accumulator = accumulator_type(element(lhs.value))
    value = generic(
        [filled(sizes, accumulator, 0)],
        [list(out_exprs)],
        iterators,
        [lhs, rhs],
        multiply_add(signs or Signs()),
        {"mlc.contraction": ir.UnitAttr.get()},
    )[0]
    if accumulator == result:
        return value
    return elementwise(value, result, lambda x: scalar.convert(x, result))


@lowers("mlc.matmul")
def matmul(op: Lowering) -> ir.Value:
    """Iteration space: batch dimensions, M, N, K."""
    rank = op.types[0].rank
    sizes = op.sizes()
    batch = op.broadcast([0, 1], rank, keep=2)
    m, n, k = dim(rank - 2), dim(rank - 1), dim(rank)
    lhs = _source(batch[0], [k, m] if op.flag("transpose_lhs") else [m, k], sizes[:-2])
    right = batch[1]
    along_k = op.flag("transpose_rhs")
    if along_k and not op.flag(ALONG_SUM) and _is_worth_transposing(right.value, sizes[-2]):
        right, along_k = Source(_with_rows(right.value), right.exprs, right.dynamic), False
    rhs = _source(right, [n, k] if along_k else [k, n], sizes[:-2])
    signs = Signs((op.flag("unsigned_lhs"), op.flag("unsigned_rhs")), op.flag(NEVER_NEGATIVE))
    return contraction(sizes, dims(rank), "p" * rank + "r", lhs, rhs, op.types[0].element_type, signs)


_FEW_ROWS = 4  # with fewer rows of the result every element of the right side is used too rarely


def _is_worth_transposing(value: ir.Value, rows: Size) -> bool:
    """Is `value`, whose rows are the result's columns, computed at run time and read for many rows? Micro-kernels load
    vectors along the result's columns, and weights are packed for them anyway. Floats of eight bits are for tensor
    cores, which read them along the sum."""
    owner = value.owner
    is_weight = not isinstance(owner, ir.Block) and owner.operation.name == "mlc.weight"
    is_for_cores = isinstance(element(value), ir.FloatType) and element(value).width == 8
    return not is_weight and not is_for_cores and not (isinstance(rows, int) and rows < _FEW_ROWS)


def _with_rows(value: ir.Value) -> ir.Value:
    """`value` with its last two dimensions exchanged, in memory."""
    rank = value.type.rank
    sizes = [extent(value, i) for i in (*range(rank - 2), rank - 1, rank - 2)]
    exprs = [*dims(rank - 2), dim(rank - 1), dim(rank - 2)]
    return pointwise(sizes, element(value), [Source(value, exprs)], _same)


def _source(source: Source, tail: list[ir.AffineExpr], batch: Sequence[Size]) -> Source:
    """An operand with its batch dimensions mapped; one that may broadcast at run time is broadcast first, so that the
    body of the contraction stays a plain multiply-add."""
    if not source.dynamic:
        return Source(source.value, source.exprs[:-2] + tail)
    rank = source.value.type.rank
    matrix = [extent(source.value, rank - 2), extent(source.value, rank - 1)]
    full = len(batch) + 2
    exprs = source.exprs[:-2] + [dim(full - 2), dim(full - 1)]
    value = pointwise([*batch, *matrix], element(source.value), [Source(source.value, exprs, source.dynamic)], _same)
    return Source(value, dims(full - 2) + tail)


def _same(args: list[ir.Value]) -> ir.Value:
    return args[0]
