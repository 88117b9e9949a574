"""Stopping after a phase and going on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlc


def gone_on(model: Path, phase: str, folder: Path, **options: Any) -> bytes:
    """The library of `model` by way of the file that `phase` leaves in `folder`; `options` are those of importing."""
    mlc.compile(model, output=folder / "model.mlir", emit=phase, **options)
    mlc.compile(folder / "model.mlir", output=folder / "model.so", from_phase=phase)
    return (folder / "model.so").read_bytes()


def compiled_again(model: Path, folder: Path, **options: Any) -> bytes:
    """The library of `model`, with nothing from the cache and every check."""
    mlc.compile(model, output=folder / "model.so", cache=False, verify_each=True, **options)
    return (folder / "model.so").read_bytes()
