"""What this machine can do at most, measured by `peak.c`: arithmetic on registers, and copies."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import statistics
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


def arithmetic_seconds(flops: int, of_bytes: int, peak: float, byte_peak: float | None) -> float | None:
    """The least seconds of `flops`, of which `of_bytes` are products of bytes, at the peaks (GFLOP/s) of both; None
    where the second one counts and is not known."""
    if of_bytes and not byte_peak:
        return None
    return ((flops - of_bytes) / peak + of_bytes / (byte_peak or 1.0)) * 1e-9


class Peak:
    """One rate of this machine, sampled as often as one likes: `what` is `fp32`, `bf16`, `int8` (all GFLOP/s) or
    `copy` with the `bytes` that it touches (GB/s). A sample is the rates of pieces of equal work in a row.
    """

    def __init__(self, program: Path | None, threads: int, what: str = "fp32", bytes: int = 0) -> None:
        """`program` is that of `build`; without one there are no samples."""
        self._command = [str(program), str(threads), what, *([str(bytes)] if what == "copy" else [])]
        self._known = program is not None
        self.threads = threads
        self.samples: list[list[float]] = []
        self._seconds = 0.0  # of a piece

    def sample(self) -> None:
        """Runs the program once, for some tens of milliseconds."""
        if not self._known:
            return
        shown = subprocess.run(self._command, capture_output=True, text=True)
        pieces = [[float(word) for word in line.split()] for line in shown.stdout.splitlines()]
        if shown.returncode or not all(rate for rate, _ in pieces):
            self._known = False  # an instruction that a virtual machine hides, or no memory
        else:
            self.samples.append([rate for rate, _ in pieces])
            self._seconds = statistics.median(seconds for _, seconds in pieces)

    @property
    def best(self) -> float | None:
        """The best of the samples: other work on the machine only takes from it, and a peak is no average. None when it
        cannot be measured here.
        """
        return max((statistics.harmonic_mean(sample) for sample in self.samples), default=0.0) or None

    def typical(self, number: int, seconds: float) -> float:
        """The median rate of stretches of `seconds` of sample `number`: as a median of calls that take so long, it
        holds what interrupts most of them, and nothing of what interrupts few.
        """
        sample = self.samples[number]
        length = min(len(sample), max(1, round(seconds / self._seconds)))
        stretches = [sample[at : at + length] for at in range(0, len(sample) - length + 1, length)]
        return statistics.median(statistics.harmonic_mean(stretch) for stretch in stretches)
