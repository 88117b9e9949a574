"""Source node names out of locations, numbered for the artefact's tables."""

from __future__ import annotations

import mlir.ir as ir


def node_name(location: ir.Location) -> str:
    """The source node that `location` names; the first one when there are several, `""` when there is
    none.
    """
    if location.is_a_name():
        return location.name_str
    if location.is_a_fused():
        for part in location.locations:
            name = node_name(part)
            if name:
                return name
    if location.is_a_callsite():
        return node_name(location.callee) or node_name(location.caller)
    return ""


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
