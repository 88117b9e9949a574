"""Processes that run a module of this package."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_START = "import runpy, sys; sys.path[0] = {root!r}; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"


def python_module(module: str) -> list[str]:
    """The command that runs `module` of the package that this file belongs to.

    `python -m` looks into the current folder first, where a checkout of this project, which has no native modules, or
    anything else that is called `mlc` would be taken for the package.
    """
    return [sys.executable, "-c", _START.format(root=str(_ROOT), module=module)]
