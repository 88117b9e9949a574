"""What this machine's processor can run."""

from __future__ import annotations

from functools import cache

import pytest

from mlc import _native
from mlc.targets.cpu import resolve


@cache
def runs_here(cpu: str) -> bool:
    """Does this machine have the vector instructions that code for `cpu` uses?"""
    host = _native.host_info()
    present = set(resolve("native", host).required.split(","))
    wanted = set(resolve(cpu, host).required.split(","))
    return cpu == "native" or {w for w in wanted if "avx" in w or "fma" in w} <= present


@cache
def has_tiles(cpu: str = "native") -> bool:
    """Does code for `cpu` multiply on matrix tiles?"""
    return resolve(cpu, _native.host_info()).bf16_tiles


def templates_of_bytes(cpu: str = "native") -> set[str]:
    """What multiplies integers of eight bits: quads of them, or words without `vpdpbusd`; tiles where there are any."""
    return {"dot_quads", "dot_words", *(["tile_product"] if has_tiles(cpu) else [])}


def skip_unless_it_runs(cpu: str) -> None:
    """Ends a test that would run code for a processor that this one is not."""
    if not runs_here(cpu):
        pytest.skip(f"this machine does not run code for {cpu}")
