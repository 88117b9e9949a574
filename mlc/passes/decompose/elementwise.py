"""`activation`, `clamp`, `prelu`."""

from __future__ import annotations

import math
from collections.abc import Callable

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, element
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition

_DEFAULTS: dict[str, tuple[float, float]] = {
    "leaky_relu": (0.01, 0.0),
    "elu": (1.0, 0.0),
    "selu": (1.67326319217681884765625, 1.05070102214813232421875),
    "celu": (1.0, 0.0),
    "hard_sigmoid": (0.2, 0.5),
    "thresholded_relu": (1.0, 0.0),
    "silu": (1.0, 0.0),
    "shrink": (0.0, 0.5),
    "affine": (1.0, 0.0),
    "scaled_tanh": (1.0, 1.0),
}


@decomposition("mlc.activation")
@b.widened
def activation(op: OpAdaptor, x: ir.Value) -> ir.Value:
    """Formulas and default parameters of the ONNX operators; `gelu` with `erf`, `softplus` without overflow."""
    alpha = op.float("alpha") if op.has("alpha") else None
    return activate(op.text(), x, alpha, op.float("beta") if op.has("beta") else None)


def activate(kind: str, x: ir.Value, alpha: float | None = None, beta: float | None = None) -> ir.Value:
    """Activation `kind` of `x` in its element type. Also `sigmoid`, `tanh`, `affine`, `scaled_tanh`, which recurrent
    operations name."""
    default_alpha, default_beta = _DEFAULTS.get(kind, (0.0, 0.0))
    return _KINDS[kind](x, default_alpha if alpha is None else alpha, default_beta if beta is None else beta)


def softplus(x: ir.Value) -> ir.Value:
    """`log(1 + exp(x))` as `max(x, 0) + log1p(exp(-|x|))`."""
    tail = b.unary("log1p", b.unary("exp", b.unary("neg", b.unary("abs", x))))
    return b.add(b.maximum(x, 0), tail)


def _leaky(x: ir.Value, alpha: float) -> ir.Value:
    return b.select(b.compare("lt", x, 0), b.mul(x, alpha), x)


def _elu(x: ir.Value, alpha: float) -> ir.Value:
    return b.select(b.compare("lt", x, 0), b.mul(b.unary("expm1", x), alpha), x)


def _celu(x: ir.Value, alpha: float) -> ir.Value:
    negative = b.mul(b.unary("expm1", b.div(b.minimum(x, 0), alpha)), alpha)
    return b.add(b.maximum(x, 0), b.minimum(negative, 0))


def _gelu(x: ir.Value) -> ir.Value:
    erf = b.unary("erf", b.mul(x, math.sqrt(0.5)))
    return b.mul(b.mul(x, 0.5), b.add(erf, 1))


def _gelu_tanh(x: ir.Value) -> ir.Value:
    cube = b.mul(b.mul(b.mul(x, x), x), 0.044715)
    inner = b.mul(b.add(x, cube), math.sqrt(2.0 / math.pi))
    return b.mul(b.mul(x, 0.5), b.add(b.unary("tanh", inner), 1))


def _hard_sigmoid(x: ir.Value, alpha: float, beta: float) -> ir.Value:
    return b.clip(b.add(b.mul(x, alpha), beta), 0, 1)


def _silu(x: ir.Value, alpha: float) -> ir.Value:
    return b.mul(x, b.unary("sigmoid", x if alpha == 1 else b.mul(x, alpha)))


def _mish(x: ir.Value) -> ir.Value:
    """`x tanh(log(1 + u))` with `u = exp(x)`, which is `x n / (n + 2)` with `n = u (u + 2)`; from 20 on it is `x`."""
    u = b.unary("exp", b.minimum(x, 20))
    n = b.mul(u, b.add(u, 2))
    return b.mul(x, b.div(n, b.add(n, 2)))


def _shrink(x: ir.Value, bias: float, limit: float) -> ir.Value:
    high = b.select(b.compare("gt", x, limit), b.sub(x, bias), b.mul(x, 0))
    return b.select(b.compare("lt", x, -limit), b.add(x, bias), high)


_KINDS: dict[str, Callable[[ir.Value, float, float], ir.Value]] = {
    "relu": lambda x, alpha, beta: b.maximum(x, 0),
    "leaky_relu": lambda x, alpha, beta: _leaky(x, alpha),
    "elu": lambda x, alpha, beta: _elu(x, alpha),
    "selu": lambda x, alpha, beta: b.mul(_elu(x, alpha), beta),
    "celu": lambda x, alpha, beta: _celu(x, alpha),
    "gelu": lambda x, alpha, beta: _gelu(x),
    "gelu_tanh": lambda x, alpha, beta: _gelu_tanh(x),
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": lambda x, alpha, beta: b.mul(x, _hard_sigmoid(x, 1.0 / 6.0, 0.5)),
    "softplus": lambda x, alpha, beta: softplus(x),
    "softsign": lambda x, alpha, beta: b.div(x, b.add(b.unary("abs", x), 1)),
    "silu": lambda x, alpha, beta: _silu(x, alpha),
    "mish": lambda x, alpha, beta: _mish(x),
    "thresholded_relu": lambda x, alpha, beta: b.select(b.compare("gt", x, alpha), x, b.like(x, 0)),
    "shrink": _shrink,
    "sigmoid": lambda x, alpha, beta: b.unary("sigmoid", x),
    "tanh": lambda x, alpha, beta: b.unary("tanh", x),
    "affine": lambda x, alpha, beta: b.add(b.mul(x, alpha), beta),
    "scaled_tanh": lambda x, alpha, beta: b.mul(b.unary("tanh", b.mul(x, beta)), alpha),
}


@decomposition("mlc.clamp")
def clamp(op: OpAdaptor) -> ir.Value:
    """`min(max(x, low), high)`: where the bounds cross, the high one wins."""
    x, unsigned = op.operand(0), op.flag("unsigned")
    low, high = op.optional(1), op.optional(2)
    if low is not None:
        x = b.maximum(x, low, unsigned)
    return x if high is None else b.minimum(x, high, unsigned)


@decomposition("mlc.prelu")
def prelu(op: OpAdaptor) -> ir.Value:
    """`x < 0 ? slope * x : x`."""
    x, slope = op.operand(0), op.operand(1)
    return b.select(b.compare("lt", x, 0), b.mul(x, b.cast(slope, element(x))), x)
