"""What the templates of a target take into a kernel: the answers to what fusion asks, by the target's name.

Only those of one target are imported: those for GPUs bring two dialects with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlc.kernels.common.fusion import Accepts


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
