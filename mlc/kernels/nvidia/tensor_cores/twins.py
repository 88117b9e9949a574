"""Twin products: two products of one left operand whose results only meet in an epilogue, as those of a gated unit.

Tensor cores take them as one product with the columns of both: a tile has as many columns of one as of the other, so
that a thread has the two results of an element in its registers, and the left operand is copied once.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.evaluate import Override
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.roles import Roles
from mlc.kernels.nvidia.tensor_cores.operands import Operand, Pixels, operands_of
from mlc.kernels.nvidia.tensor_cores.packed_epilogue import PackedEpilogue

COUNT = 2


def products_of(source: KernelSource) -> list[ir.Operation]:
    """The contractions of a kernel in their order."""
    return [view.operation for view in source.block.operations if is_contraction(view.operation)]


def are_alike(products: Sequence[ir.Operation], roles: Roles) -> bool:
    """Are products, of which the first has `roles`, the same but for the values that they read?"""
    first, names = products[0], ("indexing_maps", "iterator_types")
    same = all(op.attributes[name] == first.attributes[name] for op in products for name in names)
    types = [[value.type for value in op.operands] for op in products]
    return not roles.windows and same and all(found == types[0] for found in types)


def are_twins(products: Sequence[ir.Operation], roles: Roles) -> bool:
    """Do two products, of which the first has `roles`, differ in nothing but their right operands?"""
    shared = {op.operands[roles.left] for op in products}
    return len(products) == COUNT and len(shared) == 1 and are_alike(products, roles)


def operands_of_twins(source: KernelSource, roles: Roles, twins: int) -> list[Operand | Pixels]:
    """The left operand, and the right one of each of `twins` products, of which the first has `roles`; one product is
    its own twin. Raises ValueError where one is computed in the kernel, or the products differ in more."""
    products = products_of(source)
    found = [operands_of(source, product, roles) for product in products]
    operands = [operand for one in found if one is not None for operand in (one if one is found[0] else one[1:])]
    if len(operands) != 1 + twins or twins > 1 and not are_twins(products, roles):
        raise ValueError(f"kernel {source.func.name.value}: an operand of the contraction is no argument")
    return operands


class TwinEpilogue(PackedEpilogue):
    """Stores the one result of `source`, which is computed of two products: accumulators are those of the one in front
    of those of the other."""

    def store(
        self,
        accumulators: Sequence[ir.Value],
        warp: ir.Value,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
        block: int = 0,
    ) -> None:
        """As ever."""
        each = len(accumulators) // COUNT
        first, second = accumulators[:each], accumulators[each:]
        self._second = dict(zip(first, second, strict=True))
        super().store(first, warp, lane, origin, outer, block)

    def _overrides(self, pair: Sequence[ir.Value]) -> dict[ir.Value, Override]:
        """Two neighbours of both products."""
        first, second = products_of(self.source)
        return self._sums(first, pair) | self._sums(second, [self._second[value] for value in pair])
