"""NVIDIA targets, as data: what a chip has that schedules and templates ask about."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlc.targets.claims import CLAIMS

# The oldest driver, as `cuDriverGetVersion` gives it, that takes PTX of a version.
_DRIVERS = {80: 12000, 86: 12070}


@dataclass(frozen=True)
class NvidiaTarget:
    """A GPU architecture to generate code for; memory sizes are in bytes.

    `name` is what `resolve` takes, `arch` is what ptxas gets, `ptx` is the version of PTX times ten: the lowest that
    has what templates use, for the sake of older drivers. `products` are those of bf16 with sums of f32 in a clock of a
    multiprocessor; `has_wgmma` says whether they are instructions of four warps on shared memory (Hopper's templates)
    or of one warp on registers (`mma.sync`). `claims` are the composites that stay whole. `tried` says on which chips
    the code has run; without any it has only been compiled.
    """

    name: str
    arch: str
    sms: int
    shared_memory_per_block: int
    registers_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    l2_cache: int
    memory_bandwidth: float  # bytes a second
    peak_bf16: float  # FLOP/s of the tensor cores, dense
    products: int
    ptx: int = 80
    has_wgmma: bool = False
    tried: str = ""
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

    def blocks_held(self, threads: int) -> int:
        """How many blocks of `threads` a multiprocessor can hold, if their registers and memory let it."""
        return min(self.threads_per_sm // threads, self.blocks_per_sm)

    @property
    def overlaps(self) -> bool:
        """Can blocks of a launch be on the chip while the one in front of it ends?"""
        return self.capability >= (9, 0)

    @property
    def has_clusters(self) -> bool:
        """Can blocks of a launch reach each other's shared memory?"""
        return self.capability >= (9, 0)

    @property
    def driver(self) -> int:
        """The lowest driver version, as `cuDriverGetVersion` gives it, that takes PTX of `features`."""
        return _DRIVERS[self.ptx]

    @property
    def features(self) -> str:
        """PTX features for LLVM."""
        return f"+ptx{self.ptx}"

    @property
    def status(self) -> str:
        """Whether anybody has seen the code run."""
        return f"run on {self.tried}" if self.tried else "compiled, never run"


H200 = NvidiaTarget(
    name="h200",
    arch="sm_90a",
    sms=132,
    shared_memory_per_block=227 * 1024,
    registers_per_sm=65536,
    threads_per_sm=2048,
    blocks_per_sm=32,
    l2_cache=50 * 1024 * 1024,
    memory_bandwidth=4.8e12,
    peak_bf16=989e12,
    products=2048,
    has_wgmma=True,
    tried="an H200",
)
H100 = replace(H200, name="h100", memory_bandwidth=3.35e12)
SM_90A = replace(H100, name="sm_90a")
SM_80 = NvidiaTarget(  # A100
    name="sm_80",
    arch="sm_80",
    sms=108,
    shared_memory_per_block=163 * 1024,
    registers_per_sm=65536,
    threads_per_sm=2048,
    blocks_per_sm=32,
    l2_cache=40 * 1024 * 1024,
    memory_bandwidth=1.555e12,
    peak_bf16=312e12,
    products=1024,
    tried="an H200, from PTX",
)
SM_86 = NvidiaTarget(  # A10; of its family are the RTX 3090 and others
    name="sm_86",
    arch="sm_86",
    sms=72,
    shared_memory_per_block=99 * 1024,
    registers_per_sm=65536,
    threads_per_sm=1536,
    blocks_per_sm=16,
    l2_cache=6 * 1024 * 1024,
    memory_bandwidth=0.6e12,
    peak_bf16=125e12,
    products=512,
)
SM_89 = NvidiaTarget(  # L4; of its family are the RTX 4090 and others
    name="sm_89",
    arch="sm_89",
    sms=58,
    shared_memory_per_block=99 * 1024,
    registers_per_sm=65536,
    threads_per_sm=1536,
    blocks_per_sm=24,
    l2_cache=48 * 1024 * 1024,
    memory_bandwidth=0.3e12,
    peak_bf16=121e12,
    products=512,
)
SM_100A = NvidiaTarget(  # B200, by the instructions that it shares with older chips
    name="sm_100a",
    arch="sm_100a",
    sms=148,
    shared_memory_per_block=227 * 1024,
    registers_per_sm=65536,
    threads_per_sm=2048,
    blocks_per_sm=32,
    l2_cache=126 * 1024 * 1024,
    memory_bandwidth=8e12,
    peak_bf16=2250e12,
    products=1024,
    ptx=86,
)

NAMED: dict[str, NvidiaTarget] = {t.name: t for t in (H100, H200, SM_80, SM_86, SM_89, SM_90A, SM_100A)}
"""Known chips and architectures by name."""


def resolve(name: str) -> NvidiaTarget:
    """The chip or architecture `name`. Raises ValueError for an unknown one."""
    if name not in NAMED:
        raise ValueError(f"unknown GPU '{name}'; known are {', '.join(NAMED)}")
    return NAMED[name]


def resolve_all(names: str) -> tuple[NvidiaTarget, ...]:
    """The chips of a list with commas, each of another architecture. Raises ValueError for one that is unknown, or
    twice there."""
    targets = tuple(resolve(name.strip()) for name in names.split(","))
    known: dict[str, str] = {}
    for target in targets:
        if target.arch in known:
            raise ValueError(f"GPU '{target.name}' has the code of '{known[target.arch]}': name one of them")
        known[target.arch] = target.name
    return targets
