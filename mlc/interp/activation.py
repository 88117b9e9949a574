"""The composite `activation`: the ONNX activation functions, named by `kind`.

Parameters are ONNX's in its order; the defaults are those of the ONNX operator pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mlc.interp.dtypes import widen
from mlc.interp.elementwise import erf, sigmoid
from mlc.interp.registry import Call, InterpError, evaluates

_SELU_ALPHA = 1.67326319217681884765625
_SELU_GAMMA = 1.05070102214813232421875

DEFAULTS: dict[str, tuple[float, float]] = {
    "leaky_relu": (0.01, 0.0),
    "elu": (1.0, 0.0),
    "selu": (_SELU_ALPHA, _SELU_GAMMA),
    "celu": (1.0, 0.0),
    "hard_sigmoid": (0.2, 0.5),
    "thresholded_relu": (1.0, 0.0),
    "silu": (1.0, 0.0),
    "shrink": (0.0, 0.5),
    "affine": (1.0, 0.0),
    "scaled_tanh": (1.0, 1.0),
}
"""(alpha, beta) of each kind that has parameters."""


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x < 0, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)), x)


def _celu(x: np.ndarray, alpha: float) -> np.ndarray:
    scale = x.dtype.type(alpha)
    return np.maximum(x, 0) + np.minimum(0, scale * np.expm1(np.minimum(x, 0) / scale))


def _gelu(x: np.ndarray) -> np.ndarray:
    half = x.dtype.type(0.5)
    return half * x * (x.dtype.type(1) + erf(x * x.dtype.type(math.sqrt(0.5))))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    of = x.dtype.type
    inner = of(math.sqrt(2.0 / math.pi)) * (x + of(0.044715) * x * x * x)
    return of(0.5) * x * (of(1) + np.tanh(inner))


def _hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return np.clip(x * x.dtype.type(alpha) + x.dtype.type(beta), 0, 1)


def _shrink(x: np.ndarray, bias: float, lambd: float) -> np.ndarray:
    of = x.dtype.type
    return np.where(x < of(-lambd), x + of(bias), np.where(x > of(lambd), x - of(bias), of(0) * x))


_KINDS: dict[str, Callable[[np.ndarray, float, float], np.ndarray]] = {
    "relu": lambda x, a, b: np.maximum(x, 0),
    "leaky_relu": lambda x, a, b: np.where(x < 0, x * x.dtype.type(a), x),
    "elu": lambda x, a, b: _elu(x, a),
    "selu": lambda x, a, b: _elu(x, a) * x.dtype.type(b),
    "celu": lambda x, a, b: _celu(x, a),
    "gelu": lambda x, a, b: _gelu(x),
    "gelu_tanh": lambda x, a, b: _gelu_tanh(x),
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": lambda x, a, b: x * _hard_sigmoid(x, 1.0 / 6.0, 0.5),
    "softplus": lambda x, a, b: softplus(x),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "silu": lambda x, a, b: x * sigmoid(x * x.dtype.type(a)),
    "mish": lambda x, a, b: x * np.tanh(softplus(x)),
    "thresholded_relu": lambda x, a, b: np.where(x > x.dtype.type(a), x, x.dtype.type(0)),
    "shrink": _shrink,
    "sigmoid": lambda x, a, b: sigmoid(x),
    "tanh": lambda x, a, b: np.tanh(x),
    "affine": lambda x, a, b: x * x.dtype.type(a) + x.dtype.type(b),
    "scaled_tanh": lambda x, a, b: x.dtype.type(a) * np.tanh(x.dtype.type(b) * x),
}


def activate(kind: str, x: np.ndarray, alpha: float | None = None, beta: float | None = None) -> np.ndarray:
    """Activation `kind` of the float array `x`, in its dtype; absent parameters take ONNX's defaults.

    Also knows `sigmoid`, `tanh`, `affine` and `scaled_tanh`, which only recurrent operations name.
    """
    if kind not in _KINDS:
        raise InterpError(f"unknown activation '{kind}'")
    default_alpha, default_beta = DEFAULTS.get(kind, (0.0, 0.0))
    return _KINDS[kind](x, default_alpha if alpha is None else alpha, default_beta if beta is None else beta)


@evaluates("mlc.activation", "input")
def activation(call: Call, x: np.ndarray) -> np.ndarray:
    """Activation `kind` with `alpha` and `beta`; integers (`relu`, `shrink`, ...) keep their dtype."""
    return np.asarray(activate(call.need("kind"), widen(x), call.attr("alpha"), call.attr("beta")))
