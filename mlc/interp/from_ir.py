"""From MLIR to what `evaluate` takes: attributes as Python values, types as `ResultType`s, elements as arrays.

With `mlc.interp.module` the only files of this package that import MLIR.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from mlir import ir

from mlc.interp.dtypes import numpy_dtype
from mlc.interp.registry import ResultType

_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|true|false")


def result_type(type_: ir.Type) -> ResultType:
    """The `ResultType` of a tensor, sequence, optional or scalar type."""
    if isinstance(type_, ir.RankedTensorType):
        dynamic = ir.ShapedType.get_dynamic_size()
        return ResultType([-1 if n == dynamic else n for n in type_.shape], str(type_.element_type))
    return ResultType((), str(type_))


def elements(attr: ir.Attribute) -> np.ndarray:
    """The array of a dense elements attribute of any element type."""
    type_ = ir.RankedTensorType(ir.ShapedType(attr.type))
    dtype = numpy_dtype(str(type_.element_type))
    if attr.is_splat:  # (the bindings unpack splats of i1 wrongly)
        return np.full(type_.shape, np.array(attr.get_splat_value().value).astype(dtype), dtype)
    try:
        return np.array(attr).astype(dtype, copy=False).reshape(type_.shape)
    except TypeError:
        return _from_text(str(attr), dtype, list(type_.shape))


def _from_text(text: str, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    """For the element types that the bindings cannot read: bf16, 8 bits and narrower."""
    body = text[text.index("dense<") + 6 : text.rindex("> : ")]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), dtype).reshape(shape)
    values = np.array([_number(token, dtype) for token in _TOKEN.findall(body)], dtype)
    return np.full(shape, values[0], dtype) if not body.startswith("[") else values.reshape(shape)


def _number(token: str, dtype: np.dtype) -> Any:
    if token.startswith("0x"):  # the bits of an infinity or a NaN
        return np.array([int(token, 16)], f"u{dtype.itemsize}").view(dtype)[0]
    if token in ("true", "false"):
        return token == "true"
    return np.array(float(token) if "." in token or "e" in token.lower() else int(token)).astype(dtype)


def python_value(attr: ir.Attribute) -> Any:
    """An attribute as a plain Python value: unit as True, lists as lists, dense elements as an array."""
    if isinstance(attr, ir.UnitAttr):
        return True
    if isinstance(attr, ir.DenseElementsAttr):
        return elements(attr)
    if isinstance(attr, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr | ir.DenseBoolArrayAttr):
        return [attr[i] for i in range(len(attr))]  # (an iteration ends by a C++ exception: four times as long)
    if isinstance(attr, ir.ArrayAttr):
        return [python_value(attr[i]) for i in range(len(attr))]
    if isinstance(attr, ir.DictAttr):
        return {entry.name: python_value(entry.attr) for entry in attr}
    if isinstance(attr, ir.FlatSymbolRefAttr | ir.StringAttr | ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr):
        return attr.value
    return str(attr)


def attributes(op: ir.Operation) -> dict[str, Any]:
    """The attributes of an operation as plain Python values."""
    return {name: python_value(op.attributes[name]) for name in op.attributes}
