"""Tensor maps of a kernel's launch (docs/ir.md, section 8), as data: from the IR, and as the runtime reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

TYPES = {"u8": 0, "f16": 6, "f32": 7, "bf16": 9, "tf32": 11}  # CUtensorMapDataType
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # bytes -> CUtensorMapSwizzle
RANK, FACTORS, WINDOW = 5, 6, 3
Size = tuple[int, ...]
"""A factor, and the words of the launch that it is multiplied with."""


@dataclass(frozen=True)
class TensorMap:
    """A map of the tensor whose address is word `tensor` of a launch; the contiguous dimension is the first, and has no
    stride. Strides are in bytes, `swizzle` too. A copy takes no more than there is of the dimensions `fitted`. `pixels`
    is not 0 for maps of windows, which have `low`, `high` and `step` for every dimension of the window."""

    tensor: int
    element: str
    extents: tuple[Size, ...]
    strides: tuple[Size, ...]
    box: tuple[int, ...]
    swizzle: int
    pixels: int = 0
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    step: tuple[int, ...] = ()
    fitted: tuple[int, ...] = ()

    def words(self) -> list[int]:
        """The struct `mlc_rt_gpu_map` (mlc/runtime/src/program.h)."""
        sizes = [*_filled(self.extents, RANK), *_filled(self.strides, RANK - 1)]
        words = [self.tensor, TYPES[self.element], len(self.extents), SWIZZLES[self.swizzle]]
        for factor, *factors in sizes:
            words += [factor, *factors, *[-1] * (FACTORS - len(factors))]
        box = [-n if i in self.fitted else n for i, n in enumerate(self.box)]
        words += [*box, *[1] * (RANK - len(box)), self.pixels]
        for corner in (self.low, self.high, self.step):
            words += [*corner, *[0] * (WINDOW - len(corner))]
        return words


def _filled(sizes: Sequence[Size], count: int) -> list[Size]:
    return [*sizes, *[(1,)] * (count - len(sizes))]


def read_maps(kernel: Any) -> tuple[TensorMap, ...]:
    """The attribute `mlc.tensor_maps` of a kernel module; empty without one."""
    import mlir.ir as ir

    if "mlc.tensor_maps" not in kernel.attributes:
        return ()
    return tuple(_read(ir.DictAttr(entry)) for entry in ir.ArrayAttr(kernel.attributes["mlc.tensor_maps"]))


def _read(entry: Any) -> TensorMap:
    import mlir.ir as ir

    def sizes(name: str) -> tuple[Size, ...]:
        return tuple(tuple(ir.DenseI64ArrayAttr(size)) for size in ir.ArrayAttr(entry[name]))

    element, box = ir.StringAttr(entry["element"]).value, tuple(ir.DenseI64ArrayAttr(entry["box"]))
    tensor, swizzle = (ir.IntegerAttr(entry[name]).value for name in ("tensor", "swizzle"))
    fitted = tuple(ir.DenseI64ArrayAttr(entry["fitted"])) if "fitted" in entry else ()
    plain = TensorMap(tensor, element, sizes("extents"), sizes("strides"), box, swizzle, fitted=fitted)
    if "pixels" not in entry:
        return plain
    low, high, step = (tuple(ir.DenseI64ArrayAttr(entry[name])) for name in ("low", "high", "step"))
    return replace(plain, pixels=ir.IntegerAttr(entry["pixels"]).value, low=low, high=high, step=step)
