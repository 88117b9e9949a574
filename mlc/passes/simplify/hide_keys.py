"""Pass `mlc-hide-keys`: the lowest number that a mask adds to scores hides them, where each row sees a key.

    %m = mlc.select %causal, %zero, %lowest : tensor<64x64xi1>, tensor<f32>, tensor<f32> -> tensor<64x64xf32>
    %x = mlc.binary add %scores, %m : tensor<8x64x64xf32>, tensor<64x64xf32> -> tensor<8x64x64xf32>
    %y = mlc.softmax %x {axis = 2 : i64} : tensor<8x64x64xf32>
becomes
    %x = mlc.select %causal, %scores, %hidden : …     // -inf
and so does a selection of scores or the lowest number.

Both have a share of zero, of any score that is no such number itself; but a row without a key has equal shares of all
in the first form, so that coordinates alone must decide the mask, and no row be without a key. A condition says what
blocks of keys nobody sees; numbers that were added do not. Models of PyTorch whose attention is written out
(`eager`), and masks of floats for its fused attention, are so.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.dims import DimAnalysis, constant_of
from mlc.passes.adaptor import OpAdaptor, defining_op, element, readers, splat_number
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.positions import Condition, Positions
from mlc.passes.simplify.rewrite import is_unused
from mlc.passes.walk import functions, operations

_LOWEST = {16: -60000.0, 32: -1e30}  # by the bits of a number: at most that, it hides; scores are not as large
_WIDE_EXPONENTS = ("bf16",)
_STEPS = 8  # from a sum to its softmax, from a mask to its condition
_BOUNDS = {"le": ("last", 0), "lt": ("last", -1), "ge": ("first", 0), "gt": ("first", 1)}
_MIRRORED = {"le": "ge", "lt": "gt", "ge": "le", "gt": "lt"}


class HideKeys(Pass):
    """Writes masks that are added to scores as conditions."""

    dialects = ("mlc",)
    statistics = {"hidden": "masks that became conditions"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            found = [op for op in operations(function) if _may_be_masked(op)]
            if not found:
                continue
            positions = Positions(DimAnalysis(function))
            for op in found:
                with ir.InsertionPoint(op), op.location:
                    self._visit(op, positions)
            for op in found:  # not before: what is known of extents refers to operations
                if is_unused(op):
                    op.erase()

    def _visit(self, op: ir.Operation, positions: Positions) -> None:
        dims = positions.analysis.dims
        if op.name == "mlc.attention":
            extents = dims(op.operands[0])[2], dims(op.operands[1])[2]
            condition = _condition(op.operands[3], extents, positions, [0] if OpAdaptor(op).flag("causal") else [])
            if condition is not None:
                op.operands[3] = condition
                self.count("hidden")
            return
        rows_keys = dims(op.results[0])[-2:]
        if op.name == "mlc.select":
            condition, scores, _ = op.operands
            if scores.type == op.results[0].type and _each_row_sees(condition, rows_keys, positions):
                op.operands[2] = b.like(scores, float("-inf"))
                self.count("hidden")
            return
        for number in (0, 1):
            condition, scores = _condition(op.operands[number], rows_keys, positions), op.operands[1 - number]
            if condition is not None and scores.type == op.results[0].type:
                made = b.select(condition, scores, b.like(scores, float("-inf")))
                op.results[0].replace_all_uses_with(made)
                self.count("hidden")
                return


def _may_be_masked(op: ir.Operation) -> bool:
    """Is `op` attention with a mask of floats, or a sum of floats, or a selection of one or the lowest number, of which
    the softmax is taken?"""
    if op.name == "mlc.attention":
        return len(op.operands) == 4 and b.is_float(element(op.operands[3]))
    is_sum = op.name == "mlc.binary" and OpAdaptor(op).text() == "add"
    is_choice = op.name == "mlc.select" and b.is_float(element(op.operands[2])) and _is_lowest(op.operands[2])
    if not is_sum and not (is_choice and splat_number(op.operands[2]) != float("-inf")):
        return False
    type_ = op.results[0].type
    return b.is_float(type_.element_type) and type_.rank > 1 and _only_weighs(op.results[0], _STEPS)


def _only_weighs(value: ir.Value, steps: int) -> bool:
    """Is a softmax along the last dimension all that becomes of a value?"""
    last, users = value.type.rank - 1, readers(value)
    if not users or not steps:
        return False
    for user in users:
        view = OpAdaptor(user)
        if user.name == "mlc.softmax":
            if view.flag("log") or view.int("axis") % (last + 1) != last:
                return False
        elif user.name == "mlc.concat":
            if view.int("axis") != last or not _only_weighs(user.results[0], steps - 1):
                return False
        elif user.name == "mlc.cast":
            if not b.is_float(element(user.results[0])) or not _only_weighs(user.results[0], steps - 1):
                return False
        elif user.name == "mlc.reduce":
            if view.text() != "max" or view.ints("axes") != [last]:
                return False
        elif not _is_below_largest(user, value) or not _only_weighs(user.results[0], steps - 1):
            return False
    return True


def _is_below_largest(op: ir.Operation, value: ir.Value) -> bool:
    """Is `op` a value less the largest ones of its rows?"""
    if op.name != "mlc.binary" or OpAdaptor(op).text() != "sub" or op.operands[0] != value:
        return False
    largest = defining_op(op.operands[1])
    return largest is not None and largest.name == "mlc.reduce" and largest.operands[0] == value


def _condition(
    mask: ir.Value, extents: Sequence[ir.AffineExpr], positions: Positions, lasts: Sequence[int] = ()
) -> ir.Value | None:
    """What holds where a mask for so many rows and keys is 0, if it is the lowest number elsewhere and each row sees a
    key; no keys behind a row's number and each of `lasts` are seen anyway."""
    select = _choice(mask, positions.analysis)
    if select is None:
        return None
    chosen, shown, hidden = select.operands
    if splat_number(shown) != 0 or not _is_lowest(hidden):
        return None
    whatever = splat_number(hidden) == float("-inf")
    return chosen if whatever or _each_row_sees(chosen, extents, positions, lasts) else None


def _choice(mask: ir.Value, analysis: DimAnalysis) -> ir.Operation | None:
    """The selection that a mask of floats comes from, which has its shape but for repetitions."""
    op = defining_op(mask)
    for _ in range(_STEPS):
        if op is None or op.name == "mlc.select":
            return op
        source = op.operands[0] if len(op.operands) else None
        if op.name == "mlc.reshape":
            own, below = (_without_units(analysis.dims(v)) for v in (op.results[0], source))
            if len(own) != len(below) or not all(analysis.equal(a, e) for a, e in zip(own, below, strict=True)):
                return None
        elif op.name not in ("mlc.broadcast", "mlc.cast") or not b.is_float(element(source)):
            return None
        op = defining_op(source)
    return None


def _without_units(shape: Sequence[ir.AffineExpr]) -> list[ir.AffineExpr]:
    """A shape without the extents of 1 that it begins with: those that broadcasting adds."""
    first = next((d for d, n in enumerate(shape) if constant_of(n) != 1), len(shape))
    return list(shape[first:])


def _is_lowest(value: ir.Value) -> bool:
    number, type_ = splat_number(value), element(value)
    bits = 32 if str(type_) in _WIDE_EXPONENTS else type_.width
    return number is not None and number <= _LOWEST.get(bits, float("-inf"))


def _each_row_sees(
    condition: ir.Value, extents: Sequence[ir.AffineExpr], positions: Positions, lasts: Sequence[int] = ()
) -> bool:
    """Do coordinates alone say from which key on, and up to which one, a row sees keys, and is there always one?"""
    analysis, found = positions.analysis, positions.conditions(condition)
    own = analysis.dims(condition)
    same = len(own) > 1 and all(analysis.equal(a, e) for a, e in zip(own[-2:], extents, strict=True))
    bounds: dict[str, list[int]] = {"first": [], "last": [*lasts]}
    if not same or found is None or not all(_is_bound(one, len(own), bounds) for one in found):
        return False
    last, first = min(bounds["last"], default=None), max(bounds["first"], default=None)
    if last is not None and (last < 0 or first is not None and first > last):
        return False
    symbols = analysis.symbols
    return first is None or symbols.at_most(symbols.add(extents[0], symbols.constant(first)), extents[1])


def _is_bound(condition: Condition, rank: int, bounds: dict[str, list[int]]) -> bool:
    """Notes what a condition says of the keys of a row: the first, or the last, is the row's number plus so much."""
    factors = dict(condition.difference.factors)
    sign = factors.get(rank - 1, 0)
    if condition.predicate not in _BOUNDS or factors != {rank - 1: sign, rank - 2: -sign} or abs(sign) != 1:
        return False
    which, more = _BOUNDS[condition.predicate if sign > 0 else _MIRRORED[condition.predicate]]
    bounds[which].append(more - sign * condition.difference.constant)
    return True
