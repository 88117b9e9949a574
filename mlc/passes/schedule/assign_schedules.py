"""Give every kernel its template and parameters: the attribute `mlc.schedule`.

```mlir
module @k0 attributes {mlc.kernel} …
// becomes
module @k0 attributes {mlc.kernel, mlc.schedule = [{template = "contraction", rows = 6, …}]} …
```
The attribute is an ordered list of alternatives; today it has one, unguarded entry. What expands a kernel obeys it, so
that editing the attribute (or tuning it) changes the code and nothing else.

With `tuned`, a file that `mlc-compile --tune` has written, a kernel that is found there has the measured values of the
parameters that tuning explores (`mlc/tuning/cache.py`); the module's attribute `mlc.tuning` is a hash of those used.
"""

from __future__ import annotations

from pathlib import Path

from mlir import ir

from mlc.kernels.common.frame import defining_op, kernel_source
from mlc.passes.base import Pass, PipelineError
from mlc.passes.fuse.dedupe_kernels import kernel_text
from mlc.passes.schedule.cost import VectorUnit, choose
from mlc.passes.walk import called_kernel
from mlc.targets.nvidia import NvidiaTarget
from mlc.tuning.cache import Entry, Schedule, TuningError, digest, entry_key, fixed_part, read

VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast")


class AssignSchedules(Pass):
    """Give every kernel its template and parameters."""

    vector_bits: int = 512
    vector_registers: int = 32
    bf16_dot: bool = False
    "the target has a fast instruction that sums products of pairs of bf16"
    int8_dot: bool = False
    "the target has an instruction that sums products of quads of 8-bit integers"
    int16_dot: bool = False
    "the target has an instruction that sums products of pairs of 16-bit integers"
    halves: bool = False
    "vectors of half the width take half the time"
    bf16_tiles: bool = False
    "the target has matrix tiles that multiply bf16"
    int8_tiles: bool = False
    "the target has matrix tiles that multiply 8-bit integers"
    claims: bool = False
    "stores wait for the lines of the cache that they write to: these are fetched before, and rows of functions"
    fractions: bool = False
    "an instruction that takes fractions costs what the one that rounds does"
    subnormals: bool = False
    "arithmetic takes no longer for subnormal numbers: powers of a softmax may be such"
    widens_beside: bool = False
    "f16 becomes f32 beside multiply-adds, so that a weight need not be widened for them before"
    distant: bool = False
    "two rows gain from fetching the next panel of a weight"
    tuned: str = ""
    "a file of measured schedules"

    statistics = {"tuned": "kernels whose schedule was measured"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        unit = VectorUnit(
            self.vector_bits,
            self.vector_registers,
            self.bf16_dot,
            self.int8_dot,
            self.int16_dot,
            self.halves,
            self.bf16_tiles,
            self.int8_tiles,
            self.claims,
            self.fractions,
            self.subnormals,
            self.widens_beside,
            self.distant,
        )
        launches = collect_launches(module)
        try:
            table, target = read(Path(self.tuned)) if self.tuned else {}, target_text(module)
        except TuningError as error:
            raise PipelineError([str(error)]) from error
        used: dict[str, Schedule] = {}
        for view in module.regions[0].blocks[0].operations:
            op = view.operation
            if "mlc.kernel" not in op.attributes or "mlc.schedule" in op.attributes:
                continue
            name = ir.StringAttr(op.attributes["sym_name"]).value
            constants = constant_inputs(launches.get(name, []))
            with op.context, op.location:
                schedule = choose(kernel_source(op), unit, constants)
                if table:
                    schedule = measured(op, schedule, target, table, used)
                op.attributes["mlc.schedule"] = ir.ArrayAttr.get([schedule_attribute(schedule)])
        if used:
            self.count("tuned", len(used))
            module.attributes["mlc.tuning"] = ir.StringAttr.get(digest(used))


def measured(
    kernel: ir.Operation, default: Schedule, target: str, table: dict[str, Entry], used: dict[str, Schedule]
) -> Schedule:
    """The schedule of a kernel from the file, noted in `used`; `default` when it is not there, or was edited in more
    than what tuning explores.
    """
    key = entry_key(kernel_text(kernel), default, target)
    if key not in table or fixed_part(table[key].schedule) != fixed_part(default):
        return default
    used[key] = table[key].schedule
    return table[key].schedule


def target_text(module: ir.Operation) -> str:
    """What code is generated for, as entries of tuning name it: CPU, its features and the level of optimisation."""
    if "mlc.codegen" not in module.attributes:
        return ""
    kept = {named.name: named.attr for named in ir.DictAttr(module.attributes["mlc.codegen"])}
    parts = [ir.StringAttr(kept[name]).value for name in ("triple", "cpu", "features")]
    return "|".join([*parts, f"O{ir.IntegerAttr(kept['opt_level']).value}"])


def gpu_target_text(target: NvidiaTarget, precision: str) -> str:
    """What GPU code is generated for, as entries of tuning name it: the architecture, and how f32 may be rounded."""
    return f"{target.arch}|tf32" if precision == "tf32" else target.arch


def schedule_attribute(schedule: dict[str, int | str]) -> ir.DictAttr:
    """A schedule as an attribute: strings and i64 integers."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.DictAttr.get(
        {
            name: ir.StringAttr.get(value) if isinstance(value, str) else ir.IntegerAttr.get(i64, value)
            for name, value in schedule.items()
        }
    )


def read_schedule(kernel: ir.Operation) -> dict[str, int | str]:
    """The schedule that applies to a kernel module.

    Raises ValueError when the kernel has none.
    """
    if "mlc.schedule" not in kernel.attributes:
        raise ValueError(f"kernel {kernel.attributes['sym_name']} has no mlc.schedule; run mlc-assign-schedules first")
    entry = ir.DictAttr(ir.ArrayAttr(kernel.attributes["mlc.schedule"])[0])
    schedule: dict[str, int | str] = {}
    for i in range(len(entry)):
        named = entry[i]
        schedule[named.name] = named.attr.value
    return schedule


def collect_launches(module: ir.Operation) -> dict[str, list[ir.Operation]]:
    """The `mlc.launch` operations of a module, by kernel name."""
    found: dict[str, list[ir.Operation]] = {}

    def visit(op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for view in block.operations:
                    inner = view.operation
                    if inner.name == "mlc.launch":
                        found.setdefault(called_kernel(inner), []).append(inner)
                    elif "mlc.kernel" not in inner.attributes:
                        visit(inner)

    visit(module)
    return found


def weight_source(value: ir.Value) -> ir.Value | None:
    """The `mlc.weight` result that `value` is a view of, or None. A view of extents that only the run knows is none: a
    weight is transformed when compiling.
    """
    if isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape:
        return None
    op = defining_op(value)
    while op is not None and op.name in VIEWS:
        value = op.operands[0]
        op = defining_op(value)
    return value if op is not None and op.name == "mlc.weight" else None


def constant_inputs(launches: list[ir.Operation]) -> set[int]:
    """Numbers of the inputs that are weights in every launch of a kernel."""
    if not launches:
        return set()
    numbers = range(len(launches[0].operands))
    return {i for i in numbers if all(weight_source(launch.operands[i]) is not None for launch in launches)}
