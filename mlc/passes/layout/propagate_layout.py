"""Pass `mlc-propagate-layout`: convolutions and pools become channels-last, and what is between them follows.

    %0 = mlc.conv %x, %w {layout = "nchw"} ; %1 = mlc.unary exp %0 ; %2 = mlc.conv %1, %v {layout = "nchw"}
becomes
    %t = mlc.transpose %x {mlc.relayout}
    %0 = mlc.conv %t, %wt {layout = "nhwc"} ; %1 = mlc.unary exp %0 ; %2 = mlc.conv %1, %vt {layout = "nhwc"}
    %3 = mlc.transpose %2 {mlc.relayout}

A transposition that makes channels first out of channels last, or an image out of tokens, is followed as well: what is
between it and a convolution, resizing and concatenations for example, has channels last, and it is gone.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor
from mlc.passes.base import Pass
from mlc.passes.layout import Moved, rules
from mlc.passes.layout.context import Layouts
from mlc.passes.layout.shape import extent_of, makes_an_image
from mlc.passes.lower.to_linalg.sizes import constant_index
from mlc.passes.walk import functions


class PropagateLayout(Pass):
    """Chooses channels-last for convolutions and pools and propagates it."""

    dialects = ("arith", "tensor", "mlc")

    def run(self, op: ir.OpView) -> None:
        for function in functions(op):
            propagate(function)


def propagate(function: ir.Operation) -> None:
    """Changes the layouts of one function; one without convolutions stays as it is."""
    if not _has_convolution(function):
        return
    layouts = Layouts(function)
    replaced: list[ir.Operation] = []
    for block in function.regions[0].blocks:
        _walk(layouts, block, replaced)
    for op in reversed(replaced):
        op.erase()
    _erase_unused_transposes(function)


def _has_convolution(function: ir.Operation) -> bool:
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = op.name == "mlc.conv" and OpAdaptor(op).text("layout", "nchw") == "nchw"
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _walk(layouts: Layouts, block: ir.Block, replaced: list[ir.Operation]) -> None:
    for view in list(block.operations):
        op = view.operation
        if _replace(layouts, op):
            replaced.append(op)
            continue
        for number, value in enumerate(list(op.operands)):
            if layouts.of(value) is not None:
                op.operands[number] = layouts.materialized(value)
        for region in op.regions:
            for inner in region.blocks:
                _walk(layouts, inner, replaced)


_STARTS = frozenset({"mlc.conv", "mlc.pool"})


def _replace(layouts: Layouts, op: ir.Operation) -> bool:
    """Builds `op` again on inner values where a rule says how."""
    moved = any(layouts.of(v) is not None for v in op.operands)
    if op.name == "tensor.dim" and moved:
        return _replace_dim(layouts, op)
    rule = rules().get(op.name)
    if rule is None or not (moved or op.name in _STARTS or makes_an_image(op)):
        return False
    with ir.InsertionPoint(op), op.location:
        results = rule(layouts, op)
    if results is None:
        return False
    for old, new in zip(list(op.results), results, strict=True):
        _record(layouts, old, new)
    return True


def _record(layouts: Layouts, old: ir.Value, new: Moved | None) -> None:
    if new is None:
        return
    if new.is_identity:
        old.replace_all_uses_with(new.inner)
    else:
        layouts.moved[old] = new


def _replace_dim(layouts: Layouts, op: ir.Operation) -> bool:
    position, moved = constant_index(op.operands[1]), layouts.of(op.operands[0])
    if position is None or moved is None:
        return False
    with ir.InsertionPoint(op), op.location:
        op.results[0].replace_all_uses_with(extent_of(moved, position))
    return True


def _erase_unused_transposes(function: ir.Operation) -> None:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in ("mlc.transpose", "tensor.dim"):
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in reversed(found):
        if not any(True for _ in op.results[0].uses):
            op.erase()
