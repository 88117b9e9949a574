"""The search on GPUs: every kernel of a model that has parameters to explore, as libraries of one kernel each.

Where the GPU is, `tune` measures them within a budget of seconds; where it is not, `write_bundle` writes them for
another machine (`gpu_bundle`). Kernels whose shapes only the run knows are left to the cost model.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlir import ir

from mlc.compiler_setup import new_context
from mlc.inspect.collect import collect
from mlc.interp.dtypes import numpy_dtype
from mlc.interp.from_ir import result_type
from mlc.kernels.common.constants import CONSTANTS
from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.passes.base import run_pipeline
from mlc.passes.fuse.dedupe_kernels import kernel_text
from mlc.passes.schedule.add_architectures import target_of
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.assign_schedules import gpu_target_text, read_schedule, schedule_attribute
from mlc.passes.schedule.copies import KERNEL_OF
from mlc.runtime.errors import MlcError
from mlc.tuning.cache import Entry, entry_key
from mlc.tuning.gpu_bundle import Task, Tensor, measure, save
from mlc.tuning.gpu_candidates import TUNED, candidates
from mlc.tuning.gpu_device import Driver, GpuError

Compile = Callable[[Path, Path], object]
"""Compiles the IR of a file, which has completed phase `kernels`, to a library."""
Step = Callable[[int, int, str], None]
"""Told after each kernel: how many are done, of how many, and what was found."""


@dataclass(frozen=True)
class _Kernel:
    """A kernel to measure: the task, the text of its module, and the attributes of the program that it is in."""

    task: Task
    text: str
    attributes: str


def tune(
    module: ir.Module,
    passes: Sequence[str],
    budget: float,
    known: Mapping[str, Entry],
    compile_library: Compile,
    step: Step | None = None,
) -> dict[str, Entry]:
    """Measures the kernels of `module`, which has completed phase `kernels`, on this machine's GPU; `passes` are those
    of phase `schedule`. Kernels of `known` entries are not measured again. Returns the new entries.

    Raises GpuError where there is no GPU, or one of another architecture.
    """
    driver, deadline = Driver(), time.perf_counter() + budget
    kernels = [k for k in _kernels(module, passes) if k.task.key not in known]
    found: dict[str, Entry] = {}
    for number, kernel in enumerate(kernels, 1):
        if time.perf_counter() >= deadline:
            break
        _check(driver, kernel.task)
        with tempfile.TemporaryDirectory(prefix="mlc-tune-") as folder:
            task = _built(kernel, Path(folder), compile_library)
            one = measure(driver, task, Path(folder))
        if one is not None:
            found[task.key] = one.entry()
        if step is not None:
            said = one.line() if one is not None else f"{task.kernel}: not measured, as it fails on random data"
            step(number, len(kernels), said)
    return found


def write_bundle(
    module: ir.Module,
    passes: Sequence[str],
    known: Mapping[str, Entry],
    folder: Path,
    compile_library: Compile,
    step: Step | None = None,
) -> None:
    """Writes the libraries that `tune` would measure to `folder`, for `mlc.tuning.gpu_bundle` on another machine."""
    kernels = [k for k in _kernels(module, passes) if k.task.key not in known]
    with tempfile.TemporaryDirectory(prefix="mlc-tune-") as temporary:
        tasks = []
        for number, kernel in enumerate(kernels, 1):
            tasks.append(_built(kernel, Path(temporary), compile_library))
            if step is not None:
                step(number, len(kernels), f"{kernel.task.kernel}: {len(kernel.task.schedules)} schedules")
        save(folder, tasks, Path(temporary))


def _check(driver: Driver, task: Task) -> None:
    major, minor = driver.capability
    wanted = task.target.split("|")[0].removeprefix("sm_").rstrip("af")
    if wanted != f"{major}{minor}":
        here = f"the GPU here has compute capability {major}.{minor}"
        raise GpuError(f"tune: {here}, on which code for {task.target} cannot be measured")


def _kernels(module: ir.Module, passes: Sequence[str]) -> list[_Kernel]:
    """What can be measured, most work first."""
    copy = ir.Module.parse(module.operation.get_asm(enable_debug_info=True), module.context)
    run_pipeline(copy.operation, passes)
    work = {report.name: (report.flops or 0) * report.launches for report in collect(copy, "").kernels}
    found = []
    for view in copy.body.operations:
        op = view.operation
        if "mlc.kernel" not in op.attributes or is_host_kernel(op) or KERNEL_OF in op.attributes:
            continue
        kernel = _kernel(copy, op)
        if kernel is not None:
            found.append((work.get(ir.StringAttr(op.attributes["sym_name"]).value, 0), kernel))
    return [kernel for _, kernel in sorted(found, key=lambda pair: -pair[0])]


def _kernel(module: ir.Module, op: ir.Operation) -> _Kernel | None:
    """A scheduled kernel of `module`; None when there is nothing to choose from."""
    default, source, target = read_schedule(op), kernel_source(op), target_of(module.operation, op)
    static = all(v.type.has_static_shape for v in source.tensors) and not source.scalars
    if default["template"] not in TUNED or not static or "mlc.inout" in op.attributes:
        return None
    attributes = module.operation.attributes
    precision = ir.StringAttr(ir.DictAttr(attributes["mlc.codegen"])["precision"]).value
    with module.context, ir.Location.unknown():
        tried = (default, *candidates(source, default, target, precision))
    if len(tried) < 2:
        return None
    for noted in {"mlc.schedule", CONSTANTS} & set(op.attributes):  # behind the question for a schedule
        del op.attributes[noted]
    key = entry_key(kernel_text(op), default, gpu_target_text(target, precision))
    count = len(source.destinations)
    tensors = [_tensor(v) for v in source.tensors]
    title = f"{default['template']} {' '.join(_title(t) for t in tensors)}"
    task = Task(key, gpu_target_text(target, precision), title, tuple(tensors[:-count]), tuple(tensors[-count:]), tried)
    said = f'mlc.codegen = {attributes["mlc.codegen"]}, mlc.target = "{target.target}", mlc.phase = "kernels"'
    return _Kernel(task, op.get_asm(use_local_scope=True), said)


def _tensor(value: ir.Value) -> Tensor:
    found = result_type(value.type)
    return numpy_dtype(found.dtype).name, tuple(found.shape)


def _title(tensor: Tensor) -> str:
    return f"{tensor[0]}[{','.join(map(str, tensor[1]))}]"


# --- Libraries --------------------------------------------------------------------------------------------------------


def _built(kernel: _Kernel, folder: Path, compile_library: Compile) -> Task:
    """The task with its libraries, in `folder`."""
    stem = kernel.task.key[:12]

    def one(number: int) -> str:
        source, library = folder / f"{stem}-{number}.mlir", folder / f"{stem}-{number}.so"
        source.write_text(_program(kernel, number), encoding="utf-8")
        try:
            compile_library(source, library)
        except (MlcError, RuntimeError, ValueError):
            return ""  # the template or ptxas refuses; one that is chosen fails again where it is reported
        return library.name

    return replace(kernel.task, libraries=tuple(one(n) for n in range(len(kernel.task.schedules))))


def _program(kernel: _Kernel, number: int) -> str:
    """A program that launches the kernel once, on its arguments."""
    with new_context(), ir.Location.unknown():
        text = kernel.text if kernel.text.startswith("module {") else f"module {{\n{kernel.text}\n}}"
        outer = ir.Module.parse(text)
        op = outer.body.operations[0].operation
        op.attributes["mlc.schedule"] = ir.ArrayAttr.get([schedule_attribute(kernel.task.schedules[number])])
        source, name = kernel_source(op), ir.StringAttr(op.attributes["sym_name"]).value
        return _text(kernel, op, source, name)


def _text(kernel: _Kernel, op: ir.Operation, source: KernelSource, name: str) -> str:
    count = len(source.destinations)
    types = [str(v.type) for v in source.tensors]
    given, made = types[:-count], types[-count:]
    dtypes = [dtype for dtype, _ in (*kernel.task.inputs, *kernel.task.results)]
    described = [f'{{mlc.dtype = "{d}", mlc.name = "t{i}"}}' for i, d in enumerate(dtypes)]
    arguments = ", ".join(f"%a{i}: {t} {d}" for i, (t, d) in enumerate(zip(given, described, strict=False)))
    results = ", ".join(f"{t} {d}" for t, d in zip(made, described[-count:], strict=True))
    empties = [f"%e{i} = tensor.empty() : {t}" for i, t in enumerate(made)]
    taken, outs = ", ".join(f"%a{i}" for i in range(len(given))), ", ".join(f"%e{i}" for i in range(count))
    launch = f"%r:{count} = mlc.launch @{name}({taken}) outs({outs}) : ({', '.join(given)}) outs({', '.join(made)})"
    returned = ", ".join(f"%r#{i}" for i in range(count))
    lines = [
        f"module attributes {{{kernel.attributes}}} {{",
        f"func.func @forward({arguments}) -> ({results}) {{",
        *empties,
        f"{launch} -> {_list(made)}",
        f"return {returned} : {', '.join(made)}",
        "}",
        op.get_asm(use_local_scope=True),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _list(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"
