"""Importers of aten operators, one family a file; `load` registers them all."""

from __future__ import annotations

import importlib

FAMILIES = (
    "advanced", "attention", "blocks", "complex", "conv", "elementwise", "embedding", "factorizations", "floats",
    "gamma", "indexing", "linalg", "normalization", "order", "pool", "random", "recurrent", "reduction",
    "resample", "scalar", "scatter", "shape", "signal", "special",
)  # fmt: skip


def load() -> None:
    """Import every family, which registers its operators."""
    for family in FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
