"""Intel's matrix tiles (AMX): an emulator in this process on machines that have none, the tiles of those that have, and
a CPU to compile for."""

from __future__ import annotations

import ctypes
import dataclasses
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
FEATURES = ("amx-tile", "amx-bf16", "amx-int8")
INSTRUCTIONS = (
    *("ldtilecfg", "sttilecfg", "tilerelease", "tilezero", "tileloadd", "tileloaddt1", "tilestored"),
    *("tdpbf16ps", "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"),
)


def _flags() -> set[str]:
    """What this machine's processor says that it has."""
    return set(Path("/proc/cpuinfo").read_text().split())


def are_here() -> bool:
    """Has this machine tiles?"""
    return "amx_tile" in _flags()


def missing_here() -> str | None:
    """Why tiles cannot be emulated on this machine; None where they can."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return "the emulator of tiles is for Linux on x86-64"
    if are_here():
        return "this machine has tiles, and does not trap"
    return None if {"avx2", "fma"} <= _flags() else "the emulator of tiles needs AVX2 and FMA"


def build(source: str, output: Path, *flags: str) -> Path:
    """Compiles a C file of this folder to a shared library."""
    warnings = ("-Wall", "-Wextra", "-Werror")
    command = ["cc", "-std=gnu11", "-shared", "-fPIC", *warnings, *flags, HERE / source, "-o", output, "-lm"]
    subprocess.run([str(word) for word in command], check=True)
    return output


def build_emulator(folder: Path) -> Path:
    """The emulator as a library in `folder`."""
    return build("emulator.c", folder / "emulator.so", "-O3", "-mavx2", "-mfma")


def build_real(folder: Path) -> Path:
    """What asks for this machine's tiles, as a library in `folder`."""
    return build("real.c", folder / "real.so", "-O2", "-mxsave", "-mamx-tile")


def allow_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `x86-64-v3+tiles` and `x86-64-v4+tiles` names of CPUs with tiles, and lets this machine load code for them:
    programs ask its CPU for everything but tiles.
    """
    from mlc import compilation
    from mlc.targets.cpu import NAMED

    for level in ("x86-64-v3", "x86-64-v4"):
        cpu, features = NAMED[level]
        monkeypatch.setitem(NAMED, f"{level}+tiles", (cpu, (*features, *FEATURES)))
    make = compilation.build_program

    def without_the_check(*arguments: Any) -> Any:
        program = make(*arguments)
        asked = [name for name in program.cpu_features.split(",") if name[1:] not in FEATURES]
        return dataclasses.replace(program, cpu_features=",".join(asked))

    monkeypatch.setattr(compilation, "build_program", without_the_check)


class Uncounted(int):
    """A number of instructions that nobody has counted: as many as anybody expects."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ge__(self, other: object) -> bool:
        return True

    __gt__ = __ge__
    __hash__ = int.__hash__

    def __sub__(self, other: object) -> Uncounted:
        return self


class UncountedAll(dict[str, int]):
    """The counts of all instructions where nobody counts."""

    def __eq__(self, other: object) -> bool:
        return True


class Tiles:
    """The emulator in this process, between `start` and `stop`, and what it has carried out."""

    cpu = "x86-64-v3+tiles"
    """A CPU with AVX2 and tiles (`allow_tiles`)."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))

    def start(self) -> None:
        """From now on, instructions of tiles are carried out. No tiles are configured, and all counts are 0."""
        assert self._library.tiles_start() == 0

    def stop(self) -> None:
        """Instructions of tiles are illegal again."""
        assert self._library.tiles_stop() == 0

    def count(self, instruction: str) -> int:
        """How often an instruction has run, in all threads. KeyError for one that is not emulated."""
        asked = self._library.tiles_count
        asked.restype = ctypes.c_int64
        if (count := asked(instruction.encode())) < 0:
            raise KeyError(instruction)
        return int(count)

    @property
    def counts(self) -> dict[str, int]:
        """The count of each instruction that has run."""
        counts = {name: self.count(name) for name in INSTRUCTIONS}
        return {name: count for name, count in counts.items() if count}

    @property
    def configured(self) -> bool:
        """Does this thread have tiles now? Code that is done with them has to release them."""
        return bool(self._library.tiles_configured())


class RealTiles(Tiles):
    """The tiles of this machine. Nothing is counted."""

    def stop(self) -> None:
        """The process keeps its permission."""

    def count(self, instruction: str) -> int:
        if instruction not in INSTRUCTIONS:
            raise KeyError(instruction)
        return Uncounted(1)

    @property
    def counts(self) -> dict[str, int]:
        return UncountedAll()
