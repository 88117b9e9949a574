"""Choosing blocks for attention on Hopper's tensor cores."""

from __future__ import annotations

from math import prod

from mlc.kernels.common.attention import Attention
from mlc.kernels.nvidia.hopper.attention import HopperAttentionSchedule, layout
from mlc.kernels.nvidia.hopper.attention_logits import chain_of
from mlc.kernels.nvidia.hopper.attention_operands import head_dims
from mlc.kernels.nvidia.hopper.contraction import GROUP
from mlc.passes.schedule.hopper_cost import ASSUMED, RESERVED, Schedule
from mlc.targets.nvidia import NvidiaTarget

MOST_STAGES = 4
# Consumers, keys of a block, blocks of a multiprocessor, by the widest head that their registers are enough for.
FORMS = {
    64: ((1, 128, 2), (1, 64, 3)),
    128: ((2, 128, 1), (1, 64, 2)),
    256: ((2, 64, 1),),
}
# The same where something else than a scale and a causal mask is computed on the scores, which takes registers.
MASKED = {64: ((1, 64, 2),), 128: ((2, 64, 1),), 256: ((2, 64, 1),)}
# Clocks: of a block of 64 queries and as many keys on a multiprocessor that is full; of the same where it waits for
# itself; and from the start of a tile to its end without them.
FULL, ALONE, TILE = 5, 12, 2500


def choose_attention(attention: Attention, target: NvidiaTarget) -> Schedule:
    """The schedule of a kernel that is `attention`."""
    depth, width = head_dims(attention)
    type_, order = attention.output.op.results[0].type, attention.output.order
    extents = [ASSUMED if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]
    rows = extents[order.index(attention.output.row)]
    heads = prod(extents[order.index(d)] for d in attention.output.batch)
    keys = max(1, attention.scores.op.results[0].type.shape[-1])
    keys = ASSUMED if attention.scores.op.results[0].type.is_dynamic_dim(
        attention.scores.op.results[0].type.rank - 1) else keys  # fmt: skip
    forms = FORMS if chain_of(attention).is_plain else MASKED
    widest = next(w for w in forms if max(depth, width) <= w)
    best = min(
        (_schedule(form, attention, target) for form in forms[widest]),
        key=lambda s: _clocks(s, (heads, rows, keys), max(depth, width), target),
    )
    names = HopperAttentionSchedule.__dataclass_fields__
    return {"template": "hopper_attention", "group": best.threads, **{n: getattr(best, n) for n in names}}


def _schedule(form: tuple[int, int, int], attention: Attention, target: NvidiaTarget) -> HopperAttentionSchedule:
    consumers, keys, blocks = form
    depth, width = head_dims(attention)
    element = str(attention.scores.element)
    room = (target.shared_memory_per_block + RESERVED) // blocks - RESERVED
    lanes = 4 if width % 4 == 0 else 1

    def made(stages: int) -> HopperAttentionSchedule:
        threads = GROUP * (consumers + 1)
        return HopperAttentionSchedule(element, keys, stages, consumers, lanes, blocks, target.sms, threads)

    fitting = [s for s in range(2, MOST_STAGES + 1) if layout(made(s), depth, width).total <= room]
    return made(max(fitting))


def _clocks(
    s: HopperAttentionSchedule, shape: tuple[int, int, int], width: int, target: NvidiaTarget
) -> float:
    """Clocks that the kernel takes."""
    heads, rows, keys = shape
    tiles = heads * -(-rows // s.tile_rows)
    each = -(-tiles // target.sms)  # of a multiprocessor
    together = min(s.blocks, each)
    steps = -(-keys // s.keys)
    area = s.tile_rows * s.keys * width / 64 / 64
    step = max(FULL * area * together, ALONE * area / s.consumers) if together else 0
    return -(-each // s.blocks) * (steps * step + TILE)
