"""The shell of templates whose work items are plain loops: one function for the items, one for their number."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import func

from mlc.kernels.common.frame import Frame, KernelSource, for_loop
from mlc.kernels.common.index import Scalar

Items = Callable[[Frame], list[Scalar]]
Body = Callable[[Frame, list[Scalar]], None]


def emit_items(
    source: KernelSource,
    items: Items,
    body: Body,
    *,
    alignment: int = 0,
    declare: Callable[[Frame], None] | None = None,
) -> list[Frame]:
    """`body(frame, coords)` for every coordinate of the box `items(frame)`, and the grid function.

    `alignment` is what the kernel may assume of its tensors (`Frame`); `declare` adds to the module what it needs.
    """
    frame = Frame(source, alignment=alignment)
    if declare is not None:
        declare(frame)
    with frame.body():
        extents = items(frame)

        def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(frame, frame.math.delinearize(variable, extents) if extents else [])
            return []

        for_loop(frame, frame.begin, frame.end, 1, [], item)
        func.ReturnOp([])
    return [frame, emit_grid(source, lambda grid, _: items(grid))]


def emit_grid(source: KernelSource, extents: Callable[[Frame, list[Scalar]], list[Scalar]]) -> Frame:
    """The grid function: the size of the box `extents(frame, shape)`; `shape` is that of the first destination."""
    grid = Frame(source, grid=True)
    with grid.body():
        box = extents(grid, grid.buffers[source.destinations[0]].shape)
        func.ReturnOp([grid.constants.index(grid.math.product(box))])
    return grid
