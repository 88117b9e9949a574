"""Convolutions."""

from __future__ import annotations

from mlc.frontends.common import conv as common
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.common.conv import Window
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.linalg import shifted
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError


def window_of(g: GraphImporter, node: Node, x: Tensor, kernel: list[int] | None) -> Window:
    """The window of a convolution or pooling node: `kernel_shape`, `strides`, `dilations`, `pads`, `auto_pad`."""
    spatial = x.rank - 2
    given = node.attr("kernel_shape")
    if given is not None and kernel is not None and list(given) != kernel:
        raise NodeError(f"kernel_shape {list(given)} does not match the filter's {kernel}")
    shape = kernel if kernel is not None else [int(size) for size in node.required("kernel_shape")]
    if spatial < 1 or len(shape) != spatial:
        raise NodeError(
            f"an input of rank {x.rank} needs {max(spatial, 1)} spatial kernel dimensions, not {len(shape)}"
        )
    strides = list(node.attr("strides") or [1] * spatial)
    dilations = list(node.attr("dilations") or [1] * spatial)
    pads = list(node.attr("pads") or [0] * 2 * spatial)
    if (len(strides), len(dilations), len(pads)) != (spatial, spatial, 2 * spatial):
        raise NodeError(f"strides {strides}, dilations {dilations} and pads {pads} do not fit {spatial} dimensions")
    low: list[Size] = list(pads[:spatial])
    high: list[Size] = list(pads[spatial:])
    window = Window(shape, strides, dilations, low, high)
    mode = node.attr("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        extents = [g.b.dim(x, axis + 2) for axis in range(spatial)]
        low, high = common.same_padding(g.b, extents, window, mode == "SAME_UPPER")
    elif mode == "VALID":
        low, high = [0] * spatial, [0] * spatial
    elif mode not in ("NOTSET", ""):
        raise NodeError(f'auto_pad "{mode}"', "use NOTSET, SAME_UPPER, SAME_LOWER or VALID")
    return Window(shape, strides, dilations, low, high)


def filter_kernel(filter_: Tensor) -> list[int]:
    """The spatial extents of a filter, which must be static."""
    kernel = filter_.shape[2:]
    sizes = [extent for extent in kernel if extent is not None]
    if len(sizes) != len(kernel):
        raise NodeError("the filter's extents are known only at run time", "make the filter's shape static")
    return sizes


@onnx_op("Conv")
def conv(g: GraphImporter, node: Node) -> Tensor:
    """Convolution in 1, 2 or 3 spatial dimensions."""
    x, filter_ = node[0], node[1]
    window = window_of(g, node, x, filter_kernel(filter_))
    return common.conv(g.b, x, filter_, node.optional(2), window, int(node.attr("group", 1)))


@onnx_op("ConvInteger")
def conv_integer(g: GraphImporter, node: Node) -> Tensor:
    """Convolution of 8-bit integers, shifted by their zero points, in 32 bits; padding stands for the zero point."""
    x = shifted(g.b, node[0], node.optional(2), 1)
    filter_ = shifted(g.b, node[1], node.optional(3), 0)
    window = window_of(g, node, x, filter_kernel(filter_))
    return common.conv(g.b, x, filter_, None, window, int(node.attr("group", 1)))


@onnx_op("ConvTranspose")
def conv_transpose(g: GraphImporter, node: Node) -> Tensor:
    """Transposed convolution; `output_shape` and SAME padding fix the output extents, hence the padding."""
    b, x, filter_ = g.b, node[0], node[1]
    spatial = x.rank - 2
    kernel = filter_kernel(filter_)
    given = dict(node.attributes)
    mode = given.pop("auto_pad", "NOTSET")
    plain = Node(node.op, node.domain, node.name, node.version, node.inputs, node.outputs, given)
    window = window_of(g, plain, x, kernel)
    extra = [int(size) for size in node.attr("output_padding") or [0] * spatial]
    wanted = node.attr("output_shape")
    if wanted is not None and len(wanted) == spatial + 2:
        wanted = wanted[2:]
    if mode == "VALID":
        window = Window(kernel, window.strides, window.dilations, [0] * spatial, [0] * spatial)
    elif wanted is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
        totals: list[Size] = []
        for axis in range(spatial):
            stride, span = window.strides[axis], window.spans[axis]
            if wanted is None:
                # The output extent is the input's times the stride, whatever the input's is.
                totals.append(max(span + extra[axis] - stride, 0))
                continue
            full = b.arith("muli", b.arith("subi", b.dim(x, axis + 2), 1), stride)
            full = b.arith("addi", full, extra[axis] + span)
            totals.append(b.arith("subi", full, int(wanted[axis])))
        window, extra = _split_total(window, totals, extra, mode == "SAME_UPPER")
    groups = int(node.attr("group", 1))
    return common.conv_transpose(b, x, filter_, node.optional(2), window, groups, extra)


def _split_total(window: Window, totals: list[Size], extra: list[int], upper: bool) -> tuple[Window, list[int]]:
    """Halves total paddings; a negative total becomes output padding."""
    low: list[Size] = []
    high: list[Size] = []
    more = []
    for total, existing in zip(totals, extra, strict=True):
        if not isinstance(total, int):
            raise NodeError("output_shape needs static input extents", "fix the input's shape")
        more.append(existing + max(-total, 0))
        total = max(total, 0)
        half = total // 2
        low.append(half if upper else total - half)
        high.append(total - half if upper else half)
    return Window(window.kernel, window.strides, window.dilations, low, high), more


@onnx_op("QLinearConv")
def qlinear_conv(g: GraphImporter, node: Node) -> Tensor:
    """Dequantize, convolve in float, quantize: passes turn it back into integer arithmetic."""
    from mlc.frontends.onnx.quantization import dequantized, requantized

    b = g.b
    x = dequantized(b, node[0], node[1], node[2], 1)
    filter_ = dequantized(b, node[3], node[4], node[5], 0)
    window = window_of(g, node, x, filter_kernel(filter_))
    bias = node.optional(8)
    if bias is not None:
        scale = ew.binary(b, "mul", node[1], node[4])
        bias = ew.binary(b, "mul", ew.cast(b, bias, scale.dtype), scale)
    y = common.conv(b, x, filter_, bias, window, int(node.attr("group", 1)))
    return requantized(b, y, node[6], node[7], 1)
