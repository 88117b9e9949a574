"""The search: every kernel of a model that has parameters to explore, within a budget of seconds.

The budget is shared by estimated work (FLOPs times launches); what a kernel leaves over is the others'. Each kernel is
compiled with the cost model's schedule and some candidates, all are timed in turns on random data at the extents that
reports count work at, and another schedule wins only where it is faster by a margin in the median round and at its
best.
"""

from __future__ import annotations

import datetime
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.codegen.cache import ObjectCache
from mlc.codegen.object import Target
from mlc.inspect.collect import KernelReport, collect
from mlc.kernels.common.frame import kernel_source
from mlc.passes.base import run_pipeline
from mlc.passes.fuse.dedupe_kernels import kernel_text
from mlc.passes.schedule.assign_schedules import read_schedule, target_text
from mlc.tuning.cache import COPYING, EXPLORED, OF_COPIES, Entry, Schedule, entry_key
from mlc.tuning.candidates import TUNED, candidates
from mlc.tuning.measure import Builder, Operands, Timing, Variants, race

MARGIN = 0.97  # of the default's time, which a schedule has to be below
_AGAIN = 0.2  # seconds for which a winner is measured a second time
_MEASURING = 0.4  # share of a kernel's time that is for its runs
# A kernel that updates its destination has other operands with every run, and a shared one is found by no entry.
_LEFT_OUT = ("mlc-share-sums", "mlc-plan-in-place", "mlc-write-in-place")

Step = Callable[[int, int, str], None]
"""Told after each kernel: how many are done, of how many, and what was found."""


@dataclass
class _Task:
    """A kernel to measure: packed, with the cost model's schedule."""

    key: str
    kernel: ir.Operation
    default: Schedule
    shapes: list[list[int]]
    sizes: list[int]
    work: int
    title: str


def tune(
    module: ir.Module,
    passes: Sequence[str],
    target: Target,
    registers: int,
    budget: float,
    known: dict[str, Entry],
    *,
    jobs: int | None = None,
    objects: ObjectCache | None = None,
    step: Step | None = None,
) -> dict[str, Entry]:
    """Measures the kernels of `module`, which has completed phase `kernels`; `passes` are those of phase `schedule`.

    `known` entries are not measured again unless there was no time to try everything. Returns the new entries. The
    module stays as it is.
    """
    copy = ir.Module.parse(module.operation.get_asm(enable_debug_info=True), module.context)
    texts = {name: kernel_text(op) for name, op in _kernels(copy)}
    run_pipeline(copy.operation, [p for p in passes if p not in _LEFT_OUT])
    target_name = target_text(copy.operation)
    tasks = [t for t in _tasks(copy, texts, target_name) if not _is_done(t, known.get(t.key), registers)]
    builder = Builder(target, objects, jobs)
    found: dict[str, Entry] = {}
    deadline = time.perf_counter() + budget
    for number, task in enumerate(tasks):
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        share = left * task.work / max(1, sum(t.work for t in tasks[number:]))
        entry = _measure(task, builder, registers, share, target_name)
        if entry is not None:
            found[task.key] = entry
        if step is not None:
            step(number + 1, len(tasks), _line(task, entry))
    return found


def _kernels(module: ir.Module) -> list[tuple[str, ir.Operation]]:
    ops = [child.operation for child in module.body.operations]
    return [(ir.StringAttr(op.attributes["sym_name"]).value, op) for op in ops if "mlc.kernel" in op.attributes]


def _tasks(module: ir.Module, texts: dict[str, str], target: str) -> list[_Task]:
    """What can be measured, most work first."""
    reports = {report.name: report for report in collect(module, "").kernels}
    tasks = []
    for name, op in _kernels(module):
        default, report = read_schedule(op), reports[name]
        source, shapes = kernel_source(op), _shapes(report)
        if default["template"] not in TUNED or "mlc.inout" in op.attributes:
            continue
        if not report.flops or shapes is None or len(shapes) != len(source.tensors):
            continue
        sizes = [size for size in report.sizes if size is not None]
        if len(sizes) != len(source.scalars):
            continue
        title = f"{name} {default['template']} {' '.join(report.shapes)}"
        key = entry_key(texts[name], default, target)
        tasks.append(_Task(key, op, default, shapes, sizes, report.flops * report.launches, title))
    return sorted(tasks, key=lambda task: -task.work)


def _is_done(task: _Task, entry: Entry | None, registers: int) -> bool:
    """Is there nothing to choose from, or has everything been tried?"""
    count = len(_candidates(task, registers))
    return not count or (entry is not None and entry.tried > count)


def _candidates(task: _Task, registers: int) -> list[Schedule]:
    source = kernel_source(task.kernel)
    return candidates(source, task.default, task.shapes[-len(source.destinations)], registers)


def _shapes(report: KernelReport) -> list[list[int]] | None:
    """The shapes of a kernel's tensors as numbers; None when one is not known, or empty."""
    shapes = []
    for text in report.shapes:
        inside = re.sub(r".*\[(.*)\]", r"\1", text)
        parts = inside.split(",") if inside else []
        if not all(part.isdecimal() and int(part) for part in parts):
            return None
        shapes.append([int(part) for part in parts])
    return shapes


def _measure(task: _Task, builder: Builder, registers: int, share: float, target: str) -> Entry | None:
    """The best schedule found in about `share` seconds; None when the kernel fails on random data."""
    tried = [task.default, *_candidates(task, registers)]
    began = time.perf_counter()
    objects = builder.build(task.kernel, tried, 0, 2)
    each = (time.perf_counter() - began) / 2  # as two threads compile two at a time
    more = max(0, int((1 - _MEASURING) * share / max(each, 1e-3)) - 1)
    objects += builder.build(task.kernel, tried, 2, min(len(tried), 2 + more))
    operands = Operands(kernel_source(task.kernel), task.shapes, task.sizes)
    times = _race(objects, builder, operands, began + share)
    if 0 not in times:
        return None
    both = _together(tried, times)
    if both is not None and both not in tried:
        tried = [*tried[: len(objects)], both]
        objects += builder.build(task.kernel, tried, len(objects), len(tried))
        finalists = _only(objects, _best(times), len(tried) - 1)
        times |= _race(finalists, builder, operands, began + share)
    best, times = _confirmed(times, lambda n: _race(_only(objects, n), builder, operands, time.perf_counter() + _AGAIN))
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    micros = [round(times[n].seconds * 1e6, 3) for n in (best, 0)]
    return Entry(target, task.title.split(" ", 1)[1], tried[best], micros[0], micros[1], len(objects), date)


def _only(objects: Sequence[bytes | None], *numbers: int) -> list[bytes | None]:
    """The first variant and those of `numbers`; None for the others."""
    return [data if n in (0, *numbers) else None for n, data in enumerate(objects)]


def _race(objects: Sequence[bytes | None], builder: Builder, operands: Operands, until: float) -> dict[int, Timing]:
    """Times of the variants that compute what the first does; none when that fails on random data."""
    if not objects or objects[0] is None:
        return {}
    with Variants(objects, builder.target, operands) as variants:
        numbers = variants.agreeing()
        return race(variants, numbers, until) if numbers else {}


def _best(times: dict[int, Timing]) -> int:
    """The fastest variant that beats the first by the margin, else the first."""
    beating = [n for n, t in times.items() if _beats(t, times[0])]
    return min(beating, key=lambda n: times[n].ratio, default=0)


def _confirmed(times: dict[int, Timing], again: Callable[[int], dict[int, Timing]]) -> tuple[int, dict[int, Timing]]:
    """The variant that wins, and its times. A winner has to win a second time, alone against the first: the best of
    many in one race is often only the luckiest.
    """
    best = _best(times)
    if not best:
        return 0, times
    second = again(best)
    if {0, best} <= second.keys() and _beats(second[best], second[0]):
        return best, second
    return 0, times


def _beats(timing: Timing, default: Timing) -> bool:
    return timing.ratio < MARGIN and timing.seconds < MARGIN * default.seconds


def _together(tried: Sequence[Schedule], times: dict[int, Timing]) -> Schedule | None:
    """The best changes of the default, each in parameters of its own, together."""
    default, result, changed = tried[0], dict(tried[0]), 0
    touched: set[str] = set()
    for n in sorted((n for n in times if n and _beats(times[n], times[0])), key=lambda n: times[n].ratio):
        differing = {k for k in (*EXPLORED, "template") if tried[n].get(k) != default.get(k)}
        if differing & touched:
            continue
        touched |= differing
        changed += 1
        result.update({k: v for k, v in tried[n].items() if default.get(k) != v})
        if tried[n]["template"] == COPYING[0]:
            result = {k: v for k, v in result.items() if k not in OF_COPIES}
    return result if changed > 1 else None


def _line(task: _Task, entry: Entry | None) -> str:
    """What was found, for people."""
    if entry is None:
        return f"{task.title}: not measured, as it fails on random data"
    if entry.schedule == task.default:
        return f"{task.title}: {entry.default:.1f} us, as the cost model says"
    names = sorted({*entry.schedule, *task.default})
    changes = [f"{n} {task.default.get(n)} -> {entry.schedule.get(n)}" for n in names
               if task.default.get(n) != entry.schedule.get(n)]  # fmt: skip
    gain = 1 - entry.microseconds / entry.default if math.isfinite(entry.microseconds) else 0.0
    return f"{task.title}: {entry.default:.1f} -> {entry.microseconds:.1f} us (-{gain:.0%}), {', '.join(changes)}"
