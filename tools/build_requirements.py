#!/usr/bin/env python3
"""Prints what `[build-system] requires` of pyproject.toml lists, one requirement a line.

A development environment holds the build tools itself (`pip install --no-build-isolation`), so that CMake's
build folder stays valid between two builds and only what changed is compiled.
"""

from __future__ import annotations

import importlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    try:
        toml = importlib.import_module("tomllib")
    except ModuleNotFoundError:  # Python 3.10 has none, but pip carries one
        toml = importlib.import_module("pip._vendor.tomli")
    with open(ROOT / "pyproject.toml", "rb") as file:
        print("\n".join(toml.load(file)["build-system"]["requires"]))


if __name__ == "__main__":
    main()
