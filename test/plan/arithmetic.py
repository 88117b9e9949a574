"""Operations of `arith` and `math` on numbers of the host."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import mlir.ir as ir
from plan.contents import CannotFollowError

_ORDER = (operator.lt, operator.le, operator.gt, operator.ge)
_INTEGERS = (operator.eq, operator.ne, *_ORDER, *_ORDER)  # sizes are not negative: unsigned is as signed
_FLOATS = {1: operator.eq, 2: operator.gt, 3: operator.ge, 4: operator.lt, 5: operator.le, 6: operator.ne}


def _quotient(a: int, b: int) -> int:
    """Rounded towards zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divui": operator.floordiv,
    "arith.remui": operator.mod,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.floordivsi": operator.floordiv,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.maxsi": max,
    "arith.maxui": max,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.shli": operator.lshift,
    "arith.select": lambda condition, a, b: a if condition else b,
    "arith.addf": operator.add,
    "arith.subf": operator.sub,
    "arith.mulf": operator.mul,
    "arith.divf": operator.truediv,
    "arith.minimumf": min,
    "arith.maximumf": max,
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "arith.divsi": _quotient,
    "arith.remsi": lambda a, b: a - b * _quotient(a, b),
}
_CONVERSIONS = {
    **dict.fromkeys(("index_cast", "index_castui", "extsi", "extui", "trunci", "extf", "truncf"), lambda a: a),
    **dict.fromkeys(("sitofp", "uitofp"), float),
    **dict.fromkeys(("fptosi", "fptoui"), int),
}


def is_arithmetic(op: ir.Operation) -> bool:
    """Whether `op` computes numbers from numbers."""
    is_tensor = len(op.results) == 1 and isinstance(op.results[0].type, ir.ShapedType)
    return op.name.startswith(("arith.", "math.")) and not is_tensor


def computed(op: ir.Operation, numbers: list[Any]) -> Any:
    """The result of `op` for its operands. Raises CannotFollowError where there is none."""
    kind = op.name.partition(".")[2]
    if op.name == "arith.constant":
        value = op.attributes["value"]
        return ir.FloatAttr(value).value if isinstance(value, ir.FloatAttr) else ir.IntegerAttr(value).value
    if op.name in ("arith.cmpi", "arith.cmpf"):
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        order = _INTEGERS[predicate] if kind == "cmpi" else _FLOATS[predicate]
        return int(order(*numbers))
    function = _OPERATIONS.get(op.name) or _CONVERSIONS.get(kind)
    if function is None:
        raise CannotFollowError(f"{op.name} on the host")
    try:
        return function(*numbers)
    except (ArithmeticError, ValueError) as error:
        raise CannotFollowError(f"{op.name} of {numbers}") from error
