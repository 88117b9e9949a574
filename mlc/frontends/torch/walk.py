"""What both importers of PyTorch's programs do: values by name, problems collected, results named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir import ir

from mlc.frontends.common import cleanup, entry
from mlc.frontends.common.builder import INLINE_LIMIT, Builder, Tensor
from mlc.frontends.common.entry import Argument, DimRange
from mlc.frontends.report import Problem
from mlc.frontends.torch.complex_numbers import Complex
from mlc.frontends.torch.files import as_array, chosen
from mlc.frontends.torch.registry import Value

POISON = object()
"""The value of what could not be imported; nothing that needs it is reported again."""


class PoisonedError(Exception):
    """A value that could not be imported is needed; what was wrong has been reported."""


def is_poisoned(value: Value) -> bool:
    """Whether a value, or a part of it, could not be imported."""
    if isinstance(value, dict):
        value = list(value.values())
    return value is POISON or (isinstance(value, list) and any(is_poisoned(v) for v in value))


def module_of(
    context: ir.Context,
    title: str,
    digest: str,
    arguments: Sequence[Argument],
    dims: Mapping[str, DimRange],
    outputs: Sequence[str] | None,
    body: Callable[[dict[str, Tensor]], list[tuple[str, Tensor]]],
) -> ir.Module:
    """The module of one entry: `body` builds the results by name from the arguments; `outputs` chooses among them."""
    with context, ir.Location.name(title):
        module = ir.Module.create()
        main = entry.Entry(module, "forward", arguments)
        with ir.InsertionPoint(main.block):
            results = body(main.inputs())
        main.finish(results if outputs is None else chosen(title, results, outputs))
        cleanup.drop_unused(main.block)
        entry.describe_module(module, arguments, dims, digest)
        module.operation.verify()
    return module


class Walk:
    """Values by their names in a graph, and the problems that its nodes have."""

    def __init__(self, torch: Any, b: Builder, title: str) -> None:
        self.torch, self.b, self.title = torch, b, title
        self.values: dict[str, Value] = {}
        self.problems: list[Problem] = []

    def flatten(self, name: str, value: Value, results: list[tuple[str, Tensor]]) -> None:
        """Adds the tensors of a result to `results`; those of lists and dictionaries have its name and theirs."""
        if isinstance(value, Tensor):
            results.append((name, value))
        elif isinstance(value, list):
            for number, item in enumerate(value):
                self.flatten(f"{name}_{number}", item, results)
        elif isinstance(value, dict):
            for key, item in value.items():
                self.flatten(str(key), item, results)
        elif isinstance(value, Complex):
            reason = f'output "{name}" has complex numbers, which no library returns'
            self.problems.append(Problem(reason, "return torch.view_as_real of it"))
        elif value is not POISON:
            self.problems.append(Problem(f'output "{name}" is a {type(value).__name__}', "return tensors only"))

    def python(self, value: Any, name: str) -> Value:
        """A Python or torch value as an import-time value; tensors become constants or weights."""
        if isinstance(value, self.torch.Tensor):
            return self.weight(value, name)
        if isinstance(value, self.torch.dtype):
            return str(value).removeprefix("torch.")
        if isinstance(value, self.torch.device):
            return str(value)
        if isinstance(value, list | tuple):
            return [self.python(item, f"{name}_{i}") for i, item in enumerate(value)]
        return value

    def weight(self, tensor: Any, name: str) -> Tensor | Complex:
        """A tensor of PyTorch as a constant if it is small, else as the weight `name`; of complex numbers as two."""
        if tensor.is_complex():
            tensor = tensor.detach().resolve_conj()
            parts = [self._real_weight(getattr(tensor, part), f"{name}.{part}") for part in ("real", "imag")]
            return Complex(*parts)
        return self._real_weight(tensor, name)

    def _real_weight(self, tensor: Any, name: str) -> Tensor:
        tensor = tensor.detach().contiguous()
        dtype = str(tensor.dtype).removeprefix("torch.")
        array = as_array(self.torch, tensor)
        if array.size <= INLINE_LIMIT:
            return self.b.constant(array, dtype)
        return self.b.weight(name, array, list(array.shape), dtype)
