"""Pass `mlc-plan-winograd`: decides which 3x3 convolutions are computed by Winograd's minimal filtering.

    %0 = mlc.conv %x, %w {layout = "nhwc", …} : tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32> -> tensor<1x56x56x64xf32>
becomes
    %0 = mlc.conv %x, %w {layout = "nhwc", mlc.winograd = 4, …} : …

where that takes less time: a quarter of the multiplications for tiles of 4x4 results (F(4x4, 3x3)) and four ninths for
2x2, but more memory to go over, larger filters, and tiles that reach over the edge. The transforms round too, so the
pass is in the pipeline on request only. `mlc-lower-to-linalg` obeys (to_linalg/winograd.py).
"""

from __future__ import annotations

import math
from typing import Any

from mlir import ir

from mlc.passes.adaptor import OpAdaptor
from mlc.passes.base import Pass
from mlc.passes.lower.to_linalg.winograd import MATRICES, TAPS
from mlc.passes.simplify.rewrite import is_static
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations
from mlc.targets.cpu import Rates

_GAIN = 0.9  # of the direct time: what it must take less than


class PlanWinograd(Pass):
    """Decides which convolutions are computed by Winograd's minimal filtering."""

    dialects = ("mlc",)
    statistics = {"planned": "convolutions by minimal filtering"}

    tile: int = 4
    "Rows and columns of results that are computed together: 2 or 4"
    arithmetic: int = 100
    "10^9 operations a second that contractions reach on one core; multiply-adds count twice"
    near: int = 200
    "10^9 bytes a second of what the transforms write and read again"
    memory: int = 30
    "10^9 bytes a second of filters that come from memory"

    def run(self, op: Any) -> None:
        if self.tile not in MATRICES:
            raise ValueError(f"mlc-plan-winograd: no tile of {self.tile}; there are {sorted(MATRICES)}")
        i64 = ir.IntegerType.get_signless(64)
        for function in functions(op):
            weights = WeightOnly()
            for inner in operations(function):
                if inner.name != "mlc.conv" or not _applies(OpAdaptor(inner), weights):
                    continue
                if _pays(OpAdaptor(inner), self.tile, Rates(self.arithmetic, self.near, self.memory)):
                    inner.attributes["mlc.winograd"] = ir.IntegerAttr.get(i64, self.tile)
                    self.count("planned")


def _applies(op: OpAdaptor, weights: WeightOnly) -> bool:
    """Is it a dense 3x3 convolution at stride 1 in f32 with channels last and a known filter and shape?"""
    value, filter_ = op.operands[:2]
    if op.text("layout", "nchw") != "nhwc" or value.type.rank != 4 or list(filter_.type.shape[:2]) != [TAPS, TAPS]:
        return False
    if not (is_static(value.type) and is_static(op.types[0]) and isinstance(value.type.element_type, ir.F32Type)):
        return False
    plain = op.int("groups", 1) == 1 and set(op.ints("strides")) == set(op.ints("dilations")) == {1}
    return plain and op.types[0].element_type == value.type.element_type and weights.has(filter_)


def _pays(op: OpAdaptor, tile: int, rates: Rates) -> bool:
    batch, height, width, outputs = op.types[0].shape
    channels, window = op.operand(0).type.shape[-1], MATRICES[tile].window
    direct = 2 * batch * _inside(op, 0) * _inside(op, 1) * channels * outputs / rates.arithmetic
    tiles, points = batch * math.ceil(height / tile) * math.ceil(width / tile), window * window
    products = 2 * points * tiles * channels * outputs / rates.arithmetic
    back = tile * window * window + tile * tile * window
    transforms = 2 * tiles * (2 * points * window * channels + back * outputs) / rates.arithmetic
    moved = 4 * tiles * (tile * tile + 2 * tile * window + 2 * points) * (channels + outputs) / rates.near
    filters = 4 * (points - TAPS * TAPS) * channels * outputs / rates.memory
    return products + transforms + moved + filters < _GAIN * direct


def _inside(op: OpAdaptor, axis: int) -> int:
    """Pairs of a result and a tap along a spatial dimension that read inside of the input."""
    extent, low = op.operand(0).type.shape[1 + axis], op.ints("padding")[axis]
    return sum(0 <= i + tap - low < extent for i in range(op.types[0].shape[1 + axis]) for tap in range(TAPS))
