"""Choosing blocks for attention on the tensor cores of Ampere and later chips."""

from __future__ import annotations

from dataclasses import asdict
from math import prod

from mlir import ir

from mlc.kernels.common.attention import Attention
from mlc.kernels.nvidia.ampere.attention import AmpereAttentionSchedule, shared_bytes
from mlc.kernels.nvidia.tensor_cores.attention_logits import chain_of
from mlc.kernels.nvidia.tensor_cores.attention_operands import head_dims
from mlc.kernels.nvidia.tensor_cores.tiles import ELEMENT_BYTES
from mlc.kernels.nvidia.threads import WARP
from mlc.passes.schedule.ampere_cost import RESERVED, Schedule
from mlc.passes.schedule.matrices import ASSUMED
from mlc.targets.nvidia import NvidiaTarget

WARPS = 4
NARROW = 64  # columns up to which a warp may have 32 queries: more accumulators do not fit
NARROW_F32 = 128  # the same where blocks of keys are half as large, and no mask takes registers
MOST_BLOCKS = 4
REGISTERS = 80  # of a thread, beside its accumulators and queries


def choose_attention(attention: Attention, target: NvidiaTarget) -> Schedule:
    """The schedule of a kernel that is `attention`, f32 as tf32: warps with 32 queries where that leaves no
    multiprocessor idle."""
    depth, width = head_dims(attention)
    shape, order = attention.output.op.results[0].type.shape, attention.output.order
    known = max(shape[order.index(attention.output.row)], 0)
    heads = prod(max(1, shape[order.index(d)]) for d in attention.output.batch)
    element = "tf32" if isinstance(attention.scores.element, ir.F32Type) else str(attention.scores.element)
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
    parameters = {name: value for name, value in asdict(made).items() if name != "blocks"}
    return {"template": "ampere_attention", "group": made.threads, **parameters, "blocks": blocks}


def _is_small(attention: Attention, element: str) -> bool:
    """Do the accumulators of 32 queries fit into the registers of a warp?"""
    chain = chain_of(attention)
    narrow = NARROW_F32 if element == "tf32" and chain.offset is None else NARROW
    return max(head_dims(attention)) <= narrow and chain.is_plain
