"""Which operand of a kernel its result may be written over."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.accesses import input_accesses
from mlc.kernels.common.analysis import is_contraction, reachable, root_operation
from mlc.kernels.common.blocks import ancestor_in
from mlc.kernels.common.frame import KernelSource

# Their register tiles read what the epilogue needs at the points that they store to, right before they do, and no point
# is in two tiles.
_TILED = ("contraction", "deep_contraction", "dot_floats", "dot_product", "dot_quads", "dot_words", "tile_product")


def replaceable(source: KernelSource, template: str) -> list[int]:
    """Numbers of the inputs that a kernel of `template` may find in its destination: of the result's type, and read by
    nothing but the epilogue of the contraction, for each element of the result at that element alone.
    """
    root = root_operation(source)
    if template not in _TILED or not is_contraction(root) or len(source.results) != 1:
        return []
    [result] = source.results
    accesses = input_accesses([result], root)
    if accesses is None:
        return []
    itself = {tuple(ir.AffineExpr.get_dim(i) for i in range(result.type.rank))}
    summed = set(reachable([root.results[0]]))
    return [
        number
        for number, argument in enumerate(list(source.block.arguments)[:-1])
        if argument.type == result.type
        and accesses.get(argument) == itself
        and not any(ancestor_in(source.block, use.owner.operation) in summed for use in argument.uses)
    ]
