"""Random numbers: others at every place of a program, and the same in every run."""

from __future__ import annotations

import zlib

import numpy as np
from mlir import ir

from mlc.frontends.common import elementwise
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.common.random import random
from mlc.frontends.torch.aten.elementwise import dtype_given
from mlc.frontends.torch.registry import Call, aten


def _drawn(call: Call, kind: str, sizes: list[Size], dtype: str) -> Tensor:
    """Uniform in [0, 1) or standard normal, seeded by where in the program it is."""
    b = call.b
    place = len(ir.InsertionPoint.current.block.operations)
    seed = zlib.crc32(f"{ir.Location.current} {place}".encode())
    return random(b, kind, b.constant(np.array(seed, np.int64), "int64"), sizes, dtype)


def _sizes_and_dtype(call: Call, default: str) -> tuple[list[Size], str]:
    if "like" in call.op:
        x = call.tensor(0)
        return call.b.dims(x), dtype_given(call, x.dtype)
    return call.sizes(call.names.index("size")), dtype_given(call, default)


@aten("rand", "rand_like", "randn", "randn_like")
def draw(call: Call) -> Tensor:
    """Uniform in [0, 1), or standard normal."""
    return _drawn(call, "normal" if "randn" in call.op else "uniform", *_sizes_and_dtype(call, "float32"))


@aten("randint", "randint_like")
def whole(call: Call) -> Tensor:
    """Whole numbers from `low` (0) up to `high`, without it."""
    b, low, high = call.b, int(call.get("low", 0)), int(call.get("high"))
    sizes, dtype = _sizes_and_dtype(call, "int64")
    share = _drawn(call, "uniform", sizes, "float64")
    number = elementwise.unary(b, "floor", elementwise.scaled(b, share, high - low))
    return elementwise.cast(b, elementwise.binary(b, "add", number, b.like(low, number)), dtype)
