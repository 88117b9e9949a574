"""Ctrl-C and SIGTERM at safe points.

An exception out of nowhere cannot cross native code: inside a pass it would look like the pass's own failure, and
inside an import like a broken package. So the first signal is noted and raised where the program asks for it; a second
one ends the process at once.
"""

from __future__ import annotations

import signal
from types import FrameType

_NAMES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Interrupts:
    """A context manager; `check` raises KeyboardInterrupt once an interrupt has come. With `at_once` the signal raises
    it as well, and whatever the program makes of that, `pending` says that there was one.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self._at_once = at_once
        self._came: signal.Signals | None = None

    def __enter__(self) -> Interrupts:
        self._previous = {number: signal.signal(number, self._note) for number in _NAMES}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @property
    def pending(self) -> bool:
        """Whether a signal has come."""
        return self._came is not None

    @property
    def message(self) -> str:
        """What happened, in a word."""
        return _NAMES[self._came or signal.SIGINT]

    @property
    def code(self) -> int:
        """The process's exit code: 128 and the signal's number, as shells say it."""
        return 128 + (self._came or signal.SIGINT)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._came = signal.Signals(number)
        for each in _NAMES:
            signal.signal(each, signal.SIG_DFL)
        if self._at_once:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raises KeyboardInterrupt when there was one."""
        if self.pending:
            raise KeyboardInterrupt
