"""Writing generated pages, or checking that they are current."""

from __future__ import annotations

import difflib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(path: Path, text: str, check: bool, generator: str) -> int:
    """Writes `text` to `path`, or with `check` compares it with what is there. Returns the exit status."""
    text = text.rstrip("\n") + "\n"
    shown = path.relative_to(ROOT)
    if not check:
        path.write_text(text, encoding="utf-8")
        print(f"wrote {shown}")
        return 0
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before == text:
        print(f"{shown} is current")
        return 0
    old, new = before.splitlines(), text.splitlines()
    difference = difflib.unified_diff(old, new, str(shown), "generated", n=0, lineterm="")
    print("\n".join(list(difference)[:40]))
    print(f"{shown} is stale: run python {generator} (or `make docs`) and commit the result")
    return 1
