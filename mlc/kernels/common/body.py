"""Inlining of a `linalg.generic` body on scalars or vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from mlc.kernels.common import memory
from mlc.kernels.common.alignment import divisor
from mlc.kernels.common.choices import Choice
from mlc.kernels.common.frame import Frame, if_then
from mlc.kernels.common.index import Idx
from mlc.kernels.common.peepholes import divides_by_one_plus_exp, is_inside_sigmoid, sigmoid_argument
from mlc.kernels.common.vector_math import expand as expand_math
from mlc.kernels.common.vector_math import expands, reciprocal, sigmoid

if TYPE_CHECKING:
    from mlc.kernels.common.evaluate import Evaluator

Lane: TypeAlias = ir.Value | Idx
"""A value of a body: an element, or a coordinate that is kept symbolic as long as the arithmetic on it is affine."""

INDEX_OUT_OF_RANGE, DIVISION_BY_ZERO, OTHER_ERROR = 1, 2, 4  # codes of the error word, docs/abi.md


def inline_body(ev: Evaluator, generic: ir.Operation, args: Sequence[ir.Value], dims: Sequence[Idx]) -> list[ir.Value]:
    """Emit the body of `generic` for `args` at the iteration point `dims`; gives the yielded values."""
    block = generic.regions[0].blocks[0]
    env: dict[ir.Value, Lane] = dict(zip(block.arguments, args, strict=True))
    return _block(ev, block, env, dims)


def _block(ev: Evaluator, block: ir.Block, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> list[ir.Value]:
    for view in block.operations:
        op = view.operation
        if op.name in ("linalg.yield", "scf.yield"):
            return [_value(ev, _operand(ev, env, v)) for v in op.operands]
        _emit(ev, op, env, dims)
    raise ValueError("a body ends in a yield")


def _emit(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    handler = _HANDLERS.get(op.name)
    if handler is not None:
        handler(ev, op, env, dims)
    else:
        _elementwise(ev, op, env)


def _operand(ev: Evaluator, env: dict[ir.Value, Lane], value: ir.Value) -> Lane:
    """A value of the body, or of the function around it."""
    if value in env:
        return env[value]
    from mlc.kernels.common.evaluate import scalar_operand

    if isinstance(value.type, ir.IndexType):
        return Idx(ev.frame.scalar(value))
    return scalar_operand(ev, value)


def _value(ev: Evaluator, lane: Lane) -> ir.Value:
    return ev.idx.value(lane) if isinstance(lane, Idx) else lane


def _as_idx(lane: Lane) -> Idx:
    if isinstance(lane, Idx):
        return lane
    return Idx(lanes=lane) if isinstance(lane.type, ir.VectorType) else Idx(lane)


@dataclass(frozen=True)
class Emitted:
    """What is emitted again for every element: an operation of a body, read once."""

    name: str
    operands: list[ir.Value]
    results: list[ir.Value]
    types: list[ir.Type]
    attributes: dict[str, ir.Attribute]
    is_reciprocal: bool
    sigmoid_of: ir.Value | None
    is_left_out: bool


def _emitted(frame: Frame, op: ir.Operation) -> Emitted:
    results = list(op.results)
    known: Emitted | None = frame.emitted.get(results[0])
    if known is None:
        attributes = {name: op.attributes[name] for name in op.attributes}
        if op.name in EXTREMA:
            attributes["fastmath"] = any_zero()
        types = [r.type for r in results]
        is_reciprocal = frame.has_exp2 and divides_by_one_plus_exp(op)
        sigmoid_of = None if frame.has_exp2 else sigmoid_argument(op)
        is_left_out = not frame.has_exp2 and is_inside_sigmoid(op)
        known = Emitted(op.name, list(op.operands), results, types, attributes, is_reciprocal, sigmoid_of, is_left_out)
        frame.emitted[results[0]] = known
    return known


def _elementwise(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane]) -> None:
    """Emit `op` again, on vectors when an operand is one."""
    known = _emitted(ev.frame, op)
    if known.is_left_out:
        return
    if known.sigmoid_of is not None:
        x = _value(ev, _operand(ev, env, known.sigmoid_of))
        env[known.results[0]] = ev.frame.call("sigmoid", sigmoid, x)
        return
    operands = [_value(ev, _operand(ev, env, v)) for v in known.operands]
    types = known.types
    if any(isinstance(v.type, ir.VectorType) for v in operands):
        operands = [ev.splat(v) for v in operands]
        types = [ir.VectorType.get([ev.lanes], type_) for type_ in types]
    if expands(known.name, operands[0].type):
        env[known.results[0]] = _function(ev.frame, known.name, operands)
        return
    if known.is_reciprocal:
        env[known.results[0]] = reciprocal(operands[1])
        return
    new = ir.Operation.create(known.name, types, operands, known.attributes)
    for old, result in zip(known.results, new.results, strict=True):
        env[old] = result


def _function(frame: Frame, name: str, operands: Sequence[ir.Value]) -> ir.Value:
    """A mathematical function. Those of two operands look at the second one: an exponent may be a constant."""

    def emit(*values: ir.Value) -> ir.Value:
        result = expand_math(name, values, frame.has_exp2)
        assert result is not None
        return result

    return emit(*operands) if len(operands) > 1 else frame.call(name.removeprefix("math."), emit, operands[0])


EXTREMA = ("arith.maximumf", "arith.minimumf")


def any_zero() -> ir.Attribute:
    """What makes extrema short: NaN counts, but which of two zeros is larger does not (no source framework says)."""
    return ir.Attribute.parse("#arith.fastmath<nsz>")


def _index(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    env[op.results[0]] = dims[ir.IntegerAttr(op.attributes["dim"]).value]


def _constant(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    from mlc.kernels.common.evaluate import constant_value

    if isinstance(op.results[0].type, ir.IndexType):
        env[op.results[0]] = Idx(ir.IntegerAttr(op.attributes["value"]).value)
    else:
        env[op.results[0]] = constant_value(ev, op)


def _affine(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    """addi, subi, muli: kept symbolic on index values."""
    if not isinstance(op.results[0].type, ir.IndexType):
        _elementwise(ev, op, env)
        return
    a, b = (_as_idx(_operand(ev, env, v)) for v in op.operands)
    if op.name == "arith.addi":
        env[op.results[0]] = ev.idx.add(a, b)
    elif op.name == "arith.subi":
        env[op.results[0]] = ev.idx.add(a, ev.idx.scale(b, -1))
    elif b.uniform or a.uniform:
        a, b = (a, b) if b.uniform else (b, a)
        env[op.results[0]] = ev.idx.scale(a, b.base)
    else:
        _elementwise(ev, op, env)


def _extract(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    coords = [_as_idx(_operand(ev, env, v)) for v in list(op.operands)[1:]]
    env[op.results[0]] = ev.tensor(op.operands[0], coords)


def _dim(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    which = _as_idx(_operand(ev, env, op.operands[1])).base
    assert isinstance(which, int)
    env[op.results[0]] = Idx(ev.frame.extent(op.operands[0], which))


_SIGNED = {2: "<", 3: "<=", 4: ">", 5: ">="}  # arith.cmpi predicates
_UNSIGNED = {6: "<", 7: "<=", 8: ">", 9: ">="}


def _compare(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    """A comparison of coordinates whose bounds decide it is a constant, and one number where all lanes have the same
    outcome."""
    known, predicate = None, ir.IntegerAttr(op.attributes["predicate"]).value
    if isinstance(op.operands[0].type, ir.IndexType):
        a, b = (_operand(ev, env, v) for v in op.operands)
        if isinstance(a, Idx) and isinstance(b, Idx):
            known = decide(predicate, a, b)
            if known is None and _is_same_for_all(ev, predicate, a, b):
                sides = [ev.frame.constants.index(side.base) for side in (a, b)]
                env[op.results[0]] = arith.cmpi(arith.CmpIPredicate(predicate), *sides)
                return
    if known is None:
        _elementwise(ev, op, env)
    else:
        env[op.results[0]] = ev.frame.constants.get(ir.IntegerType.get_signless(1), int(known))


def _is_same_for_all(ev: Evaluator, predicate: int, a: Idx, b: Idx) -> bool:
    """Do lanes that lie side by side begin at a multiple of their number, and the limit, too? Where a vector has masks
    of its own, which branches are dearer than, nobody asks."""
    if not ev.frame.has_warps or (_SIGNED | _UNSIGNED).get(predicate) not in ("<", ">="):
        return False
    side_by_side = a.lanes is None and a.step == a.repeat == 1 and b.uniform
    return side_by_side and divisor(a.base) % ev.lanes == 0 and divisor(b.base) % ev.lanes == 0


def decide(predicate: int, a: Idx, b: Idx) -> bool | None:
    """The outcome of `arith.cmpi` where the bounds of the coordinates decide it."""
    if a.span is None or b.span is None:
        return None
    kind = _SIGNED.get(predicate)
    if kind is None:
        kind = _UNSIGNED.get(predicate)
        if kind is None or b.span[0] < 0:
            return None
        if a.span[1] < 0:  # negative numbers are large without a sign
            return kind[0] == ">"
        if a.span[0] < 0:
            return None
    (a_low, a_high), (b_low, b_high) = (a.span, b.span) if kind[0] == "<" else (b.span, a.span)
    if a_high < b_low or kind.endswith("=") and a_high <= b_low:
        return True
    if a_low > b_high or not kind.endswith("=") and a_low >= b_high:
        return False
    return None


def _and(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    """A conjunction with what is known."""
    if isinstance(op.results[0].type, ir.IntegerType) and op.results[0].type.width == 1:
        false, true = _truths(ev)
        sides = [_value(ev, _operand(ev, env, v)) for v in op.operands]
        if false in sides:
            env[op.results[0]] = false
            return
        if true in sides:
            env[op.results[0]] = sides[0] if sides[1] == true else sides[1]
            return
    _elementwise(ev, op, env)


def _truths(ev: Evaluator) -> tuple[ir.Value, ir.Value]:
    constants, i1 = ev.frame.constants, ir.IntegerType.get_signless(1)
    return constants.get(i1, 0), constants.get(i1, 1)


def _if(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    """A uniform condition stays a branch; a varying one masks the memory accesses of both sides and selects."""
    condition = _value(ev, _operand(ev, env, op.operands[0]))
    blocks = [region.blocks[0] for region in op.regions]
    truths = _truths(ev)
    if condition in truths:
        values = _block(ev, blocks[truths[0] == condition], dict(env), dims)
        env.update(zip(op.results, values, strict=True))
        return
    if isinstance(condition.type, ir.VectorType):
        sides = []
        for block, mask in zip(blocks, _masks(ev, condition), strict=True):
            sides.append(_block(ev.child(mask=mask), block, dict(env), dims))
        for result, a, b in zip(op.results, *sides, strict=True):
            env[result] = arith.select(condition, ev.splat(a), ev.splat(b))
        return
    if (loaded := Choice(ev, dims, _emit, _operand).load(op, env)) is not None:
        env[op.results[0]] = loaded
        return
    types = [r.type if ev.lanes == 1 else ir.VectorType.get([ev.lanes], r.type) for r in op.results]
    branch = scf.IfOp(condition, types, has_else=True)
    for block, target in zip(blocks, (branch.then_block, branch.else_block), strict=True):
        with ir.InsertionPoint(target):
            values = _block(ev.child(mask=ev.mask), block, dict(env), dims)
            scf.YieldOp([ev.splat(v) for v in values])
    for result, new in zip(op.results, branch.results, strict=True):
        env[result] = new


def _masks(ev: Evaluator, condition: ir.Value) -> tuple[ir.Value, ir.Value]:
    true = memory.full_mask(ev.frame, ev.lanes)
    inverse = arith.xori(condition, true)
    if ev.mask is None:
        return condition, inverse
    return arith.andi(ev.mask, condition), arith.andi(ev.mask, inverse)


def _assert(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    """A failed assertion sets the error word: its code, and the first operand of the comparison as the value."""
    condition = _value(ev, _operand(ev, env, op.operands[0]))
    offender = _value(ev, _operand(ev, env, _compared(op.operands[0])))
    if isinstance(condition.type, ir.VectorType):
        offender = ev.splat(offender)
        limit = ev.splat(ev.frame.constants.get(offender.type.element_type, (1 << 62) - 1))
        if ev.mask is not None:
            condition = arith.ori(condition, arith.xori(ev.mask, memory.full_mask(ev.frame, ev.lanes)))
        worst = arith.select(condition, limit, offender)
        offender = vector.ReductionOp(
            offender.type.element_type, ir.Attribute.parse("#vector.kind<minsi>"), worst
        ).result
        condition = vector.ReductionOp(
            ir.IntegerType.get_signless(1), ir.Attribute.parse("#vector.kind<and>"), condition
        ).result
    message = ir.StringAttr(op.attributes["msg"]).value
    code = INDEX_OUT_OF_RANGE if "index" in message else DIVISION_BY_ZERO if "division" in message else OTHER_ERROR
    i64 = ir.IntegerType.get_signless(64)
    constants = ev.frame.constants
    failed = arith.xori(condition, constants.get(ir.IntegerType.get_signless(1), 1))

    def record() -> None:
        value = offender
        if isinstance(value.type, ir.IndexType):
            value = arith.index_cast(i64, value)
        elif value.type != i64:
            value = arith.extsi(i64, value)
        memref.store(constants.get(i64, code), ev.frame.error, [constants.index(0)])
        memref.store(value, ev.frame.error, [constants.index(1)])

    if_then(failed, record)


def _compared(condition: ir.Value) -> ir.Value:
    """The left operand of the first comparison that `condition` is made of."""
    op = condition.owner.operation
    while op.name != "arith.cmpi":
        op = op.operands[0].owner.operation
    return op.operands[0]


def _index_cast(ev: Evaluator, op: ir.Operation, env: dict[ir.Value, Lane], dims: Sequence[Idx]) -> None:
    if isinstance(op.results[0].type, ir.IndexType):
        lane = _operand(ev, env, op.operands[0])
        value = _value(ev, lane)
        type_: ir.Type = ir.IndexType.get()
        if isinstance(value.type, ir.VectorType):
            type_ = ir.VectorType.get([ev.lanes], type_)
        create = arith.index_castui if op.name.endswith("ui") else arith.index_cast
        env[op.results[0]] = _as_idx(create(type_, value))
    else:
        _elementwise(ev, op, env)


_HANDLERS: dict[str, Callable[[Evaluator, ir.Operation, dict[ir.Value, Lane], Sequence[Idx]], None]] = {
    "linalg.index": _index,
    "arith.constant": _constant,
    "arith.addi": _affine,
    "arith.subi": _affine,
    "arith.muli": _affine,
    "arith.cmpi": _compare,
    "arith.andi": _and,
    "arith.index_cast": _index_cast,
    "arith.index_castui": _index_cast,
    "tensor.extract": _extract,
    "tensor.dim": _dim,
    "scf.if": _if,
    "cf.assert": _assert,
}
