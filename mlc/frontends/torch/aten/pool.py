"""Pooling."""

from __future__ import annotations

from mlc.frontends.common import pool
from mlc.frontends.common.builder import Tensor
from mlc.frontends.common.conv import Window
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.conv import spread
from mlc.frontends.torch.registry import Call, aten


def _window(call: Call, x: Tensor) -> Window:
    spatial = x.rank - 2
    kernel = spread(call.ints(1), spatial)
    given = call.ints(2) if call[2] else []
    strides = spread(given, spatial) if given else list(kernel)
    padding = spread(call.ints(3), spatial)
    dilations = spread(call.ints(call.names.index("dilation")), spatial) if "dilation" in call.names else [1] * spatial
    return Window(kernel, strides, dilations, list(padding), list(padding))


@aten("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(call: Call) -> Tensor:
    """Maxima of windows."""
    x = call.tensor(0)
    return pool.pool(call.b, "max", x, _window(call, x), bool(call.get("ceil_mode", False)))


@aten("max_pool1d_with_indices", "max_pool2d_with_indices")
def max_pool_indices(call: Call) -> list[Tensor]:
    """Maxima of windows and where they are."""
    x = call.tensor(0)
    return list(pool.pool_indices(call.b, x, _window(call, x), bool(call.get("ceil_mode", False)), False))


@aten("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(call: Call) -> Tensor:
    """Means of windows."""
    if call.get("divisor_override") is not None:
        raise NodeError("divisor_override is not supported", "scale the result instead")
    x = call.tensor(0)
    include = bool(call.get("count_include_pad", True))
    return pool.pool(call.b, "avg", x, _window(call, x), bool(call.get("ceil_mode", False)), include)


@aten("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d")
def adaptive(call: Call) -> Tensor:
    """Pooling to a given size, which must divide the input's."""
    x, sizes = call.tensor(0), call.ints(1)
    spatial = x.rank - 2
    kind = "max" if "max" in call.op else "avg"
    sizes = spread(sizes, spatial)
    if all(s == 1 for s in sizes):
        return pool.global_pool(call.b, kind, x)
    extents = x.shape[2:]
    if any(e is None or e % s for e, s in zip(extents, sizes, strict=True)):
        raise NodeError(f"adaptive pooling from {extents} to {sizes}", "the result must divide a known input size")
    kernel = [(e or 0) // s for e, s in zip(extents, sizes, strict=True)]
    none = [0] * spatial
    return pool.pool(call.b, kind, x, Window(kernel, list(kernel), [1] * spatial, list(none), list(none)))
