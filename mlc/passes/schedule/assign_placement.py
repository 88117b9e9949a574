"""Decide for every kernel whether the GPU or the host runs it: the attribute `mlc.placement`.

```mlir
%n = mlc.launch @k0(%shape) … : tensor<2xi64> …      // the product of a shape, which a size is read from
  →  %n = mlc.launch @k0(%shape) … {mlc.placement = "host"} …
     module @k0 attributes {mlc.kernel, mlc.placement = "host"} …
```
The GPU runs everything but arithmetic on a few integers that the host needs to go on (sizes, conditions, counters) and
whose operands it already has: a round trip through the GPU would cost two transfers and a wait. And but for long
sequential work (sorting, collecting, suppressing, selecting more than 1,024 or a number that only a run knows, adding
many floats to few lines in order), for which the GPU's templates have a thread or a few, the functions of float64 (exp,
log, sin, …) that no instruction of a GPU computes, and strings. A kernel that is launched on both gets a copy for the
host, `@k0_host`.

What branches and loops of the host hand on is placed by the same rule: `mlc.placement` of `scf` operations is the list
of the places of their results.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.frame import kernel_source
from mlc.kernels.nvidia.block_select import is_shared
from mlc.kernels.nvidia.limits import missing_functions
from mlc.kernels.nvidia.scatter import SCATTERS, is_parallel
from mlc.passes.base import Pass
from mlc.passes.schedule.copies import copy_kernel
from mlc.passes.walk import called_kernel, functions, operations

HOST, DEVICE = "host", "device"
VIEWS = (
    "tensor.cast",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.extract_slice",
    "tensor.reshape",
)
LOOPS = ("scf.for", "scf.while")
BRANCHES = ("scf.if", "scf.index_switch")
FEW = 64  # elements that are arithmetic on shapes rather than data
LONG = 4096  # elements that one thread of a GPU would take longer for than the transfers and the host
MANY = 256  # threads that make up for being slow


class AssignPlacement(Pass):
    """Decide for every kernel whether the GPU or the host runs it."""

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        unfit = _unfit_kernels(module)
        for function in functions(module):
            _FunctionPlacement(function, unfit).run()
        _split_kernels(module)


def is_host_kernel(kernel: ir.Operation) -> bool:
    """Whether this pass has given a kernel to the host."""
    return "mlc.placement" in kernel.attributes and ir.StringAttr(kernel.attributes["mlc.placement"]).value == HOST


def is_tensor(value: ir.Value) -> bool:
    """Whether `value` is a tensor."""
    return isinstance(value.type, ir.RankedTensorType)


def terminator(block: ir.Block) -> ir.Operation:
    """The last operation of `block`."""
    return block.operations[len(block.operations) - 1].operation


def incoming(op: ir.Operation) -> list[list[ir.Value]]:
    """For every result of a branch or loop: the values that it, and what the loop carries in its place, may be."""
    if op.name in BRANCHES:
        ends = [terminator(block) for region in op.regions for block in region.blocks]
        return [[end.operands[i] for end in ends] for i in range(len(op.results))]
    if op.name == "scf.for":
        yielded = terminator(op.regions[0].blocks[0])
        return [[op.operands[3 + i], yielded.operands[i]] for i in range(len(op.results))]
    condition = terminator(op.regions[0].blocks[0])
    return [[condition.operands[1 + i]] for i in range(len(op.results))]


class _FunctionPlacement:
    """The decisions for one host function."""

    def __init__(self, function: ir.Operation, unfit: set[str]) -> None:
        self._unfit = unfit
        self._function = function
        self._entry = function.regions[0].blocks[0]
        self._available: dict[ir.Value, bool] = {}
        self._needed: dict[ir.Value, bool] = {}

    def run(self) -> None:
        for op in operations(self._function):
            if op.name == "mlc.launch":
                host = all(self._on_host(v) for v in op.operands if is_tensor(v)) and len(op.results) > 0
                host = host and all(_few_integers(v) for v in op.results) and any(map(self._wanted, op.results))
                host = host or called_kernel(op) in self._unfit
                op.attributes["mlc.placement"] = ir.StringAttr.get(HOST if host else DEVICE)
            elif op.name in (*BRANCHES, *LOOPS):
                places = [HOST if self._is_host(group) else DEVICE for group in placed(op)]
                op.attributes["mlc.placement"] = ir.ArrayAttr.get([ir.StringAttr.get(p) for p in places])

    def _is_host(self, values: list[ir.Value]) -> bool:
        return all(map(self._on_host, values)) and any(map(self._wanted, values))

    def _on_host(self, value: ir.Value) -> bool:
        """Whether the host has the few elements of `value`, or could compute them from what it has."""
        if value not in self._available:
            self._available[value] = True  # what a loop carries is there when all that goes into it is
            self._available[value] = _few(value) and self._computable(value)
        return self._available[value]

    def _computable(self, value: ir.Value) -> bool:
        if isinstance(value.owner, ir.Block):
            return _few_integers(value) and self._argument(value)
        op = value.owner.operation
        if op.name in VIEWS:
            return self._on_host(op.operands[0])
        if op.name == "mlc.launch":
            return _few_integers(value) and all(self._on_host(v) for v in op.operands if is_tensor(v))
        if op.name in (*BRANCHES, *LOOPS):
            number = ir.OpResult(value).result_number
            return _few_integers(value) and all(self._on_host(v) for v in incoming(op)[number])
        return op.name.startswith(("mlc.", "tensor.", "arith.constant"))

    def _argument(self, value: ir.Value) -> bool:
        """An argument of a function, or what a loop carries."""
        block = value.owner
        if block == self._entry:
            return True
        op, number = block.owner.operation, ir.BlockArgument(value).arg_number
        if op.name == "scf.for":
            return number == 0 or all(self._on_host(v) for v in incoming(op)[number - 1])
        before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
        if block == after:
            return self._on_host(terminator(before).operands[1 + number])
        return self._on_host(op.operands[number]) and self._on_host(terminator(after).operands[number])

    def _wanted(self, value: ir.Value) -> bool:
        """Whether the host reads elements of `value`, or of what it would compute from them."""
        if value not in self._needed:
            self._needed[value] = False
            self._needed[value] = any(self._reads(use.owner.operation, use.operand_number) for use in value.uses)
        return self._needed[value]

    def _reads(self, op: ir.Operation, number: int) -> bool:
        if op.name == "mlc.launch":
            return all(_few_integers(v) for v in op.results) and any(map(self._wanted, op.results))
        if op.name in VIEWS:
            return number > 0 or self._wanted(op.results[0])
        if op.name == "scf.for":
            return number >= 3 and self._wanted(op.regions[0].blocks[0].arguments[number - 2])
        if op.name == "scf.while":
            return self._wanted(op.regions[0].blocks[0].arguments[number])
        if op.name == "scf.condition":
            after = op.parent.operation.regions[1].blocks[0]
            return number > 0 and (
                self._wanted(after.arguments[number - 1]) or self._wanted(op.parent.operation.results[number - 1])
            )
        if op.name == "scf.yield":
            return self._yields(op.parent.operation, number)
        return op.name == "tensor.extract" or op.name.startswith(("mlc.sequence", "mlc.optional"))

    def _yields(self, parent: ir.Operation, number: int) -> bool:
        if parent.name == "scf.while":
            return self._wanted(parent.regions[0].blocks[0].arguments[number])
        if parent.name == "scf.for" and self._wanted(parent.regions[0].blocks[0].arguments[number + 1]):
            return True
        return self._wanted(parent.results[number])


def _unfit_kernels(module: ir.Operation) -> set[str]:
    """The kernels that a GPU cannot compute, or whose items are too long for a thread of it and too few."""
    found = set()
    for view in module.regions[0].blocks[0].operations:
        kernel = view.operation
        if "mlc.kernel" not in kernel.attributes:
            continue
        inside = operations(kernel)
        missing = any(map(_has_float64, inside)) and missing_functions(kernel_source(kernel))
        if missing or any(map(_is_long, inside)) or any(map(_moves_strings, inside)):
            found.add(ir.StringAttr(kernel.attributes["sym_name"]).value)
    return found


def _moves_strings(op: ir.Operation) -> bool:
    """Strings are records of 16 bytes with an address of the host (`mlc-strings-to-records`)."""
    if op.name != "func.func" or not len(op.regions[0].blocks):
        return False
    record = ir.IntegerType.get_signless(128)
    arguments = op.regions[0].blocks[0].arguments
    return any(is_tensor(a) and a.type.element_type == record for a in arguments)


def _has_float64(op: ir.Operation) -> bool:
    return op.name.startswith("math.") and any(isinstance(v.type, ir.F64Type) for v in op.operands)


def _is_long(op: ir.Operation) -> bool:
    if op.name == "mlc.nonzero":  # one item; of a size that nobody knows, better the host
        count = _elements(op.operands[0].type)
        return count is None or count >= LONG
    if op.name == "mlc.suppress":  # every box waits for the better ones
        return True
    if op.name in SCATTERS:
        return not is_parallel(op)
    if op.name == "mlc.topk" and is_shared(op):
        return False
    if op.name in ("mlc.sort", "mlc.topk"):
        type_, axis = op.operands[0].type, ir.IntegerAttr(op.attributes["axis"]).value
        count = _elements(type_)
        if count is None or type_.get_dim_size(axis) < LONG:
            return False
        return count // type_.get_dim_size(axis) < MANY
    return False


def _elements(type_: ir.RankedTensorType) -> int | None:
    """How many elements a tensor has, if its type says so."""
    count = 1
    for i in range(type_.rank):
        if type_.is_dynamic_dim(i):
            return None
        count *= type_.get_dim_size(i)
    return count


def placed(op: ir.Operation) -> list[list[ir.Value]]:
    """What the places in `mlc.placement` of a branch or loop are about: for every place the values that share it.

    Those are the results, and for `scf.while` after them what the loop carries.
    """
    if op.name == "scf.for":
        carried = list(op.regions[0].blocks[0].arguments)[1:]
        return [[result, argument] for result, argument in zip(op.results, carried, strict=True)]
    if op.name == "scf.while":
        before, after = (region.blocks[0] for region in op.regions)
        handed = [[result, argument] for result, argument in zip(op.results, after.arguments, strict=True)]
        return [*handed, *([argument] for argument in before.arguments)]
    return [[result] for result in op.results]


def _few(value: ir.Value) -> bool:
    if not is_tensor(value):
        return True
    count = _elements(value.type)
    return count is not None and count <= FEW


def _few_integers(value: ir.Value) -> bool:
    return is_tensor(value) and isinstance(value.type.element_type, ir.IntegerType) and _few(value)


def _split_kernels(module: ir.Operation) -> None:
    """Writes the place of its launches onto every kernel; one that both launch is there twice then."""
    from mlc.passes.schedule.assign_schedules import collect_launches

    found = collect_launches(module)
    for view in list(module.regions[0].blocks[0].operations):
        kernel = view.operation
        if "mlc.kernel" not in kernel.attributes:
            continue
        name = ir.StringAttr(kernel.attributes["sym_name"]).value
        launches = found.get(name, [])
        places = {ir.StringAttr(launch.attributes["mlc.placement"]).value for launch in launches}
        if places == {HOST, DEVICE}:
            _clone_for_host(kernel, name, [x for x in launches if x.attributes["mlc.placement"].value == HOST])
        kernel.attributes["mlc.placement"] = ir.StringAttr.get(HOST if places == {HOST} else DEVICE)


def _clone_for_host(kernel: ir.Operation, name: str, launches: list[ir.Operation]) -> None:
    copied = f"{name}_host"
    copy_kernel(kernel, copied, ir.InsertionPoint(kernel)).attributes["mlc.placement"] = ir.StringAttr.get(HOST)
    for launch in launches:
        launch.attributes["kernel"] = ir.FlatSymbolRefAttr.get(copied)
