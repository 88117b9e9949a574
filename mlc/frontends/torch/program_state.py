"""What a run of a program of `torch.export` changes: buffers and parameters of the module, and inputs.

A compiled model keeps nothing from run to run. A buffer that is changed becomes an input, and its new contents a result
of the same name, which the next run gets; so does what an input is changed to. Where only a stretch is new, as in a
cache of keys, the result may have the input's memory (`mlc-share-inputs`). Source: PyTorch documentation,
"torch.export", `ExportGraphSignature`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from mlc.frontends.torch.schema import Schema

_OWN = ("BUFFER_MUTATION", "PARAMETER_MUTATION")
"""The kinds of results that are new contents of what the module has itself."""


class ProgramState:
    """The names of what a program changes.

    `inputs` are the changed buffers and parameters by placeholder: what they are called as inputs. `defaults` are the
    numbers that all their elements have at first, where it is one. `results` has an entry for each result of the
    program: the input that it is the new contents of, or "".
    """

    def __init__(self, program: Any) -> None:
        signature = program.graph_signature
        changed = [spec.target for spec in signature.output_specs if spec.kind.name in _OWN]
        taken = {spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT"}
        self.inputs: dict[str, str] = {}
        self.defaults: dict[str, int | float] = {}
        names: dict[str, str] = {}
        for spec in signature.input_specs:
            if spec.kind.name not in ("BUFFER", "PARAMETER") or spec.target not in changed:
                continue
            name = spec.arg.name if spec.target in taken else spec.target
            self.inputs[spec.arg.name] = names[spec.target] = name
            first = _one_number(held(program, spec.target))
            if first is not None:
                self.defaults[name] = first
        self.results = [self._changed(spec, names) for spec in signature.output_specs]

    @staticmethod
    def _changed(spec: Any, names: dict[str, str]) -> str:
        if spec.kind.name in _OWN:
            return names[spec.target]
        return str(spec.target) if spec.kind.name == "USER_INPUT_MUTATION" else ""

    def name_results(self, returned: Sequence[str]) -> list[str]:
        """The names of all results, of which those `returned` to the caller have names already."""
        rest, taken = iter(returned), set(returned)
        names = []
        for source in self.results:
            name = source or next(rest)
            while source and name in taken:
                name += "_next"
            taken.add(name)
            names.append(name)
        return names


def changed_constants(program: Any) -> list[str]:
    """The tensors that are no buffers, but captured by the export, and changed in place nevertheless."""
    signature = program.graph_signature
    constants = {spec.arg.name: spec.target for spec in signature.input_specs if spec.kind.name == "CONSTANT_TENSOR"}
    written = (value for node, places in changes(program.graph) for n, value in enumerate(node.args) if n in places)
    names = (getattr(value, "name", "") for value in written)
    return list(dict.fromkeys(constants[name] for name in names if name in constants))


def changes(graph: Any) -> Iterator[tuple[Any, list[int]]]:
    """The nodes of a graph whose operators change arguments in place, and the places of those."""
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            yield node, Schema.of(schema).writes


def held(program: Any, target: str) -> Any:
    """The tensor of a parameter, buffer or constant."""
    tensor = program.state_dict.get(target)
    return program.constants[target] if tensor is None else tensor


def _one_number(tensor: Any) -> int | float | None:
    """The number that all elements of a tensor are; None where there is none, or none that JSON has."""
    if tensor.numel() == 0 or tensor.is_complex() or tensor.device.type == "meta":
        return None
    first = tensor.detach().reshape(-1)[0]
    number = int(first) if isinstance(first.item(), bool) else first.item()
    return number if math.isfinite(number) and bool((tensor == first).all()) else None
