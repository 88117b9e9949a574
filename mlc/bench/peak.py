"""What this machine can do at most, measured by `peak.c`: arithmetic on registers, and copies."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("peak.c")
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-pthread")


def find_compiler() -> tuple[str, ...] | None:
    """The command of a C compiler: $CC, else `cc`, `gcc` or `clang`, else that of the ziglang package; or None."""
    if os.environ.get("CC"):
        command = shlex.split(os.environ["CC"])
        return tuple(command) if shutil.which(command[0]) else None
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "cc")
    return None


def build(folder: Path) -> Path | None:
    """Compiles the program into `folder`; None when this machine has no C compiler that can."""
    compiler = find_compiler()
    if compiler is None:
        return None
    program = folder / "peak"
    try:
        subprocess.run([*compiler, *FLAGS, str(SOURCE), "-o", str(program)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return program


class Peak:
    """One rate of this machine, sampled as often as one likes: `what` is `fp32`, `bf16`, `int8` (all GFLOP/s) or
    `copy` with the `bytes` that it touches (GB/s).
    """

    def __init__(self, program: Path | None, threads: int, what: str = "fp32", bytes: int = 0) -> None:
        """`program` is that of `build`; without one there are no samples."""
        self._command = [str(program), str(threads), what, *([str(bytes)] if what == "copy" else [])]
        self._known = program is not None
        self.threads = threads
        self.samples: list[float] = []

    def sample(self) -> None:
        """Runs the program once, for some tens of milliseconds."""
        if not self._known:
            return
        shown = subprocess.run(self._command, capture_output=True, text=True)
        if shown.returncode:
            self._known = False  # an instruction that a virtual machine hides, or no memory
        else:
            self.samples.append(float(shown.stdout))

    @property
    def best(self) -> float | None:
        """The best of the samples: other work on the machine only takes from it, and a peak is no average. None when it
        cannot be measured here.
        """
        return max(self.samples, default=0.0) or None
