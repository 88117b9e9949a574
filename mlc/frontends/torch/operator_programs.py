"""Operators of TorchScript without an importer: each is exported as a program of its own, and that is imported.

`torch.export` decomposes what has no importer (`decompositions`); a graph of TorchScript has operators of the same
names, but nothing in PyTorch that rewrites it. What a program needs to know of tensors are their dtypes and extents:
extents that only the run knows are symbols there. Source: PyTorch documentation, "torch.export".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlir import ir

from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch import files
from mlc.frontends.torch.aten.scalar import known
from mlc.frontends.torch.complex_numbers import Complex, part
from mlc.frontends.torch.decompositions import without_unknown
from mlc.frontends.torch.export import Importer
from mlc.frontends.torch.program_state import ProgramState
from mlc.frontends.torch.registry import Call, Handler, Quotient, Value

_STEP = 6
"""Extents that only the run knows are a multiple of this in the program's example: common splits divide them."""


@dataclass(frozen=True)
class _Place:
    """Where in the arguments of an operator input number `number` of its program stands."""

    number: int


@dataclass
class _Inputs:
    """What the program of one operator takes of its arguments: tensors, and sizes that only the run knows."""

    torch: Any
    values: list[Value] = field(default_factory=list)

    def moved(self, value: Value, kind: str) -> Value:
        """An argument of a type of PyTorch's schemas with those taken out. Raises NodeError for what cannot be one."""
        if isinstance(value, list):
            return [self.moved(item, kind) for item in value]
        if isinstance(value, Tensor | Complex) and "Tensor" in kind or isinstance(value, ir.Value):
            self.values.append(value)
            return _Place(len(self.values) - 1)
        value = known(value)
        if isinstance(value, str) and "ScalarType" in kind:
            return getattr(self.torch, value)
        if isinstance(value, Tensor | Complex | Quotient):
            raise NodeError("a parameter is known at run time only", "trace the model with it constant")
        return value


class OperatorPrograms:
    """Imports operators by their programs, of which it keeps those of other calls with the same types."""

    def __init__(self, torch: Any, b: Builder, title: str) -> None:
        self._torch, self._b, self._title = torch, b, title
        self._programs: dict[str, Any] = {}

    def importer(self, schema: str) -> Handler | None:
        """The importer of the operator that has a schema, given as text; None where PyTorch has none of that name."""
        try:
            parsed = self._torch._C.parse_schema(schema)
        except RuntimeError:
            return None
        space, name = parsed.name.split("::")
        packet = getattr(getattr(self._torch.ops, space, None), name, None)
        overload = getattr(packet, parsed.overload_name or "default", None)
        return None if overload is None else lambda call: self._imported(overload, call)

    def _imported(self, overload: Any, call: Call) -> Value:
        inputs, schema = _Inputs(self._torch), overload._schema
        kinds = [str(argument.real_type) for argument in schema.arguments]
        arguments = [inputs.moved(value, kind) for value, kind in zip(call.arguments, kinds, strict=True)]
        hidden = max([0, *_extents(inputs.values)]) // _STEP * _STEP + _STEP  # no extent that is known
        examples = [self._example(value, hidden) for value in inputs.values]
        key = f"{overload} {arguments} {[_text(value) for value in examples]}"
        if key not in self._programs:
            self._programs[key] = self._exported(overload, arguments, inputs.values, examples)
        results = self._results(self._programs[key], call.op, inputs.values)
        returns = [str(result.type) for result in schema.returns]
        return results[0] if returns == ["Tensor"] else results

    def _results(self, program: Any, op: str, values: Sequence[Value]) -> list[Value]:
        state = ProgramState(program)
        if any(state.results):
            raise NodeError("it changes several tensors in place", "use the operator that returns new tensors")
        importer = Importer(self._torch, program, state, self._b, self._title)
        results = importer.results(dict(zip(program.graph_signature.user_inputs, values, strict=True)))
        if importer.problems:
            first = importer.problems[0]
            place = f" ({first.op})" if first.op.split(",")[0] not in ("", op) else ""
            raise NodeError(first.reason + place, first.hint)
        return results

    def _exported(self, overload: Any, arguments: list[Value], values: list[Value], examples: list[Any]) -> Any:
        """The program of an operator. Raises NodeError where PyTorch cannot make one."""
        torch, export, declared = self._torch, self._torch.export, overload._schema.arguments
        positional = [value for value, argument in zip(arguments, declared, strict=True) if not argument.kwarg_only]
        given = {a.name: value for value, a in zip(arguments, declared, strict=True) if a.kwarg_only}

        class Operator(torch.nn.Module):  # type: ignore[name-defined]
            def forward(self, *inputs: Any) -> Any:
                named = {name: _filled(value, inputs) for name, value in given.items()}
                return overload(*_filled(positional, inputs), **named)

        symbols = tuple(_symbols(export.Dim, value) for value in values)
        dynamic = {"dynamic_shapes": (symbols,)} if symbols else {}
        try:
            with files.quiet(), torch.no_grad():
                program = export.export(Operator(), tuple(examples), strict=False, **dynamic)
        except Exception as error:  # whatever the operator itself raises for these arguments, or the export of it
            reason = f"PyTorch cannot decompose it: {files.first_line(error)}"
            raise NodeError(reason, "export the model with torch.export") from error
        program = without_unknown(torch, program)
        if _symbol_count(program) < sum(len(axes) if isinstance(axes, dict) else 1 for axes in symbols):
            reason = "PyTorch decomposes it for known extents only"
            raise NodeError(reason, "fix the extents of the inputs, or rewrite the model without it")
        return program

    def _example(self, value: Value, hidden: int) -> Any:
        if isinstance(value, ir.Value):
            return hidden
        sizes = [hidden if extent is None else extent for extent in part(value, 0).shape]
        return self._torch.empty(sizes, dtype=getattr(self._torch, value.dtype))


def _extents(values: Sequence[Value]) -> Iterator[int]:
    """The known extents of tensors."""
    for value in values:
        if not isinstance(value, ir.Value):
            yield from (extent for extent in part(value, 0).shape if extent is not None)


def _symbols(dim: Any, value: Value) -> Any:
    """What of an input is a symbol in the program."""
    if isinstance(value, ir.Value):
        return dim.DYNAMIC
    return {axis: dim.AUTO for axis, extent in enumerate(part(value, 0).shape) if extent is None}


def _symbol_count(program: Any) -> int:
    """How many extents and sizes of the inputs are no numbers in the program."""
    from torch.fx.experimental.symbolic_shapes import is_concrete_int

    nodes = [node for node in program.graph.find_nodes(op="placeholder") if "val" in node.meta]
    held = [node.meta["val"] for node in nodes if node.name in program.graph_signature.user_inputs]
    sizes = [size for value in held for size in (value.shape if hasattr(value, "shape") else [value])]
    return sum(not is_concrete_int(size) for size in sizes)


def _filled(value: Any, inputs: Sequence[Any]) -> Any:
    if isinstance(value, list):
        return [_filled(item, inputs) for item in value]
    return inputs[value.number] if isinstance(value, _Place) else value


def _text(example: Any) -> str:
    return f"{example.dtype}{list(example.shape)}" if hasattr(example, "shape") else str(example)
