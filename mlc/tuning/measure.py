"""Timing kernels alone: variants of one kernel are compiled into a library, loaded and run in turn on the same data.

Every variant has a burst of calls in each round, so that what disturbs the machine disturbs all of them, and is
compared with the first, the cost model's, round by round. Operands stay in the caches as far as they fit; one thread
runs.
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir

from mlc.codegen.cache import ObjectCache
from mlc.codegen.link import STUBS, find_linker, runtime_folder
from mlc.codegen.object import CodegenError, Target, Unit, compile_units
from mlc.codegen.symbols import kernel_symbol, renamed
from mlc.codegen.version import toolchain_version
from mlc.interp.dtypes import numpy_dtype
from mlc.kernels.common.frame import KernelSource
from mlc.passes.base import PipelineError, run_pipeline
from mlc.passes.schedule.assign_schedules import schedule_attribute
from mlc.tuning.cache import Schedule

TABLE = "mlc_variants"
_ALIGNMENT = 64
_BURST = 5e-4  # seconds of a variant's calls in a round
_LEAST, _MOST = 7, 200  # rounds
_HOPELESS = 1.25  # times the first variant's time: not worth more rounds
_TOLERANCE = 1e-4

_Run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_Grid = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True)
class Builder:
    """What kernels are compiled for, and with."""

    target: Target
    cache: ObjectCache | None
    jobs: int | None

    def build(self, kernel: ir.Operation, schedules: Sequence[Schedule], begin: int, end: int) -> list[bytes | None]:
        """The objects of `kernel` with `schedules[begin:end]`, where variant i is called `t<i>`; None where the
        template refuses the schedule.
        """
        name, units = ir.StringAttr(kernel.attributes["sym_name"]).value, []
        for number in range(begin, end):
            try:
                units.append(Unit(f"t{number}", _expanded(kernel, name, f"t{number}", schedules[number])))
            except PipelineError:
                continue
        try:
            compiled = compile_units(units, self.target, version=toolchain_version(), jobs=self.jobs, cache=self.cache)
        except CodegenError:  # one that is chosen fails again where it is reported
            return [None] * (end - begin)
        objects = {one.name: one.data for one in compiled}
        return [objects.get(f"t{number}") for number in range(begin, end)]


def _expanded(kernel: ir.Operation, name: str, symbol: str, schedule: Schedule) -> str:
    """The text of the kernel with another name and schedule after its expansion."""
    text = renamed(kernel.get_asm(use_local_scope=True), name, symbol)
    module = ir.Module.parse(text if text.startswith("module {") else f"module {{\n{text}\n}}", kernel.context)
    inner = module.body.operations[0].operation
    with kernel.context:
        inner.attributes["mlc.schedule"] = ir.ArrayAttr.get([schedule_attribute(schedule)])
    run_pipeline(module.operation, ["mlc-expand-kernels"])
    return str(module.body.operations[0].operation.get_asm(use_local_scope=True))


# --- The library ------------------------------------------------------------------------------------------------------


def _table_text(symbols: Sequence[str]) -> str:
    """A constant array of the functions `symbols`, which can be looked up."""
    kind = f"!llvm.array<{len(symbols)} x ptr>"
    declared = [f'llvm.func @{symbol}() attributes {{sym_visibility = "private"}}' for symbol in symbols]
    lines = [f"llvm.mlir.global external constant @{TABLE}() : {kind} {{", f"%v0 = llvm.mlir.undef : {kind}"]
    for i, symbol in enumerate(symbols):
        lines.append(f"%p{i} = llvm.mlir.addressof @{symbol} : !llvm.ptr")
        lines.append(f"%v{i + 1} = llvm.insertvalue %p{i}, %v{i}[{i}] : {kind}")
    return "\n".join([*declared, *lines, f"llvm.return %v{len(symbols)} : {kind}", "}"])


def link_variants(objects: Sequence[bytes], names: Sequence[str], target: Target, path: Path) -> None:
    """Links objects of kernels into a shared library whose TABLE has, for each of `names`, the kernel and its grid.

    Raises LinkError without a linker, OSError when it fails.
    """
    symbols = [s for name in names for s in (kernel_symbol(name), f"{kernel_symbol(name)}_grid")]
    table = Unit("table", _table_text(symbols), is_kernel=False)
    [compiled] = compile_units([table], target, version=toolchain_version(), jobs=1)
    files = []
    for i, data in enumerate([*objects, compiled.data]):
        files.append(path.with_name(f"{path.stem}.{i}.o"))
        files[-1].write_bytes(data)
    linker, stubs = find_linker(), [str(runtime_folder().resolve() / "stubs" / stub) for stub in STUBS]
    driver = ["-nostdlib", "-Wl,--as-needed"] if linker.driver else ["--as-needed"]
    command = [*linker.command, "-shared", *driver, "-o", str(path), *map(str, files), *stubs]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"the linker '{linker.command[0]}' failed on kernels to be measured:\n{done.stderr.strip()}")


# --- Runs -------------------------------------------------------------------------------------------------------------


@dataclass
class Operands:
    """Random operands of a kernel at chosen shapes, and its argument array (docs/ir.md, section 6); `sizes` are its
    `index` inputs.
    """

    source: KernelSource
    shapes: Sequence[Sequence[int]]
    sizes: Sequence[int] = ()
    arrays: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        for value, shape in zip(self.source.tensors, self.shapes, strict=True):
            self.arrays.append(_random(rng, numpy_dtype(str(value.type.element_type)), shape))
        words = [array.ctypes.data for array in self.arrays]
        for value, shape in zip(self.source.tensors, self.shapes, strict=True):
            words += [extent for i, extent in enumerate(shape) if value.type.is_dynamic_dim(i)]
        self.words = np.array([*words, *self.sizes], np.int64)
        self.error = np.zeros(2, np.int64)

    @property
    def results(self) -> list[np.ndarray]:
        """What a run has written."""
        return self.arrays[-len(self.source.destinations) :]


def _random(rng: np.random.Generator, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray:
    """Numbers near 1, for which every function is defined; zeros for integers, which may be indices."""
    size = int(np.prod(shape, dtype=np.int64))
    memory = np.zeros(size * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start : start + size * dtype.itemsize].view(dtype)
    if dtype.kind not in "biu" and "int" not in dtype.name:
        array[:] = rng.uniform(0.5, 1.5, size).astype(dtype)
    return array


class Variants:
    """Loaded kernels that compute the same. Use as a context manager: the files go at its end."""

    def __init__(self, objects: Sequence[bytes | None], target: Target, operands: Operands) -> None:
        self.numbers = [i for i, data in enumerate(objects) if data is not None]
        self.operands = operands
        self._folder = tempfile.TemporaryDirectory(prefix="mlc-tune-")
        try:
            path = Path(self._folder.name) / "variants.so"
            link_variants([d for d in objects if d is not None], [f"t{i}" for i in self.numbers], target, path)
            self._library = ctypes.CDLL(str(path))
        except BaseException:
            self._folder.cleanup()
            raise
        table = (ctypes.c_void_p * (2 * len(self.numbers))).in_dll(self._library, TABLE)
        words = operands.words.ctypes.data
        self._runs = {n: _Run(table[2 * i] or 0) for i, n in enumerate(self.numbers)}
        self._items = {n: int(_Grid(table[2 * i + 1] or 0)(words)) for i, n in enumerate(self.numbers)}

    def __enter__(self) -> Variants:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def seconds(self, number: int, calls: int = 1) -> float:
        """The time of some calls of a variant."""
        run, items = self._runs[number], self._items[number]
        words, error = self.operands.words.ctypes.data, self.operands.error.ctypes.data
        began = time.perf_counter()
        for _ in range(calls):
            run(words, error, 0, items)
        return time.perf_counter() - began

    def agreeing(self) -> list[int]:
        """The variants whose results are those of the first; none when the first fails on this data."""
        self.seconds(self.numbers[0])
        if self.operands.error.any():
            return []
        wanted, good = [a.copy() for a in self.operands.results], []
        for number in self.numbers:
            for array in self.operands.results:
                array.view(np.uint8)[:] = 0
            self.seconds(number)
            if not self.operands.error.any() and all(map(_agree, self.operands.results, wanted)):
                good.append(number)
        return good


def _agree(got: np.ndarray, wanted: np.ndarray) -> bool:
    if got.view(np.uint8).tobytes() == wanted.view(np.uint8).tobytes():
        return True
    if got.dtype.kind in "biu" or "int" in got.dtype.name:
        return False
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    return bool(np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True))


@dataclass(frozen=True)
class Timing:
    """The least seconds of a call, and the median over the rounds of its ratio to the first variant's."""

    seconds: float
    ratio: float


def race(variants: Variants, numbers: Sequence[int], until: float) -> dict[int, Timing]:
    """Times of variants, the first being what the others are compared with, until `until` (of `time.perf_counter`),
    but some rounds at least.
    """
    calls = max(1, int(_BURST / max(min(variants.seconds(numbers[0]) for _ in range(3)), 1e-8)))
    rounds: dict[int, list[float]] = {n: [] for n in numbers}
    racing = list(numbers)
    for done in range(_MOST):
        if len(racing) < 2 or (done >= _LEAST and time.perf_counter() > until):
            break
        for n in racing:
            rounds[n].append(variants.seconds(n, calls) / calls)
        if done == _LEAST // 2:
            first = min(rounds[numbers[0]])
            racing = [n for n in racing if n == numbers[0] or min(rounds[n]) < _HOPELESS * first]
    if not rounds[numbers[0]]:
        rounds[numbers[0]] = [variants.seconds(numbers[0], calls) / calls for _ in range(_LEAST)]
    base = rounds[numbers[0]]
    return {
        n: Timing(min(t), statistics.median(a / b for a, b in zip(t, base, strict=False))) for n, t in rounds.items()
    }
