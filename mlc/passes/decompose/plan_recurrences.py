"""Pass `mlc-plan-recurrences`: which recurrent layers run as one kernel, `mlc.whole`.

    %y, %h, %c = mlc.recurrent lstm %x, %w, %r {…}   →   {…, mlc.whole}

The steps of a layer follow each other, so that a loop of kernels waits for its threads, or launches, at every step.
Sequences of a batch have nothing to do with each other, nor have directions: a kernel of the whole layer gives each
work item some sequences, and waits for nobody (`mlc.recurrence`). Every work item reads all of the recurrent weights in
each step: that pays while they are near it (`bytes`). A single sequence in one direction has one work item, where the
products of a step could be shared by threads: it stays a loop unless the weights are small (`alone`).

Layers with other functions than the usual ones, with peepholes, clipping, or gates that are reset before the product
stay loops, and so do those whose recurrent weights only a run knows.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, element
from mlc.passes.base import Pass
from mlc.passes.decompose.recurrent import GATES, WHOLE, usual_kind
from mlc.passes.simplify.rewrite import is_static
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations


class PlanRecurrences(Pass):
    """Decides which recurrent layers run as one kernel."""

    f32: bool = True
    "The kernel takes layers of f32"

    f16: bool = False
    "The kernel takes layers of f16"

    bf16: bool = False
    "The kernel takes layers of bf16"

    narrow: bool = False
    "Recurrent weights of f32 are rounded to bf16"

    bytes: int = 0
    "recurrent weights of one direction of at most so many bytes"

    alone: int = 0
    "the same where there is one work item, or may be"

    work: int = 0
    "the same times the number of sequences, beyond which products of all of them are faster; 0: whatever there are"

    multiple: int = 1
    "hidden elements must be a multiple of it"

    statistics = {"whole": "recurrent layers that run as one kernel"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            weights = WeightOnly()
            for op in operations(function):
                if op.name == "mlc.recurrent" and self._is_worth_it(OpAdaptor(op), weights):
                    op.attributes[WHOLE] = ir.UnitAttr.get()
                    self.count("whole")

    def _is_worth_it(self, op: OpAdaptor, weights: WeightOnly) -> bool:
        recurrence, type_ = op.operand(2), element(op.operand(0))
        hidden, batch = recurrence.type.shape[2], op.operand(0).type.shape[1]
        takes = {"f32": self.f32, "f16": self.f16, "bf16": self.bf16}
        if hidden == DYNAMIC or hidden % self.multiple or not takes.get(str(type_), False):
            return False
        if not usual_kind(op) or not weights.has(recurrence) or not is_static(op.operand(1).type):
            return False
        size = GATES[op.text()] * hidden * hidden * (16 if self.narrow else type_.width) // 8
        has_others = batch > 1 or op.text("direction", "forward") == "bidirectional"
        has_much = self.work and batch != DYNAMIC and size * batch > self.work
        return size <= (self.bytes if has_others else self.alone) and not has_much
