"""NVIDIA targets, as data: what a chip has that schedules and templates ask about."""

from __future__ import annotations

from dataclasses import dataclass

from mlc.targets.claims import CLAIMS


@dataclass(frozen=True)
class NvidiaTarget:
    """A GPU architecture to generate code for; memory sizes are in bytes.

    `name` is what `resolve` takes, `arch` is what ptxas gets, `claims` are the composites that stay whole.
    """

    name: str
    arch: str
    sms: int
    shared_memory_per_block: int
    registers_per_sm: int
    l2_cache: int
    memory_bandwidth: float  # bytes a second
    peak_bf16: float  # FLOP/s of the tensor cores, dense
    has_wgmma: bool = True
    has_tma: bool = True
    claims: frozenset[str] = CLAIMS["nvidia"]

    @property
    def target(self) -> str:
        """The value of `mlc.target`."""
        return f"nvidia:{self.name}"

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability, as (9, 0) of sm_90a."""
        digits = self.arch.removeprefix("sm_").rstrip("af")
        return int(digits[:-1]), int(digits[-1])

    @property
    def driver(self) -> int:
        """The lowest driver version, as `cuDriverGetVersion` gives it, that takes PTX of `features`."""
        return 12000

    @property
    def features(self) -> str:
        """PTX features for LLVM."""
        return "+ptx80" if self.arch.startswith("sm_90") else ""


H200 = NvidiaTarget(
    name="h200",
    arch="sm_90a",
    sms=132,
    shared_memory_per_block=227 * 1024,
    registers_per_sm=65536,
    l2_cache=50 * 1024 * 1024,
    memory_bandwidth=4.8e12,
    peak_bf16=989e12,
)
H100 = NvidiaTarget(
    name="h100",
    arch="sm_90a",
    sms=132,
    shared_memory_per_block=227 * 1024,
    registers_per_sm=65536,
    l2_cache=50 * 1024 * 1024,
    memory_bandwidth=3.35e12,
    peak_bf16=989e12,
)

NAMED: dict[str, NvidiaTarget] = {target.name: target for target in (H100, H200)}
"""Known chips by name."""


def resolve(name: str) -> NvidiaTarget:
    """The chip `name`. Raises ValueError for an unknown one."""
    if name not in NAMED:
        raise ValueError(f"unknown GPU '{name}'; known are {', '.join(NAMED)}")
    return NAMED[name]
