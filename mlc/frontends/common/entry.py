"""Entries: the public function of a module, its arguments with their names, dtypes and dimensions, and its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mlir import ir

from mlc.frontends.common import types
from mlc.frontends.common.builder import DYNAMIC, Tensor, attribute
from mlc.frontends.common.maps import Rows
from mlc.frontends.report import Problem
from mlc.runtime.dim_sums import parse_sum

_ANONYMOUS = ("", "?", "-1", "*", "None", "unk")


class DimRange(NamedTuple):
    """The extents that a named dimension may have: `low` to `high` (`None`: no limit), in steps of `multiple`."""

    low: int = 1
    high: int | None = None
    multiple: int = 1


@dataclass(frozen=True)
class Argument:
    """One input: its name, dtype, and extents, each an integer, a dimension's name, or "" for an anonymous one.

    `other` is the type of an input that is a sequence or an optional, `map` the name of the map that this is a part of.
    All elements of an input with a `default` are that number where the caller gives none.
    """

    name: str
    dtype: str
    shape: list[int | str]
    other: ir.Type | None = None
    map: str = ""
    default: int | float | None = None

    @property
    def type(self) -> ir.Type:
        """The MLIR type."""
        if self.other is not None:
            return self.other
        extents = [extent if isinstance(extent, int) else DYNAMIC for extent in self.shape]
        return ir.RankedTensorType.get(extents, types.element_type(self.dtype))

    @property
    def attributes(self) -> ir.DictAttr:
        """The `mlc.*` argument attributes."""
        attributes: dict[str, ir.Attribute] = {
            "mlc.name": ir.StringAttr.get(self.name),
            "mlc.dtype": ir.StringAttr.get(self.dtype),
        }
        if any(isinstance(extent, str) for extent in self.shape):
            names = [extent if isinstance(extent, str) else "" for extent in self.shape]
            attributes["mlc.dims"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
        if self.map:
            attributes["mlc.map"] = ir.StringAttr.get(self.map)
        if self.default is not None:
            attributes["mlc.default"] = attribute(self.default)
        return ir.DictAttr.get(attributes)


@dataclass(frozen=True, eq=False)
class Continued(Tensor):
    """A result that is the new contents of the input `source`: what the next run gets there."""

    source: str = ""


def resolve(shape: Sequence[int | str | None], dims: Mapping[str, DimRange]) -> list[int | str]:
    """Extents with anonymous names dropped, and dimensions whose range is one extent made static, in sums as well."""
    fixed = {name: bounds.low for name, bounds in dims.items() if bounds.low == bounds.high}
    result: list[int | str] = []
    for extent in shape:
        if isinstance(extent, int):
            result.append(extent)
            continue
        name = extent or ""
        if name in fixed:
            result.append(fixed[name])
        else:
            result.append("" if name in _ANONYMOUS else _with_fixed(name, fixed))
    return result


def _with_fixed(name: str, fixed: Mapping[str, int]) -> int | str:
    """A dimension's name, or what it is where some of those that it is a sum of are numbers."""
    found = parse_sum(name)
    return name if found is None or fixed.keys().isdisjoint(found.factors) else found.given(fixed).extent


def unknown_dims(shapes: Iterable[Sequence[int | str | None]], dims: Mapping[str, DimRange]) -> list[Problem]:
    """A problem for every dimension of `dims` that no shape names."""
    names = dict.fromkeys(n for shape in shapes for n in shape if isinstance(n, str) and n not in _ANONYMOUS)
    known = f"the named dimensions are: {', '.join(names)}" if names else "no dimension of an input has a name"
    return [Problem(f'there is no dimension "{name}"', known) for name in dims if name not in names]


class Entry:
    """Builds one public function; the body goes to `block`."""

    def __init__(self, module: ir.Module, name: str, arguments: Sequence[Argument]) -> None:
        self.arguments = list(arguments)
        self.types = [argument.type for argument in arguments]
        kind = ir.FunctionType.get(self.types, [])
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.get(kind),
            "arg_attrs": ir.ArrayAttr.get([argument.attributes for argument in arguments]),
        }
        with ir.InsertionPoint(module.body):
            self.function = ir.Operation.create("func.func", attributes=attributes, regions=1)
        self.block = self.function.regions[0].blocks.append(*self.types)

    def inputs(self) -> dict[str, Tensor]:
        """The arguments by name."""
        pairs = zip(self.arguments, self.block.arguments, strict=True)
        return {argument.name: Tensor(ir.Value(value), types.is_unsigned(argument.dtype)) for argument, value in pairs}

    def finish(self, results: Sequence[tuple[str, Tensor]]) -> None:
        """Ends the body with a return of `results` and completes the function's type."""
        values = [tensor.value for _, tensor in results]
        with ir.InsertionPoint(self.block):
            ir.Operation.create("func.return", operands=values)
        # What a body does with a sequence may have said what its elements are.
        taken = [argument.type for argument in self.block.arguments]
        kind = ir.FunctionType.get(taken, [value.type for value in values])
        self.function.attributes["function_type"] = ir.TypeAttr.get(kind)
        attributes = []
        for name, tensor in results:
            named: dict[str, ir.Attribute] = {"mlc.name": ir.StringAttr.get(name)}
            if isinstance(tensor.value.type, ir.RankedTensorType):
                named["mlc.dtype"] = ir.StringAttr.get(tensor.dtype)
            if isinstance(tensor, Rows):
                named["mlc.keys"] = attribute(list(tensor.keys))
            if isinstance(tensor, Continued):
                named["mlc.continues"] = ir.StringAttr.get(tensor.source)
            attributes.append(ir.DictAttr.get(named))
        self.function.attributes["res_attrs"] = ir.ArrayAttr.get(attributes)


def describe_module(
    module: ir.Module, arguments: Sequence[Argument], dims: Mapping[str, Any], source: str = ""
) -> None:
    """Sets the module attributes `mlc.dim_ranges` and, where the source's hash is known, `mlc.source`."""
    used = {extent for argument in arguments for extent in argument.shape if isinstance(extent, str) and extent}
    ranges = {}
    for name in sorted(used & set(dims)):
        bounds = dims[name]
        limits = [bounds.low, -1 if bounds.high is None else bounds.high, bounds.multiple]
        ranges[name] = ir.DenseI64ArrayAttr.get(limits)
    if ranges:
        module.operation.attributes["mlc.dim_ranges"] = ir.DictAttr.get(ranges)
    if source:
        module.operation.attributes["mlc.source"] = ir.StringAttr.get(source)
