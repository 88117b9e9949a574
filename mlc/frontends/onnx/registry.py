"""The importers of ONNX operators, found by domain, operator type and opset version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import NodeError

Result = Tensor | Sequence[Tensor | None]
Handler = Callable[[Any, "Node"], Result]
_Handler = TypeVar("_Handler", bound=Handler)

_HANDLERS: dict[tuple[str, str], list[tuple[int, Handler]]] = {}


@dataclass
class Node:
    """One node as its importer sees it.

    `inputs` are in the operator's order, `None` where absent; `attributes` are Python values (`TensorProto` and
    `GraphProto` stay as they are); `version` is the opset of the node's domain; `outputs` are the names of the results,
    empty where unused.
    """

    op: str
    domain: str
    name: str
    version: int
    inputs: list[Tensor | None]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, position: int) -> Tensor:
        """A required input; `NodeError` when it is missing."""
        value = self.optional(position)
        if value is None:
            raise NodeError(f"input {position} is missing", "the operator requires it")
        return value

    def optional(self, position: int) -> Tensor | None:
        """An optional input."""
        return self.inputs[position] if position < len(self.inputs) else None

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, or `default`."""
        return self.attributes.get(name, default)

    def required(self, name: str) -> Any:
        """An attribute that must be there; `NodeError` when it is not."""
        if name not in self.attributes:
            raise NodeError(f'the attribute "{name}" is missing', "the operator requires it")
        return self.attributes[name]

    def present(self) -> list[Tensor]:
        """All inputs that are there."""
        return [value for value in self.inputs if value is not None]

    def wants(self, position: int) -> bool:
        """Whether output `position` is used."""
        return position < len(self.outputs) and bool(self.outputs[position])


def onnx_op(*names: str, domain: str = "", since: int = 1) -> Callable[[_Handler], _Handler]:
    """Registers an importer for operators, from opset `since` on up to the next registered version.

    The importer takes the graph importer (whose `b` is the builder) and the node, and returns the results in order.
    """

    def register(handler: _Handler) -> _Handler:
        for name in names:
            versions = _HANDLERS.setdefault((domain, name), [])
            versions.append((since, handler))
            versions.sort(key=lambda entry: entry[0])
        return handler

    return register


def find(domain: str, op: str, version: int) -> Handler | None:
    """The importer for `op` at an opset version, or nothing."""
    found = None
    for since, handler in _HANDLERS.get((domain, op), []):
        if since <= version:
            found = handler
    return found


def supported() -> list[tuple[str, str]]:
    """The (domain, operator) pairs that have an importer."""
    return sorted(_HANDLERS)
