"""Give every GPU kernel its entry: the function that all threads run, each for its own item.

```mlir
func.func @k0(%t: memref<f32>, …, %dims: index…, %error: memref<2xi64>, %begin: index, %end: index)
  →  func.func private @k0_item(…the same…)
     func.func @k0(%t: memref<f32>, …, %dims: index…, %error: memref<2xi64>, %items: index)
```
Pointers to the workspace (`mlc.workspace_bytes`) and to tensor maps (`mlc.tensor_maps`) stand behind everything else in
both.
A thread's item is its number in the grid divided by the threads that share an item (`group` of the schedule). Threads
of a shared item take the last item when there is none for them, so that all threads of a warp reach its shuffles;
others leave. `inline` makes one function of both afterwards.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, func, nvvm

from mlc.kernels.common.frame import if_then
from mlc.kernels.nvidia.tensor_maps import count_pointers
from mlc.passes.base import Pass
from mlc.passes.lower.convert_gpu_kernels import gpu_kernels
from mlc.passes.schedule.assign_schedules import read_schedule


class AddGpuEntries(Pass):
    """Give every GPU kernel its entry: the function that all threads run, each for its own item."""

    dialects = ("func", "llvm", "scf", "arith", "nvvm")

    def run(self, root: ir.OpView) -> None:
        for op in gpu_kernels(root.operation):
            schedule = read_schedule(op)
            _add_entry(op, int(schedule["threads"]), int(schedule.get("group", 1)), count_pointers(op))


def _add_entry(kernel: ir.Operation, threads: int, group: int, behind: int) -> None:
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    item = next(
        o for o in kernel.regions[0].blocks[0].operations
        if isinstance(o, func.FuncOp) and o.name.value == name
    )  # fmt: skip
    item.attributes["sym_name"] = ir.StringAttr.get(f"{name}_item")
    item.attributes["sym_visibility"] = ir.StringAttr.get("private")
    end = len(item.type.inputs) - behind - 1  # the items' end becomes their number, the begin goes
    inputs = [t for i, t in enumerate(item.type.inputs) if i != end]
    with kernel.location, ir.InsertionPoint(item):
        entry = func.FuncOp(name, ir.FunctionType.get(inputs, []))
    if "arg_attrs" in item.attributes:
        entry.arg_attrs = ir.ArrayAttr.get([a for i, a in enumerate(item.arg_attrs) if i != end])
    with kernel.location, ir.InsertionPoint(entry.add_entry_block()):
        _emit_entry(entry, item, (threads, group), behind)


def _emit_entry(entry: func.FuncOp, item: func.FuncOp, shape: tuple[int, int], behind: int) -> None:
    threads, group = shape
    arguments = list(entry.arguments)
    pointers = arguments[len(arguments) - behind :]
    *arguments, items = arguments[: len(arguments) - behind]
    begin = _item_number(threads, group)
    one = arith.constant(ir.IndexType.get(), 1)

    def run(number: ir.Value) -> None:
        end = arith.AddIOp(number, one, overflowFlags=arith.IntegerOverflowFlags.nsw).result
        func.CallOp(item, [*arguments, number, end, *pointers])

    if group == 1:
        if_then(arith.cmpi(arith.CmpIPredicate.slt, begin, items), lambda: run(begin))
    elif group == threads:
        run(begin)
    else:
        run(arith.minsi(begin, arith.subi(items, one)))
    func.ReturnOp([])


def _item_number(threads: int, group: int) -> ir.Value:
    """(block · threads + thread) / group; a grid has as many blocks as hold all items."""
    i32, index = ir.IntegerType.get_signless(32), ir.IndexType.get()
    block = arith.index_castui(index, nvvm.read_ptx_sreg_ctaid_x(i32))
    if group == threads:
        return block
    per_block = arith.constant(index, threads // group)
    thread = arith.index_castui(index, nvvm.read_ptx_sreg_tid_x(i32))
    local = thread if group == 1 else arith.divui(thread, arith.constant(index, group))
    first = arith.MulIOp(block, per_block, overflowFlags=arith.IntegerOverflowFlags.nsw).result
    return arith.AddIOp(first, local, overflowFlags=arith.IntegerOverflowFlags.nsw).result
