"""Every operation of the dialect has its lit tests: what is printed parses to the same, and what is wrong is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FAMILIES = sorted(p.stem for p in (ROOT / "mlc/dialects").glob("*.td"))


def operations(family: str) -> list[str]:
    """Mnemonics of the operations that a file of the dialect defines."""
    text = (ROOT / f"mlc/dialects/{family}.td").read_text()
    definitions = re.findall(r"def Mlc_\w+Op\b[^{;]*?<\"([a-z0-9_]+)\"", text)
    return sorted(set(definitions))


def lit_text(name: str) -> str:
    return "\n".join(p.read_text() for p in sorted((ROOT / "test/lit/dialects").glob(f"*/{name}.mlir")))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("test", ["ops", "invalid"])
def test_every_operation_is_in_a_lit_test(family: str, test: str) -> None:
    text = lit_text(test)
    missing = [name for name in operations(family) if not re.search(rf"\bmlc\.{name}\b", text)]
    assert not missing, f"no {test}.mlir under test/lit/dialects has {', '.join(f'mlc.{name}' for name in missing)}"


def test_the_definitions_are_found() -> None:
    assert len({name for family in FAMILIES for name in operations(family)}) >= 60
