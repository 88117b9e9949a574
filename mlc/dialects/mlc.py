"""Builders and operation classes of the `mlc` dialect.

`m.unary("exp", x)` builds an operation at the current insertion point and returns its result (several results: a list).
Operands and attributes have the names of docs/ir.md; required ones are positional, in that order, optional ones are
keywords. Sizes are mixed lists: `m.reshape(x, [4, n, 8])` with `n` an `index` value. Operation classes
(`m.UnaryOp`, …) give access by name: `op.input`, `op.kind.value`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlc.compiler_setup  # noqa: F401  (the dialect must be registered before its operations are built)
from mlc._native import OptionalType, SeqType, StrType  # noqa: F401

if TYPE_CHECKING:  # type checkers keep the first of two equal names
    from .builders import *  # noqa: F403

from ._mlc_ops_gen import *  # noqa: F403
from .builders import *  # noqa: F403  (in place of the generated ones of the same name)
