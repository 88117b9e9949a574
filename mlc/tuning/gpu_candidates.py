"""Which schedules are tried for a kernel on a GPU: those that the cost model ranks best, of every shape of tile.

What the model is unsure of is how shapes compare; of one shape it knows what is best. So the best schedules come first,
then the best of every other shape, and at the end what it does not model.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.kernels.common.analysis import root_operation
from mlc.kernels.common.attention import find_attention
from mlc.kernels.common.frame import KernelSource
from mlc.passes.schedule.assign_gpu_schedules import finished
from mlc.passes.schedule.depthwise_cost import ranked_depthwise
from mlc.passes.schedule.hopper_attention_cost import ranked_attention
from mlc.passes.schedule.hopper_cost import ranked
from mlc.targets.nvidia import NvidiaTarget
from mlc.tuning.cache import EXPLORED_ON_GPUS, Schedule, fixed_part

TUNED = tuple(EXPLORED_ON_GPUS)
MOST = {"hopper_contraction": 10, "hopper_attention": 6, "depthwise": 5}
_BEST = 4  # of all shapes
_RASTERS = (4, 16)
_SHAPES = {
    "hopper_contraction": ("tile_rows", "tile_columns", "resident", "turns", "fetched", "turned"),
    "hopper_attention": ("consumers", "keys", "split", "order"),
    "depthwise": ("rows", "columns", "lanes"),
}


def legal_schedules(source: KernelSource, target: NvidiaTarget, precision: str, template: str) -> list[Schedule]:
    """All schedules of a kernel that its template takes, the cost model's first."""
    root = root_operation(source)
    found: list[Schedule] = []
    if template == "hopper_contraction":
        found = ranked(source, root, target, precision)
    elif template == "hopper_attention" and (attention := find_attention(source)) is not None:
        found = ranked_attention(source, attention, target)
        found += _orders(found)
    elif template == "depthwise":
        found = ranked_depthwise(root, target)
    return [finished(one, target) for one in found]


def candidates(
    source: KernelSource, default: Schedule, target: NvidiaTarget, precision: str
) -> list[Schedule]:
    """Schedules to try beside `default`, at most MOST, the likely ones first."""
    template = str(default["template"])
    legal = [s for s in legal_schedules(source, target, precision, template) if fixed_part(s) == fixed_part(default)]
    found = [*legal[:_BEST], *_each(legal, _SHAPES[template]), *_each(legal, (*_SHAPES[template], "blocks"))]
    if template == "hopper_contraction":
        found[2:2] = [{**default, "raster": raster} for raster in _RASTERS]
    kept: list[Schedule] = []
    for one in found:
        if one != default and one not in kept:
            kept.append(one)
    return kept[: MOST[template]]


def _each(legal: Sequence[Schedule], names: Sequence[str]) -> list[Schedule]:
    """The first schedule with each set of values of the parameters `names`."""
    found: dict[tuple[int | str, ...], Schedule] = {}
    for one in legal:
        found.setdefault(tuple(one.get(name, 1) for name in names), one)
    return list(found.values())


def is_legal(source: KernelSource, schedule: Schedule, target: NvidiaTarget, precision: str) -> bool:
    """Would the template of `schedule` take it for this kernel? Whatever its order of tiles, early or not."""
    free = {"raster": 0, "early": 0}
    legal = legal_schedules(source, target, precision, str(schedule["template"]))
    return any({**one, **free} == {**schedule, **free} for one in legal)


def _orders(found: list[Schedule]) -> list[Schedule]:
    """The same with tiles of a causal mask in another order."""
    other = {"pairs": "longest", "longest": "pairs"}
    return [{**s, "order": other[str(s["order"])]} for s in found if s["order"] in other]
