#!/usr/bin/env python3
"""Writes docs/operators.md: every operation of the dialect, and which part of the compiler handles it.

    python tools/gen_op_table.py            # write the page
    python tools/gen_op_table.py --check    # exit 1 when the page on disk is not what would be written

The part about ONNX's operators is `onnx_table.py`'s; with another version of onnx than the page was made with, it is
not compared. For the rest sources are read and nothing of mlc is imported: operations and their kinds from the ODS
files (`mlc/dialects/*.td`), the tier (primitive or composite) from the tables of docs/ir.md, and the handlers
from where each part of the compiler registers or builds an operation. An operation that is missing in
one of the first two is an error.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx_table
from pages import ROOT, write_or_check

PAGE = ROOT / "docs" / "operators.md"
DEFINITION = re.compile(r"^def \w+ : Mlc_\w*Op<\"(\w+)\"", re.M)
KIND = re.compile(r"Mlc_Kind<\[([^\]]*)\]>:\$(\w+)")
SUMMARY = re.compile(r"let summary = \"([^\"]*)\"")
VARIANTS = ("kind", "predicate")

# The host program's own operations: not part of the tensor language, so neither primitive nor composite.
HOST_FILE = "kernel"

# Part of the compiler -> its folders, and the functions whose first argument names an operation there.
PARTS = {
    "importers": (("mlc/frontends",), ("op", "emit")),
    "decomposition": (("mlc/passes/decompose",), ("decomposition",)),
    "lowering": (("mlc/passes/lower", "mlc/kernels/cpu"), ("lowers",)),
    "host": (("mlc/passes/bufferize", "mlc/passes/host"), ()),
    "interpreter": (("mlc/interp",), ("evaluates",)),
}


@dataclass(frozen=True)
class Operation:
    """An operation as ODS defines it; `kinds` is empty when it has one meaning only."""

    name: str
    family: str
    summary: str
    kinds: tuple[str, ...]


def operations() -> list[Operation]:
    """Every operation of the dialect, by family and in the order of its file."""
    found = []
    for path in sorted((ROOT / "mlc" / "dialects").glob("*.td")):
        text = path.read_text(encoding="utf-8")
        starts = [match.start() for match in DEFINITION.finditer(text)]
        for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
            block = text[start:end]
            name = DEFINITION.match(block)
            summary = SUMMARY.search(block)
            if name is None:
                continue
            kinds = next((words(m.group(1)) for m in KIND.finditer(block) if m.group(2) in VARIANTS), ())
            found.append(Operation(name.group(1), path.stem, summary.group(1) if summary else "", kinds))
    return found


def words(listed: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\"(\w+)\"", listed))


def contract_tiers() -> dict[str, str]:
    """Operation name -> `primitive` or `composite`, from the tables of docs/ir.md."""
    text = (ROOT / "docs" / "ir.md").read_text(encoding="utf-8")
    tiers = {}
    for heading, tier in (("## 2.", "primitive"), ("## 3.", "composite")):
        section = text.split(heading, 1)[1].split("\n## ", 1)[0]
        for row in section.splitlines():
            cells = row.split("|")
            if len(cells) > 3:
                tiers.update(dict.fromkeys(re.findall(r"`(\w+)`", cells[2]), tier))
    return tiers


def handled(path: Path, functions: tuple[str, ...]) -> set[str]:
    """Operations that a Python file names as the first argument of one of `functions`, as the key of a table, or,
    being the template of a kernel, in the first line of its docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    names = set()
    if path.is_relative_to(ROOT / "mlc" / "kernels"):
        names.update(re.findall(r"`mlc\.(\w+)`", (ast.get_docstring(tree) or "").split("\n")[0]))
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            names.update(key.removeprefix("mlc.") for key in keys if key.startswith("mlc."))
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0]
        if called in functions and isinstance(first, ast.Constant) and isinstance(first.value, str):
            names.add(first.value.removeprefix("mlc."))
    return names


def handlers() -> dict[str, dict[str, list[str]]]:
    """Part -> operation name -> the files (stem only) that handle it."""
    table: dict[str, dict[str, list[str]]] = {}
    for part, (folders, functions) in PARTS.items():
        row = table.setdefault(part, {})
        for folder in folders:
            for path in sorted((ROOT / folder).rglob("*.py")):
                for name in handled(path, functions):
                    stems = row.setdefault(name, [])
                    if path.stem not in stems:
                        stems.append(path.stem)
    return table


def counts(found: list[Operation], tiers: dict[str, str]) -> Iterator[str]:
    yield "| tier | operations | (operation, kind) pairs |"
    yield "|---|---|---|"
    for tier in ("primitive", "composite"):
        chosen = [op for op in found if tiers.get(op.name) == tier]
        pairs = sum(max(1, len(op.kinds)) for op in chosen)
        yield f"| {tier} | {len(chosen)} | {pairs} |"


def rows(found: list[Operation]) -> Iterator[str]:
    table = handlers()
    yield "| family | operation | kinds | " + " | ".join(PARTS) + " |"
    yield "|---|---|---|" + "---|" * len(PARTS)
    family = ""
    for op in found:
        cells = [", ".join(sorted(table[part].get(op.name, []))) or "–" for part in PARTS]
        shown = op.family if op.family != family else ""
        family = op.family
        kinds = str(len(op.kinds)) if op.kinds else ""
        yield f"| {shown} | `{op.name}` | {kinds} | " + " | ".join(cells) + " |"


def problems(found: list[Operation], tiers: dict[str, str]) -> list[str]:
    """Operations that only one of the contract and the ODS files knows."""
    defined = {op.name for op in found if op.family != HOST_FILE}
    missing = [f"docs/ir.md describes mlc.{name}, no .td file defines it" for name in set(tiers) - defined]
    extra = [f"docs/ir.md does not describe mlc.{name}, which ODS defines" for name in defined - set(tiers)]
    return sorted(missing) + sorted(extra)


def page(found: list[Operation], tiers: dict[str, str]) -> str:
    tensor = [op for op in found if op.family != HOST_FILE]
    lines = [
        "# Operations",
        "",
        "Generated by `tools/gen_op_table.py`; do not edit. What the operations mean is in [ir.md](ir.md).",
        "A cell names the files (without `.py`) of that part of the compiler which handle the operation; the",
        "lowering is a rule that makes loops, or the template of a kernel; `host` is where the host program does it.",
        "",
        *counts(tensor, tiers),
        "",
    ]
    for tier, about in (
        ("primitive", "A back end implements these."),
        ("composite", "Each decomposes into other operations unless the target claims it."),
    ):
        chosen = [op for op in tensor if tiers.get(op.name) == tier]
        lines += [f"## {tier.capitalize()} operations", "", about, "", *rows(chosen), ""]
    host = [op for op in found if op.family == HOST_FILE]
    names = ", ".join(f"`{op.name}`" for op in host)
    lines += [
        "## Host operations",
        "",
        f"{names}: kernel calls and memory, from the phase `kernels` on.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the page on disk, write nothing")
    options = parser.parse_args()
    found, tiers = operations(), contract_tiers()
    if wrong := problems(found, tiers):
        print("\n".join(wrong))
        return 1
    return write_or_check(PAGE, page(found, tiers) + onnx_part(options.check), options.check, "tools/gen_op_table.py")


def onnx_part(check: bool) -> str:
    """The part about ONNX; that of the page on disk where it is checked with another version of onnx."""
    import onnx

    existing = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    other = onnx_table.version_of(existing) not in ("", onnx.__version__)
    if check and other:
        print(f"onnx {onnx.__version__} is installed: the part about ONNX is not compared")
        return existing[existing.index(onnx_table.MARK) :]
    return onnx_table.section()


if __name__ == "__main__":
    sys.exit(main())
