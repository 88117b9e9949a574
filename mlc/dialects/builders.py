"""Builders for operations whose generated ones are awkward: mixed sizes and explicit element types.

A mixed size is an int or an `index` value. All builders take `loc` and `ip` like the generated ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from mlir import ir

from mlc import _native

from . import _mlc_ops_gen as _gen

__all__ = [
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

MixedSize: TypeAlias = "int | ir.Value"
DYNAMIC = ir.ShapedType.get_dynamic_size()


def split_mixed(sizes: Sequence[MixedSize]) -> tuple[list[ir.Value], list[int]]:
    """The dynamic operands of a mixed list, and its static part with `DYNAMIC` in their places."""
    dynamic = [_value(size) for size in sizes if not _is_static(size)]
    return dynamic, [int(size) if _is_static(size) else DYNAMIC for size in sizes]


def _is_static(size: MixedSize) -> bool:
    return isinstance(size, (int, np.integer))


def _value(operand: Any) -> ir.Value:
    """The value of an operand that may also be an operation with one result."""
    return operand.result if isinstance(operand, (ir.OpView, ir.Operation)) else operand


def _shape(value: Any) -> list[int]:
    return list(ir.RankedTensorType(_value(value).type).shape)


def _tensor(sizes: Sequence[int], element_type: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get(list(sizes), element_type, loc=ir.Location.unknown())


def cast(input: Any, element_type: ir.Type, **kwargs: Any) -> ir.Value:
    """`mlc.cast` to an element type; keywords: `unsigned_in`, `unsigned_out`, `saturate`."""
    return _gen.cast(_tensor(_shape(input), element_type), input, **kwargs)


def bitcast(input: Any, element_type: ir.Type, **kwargs: Any) -> ir.Value:
    """`mlc.bitcast` to an element type of the same width."""
    return _gen.bitcast(_tensor(_shape(input), element_type), input, **kwargs)


def reshape(input: Any, sizes: Sequence[MixedSize], **kwargs: Any) -> ir.Value:
    """`mlc.reshape` to mixed sizes."""
    dynamic, static = split_mixed(sizes)
    return _gen.reshape(input, dynamic, static, **kwargs)


def broadcast(input: Any, sizes: Sequence[MixedSize], **kwargs: Any) -> ir.Value:
    """`mlc.broadcast` to mixed sizes."""
    dynamic, static = split_mixed(sizes)
    return _gen.broadcast(input, dynamic, static, **kwargs)


def slice(
    input: Any,
    offsets: Sequence[MixedSize],
    sizes: Sequence[MixedSize],
    strides: Sequence[MixedSize] | None = None,
    **kwargs: Any,
) -> ir.Value:
    """`mlc.slice` with mixed offsets, sizes and strides (default 1)."""
    parts = [split_mixed(part) for part in (offsets, sizes, strides or [1] * len(offsets))]
    dynamic, static = zip(*parts, strict=True)
    return _gen.slice(input, *dynamic, *static, **kwargs)


def pad(
    input: Any,
    low: Sequence[MixedSize],
    high: Sequence[MixedSize],
    mode: str = "constant",
    value: Any = None,
    **kwargs: Any,
) -> ir.Value:
    """`mlc.pad` with mixed paddings."""
    (low_values, static_low), (high_values, static_high) = split_mixed(low), split_mixed(high)
    return _gen.pad(input, low_values, high_values, static_low, static_high, mode, value=value, **kwargs)


def resize(input: Any, scales: Any, sizes: Sequence[MixedSize], mode: str, **kwargs: Any) -> ir.Value:
    """`mlc.resize` to mixed sizes."""
    dynamic, static = split_mixed(sizes)
    return _gen.resize(input, scales, dynamic, static, mode, **kwargs)


def iota(element_type: ir.Type, sizes: Sequence[MixedSize], axis: int = 0, **kwargs: Any) -> ir.Value:
    """`mlc.iota` of mixed sizes."""
    dynamic, static = split_mixed(sizes)
    return _gen.iota(_tensor(static, element_type), dynamic, static, axis, **kwargs)


def random(
    kind: str, seed: Any, sizes: Sequence[MixedSize], element_type: ir.Type, **kwargs: Any
) -> ir.Value:
    """`mlc.random` of mixed sizes."""
    dynamic, static = split_mixed(sizes)
    return _gen.random(_tensor(static, element_type), kind, seed, dynamic, static, **kwargs)


def weight(name: str, type: ir.Type, **kwargs: Any) -> ir.Value:
    """`mlc.weight` of a type."""
    return _gen.weight(type, name, **kwargs)


def sequence_make(inputs: Sequence[Any], element_type: ir.Type, **kwargs: Any) -> ir.Value:
    """`mlc.sequence_make` of values of (or more static than) an element type."""
    return _gen.sequence_make(_native.SeqType.get(element_type), inputs, **kwargs)


def extern(
    callee: str, inputs: Sequence[Any], results: Sequence[ir.Type], config: str = "", **kwargs: Any
) -> list[ir.Value]:
    """`mlc.extern`: the results of a C routine."""
    return list(_gen.ExternOp(list(results), inputs, callee, config=config, **kwargs).operation.results)


def launch(kernel: str, inputs: Sequence[Any], outs: Sequence[Any], **kwargs: Any) -> list[ir.Value]:
    """`mlc.launch`: on tensors one result per destination, on memrefs none."""
    types = [type for out in outs if isinstance(type := _value(out).type, ir.RankedTensorType)]
    return list(_gen.LaunchOp(types, kernel, inputs, outs, **kwargs).operation.results)


def buffer(
    where: str,
    type: ir.Type,
    sizes: Sequence[ir.Value] = (),
    offset: MixedSize | None = None,
    number: int | None = None,
    **kwargs: Any,
) -> ir.Value:
    """`mlc.buffer`: memory of the host program; `offset` is a byte offset, `number` that of an output."""
    is_static = offset is not None and _is_static(offset)
    return _gen.buffer(
        type,
        where,
        list(sizes),
        offset=None if is_static else offset,
        static_offset=offset if is_static else None,
        number=number,
        **kwargs,
    )


def constant(value: Any, **kwargs: Any) -> ir.Value:
    """`mlc.constant` of an elements attribute, or of an array (or scalar) of NumPy or ml_dtypes."""
    if not isinstance(value, ir.Attribute):
        value = elements(np.asarray(value))
    return _gen.constant(value, results=[value.type], **kwargs)


def elements(array: np.ndarray) -> ir.Attribute:
    """The dense elements of an array of NumPy or ml_dtypes; integers become signless, bool `i1`, text `!mlc.str`."""
    if array.dtype.kind in "OSU":
        string = _native.StrType.get()
        texts = [ir.StringAttr.get_typed(string, _text(entry)) for entry in array.reshape(-1)]
        return ir.DenseElementsAttr.get(texts, _tensor(array.shape, string))
    type, shape = element_type(array.dtype), list(array.shape)
    array = np.ascontiguousarray(array)  # (turns rank 0 into 1)
    if array.dtype == np.bool_:
        packed = np.packbits(array.reshape(-1), bitorder="little")
        if array.size == 1:  # one byte is a splat, which must be 0 or 255
            packed = np.array([255 if array.item() else 0], np.uint8)
        return ir.DenseElementsAttr.get(packed, type=type, shape=shape)
    bits = array.view(f"u{array.dtype.itemsize}")  # a buffer cannot carry ml_dtypes
    return ir.DenseElementsAttr.get(bits, type=type, shape=shape)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


_FLOATS = {
    "float64": ir.F64Type,
    "float32": ir.F32Type,
    "float16": ir.F16Type,
    "bfloat16": ir.BF16Type,
    "float8_e4m3fn": ir.Float8E4M3FNType,
    "float8_e4m3fnuz": ir.Float8E4M3FNUZType,
    "float8_e5m2": ir.Float8E5M2Type,
    "float8_e5m2fnuz": ir.Float8E5M2FNUZType,
    "float8_e8m0fnu": ir.Float8E8M0FNUType,
    "float4_e2m1fn": ir.Float4E2M1FNType,
}


def element_type(dtype: Any) -> ir.Type:
    """The builtin element type of a NumPy or ml_dtypes dtype or its name."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name == "object" or name.startswith(("str", "bytes")):
        return _native.StrType.get()
    if name in _FLOATS:
        return _FLOATS[name].get()
    if name in ("bool", "bool_"):
        return ir.IntegerType.get_signless(1)
    width = name.removeprefix("u").removeprefix("int")
    if width.isdigit() and name.removeprefix("u").startswith("int"):
        return ir.IntegerType.get_signless(int(width))
    raise TypeError(f"dtype {name} has no MLIR element type")
