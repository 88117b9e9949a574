#!/usr/bin/env python3
"""Says whether the IR that kernel templates emit has changed.

    python tools/kernel_replay.py             # compare with what was accepted; exit status 1 when something differs
    python tools/kernel_replay.py --accept    # take what is emitted now: part of a commit that means to change it
    python tools/kernel_replay.py --write DIR # the IR itself, to be compared with that of another checkout

The kernels are in `test/replay/<target>/*.mlir`: small, scheduled, one for every template or variant. Each is expanded
by the target's pass, and a hash of the IR (printed without locations) is compared with `test/replay/accepted.json`. So
a refactoring that should change no kernel shows that it changes none, and a commit that changes kernels says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "test" / "replay"
ACCEPTED = "accepted.json"
PASSES = {"cpu": "mlc-expand-kernels", "nvidia": "mlc-expand-gpu-kernels"}


def expand(path: Path, name: str) -> str:
    """The IR of the scheduled kernels in a file after pass `name`, without locations. Raises what the pass raises."""
    from mlir import ir

    from mlc.compiler_setup import new_context
    from mlc.passes.base import run_pipeline

    with new_context():
        module = ir.Module.parse(path.read_text(encoding="utf-8"), ir.Context.current)
        run_pipeline(module, f"builtin.module({name})")
        return str(module.operation.get_asm(enable_debug_info=False))


def replay(folder: Path) -> dict[str, str]:
    """The IR of every kernel, by `target/stem`; a kernel that cannot be expanded has the error's text."""
    found = {}
    for target, name in PASSES.items():
        for path in sorted((folder / target).glob("*.mlir")):
            try:
                text = expand(path, name)
            except Exception as error:  # whatever it is, this kernel has changed
                text = f"it cannot be expanded: {type(error).__name__}: {error}"
            found[f"{target}/{path.stem}"] = text
    return found


def digest(text: str) -> str:
    """A short hash of IR."""
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def differences(found: Mapping[str, str], accepted: Mapping[str, str]) -> list[str]:
    """A line for every kernel that is not as accepted."""
    lines = []
    for name, text in found.items():
        if text.startswith("it cannot be expanded: "):
            lines.append(f"{name}: {text}")
        elif name not in accepted:
            lines.append(f"{name}: new")
        elif digest(text) != accepted[name]:
            lines.append(f"{name}: its IR has changed")
    return lines + [f"{name}: there is no such file any more" for name in accepted if name not in found]


def accept(folder: Path, found: Mapping[str, str]) -> int:
    """Writes the hashes; 1 when a kernel cannot be expanded, which nobody accepts."""
    broken = [f"{name}: {text}" for name, text in found.items() if text.startswith("it cannot be expanded: ")]
    if broken:
        print("\n".join(broken))
        return 1
    text = json.dumps({name: digest(ir) for name, ir in found.items()}, indent=1)
    (folder / ACCEPTED).write_text(text + "\n", encoding="utf-8")
    print(f"kernel replay: accepted {len(found)} kernels")
    return 0


def check(folder: Path, found: Mapping[str, str]) -> int:
    """Prints what has changed and what to do about it; 1 when something has."""
    path = folder / ACCEPTED
    accepted = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = differences(found, accepted)
    if not lines:
        print(f"kernel replay: {len(found)} kernels, nothing has changed")
        return 0
    print("\n".join(lines))
    print(
        f"\nkernel replay: {len(lines)} of {len(found)} kernels are not what was last accepted. If this commit means to"
        "\nchange them, run `python tools/kernel_replay.py --accept` and commit test/replay/accepted.json with it; if"
        "\nnot, compare what `--write DIR` writes here and in a checkout of the last commit."
    )
    return 1


def main(arguments: Sequence[str] | None = None) -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--accept", action="store_true", help="record the IR that is emitted now")
    parser.add_argument("--write", metavar="DIR", type=Path, help="write the expanded IR to this folder")
    parser.add_argument("--kernels", metavar="DIR", type=Path, default=KERNELS, help="the kernels [test/replay]")
    options = parser.parse_args(arguments)
    found = replay(options.kernels)
    if options.write is not None:
        for name, text in found.items():
            path = (options.write / name).with_suffix(".mlir")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return accept(options.kernels, found) if options.accept else check(options.kernels, found)


if __name__ == "__main__":
    sys.exit(main())
