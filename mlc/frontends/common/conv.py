"""Convolutions: padding modes that depend on sizes, and the `mlc` operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlc.frontends.common import shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError


@dataclass(frozen=True)
class Window:
    """A sliding window over the spatial dimensions; `low` and `high` are the padding of each."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    low: list[Size]
    high: list[Size]

    @property
    def spans(self) -> list[int]:
        """How far each dilated kernel reaches."""
        return [(size - 1) * step + 1 for size, step in zip(self.kernel, self.dilations, strict=True)]

    @property
    def padding(self) -> list[int]:
        """The `padding` attribute, low then high; only for static padding."""
        return [size for size in [*self.low, *self.high] if isinstance(size, int)]

    @property
    def is_static(self) -> bool:
        """Whether every padding is an integer."""
        return len(self.padding) == 2 * len(self.kernel)


def same_padding(b: Builder, extents: Sequence[Size], window: Window, upper: bool) -> tuple[list[Size], list[Size]]:
    """The padding that makes the output extent ceil(extent / stride); the odd element goes to the high side when
    `upper`, else to the low side."""
    low: list[Size] = []
    high: list[Size] = []
    for extent, stride, span in zip(extents, window.strides, window.spans, strict=True):
        total: Size
        if stride == 1:
            total = span - 1
        else:
            steps = b.arith("subi", b.arith("ceildivsi", extent, stride), 1)
            total = b.arith("maxsi", b.arith("subi", b.arith("addi", b.arith("muli", steps, stride), span), extent), 0)
        half = b.arith("floordivsi", total, 2)
        rest = b.arith("subi", total, half)
        low.append(half if upper else rest)
        high.append(rest if upper else half)
    return low, high


def pad_spatial(b: Builder, x: Tensor, window: Window, value: Tensor | None = None) -> tuple[Tensor, Window]:
    """Moves run-time padding of an NCHW tensor into an explicit `mlc.pad`."""
    if window.is_static:
        return x, window
    zeros: list[Size] = [0, 0]
    padded = shape.pad(b, x, [*zeros, *window.low], [*zeros, *window.high], value=value)
    none: list[Size] = [0] * len(window.kernel)
    return padded, Window(window.kernel, window.strides, window.dilations, none, list(none))


def conv(b: Builder, x: Tensor, filter_: Tensor, bias: Tensor | None, window: Window, groups: int) -> Tensor:
    """`mlc.conv` in NCHW; `x` is `[N, C, spatial…]`, `filter_` `[O, C/groups, kernel…]`, `bias` `[O]`."""
    _check_ranks(x, filter_)
    x, window = pad_spatial(b, x, window)
    return b.op(
        "conv",
        [x, filter_, bias],
        strides=window.strides,
        padding=window.padding,
        dilations=window.dilations,
        groups=groups,
        layout="nchw",
    )


def conv_transpose(
    b: Builder,
    x: Tensor,
    filter_: Tensor,
    bias: Tensor | None,
    window: Window,
    groups: int,
    output_padding: Sequence[int],
) -> Tensor:
    """`mlc.conv_transpose` in NCHW; `filter_` is `[C, O/groups, kernel…]`; `window` pads the *output*."""
    _check_ranks(x, filter_)
    if not window.is_static:
        raise NodeError("the padding of a transposed convolution depends on run-time sizes")
    return b.op(
        "conv_transpose",
        [x, filter_, bias],
        strides=window.strides,
        padding=window.padding,
        dilations=window.dilations,
        groups=groups,
        output_padding=list(output_padding),
    )


def _check_ranks(x: Tensor, filter_: Tensor) -> None:
    if x.rank != filter_.rank or not 3 <= x.rank <= 5:
        raise NodeError(
            f"the input has rank {x.rank} and the filter rank {filter_.rank}; both must be 3, 4 or 5",
            "convolutions have 1, 2 or 3 spatial dimensions",
        )
