"""Tensor maps: what the copy engine of Hopper is told about a tensor (CUDA driver API, "Tensor Map Object Management").

A kernel that copies by tensor maps has the attribute `mlc.tensor_maps`, from which the runtime makes them before every
launch: extents and strides may depend on the launch's arguments. In the kernel they are pointers behind its other
arguments. A kernel that uses the workspace has its address in front of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.frame import KernelSource

ATTRIBUTE = "mlc.tensor_maps"
SHARED_BYTES = "mlc.shared_bytes"
"""The attribute that says how much dynamic shared memory a block of the kernel has."""
WORKSPACE_BYTES = "mlc.workspace_bytes"
"""The attribute that says how much of the context's workspace a launch uses: memory whose first `COUNTER_BYTES` are 0
before every launch and after it, and of the rest of which nothing is known."""
COUNTER_BYTES = 4096
LARGEST_RANK = 5


@dataclass(frozen=True)
class Product:
    """A size: `factor` times the launch's argument words `words`."""

    factor: int
    words: tuple[int, ...] = ()

    def times(self, other: Product) -> Product:
        return Product(self.factor * other.factor, (*self.words, *other.words))

    def attribute(self) -> ir.Attribute:
        return ir.DenseI64ArrayAttr.get([self.factor, *self.words])


@dataclass(frozen=True)
class Axis:
    """A dimension of a tensor map: its extent, and its stride in elements."""

    extent: Product
    stride: Product


@dataclass(frozen=True)
class MapWindow:
    """Where windows begin in one dimension: from `low` to the last element plus `high`, `step` apart."""

    low: int
    high: int
    step: int


@dataclass(frozen=True)
class TensorMap:
    """A map of the tensor that is the kernel's argument number `tensor`.

    `axes` are its dimensions, the contiguous one first; `box` are the extents of one copy; `swizzle` is the width in
    bytes of the pattern in which 16-byte pieces are permuted in shared memory; `element` is bf16, f16, f32, tf32
    (f32 that is rounded on the way) or u8 (bytes). A copy takes no more than there is of the dimensions `fitted`.

    With `windows` a copy brings `pixels` windows' elements of a tensor with channels first in `axes` and images last:
    those of one tap, at which a window begins `low` in front of the first pixel and ends `high` behind the last.
    """

    tensor: int
    element: str
    bytes_each: int
    axes: tuple[Axis, ...]
    box: tuple[int, ...]
    swizzle: int
    pixels: int = 0
    windows: tuple[MapWindow, ...] = ()
    fitted: tuple[int, ...] = ()

    def attribute(self) -> ir.Attribute:
        """The map as an entry of `mlc.tensor_maps`."""
        i64 = ir.IntegerType.get_signless(64)
        strides = [Product(self.bytes_each).times(axis.stride) for axis in self.axes[1:]]
        windows: dict[str, ir.Attribute] = {}
        if self.fitted:
            windows["fitted"] = ir.DenseI64ArrayAttr.get(self.fitted)
        if self.windows:
            windows["pixels"] = ir.IntegerAttr.get(i64, self.pixels)
            for name in ("low", "high", "step"):
                windows[name] = ir.DenseI64ArrayAttr.get([getattr(w, name) for w in self.windows])
        return ir.DictAttr.get(
            {
                **windows,
                "tensor": ir.IntegerAttr.get(i64, self.tensor),
                "element": ir.StringAttr.get(self.element),
                "extents": ir.ArrayAttr.get([axis.extent.attribute() for axis in self.axes]),
                "strides": ir.ArrayAttr.get([stride.attribute() for stride in strides]),
                "box": ir.DenseI64ArrayAttr.get(self.box),
                "swizzle": ir.IntegerAttr.get(i64, self.swizzle),
            }
        )


def extents_of(source: KernelSource, tensor: ir.Value) -> list[Product]:
    """The extents of a tensor argument: known, or words of a launch, which are the addresses of all tensors and then
    their dynamic extents in order."""
    word, found = len(source.tensors), []
    for other in source.tensors:
        for position in range(other.type.rank):
            dynamic = other.type.is_dynamic_dim(position)
            if other == tensor:
                found.append(Product(1, (word,)) if dynamic else Product(other.type.get_dim_size(position)))
            word += dynamic
    return found


def attach(kernel: ir.Operation, maps: Sequence[TensorMap], shared_bytes: int, workspace: int = 0) -> None:
    """Notes on the kernel module what its launch takes."""
    i64 = ir.IntegerType.get_signless(64)
    kernel.attributes[ATTRIBUTE] = ir.ArrayAttr.get([one.attribute() for one in maps])
    kernel.attributes[SHARED_BYTES] = ir.IntegerAttr.get(i64, shared_bytes)
    if workspace:
        kernel.attributes[WORKSPACE_BYTES] = ir.IntegerAttr.get(i64, workspace)


def count_maps(kernel: ir.Operation) -> int:
    """How many tensor maps a launch of the kernel module takes."""
    return len(ir.ArrayAttr(kernel.attributes[ATTRIBUTE])) if ATTRIBUTE in kernel.attributes else 0


def count_pointers(kernel: ir.Operation) -> int:
    """How many pointers a launch of the kernel module takes behind everything else: the workspace, if it uses one, and
    tensor maps."""
    return count_maps(kernel) + (WORKSPACE_BYTES in kernel.attributes)
