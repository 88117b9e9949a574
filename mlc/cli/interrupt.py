"""Ctrl-C at safe points.

An exception out of nowhere cannot cross native code: inside a pass it would look like the pass's own failure.
So the first interrupt is noted and raised where the program asks for it; a second one ends the process at once.
"""

from __future__ import annotations

import signal
from types import FrameType


class Interrupts:
    """A context manager; `check` raises KeyboardInterrupt once an interrupt has come."""

    def __init__(self) -> None:
        self.pending = False

    def __enter__(self) -> Interrupts:
        self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.pending = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def check(self) -> None:
        """Raises KeyboardInterrupt when there was one."""
        if self.pending:
            raise KeyboardInterrupt
