"""Which composite operations a target keeps whole, because it has a kernel template for them.

The pass `mlc-decompose` reads this; `mlc.target` of the module says which target it is.
"""

from __future__ import annotations

from typing import Any

CLAIMS: dict[str, frozenset[str]] = {
    # The fusion plan finds softmax and normalizations again as groups of row reductions. What is inserted is written
    # where the input lies, which may be as large as a cache of keys.
    "cpu": frozenset({"insert"}),
    # Nothing until a template takes a composite: the generic templates only know primitives.
    "nvidia": frozenset(),
}
"""Operation names without `mlc.`, by target."""


def claims_of(module: Any) -> frozenset[str]:
    """The claims of the target that the module operation `module` names; nothing is claimed without one.

    `mlc.target` is the target's name, optionally followed by a colon and the chip. Raises ValueError for an unknown
    target.
    """
    if "mlc.target" not in module.attributes:
        return frozenset()
    target = module.attributes["mlc.target"].value.split(":")[0]
    if target not in CLAIMS:
        raise ValueError(f"unknown target '{target}'; known are {', '.join(sorted(CLAIMS))}")
    return CLAIMS[target]
