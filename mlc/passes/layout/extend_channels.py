"""Pass `mlc-extend-channels`: results of convolutions for tensor cores get channels, up to a multiple of 16 bytes.

    %0 = mlc.conv %x, %w {layout = "nhwc"} : tensor<8x56x56x24xbf16>, tensor<3x3x24x18xbf16>
    %1 = mlc.binary max %0, 0.0            : tensor<8x56x56x18xbf16>
    %2 = mlc.pad %1 high [0, 0, 0, 6]                        (for the convolution that reads it: `mlc-pad-channels`)
    %3 = mlc.binary add %1, %y
becomes
    %0 = mlc.conv %x, (mlc.pad %w) {layout = "nhwc"} : tensor<8x56x56x24xbf16>, tensor<3x3x24x24xbf16>
    %2 = mlc.binary max %0, 0.0            : tensor<8x56x56x24xbf16>
    %3 = mlc.binary add (mlc.slice %2 [0, 0, 0, 0] [8, 56, 56, 18]), %y

Tensor cores read filters in rows that are multiples of 16 bytes; other ones were left to kernels without them, which
took up to ten times as long. The filters of the channels are zeros, a recipe of the weight store, and what is computed
from a result element by element keeps them: each is one number then, which is computed here. So a convolution that
would have got channels of zeros for its input (`mlc-pad-channels`) finds them there. What cannot go on with them reads
a slice. Takes convolutions in one group of 16-bit floats, with channels last and images of known size, that become no
more than twice as large or have many products for each result, as those of one or two classes at the end of a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from mlir import ir

from mlc.interp import InterpError, evaluate
from mlc.interp.dtypes import numpy_dtype
from mlc.interp.from_ir import attributes
from mlc.interp.registry import ResultType
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.layout.pad_channels import is_for_tensor_cores, missing
from mlc.passes.simplify.rewrite import constant_array, constant_index, element_count
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_POINTWISE = {"mlc.unary", "mlc.binary", "mlc.cast", "mlc.activation", "mlc.clamp"}
_MOVES = {"mlc.reshape": b.reshape, "mlc.broadcast": b.broadcast}
_MANY_PRODUCTS = 64  # of an element of the result, beside which a few times as many results are cheap
_SMALL = 16  # times smaller than the result: what may be padded by a kernel of its own


class ExtendChannels(Pass):
    """Gives results of convolutions as many channels as tensor cores want."""

    dialects = ("mlc",)
    statistics = {"extended": "convolutions that got more filters", "kept": "paddings of channels that are no more"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            extension = _Extension()
            for op in operations(function):
                extension.visit(op)
            self.count("extended", extension.extended)
            self.count("kept", extension.kept)
            replaced = extension.replaced
            del extension  # and what it remembers of values
            for op in reversed(replaced):
                op.erase()


@dataclass(frozen=True)
class _Extended:
    """A value with more channels, of each element of which `content` is the number."""

    value: ir.Value
    content: float


class _Extension:
    """The values of one function that have more channels, by the value that had not, and the operations that computed
    these (`replaced`): whatever reads one of them reads another value in the end."""

    def __init__(self) -> None:
        self.of: dict[ir.Value, _Extended] = {}
        self.replaced: list[ir.Operation] = []
        self.extended = self.kept = 0
        self._weights = WeightOnly()
        self._slices: dict[ir.Value, ir.Value] = {}

    def visit(self, op: ir.Operation) -> None:
        """Does what is to be done where an operation wants more channels, or reads a value that has them."""
        wants = _is_wanting(op)
        if not wants and not any(v in self.of for v in op.operands):
            return
        with ir.InsertionPoint(op), op.location:
            found = _convolution(op) if wants else self._followed(op)
        if found is not None:
            self.of[op.results[0]] = found
            self.replaced.append(op)
            self.extended += op.name == "mlc.conv"
        elif (same := self._padded(op)) is not None:
            op.results[0].replace_all_uses_with(same)
            self.replaced.append(op)
            self.kept += 1
        else:
            for number, value in enumerate(op.operands):
                if value in self.of:
                    op.operands[number] = self._read(op, value)

    def _padded(self, op: ir.Operation) -> ir.Value | None:
        """The value with more channels that a padding with zeros would be a copy of."""
        found = self.of.get(op.operands[0]) if op.name == "mlc.pad" else None
        if found is None or found.content != 0 or found.value.type != op.results[0].type:
            return None
        pad = OpAdaptor(op)
        is_plain = pad.text("mode") == "constant" and pad.segments()[1] == [] and not any(pad.ints("static_low"))
        return found.value if is_plain else None

    def _read(self, op: ir.Operation, value: ir.Value) -> ir.Value:
        """What an operation reads that takes no more channels: a slice, and a slice that it is reads less of it. Who
        asks for another extent is told it."""
        channels = shape_of(value)[-1]
        if op.name == "tensor.dim" and constant_index(op.operands[1]) in range(value.type.rank - 1):
            return self.of[value].value
        if op.name == "mlc.slice":
            parts = ("offsets", "sizes", "strides")
            first, extent, stride = (OpAdaptor(op).ints(f"static_{part}")[-1] for part in parts)
            if stride == 1 and extent >= 0 and 0 <= first <= channels - extent:
                return self.of[value].value
        if value not in self._slices:
            with ir.InsertionPoint.after(self.of[value].value.owner), op.location:
                self._slices[value] = b.slice_dim(self.of[value].value, value.type.rank - 1, 0, channels)
        return self._slices[value]

    def _followed(self, op: ir.Operation) -> _Extended | None:
        """The result of an operation that keeps channels apart, with more of them."""
        is_tensor = len(op.results) == 1 and isinstance(op.results[0].type, ir.RankedTensorType)
        if not is_tensor or not b.is_float(element(op.results[0])):
            return None
        channels = shape_of(op.results[0])[-1]
        first = self.of.get(op.operands[0])
        if op.name in _POINTWISE:
            return self._pointwise(op, channels)
        if first is None or shape_of(op.operands[0])[-1] != channels:
            return None
        more = shape_of(first.value)[-1]
        if op.name in _MOVES:
            *sizes, _ = OpAdaptor(op).mixed("sizes", list(op.operands)[1:])
            return _Extended(_MOVES[op.name](first.value, [*sizes, more]), first.content)
        if op.name == "mlc.pool" and OpAdaptor(op).text("layout", "nchw") == "nhwc" and first.content == 0:
            return _Extended(_with_channels(op, [first.value, *list(op.operands)[1:]], more), 0.0)
        return None

    def _pointwise(self, op: ir.Operation, channels: int) -> _Extended | None:
        extents = {shape_of(self.of[v].value)[-1] for v in op.operands if v in self.of}
        numbers = [self._number(op, v, channels) for v in op.operands]
        content = None if None in numbers or len(extents) != 1 else _content(op, numbers)
        if content is None:
            return None
        (more,) = extents
        operands = []
        for value in op.operands:
            if value in self.of:
                operands.append(self.of[value].value)
            elif value.type.rank and shape_of(value)[-1] == channels:
                operands.append(_filled(value, more - channels))
            else:
                operands.append(value)
        return _Extended(_with_channels(op, operands, more), content)

    def _number(self, op: ir.Operation, value: ir.Value, channels: int) -> float | None:
        """What an operand has for each new channel; None where that is not known."""
        if value in self.of:
            return self.of[value].content
        constant = constant_array(value)
        if constant is not None and constant.size == 1:
            return float(constant.reshape(()))
        if not value.type.rank or shape_of(value)[-1] != channels:
            return None
        elements = prod(e for e in shape_of(op.results[0]) if e != DYNAMIC)  # of one image, if not of all
        is_small = value.type.has_static_shape and element_count(value.type) * _SMALL <= elements
        return 0.0 if is_small or self._weights.has(value) else None


def _is_wanting(op: ir.Operation) -> bool:
    """Is `op` a convolution for tensor cores whose filters are rows of another length than they read, and many of them
    or of many products? One filter is a row of its products."""
    if not is_for_tensor_cores(op, f32=False) or not missing(op.operands[1]):
        return False
    *window, filters = shape_of(op.operands[1])
    return missing(op.operands[1]) <= filters or (filters > 1 and prod(window) >= _MANY_PRODUCTS)


def _convolution(op: ir.Operation) -> _Extended:
    """With filters of zeros, and a bias that has zeros for them."""
    more = missing(op.operands[1])
    operands = [op.operands[0], *(_filled(value, more) for value in list(op.operands)[1:])]
    return _Extended(_with_channels(op, operands, shape_of(op.results[0])[-1] + more), 0.0)


def _filled(value: ir.Value, more: int) -> ir.Value:
    rank = value.type.rank
    return b.pad(value, [0] * rank, [0] * (rank - 1) + [more])


def _with_channels(op: ir.Operation, operands: list[ir.Value], channels: int) -> ir.Value:
    """The result of the same operation with other operands, and so many channels."""
    return b.again(op, operands, [*shape_of(op.results[0])[:-1], channels])


def _content(op: ir.Operation, numbers: list[float | None]) -> float | None:
    """What an operation makes of these numbers; None where it is none, or not finite."""
    inputs = [np.array(n, numpy_dtype(str(element(v)))) for n, v in zip(numbers, op.operands, strict=True)]
    try:
        (found,) = evaluate(op.name, inputs, attributes(op), [ResultType((), str(element(op.results[0])))])
    except InterpError:
        return None
    return float(found) if np.isfinite(np.float64(found)) else None
