"""Choosing blocks for attention on Hopper's tensor cores."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.attention_chain import Chain, chain_of
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.nvidia.hopper.attention_layout import HopperAttentionSchedule, layout, may_be_grouped
from mlc.kernels.nvidia.hopper.attention_result import rounded_result
from mlc.kernels.nvidia.hopper.groups import GROUP
from mlc.kernels.nvidia.tensor_cores.attention_operands import head_dims
from mlc.kernels.nvidia.tensor_cores.tiles import ROWS
from mlc.passes.schedule.attention_shares import ELEMENT, LONG_PART, Shares, Work, ranked_shares
from mlc.passes.schedule.hopper_cost import RESERVED, Schedule
from mlc.passes.schedule.matrices import ASSUMED, rows_of
from mlc.targets.nvidia import NvidiaTarget

MOST_STAGES = 4
WIDEST_COPIED = 128  # columns of a result that has room in shared memory
TILE_END = 64  # columns that accumulators of 128 keys must be multiples of: others take too many registers
FULL_ENOUGH = 0.8  # of the last round of pairs
DIAGONAL = 0.75  # of a block of keys that a causal mask cuts, on top of it
FEW_ROWS, MANY_KEYS = 64, 512  # from which on blocks share the keys of a tile
CACHED = 4096  # keys that only the run knows, of a cache
MOST_SHARED = 6  # schedules of blocks that share keys
ALONE = 2000  # clocks of a block of 128 keys and 128 columns that waits for itself


@dataclass(frozen=True)
class _Form:
    """Blocks of `consumers` times 64 queries and `keys` keys, `blocks` of them to a multiprocessor. `step` is the
    clocks of 64 queries with a block of keys where the multiprocessor is full, by head of 64 columns or more; `tile`
    those from the start of a tile to its end without them."""

    consumers: int
    keys: int
    blocks: int
    step: int
    tile: int


NARROW = (_Form(1, 128, 2, 1057, 1200), _Form(1, 64, 3, 560, 2600), _Form(3, 128, 1, 900, 2000))  # up to 64 columns
WIDE = (_Form(2, 128, 1, 1380, 2000), _Form(1, 64, 2, 900, 2500))  # up to 128
ODD = (_Form(2, 96, 1, 1200, 2000),)  # up to 192, and widths in between
WIDEST = (_Form(2, 64, 1, 1380, 3000),)
# Where something else than a scale and a causal mask is computed on the scores, which takes registers.
MASKED_NARROW = (_Form(1, 64, 2, 600, 1500),)
MASKED_WIDE = (_Form(2, 64, 1, 900, 2000),)


FEW = _Form(1, 64, 1, 0, 0)
LONG = _Form(1, 128, 1, 0, 0)
# Bytes of keys and values up to which a launch is early: one of 134 MB has taken 52 us instead of 38 (perhaps clusters
# crowd together that come where others end).
SOON = 12e6

_SHARING = ("split", "groups")


def choose_attention(source: KernelSource, attention: Attention, target: NvidiaTarget) -> Schedule:
    """The schedule of a kernel that is `attention`."""
    return ranked_attention(source, attention, target)[0]


def ranked_attention(source: KernelSource, attention: Attention, target: NvidiaTarget) -> list[Schedule]:
    """The schedules of a kernel that is `attention`, the best first."""
    shared = _shared(source, attention, target)
    if shared:
        return shared
    depth, width = head_dims(attention)
    chain, shape = chain_of(attention), _shape(source, attention)
    forms = sorted(
        _forms(max(depth, width), chain.is_plain),
        key=lambda form: _clocks(form, shape, max(depth, width), chain, target),
    )
    return [_named(_schedule(form, source, attention, target)) for form in forms]


def _shared(source: KernelSource, attention: Attention, target: NvidiaTarget) -> list[Schedule]:
    """Schedules whose blocks share the keys of few queries, the best first; none where the tiles fill the chip."""
    depth, width = head_dims(attention)
    tiles, rows, keys = _shape(source, attention)
    given = attention.scores.op.results[0].type.shape[-1]
    many = CACHED if given < 0 and rows_of(source) is None else keys
    chain = chain_of(attention)
    if chain.window is not None:
        many = min(many, chain.window + rows - 1)
    if rows > FEW_ROWS or many <= MANY_KEYS:
        return []
    may_be_long = chain.is_plain and max(depth, width) <= WIDEST_COPIED
    found: list[Schedule] = []
    work = Work(tiles, rows, many, depth, width)
    for shares in ranked_shares(work, target.sms):
        if shares == Shares(1, 1) or len(found) == MOST_SHARED:
            break
        is_long = may_be_long and many >= LONG_PART * shares.split * shares.groups
        form = LONG if is_long else FEW
        schedule = _schedule(form, source, attention, target, (shares.split, shares.groups))
        if shares.groups == 1 or may_be_grouped(source, attention, schedule):
            found.append(_named(schedule))
    is_small = tiles * keys * (depth + width) * ELEMENT <= SOON
    return found if is_small else [{**one, "early": 0} for one in found]


def _named(schedule: HopperAttentionSchedule) -> Schedule:
    names = [n for n in HopperAttentionSchedule.__dataclass_fields__ if n not in _SHARING or getattr(schedule, n) > 1]
    return {"template": "hopper_attention", "group": schedule.threads, **{n: getattr(schedule, n) for n in names}}


def _shape(source: KernelSource, attention: Attention) -> tuple[int, int, int]:
    """Matrices, their rows, and keys. Where they are known at run time only, matrices are few, and keys as many as
    rows."""
    assumed = rows_of(source) or ASSUMED
    shape, order = attention.output.op.results[0].type.shape, attention.output.order
    rows, keys = shape[order.index(attention.output.row)], attention.scores.op.results[0].type.shape[-1]
    heads = prod(max(1, shape[order.index(d)]) for d in attention.output.batch)
    return heads, rows if rows > 0 else assumed, keys if keys > 0 else assumed


def _forms(width: int, is_plain: bool) -> tuple[_Form, ...]:
    """The forms for heads of `width` columns; the first is preferred."""
    if width > 192:
        return WIDEST
    if width <= 64:
        return NARROW if is_plain else MASKED_NARROW
    if width > 128 or width % TILE_END:
        return ODD if is_plain else MASKED_WIDE
    return WIDE if is_plain else MASKED_WIDE


def _schedule(
    form: _Form, source: KernelSource, attention: Attention, target: NvidiaTarget, shares: tuple[int, int] = (1, 1)
) -> HopperAttentionSchedule:
    """With two tiles of queries where they fit, and as many stages as fit then. `shares` are the blocks of a cluster
    and the clusters that share keys."""
    consumers, keys, blocks = form.consumers, form.keys, form.blocks
    depth, width = head_dims(attention)
    element = str(attention.scores.element)
    room = (target.shared_memory_per_block + RESERVED) // blocks - RESERVED
    lanes = 4 if width % 4 == 0 else 1

    result = rounded_result(source, attention) if width <= WIDEST_COPIED and width % 16 == 0 else ""
    threads = GROUP * (consumers + 1)
    order = _order(form, source, attention, target)

    def made(queries: int, stages: int) -> HopperAttentionSchedule:
        return HopperAttentionSchedule(
            element, keys, stages, consumers, queries, result, lanes, order, blocks, target.sms, threads, *shares
        )

    most, counts = (MOST_STAGES, (2, 1)) if shares == (1, 1) else (2 * MOST_STAGES, (1,))
    sizes = [(queries, stages) for queries in counts for stages in range(most, 1, -1)]
    return next(s for s in (made(*size) for size in sizes) if layout(s, depth, width).total <= room)


def _clocks(form: _Form, shape: tuple[int, int, int], width: int, chain: Chain, target: NvidiaTarget) -> float:
    """Clocks that the kernel takes."""
    heads, rows, keys = shape
    tiles = heads * -(-rows // (ROWS * form.consumers))
    steps: float = -(-keys // form.keys)
    high = ROWS * form.consumers
    if any(limit.offset is not None for limit in chain.lasts):
        # Half of the blocks, and those on the diagonal take longer.
        steps = (steps + 1) / 2 + DIAGONAL * (high / form.keys + 1)
    if chain.window is not None:  # those of the window, and of either diagonal
        steps = min(steps, -(-(high + chain.window) // form.keys) + 2 * DIAGONAL * (high / form.keys + 1))
    together = min(form.blocks, -(-tiles // target.sms))
    alone = ALONE * form.keys * max(width, 64) / 128 / 128
    step = max(form.step * form.consumers * together, alone)
    return -(-tiles // (target.sms * form.blocks)) * (steps * step + form.tile)


def _order(form: _Form, source: KernelSource, attention: Attention, target: NvidiaTarget) -> str:
    """Pairs where they fill the chip; with few of them it is finished sooner when the longest tiles come first."""
    chain = chain_of(attention)
    if not chain.lasts or chain.window is not None:  # tiles have as many keys
        return "heads"
    heads, rows, _ = _shape(source, attention)
    units = heads * -(-rows // (2 * ROWS * form.consumers))
    rounds = units / (target.sms * form.blocks)
    return "pairs" if rounds / ceil(rounds) >= FULL_ENOUGH else "longest"
