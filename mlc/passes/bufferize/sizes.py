"""Sizes of buffers as polynomials, so that the planner can compare, order and recompute them.

A `Size` is a sum of integer multiples of products of *atoms*. An atom is a dimension of a function
argument, an integer operation on other sizes, or a value that only the run knows. Sizes without the last
kind can be computed at the function's entry, whatever block the buffer lives in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mlir.ir as ir
from mlir.dialects import arith, func, memref

from mlc.runtime.dim_sums import sum_of

# Operations that stay atoms, with the spelling used in metadata formulas.
_BINARY = {
    "arith.divsi": "//",
    "arith.divui": "//",
    "arith.floordivsi": "//",
    "arith.ceildivsi": "ceildiv",
    "arith.ceildivui": "ceildiv",
    "arith.remsi": "%",
    "arith.remui": "%",
    "arith.maxsi": "max",
    "arith.maxui": "max",
    "arith.minsi": "min",
    "arith.minui": "min",
}
_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class Dim:
    """Dimension `axis` of function argument `argument`."""

    argument: int
    axis: int


@dataclass(frozen=True)
class Apply:
    """An integer operation on two sizes."""

    operation: str
    lhs: Size
    rhs: Size


@dataclass(frozen=True)
class Unknown:
    """A value that only the run knows; equal numbers are the same value (or the same extent of it)."""

    number: int
    axis: int = -1


Atom = Dim | Apply | Unknown
Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Size:
    """Sum of coefficient × monomial; canonical, so equal sizes compare equal."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Size:
        """The canonical form of `terms`."""
        kept = [(m, c) for m, c in terms.items() if c]
        return Size(tuple(sorted(kept, key=lambda t: [repr(a) for a in t[0]])))

    @staticmethod
    def constant(value: int) -> Size:
        return Size.of({(): value})

    @staticmethod
    def atom(atom: Atom) -> Size:
        return Size.of({(atom,): 1})

    def __add__(self, other: Size) -> Size:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Size.of(terms)

    def __sub__(self, other: Size) -> Size:
        return self + other * Size.constant(-1)

    def __mul__(self, other: Size) -> Size:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted(left + right, key=repr))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Size.of(terms)

    @property
    def static(self) -> int | None:
        """The value, when it is a constant."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def known_at_entry(self) -> bool:
        """Whether the function's arguments decide it."""
        return all(_known(atom) for monomial, _ in self.terms for atom in monomial)


def _known(atom: Atom) -> bool:
    if isinstance(atom, Apply):
        return atom.lhs.known_at_entry and atom.rhs.known_at_entry
    return isinstance(atom, Dim)


class SizeAnalysis:
    """The sizes of `index` values and of memref or tensor dimensions of one function.

    `names` gives the name of argument dimensions; dimensions of one name are one extent, and one whose name is a sum of
    others' is that sum.
    """

    def __init__(self, names: Mapping[tuple[int, int], str] | None = None) -> None:
        self._values: dict[ir.Value, Size] = {}
        self._unknown: dict[ir.Value, int] = {}
        self._like: dict[ir.Value, ir.Value] = {}
        first: dict[str, Size] = {}
        self._dims: dict[tuple[int, int], Size] = {}
        for (argument, axis), name in (names or {}).items():
            self._dims[argument, axis] = first.setdefault(name, Size.atom(Dim(argument, axis)))
        for place, name in (names or {}).items():
            if (found := sum_of(name, first)) is not None:
                parts = [first[part] * Size.constant(factor) for part, factor in found.factors.items()]
                self._dims[place] = sum(parts, Size.constant(found.constant))

    def assume_like(self, value: ir.Value, other: ir.Value) -> None:
        """From now on `value`, a region argument, has the extents of `other`."""
        self._like[value] = other

    def forget(self, value: ir.Value) -> None:
        """Takes back what `assume_like` said about `value`, and all that followed from it."""
        del self._like[value]
        self._values.clear()

    def _opaque(self, value: ir.Value, axis: int = -1) -> Size:
        return Size.atom(Unknown(self._unknown.setdefault(value, len(self._unknown)), axis))

    def value(self, value: ir.Value) -> Size:
        """The size that the integer or `index` value `value` stands for."""
        if value not in self._values:
            self._values[value] = self._compute(value)
        return self._values[value]

    def _compute(self, value: ir.Value) -> Size:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._opaque(value)
        op = owner.operation
        name, operands = op.name, op.operands
        if name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
            return Size.constant(op.attributes["value"].value)
        if name in ("arith.addi", "arith.subi", "arith.muli"):
            left, right = self.value(operands[0]), self.value(operands[1])
            return left + right if name == "arith.addi" else left - right if name == "arith.subi" else left * right
        if name in _BINARY:
            return _apply(name, self.value(operands[0]), self.value(operands[1]))
        if name == "arith.index_cast":
            return self.value(operands[0])
        if name in ("memref.dim", "tensor.dim"):
            axis = self.value(operands[1]).static
            if axis is not None:
                return self.dim(operands[0], axis)
        if name == "affine.apply":
            return self._affine(ir.AffineMapAttr(op.attributes["map"]).value, list(operands))
        return self._opaque(value)

    def _affine(self, affine_map: ir.AffineMap, operands: list[ir.Value]) -> Size:
        dims, symbols = operands[: affine_map.n_dims], operands[affine_map.n_dims :]

        def visit(expr: ir.AffineExpr) -> Size:
            if isinstance(expr, ir.AffineConstantExpr):
                return Size.constant(ir.AffineConstantExpr(expr).value)
            if isinstance(expr, ir.AffineDimExpr):
                return self.value(dims[ir.AffineDimExpr(expr).position])
            if isinstance(expr, ir.AffineSymbolExpr):
                return self.value(symbols[ir.AffineSymbolExpr(expr).position])
            binary = ir.AffineBinaryExpr(expr)
            left, right = visit(binary.lhs), visit(binary.rhs)
            if isinstance(expr, ir.AffineAddExpr):
                return left + right
            if isinstance(expr, ir.AffineMulExpr):
                return left * right
            if isinstance(expr, ir.AffineModExpr):
                return _apply("arith.remsi", left, right)
            ceil = isinstance(expr, ir.AffineCeilDivExpr)
            return _apply("arith.ceildivsi" if ceil else "arith.floordivsi", left, right)

        return visit(affine_map.results[0])

    def dim(self, value: ir.Value, axis: int) -> Size:
        """Extent `axis` of the memref or tensor `value`."""
        if not value.type.is_dynamic_dim(axis):
            return Size.constant(value.type.get_dim_size(axis))
        if value in self._like:
            return self.dim(self._like[value], axis)
        owner = value.owner
        if isinstance(owner, ir.Block):
            if isinstance(owner.owner.opview, func.FuncOp):
                position = (ir.BlockArgument(value).arg_number, axis)
                return self._dims.get(position, Size.atom(Dim(*position)))
            return self._opaque(value, axis)
        op = owner.operation
        if op.name in ("memref.alloc", "tensor.empty", "mlc.buffer"):
            return self.value(op.operands[_dynamic_position(value.type, axis)])
        if op.name in ("memref.cast", "tensor.cast"):
            return self.dim(op.operands[0], axis)
        if op.name in ("memref.expand_shape", "tensor.expand_shape"):
            return self.value(op.operands[1 + _dynamic_position(value.type, axis)])
        if op.name in ("memref.collapse_shape", "tensor.collapse_shape"):
            product = Size.constant(1)
            for source in ir.ArrayAttr(op.attributes["reassociation"])[axis]:
                product = product * self.dim(op.operands[0], ir.IntegerAttr(source).value)
            return product
        if op.name == "mlc.launch":
            outs = list(op.operands)[-len(op.results) :]
            return self.dim(outs[ir.OpResult(value).result_number], axis)
        return self._opaque(value, axis)

    def elements(self, value: ir.Value) -> Size:
        """The number of elements of the memref or tensor `value`."""
        total = Size.constant(1)
        for axis in range(value.type.rank):
            total = total * self.dim(value, axis)
        return total


def _apply(operation: str, left: Size, right: Size) -> Size:
    a, b = left.static, right.static
    if a is not None and b is not None and not (b == 0 and "div" in operation + "rem"):
        spelling = _BINARY[operation]
        if spelling in ("max", "min"):
            return Size.constant(max(a, b) if spelling == "max" else min(a, b))
        if a >= 0 and b > 0:
            return Size.constant({"//": a // b, "ceildiv": -(-a // b), "%": a % b}[spelling])
    return Size.atom(Apply(operation, left, right))


def _dynamic_position(shaped: ir.Type, axis: int) -> int:
    """How many dynamic extents come before `axis`."""
    return sum(shaped.is_dynamic_dim(i) for i in range(axis))


class SizeEmitter:
    """Emits sizes that are known at entry as `index` arithmetic at the top of a function, each value once."""

    def __init__(self, function: ir.Operation) -> None:
        self._block = function.regions[0].blocks[0]
        self._cache: dict[object, ir.Value] = {}
        with function.location:
            self._end = arith.ConstantOp(ir.IndexType.get(), 0, ip=ir.InsertionPoint.at_block_begin(self._block))
            self._location = function.location

    def emit(self, size: Size) -> ir.Value:
        """`size` as a value that dominates the whole function. ValueError when the run decides it."""
        if not size.known_at_entry:
            raise ValueError("the size depends on data")
        with ir.InsertionPoint(self._end), self._location:
            return self._sum(size)

    def _sum(self, size: Size) -> ir.Value:
        if size in self._cache:
            return self._cache[size]
        total: ir.Value | None = None
        for monomial, coefficient in size.terms:
            product: ir.Value | None = None
            for atom in monomial:
                factor = self._atom(atom)
                product = factor if product is None else arith.muli(product, factor)
            if product is None:
                product = self._constant(coefficient)
            elif coefficient != 1:
                product = arith.muli(product, self._constant(coefficient))
            total = product if total is None else arith.addi(total, product)
        self._cache[size] = total if total is not None else self._constant(0)
        return self._cache[size]

    def _constant(self, value: int) -> ir.Value:
        if ("constant", value) not in self._cache:
            self._cache["constant", value] = arith.constant(ir.IndexType.get(), value)
        return self._cache["constant", value]

    def _atom(self, atom: Atom) -> ir.Value:
        if atom not in self._cache:
            if isinstance(atom, Dim):
                argument = self._block.arguments[atom.argument]
                self._cache[atom] = memref.dim(argument, self._constant(atom.axis))
            elif isinstance(atom, Apply):
                operands = [self._sum(atom.lhs), self._sum(atom.rhs)]
                created = ir.Operation.create(atom.operation, [ir.IndexType.get()], operands)
                self._cache[atom] = created.result
        return self._cache[atom]


def evaluate(size: Size, dims: Mapping[tuple[int, int], int]) -> int:
    """The value of `size` for argument dimensions `dims`: {(argument, axis): extent}."""
    total = 0
    for monomial, coefficient in size.terms:
        product = coefficient
        for atom in monomial:
            product *= _evaluate_atom(atom, dims)
        total += product
    return total


def _evaluate_atom(atom: Atom, dims: Mapping[tuple[int, int], int]) -> int:
    if isinstance(atom, Dim):
        return dims[atom.argument, atom.axis]
    if isinstance(atom, Unknown):
        raise ValueError("the size depends on data")
    left, right = evaluate(atom.lhs, dims), evaluate(atom.rhs, dims)
    spelling = _BINARY[atom.operation]
    if spelling in ("max", "min"):
        return max(left, right) if spelling == "max" else min(left, right)
    if right == 0:
        return 0
    return {"//": left // right, "ceildiv": -(-left // right), "%": left % right}[spelling]


def spell(size: Size, names: Mapping[tuple[int, int], str]) -> str:
    """`size` as a Python expression over the names of argument dimensions."""
    parts = []
    for monomial, coefficient in size.terms:
        factors = [_spell_atom(atom, names) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        parts.append("*".join(factors))
    return " + ".join(parts) or "0"


def _spell_atom(atom: Atom, names: Mapping[tuple[int, int], str]) -> str:
    if isinstance(atom, Dim):
        return names[atom.argument, atom.axis]
    if isinstance(atom, Unknown):
        raise ValueError("the size depends on data")
    left, right = spell(atom.lhs, names), spell(atom.rhs, names)
    spelling = _BINARY[atom.operation]
    if spelling in ("max", "min"):
        return f"{spelling}({left}, {right})"
    if spelling == "ceildiv":
        return f"-(-({left}) // ({right}))"
    return f"(({left}) {spelling} ({right}))"
