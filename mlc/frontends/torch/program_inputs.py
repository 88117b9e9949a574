"""The inputs of a program of `torch.export`: their names, dtypes and extents, and what symbols stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlc.frontends.common import entry
from mlc.frontends.common.entry import Argument, DimRange
from mlc.frontends.report import ModelError, Problem
from mlc.frontends.torch.program_state import ProgramState
from mlc.runtime.dim_sums import parse_sum

_SPECIALISED = 2
"""Programs are traced with extents of at least this much, which says nothing about smaller ones."""


class Inputs:
    """What a program takes. `arguments` are its tensors in order, the `state` behind what its caller gives; `dims` the
    ranges of dimensions by name.

    A symbol of the program is a dimension of its name, unless the caller's `shapes` have another name or an extent for
    it: then that stands wherever the symbol does. `k*symbol` is a dimension in steps of k, a sum of symbols is that sum
    of dimensions; other expressions have no name. Raises ModelError for what does not fit the program.
    """

    def __init__(
        self,
        program: Any,
        title: str,
        state: ProgramState,
        shapes: Mapping[str, Sequence[int | str]],
        dims: Mapping[str, DimRange],
    ) -> None:
        self.problems: list[Problem] = []
        self._chosen: dict[str, int | str] = {}
        self._ranges = {str(symbol): bounds for symbol, bounds in program.range_constraints.items()}
        tensors = dict(_tensors(program, state))
        for name, shape in shapes.items():
            self._choose(name, shape, tensors)
        self.problems += [
            Problem(f'input "{name}" has complex numbers, which no library takes', "take pairs, and view_as_complex")
            for name, value in tensors.items()
            if value.dtype.is_complex
        ]
        known = {name: [self._extent(extent) for extent in value.shape] for name, value in tensors.items()}
        self.problems += entry.unknown_dims(known.values(), dims)
        if self.problems:
            raise ModelError(title, self.problems)
        self.dims = self._all_dims(tensors, dims)
        self.arguments = [
            Argument(
                name,
                str(tensors[name].dtype).removeprefix("torch."),
                entry.resolve(extents, self.dims),
                default=state.defaults.get(name),
            )
            for name, extents in known.items()
        ]

    def _choose(self, name: str, shape: Sequence[int | str], tensors: Mapping[str, Any]) -> None:
        """Takes the caller's shape of an input."""
        if name not in tensors:
            self.problems.append(Problem(f'there is no input "{name}"', f"the inputs are: {', '.join(tensors)}"))
            return
        own = list(tensors[name].shape)
        text = f'input "{name}" is {_text(own)} in the program'
        if len(shape) != len(own):
            self.problems.append(Problem(f"{text}, which has not {len(shape)} dimensions", "export it for that rank"))
            return
        for extent, given in zip(own, shape, strict=True):
            symbol = str(extent)
            if isinstance(extent, int):
                if given != extent:
                    self.problems.append(
                        Problem(f"{text}: {given} does not fit", "export it with that dimension dynamic")
                    )
            elif not symbol.isidentifier():
                if isinstance(given, int):
                    self.problems.append(Problem(f"{text}: {symbol} cannot be fixed alone", "fix the symbol instead"))
            elif not self._fits(symbol, given):
                low, high = self._limits(symbol)
                range_ = f"{low} or more" if high is None else f"{low} to {high}"
                self.problems.append(Problem(f"{text}: {given} does not fit, {symbol} is {range_}"))
            elif self._chosen.setdefault(symbol, given) != given:
                reason = f"{text}, where {symbol} is both {self._chosen[symbol]} and {given}"
                self.problems.append(Problem(reason, "give one name or extent for each symbol"))

    def _limits(self, symbol: str) -> tuple[int, int | None]:
        """The least and the greatest extent that the program has for a symbol; None: any."""
        bounds = self._ranges.get(symbol)
        if bounds is None:
            return 0, None
        low = int(bounds.lower) if bounds.lower.is_Integer else 0
        return 0 if low <= _SPECIALISED else low, int(bounds.upper) if bounds.upper.is_Integer else None

    def _fits(self, symbol: str, given: int | str) -> bool:
        low, high = self._limits(symbol)
        return not isinstance(given, int) or (given >= low and (high is None or given <= high))

    def _extent(self, extent: Any) -> int | str:
        """An integer, or the name of a dimension; "" where an expression stands."""
        if isinstance(extent, int):
            return extent
        symbol, factor = _symbol_of(extent)
        if not symbol:
            return self._sum(str(extent))
        chosen = self._chosen.get(symbol, symbol)
        if factor == 1:
            return chosen
        return chosen * factor if isinstance(chosen, int) else f"{chosen}x{factor}"

    def _sum(self, expression: str) -> int | str:
        """A sum of dimensions in the caller's names and extents; "" for another expression."""
        found = parse_sum(expression)
        if found is None:
            return ""
        fixed = {symbol: n for symbol, n in self._chosen.items() if isinstance(n, int)}
        names = {symbol: n for symbol, n in self._chosen.items() if isinstance(n, str)}
        return found.given(fixed).renamed(names).extent

    def _all_dims(self, tensors: Mapping[str, Any], asked: Mapping[str, DimRange]) -> dict[str, DimRange]:
        """The ranges by name: the program's, within what the caller asks for."""
        result = dict(asked)
        for value in tensors.values():
            for extent in value.shape:
                name = self._extent(extent)
                symbol, factor = ("", 1) if isinstance(extent, int) else _symbol_of(extent)
                if isinstance(name, int) or not symbol:
                    continue
                low, high = self._limits(symbol)
                wanted = asked.get(name, DimRange())
                low = max(low * factor, wanted.low)
                highs = [limit for limit in (high and high * factor, wanted.high) if limit is not None]
                limits = DimRange(low, min(highs, default=None), max(factor, wanted.multiple))
                if limits != DimRange() or name in asked:
                    result[name] = limits
        return result


def _symbol_of(extent: Any) -> tuple[str, int]:
    """The symbol and the factor of `k*symbol`; ("", 1) for another expression."""
    expression = extent.node.expr
    if expression.is_Symbol:
        return str(expression), 1
    factor, rest = expression.as_coeff_Mul()
    return (str(rest), int(factor)) if rest.is_Symbol and factor.is_Integer and factor > 0 else ("", 1)


def _text(shape: Sequence[Any]) -> str:
    return "[" + ",".join(str(extent) for extent in shape) + "]"


def _tensors(program: Any, state: ProgramState) -> Iterator[tuple[str, Any]]:
    """The tensors that the caller of the program gives, by name, and those that it changes; numbers are part of the
    program.
    """
    placeholders = program.graph.find_nodes(op="placeholder")
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind.name == "USER_INPUT" and hasattr(node.meta.get("val"), "dtype"):
            yield node.name, node.meta["val"]
    for node in placeholders:
        if node.name in state.inputs:
            yield state.inputs[node.name], node.meta["val"]
