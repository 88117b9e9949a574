"""Pass `mlc-integer-contractions`: contractions that are planned so multiply integers of eight bits.

```mlir
%0 = mlc.matmul %a, %b {mlc.integers}          // of dequantized %x and %w
// becomes
%p = mlc.matmul %x, %w {unsigned_lhs} : tensor<4x8xi8>, tensor<8x16xi8> -> tensor<4x16xi32>
%q = %p - zero of %x * (sums of the columns of %w)
%0 = cast(%q) * (scale of %x * scale of %w)
```
Obeys `mlc.integers` of `mlc-plan-integers`. With zero points `u` and `v`,
`Σ (x - u) (w - v) = Σ x w - u Σ w - v Σ x + n u v`, all of it in integers of 32 bits: exact. What depends on weights
only becomes a weight. The left operand is one without a sign and the right one has a sign, which is what instructions
multiply: others have their highest bit turned over, `x ^ 0x80`, which moves their zero point by 128. With
`mlc.never_negative` a left operand with a sign is one without as it is. With `mlc.own_signs` instructions take what
there is, and only a right operand whose zero point goes away is turned over. The padding of a convolution stands for
the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from mlc.kernels.common.generics import NEVER_NEGATIVE
from mlc.passes.adaptor import TRANSPOSED, OpAdaptor, splat_number
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.codes import OWN_SIGNS, PLANNED, Codes, read_codes, reduced_dims, turned
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations


class IntegerContractions(Pass):
    """Contractions that are planned so multiply integers of eight bits."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"rewritten": "contractions that multiply integers"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            for inner in operations(function):
                if PLANNED in inner.attributes:
                    with ir.InsertionPoint(inner), inner.location:
                        replace(inner, [_rewritten(OpAdaptor(inner))])
                    self.count("rewritten")


@dataclass
class _Operand:
    """Codes with the sign that the instruction wants, and their zero point in 32 bits (None: zero)."""

    values: ir.Value
    zero: ir.Value | None
    unsigned: bool


def _rewritten(op: OpAdaptor) -> ir.Value:
    sides = [read_codes(op.operand(number)) for number in range(2)]
    left, right = sides
    if not isinstance(left, Codes) or not isinstance(right, Codes):
        raise ValueError(f"{op.node}: {PLANNED} is on a contraction of operands that are not quantized")
    if NEVER_NEGATIVE in op.op.attributes:
        left = Codes(left.values, True, left.zero, left.scale, left.axis)
    own = OWN_SIGNS in op.op.attributes
    signs = (left.unsigned, right.unsigned and not _is_middle(right)) if own else (True, False)
    x, w = (_with_sign(codes, unsigned=sign) for codes, sign in zip((left, right), signs, strict=True))
    total = _product(op, x, w) if op.name == "mlc.matmul" else _convolution(op, x, w)
    scales = [left.factor(), right.factor()]
    if scales[0] is None or scales[1] is None:
        return total
    factors = [_placed(op, number, scale) for number, scale in enumerate(s for s in scales if s is not None)]
    value = b.mul(b.cast(total, b.f32()), b.mul(*factors))
    bias = op.trailing(2) if op.name == "mlc.conv" else None
    return value if bias is None else b.add(value, b.channelwise(bias, value.type.rank))


def _is_middle(codes: Codes) -> bool:
    """Is the zero point of codes without a sign 128, the zero of those with one?"""
    known = None if codes.zero is None else splat_number(codes.zero)
    return known is not None and int(known) % 256 == 128


def _with_sign(codes: Codes, *, unsigned: bool) -> _Operand:
    zero = codes.zero_point()
    zero = None if zero is None or splat_number(zero) == 0 else zero
    if codes.unsigned == unsigned:
        return _Operand(codes.values, zero, unsigned)
    shift = 128 if unsigned else -128
    values = b.binary("xor", codes.values, -128)
    if zero is None:
        return _Operand(values, b.scalar(shift, ir.IntegerType.get_signless(32)), unsigned)
    known = splat_number(zero)
    if known is not None and known + shift == 0:
        return _Operand(values, None, unsigned)
    return _Operand(values, b.add(zero, shift), unsigned)


def _placed(op: OpAdaptor, number: int, parameter: ir.Value) -> ir.Value:
    """A parameter of operand `number` in the dimensions of the result."""
    if parameter.type.rank == 0:
        return parameter
    if op.name == "mlc.conv":
        if number == 0:
            return b.reshape(parameter, [])
        sizes = b.sizes(parameter)  # [O, 1, …] or fewer dimensions
        return b.reshape(parameter, [sizes[0], *[1] * (op.types[0].rank - 2)])
    return turned(op, number, parameter)


def _without_sign(op: OpAdaptor, x: _Operand, w: _Operand) -> dict[str, ir.Attribute]:
    """The attributes of a contraction that say which of its operands have no sign, or do not use it."""
    names = ("unsigned_lhs", "unsigned_rhs") if op.name == "mlc.matmul" else ("unsigned_input", "unsigned_filter")
    found = {name: ir.UnitAttr.get() for name, side in zip(names, (x, w), strict=True) if side.unsigned}
    return found | ({NEVER_NEGATIVE: ir.UnitAttr.get()} if NEVER_NEGATIVE in op.op.attributes else {})


def _sums(values: ir.Value, dims: Sequence[int], unsigned: bool) -> ir.Value:
    """Sums of codes, in 32 bits."""
    wide = b.cast(values, ir.IntegerType.get_signless(32), unsigned_in=unsigned)
    return b.reduce("sum", wide, list(dims))


def _corrected(total: ir.Value, constant: ir.Value | None, moving: ir.Value | None) -> ir.Value:
    """What is left when the corrections, the one by weights and the one by activations, are taken away."""
    for correction in (constant, moving):
        if correction is not None:
            total = b.sub(total, correction)
    return total


def _product(op: OpAdaptor, x: _Operand, w: _Operand) -> ir.Value:
    flags = {name: ir.UnitAttr.get() for name in TRANSPOSED if op.flag(name)}
    total = b.operation("matmul", [x.values, w.values], flags | _without_sign(op, x, w))[0]
    zeros = [z if z is None else _placed(op, n, z) for n, z in enumerate((x.zero, w.zero))]
    constant = moving = None
    if zeros[0] is not None:
        columns = turned(op, 1, _sums(w.values, reduced_dims(op, 1), w.unsigned))
        if zeros[1] is not None:
            [depth] = reduced_dims(op, 0)
            count = b.size_scalar(x.values, depth, ir.IntegerType.get_signless(32))
            columns = b.sub(columns, b.mul(zeros[1], count))
        constant = b.mul(columns, zeros[0])
    if zeros[1] is not None:
        moving = b.mul(turned(op, 0, _sums(x.values, reduced_dims(op, 0), x.unsigned)), zeros[1])
    return _corrected(total, constant, moving)


# -- convolutions ------------------------------------------------------------------------------------------------------


def _convolution(op: OpAdaptor, x: _Operand, w: _Operand) -> ir.Value:
    padding, values = op.ints("padding"), x.values
    rank, spatial = values.type.rank, len(op.ints("strides"))
    zero = None if x.zero is None else b.reshape(x.zero, []) if x.zero.type.rank else x.zero
    if zero is not None and any(padding):
        values = _padded(values, padding, b.cast(zero, ir.IntegerType.get_signless(8)))
        padding = [0] * (2 * spatial)
    names = ("strides", "dilations", "groups", "layout")
    attributes = {name: op.op.attributes[name] for name in names if op.has(name)}
    attributes |= {"padding": b.integers(padding), **_without_sign(op, x, w)}
    total = b.operation("conv", [values, w.values], attributes)[0]
    filter_zero = None if w.zero is None else _placed(op, 1, w.zero)
    constant = moving = None
    shape = [b.size(w.values, 0), *[1] * spatial]
    if zero is not None:
        columns = b.reshape(_sums(w.values, range(1, rank), w.unsigned), shape)
        if filter_zero is not None:
            count = b.count(w.values, range(1, rank), ir.IntegerType.get_signless(32))
            columns = b.sub(columns, b.mul(filter_zero, count))
        constant = b.mul(columns, zero)
    if filter_zero is not None:
        moving = b.mul(_window_sums(op, values, padding, x.unsigned), filter_zero)
    return _corrected(total, constant, moving)


def _padded(values: ir.Value, padding: Sequence[int], zero: ir.Value) -> ir.Value:
    spatial = len(padding) // 2
    low, high = [0, 0, *padding[:spatial]], [0, 0, *padding[spatial:]]
    statics = {"static_low": b.integers(low), "static_high": b.integers(high), "mode": b.text("constant")}
    return b.operation("pad", [values, zero], statics, segments=[1, 1, 0, 0])[0]


def _window_sums(op: OpAdaptor, values: ir.Value, padding: Sequence[int], unsigned: bool) -> ir.Value:
    """Sums of the codes under every window, for every group that is not alone: `[N, O or 1, …]`."""
    groups, filters = op.int("groups", 1), op.operand(1).type.shape
    if groups == 1:
        values = _sums(values, [1], unsigned)
    else:
        sizes = b.sizes(values)
        split = b.reshape(values, [sizes[0], groups, filters[1], *sizes[2:]])
        values = b.drop_dim(_sums(split, [2], unsigned), 2)
    attributes = {name: op.op.attributes[name] for name in ("strides", "dilations")}
    attributes |= {
        "kind": b.text("sum"),
        "kernel": b.integers(filters[2:]),
        "padding": b.integers(padding),
        "count_include_pad": ir.BoolAttr.get(True),
        "layout": b.text("nchw"),
    }
    sums = b.operation("pool", [values], attributes)[0]
    if groups == 1 or filters[0] == groups:
        return sums
    sizes = b.sizes(sums)
    each = filters[0] // groups
    wide = b.broadcast(b.expand_dims(sums, [2]), [sizes[0], groups, each, *sizes[2:]])
    return b.reshape(wide, [sizes[0], filters[0], *sizes[2:]])
