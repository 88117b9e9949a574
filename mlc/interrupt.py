"""Ctrl-C and SIGTERM at safe points.

An exception out of nowhere cannot cross native code: inside a pass it would look like the pass's own failure, and
inside an import like a broken package. So the first signal is noted and raised where the program asks for it; a second
one ends the process at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_NAMES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Interrupts:
    """A context manager; `check` raises KeyboardInterrupt once an interrupt has come. With `at_once` the signal raises
    it as well, and whatever the program makes of that, `pending` says that there was one. `again` is what a second
    signal does.
    """

    def __init__(
        self, *, at_once: bool = False, signals: Iterable[signal.Signals] = tuple(_NAMES), again: Any = signal.SIG_DFL
    ) -> None:
        self._at_once = at_once
        self._signals = tuple(signals)
        self._again = again
        self._came: signal.Signals | None = None

    def __enter__(self) -> Interrupts:
        self._previous = {number: signal.signal(number, self._note) for number in self._signals}
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
        for each in self._signals:
            signal.signal(each, self._again)
        if self._at_once:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raises KeyboardInterrupt when there was one."""
        if self.pending:
            raise KeyboardInterrupt


@contextmanager
def deferred(update: Callable[..., None] | None) -> Iterator[Callable[..., None] | None]:
    """For a library: gives a callback that calls `update` and is a safe point for Ctrl-C, which raises
    KeyboardInterrupt there or at the end of the block. Does nothing where Ctrl-C means something else already, or goes
    to another thread.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield update
        return
    interrupts = Interrupts(signals=[signal.SIGINT], again=signal.default_int_handler)

    def checked(*arguments: Any) -> None:
        interrupts.check()
        if update is not None:
            update(*arguments)

    try:
        with interrupts:
            yield checked
    except Exception as error:
        if interrupts.pending:
            raise KeyboardInterrupt from error
        raise
    interrupts.check()
