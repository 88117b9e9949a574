"""Random numbers: others at every place of a program, and the same in every run.

Other distributions are made of uniform numbers by the inverse of their distribution function. Source: L. Devroye,
"Non-Uniform Random Variate Generation", 1986, II.2 and X.2; PyTorch documentation, "In-place random sampling".
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import numpy as np
from mlir import ir

from mlc.frontends.common import elementwise, indexing, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.common.random import random
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import dtype_given
from mlc.frontends.torch.registry import Call, Value, aten, like


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
    low, high = int(call.get("low", 0)), int(call.get("high"))
    return _between(call, low, high, *_sizes_and_dtype(call, "int64"))


def _between(call: Call, low: int, high: int, sizes: list[Size], dtype: str) -> Tensor:
    b, share = call.b, _drawn(call, "uniform", sizes, "float64")
    number = elementwise.unary(b, "floor", elementwise.scaled(b, share, high - low))
    return elementwise.cast(b, elementwise.binary(b, "add", number, b.like(low, number)), dtype)


@aten("random")
def whole_in_place(call: Call) -> Tensor:
    """Whole numbers from `from` (0) up to `to`, without it, in place of the elements of a tensor."""
    x, end = call.tensor(0), call.get("to")
    if end is None:
        raise NodeError("random numbers without an upper limit", "give random_ the end of their range")
    return _between(call, int(call.get("from", 0)), int(end), call.b.dims(x), x.dtype)


@aten("randperm")
def permutation(call: Call) -> Tensor:
    """The numbers below `n` in a random order: that of as many uniform ones."""
    b, count = call.b, call.sizes(0)[0]
    _, order = indexing.sort(b, _drawn(call, "uniform", [count], "float64"))
    return elementwise.cast(b, order, dtype_given(call, "int64"))


@aten("bernoulli")
def bernoulli(call: Call) -> Tensor:
    """Ones with the probability that the elements are, or that is given beside them; zeros elsewhere."""
    b, x = call.b, call.tensor(0)
    chance = call.get("p", x)
    wide = "float64" if isinstance(chance, Tensor) and chance.dtype == "float64" else "float32"
    share = _drawn(call, "uniform", b.dims(x), wide)
    hit = elementwise.compare(b, "lt", share, like(b, chance, share))
    return elementwise.cast(b, hit, x.dtype)


@aten("normal", "normal_functional")
def normal(call: Call) -> Tensor:
    """Normal numbers with a mean and deviation of all or of each."""
    b, mean, deviation = call.b, call.get("mean"), call.get("std")
    tensors = [value for value in (mean, deviation) if isinstance(value, Tensor)]
    if "self" in call.names:
        sizes, dtype = b.dims(call.tensor(0)), call.tensor(0).dtype
    elif tensors:
        sizes, dtype = b.dims(elementwise.fold(b, "add", tensors)), tensors[0].dtype
    else:
        sizes, dtype = _sizes_and_dtype(call, "float32")
    number = _drawn(call, "normal", sizes, dtype)
    return _moved(b, number, deviation, mean)


def _moved(b: Builder, x: Tensor, factor: Value, start: Value) -> Tensor:
    """`start + factor * x`."""
    return elementwise.binary(b, "add", elementwise.binary(b, "mul", x, like(b, factor, x)), like(b, start, x))


def _uniform(call: Call, u: Tensor) -> Tensor:
    low, high = float(call.get("from", 0)), float(call.get("to", 1))
    return _moved(call.b, u, high - low, low)


def _exponential(b: Builder, u: Tensor) -> Tensor:
    """−log(1 − u), of mean 1."""
    return elementwise.unary(b, "neg", elementwise.unary(b, "log1p", elementwise.unary(b, "neg", u)))


def _of_rate(call: Call, u: Tensor) -> Tensor:
    return elementwise.scaled(call.b, _exponential(call.b, u), 1 / float(call.get("lambd", 1)))


def _cauchy(call: Call, u: Tensor) -> Tensor:
    b = call.b
    angle = elementwise.scaled(b, elementwise.binary(b, "sub", u, b.like(0.5, u)), math.pi)
    return _moved(b, elementwise.unary(b, "tan", angle), float(call.get("sigma", 1)), float(call.get("median", 0)))


def _geometric(call: Call, u: Tensor) -> Tensor:
    """How many trials of probability `p` the first success takes, from 1 on."""
    b, chance = call.b, float(call.get("p"))
    if chance >= 1:
        return shape.full(b, b.dims(u), b.like(1, u))
    failures = elementwise.unary(b, "floor", elementwise.scaled(b, _exponential(b, u), -1 / math.log1p(-chance)))
    return elementwise.binary(b, "add", failures, b.like(1, failures))


_INVERSES: dict[str, Callable[[Call, Tensor], Tensor]] = {
    "uniform": _uniform,
    "exponential": _of_rate,
    "cauchy": _cauchy,
    "geometric": _geometric,
}


@aten(*_INVERSES)
def inverse(call: Call) -> Tensor:
    """Numbers of another distribution in place of the elements of a tensor."""
    x = call.tensor(0)
    wide = x.dtype if x.dtype in ("float32", "float64") else "float32"
    share = _drawn(call, "uniform", call.b.dims(x), wide)
    return elementwise.cast(call.b, _INVERSES[call.op.removeprefix("aten::").removesuffix("_")](call, share), x.dtype)


@aten("log_normal")
def log_normal(call: Call) -> Tensor:
    """Numbers whose logarithms are normal."""
    b, x = call.b, call.tensor(0)
    number = _drawn(call, "normal", b.dims(x), x.dtype)
    moved = _moved(b, number, float(call.get("std", 2)), float(call.get("mean", 1)))
    return elementwise.unary(b, "exp", moved)


@aten("multinomial")
def multinomial(call: Call) -> Tensor:
    """Positions along the last dimension with the probabilities that the elements are in proportion to, `i64`: with
    replacement by the inverse of the distribution function; without, the best of `p / e` with exponential `e`, as in
    PyTorch (P. Efraimidis, P. Spirakis, "Weighted random sampling with a reservoir", 2006).
    """
    b, x, count = call.b, call.tensor(0), call.sizes(1)[0]
    x = x if x.dtype in ("float32", "float64") else elementwise.cast(b, x, "float32")
    last = x.rank - 1
    if not call.get("replacement"):
        waits = _exponential(b, _drawn(call, "uniform", b.dims(x), x.dtype))
        waits = elementwise.binary(b, "max", waits, b.like(2.0**-30, waits))
        return indexing.topk(b, elementwise.binary(b, "div", x, waits), count, last)[1]
    ends = reduction.scan(b, "sum", x, last, False, False)
    total = shape.window(b, ends, last, b.arith("subi", b.dim(ends, last), 1), 1)
    share = _drawn(call, "uniform", [*b.dims(x)[:-1], count], x.dtype)
    place = shape.unsqueeze(b, elementwise.binary(b, "mul", share, total), [x.rank])
    passed = elementwise.compare(b, "le", shape.unsqueeze(b, ends, [last]), place)
    return reduction.reduce(b, "sum", elementwise.cast(b, passed, "int64"), [x.rank], False)


@aten("rrelu", "rrelu_with_noise", "rrelu_with_noise_functional")
def rrelu(call: Call) -> Tensor | list[Tensor]:
    """Leaky with the middle of the range of slopes, which training draws at random."""
    if call.get("training"):
        raise NodeError("rrelu in training mode", "call model.eval() before tracing")
    slope = (float(call.get("lower")) + float(call.get("upper"))) / 2
    result = elementwise.activation(call.b, "leaky_relu", call.tensor(0), slope)
    noise = call.get("noise")
    return [result, noise] if "functional" in call.op else result
