"""NVIDIA's assembler: where it is, what it says, and what of that is a failure.

ptxas ships with the CUDA toolkit, with the wheel `nvidia-cuda-nvcc`, and with Triton, which PyTorch for GPUs needs;
nothing else of CUDA is needed to compile.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .ptxas_faults import Version, faults_of

MINIMUM = (12, 9, 0)  # older releases lose register allocation of warp-specialised kernels on sm_90a
INSTALL = "install it with `pip install nvidia-cuda-nvcc`, put a CUDA toolkit on PATH, or name it in $PTXAS"
# wgmma instructions that ptxas runs one after the other: right results at a fraction of the speed.
SERIALIZED = ("C7512", "C7513", "C7518")


class PtxasError(Exception):
    """There is no usable ptxas on this machine."""


class AssemblyError(Exception):
    """ptxas refused a kernel, or serialised its wgmma instructions: a bug of the compiler."""

    def __init__(self, kernel: str, message: str, ptx: str) -> None:
        super().__init__(f"ptxas failed on kernel '{kernel}': {message}")
        self.kernel = kernel
        self.ptx = ptx


@dataclass(frozen=True)
class Ptxas:
    """The program and its version."""

    path: Path
    version: Version

    def __str__(self) -> str:
        return f"'{self.path}' is {dotted(self.version)}"


@dataclass(frozen=True)
class Resources:
    """What a kernel takes of a multiprocessor; bytes but for `registers`, which are per thread."""

    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int


@dataclass(frozen=True)
class Cubin:
    """The machine code of one kernel, and what ptxas said about it."""

    name: str
    data: bytes
    resources: Resources
    warnings: tuple[str, ...]


def find_ptxas() -> Ptxas:
    """$PTXAS, else ptxas on PATH, else the one of an `nvidia-cuda-nvcc` wheel, else Triton's: the first that is new
    enough and not known to make wrong code.

    Raises PtxasError, which says what to install, when there is none.
    """
    chosen = os.environ.get("PTXAS")
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise PtxasError(f"$PTXAS names '{chosen}', which cannot be run; {INSTALL}")
        candidates = [Path(found)]
    else:
        candidates = list(_installed())
    refused = []
    for path in candidates:
        ptxas = Ptxas(path, _version(path))
        reason = _refusal(ptxas.version)
        if not reason:
            return ptxas
        refused.append(f"{ptxas}{reason}")
    needed = f"{MINIMUM[0]}.{MINIMUM[1]} or newer"
    if refused:
        raise PtxasError(f"ptxas {needed} is needed, but {'; '.join(refused)}; {INSTALL}")
    raise PtxasError(f"ptxas {needed}, which assembles GPU kernels, was not found; {INSTALL}")


def dotted(version: Version) -> str:
    """A release as people write it."""
    return ".".join(map(str, version))


def _refusal(version: Version) -> str:
    """Why a release is not used; "" for one that is."""
    faults = faults_of(version, refused=True)
    if faults:
        said = "; ".join(f"{f.what} ({f.source})" for f in faults)
        return f", which is known to make wrong code: {said}"
    return ", which is too old" if version < MINIMUM else ""


def _installed() -> Iterator[Path]:
    on_path = shutil.which("ptxas")
    if on_path:
        yield Path(on_path)
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        # nvidia/cuda_nvcc/bin (CUDA 12), nvidia/cu13/bin (CUDA 13)
        yield from sorted(Path(folder).glob("*/bin/ptxas"))
    triton = importlib.util.find_spec("triton")
    for folder in (triton.submodule_search_locations or []) if triton else []:
        yield from Path(folder).glob("backends/nvidia/bin/ptxas")


def _version(path: Path) -> Version:
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise PtxasError(f"'{path}' cannot be run: {error}; {INSTALL}") from error
    found = re.search(r"release (\d+)\.(\d+)(?:, V\d+\.\d+\.(\d+))?", text)
    if found is None:
        raise PtxasError(f"'{path}' does not say its version; {INSTALL}")
    return int(found.group(1)), int(found.group(2)), int(found.group(3) or 0)


def assemble(name: str, ptx: str, arch: str, ptxas: Ptxas) -> Cubin:
    """Assemble the PTX of kernel `name` for `arch` (as in "sm_90a"). Raises AssemblyError."""
    with tempfile.TemporaryDirectory(prefix="mlc-ptxas-") as folder:
        source, output = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx, encoding="utf-8")
        command = [str(ptxas.path), "-v", "-O3", f"-arch={arch}", str(source), "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        messages = (done.stdout + done.stderr).replace(str(source), f"{name}.ptx")
        if done.returncode != 0:
            raise AssemblyError(name, messages.strip() or f"exit status {done.returncode}", ptx)
        lines = [line.strip() for line in messages.splitlines()]
        warnings = tuple(x for x in lines if "warning" in x.lower() or "Performance Loss" in x)
        serialized = [x for x in lines if any(f"({code})" in x for code in SERIALIZED)]
        if serialized:
            raise AssemblyError(name, "\n".join(["wgmma instructions are serialised", *serialized]), ptx)
        return Cubin(name, output.read_bytes(), read_resources(messages), warnings)


def read_resources(messages: str) -> Resources:
    """The resources in the output of `ptxas -v`."""

    def number(pattern: str) -> int:
        found = re.search(pattern, messages)
        return int(found.group(1)) if found else 0

    return Resources(
        registers=number(r"Used (\d+) registers"),
        shared=number(r"(\d+) bytes smem"),
        stack=number(r"(\d+) bytes stack frame"),
        spill_stores=number(r"(\d+) bytes spill stores"),
        spill_loads=number(r"(\d+) bytes spill loads"),
    )
