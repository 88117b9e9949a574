"""What the templates of a target take into a kernel: the answers to what fusion asks, by the target's name.

Only those of one target are imported: those for GPUs bring two dialects with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlir import ir

from mlc.kernels.common.fusion import Accepts

Keeps = Callable[[ir.Operation], bool]
"""Does a target keep the columns of a reduction across memory, as far as their sizes say?"""


def accepts_of(target: str) -> Mapping[str, Accepts]:
    """The answers by the kind of the kernel's root. ValueError for a target that there is not."""
    if is_cpu(target):
        from mlc.kernels.cpu.accepts import TARGETS
    else:
        from mlc.kernels.nvidia.accepts import TARGETS
    if target not in TARGETS:
        raise ValueError(f"fusion: no target '{target}'; there are {sorted(TARGETS)}")
    return TARGETS[target]


def is_cpu(target: str) -> bool:
    """Does a name stand for a kind of CPUs?"""
    return target.split("-")[0] == "cpu"


def keeps_of(target: str) -> Keeps | None:
    """Which reductions across memory the target keeps the columns of; None where it keeps none."""
    if is_cpu(target):
        return None
    from mlc.kernels.nvidia.column_shares import keeps_columns

    return keeps_columns
