"""Choosing how kernels that move data walk through it: what is in which cache, and which lines collide there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlc.kernels.common.memory import ALONE
from mlc.passes.schedule.extents import ITEMS_WANTED, Extent, or_many

LINE = 64  # bytes of a line of the caches
STREAMED = 12 << 20  # bytes of a result from which on it would leave the caches before anybody reads it
STREAMED_ALONE = 7 << 20  # the same where one thread has all of it: several have more of the caches together. Not where
# writing waits for lines that were not fetched for it: then it is fetched for, as fast, and faster on several threads.
STREAMED_COLLIDING = 6 << 20  # the same, when its lines collide in the cache, where every one drives others out
STREAMED_JOINED = 8 << 20  # the same, when the results' lines begin anywhere: then it gains most
STREAMED_STRIP = 64  # squares of an item along such results' lines
JOINED_BESIDE = 4  # items side by side that are fetched together
JOINED_SIZE = 4  # bytes of elements that vectors exchange at any distance with one instruction
PAIRED_SIZE = 4  # bytes of elements whose pieces of lines fit into sixteen registers as vectors of two registers
STAGED_STRIPS = 4  # lines of the cache that lie side by side and go through a compact buffer one after the other
STAGED_HEIGHT = 128  # lines of the input that do so together
STAGED_RUN = 256  # bytes of a result's line that come of them at least
STAGED_NARROW = 256  # small elements go that way where lines are so many bytes apart, or a multiple of it
STAGED = 1 << 20  # bytes of an input of such elements from which on its tiles are fetched ahead
STREAMED_RUN = 1 << 10  # bytes that are written one behind the other past the caches
FETCHED = 1 << 11  # bytes of short lines that a copy is ahead of itself: the processor does not guess where they lie
COLLIDING = 1 << 10  # lines so many bytes apart, or a multiple of it, share few sets of the first cache
NEAR = 1 << 21  # bytes of an input that comes from a cache which is near enough without being fetched ahead
ITEM = 1 << 14  # bytes that make a work item worth its start
SQUARES = 4  # squares of an item along the results' lines
RUN = 16  # the same, where results collide: they are written in longer runs
PAIRED_RUN = 2  # the same of pieces of near lines, where registers are half a line of the cache
PAIRED_RUN_ONE_SET = 4  # and where the results' lines share one set
BESIDE = 2  # squares of such an item along the input's lines
FAR_BLOCK, FAR_HEIGHT = 8, 16  # squares of an item of small elements that come from memory, along each of its sides
FAR = 4  # how many squares before their turn what comes from memory is fetched, to be read and to be written
TURNED_ITEMS, TURNED_BLOCK = 12, 2  # items whose grid is turned, and squares of one along the input's lines at least
PANEL = 256  # bytes of the input's lines that an item takes when it walks along the results' lines to their ends
NARROW_PANEL = 128  # the same, of elements of one or two bytes, whose squares are higher
SHARED = 128  # lines so many bytes apart, or a multiple of it, do not have all sets of the first cache to themselves
HIGH = 16  # squares that such an item has at least along the results' lines
ONE_SET = 1 << 12  # lines so many bytes apart share one set of the first cache
WAYS = 8  # lines that a set holds
CLAIMED = 32  # lines of results that are written side by side, where those of the next squares are fetched for it
FEW_SETS = 1 << 11  # sixteen lines so many bytes apart, or a multiple of it, drive each other out of the first cache


@dataclass(frozen=True)
class Matrices:
    """What is transposed: `outer` matrices, whose input has lines of `read` elements and whose results have lines of
    `write`. `sizes` are the bytes of an element of the input and of the results, which are `dense` where a matrix's
    lines follow each other. A load takes pieces of `piece` elements. `claims`: the target writes faster to lines that
    were fetched for it.
    """

    read: Extent
    write: Extent
    outer: Extent
    piece: int
    sizes: Sequence[int]
    dense: bool
    claims: bool = False


def transposing_walk(matrices: Matrices, lanes: int, register: int) -> dict[str, int | str]:
    """The parameters `line`, `block`, `height`, `down`, `ahead` and `stream` of a transposition.

    Where a register, of `register` bytes, is half a line of the cache, two of them make a vector (`lanes` is among the
    parameters then): results are written in whole lines, soon after each other or past the caches. Small elements do so
    in a compact buffer alone: elsewhere their squares would take more registers than there are.
    """
    read, write, outer, sizes = matrices.read, matrices.write, matrices.outer, matrices.sizes
    fits = 2 * register == LINE and lanes * sizes[0] == register
    if fits and read is not None and write is not None and outer is not None:
        pairs = _walk(matrices, 2 * lanes, paired=True)
        staged, near = "template" in pairs, read * write * outer * sizes[0] <= NEAR
        if sizes[0] < PAIRED_SIZE:
            wanted = staged and read * write * outer * sizes[0] >= STAGED
        elif near:  # registers exchange whole lines in fewer steps, if those are not so far apart that they need pairs
            wanted = read * sizes[0] % COLLIDING != 0 or read * sizes[0] % FEW_SETS == 0
        else:  # lines that begin anywhere are not written as wholes
            wanted = all(write * size % LINE == 0 for size in sizes[1:])
        if wanted and min(read, write) >= 2 * lanes:
            return {"lanes": 2 * lanes, **pairs}
    if lanes * sizes[0] == 2 * LINE == 2 * register and not matrices.claims:  # a register is a line of the cache
        single = _walk(matrices, lanes // 2)
        if single["stream"]:
            return {**single, "lanes": lanes // 2}
    plain = _walk(matrices, lanes)
    if matrices.claims and lanes * sizes[0] == LINE and min(or_many(read), or_many(write)) >= lanes:
        return _claimed(plain, matrices, lanes)
    return _turned(plain, matrices, lanes)


def _claimed(plain: dict[str, int | str], matrices: Matrices, lanes: int) -> dict[str, int | str]:
    """The parameters where stores wait for the lines that they write to, and vectors that lie across two of them for
    both: the lines of squares that come soon are fetched to be written. `plain` are the parameters without.

    An item is a strip as wide as `CLAIMED` lines of the results, which it writes from their beginning to their end.
    Lines that drive each other out of the first cache, so that what was fetched is gone before it is written, stay as
    they were where the input's do not; where those collide as well, a strip is narrower (when all is in the second
    cache), or wider, which makes use of the neighbours that the processor fetches. Past the caches go these alone:
    others are written as fast into them. Lines of the results that are no longer than two of the cache are written one
    behind the other in any case.
    """
    read, write, outer = matrices.read, matrices.write, matrices.outer
    size, results = matrices.sizes[0], max(matrices.sizes[1:])
    moved = or_many(outer) * or_many(read) * or_many(write) * size
    small, near = size < JOINED_SIZE, 2 * moved <= NEAR
    kept = ONE_SET if write is None else _kept_lines(write * results)
    collide = read is not None and read * size % COLLIDING == 0
    if kept < CLAIMED and (plain["stream"] or not collide):
        return plain
    aligned = write is not None and write * results % LINE == 0
    if or_many(write) * results <= 2 * LINE or (small and (plain["stream"] or (near and aligned))):
        return plain
    if small and "template" in plain:
        return {**plain, "block": 2 * lanes, "height": 2 * lanes, "claim": 1} if plain["ahead"] else plain
    width = min(max(lanes, CLAIMED), kept)
    if width < lanes or (width < CLAIMED and not near):
        width = SQUARES * lanes
    known = read is not None and write is not None and outer is not None
    line = lanes if collide or (known and moved > NEAR and not small) else matrices.piece
    if read is None or write is None or outer is None:
        return {"line": line, **_strip(width, HIGH * lanes), "claim": lanes // line}
    if read <= 2 * width:
        width = 0
    parts = -(-min(ITEMS_WANTED, moved // ITEM) // (outer * (-(-read // width) if width else 1)))
    height = max(HIGH * lanes, -(-write // (parts * lanes)) * lanes) if parts > 1 else write
    return {"line": line, **_strip(width, 0 if height >= write else height), "claim": lanes // line}


def _strip(block: int, height: int) -> dict[str, int | str]:
    """The parameters of strips whose lines are not fetched ahead to be read."""
    return {"block": block, "height": height, "down": 0, "ahead": 0, "stream": 0}


def _walk(matrices: Matrices, lanes: int, paired: bool = False) -> dict[str, int | str]:
    """The parameters with vectors of `lanes` elements, `paired` where they are two registers each.

    Pieces of lines are what costs least, unless the lines collide in the cache before their other pieces are loaded, or
    results are written past the caches, which takes whole lines of theirs. Where the results' lines collide alone, each
    is written in runs, so that little lies between two stores that touch neighbouring lines of the cache.
    """
    read, write, outer, piece, sizes = matrices.read, matrices.write, matrices.outer, matrices.piece, matrices.sizes
    total = None if read is None or write is None or outer is None else read * write * outer
    # Pieces spare pairs the exchange of whole vectors, for which there are too few registers.
    crowded = FEW_SETS if paired else COLLIDING
    whole = read is not None and read >= lanes and (read * sizes[0]) % crowded == 0
    collide = write is not None and any(write * size % COLLIDING == 0 for size in sizes[1:])
    stream = 0
    if total is not None and read is not None and read >= lanes:
        least = STREAMED_COLLIDING if whole and collide else STREAMED
        stream = _stream(total, write, lanes, sizes, least, least if matrices.claims else STREAMED_ALONE)
    if read is not None and write is not None and outer is not None:
        staged = _staged(read, write, outer, lanes, piece, sizes, stream, matrices.claims)
        if staged and (whole or not paired or sizes[0] < PAIRED_SIZE):
            return staged
    if stream:
        run = STREAMED_RUN // max(sizes[1:])
        return {"line": lanes, "block": run, "height": run, "down": 1, "ahead": 4, "stream": stream}
    if read is not None and write is not None and outer is not None and matrices.dense and not paired:
        joined = _joined(read, write, outer, lanes, lanes if whole else piece, sizes)
        if joined:
            return joined
    lines = read is not None and read >= lanes and read * sizes[0] % LINE == 0
    if read is not None and write is not None and collide and lines and not whole:
        near = total is not None and total * sizes[0] <= NEAR
        return _runs(read, write, lanes, piece, sizes, near, paired)
    if read is not None and write is not None and outer is not None and not collide and read >= lanes:
        panel = _panel(read, write, outer, lanes, piece, sizes, paired)
        if panel:
            return panel
    if total is not None and sizes[0] < JOINED_SIZE and total * sizes[0] >= STREAMED_ALONE and not matrices.claims:
        far = {"block": FAR_BLOCK * lanes, "height": FAR_HEIGHT * lanes, "down": 1, "ahead": FAR, "claim": FAR}
        return {"line": lanes if whole else piece, **far, "stream": 0}
    return _squares(matrices, lanes, whole, collide)


def _squares(matrices: Matrices, lanes: int, whole: bool, collide: bool) -> dict[str, int | str]:
    """The parameters of an ordinary transposition: `whole` lines are loaded or pieces of them, and the results' lines
    `collide` or do not.
    """
    read, write, outer, sizes = matrices.read, matrices.write, matrices.outer, matrices.sizes
    walk, height, block = {"down": 0, "ahead": 2}, SQUARES * lanes, 0
    if sizes[0] < 4 and not whole:
        walk = {"down": 1, "ahead": 0}
        if read is not None:  # the other pieces of its lines are read after a whole column
            height = max(lanes, min(height, _kept_lines(read * sizes[0])))
    elif (whole and collide) or (write is not None and any(write * size % FEW_SETS == 0 for size in sizes[1:])):
        # Of lines that follow each other the processor fetches the next one by itself; it waits for every single one.
        walk = {"down": 1, "ahead": 1}
    if read is not None and write is not None and outer is not None:
        moved = read * write * outer * sizes[0]
        wanted = min(ITEMS_WANTED, moved // ITEM)
        if moved <= NEAR:
            walk["ahead"] = 0
        # A line of the input is cut when nothing else is left: its squares follow each other in memory.
        while not walk["down"] and height > lanes and outer * -(-write // height) < wanted:
            height //= 2
        parts = -(-wanted // (outer * -(-write // height)))
        block = 0 if parts <= 1 else max(SQUARES * lanes, -(-read // parts // lanes) * lanes)
    return {"line": lanes if whole else matrices.piece, "block": block, "height": height, **walk, "stream": 0}


def _turned(plain: dict[str, int | str], matrices: Matrices, lanes: int) -> dict[str, int | str]:
    """The parameters of `plain` where items share lines of the results that are in the caches of processors: the grid
    goes along those first, as every line that two threads write to parts of wanders between them, and what a processor
    fetches behind a part is what the other one has written. Enough items for some threads are narrower.
    """
    read, write, outer = matrices.read, matrices.write, matrices.outer
    walks_down = plain["down"] or "template" in plain
    if read is None or write is None or outer is None or plain["stream"] or plain["ahead"] or not walks_down:
        return plain
    height, block = int(plain["height"]), int(plain["block"]) or read
    if not 0 < height < write or read * write * outer * matrices.sizes[0] > NEAR:
        return plain
    while outer * -(-write // height) * -(-read // block) < TURNED_ITEMS and block >= 2 * TURNED_BLOCK * lanes:
        block = -(-block // (2 * lanes)) * lanes
    return {**plain, "block": block, "turned": 1}


def _staged(
    read: int, write: int, outer: int, lanes: int, piece: int, sizes: Sequence[int], stream: int, claims: bool
) -> dict[str, int | str]:
    """The parameters of a transposition through a compact buffer: of long lines that are written past the caches, and
    of lines that collide in them, unless the input is near and they collide so much that vectors hold them whole. Empty
    elsewhere. What waits for lines that were not fetched for it gains nothing from that for results alone (`claims`).
    """
    size, moved = sizes[0], read * write * outer * sizes[0]
    if set(sizes) != {size} or lanes * size != LINE or read % lanes or write % lanes:
        return {}
    loaded, stored = read * size, write * size
    if size < JOINED_SIZE:
        small = moved < STAGED
        narrow = loaded % STAGED_NARROW == 0
        wanted = (narrow and loaded % COLLIDING != 0) or (not small and narrow and stored % STAGED_NARROW == 0)
        wanted = wanted or (not small and stored % COLLIDING == 0)
    else:
        small = moved < STAGED
        wanted = moved >= NEAR and loaded % COLLIDING == 0 and stored % COLLIDING == 0
        wanted = wanted or (not claims and moved < NEAR and loaded % FEW_SETS != 0 and stored % ONE_SET == 0)
    if stream:  # short lines are runs as they are
        wanted = min(loaded, stored) > STREAMED_RUN or max(loaded, stored) % ONE_SET == 0
    if not wanted:
        return {}
    height = 2 * lanes if small and size < JOINED_SIZE else max(STAGED_HEIGHT, STAGED_RUN // size)
    strips = min(STAGED_STRIPS, piece)
    while strips * lanes > read:
        strips //= 2
    walk = {"line": lanes, "block": strips * lanes, "height": min(write, height), "down": 0}
    return {"template": "staged_transpose", **walk, "ahead": int(not small), "stream": stream}


def _runs(
    read: int, write: int, lanes: int, piece: int, sizes: Sequence[int], near: bool, paired: bool
) -> dict[str, int | str]:
    """The parameters of a transposition whose results' lines collide: items are few squares wide and more high. Where a
    register is half a line of the cache and the input is near and does not collide, pieces are loaded, so that few of
    the results' lines are written at a time.
    """
    if paired and near and read * sizes[0] % COLLIDING != 0:
        run = PAIRED_RUN_ONE_SET if any(write * size % ONE_SET == 0 for size in sizes[1:]) else PAIRED_RUN
        return {"line": piece, "block": BESIDE * lanes, "height": run * lanes, "down": 1, "ahead": 0, "stream": 0}
    beside, run = (BESIDE, RUN) if lanes * sizes[0] == LINE else (SQUARES, RUN // 2)
    squares = {"block": beside * lanes, "height": run * lanes}
    return {"line": lanes, **squares, "down": 1, "ahead": 0 if near else 1, "stream": 0}


def _joined(read: int, write: int, outer: int, lanes: int, line: int, sizes: Sequence[int]) -> dict[str, int | str]:
    """The parameters of a transposition that goes past the caches though its results' lines begin anywhere. Empty where
    it had better not, or where columns `lanes` apart do not begin alike in every matrix.
    """
    alike = outer == 1 or read * write % lanes == 0
    large = read * write * outer * sizes[0] >= STREAMED_JOINED and write * sizes[0] % LINE != 0
    if not (large and alike and lanes * sizes[0] == LINE and sizes[0] >= JOINED_SIZE and set(sizes) == {sizes[0]}):
        return {}
    parts = -(-write // (STREAMED_STRIP * lanes))
    height = -(-write // (parts * lanes)) * lanes if write >= parts * lanes else 0
    if write < 2 * lanes or write - (-(-write // height) - 1) * height < lanes:
        return {}
    walk = {"block": lanes, "height": height, "down": 1, "ahead": FAR, "beside": JOINED_BESIDE}
    return {"line": line, **walk, "stream": 1, "joined": 1}


def _panel(
    read: int, write: int, outer: int, lanes: int, piece: int, sizes: Sequence[int], paired: bool
) -> dict[str, int | str]:
    """The parameters of a transposition whose items are some lines of the cache wide and high as many squares as they
    can: a result's lines are written from their beginning to their end. That is a gain where they do not begin with a
    line of the cache, which then is completed soon after it was begun, and where they are short. Empty elsewhere.

    Where a register is half a line of the cache and no two are a vector, squares are loaded as whole registers, and
    near as the input is nothing is fetched ahead: so few of its lines stay in the first cache that it costs more.
    """
    size, moved = sizes[0], read * write * outer * sizes[0]
    aligned = all(write * s % LINE == 0 for s in sizes[1:])
    long = write * size > (2 if lanes * size == LINE else 4) * LINE
    if moved > NEAR or (aligned and long) or (size < 4 and write > lanes and read * size % SHARED != 0):
        return {}
    few_sets = read * size % FEW_SETS == 0
    if few_sets and (aligned or lanes * size < LINE):
        return {}
    wanted = min(ITEMS_WANTED, moved // ITEM)
    width = PANEL if size >= 4 or few_sets else NARROW_PANEL
    block = width // size if wanted > 1 else 0
    parts = -(-wanted // (outer * -(-read // block))) if block else 1
    height = max(HIGH * lanes, -(-write // (parts * lanes)) * lanes) if parts > 1 else write
    walk = {"block": block, "height": 0 if height >= write else height, "down": 0, "stream": 0}
    used = {"lanes": lanes // 2} if few_sets else {}
    squares = lanes // 2 if few_sets else lanes
    if size >= PAIRED_SIZE and 2 * squares * size == LINE and (paired or not few_sets):
        return {**walk, "line": squares, "ahead": 0, **used}
    return {**walk, "line": piece, "ahead": LINE // (piece * size), **used}


def _kept_lines(distance: int) -> int:
    """How many lines so many bytes apart stay in the first level of cache, of 64 sets of 8."""
    return WAYS * min(ONE_SET // LINE, ONE_SET // math.gcd(distance, ONE_SET))


def copy_past_caches(total: Extent, line: Extent, front: Extent, lanes: int, sizes: Sequence[int]) -> dict[str, int]:
    """The parameters `stream` and `ahead` of what is copied along lines of `line` elements, `total` elements in all;
    `front` is the extent of the dimension in front of the lines. None where it had better not go past the caches.
    """
    if total is None or line is None or not _stream(total, line, lanes, sizes, STREAMED, STREAMED):
        return {}
    ahead = min(FETCHED // (line * max(sizes)), (front or 1) - 1)
    return {"stream": 1, **({"ahead": ahead} if ahead else {})}


def _stream(total: int, write: Extent, lanes: int, sizes: Sequence[int], least: int, alone: int) -> int:
    """The parameter `stream`: 1 where the results have `least` bytes and all their lines begin where a line of the
    caches does, `ALONE` where they have as many as are too many for the caches of one thread.
    """
    for size in sizes[1:]:
        if lanes * size != LINE or write is None or write * size % LINE:
            return 0
    smallest = total * min(sizes[1:])
    return 1 if smallest >= least else ALONE if smallest >= alone else 0
