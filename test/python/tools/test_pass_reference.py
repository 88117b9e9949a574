"""The page of passes (`tools/gen_pass_reference.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from gen_pass_reference import fenced, page

from mlc.passes.base import discover


def test_indented_examples_are_between_fences() -> None:
    lines = ["    %0 = a", "      : b", "becomes", "    %1 = c", "and so on"]
    want = ["", "```mlir", "%0 = a", "  : b", "```", "", "becomes", "", "```mlir", "%1 = c", "```", "", "and so on"]
    assert list(fenced(lines)) == want


def test_what_is_between_fences_stays() -> None:
    lines = ["```mlir", "%0 = a", "    : b", "```", "text"]
    assert list(fenced(lines)) == lines


def test_no_example_is_outside_of_fences() -> None:
    inside = False
    for line in page(discover()).split("\n"):
        inside ^= line.startswith("```")
        assert inside or not line.lstrip().startswith("%"), line
    assert not inside
