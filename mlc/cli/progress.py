"""Progress of a compilation: bars on a terminal, a line per phase elsewhere."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from mlc.runtime.needed_memory import amount


class Reporter(Protocol):
    """Told by the driver what happens; a context manager around the compilation."""

    def __enter__(self) -> Reporter: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, stage: str, done: int, total: int, seconds: float) -> None:
        """A stage has begun (`done` 0), goes on, or ends (`done` = `total`)."""

    def note(self, text: str) -> None:
        """A line that is worth showing."""

    def finish(self, path: Path, remark: str) -> None:
        """The compilation has written `path`, of which `remark` says something unless it is empty."""


def reporter(verbose: bool) -> Reporter:
    """Bars on a terminal unless `verbose`, lines otherwise."""
    return Bars() if sys.stderr is not None and sys.stderr.isatty() and not verbose else Lines()


def say(text: str) -> None:
    """Prints a line to the standard error. That nobody reads it, or that it is closed, is no reason to stop."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)


def size_text(path: Path) -> str:
    """The size of a file for people."""
    return amount(path.stat().st_size)


class Lines:
    """One line for each stage that ends."""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, stage: str, done: int, total: int, seconds: float) -> None:
        """Prints the stage when it ends."""
        if done == total:
            count = f", {total} modules" if total > 1 else ""
            say(f"{stage:<10} {seconds:8.2f} s{count}")

    def note(self, text: str) -> None:
        """Prints the line."""
        say(text)

    def finish(self, path: Path, remark: str) -> None:
        """Prints the path, its size and the remark."""
        said = [size_text(path)] if path.is_file() else []
        said += [remark] if remark else []
        say(f"wrote {path} ({'; '.join(said)})" if said else f"wrote {path}")


class Bars(Lines):
    """A bar for each stage, in a live display."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:<10}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
        self._bars = Progress(*columns, console=Console(stderr=True, highlight=False))
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def update(self, stage: str, done: int, total: int, seconds: float) -> None:
        """Moves the stage's bar."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._tasks[stage], completed=done, total=total)

    def note(self, text: str) -> None:
        """Prints the line above the bars."""
        self._bars.console.print(text, markup=False)
