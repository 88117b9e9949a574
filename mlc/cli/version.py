"""The option `--version` of every command."""

from __future__ import annotations

from typing import Annotated

import typer


def _say(wanted: bool) -> None:
    if wanted:
        from mlc import __version__

        print(f"mlc {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_say, is_eager=True, help="say which version this is, and stop")
]
"""The type of a command's last parameter, `_version: Version = False`."""
