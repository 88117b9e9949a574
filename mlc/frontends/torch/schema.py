"""What the schema of an operator says of its arguments and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call

_WITHOUT_EFFECT = {
    "allow_tf32", "benchmark", "copy", "cudnn_enable", "cudnn_enabled", "deterministic", "device", "generator",
    "implicit", "layout",
    "memory_format", "momentum", "non_blocking", "pin_memory", "scale_grad_by_freq", "sparse", "stable",
}  # fmt: skip
"""Arguments that choose where and how something is computed, not what."""


@dataclass(frozen=True)
class Schema:
    """Of an operator: its arguments' names, the places of those that it writes to, whether results share memory, what
    arguments are that are left out, and the places of dtypes."""

    names: list[str]
    writes: list[int]
    aliases: bool
    defaults: list[Any]
    dtypes: list[int]

    def check_read(self, call: Call) -> None:
        """Raises NodeError for an argument that the importer does not know, unless it is what it is by default."""
        if not call.op.startswith("aten::"):
            return
        for place in call.unread():
            name, value = self.names[place], list.__getitem__(call.arguments, place)
            if name in _WITHOUT_EFFECT or value is None or value == self.defaults[place]:
                continue
            raise NodeError(f"its argument {name!r} is {value}", "leave it out, or rewrite the model without it")

    @staticmethod
    def parse(torch: Any, text: str) -> Schema:
        """The schema that TorchScript writes as `text`."""
        return Schema([], [], False, [], []) if text == "(no schema)" else Schema.of(torch._C.parse_schema(text))

    @staticmethod
    def of(schema: Any) -> Schema:
        """What PyTorch's own object says."""
        aliases = [argument.alias_info for argument in schema.arguments]
        writes = [place for place, alias in enumerate(aliases) if alias is not None and alias.is_write]
        shares = any(result.alias_info is not None for result in schema.returns)
        names = [argument.name for argument in schema.arguments]
        kinds = [str(argument.real_type) for argument in schema.arguments]
        dtypes = [place for place, kind in enumerate(kinds) if "ScalarType" in kind]
        return Schema(names, writes, shares, [argument.default_value for argument in schema.arguments], dtypes)
