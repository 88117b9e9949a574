"""The beginning and the end of a command that owns its process."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import NoReturn

# Exit codes of every command: it worked, the input or the machine is at fault, the call is, mlc is.
DONE, FAULT, USAGE, BUG = 0, 1, 2, 3


def begin() -> None:
    """Looks for cyclic garbage seldom. Opens those of the three standard files that the caller has closed: else the
    next file would take the place of one of them, and get what a linker prints.
    """
    collect_seldom()
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def collect_seldom() -> None:
    """Looks for cyclic garbage seldom: a compilation makes little of it, and many objects that stay."""
    gc.set_threshold(100_000, 50, 100)


def end(code: int) -> NoReturn:
    """Ends the process at once. Taking apart millions of objects takes a tenth of a compilation, and helps nobody."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)
