"""Problems found in a model, collected into one report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that stops a model from being compiled.

    `node` and `op` are empty when the problem is about the file, not about a node; `shapes` describes the node's
    operands; `hint` says what to do.
    """

    reason: str
    hint: str = ""
    node: str = ""
    op: str = ""
    shapes: str = ""
    mismatch: bool = False
    """The operands do not fit together: what the node asks for can never run."""

    def __str__(self) -> str:
        place = f'node "{self.node}" ({self.op})' if self.op else ""
        shapes = f"({self.shapes})" if self.shapes else ""
        text = " ".join(part for part in (place, shapes) if part)
        text = f"{text}: {self.reason}" if text else self.reason
        return f"{text}; {self.hint}" if self.hint else text


class ModelError(Exception):
    """All problems of one model; the message has one line for each."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = list(problems)
        super().__init__(self._text())

    def _text(self) -> str:
        count = len(self.problems)
        if count == 1:
            return f"{self.source}: {self.problems[0]}"
        lines = [f"{self.source}: {count} problems"]
        lines.extend(f"  {number}. {problem}" for number, problem in enumerate(self.problems, 1))
        return "\n".join(lines)


class NodeError(Exception):
    """Raised by the importer of one node; the importer of the graph adds the node's name, operator and shapes."""

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason = reason
        self.hint = hint
        super().__init__(f"{reason}; {hint}" if hint else reason)


class MismatchError(NodeError):
    """The shapes or types of a node's operands do not fit together."""
