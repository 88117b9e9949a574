"""Pass `mlc-narrow-inputs`: extents of inputs that have to be one number are that number.

    func.func @forward(%x: tensor<?x?xf32> {mlc.dims = ["n", "c"]}) {
      %d = tensor.dim %x, %c1 : tensor<?x?xf32>
      %ok = arith.cmpi eq, %d, %c4 : index
      mlc.check %ok, %d, "contraction extents of ?x? and 4x2 differ: 4 is needed"
becomes
    func.func @forward(%x: tensor<?x4xf32> {mlc.dims = ["n", ""]}) {

and two that must be equal get one name. So the signature says what the program takes, the runtime refuses other inputs
by name, and kernels are compiled for an extent that is known. Only checks that every run makes count, of a sum of
extents with one unknown; a dimension that others are sums of stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from mlc.dims import DYNAMIC, DimAnalysis, is_shaped, linear
from mlc.passes.base import Pass
from mlc.passes.simplify.check_shapes import equation
from mlc.passes.simplify.refine_types import called_functions, cast_carried, refine
from mlc.passes.walk import functions, operations


class NarrowInputs(Pass):
    """Takes extents of inputs from the checks that ask for them."""

    dialects = ("tensor",)
    statistics = {"narrowed": "dimensions of inputs that are known", "named": "dimensions that are another one"}

    def run(self, op: Any) -> None:
        called = called_functions(op)
        for function in functions(op):
            is_called = ir.StringAttr(function.attributes["sym_name"]).value in called
            if not is_called and "arg_attrs" in function.attributes:
                while self._turn(function):
                    pass
        _forget_ranges(op)

    def _turn(self, function: ir.Operation) -> bool:
        """Obeys the first checks that say something about different dimensions; False when none does."""
        block = function.regions[0].blocks[0]
        checks = [view.operation for view in block.operations if view.operation.name == "mlc.check"]
        if not checks:
            return False
        analysis = DimAnalysis(function)
        inputs = Inputs(function, analysis)
        for check in checks:
            sides = equation(analysis, check)
            terms = None if sides is None else linear(analysis.symbols.sub(*sides))
            if terms is not None and inputs.solve(*terms):
                self.count("narrowed" if len(terms[0]) == 1 else "named")
        if inputs.changed:
            inputs.write()
        return inputs.changed


class Inputs:
    """The extents of a function's arguments, and what they become."""

    def __init__(self, function: ir.Operation, analysis: DimAnalysis) -> None:
        self.function = function
        self.analysis = analysis
        self.arguments = list(function.regions[0].blocks[0].arguments)
        self.attributes = [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
        self.places: dict[int, list[tuple[int, int]]] = {}
        self._fixed: set[int] = set()
        for number, argument in enumerate(self.arguments):
            if is_shaped(argument) and "mlc.dims" in self.attributes[number]:
                self._note(number, argument)
        self.known: dict[int, int] = {}
        self.names: dict[int, int] = {}

    def _note(self, number: int, argument: ir.Value) -> None:
        for axis, expr in enumerate(self.analysis.dims(argument)):
            factors, constant = linear(expr) or ({}, 0)
            if len(factors) == 1 and constant == 0 and set(factors.values()) == {1}:
                self.places.setdefault(next(iter(factors)), []).append((number, axis))
            else:
                self._fixed.update(factors)  # the name of this dimension is a sum of others

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.known or self.names)

    def solve(self, factors: dict[int, int], constant: int) -> bool:
        """Obeys that a sum of multiples of symbols and a constant is zero; False where that is not for the inputs."""
        free = self.places.keys() - self._fixed - self.known.keys() - self.names.keys() - set(self.names.values())
        if not factors.keys() <= free:
            return False
        if len(factors) == 1:
            ((position, factor),) = factors.items()
            return self._fix(position, -constant // factor) if constant % factor == 0 else False
        if len(factors) == 2 and constant == 0 and sum(factors.values()) == 0 and 1 in factors.values():
            first, second = sorted(factors)
            if self._range(first) == self._range(second):
                self.names[second] = first
                return True
        return False

    def _range(self, position: int) -> tuple[int, int | None, int]:
        """The lowest and the highest extent, and what divides all."""
        symbol = ir.AffineSymbolExpr.get(position, self.analysis.symbols.context)
        low, high = self.analysis.symbols.range(symbol)
        return low or 0, high, self.analysis.symbols.multiple(symbol)

    def _fix(self, position: int, value: int) -> bool:
        low, high, multiple = self._range(position)
        if value < low or (high is not None and value > high) or value % multiple:
            return False  # the run says so
        self.known[position] = value
        return True

    def write(self) -> None:
        """Changes types and names of the arguments."""
        shapes = {number: list(a.type.shape) for number, a in enumerate(self.arguments) if is_shaped(a)}
        names = {n: self._names(n) for n in shapes if "mlc.dims" in self.attributes[n]}
        for position, value in self.known.items():
            for number, axis in self.places[position]:
                shapes[number][axis], names[number][axis] = value, ""
        for position, other in self.names.items():
            for number, axis in self.places[position]:
                names[number][axis] = self.analysis.symbol_names[other]
        for number, shape in shapes.items():
            argument = self.arguments[number]
            if shape != list(argument.type.shape):
                refine(argument, ir.RankedTensorType.get(shape, argument.type.element_type))
        for op in operations(self.function):
            cast_carried(op)
        self._write_signature(names)

    def _names(self, number: int) -> list[str]:
        return [ir.StringAttr(name).value for name in ir.ArrayAttr(self.attributes[number]["mlc.dims"])]

    def _write_signature(self, names: dict[int, list[str]]) -> None:
        old = ir.TypeAttr(self.function.attributes["function_type"]).value
        new = ir.FunctionType.get([a.type for a in self.arguments], old.results)
        self.function.attributes["function_type"] = ir.TypeAttr.get(new)
        changed = [
            _with_names(attributes, self.arguments[number].type, names.get(number))
            for number, attributes in enumerate(self.attributes)
        ]
        self.function.attributes["arg_attrs"] = ir.ArrayAttr.get(changed)


def _with_names(attributes: ir.DictAttr, type_: ir.Type, names: Sequence[str] | None) -> ir.DictAttr:
    """The attributes of an argument with other names of dimensions; without any when all are known."""
    if names is None:
        return attributes
    entries = {named.name: named.attr for named in attributes}
    entries["mlc.dims"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
    if DYNAMIC not in type_.shape:
        del entries["mlc.dims"]
    return ir.DictAttr.get(entries)


def _forget_ranges(module: Any) -> None:
    """Drops the ranges of names that no input has any more."""
    attributes = module.operation.attributes
    if "mlc.dim_ranges" not in attributes:
        return
    lists = [ir.ArrayAttr(f.attributes["arg_attrs"]) for f in functions(module) if "arg_attrs" in f.attributes]
    described = [a for arguments in lists for a in map(ir.DictAttr, arguments) if "mlc.dims" in a]
    used = {ir.StringAttr(name).value for a in described for name in ir.ArrayAttr(a["mlc.dims"])}
    ranges = {named.name: named.attr for named in ir.DictAttr(attributes["mlc.dim_ranges"]) if named.name in used}
    if ranges:
        attributes["mlc.dim_ranges"] = ir.DictAttr.get(ranges)
    else:
        del attributes["mlc.dim_ranges"]
