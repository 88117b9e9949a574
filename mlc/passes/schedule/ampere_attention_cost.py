"""Choosing blocks for attention on the tensor cores of Ampere and later chips."""

from __future__ import annotations

from math import prod

from mlc.kernels.common.attention import Attention
from mlc.kernels.nvidia.ampere.attention import AmpereAttentionSchedule, shared_bytes
from mlc.kernels.nvidia.tensor_cores.attention_logits import chain_of
from mlc.kernels.nvidia.tensor_cores.attention_operands import head_dims
from mlc.kernels.nvidia.threads import WARP
from mlc.passes.schedule.ampere_cost import RESERVED, Schedule
from mlc.passes.schedule.matrices import ASSUMED
from mlc.targets.nvidia import NvidiaTarget

WARPS = 4
NARROW = 64  # columns up to which a warp may have 32 queries: more accumulators do not fit
MOST_BLOCKS = 4
REGISTERS = 80  # of a thread, beside its accumulators and queries


def choose_attention(attention: Attention, target: NvidiaTarget) -> Schedule:
    """The schedule of a kernel that is `attention`: warps with 32 queries where that leaves no multiprocessor idle."""
    depth, width = head_dims(attention)
    shape, order = attention.output.op.results[0].type.shape, attention.output.order
    rows = max(shape[order.index(attention.output.row)], 0) or ASSUMED
    heads = prod(max(1, shape[order.index(d)]) for d in attention.output.batch)
    is_small = max(depth, width) <= NARROW and chain_of(attention).is_plain
    warp_rows = 32 if is_small and heads * -(-rows // (32 * WARPS)) >= target.sms else 16
    threads, lanes = WARP * WARPS, 4 if width % 4 == 0 else 1
    element = str(attention.scores.element)
    made = AmpereAttentionSchedule(element, warp_rows * WARPS, warp_rows, lanes, threads, 1)
    needed = REGISTERS + warp_rows * (width + depth // 2 + 64) // WARP
    blocks = (target.shared_memory_per_block + RESERVED) // (shared_bytes(made, depth, width) + RESERVED)
    blocks = max(1, min(MOST_BLOCKS, blocks, target.registers_per_sm // (threads * needed)))
    return {
        "template": "ampere_attention", "group": threads, "element": element, "tile_rows": made.tile_rows,
        "warp_rows": warp_rows, "lanes": lanes, "threads": threads, "blocks": blocks,
    }  # fmt: skip
