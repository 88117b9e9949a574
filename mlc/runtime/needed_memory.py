"""What a model needs of memory while it runs, for people: its weights, and the arena of an entry."""

from __future__ import annotations

import re
from collections.abc import Mapping


def needed_memory(weights: int, arenas: Mapping[str, str]) -> str:
    """`8.9 MB (weights 5.0 MB, arena 3.9 MB)` for `weights` bytes and the formulas of `memory` in the metadata.

    The largest entry counts; an arena that depends on dimensions says on which. Inputs, outputs and buffers of
    data-dependent size come on top.
    """
    fixed = [int(formula) for formula in arenas.values() if formula.isdecimal()]
    open_ = [formula for formula in arenas.values() if not formula.isdecimal()]
    names = sorted(set(re.findall(r"[^\W\d][\w.]*", " ".join(open_))) - {"max", "min"})
    parts = [f"weights {amount(weights)}"] if weights else []
    if open_:
        return ", ".join([*parts, f"an arena that depends on {', '.join(names) or 'the data'}"])
    arena = max(fixed, default=0)
    parts += [f"arena {amount(arena)}"] if arena else []
    return f"{amount(weights + arena)} ({', '.join(parts)})" if len(parts) > 1 else "".join(parts) or "0 B"


def amount(size: float) -> str:
    """`12.3 kB`, of bytes."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
