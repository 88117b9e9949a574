"""Pass `mlc-group-gathers`: rows that multiply matrices picked from a stack are products of the rows that picked one.

    %m = mlc.gather %stack, %chosen {axis = 0 : i64} : tensor<16x64x32xf32>, tensor<24xi64> -> tensor<24x64x32xf32>
    %y = mlc.matmul %m, %x : tensor<24x64x32xf32>, tensor<24x32x1xf32> -> tensor<24x64x1xf32>
becomes
    %rows = the rows of %x in the order of what they picked : tensor<24x32xf32>
    scf.for each matrix that somebody picked:
      %part = mlc.matmul %rows[begin of its rows : end of its rows], %stack[its number] {transpose_rhs}
      insert %part into the result
    %y = the result's rows in the order of before

Mixtures of experts, as exporters write them (`batched_mm` of transformers): the gather copies a matrix for each row, of
gigabytes for a prompt, and each copy is read once. In the loop a matrix is read where it lies, once for its rows.
Stacks must be weights, and what picks must be positions of a `topk` or of a largest element: no others are known to be
in range. Of small matrices the copies cost less than the order. On GPUs, which a loop of the host waits for, they do,
too, and this pass does not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects import arith, scf, tensor

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, defining_op, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import element_count, is_static, replace
from mlc.passes.walk import functions, operations

_LEAST = 1 << 16  # elements of a matrix
_CHOICES = {"mlc.topk": 1, "mlc.arg_reduce": 0}  # operations that give positions along `axis`: which result they are
_MOVES = ("mlc.reshape", "mlc.transpose", "mlc.slice", "mlc.broadcast")  # numbers stay what they are
_WIDE = 32  # bits of an integer that positions are in range of


class GroupGathers(Pass):
    """Multiplies the rows that picked one matrix of a stack together."""

    dialects = ("mlc", "arith", "tensor", "scf")
    statistics = {"grouped": "products of picked matrices"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            orders: dict[tuple[ir.Value, ir.Block], Order] = {}
            for inner in operations(function):
                found = _picked(inner) if inner.name == "mlc.matmul" else None
                if found is None:
                    continue
                with ir.InsertionPoint(inner), inner.location:
                    key = found.chosen, inner.block
                    if key not in orders:
                        orders[key] = Order(found.chosen, found.stack.type.shape[0])
                    replace(inner, [_grouped(OpAdaptor(inner), found, orders[key])])
                self.count("grouped")


@dataclass(frozen=True)
class Picked:
    """The operand `number` of a product is a matrix of `stack` for each row of the other one, which `chosen` says."""

    number: int
    stack: ir.Value
    chosen: ir.Value


def _picked(op: ir.Operation) -> Picked | None:
    """What a product of single rows picks from a stack, if it does."""
    if {*op.attributes} - {"transpose_lhs", "transpose_rhs"} or not isinstance(element(op.results[0]), ir.FloatType):
        return None
    for number in (0, 1):
        gather = defining_op(op.operands[number])
        rows = op.operands[1 - number].type
        if gather is None or gather.name not in ("mlc.gather", "mlc.gather_nd") or rows.rank != 3:
            continue
        stack, chosen = gather.operands
        flag = "transpose_rhs" if number == 0 else "transpose_lhs"
        single = 2 - number if flag not in op.attributes else 1 + number
        if rows.shape[single] != 1 or not _is_stack(gather) or _bound(chosen) > stack.type.shape[0]:
            continue
        return Picked(number, stack, chosen)
    return None


def _is_stack(gather: ir.Operation) -> bool:
    """Does one product alone read a gather, which takes whole matrices from a weight?"""
    view, (stack, chosen) = OpAdaptor(gather), gather.operands
    source = defining_op(stack)
    by_rows = chosen.type.rank == 1 and view.int("axis", 0) == 0 and view.int("batch_dims", 0) == 0
    if gather.name == "mlc.gather_nd":
        by_rows = shape_of(chosen)[1:] == [1] and view.int("batch_dims", 0) == 0
    if not by_rows or source is None or source.name != "mlc.weight" or not is_static(stack.type):
        return False
    alone = len(list(gather.results[0].uses)) == 1
    return alone and stack.type.rank == 3 and element_count(stack.type) // stack.type.shape[0] >= _LEAST


def _bound(value: ir.Value) -> int:
    """A number that all elements are known to be smaller than, and not negative; a very large one if there is none."""
    op = defining_op(value)
    while op is not None and (op.name in _MOVES or op.name == "mlc.cast" and _is_wide(op.results[0])):
        value = op.operands[0]
        op = defining_op(value)
    if op is None or op.name not in _CHOICES or value != op.results[_CHOICES[op.name]]:
        return 1 << 62
    extent = shape_of(op.operands[0])[OpAdaptor(op).int("axis", 0)]
    return 1 << 62 if extent == DYNAMIC else extent


def _is_wide(value: ir.Value) -> bool:
    type_ = element(value)
    return isinstance(type_, ir.IntegerType) and type_.width >= _WIDE


class Order:
    """Rows in the order of the matrices `chosen [n]` that they picked, of `count`."""

    def __init__(self, chosen: ir.Value, count: int) -> None:
        n = b.size(chosen, 0)
        flat = b.cast(b.reshape(chosen, [n]), b.i64())
        self.rows = b.operation("sort", [flat], {"axis": b.integer(0)})[1]
        numbers, line = b.iota([count, 1], 0, b.i64()), b.reshape(flat, [1, n])
        self.begins, self.ends = (
            b.reduce("sum", b.cast(b.compare(kind, line, numbers), b.i64()), [1], False) for kind in ("lt", "le")
        )
        some = b.operation("nonzero", [b.compare("lt", self.begins, self.ends)])[0]
        self.some = b.reshape(some, [b.size(some, 1)])
        places = {"axis": b.integer(0), "reduction": b.text("none")}
        self.places = b.operation("scatter_elements", [self.rows, self.rows, b.arange(n, b.i64())], places)[0]


def _grouped(op: OpAdaptor, found: Picked, order: Order) -> ir.Value:
    """What takes the place of the product: a loop over the matrices that somebody picked."""
    x, turned = op.operand(1 - found.number), found.number == 0
    count: Size = b.size(x, 0)
    turned ^= op.flag("transpose_lhs" if found.number == 0 else "transpose_rhs")
    depth, columns = found.stack.type.shape[1:] if not turned else found.stack.type.shape[:0:-1]
    rows = b.gather(b.reshape(x, [count, depth]), order.rows, 0, in_range=True)
    zero = b.scalar(0.0, element(op.op.results[0]))
    loop = scf.ForOp(b.index(0), b.index(b.size(order.some, 0)), b.index(1), [b.broadcast(zero, [1, count, columns])])
    with ir.InsertionPoint(loop.body):
        number = _element(order.some, loop.induction_variable)
        begin, end = _element(order.begins, number), _element(order.ends, number)
        part = b.slice_(rows, [begin, 0], [arith.subi(end, begin), depth])
        matrix = b.slice_(found.stack, [number, 0, 0], [1, *found.stack.type.shape[1:]])
        made = b.matmul(part, b.drop_dim(matrix, 0), transpose_rhs=turned)
        made = b.expand_dims(made, [0])
        start = b.slice_(order.begins, [number], [1])
        scf.YieldOp([b.operation("insert", [loop.inner_iter_args[0], made, start], {"axis": b.integer(1)})[0]])
    spread = b.gather(b.drop_dim(loop.results[0], 0), order.places, 0, in_range=True)
    return b.reshape(spread, [count, columns, 1] if found.number == 0 else [count, 1, columns])


def _element(vector: ir.Value, position: ir.Value) -> ir.Value:
    """An element as a size."""
    return arith.index_cast(ir.IndexType.get(), tensor.extract(vector, [position]))
