"""Extents of tensors as far as they are known, and what the target computes on vectors with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.generics import operand_map

MASKED_BITS = 512  # vectors so wide come with masks that cost next to nothing, for every size of element
ITEMS_WANTED = 64  # work items that keep a pool busy until the end
ITEMS_ENOUGH = 16  # that keep few threads busy, where more of them would be too small, or do something twice
Extent = int | None  # None: known at run time only


@dataclass(frozen=True)
class VectorUnit:
    """What the target offers to the register allocator of the templates."""

    bits: int
    registers: int
    bf16_dot: bool = False  # has a fast instruction that sums products of pairs of bf16
    int8_dot: bool = False  # has an instruction that sums products of quads of 8-bit integers
    int16_dot: bool = False  # has an instruction that sums products of pairs of 16-bit integers
    halves: bool = False  # vectors of half the width take half the time
    bf16_tiles: bool = False  # has matrix tiles that multiply bf16
    int8_tiles: bool = False  # has matrix tiles that multiply integers of eight bits
    claims: bool = False  # gains where lines of the cache were fetched before
    fractions: bool = False  # takes fractions as fast as it rounds
    subnormals: bool = False  # computes with subnormal numbers as fast as with others
    widens_beside: bool = False  # makes f32 of f16 beside multiply-adds
    distant: bool = False  # is far from what its second level of cache lacks

    @property
    def scalef(self) -> int:
        """1 where an instruction scales by powers of two: AVX-512's, which alone has such registers. 2 where the one
        that takes fractions is worth it too, 3 where subnormal results need not be avoided.
        """
        return 0 if self.bits != 512 else 2 if self.fractions else 3 if self.subnormals else 1

    def lanes(self, element: ir.Type) -> int:
        """Lanes for computing on `element`: 32-bit lanes, 64-bit ones for f64."""
        return self.bits // (64 if isinstance(element, ir.F64Type) else 32)


def shape_of(type_: ir.RankedTensorType) -> list[Extent]:
    """The extents of a tensor."""
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def known(extents: Sequence[Extent]) -> int | None:
    """Their product; None where one is not known."""
    total = 1
    for extent in extents:
        if extent is None:
            return None
        total *= extent
    return total


def at_least(extents: Sequence[Extent], enough: int) -> int | None:
    """Their product; where some are not known that of the others, if it is `enough` for decisions: one image is what
    batches of images are made of. None where it is not."""
    least = math.prod(extent for extent in extents if extent is not None)
    return least if None not in extents or least >= enough else None


def reach(root: ir.Operation, operand: int, dim: int) -> Extent:
    """The extent of dimension `dim` of the iteration of a generic, which the `operand` is read along; 1 where it is
    not."""
    exprs, extents = operand_map(root, operand).results, shape_of(root.operands[operand].type)
    found = (n for e, n in zip(exprs, extents, strict=True) if isinstance(e, ir.AffineDimExpr) and e.position == dim)
    return next(found, 1)


def along(root: ir.Operation, dim: int) -> Extent:
    """The extent of dimension `dim` of the iteration of a contraction."""
    return next((extent for extent in (reach(root, operand, dim) for operand in range(2)) if extent != 1), 1)


def summed(root: ir.Operation) -> list[Extent]:
    """The extents that a contraction sums over, from the outermost on."""
    kinds = root.attributes["iterator_types"]
    return [along(root, dim) for dim, kind in enumerate(kinds) if "reduction" in str(kind)]


def or_many(extent: Extent) -> int:
    """An extent; many where it is not known."""
    return 1 << 30 if extent is None else extent
