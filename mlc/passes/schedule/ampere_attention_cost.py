"""Choosing blocks for attention on the tensor cores of Ampere and later chips, or multiplied exactly.

On tensor cores, warps have as many queries as accumulators fit and leave no multiprocessor idle. Of exact products the
model counts clocks: they bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from math import prod

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.attention_chain import chain_of
from mlc.kernels.nvidia.ampere.attention import AmpereAttentionSchedule, shared_bytes
from mlc.kernels.nvidia.ampere.exact import FEW, MANY, TERMS
from mlc.kernels.nvidia.tensor_cores.attention_operands import head_dims
from mlc.kernels.nvidia.tensor_cores.tiles import ELEMENT_BYTES
from mlc.kernels.nvidia.threads import WARP
from mlc.passes.schedule.ampere_cost import EXACT_LOAD, RESERVED, Schedule, fits_at_once
from mlc.passes.schedule.matrices import ASSUMED
from mlc.targets.nvidia import NvidiaTarget

WARPS = 4
NARROW = 64  # columns up to which a warp may have 32 queries: more accumulators do not fit
NARROW_F32 = 128  # the same where blocks of keys are half as large, and no mask takes registers
MOST_BLOCKS = 4
EXACT_REGISTERS = 70  # the same, of exact products
# Queries of a warp, and columns up to which their accumulators fit: of scores as they come, with what is behind a
# diagonal hidden, and with something else computed on them.
MOST_EXACT = {48: (64, 0, 0), 32: (128, 128, 64), 16: (256, 256, 256)}
MOST_SPREAD = 32  # queries of a warp with eight threads across a row: more would have a thread load more
TOGETHER = 2  # tiles of keys that warps with these take at a time, in a block of twice as many warps that is alone
SPREAD = 128  # columns beyond which eight threads across a row need all warps of a block, or ptxas spills
HIDDEN = 20  # registers for what a diagonal hides, where a thread has more to keep than one row
QUARTERS = 4  # of a multiprocessor, each of which multiplies for a warp at a time
POWER = 12  # clocks of a warp for a power of each of its threads
STEP = 400  # clocks of the barriers of a block of keys, and the first loads behind them
ALONE = 0.25  # of its clocks a warp waits for loads, unless others of its quarter go on: fitted to three tiles
REGISTERS = 80  # of a thread, beside its accumulators and queries


def choose_attention(attention: Attention, target: NvidiaTarget, precision: str) -> Schedule:
    """The schedule of a kernel that is `attention`, f32 as tf32 with that `precision`: warps with 32 queries where that
    leaves no multiprocessor idle."""
    depth, width = head_dims(attention)
    shape, order = attention.output.op.results[0].type.shape, attention.output.order
    known = max(shape[order.index(attention.output.row)], 0)
    heads = prod(max(1, shape[order.index(d)]) for d in attention.output.batch)
    element = str(attention.scores.element)
    if element == "f32" and precision == "tf32":
        element = precision
    if element == "f32":
        best = min(_exact(attention, target), key=lambda s: _clocks(attention, s, target))
        is_alone = fits_at_once(heads * -(-(known or ASSUMED) // best.tile_rows), best, target)
        return {**_fields(best), "early": 0} if is_alone else _fields(best)
    warp_rows, warps = 16, WARPS
    if _is_small(attention, element) and heads * -(-(known or ASSUMED) // (32 * WARPS)) >= target.sms:
        warp_rows = 32

    def made_of(warps: int) -> AmpereAttentionSchedule:
        lanes = 4 if width % 4 == 0 else 1
        return AmpereAttentionSchedule(element, warp_rows * warps, warp_rows, lanes, WARP * warps, 1)

    while warps > 1 and (
        shared_bytes(made_of(warps), depth, width) > target.shared_memory_per_block
        or known and heads * -(-known // (warp_rows * warps)) < target.sms
    ):
        warps //= 2  # smaller blocks, which fit, and for more multiprocessors
    made = made_of(warps)
    needed = REGISTERS + warp_rows * (width + depth * ELEMENT_BYTES[element] // 4 + made.line) // WARP
    blocks = (target.shared_memory_per_block + RESERVED) // (shared_bytes(made, depth, width) + RESERVED)
    blocks = max(1, min(MOST_BLOCKS, blocks, target.registers_per_sm // (made.threads * needed)))
    return _fields(replace(made, blocks=blocks))


def _fields(made: AmpereAttentionSchedule) -> Schedule:
    return {"template": "ampere_attention", "group": made.threads, **asdict(made)}


def _exact(attention: Attention, target: NvidiaTarget) -> Iterator[AmpereAttentionSchedule]:
    """All blocks that multiply f32 exactly, with as many beside each other as fit."""
    depth, width = head_dims(attention)
    chain = chain_of(attention)
    kind = 2 if not chain.is_plain else int(chain.is_bounded)
    room = target.shared_memory_per_block + RESERVED
    for warp_rows, across in product(MOST_EXACT, (FEW, MANY)):
        if width > MOST_EXACT[warp_rows][kind] or across == MANY and (kind == 2 or warp_rows > MOST_SPREAD):
            continue
        more = [(TOGETHER * WARPS, TOGETHER)] if across == MANY and warp_rows == WARP and width > NARROW else []
        for warps, together in [*more, (WARPS, 1), (WARPS // 2, 1), (1, 1)]:
            if across == MANY and width > SPREAD and warps < WARPS:
                continue
            lanes = 4 if width % 4 == 0 else 1
            rows = warp_rows * warps
            made = AmpereAttentionSchedule("f32", rows, warp_rows, lanes, WARP * warps, 1, across, together)
            needed = EXACT_REGISTERS + warp_rows * (made.columns(width) + made.keys + 4) // WARP
            needed += HIDDEN if kind == 1 and warp_rows != WARP else 0
            blocks = min(MOST_BLOCKS, room // (shared_bytes(made, depth, width) + RESERVED))
            if blocks > 0:
                yield replace(made, blocks=max(1, min(blocks, target.registers_per_sm // (made.threads * needed))))


def _clocks(attention: Attention, s: AmpereAttentionSchedule, target: NvidiaTarget) -> float:
    """Clocks that the quarters of a multiprocessor take for their warps: products, the loads of their operands, and the
    powers. Of the keys behind a diagonal, a tile reads those that its last row sees."""
    depth, width = head_dims(attention)
    shape, order = attention.output.op.results[0].type.shape, attention.output.order
    known = max(shape[order.index(attention.output.row)], 0)
    heads = prod(max(1, shape[order.index(d)]) for d in attention.output.batch)
    each_sm = -(-heads * -(-(known or ASSUMED) // s.tile_rows) // target.sms)
    rows, columns, pieces = s.warp_rows // s.apart, s.columns(width) // s.across, s.keys // TERMS
    keys = s.keys // s.across  # of a thread
    products = rows * keys * depth + rows * columns * s.keys
    loads = (rows + keys) * depth // TERMS + (rows + columns) * pieces
    warps = each_sm * s.threads // WARP
    shared = EXACT_LOAD * loads * min(warps, QUARTERS) / QUARTERS  # quarters that idle leave the others their loads
    beside = min(s.blocks, each_sm)
    taking_turns = max(1, beside * s.threads // WARP // QUARTERS)
    step = (products + shared + POWER * rows * keys) * (1 + ALONE / taking_turns) + STEP / beside
    is_causal = chain_of(attention).is_bounded
    seen = 1 + s.tile_rows / (known or ASSUMED) if is_causal else 1.0  # the same half of the keys for all is left out
    return -(-warps // QUARTERS) * step * seen / s.together


def _is_small(attention: Attention, element: str) -> bool:
    """Do the accumulators of 32 queries fit into the registers of a warp?"""
    chain = chain_of(attention)
    narrow = NARROW_F32 if element == "tf32" and not chain.is_bounded else NARROW
    return max(head_dims(attention)) <= narrow and chain.is_plain
