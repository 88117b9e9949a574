"""The machine: blocks whose warps take turns, their registers, and what they share.

A warp runs until it waits. Threads that come apart run one group after the other, the one that is furthest behind
first, and go on together where they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gpu.emulator.memory import EmulationError, Memory, SharedMemory
from gpu.emulator.parse import Instruction, Module

Array = np.ndarray
WARP = 32
FULL = np.ones(WARP, bool)
LANES = np.arange(WARP)
STORED = {0: np.bool_, 1: np.uint16, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class WaitError(Exception):
    """The warp waits: its instruction is to be executed again later."""


class DivergedError(Exception):
    """The instruction needs threads of the warp that are elsewhere."""


Run = Callable[["Warp", Array], None]


@dataclass
class Step:
    """A decoded instruction: `run` for the threads that execute it; a jump has a `target`."""

    run: Run | None
    guard: int
    negated: bool
    source: Instruction
    target: int = -1
    ends: bool = False


@dataclass
class Program:
    """A decoded entry: `widths` of the registers, its steps, where variables lie, and bytes of shared memory."""

    module: Module
    steps: list[Step]
    widths: list[int]
    places: dict[str, int]
    shared: int


class Warp:
    """32 threads; `fronts` are the groups that have come apart, by the place where each stands."""

    def __init__(self, block: Block, number: int) -> None:
        self.block, self.number, self.program = block, number, block.program
        self.registers: list[Array] = [_POISON[w] for w in self.program.widths]
        self.threads = number * WARP + LANES
        self.fronts: dict[int, Array] = {0: FULL}
        self.live = FULL
        self.bulk_stores = 0
        self.steps = 0

    def put(self, index: int, value: Array, mask: Array) -> None:
        """Sets a register of the threads `mask`."""
        self.registers[index] = value if mask is FULL else np.where(mask, value, self.registers[index])

    def need_all(self, mask: Array) -> None:
        """For instructions that all threads execute together."""
        if mask is not FULL and not np.array_equal(mask, self.live):
            raise DivergedError

    @property
    def is_done(self) -> bool:
        return not self.fronts

    def run(self) -> bool:
        """Until it waits, or ends. Whether it has come on."""
        before, parked = self.steps, set()
        while True:
            places = [place for place in self.fronts if place not in parked]
            if not places:
                if parked:
                    raise EmulationError(f"{self.where(min(parked))}: threads of the warp are elsewhere")
                return self.steps > before
            place = min(places)
            mask = self.fronts.pop(place)
            try:
                self._straight(place, mask, parked)
            except WaitError:
                return self.steps > before
            except DivergedError:
                parked.add(self.stopped)
                continue
            parked.clear()

    def where(self, place: int) -> str:
        """For people."""
        source = self.program.steps[place].source
        return f"line {source.line} ({source.name}), block {self.block.number}, warp {self.number}"

    def _add(self, place: int, mask: Array) -> None:
        other = self.fronts.get(place)
        both = mask if other is None else mask | other
        self.fronts[place] = FULL if both.all() else both

    def _straight(self, place: int, mask: Array, parked: set[int]) -> None:
        """Runs a group until it comes to a place where others stand, comes apart, is in front of others that are not
        `parked`, or ends."""
        steps = self.program.steps
        others = min((p for p in self.fronts if p > place), default=len(steps))
        while place < others:
            step = steps[place]
            active = mask
            if step.guard >= 0:
                asked = self.registers[step.guard]
                active = mask & (~asked if step.negated else asked)
                if not active.any():
                    place += 1
                    continue
                active = mask if (active == mask).all() else active
            if step.ends:
                self.steps += 1
                self._end(place, mask, active)
                return
            if step.target >= 0:
                self.steps += 1
                if active is not mask:
                    self._add(place + 1, mask & ~active)
                    self._add(step.target, active)
                    return
                place = step.target
                if any(p <= place and p not in parked for p in self.fronts) or place in self.fronts:
                    break
                others = min((p for p in self.fronts if p > place), default=len(steps))
                continue
            try:
                step.run(self, active)  # type: ignore[misc]
            except (WaitError, DivergedError):
                self.stopped = place
                self._add(place, mask)
                raise
            except EmulationError as error:
                raise EmulationError(f"{self.where(place)}: {error}") from None
            self.steps += 1
            place += 1
        self._add(place, mask)

    def _end(self, place: int, mask: Array, active: Array) -> None:
        self.live = self.live & ~active
        if active is not mask:
            self._add(place + 1, mask & ~active)


_POISON = {
    0: np.zeros(WARP, bool), 1: np.full(WARP, 0xCDCD, np.uint16), 2: np.full(WARP, 0xCDCD, np.uint16),
    4: np.full(WARP, 0xCDCDCDCD, np.uint32), 8: np.full(WARP, 0xCDCDCDCDCDCDCDCD, np.uint64),
}  # fmt: skip


@dataclass
class Barrier:
    """A barrier of a block or a cluster: who has come, and how often all have."""

    arrived: set[Any] = field(default_factory=set)
    phase: int = 0


class Block:
    """The warps of a block and its shared memory. `number` is its place in the grid, `rank` that in its cluster."""

    def __init__(self, cluster: Cluster, number: int, rank: int) -> None:
        self.cluster, self.number, self.rank = cluster, number, rank
        self.program, self.launch = cluster.launch.program, cluster.launch
        self.shared = SharedMemory(self.program.shared)
        self.barriers: dict[int, Barrier] = {}
        self.waiting: dict[tuple[int, int], int] = {}
        self.mbarriers: dict[int, Any] = {}
        self.warps = [Warp(self, n) for n in range(-(-cluster.launch.threads // WARP))]

    def synchronize(self, warp: Warp, number: int, threads: int | None) -> None:
        """Barrier `number` of `threads` threads, or of all."""
        barrier, key = self.barriers.setdefault(number, Barrier()), (warp.number, number)
        if key not in self.waiting:
            self.waiting[key] = barrier.phase
            self.arrive(warp, number, threads)
        if self.waiting[key] == barrier.phase:
            raise WaitError
        del self.waiting[key]

    def arrive(self, warp: Warp, number: int, threads: int | None) -> None:
        """Arrives at barrier `number`."""
        barrier = self.barriers.setdefault(number, Barrier())
        if warp.number in barrier.arrived:
            raise EmulationError(f"the warp has arrived at barrier {number} before")
        barrier.arrived.add(warp.number)
        warp.steps += 1
        needed = sum(not w.is_done or w is warp for w in self.warps) if threads is None else threads // WARP
        if len(barrier.arrived) == needed:
            barrier.arrived.clear()
            barrier.phase += 1


class Cluster:
    """Blocks that are on the machine together."""

    def __init__(self, launch: Launch, first: int, count: int) -> None:
        self.launch = launch
        self.barrier = Barrier()
        self.blocks = [Block(self, first + rank, rank) for rank in range(count)]
        self.phases: dict[tuple[int, int], int] = {}

    def arrive(self, warp: Warp) -> None:
        """`barrier.cluster.arrive`."""
        key = (warp.block.rank, warp.number)
        if key in self.phases:
            raise EmulationError("the warp has arrived at the cluster's barrier before")
        self.phases[key] = self.barrier.phase
        self.barrier.arrived.add(key)
        self._complete()

    def _complete(self) -> None:
        live = {(b.rank, w.number) for b in self.blocks for w in b.warps if not w.is_done or w.live.any()}
        if self.barrier.arrived >= live:
            self.barrier.arrived.clear()
            self.barrier.phase += 1

    def wait(self, warp: Warp) -> None:
        """`barrier.cluster.wait`."""
        key = (warp.block.rank, warp.number)
        self._complete()
        if key not in self.phases:
            raise EmulationError("the warp waits at the cluster's barrier and has not arrived")
        if self.phases[key] == self.barrier.phase:
            raise WaitError
        del self.phases[key]

    def run(self) -> None:
        """Until all warps are done. Raises EmulationError when nobody comes on any more."""
        while True:
            warps = [w for b in self.blocks for w in b.warps if not w.is_done]
            if not warps:
                return
            came_on = [w.run() for w in warps]
            if not any(came_on):
                stuck = "; ".join(w.where(min(w.fronts)) for w in warps if not w.is_done)
                raise EmulationError(f"all wait for each other: {stuck}")


@dataclass
class Launch:
    """One launch: `arguments` by the names of parameters, in bytes; `maps` are tensor maps by parameter."""

    program: Program
    memory: Memory
    threads: int
    blocks: int
    arguments: Mapping[str, bytes]
    maps: Mapping[str, Any]

    def run(self, order: Sequence[int] | None = None) -> None:
        """All clusters, in the order of their numbers or in another."""
        size = self.program.module.cluster
        with np.errstate(all="ignore"):
            for number in order if order is not None else range(self.blocks // size):
                Cluster(self, number * size, size).run()
