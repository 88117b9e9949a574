"""The shell of templates whose work items are plain loops: one function for the items, one for their number."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import func

from mlc.kernels.common.frame import Frame, KernelSource, for_loop
from mlc.kernels.common.index import Scalar

Items = Callable[[Frame], list[Scalar]]
Body = Callable[[Frame, list[Scalar]], None]


def emit_items(source: KernelSource, items: Items, body: Body, *, alignment: int = 0) -> list[Frame]:
    """`body(frame, coords)` for every coordinate of the box `items(frame)`, and the grid function.

    `alignment` is what the kernel may assume of its tensors (`Frame`).
    """
    frame = Frame(source, alignment=alignment)
    with frame.body():
        extents = items(frame)

        def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(frame, frame.math.delinearize(variable, extents) if extents else [])
            return []

        for_loop(frame, frame.begin, frame.end, 1, [], item)
        func.ReturnOp([])
    grid = Frame(source, grid=True)
    with grid.body():
        func.ReturnOp([grid.constants.index(grid.math.product(items(grid)))])
    return [frame, grid]
