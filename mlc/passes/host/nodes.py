"""Source node names out of locations, numbered for the artefact's tables."""

from __future__ import annotations

from dataclasses import dataclass, field

import mlir.ir as ir


def node_names(location: ir.Location) -> list[str]:
    """The source nodes that `location` names, in order, each once."""
    if location.is_a_name():
        return [location.name_str]
    if location.is_a_fused():
        parts = list(location.locations)
    elif location.is_a_callsite():
        parts = [location.callee, location.caller]
    else:
        parts = []
    return list(dict.fromkeys(name for part in parts for name in node_names(part)))


def node_name(location: ir.Location) -> str:
    """The first source node that `location` names, `""` when there is none."""
    return next(iter(node_names(location)), "")


class Table:
    """Texts by number, each once, in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of `text`."""
        return self._numbers.setdefault(text, len(self._numbers))

    def attribute(self) -> ir.Attribute:
        """All texts, in order, as an array attribute."""
        return ir.ArrayAttr.get([ir.StringAttr.get(text) for text in self._numbers])


@dataclass
class Tables:
    """What the numbers in host code refer to: `kernels` gives the number of each kernel, `copies` the names of those
    for further architectures, `variants` those for few rows (`isolate_host.variants_of`)."""

    kernels: dict[str, int]
    copies: dict[str, list[str]] = field(default_factory=dict)
    variants: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    nodes: Table = field(default_factory=Table)
    messages: Table = field(default_factory=Table)
    launched: dict[str, dict[str, None]] = field(default_factory=dict)

    def launch(self, kernel: str, location: ir.Location) -> tuple[int, int]:
        """The numbers of the kernel and of the node for a launch at `location`."""
        names = node_names(location)
        self.launched.setdefault(kernel, {}).update(dict.fromkeys(names))
        return self.kernels[kernel], self.nodes.number(names[0] if names else "")
