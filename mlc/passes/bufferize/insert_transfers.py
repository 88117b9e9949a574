"""Insert the transfers between the host's memory and the GPU's that placement asks for.

```mlir
%a = mlc.launch @k0(…) … {mlc.placement = "device"} …
%n = tensor.extract %a[%c0] : tensor<2xi64>
  →  %b = mlc.extern "mlc_rt_to_host"(%a) : (tensor<2xi64>) -> tensor<2xi64>
     %n = tensor.extract %b[%c0] : tensor<2xi64>
```
Every tensor is in one memory; this pass gives each operation its operands in the memory that it reads. A transfer is
made once, before its first use. Weights and constants are in both: those that the GPU reads are marked
`mlc.placement = "device"`, and so are arguments of the function, which gets the attribute `mlc.placed`.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.blocks import ancestor_in
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_placement import BRANCHES, DEVICE, HOST, LOOPS, VIEWS, is_tensor, placed
from mlc.passes.walk import functions

CALLEES = {HOST: "mlc_rt_to_host", DEVICE: "mlc_rt_to_device"}
CONSTANTS = ("mlc.constant", "mlc.weight", "arith.constant")
NOWHERE = ""  # contents that nobody has written


class InsertTransfers(Pass):
    """Insert the transfers between host and GPU that placement asks for."""

    dialects = ("mlc",)

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            _Transfers(function).run()


def placement(op: ir.Operation) -> str:
    """Where an operation that has been placed happens; the host without a word about it."""
    return ir.StringAttr(op.attributes["mlc.placement"]).value if "mlc.placement" in op.attributes else HOST


class _Transfers:
    def __init__(self, function: ir.Operation) -> None:
        self._function = function
        self._entry = function.regions[0].blocks[0]
        self._places: dict[ir.Value, str] = {}
        self._copies: dict[tuple[ir.Value, str], ir.Value] = {}

    def run(self) -> None:
        self._function.attributes["mlc.placed"] = ir.UnitAttr.get()
        self._place_arguments()
        self._block(self._entry)

    def _place_arguments(self) -> None:
        """An argument is where a kernel or a branch on the GPU wants it, else on the host."""
        attributes = []
        known = "arg_attrs" in self._function.attributes
        old = ir.ArrayAttr(self._function.attributes["arg_attrs"]) if known else None
        for number, argument in enumerate(self._entry.arguments):
            device = is_tensor(argument) and self._goes_to_device(argument)
            self._places[argument] = DEVICE if device else HOST
            named = {n.name: n.attr for n in ir.DictAttr(old[number])} if old is not None else {}
            if device:
                named["mlc.placement"] = ir.StringAttr.get(DEVICE)
            attributes.append(ir.DictAttr.get(named))
        self._function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)

    def _goes_to_device(self, value: ir.Value) -> bool:
        for use in value.uses:
            op = use.owner.operation
            if op.name in VIEWS and use.operand_number == 0:
                if self._goes_to_device(op.results[0]):
                    return True
            elif self._wanted(op, use.operand_number) == DEVICE:
                return True
        return False

    # --- Where values are, and where operations want them ---------------------------------------------------------

    def _place(self, value: ir.Value) -> str:
        if value not in self._places:
            self._places[value] = self._find_place(value)
        return self._places[value]

    def _find_place(self, value: ir.Value) -> str:
        op = value.owner.operation
        if op.name == "tensor.empty":
            return NOWHERE
        if op.name in VIEWS:
            return self._place(op.operands[0])
        if op.name == "arith.select":
            return self._place(op.operands[1]) or self._place(op.operands[2])
        return placement(op) if op.name == "mlc.launch" else HOST

    def _wanted(self, op: ir.Operation, number: int) -> str | None:
        """The memory in which `op` reads a tensor operand; None where it does not matter."""
        if op.name == "mlc.launch":
            return placement(op)
        if op.name in VIEWS:
            return HOST if number else None
        if op.name in ("tensor.dim", "func.return", *BRANCHES):
            return None
        if op.name == "arith.select":
            return None if number == 1 else self._place(op.results[0])
        if op.name in LOOPS:
            return _places(op)[number - 3] if op.name == "scf.for" else _places(op)[len(op.results) + number]
        if op.name == "scf.condition":
            return _places(op.parent.operation)[number - 1]
        if op.name == "scf.yield":
            parent = op.parent.operation
            first = len(parent.results) if parent.name == "scf.while" else 0
            return _places(parent)[first + number]
        return HOST

    # --- Doing ------------------------------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> None:
        for view in list(block.operations):
            op = view.operation
            if op.name in (*BRANCHES, *LOOPS):
                for values, place in zip(placed(op), _places(op), strict=True):
                    self._places.update(dict.fromkeys(values, place))
            for number, value in enumerate(op.operands):
                if is_tensor(value):
                    wanted = self._wanted(op, number)
                    if wanted is not None:
                        op.operands[number] = self._in(value, wanted, op)
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner)

    def _in(self, value: ir.Value, wanted: str, user: ir.Operation) -> ir.Value:
        """`value` in the memory `wanted`, for `user` and all that come after it."""
        here = self._place(value)
        constant = not isinstance(value.owner, ir.Block) and value.owner.operation.name in CONSTANTS
        if here in (wanted, NOWHERE) and not (constant and wanted == DEVICE):
            return value
        if (value, wanted) not in self._copies:
            copy = self._copy(value, wanted, user)
            self._copies[value, wanted] = copy
            self._places[copy] = wanted
        return self._copies[value, wanted]

    def _copy(self, value: ir.Value, wanted: str, user: ir.Operation) -> ir.Value:
        if isinstance(value.owner, ir.Block):
            return _transfer(value, wanted, ancestor_in(value.owner, user))
        op = value.owner.operation
        before = ancestor_in(op.block, user)
        if op.name in CONSTANTS:
            clone = op.clone(ip=ir.InsertionPoint(before))
            if wanted == DEVICE:
                clone.attributes["mlc.placement"] = ir.StringAttr.get(DEVICE)
            return clone.results[0]
        if op.name in VIEWS and op.name != "tensor.extract_slice":
            source = self._in(op.operands[0], wanted, before)
            clone = op.clone(ip=ir.InsertionPoint(before))
            clone.operands[0] = source
            return clone.results[0]
        return _transfer(value, wanted, before)


def _places(op: ir.Operation) -> list[str]:
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(op.attributes["mlc.placement"])]


def _transfer(value: ir.Value, wanted: str, before: ir.Operation) -> ir.Value:
    attributes = {"callee": ir.StringAttr.get(CALLEES[wanted]), "config": ir.StringAttr.get("")}
    ip = ir.InsertionPoint(before)
    return ir.Operation.create("mlc.extern", [value.type], [value], attributes, loc=before.location, ip=ip).results[0]
