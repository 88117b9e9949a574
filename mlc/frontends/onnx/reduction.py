"""Reductions, arg reductions and running sums."""

from __future__ import annotations

from mlc.frontends.common import axes as run_time
from mlc.frontends.common import reduction, shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

_PRIMITIVE = {"ReduceSum": "sum", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min"}
_STATISTIC = {
    "ReduceMean": "mean",
    "ReduceL1": "l1",
    "ReduceL2": "l2",
    "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
    "ReduceSumSquare": "sum_square",
}


def is_run_time(tensor: Tensor | None) -> bool:
    """Whether axes given as an input are known only at run time."""
    return tensor is not None and tensor.constant is None and tensor.shape != [0]


def constant_axes(tensor: Tensor | None, what: str = "axes") -> list[int] | None:
    """A list of axes given as an input, which must be a constant."""
    if tensor is None:
        return None
    if tensor.shape == [0]:
        return []
    if tensor.constant is None:
        raise NodeError(f"its {what} are computed at run time", f"make the {what} constant")
    return [int(axis) for axis in tensor.constant.reshape(-1)]


@onnx_op(*_PRIMITIVE, *_STATISTIC)
def reduce(g: GraphImporter, node: Node) -> Tensor:
    """Axes come as an attribute, or as an input (ReduceSum 13, the others 18)."""
    x = node[0]
    axes = node.attr("axes")
    given = node.optional(1)
    if given is not None and is_run_time(given):
        kind = _PRIMITIVE.get(node.op) or _STATISTIC[node.op]
        return run_time.reduce(g.b, kind, x, given, bool(node.attr("keepdims", 1)))
    if axes is None:
        axes = constant_axes(given)
    if not axes:
        if axes is not None and not node.attr("noop_with_empty_axes", 0):
            axes = None
        if axes is None and node.attr("noop_with_empty_axes", 0):
            axes = []
    chosen = list(range(x.rank)) if axes is None else shape.normalize_axes(axes, x.rank)
    keepdims = bool(node.attr("keepdims", 1))
    if node.op in _PRIMITIVE:
        return reduction.reduce(g.b, _PRIMITIVE[node.op], x, chosen, keepdims)
    return reduction.statistic(g.b, _STATISTIC[node.op], x, chosen, keepdims)


@onnx_op("ArgMax", "ArgMin")
def arg_reduce(g: GraphImporter, node: Node) -> Tensor:
    """Positions of extreme values."""
    axis = shape.normalize_axis(node.attr("axis", 0), node[0].rank)
    keepdims, last = bool(node.attr("keepdims", 1)), bool(node.attr("select_last_index", 0))
    return reduction.arg_reduce(g.b, "max" if node.op == "ArgMax" else "min", node[0], axis, keepdims, last)


@onnx_op("CumSum", "CumProd")
def cumulative(g: GraphImporter, node: Node) -> Tensor:
    """Running sums and products."""
    x = node[0]
    exclusive, reverse = bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0))
    kind = "sum" if node.op == "CumSum" else "prod"
    if is_run_time(node[1]):
        return run_time.switch(
            g.b, node[1], x.rank, lambda axis: reduction.scan(g.b, kind, x, axis, exclusive, reverse)
        )
    axes = constant_axes(node[1], "axis")
    assert axes is not None
    return reduction.scan(g.b, kind, x, shape.normalize_axis(axes[0], x.rank), exclusive, reverse)
