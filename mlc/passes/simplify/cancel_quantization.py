"""Pass `mlc-cancel-quantization`: what is dequantized and quantized again alike stays the integers that it was.

    %f = mlc.dequantize %q, %s zero_point(%z)           →   %r = mlc.reshape %q [128, 768]
    %m = mlc.reshape %f [128, 768]                          %t = mlc.transpose %r [1, 0]
    %t = mlc.transpose %m [1, 0]
    %y = mlc.quantize %t, %s zero_point(%z)

Quantizers of models put such pairs around every operator. Where a reshape or a transpose is in between, the
quantization comes before it. Reshapes, which move nothing, also come behind dequantizations and the functions of these
(`gelu(reshape(dequantize(%q)))` becomes `reshape(gelu(dequantize(%q)))`), so that they meet the reshape back, and the
contraction that makes the integers becomes one kernel with all that follows. The largest numbers of windows are those
of the largest integers.

Codes of at most 16 bits with one scale of f32, of ordinary size, for all elements: `(q - z) * s / s` is then off by
less than a hundredth of a step and is rounded to `q - z`.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, element, shape_of, splat_number
from mlc.passes.base import Pass
from mlc.passes.simplify.rewrite import is_unused, replace
from mlc.passes.walk import functions, operations

_MOST_BITS = 16
_MOST = 32  # operations behind each other that a reshape passes
_ORDINARY = (1e-30, 1e30)  # scales with which no product leaves the range of f32


class CancelQuantization(Pass):
    """Drops pairs of a dequantization and a quantization that are alike."""

    dialects = ("mlc",)
    statistics = {
        "cancelled": "quantizations that gave the integers that there were",
        "passed": "movements that came behind what computes with their elements",
    }

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in operations(function):
                if op.name == "mlc.quantize" and _is_of_tensor(OpAdaptor(op)):
                    self._lift(op)

    def _lift(self, op: ir.Operation) -> None:
        """A quantization comes before movements; behind the dequantization that is alike it goes away."""
        while (source := defining_op(op.operands[0])) is not None:
            if source.name == "mlc.dequantize" and _are_alike(OpAdaptor(op), OpAdaptor(source)):
                replace(op, [source.operands[0]])
                if is_unused(source):
                    source.erase()
                self.count("cancelled")
                return
            if _is_maximum_of_codes(OpAdaptor(op), source):
                op = self._quantize_first(op, source)
                continue
            region = [op]
            if source.name != "mlc.reshape" and not (source.name == "mlc.transpose" and _has_one_use(source)):
                region = _region(op)
            if not region:  # another thing is quantized
                return
            op = self._rebuild(region)

    def _quantize_first(self, op: ir.Operation, pool: ir.Operation) -> ir.Operation:
        """The largest of quantized numbers in place of the largest number, quantized; gives the new quantization."""
        result, source = op.results[0].type, pool.operands[0]
        with ir.InsertionPoint(op), op.location:
            first = _like(op, [source, *list(op.operands)[1:]], shape_of(source), result.element_type)
        with ir.InsertionPoint(op), pool.location:
            largest = _like(pool, [first.results[0]], shape_of(pool.results[0]), result.element_type)
        if "unsigned" in op.attributes:
            largest.attributes["unsigned"] = ir.UnitAttr.get()
        replace(op, [largest.results[0]])
        pool.erase()
        self.count("passed")
        return first

    def _rebuild(self, region: list[ir.Operation]) -> ir.Operation:
        """`g(f(move(x)))` becomes `move(g(f(x)))` for the operations `region`, the first of which reads the movement;
        gives the new last one."""
        move, last = defining_op(region[0].operands[0]), region[-1]
        assert move is not None
        values, shape = {move.results[0]: move.operands[0]}, shape_of(move.operands[0])
        for op in region:
            operands = [values.get(v, v) for v in op.operands]
            with ir.InsertionPoint(last), op.location:
                new = _like(op, operands, shape, element(op.results[0]))
            values[op.results[0]] = new.results[0]
        with ir.InsertionPoint(last), move.location:
            rest = list(move.operands)[1:]
            moved = _like(move, [new.results[0], *rest], shape_of(last.results[0]), element(last.results[0]))
        replace(last, [moved.results[0]])
        for op in reversed([move, *region[:-1]]):  # who else would read them must not be looked for in vain
            if is_unused(op):
                op.erase()
        self.count("passed")
        return new


def _like(op: ir.Operation, operands: list[ir.Value], shape: list[int], type_: ir.Type) -> ir.Operation:
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, [ir.RankedTensorType.get(shape, type_)], operands, attributes)


def _is_of_tensor(op: OpAdaptor) -> bool:
    """Has a (de)quantization one known scale, and one zero point, for all elements?"""
    scale = splat_number(op.operand(1))
    zero = op.trailing(2)
    return scale is not None and op.operand(1).type.rank == 0 and (zero is None or zero.type.rank == 0)


def _are_alike(quantize: OpAdaptor, dequantize: OpAdaptor) -> bool:
    """Does `quantize` give back what `dequantize`, which it reads, has read?"""
    kind = quantize.types[0].element_type
    if not _is_of_tensor(dequantize) or element(dequantize.operand(0)) != kind or not isinstance(kind, ir.IntegerType):
        return False
    if kind.width > _MOST_BITS or quantize.flag("unsigned") != dequantize.flag("unsigned"):
        return False
    if not all(isinstance(element(v), ir.F32Type) for v in (quantize.operand(0), quantize.operand(1))):
        return False
    scale, zero = splat_number(quantize.operand(1)), _zero(quantize)
    if scale is None or zero is None or not _ORDINARY[0] < scale < _ORDINARY[1]:
        return False
    return scale == splat_number(dequantize.operand(1)) and zero == _zero(dequantize)


def _is_maximum_of_codes(op: OpAdaptor, source: ir.Operation) -> bool:
    """Is `source` the pooling, which `op` alone reads, of what was dequantized as `op` quantizes?"""
    if source.name != "mlc.pool" or OpAdaptor(source).text() != "max" or not _has_one_use(source):
        return False
    before = defining_op(source.operands[0])
    if before is None or before.name != "mlc.dequantize":
        return False
    return _are_alike(op, OpAdaptor(before))


def _zero(op: OpAdaptor) -> int | float | None:
    zero = op.trailing(2)
    return 0 if zero is None else splat_number(zero)


def _region(op: ir.Operation) -> list[ir.Operation]:
    """What computes, element by element, the input of the quantization `op` from reshaped codes, and `op`, each behind
    what it reads: the dequantization comes first. Nothing where something else is read, or somebody else reads any."""
    order: list[ir.Operation] = []
    if not _collect(op, order, _MOST):
        return []
    inside = {*order}
    used_inside = all(use.owner.operation in inside for inner in order[:-1] for use in inner.results[0].uses)
    first = [inner for inner in order if inner.name == "mlc.dequantize"]
    return order if used_inside and first == order[:1] else []


def _collect(op: ir.Operation, order: list[ir.Operation], depth: int) -> bool:
    """Appends the functions that `op` reads, and `op`; says whether nothing else than reshaped codes is read."""
    if op in order:
        return True
    for value in op.operands if op.name != "mlc.dequantize" else []:
        source = defining_op(value)
        if _is_number(value):
            continue
        if source is None or depth == 0 or source.block != op.block:  # it may be computed once for a loop
            return False
        if not _is_function(source) and not _reads_reshaped_codes(source):
            return False
        if not _collect(source, order, depth - 1):
            return False
    order.append(op)
    return True


def _is_function(op: ir.Operation) -> bool:
    """Is `op` computed element by element from tensors of its shape and numbers?"""
    if op.name not in ("mlc.unary", "mlc.activation", "mlc.clamp", "mlc.binary"):
        return False
    return all(_is_number(v) or shape_of(v) == shape_of(op.results[0]) for v in op.operands)


def _is_number(value: ir.Value) -> bool:
    return value.type.rank == 0 and splat_number(value) is not None


def _reads_reshaped_codes(op: ir.Operation) -> bool:
    """Is `op` a dequantization, with one scale, of what a reshape gives?"""
    if op.name != "mlc.dequantize" or not _is_of_tensor(OpAdaptor(op)):
        return False
    codes = defining_op(op.operands[0])
    return codes is not None and codes.name == "mlc.reshape"


def _has_one_use(op: ir.Operation) -> bool:
    return len(list(op.results[0].uses)) == 1
