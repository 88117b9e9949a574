"""GPU kernels: every kernel module, on its own, from the LLVM dialect to PTX and on to a cubin.

What a kernel's caller must know is in `launch.json` beside the files (docs/ir.md, section 8). Kernels are compiled on
threads of their own, each in an MLIR context of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .cache import ObjectCache
from .contexts import thread_context
from .ptxas import Cubin, Ptxas, Resources, assemble, find_ptxas
from .tensor_maps import TensorMap, read_maps

TRIPLE = "nvptx64-nvidia-cuda"
# Bump when the code generated from the same text changes.
FORMAT = "1"
# Instructions that one chip has and no later one.
ONE_CHIP_ONLY = ("wgmma", "setmaxnreg")


class PtxError(Exception):
    """A kernel that passed every verifier could not be turned into PTX: a bug of the compiler."""

    def __init__(self, kernel: str, message: str, text: str) -> None:
        super().__init__(f"PTX generation of kernel '{kernel}' failed: {message}")
        self.kernel = kernel
        self.text = text


@dataclass(frozen=True)
class GpuTarget:
    """What PTX is generated for: the architecture (`sm_90a`) and LLVM's PTX features (`+ptx80`)."""

    arch: str
    features: str
    opt_level: int = 3


@dataclass(frozen=True)
class GpuKernel:
    """A kernel module in the LLVM dialect and how it is launched.

    Parameters are `tensors` pointers, `indices` 64-bit sizes, the pointer to the error word and the number of items; a
    grid has ceil(items · group / threads) blocks of `threads`, each with `shared` bytes of dynamic shared memory.
    Tensor maps follow by value. A launch may begin `early`: before the one in front of it is done. A copy of kernel
    `kernel_of` is for another `architecture` than the first.
    """

    name: str
    text: str
    threads: int
    group: int
    tensors: int
    indices: int
    shared: int = 0
    maps: tuple[TensorMap, ...] = ()
    early: bool = False
    workspace: int = 0
    kernel_of: str = ""
    architecture: str = ""


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel's PTX, and its machine code where that was asked for."""

    kernel: GpuKernel
    ptx: str
    cubin: Cubin | None


def collect_kernels(module: Any) -> list[GpuKernel]:
    """The kernels of a module that has completed phase `nvvm`, in order; ValueError for another module."""
    import mlir.ir as ir

    kernels = []
    for view in module.operation.regions[0].blocks[0].operations:
        op = view.operation
        if op.name != "builtin.module" or "mlc.kernel" not in op.attributes or is_for_host(op):
            continue
        name = ir.StringAttr(op.attributes["sym_name"]).value
        entry = _function(op, name)
        if entry is None or "nvvm.kernel" not in entry.attributes:
            raise ValueError(f"kernel module @{name} has no GPU entry; run phase nvvm first")
        schedule = {n.name: n.attr.value for n in ir.DictAttr(ir.ArrayAttr(op.attributes["mlc.schedule"])[0])}
        pointers = [isinstance(a.type, _pointer_type()) for a in entry.regions[0].blocks[0].arguments]
        maps = read_maps(op)
        shared = op.attributes["mlc.shared_bytes"].value if "mlc.shared_bytes" in op.attributes else 0
        workspace = op.attributes["mlc.workspace_bytes"].value if "mlc.workspace_bytes" in op.attributes else 0
        tensors, indices = sum(pointers) - 1 - len(maps) - bool(workspace), len(pointers) - sum(pointers) - 1
        group, threads = int(schedule.get("group", 1)), int(schedule["threads"])
        copied = [_text(op, attribute) for attribute in ("mlc.kernel_of", "mlc.architecture")]
        launch = threads, group, tensors, indices, shared, maps, bool(schedule.get("early", 0)), workspace
        kernels.append(GpuKernel(name, op.get_asm(), *launch, *copied))
    return kernels


def is_for_host(kernel: Any) -> bool:
    """Whether a kernel module is one that the host runs (docs/ir.md, section 8)."""
    return "mlc.placement" in kernel.attributes and kernel.attributes["mlc.placement"].value == "host"


def portable_ptx(ptx: str, arch: str) -> str:
    """`ptx`, made for `arch`, for newer chips too: those with an `a` take no other chip's PTX, unless it is plain."""
    if not arch.endswith("a") or any(name in ptx for name in ONE_CHIP_ONLY):
        return ptx
    return ptx.replace(f".target {arch}", f".target {arch[:-1]}", 1)


def _pointer_type() -> type:
    from mlir.dialects import llvm

    return llvm.PointerType


def _text(op: Any, name: str) -> str:
    return str(op.attributes[name].value) if name in op.attributes else ""


def _function(module: Any, name: str) -> Any:
    """The function `name` of a module operation, or None."""
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "llvm.func" and op.attributes["sym_name"].value == name:
            return op
    return None


def emit_ptx(kernel: GpuKernel, target: GpuTarget) -> str:
    """The PTX of a kernel. Raises PtxError."""
    import mlir.ir as ir

    from mlc import _native

    with thread_context():
        try:
            module = ir.Module.parse(kernel.text)
            body = module.operation
            if "sym_name" not in body.attributes:  # the parser put a module around it
                body = body.regions[0].blocks[0].operations[0].operation
            grid = _function(body, f"{kernel.name}_grid")
            if grid is not None:
                grid.erase()  # it runs on the host
            code: bytes = _native.emit(
                body,
                triple=TRIPLE,
                cpu=target.arch,
                features=target.features,
                opt_level=target.opt_level,
                kind="assembly",
            )
        except (ValueError, RuntimeError, ir.MLIRError) as error:
            raise PtxError(kernel.name, str(error), kernel.text) from error
    return code.decode()


def compile_kernels(
    kernels: Sequence[GpuKernel],
    targets: Mapping[str, GpuTarget],
    *,
    version: str,
    assembled: bool,
    jobs: int | None = None,
    cache: ObjectCache | None = None,
    progress: Callable[[CompiledKernel], None] | None = None,
) -> list[CompiledKernel]:
    """The PTX of `kernels`, and their cubins when `assembled`, on `jobs` threads, in order. `targets` are by the
    name of a kernel's architecture, "" for the first.

    `version` names the compiler in the key of the cache, which holds PTX and cubins. Raises PtxError,
    PtxasError or AssemblyError of the first kernel that fails.
    """
    ptxas = find_ptxas() if assembled else None

    def one(kernel: GpuKernel) -> CompiledKernel:
        target = targets[kernel.architecture]
        ptx = _cached_ptx(kernel, target, version, cache)
        return CompiledKernel(kernel, ptx, _assemble(kernel, ptx, target, ptxas, cache))

    workers = max(1, min(jobs or len(os.sched_getaffinity(0)), len(kernels)))
    compiled = []
    with ThreadPoolExecutor(workers, thread_name_prefix="mlc-codegen") as pool:
        futures = [pool.submit(one, kernel) for kernel in kernels]
        try:
            for future in futures:
                compiled.append(future.result())
                if progress is not None:
                    progress(compiled[-1])
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    if cache is not None:
        cache.trim()
    return compiled


def _cached_ptx(kernel: GpuKernel, target: GpuTarget, version: str, cache: ObjectCache | None) -> str:
    key = ObjectCache.key("ptx", FORMAT, version, repr(target), kernel.name, kernel.text)
    found = cache.get(key) if cache is not None else None
    if found is not None:
        return found.decode()
    ptx = emit_ptx(kernel, target)
    if cache is not None:
        cache.put(key, ptx.encode())
    return ptx


def _assemble(
    kernel: GpuKernel, ptx: str, target: GpuTarget, ptxas: Ptxas | None, cache: ObjectCache | None
) -> Cubin | None:
    if ptxas is None:
        return None
    key = ObjectCache.key("cubin", FORMAT, str(ptxas.version), target.arch, kernel.name, ptx)
    found = cache.get(key) if cache is not None else None
    if found is not None:
        head, _, data = found.partition(b"\n")
        said = json.loads(head)
        return Cubin(kernel.name, data, Resources(**said["resources"]), tuple(said["warnings"]))
    cubin = assemble(kernel.name, ptx, target.arch, ptxas)
    if cache is not None:
        said = {"resources": asdict(cubin.resources), "warnings": cubin.warnings}
        cache.put(key, json.dumps(said).encode() + b"\n" + cubin.data)
    return cubin


def launch_description(compiled: Sequence[CompiledKernel]) -> list[dict[str, object]]:
    """What `launch.json` says: for every kernel its launch parameters, and its resources where they are known."""
    entries: list[dict[str, object]] = []
    for one in compiled:
        entry: dict[str, object] = {k: v for k, v in asdict(one.kernel).items() if k != "text" and v != ""}
        if one.cubin is not None:
            entry["resources"] = asdict(one.cubin.resources)
            entry["warnings"] = list(one.cubin.warnings)
        entries.append(entry)
    return entries


def write_kernels(folder: Path, compiled: Sequence[CompiledKernel]) -> Path:
    """Write `launch.json` and a file for each kernel, `.cubin` where there is machine code, else `.ptx`."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in compiled:
        if one.cubin is not None:
            (folder / f"{one.kernel.name}.cubin").write_bytes(one.cubin.data)
        else:
            (folder / f"{one.kernel.name}.ptx").write_text(one.ptx, encoding="utf-8")
    text = json.dumps(launch_description(compiled), indent=1)
    (folder / "launch.json").write_text(f"{text}\n", encoding="utf-8")
    return folder
