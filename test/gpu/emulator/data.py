"""Moving data and waiting (PTX ISA, "Data Movement", "Parallel Synchronization and Communication")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from gpu.emulator.decode import DTYPES, TABLE, Decoder, Read, decodes
from gpu.emulator.machine import FULL, LANES, WARP, Array, Run, Warp
from gpu.emulator.memory import BASE, Bytes, EmulationError
from gpu.emulator.parse import WIDTHS, Instruction

CLUSTER = 24  # bits of an address in shared memory below the number of its block, which counts from one
_SPACES = ("param", "global", "shared", "const", "local", "shared::cta", "shared::cluster")


def _nothing(d: Decoder, source: Instruction) -> Run:
    return lambda warp, mask: None


for _name in ("membar", "fence", "griddepcontrol", "setmaxnreg", "prefetch", "nanosleep", "pragma", "discard"):
    TABLE[_name] = _nothing


# -- memory ------------------------------------------------------------------------------------------------------------


def memories(warp: Warp, space: str, addresses: Array, mask: Array) -> list[tuple[Bytes, Array, Array]]:
    """The memories that the threads of a mask go to, the addresses there, and which threads these are."""
    chosen = LANES if mask is FULL else np.flatnonzero(mask)
    found = addresses if mask is FULL else addresses[chosen]
    if space in ("global", "const"):
        return [(warp.block.launch.memory, found, chosen)]
    if space == "shared":
        return [(warp.block.shared, found, chosen)]
    if space == "local":
        raise NotImplementedError("local memory")
    if space == "":
        is_global = found >= BASE
        result = [(warp.block.launch.memory, found[is_global], chosen[is_global])] if is_global.any() else []
        rest = ~is_global
        return [*result, (warp.block.shared, found[rest], chosen[rest])] if rest.any() else result
    owners = found >> CLUSTER
    result = []
    for owner in np.unique(owners):
        block = warp.block if owner == 0 else warp.block.cluster.blocks[int(owner) - 1]
        which = owners == owner
        result.append((block.shared, found[which] & ((1 << CLUSTER) - 1), chosen[which]))
    return result


def _space(source: Instruction) -> str:
    return next((p for p in source.parts[1:] if p in _SPACES), "")


@decodes("ld", "ldu")
def _ld(d: Decoder, source: Instruction) -> Run:
    kind, space = source.parts[-1], _space(source)
    targets = d.vector(source.operands[0])
    puts, width = [d.write(t) for t in targets], WIDTHS[kind]
    if space == "param":
        name, _, offset = source.operands[1].strip("[]").partition("+")
        start = int(offset or "0", 0)

        def load(warp: Warp, mask: Array) -> None:
            content = warp.block.launch.arguments[name][start : start + width * len(puts)]
            for put, value in zip(puts, np.frombuffer(content, DTYPES[kind]), strict=True):
                put(warp, np.full(WARP, value), mask)

        return load
    address = d.address(source.operands[1])
    whole = width * len(puts)

    def run(warp: Warp, mask: Array) -> None:
        found = np.zeros((WARP, whole), np.uint8)
        for memory, addresses, which in memories(warp, space, address(warp), mask):
            found[which] = memory.read(addresses, whole)
        values = found.view(DTYPES[kind])
        for number, put in enumerate(puts):
            put(warp, np.ascontiguousarray(values[:, number]), mask)

    return run


@decodes("st")
def _st(d: Decoder, source: Instruction) -> Run:
    kind, space = source.parts[-1], _space(source)
    reads = [d.read(v, kind) for v in d.vector(source.operands[1])]
    address = d.address(source.operands[0])

    def run(warp: Warp, mask: Array) -> None:
        values = np.ascontiguousarray(np.stack([r(warp) for r in reads], 1)).view(np.uint8)
        for memory, addresses, which in memories(warp, space, address(warp), mask):
            memory.write(addresses, values[which])

    return run


_ATOMIC: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "exch": lambda old, new: new,
}  # fmt: skip


@decodes("atom", "red")
def _atom(d: Decoder, source: Instruction) -> Run:
    kind, space, is_red = source.parts[-1], _space(source), source.parts[0] == "red"
    operands = ["_", *source.operands] if is_red else source.operands
    put, address = d.write(operands[0]), d.address(operands[1])
    reads = [d.read(o, kind) for o in operands[2:]]
    name = next(p for p in source.parts[1:] if p in (*_ATOMIC, "cas"))

    def run(warp: Warp, mask: Array) -> None:
        values, old = [r(warp) for r in reads], np.zeros(WARP, DTYPES[kind])
        for memory, addresses, which in memories(warp, space, address(warp), mask):
            before = memory.read(addresses, WIDTHS[kind])
            now = dict(zip(addresses.tolist(), before.view(DTYPES[kind])[:, 0], strict=True))
            for at, lane in zip(addresses.tolist(), which, strict=True):
                old[lane] = now[at]
                if name != "cas":
                    now[at] = _ATOMIC[name](now[at], values[0][lane])
                elif now[at] == values[0][lane]:
                    now[at] = values[1][lane]
            after = np.array([now[at] for at in addresses.tolist()], DTYPES[kind])
            memory.write(addresses, after[:, None].view(np.uint8))
        put(warp, old, mask)

    return run


@decodes("mapa")
def _mapa(d: Decoder, source: Instruction) -> Run:
    put, address, rank = d.write(source.operands[0]), d.read(source.operands[1], "u32"), d.read(source.operands[2], "u32")

    def run(warp: Warp, mask: Array) -> None:
        ranks = rank(warp)
        if (ranks[mask] >= len(warp.block.cluster.blocks)).any():
            raise EmulationError(f"block {ranks[mask].max()} of a cluster of {len(warp.block.cluster.blocks)}")
        put(warp, address(warp) | (ranks + np.uint32(1)) << np.uint32(CLUSTER), mask)

    return run


# -- threads of a warp -------------------------------------------------------------------------------------------------


@decodes("shfl")
def _shfl(d: Decoder, source: Instruction) -> Run:
    target, *is_there = source.operands[0].split("|")
    put, value, distance, ends = d.write(target), *(d.read(o, "u32") for o in source.operands[1:4])
    mode = source.parts[2]
    other = d.write(is_there[0]) if is_there else None

    def run(warp: Warp, mask: Array) -> None:
        warp.need_all(mask)
        by, limits = distance(warp).astype(np.int64) & 31, ends(warp).astype(np.int64)
        segment, clamp = (limits >> 8) & 31, limits & 31
        low = LANES & segment
        high = low | (clamp & ~segment)
        at = {"idx": low | (by & ~segment), "bfly": LANES ^ by, "up": LANES - by, "down": LANES + by}[mode]
        inside = at >= high if mode == "up" else at <= high
        put(warp, value(warp)[np.where(inside, at, LANES)], mask)
        if other is not None:
            other(warp, inside, mask)

    return run


@decodes("vote")
def _vote(d: Decoder, source: Instruction) -> Run:
    put, asked = d.write(source.operands[0]), d.read(source.operands[1], "pred")
    mode = source.parts[2]

    def run(warp: Warp, mask: Array) -> None:
        warp.need_all(mask)
        votes = asked(warp)[mask]
        if mode == "ballot":
            bits = sum(1 << int(lane) for lane in np.flatnonzero(asked(warp) & mask))
            put(warp, np.full(WARP, bits, np.uint32), mask)
        else:
            put(warp, np.full(WARP, bool(votes.any() if mode == "any" else votes.all())), mask)

    return run


@decodes("activemask")
def _activemask(d: Decoder, source: Instruction) -> Run:
    put = d.write(source.operands[0])

    def run(warp: Warp, mask: Array) -> None:
        put(warp, np.full(WARP, sum(1 << int(lane) for lane in np.flatnonzero(mask)), np.uint32), mask)

    return run


@decodes("elect")
def _elect(d: Decoder, source: Instruction) -> Run:
    number, chosen = (d.write(o) for o in source.operands[0].split("|"))

    def run(warp: Warp, mask: Array) -> None:
        warp.need_all(mask)
        first = int(np.flatnonzero(mask)[0])
        number(warp, np.full(WARP, first, np.uint32), mask)
        chosen(warp, first == LANES, mask)

    return run


# -- barriers ----------------------------------------------------------------------------------------------------------


def _single(read: Read, warp: Warp, mask: Array) -> int:
    values = np.unique(read(warp)[mask])
    if len(values) != 1:
        raise EmulationError("threads of a warp name different barriers")
    return int(values[0])


@decodes("bar", "barrier")
def _bar(d: Decoder, source: Instruction) -> Run:
    what = source.parts[1] if source.parts[1] != "cta" else source.parts[2]
    if what == "warp":
        return lambda warp, mask: warp.need_all(mask)
    if what == "cluster":
        is_arrival = "arrive" in source.parts

        def meet(warp: Warp, mask: Array) -> None:
            warp.need_all(mask)
            (warp.block.cluster.arrive if is_arrival else warp.block.cluster.wait)(warp)

        return meet
    number, *rest = (d.read(o, "u32") for o in source.operands)

    def run(warp: Warp, mask: Array) -> None:
        warp.need_all(mask)
        threads = _single(rest[0], warp, mask) if rest else None
        act = warp.block.arrive if what == "arrive" else warp.block.synchronize
        act(warp, _single(number, warp, mask), threads)

    return run


@decodes("trap")
def _trap(d: Decoder, source: Instruction) -> Run:
    def run(warp: Warp, mask: Array) -> None:
        raise EmulationError("trap")

    return run


# -- copies of single threads ------------------------------------------------------------------------------------------


@decodes("cp.async")
def _cp_async(d: Decoder, source: Instruction) -> Run:
    """They are done when somebody waits for them, and no sooner."""
    if "commit_group" in source.parts:

        def commit(warp: Warp, mask: Array) -> None:
            groups = _groups(warp)
            groups.append([])

        return commit
    if "wait_group" in source.parts or "wait_all" in source.parts:
        left = int(source.operands[0]) if "wait_group" in source.parts else 0
        return lambda warp, mask: _finish(warp, left)
    target, origin = d.address(source.operands[0]), d.address(source.operands[1])
    size = int(source.operands[2])
    taken = d.read(source.operands[3], "u32") if len(source.operands) > 3 else None

    def run(warp: Warp, mask: Array) -> None:
        count = np.full(WARP, size) if taken is None else taken(warp).astype(np.int64)
        content, where = np.zeros((WARP, size), np.uint8), origin(warp)
        for bytes_ in np.unique(count[mask]):
            which = np.flatnonzero(mask & (count == bytes_))
            if bytes_:
                alignment = size if bytes_ == size else int(bytes_ & -bytes_)
                content[which, :bytes_] = warp.block.launch.memory.read(where[which], int(bytes_), alignment)
        _groups(warp)[-1].append((target(warp)[mask], content[mask]))

    return run


def _groups(warp: Warp) -> list[list[tuple[Array, Array]]]:
    groups: list[list[tuple[Array, Array]]] = warp.__dict__.setdefault("copies", [[]])
    return groups


def _finish(warp: Warp, left: int) -> None:
    """Completes all groups of copies but the last `left`."""
    groups = _groups(warp)
    while len(groups) - 1 > left:
        for addresses, content in groups.pop(0):
            warp.block.shared.write(addresses, content)
