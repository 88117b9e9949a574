"""Strings: calls of the runtime's routines (docs/abi.md, section 2)."""

from __future__ import annotations

import numpy as np
from mlir import ir

from mlc.frontends.common import types
from mlc.frontends.common.builder import DYNAMIC, Builder, Tensor


def config_of(*fields: str | int) -> str:
    """The configuration of a routine: each field with its length in bytes in front."""
    texts = [str(field) for field in fields]
    return "".join(f"{len(text.encode())}:{text}" for text in texts)


def routine(b: Builder, name: str, inputs: list[Tensor], results: list[ir.Type], config: str = "") -> list[Tensor]:
    """A call of the routine `mlc_text_<name>`."""
    operation = b.emit("extern", [inputs], results, callee=f"mlc_text_{name}", config=config)
    return [Tensor(result) for result in operation.results]


def broadcast_type(a: Tensor, b: Tensor, dtype: str) -> ir.Type:
    """The type of an elementwise result; extents that only the run tells are dynamic."""
    extents = []
    for axis in range(-max(a.rank, b.rank), 0):
        known = [t.type.shape[axis] if -axis <= t.rank else 1 for t in (a, b)]
        larger = [extent for extent in known if extent not in (1, DYNAMIC)]
        extents.append(larger[0] if larger else DYNAMIC if DYNAMIC in known else 1)
    return ir.RankedTensorType.get(extents, types.element_type(dtype))


def equal(b: Builder, lhs: Tensor, rhs: Tensor) -> Tensor:
    """Which strings are equal, with broadcasting."""
    return routine(b, "equal", [lhs, rhs], [broadcast_type(lhs, rhs, "bool")])[0]


def lookup(b: Builder, x: Tensor, keys: list[str]) -> Tensor:
    """The number of each string's first equal key, `len(keys)` where there is none."""
    kind = ir.RankedTensorType.get(x.type.shape, types.element_type("int64"))
    return routine(b, "lookup", [x], [kind], config_of(*keys))[0]


def table(b: Builder, texts: list[str]) -> Tensor:
    """A constant vector of strings."""
    kind = ir.RankedTensorType.get([len(texts)], types.element_type("string"))
    return routine(b, "table", [], [kind], config_of(*texts))[0]


def constant(b: Builder, texts: np.ndarray) -> Tensor:
    """A constant of strings, of any shape: an array of `str` objects."""
    items = table(b, [str(item) for item in texts.ravel()])
    kind = ir.RankedTensorType.get(list(texts.shape), types.element_type("string"))
    return b.op("reshape", [items, []], [kind], static_sizes=list(texts.shape))


def parsed(b: Builder, x: Tensor, dtype: str) -> Tensor:
    """The numbers that stand in strings, on their way to `dtype`: float64, int64 or uint64, which converts to it."""
    integer = dtype.lstrip("u").startswith("int")
    wide = "float64" if not integer else "uint64" if dtype == "uint64" else "int64"
    kind = ir.RankedTensorType.get(x.type.shape, types.element_type(wide))
    return Tensor(routine(b, "parse", [x], [kind], config_of(wide, dtype))[0].value, wide == "uint64")


def printed(b: Builder, x: Tensor) -> Tensor:
    """The strings that numbers of type float32, float64, int64 or uint64 are read from."""
    kind = ir.RankedTensorType.get(x.type.shape, types.element_type("string"))
    return routine(b, "print", [x], [kind], config_of(x.dtype))[0]
