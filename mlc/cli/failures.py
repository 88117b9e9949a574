"""How `mlc-run` and `mlc-bench` end: one message, and an exit code that says whose fault it is."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence

from mlc.cli.process import BUG, DONE, FAULT, USAGE
from mlc.interrupt import Interrupts
from mlc.runtime.errors import ArgumentError, MlcError

Describe = Callable[[BaseException], "tuple[str, int] | None"]


def run_program(program: str, given: Sequence[str], command: Callable[[], object], describe: Describe) -> int:
    """Runs `command` and prints one message when it fails. `describe` gets each error first and says what is special to
    this program, or None. Returns 0 (done), 1 (input or machine at fault), 2 (usage), 3 (a bug of ours), 130
    (interrupted) or 143 (terminated).
    """
    interrupts = Interrupts(at_once=True)
    try:
        with interrupts:
            code = int(command() or DONE)  # type: ignore[call-overload]
        if not interrupts.pending:
            return code
        message, code = interrupts.message, interrupts.code
    except (Exception, KeyboardInterrupt) as error:  # every failure ends here, with one message and the right code
        if interrupts.pending:
            message, code = interrupts.message, interrupts.code
        else:
            message, code = describe(error) or _describe(error) or _bug(program, given, error)
    print(f"{program}: {message}", file=sys.stderr)
    return code


def _describe(error: BaseException) -> tuple[str, int] | None:
    """The message for an error that is not a bug, and the exit code."""
    if isinstance(error, ArgumentError):
        return str(error), USAGE
    if isinstance(error, OSError) and not isinstance(error, MlcError) and error.strerror:
        return f"'{error.filename}': {error.strerror}" if error.filename else error.strerror, FAULT
    if isinstance(error, (MlcError, OSError, MemoryError)):
        return str(error) or "out of memory", FAULT
    if hasattr(error, "exit_code") and hasattr(error, "format_message"):
        return error.format_message(), error.exit_code
    return None


def _bug(program: str, given: Sequence[str], error: BaseException) -> tuple[str, int]:
    """Writes what is needed to find the bug into a file; the message says where it is."""
    handle, name = tempfile.mkstemp(prefix=f"{program}-bug-", suffix=".txt")
    with os.fdopen(handle, "w") as file:
        file.write(f"command: {program} {' '.join(given)}\n\n")
        file.writelines(traceback.format_exception(error))
    return f"a bug in mlc: {type(error).__name__}: {error}; please report it with the file {name}", BUG
