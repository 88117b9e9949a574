"""What the dynamic loader does not check before it maps a file: one that is cut short would end the process."""

from __future__ import annotations

import platform
import struct
from pathlib import Path

_MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
_SHARED, _LOAD = 3, 1
_HEADER, _SEGMENT = struct.Struct("<4sBB10xHHIQQQIHHH"), struct.Struct("<IIQQQQQQ")


def problem_of(path: Path) -> str | None:
    """Why the file cannot be a library for this machine, None when it may be one. Raises OSError."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:4] != b"\x7fELF":
            return "it is no ELF file" if head else "it is empty"
        _, width, order, kind, machine, _, _, table, _, _, _, entry, count = _HEADER.unpack_from(head)
        if (width, order, kind) != (2, 1, _SHARED) or entry != _SEGMENT.size:
            return "it is no 64-bit shared library"
        built = _MACHINES.get(machine, f"machine {machine}")
        if built != platform.machine():
            return f"it was built for {built}, this machine is {platform.machine()}"
        file.seek(table)
        rows = file.read(entry * count)
    needed = table + entry * count
    for kind, _, offset, _, _, length, _, _ in _SEGMENT.iter_unpack(rows[: len(rows) // entry * entry]):
        if kind == _LOAD:
            needed = max(needed, offset + length)
    return f"it is cut short: {size} bytes of at least {needed}; copy it again" if size < needed else None
