"""Pass `mlc-plan-integers`: decide which contractions of quantized operands multiply the integers themselves.

```mlir
%a = mlc.dequantize %x, %s, %z …          %b = mlc.dequantize %w, %t …
%0 = mlc.matmul %a, %b : …     →     %0 = mlc.matmul %a, %b {mlc.integers} : …
```
A contraction is exact on integers of eight bits with one scale and zero point for everything that it sums. Products of
dequantized operands need a weight on the right: of two activations they stay floats, which kernels of attention take.
Operands that are integers already (`cast(x) - zero`) always qualify. What has an operand that was quantized and stays
as it is, is kept for the report in the module attribute `mlc.kept_float`: an array of dictionaries `{node, reason}`.
With `tiles`, those that matrix tiles will multiply have `mlc.own_signs`: there are instructions for operands with and
without signs; with `words`, all of them. Those outside of tiles whose left operand has a sign and is never negative, as
codes of what a ReLU gives, have `mlc.never_negative`. `mlc-integer-contractions` obeys.
"""

from __future__ import annotations

import math
from typing import Any

from mlir import ir

from mlc.kernels.common.generics import NEVER_NEGATIVE
from mlc.passes.adaptor import DYNAMIC, OpAdaptor
from mlc.passes.base import Pass
from mlc.passes.schedule.tile_products import TILE_DEPTH, TILE_ROWS
from mlc.passes.simplify.codes import OWN_SIGNS, PLANNED, Codes, read_codes, reduced_dims, terms
from mlc.passes.simplify.never_negative import is_never_negative
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

KEPT = "mlc.kept_float"
_MOST_TERMS = (1 << 31) // (255 * 128) - 1  # products of bytes whose sum fits into 32 bits
_SIDES = {"mlc.matmul": ("left operand", "right operand"), "mlc.conv": ("input", "filter")}


class PlanIntegers(Pass):
    """Decide which contractions of quantized operands multiply the integers."""

    dialects = ("mlc",)
    tiles: bool = False
    "the target has matrix tiles that multiply 8-bit integers"
    words: bool = False
    "the target multiplies bytes as words, whatever their signs"
    statistics = {"planned": "contractions that will multiply integers", "kept": "quantized ones that will not"}

    def run(self, op: Any) -> None:
        kept: list[ir.Attribute] = []
        for function in functions(op):
            weights = WeightOnly()
            for inner in operations(function):
                if inner.name not in _SIDES or PLANNED in inner.attributes:
                    continue
                reason = refusal(OpAdaptor(inner), weights)
                if reason is None:
                    inner.attributes[PLANNED] = ir.UnitAttr.get()
                    self._plan_signs(OpAdaptor(inner))
                    self.count("planned")
                elif reason:
                    entry = {"node": OpAdaptor(inner).node, "reason": reason}
                    kept.append(ir.DictAttr.get({k: ir.StringAttr.get(v) for k, v in entry.items()}))
                    self.count("kept")
        if kept:
            op.operation.attributes[KEPT] = ir.ArrayAttr.get(kept)

    def _plan_signs(self, op: OpAdaptor) -> None:
        """What becomes of the operands' signs."""
        in_tiles, codes = self.tiles and suits_tiles(op), read_codes(op.operand(0))
        if in_tiles or self.words:
            op.op.attributes[OWN_SIGNS] = ir.UnitAttr.get()
        if not isinstance(codes, Codes) or codes.unsigned or in_tiles:
            return
        if is_never_negative(codes.values):
            op.op.attributes[NEVER_NEGATIVE] = ir.UnitAttr.get()


def refusal(op: OpAdaptor, weights: WeightOnly) -> str | None:
    """None when a contraction is to multiply integers, else why not; empty when nothing is quantized."""
    sides = _SIDES[op.name]
    found: list[Codes] = []
    missing = ""
    for number, side in enumerate(sides):
        codes = read_codes(op.operand(number))
        if codes is None:
            missing = f"its {side} is not quantized"
        elif isinstance(codes, str):
            return f"of its {side}, {codes}"
        else:
            found.append(codes)
    if missing:
        return missing if any(c.scale is not None for c in found) else ""
    for number, (side, codes) in enumerate(zip(sides, found, strict=True)):
        parameter = codes.varies_along(reduced_dims(op, number))
        if parameter is not None:
            return f"the {parameter} of its {side} changes along what is summed"
    if (found[0].scale is None) != (found[1].scale is None):
        return "one operand is an integer, the other one a float"
    if found[0].scale is not None and not weights.has(found[1].values):
        return f"its {sides[1]} is no weight"
    count = terms(op)
    if found[0].scale is not None and count is not None and count > _MOST_TERMS:
        return f"sums of {count} products need more than 32 bits"
    return None


def suits_tiles(op: OpAdaptor) -> bool:
    """Are sum and rows of a contraction as long and as many as `as_tile_product` asks for? Rows of the run are."""
    left, right, result = (list(v.type.shape) for v in (op.operand(0), op.operand(1), op.op.results[0]))
    if op.name == "mlc.conv":
        joined = op.ints("dilations")[-1] == op.int("groups", 1) == 1  # taps of a line and channels lie side by side
        depth, rows = right[1] * (right[-1] if joined else 1), [result[0], *result[2:]]
    else:
        [dim] = reduced_dims(op, 0)
        depth, rows = left[dim], result[:-1] if all(extent == 1 for extent in right[:-2]) else result[-2:-1]
    return depth != DYNAMIC and depth >= TILE_DEPTH and (DYNAMIC in rows or math.prod(rows) >= TILE_ROWS)
