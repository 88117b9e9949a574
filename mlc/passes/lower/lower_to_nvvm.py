"""Make the functions of GPU kernels, which are LLVM dialect by now, what NVPTX takes for kernels.

```mlir
llvm.func @k0(%t: !llvm.ptr, …)
  →  llvm.func @k0(%t: !llvm.ptr, …) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 256>}
```
For chips on which launches overlap, a kernel begins with `nvvm.griddepcontrol launch_dependents`, and `wait` where
its schedule says that it is launched `early` and its template does not wait later (`mlc.waits`). Tensor maps are
parameters by value, which the copy engine reads where they are. The pointers of a kernel are of the global address
space: LLVM knows it from `nvvm.kernel`. The module gets the data layout of NVPTX, from which the translation to LLVM IR
takes the alignment of accesses that have none (in the default layout an i64 is aligned to 4 bytes).
"""

from __future__ import annotations

from math import prod

from mlir import ir
from mlir.dialects import nvvm

from mlc.kernels.common.constants import constant_bytes
from mlc.kernels.nvidia.early import LINE, WAITS, fetch_lines
from mlc.kernels.nvidia.tensor_maps import count_maps
from mlc.passes.base import Pass
from mlc.passes.lower.convert_gpu_kernels import gpu_kernels
from mlc.passes.schedule.add_architectures import target_of
from mlc.passes.schedule.assign_schedules import read_schedule
from mlc.targets.nvidia import NvidiaTarget

TRIPLE = "nvptx64-nvidia-cuda"
DATA_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
LIGHT = 64  # registers of a thread that leave room for enough warps to hide the memory's latency


class LowerToNvvm(Pass):
    """Mark the entries of GPU kernels, in the LLVM dialect, as kernels."""

    dialects = ("llvm", "nvvm")

    def run(self, root: ir.OpView) -> None:
        for kernel in gpu_kernels(root.operation):
            _mark(kernel, read_schedule(kernel), target_of(root.operation, kernel))
            kernel.attributes["llvm.target_triple"] = ir.StringAttr.get(TRIPLE)
            kernel.attributes["llvm.data_layout"] = ir.StringAttr.get(DATA_LAYOUT)


def _mark(kernel: ir.Operation, schedule: dict[str, int | str], target: NvidiaTarget) -> None:
    threads = int(schedule["threads"])
    # Without a number of blocks ptxas would spill to have as many as possible.
    light = max(1, min(target.registers_per_sm // (threads * LIGHT), target.blocks_held(threads)))
    blocks = int(schedule.get("blocks", light))
    name = kernel.attributes["sym_name"]
    for view in kernel.regions[0].blocks[0].operations:
        function = view.operation
        if function.name == "llvm.func" and function.attributes["sym_name"] == name:
            function.attributes["nvvm.kernel"] = ir.UnitAttr.get()
            function.attributes["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get([threads])
            function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), blocks)
            is_hopper = str(schedule["template"]).startswith("hopper_")
            names = ("split", "cluster_rows", "cluster_columns") if is_hopper else ("cluster",)
            cluster = prod(int(schedule.get(name, 1)) for name in names)
            if cluster > 1:
                function.attributes["nvvm.cluster_dim"] = ir.DenseI32ArrayAttr.get([cluster, 1, 1])
            _pass_maps_by_value(function, count_maps(kernel))
            if target.overlaps:
                is_early = bool(schedule.get("early", 0))
                small = _small_constants(kernel, threads) if is_early else []
                _overlap(function, small, waits=is_early and WAITS not in kernel.attributes)
            return
    raise ValueError(f"kernel module {name} has no llvm.func of its name; convert it to the LLVM dialect first")


def _small_constants(kernel: ir.Operation, threads: int) -> list[tuple[int, int]]:
    """Numbers and bytes of the weights of which every thread can bring a line near."""
    return [(n, size) for n, size in enumerate(constant_bytes(kernel)) if 0 < size <= threads * LINE]


def _overlap(function: ir.Operation, small: list[tuple[int, int]], *, waits: bool) -> None:
    """Lets the next launch begin, and `waits` for the launches before where this one may have begun early, with nothing
    in front of it but `small` weights that are brought into the cache: a launch that is done has seen all before it
    done, so that the next one need not know them, although it may begin before they are."""
    block = function.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block), function.location:
        nvvm.GriddepcontrolOp(nvvm.GridDepActionKind.launch_dependents)
        for number, size in small:
            fetch_lines(block.arguments[number], size)
        if waits:
            nvvm.GriddepcontrolOp(nvvm.GridDepActionKind.wait)


def _pass_maps_by_value(function: ir.Operation, maps: int) -> None:
    """Makes parameters by value of the last `maps` pointers."""
    if not maps:
        return
    by_value = ir.DictAttr.get(
        {
            "llvm.byval": ir.TypeAttr.get(ir.Type.parse("!llvm.array<16 x i64>")),
            "llvm.align": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64),
            "nvvm.grid_constant": ir.UnitAttr.get(),
        }
    )
    count = len(function.regions[0].blocks[0].arguments)
    known = list(ir.ArrayAttr(function.attributes["arg_attrs"])) if "arg_attrs" in function.attributes else []
    attributes = known or [ir.DictAttr.get({})] * count
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([*attributes[: count - maps], *[by_value] * maps])
