"""Dimension identity: an affine expression for every tensor extent and `index` value of a function (docs/ir.md §1).

Symbols stand for the named input dimensions (`batch`, `seq`) first, then for extents that only the data decide. Equal
expressions are equal extents; the converse holds only as far as affine arithmetic sees it. How the extents of an `mlc`
operation follow from its operands is asked of C++ (`mlc._native.infer_dims`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

from mlir import ir

from mlc import _native
from mlc.runtime.dim_sums import DimSum, sum_of

DYNAMIC: int = ir.ShapedType.get_dynamic_size()
Range = tuple["int | None", "int | None"]
_SIZE: Range = (0, None)
_ANY: Range = (None, None)


def constant_of(expr: ir.AffineExpr) -> int | None:
    """The number that `expr` is, or None."""
    expr = expr.maybe_downcast()
    return expr.value if isinstance(expr, ir.AffineConstantExpr) else None


def linear(expr: ir.AffineExpr) -> tuple[dict[int, int], int] | None:
    """A sum of multiples of symbols as {position: factor} and a constant; None for what is no such sum."""
    expr = expr.maybe_downcast()
    if isinstance(expr, ir.AffineConstantExpr):
        return {}, expr.value
    if isinstance(expr, ir.AffineSymbolExpr):
        return {expr.position: 1}, 0
    if not isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    left, right = linear(expr.lhs), linear(expr.rhs)
    if left is None or right is None:
        return None
    if isinstance(expr, ir.AffineMulExpr):
        if right[0]:
            return None
        return {position: factor * right[1] for position, factor in left[0].items()}, left[1] * right[1]
    factors = {p: left[0].get(p, 0) + right[0].get(p, 0) for p in (*left[0], *right[0])}
    return {position: factor for position, factor in factors.items() if factor}, left[1] + right[1]


class SymbolTable:
    """Symbols with names, ranges and multiples, and affine arithmetic over them.

    What is not affine (a product of two symbols, a quotient by one, a maximum) gets a symbol that is the same whenever
    the function and its arguments are the same.
    """

    def __init__(self, context: ir.Context) -> None:
        self.context = context
        self.names: list[str] = []
        self._ranges: list[Range] = []
        self._multiples: list[int] = []
        self._opaque: dict[Hashable, ir.AffineExpr] = {}
        self._definitions: dict[int, Hashable] = {}
        self._factors: dict[int, tuple[ir.AffineExpr, ...]] = {}
        self._broadcasts: dict[ir.AffineExpr, frozenset[ir.AffineExpr]] = {}

    # -- symbols ---------------------------------------------------------------------------------------------------

    def constant(self, value: int) -> ir.AffineExpr:
        """The expression of a number."""
        return ir.AffineConstantExpr.get(value, self.context)

    def new(self, name: str = "", bounds: Range = _SIZE, multiple: int = 1) -> ir.AffineExpr:
        """A new symbol; without a name it is called after its number."""
        position = len(self.names)
        self.names.append(name or f"d{position}")
        self._ranges.append(bounds)
        self._multiples.append(multiple)
        return ir.AffineSymbolExpr.get(position, self.context)

    def opaque(self, key: Hashable, bounds: Range = _ANY, multiple: int = 1) -> ir.AffineExpr:
        """The symbol of a function application, the same for the same `key`."""
        if key not in self._opaque:
            self._opaque[key] = self.new("", bounds, multiple)
            self._definitions[len(self.names) - 1] = key
        return self._opaque[key]

    def definition(self, position: int) -> Hashable | None:
        """What the symbol at a position is a function of: `("mul", factors)`, `("max", {a, b})`, `("min", {a, b})`,
        `("broadcast", parts)`, `("floor", a, b)`, ...; None for a size that only an input or the data decide."""
        return self._definitions.get(position)

    def canonical(self, expr: ir.AffineExpr) -> ir.AffineExpr:
        """`expr` in the form in which equal expressions compare equal."""
        simple = expr.maybe_downcast()
        if isinstance(simple, ir.AffineConstantExpr | ir.AffineSymbolExpr):
            return simple
        return ir.AffineExpr.simplify_affine_expr(simple, 0, len(self.names)).maybe_downcast()

    # -- arithmetic ------------------------------------------------------------------------------------------------

    def add(self, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
        """lhs + rhs."""
        return self.canonical(lhs + rhs)

    def sub(self, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
        """lhs - rhs."""
        return self.canonical(lhs + rhs * -1)

    def mul(self, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
        """lhs * rhs; of two unknowns a symbol that does not depend on their order."""
        for left, right in ((lhs, rhs), (rhs, lhs)):
            number = constant_of(right)
            if number is not None:
                return self.canonical(left * number)
        (left_number, left_factors), (right_number, right_factors) = self._monomial(lhs), self._monomial(rhs)
        return self._product(left_number * right_number, (*left_factors, *right_factors))

    def _monomial(self, expr: ir.AffineExpr) -> tuple[int, tuple[ir.AffineExpr, ...]]:
        """`expr` as number * product of factors."""
        expr = expr.maybe_downcast()
        if isinstance(expr, ir.AffineConstantExpr):
            return expr.value, ()
        if isinstance(expr, ir.AffineMulExpr):
            number = constant_of(expr.rhs)
            if number is not None:
                inner, factors = self._monomial(expr.lhs)
                return number * inner, factors
        if isinstance(expr, ir.AffineSymbolExpr) and expr.position in self._factors:
            return 1, self._factors[expr.position]
        return 1, (expr,)

    def _product(self, number: int, factors: Sequence[ir.AffineExpr]) -> ir.AffineExpr:
        ordered = tuple(sorted(factors, key=str))
        if not ordered or number == 0:
            return self.constant(number)
        if len(ordered) == 1:
            return self.canonical(ordered[0] * number)
        low: int | None = 1
        high: int | None = 1
        for factor in ordered:
            below, above = self.range(factor)
            low = low * below if low is not None and below is not None and below >= 0 else None
            high = high * above if high is not None and above is not None and low is not None else None
        multiple = math.prod(self.multiple(f) for f in ordered)
        symbol = self.opaque(("mul", ordered), (low, high), multiple)
        self._factors[ir.AffineSymbolExpr(symbol).position] = ordered
        return self.canonical(symbol * number)

    def div(self, lhs: ir.AffineExpr, rhs: ir.AffineExpr, mode: str = "floor") -> ir.AffineExpr:
        """lhs / rhs rounded down (`floor`) or up (`ceil`); a product is divided by its own factors exactly."""
        number = constant_of(rhs)
        if number is not None and number > 0:
            make = ir.AffineExpr.get_floor_div if mode == "floor" else ir.AffineExpr.get_ceil_div
            return self.canonical(make(lhs, self.constant(number)))
        above, factors = self._monomial(lhs)
        below, divisors = self._monomial(rhs)
        rest = list(factors)
        if divisors and below and above % below == 0 and all(_take(rest, d) for d in divisors):
            return self._product(above // below, rest)
        low = 0 if (self.range(lhs)[0] or -1) >= 0 and (self.range(rhs)[0] or -1) >= 0 else None
        return self.opaque((mode, lhs, rhs), (low, self.range(lhs)[1] if low == 0 else None))

    def mod(self, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
        """lhs modulo rhs."""
        number = constant_of(rhs)
        if number is not None and number > 0:
            return self.canonical(lhs % number)
        return self.opaque(("mod", lhs, rhs))

    def extreme(self, lhs: ir.AffineExpr, rhs: ir.AffineExpr, largest: bool) -> ir.AffineExpr:
        """max(lhs, rhs) or min(lhs, rhs)."""
        difference_low, difference_high = self.range(self.sub(lhs, rhs))
        if difference_low is not None and difference_low >= 0:
            return lhs if largest else rhs
        if difference_high is not None and difference_high <= 0:
            return rhs if largest else lhs
        (low_l, high_l), (low_r, high_r) = self.range(lhs), self.range(rhs)
        pick = max if largest else min
        weak = [low_l, low_r] if largest else [high_l, high_r]
        known = [v for v in weak if v is not None]
        low: int | None
        high: int | None
        if largest:
            low = max(known) if known else None
            high = pick(high_l, high_r) if high_l is not None and high_r is not None else None
        else:
            high = min(known) if known else None
            low = pick(low_l, low_r) if low_l is not None and low_r is not None else None
        key = ("max" if largest else "min", frozenset((lhs, rhs)))
        return self.opaque(key, (low, high), math.gcd(self.multiple(lhs), self.multiple(rhs)))

    def broadcast_parts(self, expr: ir.AffineExpr) -> frozenset[ir.AffineExpr]:
        """The extents that `expr` is the broadcast of: itself unless `broadcast` made it."""
        return self._broadcasts.get(expr, frozenset((expr,)))

    def broadcast(self, parts: frozenset[ir.AffineExpr]) -> ir.AffineExpr:
        """The extent that `parts`, each 1 or equal to it, broadcast to at run time."""
        if len(parts) == 1:
            return next(iter(parts))
        symbol = self.opaque(("broadcast", parts), _SIZE)
        self._broadcasts[symbol] = parts
        return symbol

    # -- knowledge -------------------------------------------------------------------------------------------------

    def range(self, expr: ir.AffineExpr) -> Range:
        """Lowest and highest value, each None where unknown."""
        expr = expr.maybe_downcast()
        if isinstance(expr, ir.AffineConstantExpr):
            return expr.value, expr.value
        if isinstance(expr, ir.AffineSymbolExpr):
            return self._ranges[expr.position]
        low, high = self.range(expr.lhs)
        if isinstance(expr, ir.AffineAddExpr):
            low_r, high_r = self.range(expr.rhs)
            return (
                low + low_r if low is not None and low_r is not None else None,
                high + high_r if high is not None and high_r is not None else None,
            )
        number = constant_of(expr.rhs)
        if number is None:
            return _ANY
        if isinstance(expr, ir.AffineMulExpr):
            scaled = [None if v is None else v * number for v in (low, high)]
            return (scaled[0], scaled[1]) if number >= 0 else (scaled[1], scaled[0])
        if isinstance(expr, ir.AffineModExpr):
            return 0, number - 1
        up = number - 1 if isinstance(expr, ir.AffineCeilDivExpr) else 0
        return (
            None if low is None else (low + up) // number,
            None if high is None else (high + up) // number,
        )

    def at_most(self, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> bool:
        """Whether lhs <= rhs is known: by their ranges, or by what a minimum or maximum among their terms is one of."""
        return self._not_negative(self.sub(rhs, lhs), 4)

    def _not_negative(self, expr: ir.AffineExpr, depth: int) -> bool:
        low, _ = self.range(expr)
        if low is not None and low >= 0:
            return True
        factors, _ = linear(expr) or ({}, 0)
        for position, factor in factors.items():
            definition = self._definitions.get(position)
            if depth == 0 or not isinstance(definition, tuple) or definition[0] not in ("min", "max"):
                continue
            symbol = ir.AffineSymbolExpr.get(position, self.context)
            rest = self.sub(expr, symbol * factor)
            chosen = [self._not_negative(self.add(rest, one * factor), depth - 1) for one in definition[1]]
            # Of a minimum that is subtracted the larger terms will do as well, of one that is added all must.
            enough = any if (definition[0] == "min") == (factor < 0) else all
            if enough(chosen):
                return True
        return False

    def multiple(self, expr: ir.AffineExpr) -> int:
        """The greatest number known to divide `expr` (0 for the constant 0)."""
        expr = expr.maybe_downcast()
        if isinstance(expr, ir.AffineConstantExpr):
            return abs(expr.value)
        if isinstance(expr, ir.AffineSymbolExpr):
            return self._multiples[expr.position]
        left = self.multiple(expr.lhs)
        number = constant_of(expr.rhs)
        if isinstance(expr, ir.AffineAddExpr):
            return math.gcd(left, self.multiple(expr.rhs))
        if isinstance(expr, ir.AffineMulExpr):
            return left * self.multiple(expr.rhs)
        if number is None:
            return 1
        if isinstance(expr, ir.AffineModExpr):
            return math.gcd(left, number)
        return left // number if left % number == 0 else 1


def _take(items: list[ir.AffineExpr], item: ir.AffineExpr) -> bool:
    """Removes one occurrence of `item`; False when there is none."""
    if item not in items:
        return False
    items.remove(item)
    return True


class DimAnalysis:
    """The extents and `index` values of one function. It describes the function as it is now: make a new one after a
    change."""

    def __init__(self, func: Any) -> None:
        self.func: ir.Operation = func.operation
        self.symbols = SymbolTable(self.func.context)
        self._dims: dict[ir.Value, list[ir.AffineExpr]] = {}
        self._exprs: dict[ir.Value, ir.AffineExpr] = {}
        self._journal: list[ir.Value] = []
        self._named: dict[str, ir.AffineExpr] = {}
        self._sources: dict[int, list[tuple[ir.Value, int | None]]] = {}
        self._name_arguments()
        for region in self.func.regions:
            for block in region.blocks:
                self._walk(block)

    # -- queries ---------------------------------------------------------------------------------------------------

    @property
    def symbol_names(self) -> list[str]:
        """Name of each symbol, by position."""
        return self.symbols.names

    def dims(self, value: ir.Value) -> list[ir.AffineExpr]:
        """The extents of a ranked tensor or memref value."""
        if value not in self._dims:
            self._define(value)
        return self._dims[value]

    def expr(self, value: ir.Value | int) -> ir.AffineExpr:
        """The value of an `index` (or integer) value."""
        if isinstance(value, int):
            return self.symbols.constant(value)
        if value not in self._exprs:
            self._define(value)
        return self._exprs[value]

    def source_of(self, position: int) -> tuple[ir.Value, int | None] | None:
        """The first value that the symbol at a position is an extent or the value of: (tensor, dimension) or
        (index, None). A function argument where there is one."""
        return next(iter(self.sources_of(position)), None)

    def sources_of(self, position: int) -> Sequence[tuple[ir.Value, int | None]]:
        """The same, and the values that loops and branches carry: some are seen where others are not."""
        return self._sources.get(position, ())

    def equal(self, lhs: Any, rhs: Any) -> bool:
        """Whether two expressions, `index` values or numbers are known to be equal."""
        left, right = (self._as_expr(v) for v in (lhs, rhs))
        return left == right or constant_of(self.symbols.sub(left, right)) == 0

    def joined(self, extents: Sequence[ir.AffineExpr], shape: Sequence[ir.AffineExpr]) -> list[list[int]] | None:
        """Which neighbours among `extents` each one of `shape` is the product of, all of them in order; None where a
        reshape does more than join, or is not known not to.
        """
        groups: list[list[int]] = []
        at = 0
        for number, extent in enumerate(shape):
            group: list[int] = []
            product, is_last = self.symbols.constant(1), number == len(shape) - 1
            while at < len(extents) and (not group or is_last or not self.equal(product, extent)):
                group.append(at)
                product = self.symbols.mul(product, extents[at])
                at += 1
            if not self.equal(product, extent):
                return None
            groups.append(group)
        return groups if at == len(extents) else None

    def known_multiple(self, of: Any) -> int:
        """The greatest number known to divide an expression or `index` value."""
        return self.symbols.multiple(self._as_expr(of))

    def known_range(self, of: Any) -> Range:
        """(lowest, highest) value of an expression or `index` value, None where unknown."""
        return self.symbols.range(self._as_expr(of))

    def _as_expr(self, value: Any) -> ir.AffineExpr:
        return self.symbols.canonical(value) if isinstance(value, ir.AffineExpr) else self.expr(value)

    # -- recording -------------------------------------------------------------------------------------------------

    def set_dims(self, value: ir.Value, dims: Sequence[ir.AffineExpr | None]) -> None:
        """Records the extents of a value; the type's static extents take precedence, None makes a new symbol."""
        shape = ir.ShapedType(value.type).shape
        self._journal.append(value)
        self._dims[value] = [
            self.symbols.constant(extent)
            if extent != DYNAMIC
            else self.symbols.canonical(dim)
            if dim is not None
            else self.symbols.new()
            for extent, dim in zip(shape, dims, strict=True)
        ]
        for dimension, expr in enumerate(self._dims[value]):
            self._note_source(expr, value, dimension)

    def set_expr(self, value: ir.Value, expr: ir.AffineExpr) -> None:
        """Records the value of an `index` value."""
        self._journal.append(value)
        self._exprs[value] = expr
        self._note_source(expr, value, None)

    def set_unknown(self, value: ir.Value) -> None:
        """Gives a value new symbols."""
        if is_shaped(value):
            self.set_dims(value, [None] * ir.ShapedType(value.type).rank)
        elif is_integer(value):
            self.set_expr(value, self.symbols.new("", _ANY))

    def mark(self) -> int:
        """A point to go back to with `rollback`."""
        return len(self._journal)

    def rollback(self, mark: int) -> None:
        """Forgets what was recorded after `mark`."""
        for value in self._journal[mark:]:
            self._dims.pop(value, None)
            self._exprs.pop(value, None)
        del self._journal[mark:]

    def _name_arguments(self) -> None:
        ranges = _dim_ranges(self.func)
        if "arg_attrs" in self.func.attributes:
            all_attrs = [ir.DictAttr(a) for a in ir.ArrayAttr(self.func.attributes["arg_attrs"])]
        else:
            all_attrs = []
        arguments = list(self.func.regions[0].blocks[0].arguments) if len(self.func.regions[0].blocks) else []
        named = []
        for number, argument in enumerate(arguments):
            attrs = all_attrs[number] if number < len(all_attrs) else None
            if attrs is not None and "mlc.dims" in attrs and is_shaped(argument):
                names = [ir.StringAttr(a).value for a in ir.ArrayAttr(attrs["mlc.dims"])]
                named.append((argument, names))
        dynamic = [
            name
            for argument, names in named
            for name, extent in zip(names, ir.ShapedType(argument.type).shape, strict=False)
            if name and extent == DYNAMIC
        ]
        sums = {name: found for name in dynamic if (found := sum_of(name, dynamic)) is not None}
        for name in dict.fromkeys(dynamic):
            if name not in sums:
                bounds, multiple = ranges.get(name, (_SIZE, 1))
                self._named[name] = self.symbols.new(name, bounds, multiple)
        self._named |= {name: self._sum(found) for name, found in sums.items()}
        for argument, names in named:
            self.set_dims(argument, [self._named.get(name) for name in names])
        for argument in arguments:
            if argument not in self._dims:
                self.set_unknown(argument)

    def _sum(self, found: DimSum) -> ir.AffineExpr:
        """The extent of a dimension that is a sum of named ones; the runtime checks that it is."""
        total = self.symbols.constant(found.constant)
        for name, factor in found.factors.items():
            total = self.symbols.add(total, self.symbols.mul(self._named[name], self.symbols.constant(factor)))
        return total

    def _note_source(self, expr: ir.AffineExpr, value: ir.Value, dimension: int | None) -> None:
        if isinstance(expr, ir.AffineSymbolExpr):
            known = self._sources.setdefault(expr.position, [])
            carried = isinstance(value.owner, ir.Block) or value.owner.operation.name.startswith("scf.")
            if not known or (carried and (value, dimension) not in known):
                known.append((value, dimension))

    def _walk(self, block: ir.Block) -> None:
        for op in block.operations:
            self.visit(op.operation)

    def walk(self, block: ir.Block) -> None:
        """Records the results of all operations of a block."""
        self._walk(block)

    def visit(self, op: ir.Operation) -> None:
        """Records the results of an operation, and the values inside its regions where they matter."""
        from mlc.dim_rules import transfer

        rule = transfer(op)
        if rule is not None:
            rule(self, op)
        for result in op.results:
            if result not in self._dims and result not in self._exprs:
                self.set_unknown(result)

    def _define(self, value: ir.Value) -> None:
        """Records a value that the walk did not meet: one inside a region that needs no analysis, or a new one."""
        if isinstance(value.owner, ir.Block):
            self.set_unknown(value)
        else:
            self.visit(value.owner.operation)
        if value not in self._dims and value not in self._exprs:
            raise ValueError(f"a value of type {value.type} has neither extents nor an index value")


def is_shaped(value: ir.Value) -> bool:
    """Whether a value has extents: a ranked tensor or memref."""
    return isinstance(value.type, ir.RankedTensorType | ir.MemRefType)


def is_integer(value: ir.Value) -> bool:
    """Whether a value has an expression: an `index` or a wide integer."""
    return isinstance(value.type, ir.IndexType) or (isinstance(value.type, ir.IntegerType) and value.type.width == 64)


def _dim_ranges(func: ir.Operation) -> dict[str, tuple[Range, int]]:
    """Range and multiple of each named dimension, from the module's `mlc.dim_ranges`."""
    parent = func.parent
    while parent is not None and "mlc.dim_ranges" not in parent.operation.attributes:
        parent = parent.operation.parent
    if parent is None:
        return {}
    ranges: dict[str, tuple[Range, int]] = {}
    for entry in ir.DictAttr(parent.operation.attributes["mlc.dim_ranges"]):
        low, high, multiple = ir.DenseI64ArrayAttr(entry.attr)
        ranges[entry.name] = ((low, None if high < 0 else high), max(1, multiple))
    return ranges


def _given(analysis: DimAnalysis, op: ir.Operation) -> tuple[list[list[ir.AffineExpr]], list[ir.AffineExpr]]:
    """The extents of the shaped operands and the values of the index operands."""
    shapes = [analysis.dims(v) for v in op.operands if is_shaped(v)]
    return shapes, [analysis.expr(v) for v in op.operands if isinstance(v.type, ir.IndexType)]


def infer(analysis: DimAnalysis, op: ir.Operation) -> list[list[ir.AffineExpr | None]] | None:
    """Result extents of an `mlc` operation from its shape function, or None when it has none or they contradict."""
    if not _native.has_dims(op):
        return None
    try:
        return _native.infer_dims(op, *_given(analysis, op))
    except ValueError:
        return None


def requirements(analysis: DimAnalysis, op: ir.Operation) -> list[tuple[ir.AffineExpr, ir.AffineExpr, str, str]]:
    """What an `mlc` operation needs of the extents of its operands, where their types leave it open: two expressions,
    how they must be (`equal`, `at_most`; `stretches`: equal, or the first is 1), and what they are. Raises ValueError,
    with the reason, where they certainly are not so.
    """
    return _native.requirements(op, *_given(analysis, op))


__all__ = [
    "DYNAMIC",
    "DimAnalysis",
    "SymbolTable",
    "constant_of",
    "infer",
    "is_integer",
    "is_shaped",
    "linear",
    "requirements",
]
