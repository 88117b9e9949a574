"""Builders and operation classes of the `mlc` dialect.

`m.unary("exp", x)` builds an operation at the current insertion point and returns its result (several results: a list).
Operands and attributes have the names of docs/ir.md; required ones are positional, in that order, optional ones are
keywords. Sizes are mixed lists: `m.reshape(x, [4, n, 8])` with `n` an `index` value. Operation classes
(`m.UnaryOp`, …) give access by name: `op.input`, `op.kind.value`.
"""

from __future__ import annotations

import mlc.compiler_setup  # noqa: F401  (the dialect must be registered before its operations are built)
from mlc._native import OptionalType, SeqType, StrType

from ._mlc_ops_gen import *  # noqa: F403
from ._mlc_ops_gen import _Dialect
from .builders import (
    bitcast,
    broadcast,
    buffer,
    cast,
    constant,
    extern,
    iota,
    launch,
    pad,
    random,
    reshape,
    resize,
    sequence_make,
    slice,
    split_mixed,
    weight,
)

__all__ = [
    *(name for name in dir() if name.endswith("Op")),
    *(
        function.__name__
        for function in list(vars().values())
        if getattr(function, "__module__", "").endswith("._mlc_ops_gen") and not isinstance(function, type)
    ),
    "OptionalType",
    "SeqType",
    "StrType",
    "_Dialect",
    "bitcast",
    "broadcast",
    "buffer",
    "cast",
    "constant",
    "extern",
    "iota",
    "launch",
    "pad",
    "random",
    "reshape",
    "resize",
    "sequence_make",
    "slice",
    "split_mixed",
    "weight",
]
