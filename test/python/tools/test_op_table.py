"""The dialect grows only with a reason: how many operations and kinds there are is written down here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import gen_op_table

MOST_PRIMITIVES = 64  # every one needs an evaluation, a lowering for each target, and dimension rules

# Operations and (operation, kind) pairs by tier. Whoever raises a number says in the commit why what is there will not do.
COUNTS = {"primitive": (44, 111), "composite": (24, 46)}


@pytest.mark.parametrize("tier", COUNTS)
def test_the_dialect_grows_with_a_reason(tier: str) -> None:
    tiers = gen_op_table.contract_tiers()
    chosen = [op for op in gen_op_table.operations() if tiers.get(op.name) == tier]
    pairs = sum(max(1, len(op.kinds)) for op in chosen)
    assert (len(chosen), pairs) == COUNTS[tier]
    assert len(chosen) <= MOST_PRIMITIVES
