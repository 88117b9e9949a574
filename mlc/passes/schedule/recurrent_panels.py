"""How recurrent weights lie in memory for the kernels of CPUs."""

from __future__ import annotations

from mlir import ir

from mlc.dialects import mlc as m

PAIR = 2  # elements along the state that are multiplied together in a group of several


class RecurrentPanels:
    """Weights `[directions, gates * hidden, hidden]` in panels of hidden elements, whose gates are beside each other
    for every `group` of elements of the state: `[directions, panels, hidden, gates, panel]` without groups,
    `[directions, panels, hidden / 2, gates, panel, 2]` in pairs, and as tiles of several pairs
    `[directions, panels, hidden / group, gates, group / 2, panel, 2]`. Zeros fill up panels and groups.
    """

    def __init__(self, weights: ir.RankedTensorType, gates: int, panel: int, group: int) -> None:
        self.directions, _, self.hidden = weights.shape
        self.gates, self.panel, self.group = gates, panel, group
        self.panels, self.groups = -(-self.hidden // panel), -(-self.hidden // group)
        inside = [] if group == 1 else [group // PAIR, PAIR]
        self._apart = [self.directions, gates, self.panels, panel, self.groups, *inside]
        self._order = {1: [0, 2, 4, 1, 3], PAIR: [0, 2, 4, 1, 5, 3, 6]}[min(group, PAIR)]
        shape = [self._apart[i] for i in self._order]
        self._shape = [e for i, e in enumerate(shape) if group != PAIR or i != 4]  # one pair is no dimension
        self.type = ir.RankedTensorType.get(self._shape, weights.element_type)

    def emit(self, weights: ir.Value) -> ir.Value:
        """The panels as `mlc` operations on `weights`."""
        apart = m.reshape(weights, [self.directions, self.gates, self.hidden, self.hidden])
        high = [0, 0, self.panels * self.panel - self.hidden, self.groups * self.group - self.hidden]
        if any(high):
            apart = m.pad(apart, [0] * 4, high)
        panels = m.transpose(m.reshape(apart, self._apart), self._order)
        return panels if self.group != PAIR else m.reshape(panels, self._shape)
