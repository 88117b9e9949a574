"""The copy engine and its barriers (PTX ISA, "mbarrier" and "Tensors"). A copy is done when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gpu.emulator.arithmetic import PARAMETERS, to_tf32
from gpu.emulator.data import CLUSTER
from gpu.emulator.decode import Decoder, decodes
from gpu.emulator.machine import Array, Block, Run, WaitError, Warp
from gpu.emulator.memory import EmulationError, Memory
from gpu.emulator.parse import Instruction
from gpu.emulator.tensor_cores import swizzled

_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # bytes -> bits that are mixed
_DESTINATION = 128  # bytes that copies are aligned to
_PLAIN_DESTINATION = 16


@dataclass
class MBarrier:
    """A barrier in shared memory: it completes a phase when `count` have arrived and all announced bytes have come."""

    count: int
    missing: int
    bytes: int = 0
    phase: int = 0

    def change(self, arrivals: int, announced: int) -> None:
        """So many arrivals, and bytes that are to come (or have come, if negative)."""
        self.missing -= arrivals
        self.bytes += announced
        if self.missing < 0:
            raise EmulationError("more arrivals than the barrier expects")
        if self.missing == 0 and self.bytes == 0:
            self.missing, self.phase = self.count, self.phase + 1


def _barrier(warp: Warp, address: int) -> MBarrier:
    owner = address >> CLUSTER
    block = warp.block if owner == 0 else warp.block.cluster.blocks[owner - 1]
    return _of(block, address & ((1 << CLUSTER) - 1))


def _of(block: Block, address: int) -> MBarrier:
    found: MBarrier | None = block.mbarriers.get(address)
    if found is None:
        raise EmulationError(f"no barrier at {address:#x}")
    return found


@decodes("mbarrier")
def _mbarrier(d: Decoder, source: Instruction) -> Run:
    what = source.parts[1]
    if what == "init":
        address, count = d.address(source.operands[0]), d.read(source.operands[1], "u32")

        def make(warp: Warp, mask: Array) -> None:
            for lane in np.flatnonzero(mask):
                number = int(count(warp)[lane])
                warp.block.mbarriers[int(address(warp)[lane])] = MBarrier(number, number)

        return make
    if what == "try_wait" or what == "test_wait":
        put, address = d.write(source.operands[0]), d.address(source.operands[1])
        parity = d.read(source.operands[2], "u32")

        def wait(warp: Warp, mask: Array) -> None:
            for lane in np.flatnonzero(mask):
                if _of(warp.block, int(address(warp)[lane])).phase & 1 == int(parity(warp)[lane]):
                    raise WaitError
            put(warp, np.ones(len(mask), bool), mask)

        return wait
    if what in ("inval", "fence"):
        return lambda warp, mask: None
    is_arrival, announces = what == "arrive", "expect_tx" in source.parts
    operands = source.operands[1:] if is_arrival else source.operands
    address = d.address(operands[0])
    amount = d.read(operands[1], "u32") if len(operands) > 1 else None

    def change(warp: Warp, mask: Array) -> None:
        for lane in np.flatnonzero(mask):
            value = 1 if amount is None else int(amount(warp)[lane])
            arrivals, bytes_ = (1, value) if announces and is_arrival else (value, 0) if is_arrival else (0, value)
            _barrier(warp, int(address(warp)[lane])).change(arrivals, bytes_)

    return change


# -- tensors -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tensor:
    """What a tensor map says: the address of a tensor of elements of `size` bytes, its extents and the strides in bytes
    of all dimensions, the contiguous one first; the extents of a copy and the bytes of its pattern. With `pixels` a
    copy brings as many windows' elements: in the dimensions between channels and images these begin at `low`, end
    `high` from the ends and are `step` apart."""

    address: int
    element: str
    size: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    pixels: int = 0
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    step: tuple[int, ...] = ()

    def points(self, at: Sequence[int], offsets: Sequence[int]) -> Array:
        """The coordinates of what a copy from `at` brings: a row for each element, in the order of shared memory."""
        if self.pixels:
            return self._windows(at, offsets)
        grid = np.meshgrid(*(np.arange(n) for n in reversed(self.box)), indexing="ij")
        return np.stack([g.reshape(-1) for g in reversed(grid)], 1) + np.array(at)

    def _windows(self, at: Sequence[int], offsets: Sequence[int]) -> Array:
        place, rows = list(at[1:]), []
        for _ in range(self.pixels):
            rows.append([p + o for p, o in zip(place, [*offsets, 0], strict=True)])
            for axis, extent in enumerate(self.extents[1:-1]):
                place[axis] += self.step[axis]
                if place[axis] <= extent - 1 + self.high[axis]:
                    break
                place[axis] = self.low[axis]
            else:
                place[-1] += 1
        channels = at[0] + np.arange(self.box[0])
        return np.array([[c, *row] for row in rows for c in channels])

    def inside(self, points: Array) -> Array:
        """Which points there are."""
        return ((points >= 0) & (points < np.array(self.extents))).all(1)

    def addresses(self, points: Array) -> Array:
        """Where they lie."""
        return self.address + points @ np.array(self.strides)

    def places(self, start: int, count: int) -> Array:
        """Where `count` elements from byte `start` on lie in shared memory."""
        if start % (_DESTINATION if self.swizzle else _PLAIN_DESTINATION):
            raise EmulationError(f"a copy to byte {start:#x} of the shared memory, which is not aligned")
        return swizzled(start + np.arange(count) * self.size, _SWIZZLES[self.swizzle])

    def load(self, memory: Memory, at: Sequence[int], offsets: Sequence[int]) -> Array:
        """The elements, as bytes; zeros where there are none."""
        points = self.points(at, offsets)
        inside = self.inside(points)
        found = np.zeros((len(points), self.size), np.uint8)
        found[inside] = memory.read(self.addresses(points[inside]), self.size)
        if self.element == "tf32":
            return to_tf32(found.view(np.float32)[:, 0].copy())[:, None].view(np.uint8)
        return found


def _words(d: Decoder, text: str) -> list[str]:
    return [v.strip() for v in text.strip().strip("{}").split(",")]


def _tensor(d: Decoder, warp: Warp, address: int) -> Tensor:
    name = list(d.module.parameters)[address - PARAMETERS]
    found: Tensor = warp.block.launch.maps[name]
    return found


def _split(text: str) -> tuple[str, str]:
    """`[map, {coordinates}]`."""
    name, _, coordinates = text.strip("[]").partition(",")
    return f"[{name.strip()}]", coordinates.strip()


@decodes("cp.async.bulk")
def _bulk(d: Decoder, source: Instruction) -> Run:
    if "commit_group" in source.parts or "wait_group" in source.parts or "prefetch" in source.parts:
        return lambda warp, mask: None
    if "tensor" not in source.parts:
        raise NotImplementedError(source.name)
    is_store = source.parts.index("global") < next(i for i, p in enumerate(source.parts) if p.startswith("shared"))
    return _store(d, source) if is_store else _load(d, source)


def _load(d: Decoder, source: Instruction) -> Run:
    described, where = _split(source.operands[1])
    target, pointer, barrier = d.address(source.operands[0]), d.address(described), d.address(source.operands[2])
    coordinates = [d.read(c, "s32") for c in _words(d, where)]
    rest = source.operands[3:]
    offsets = [d.read(o, "s32") for o in _words(d, rest.pop(0))] if rest and rest[0].startswith("{") else []
    blocks = d.read(rest[0], "b16") if "multicast::cluster" in source.parts else None

    def run(warp: Warp, mask: Array) -> None:
        for lane in np.flatnonzero(mask):
            tensor = _tensor(d, warp, int(pointer(warp)[lane]))
            at, shifts = ([int(r(warp)[lane]) for r in reads] for reads in (coordinates, offsets))
            content = tensor.load(warp.block.launch.memory, at, shifts)
            start, signal = int(target(warp)[lane]), int(barrier(warp)[lane])
            chosen = [warp.block]
            if blocks is not None:
                bits = int(blocks(warp)[lane])
                chosen = [b for b in warp.block.cluster.blocks if bits >> b.rank & 1]
            for block in chosen:
                block.shared.write(tensor.places(start, len(content)), content)
                _of(block, signal).change(0, -content.size)

    return run


def _store(d: Decoder, source: Instruction) -> Run:
    described, where = _split(source.operands[0])
    pointer, origin = d.address(described), d.address(source.operands[1])
    coordinates = [d.read(c, "s32") for c in _words(d, where)]

    def run(warp: Warp, mask: Array) -> None:
        for lane in np.flatnonzero(mask):
            tensor = _tensor(d, warp, int(pointer(warp)[lane]))
            points = tensor.points([int(c(warp)[lane]) for c in coordinates], [])
            inside = tensor.inside(points)
            places = tensor.places(int(origin(warp)[lane]), len(points))[inside]
            warp.block.launch.memory.write(
                tensor.addresses(points[inside]), warp.block.shared.read(places, tensor.size)
            )

    return run

