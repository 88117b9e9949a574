"""ONNX value types as arguments and MLIR types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from mlir import ir

from mlc.frontends.common import types
from mlc.frontends.common.builder import DYNAMIC
from mlc.frontends.common.entry import Argument, DimRange, resolve
from mlc.frontends.common.maps import parts_of
from mlc.frontends.onnx import load
from mlc.frontends.report import NodeError


def input_arguments(
    value: onnx.ValueInfoProto, override: Sequence[int | str] | None, dims: Mapping[str, DimRange]
) -> list[Argument]:
    """The arguments of a graph input, two for a map; `override` replaces its shape. `NodeError` without a type."""
    if value.type.WhichOneof("value") == "map_type":
        return _map_arguments(value.name, value.type.map_type)
    return [_argument(value, override, dims)]


def _map_arguments(name: str, kind: onnx.TypeProto.Map) -> list[Argument]:
    values = kind.value_type
    if values.WhichOneof("value") != "tensor_type" or declared_shape(values.tensor_type) not in (None, [], [1]):
        raise NodeError("its type is a map of other things than numbers or strings")
    dtypes = elem_dtype(kind.key_type), elem_dtype(values.tensor_type.elem_type)
    pairs = zip(parts_of(name), dtypes, strict=True)
    return [Argument(part, dtype, [f"{name}.size"], map=name) for part, dtype in pairs]


def _argument(
    value: onnx.ValueInfoProto, override: Sequence[int | str] | None, dims: Mapping[str, DimRange]
) -> Argument:
    kind = value.type.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        type_ = value.type if override is None else _with_shape(value.type, override)
        return Argument(value.name, kind.removesuffix("_type"), [], value_type(type_, undeclared=True))
    if kind != "tensor_type":
        raise NodeError(f"its type is {kind or 'missing'}", "only tensors, maps, sequences and optionals are supported")
    dtype = elem_dtype(value.type.tensor_type.elem_type)
    shape = declared_shape(value.type.tensor_type)
    if override is not None:
        _check_override(_declared(value.type.tensor_type, override), override)
        shape = list(override)
    if shape is None:
        hint = f"give its shape with --input {value.name}=SHAPE, for example --input {value.name}=batchx3x224x224"
        raise NodeError("its rank is unknown", hint)
    return Argument(value.name, dtype, resolve(shape, dims))


def _with_shape(proto: onnx.TypeProto, override: Sequence[int | str]) -> onnx.TypeProto:
    """A type of sequences or optionals whose tensors have the shape `override`; names stand for any extent."""
    result = onnx.TypeProto()
    result.CopyFrom(proto)
    inner = result
    while (kind := inner.WhichOneof("value")) in ("sequence_type", "optional_type"):
        inner = getattr(inner, kind).elem_type
    if kind == "tensor_type":
        _check_override(_declared(inner.tensor_type, override), override)
        extents = [extent if isinstance(extent, int) else None for extent in override]
        inner.CopyFrom(onnx.helper.make_tensor_type_proto(inner.tensor_type.elem_type, extents))
    return result


def _declared(tensor: onnx.TypeProto.Tensor, override: Sequence[int | str]) -> list[int | str] | None:
    """What a model says of a shape for which `override` is given; `NodeError` when that has another rank."""
    shape = declared_shape(tensor)
    if shape is not None and len(shape) != len(override):
        raise NodeError(f"it has rank {len(shape)}, but the given shape {list(override)} has {len(override)}")
    return shape


def _check_override(shape: list[int | str] | None, override: Sequence[int | str]) -> None:
    for have, want in zip(shape or [], override, strict=False):
        if isinstance(have, int) and have != want:
            raise NodeError(f"the model fixes the shape {shape}, and {list(override)} was given")


def elem_dtype(elem_type: int) -> str:
    """The dtype name of an ONNX element type; `NodeError` for one without an MLIR type."""
    try:
        dtype = load.dtype_name(elem_type)
        types.element_type(dtype)
    except KeyError:
        name = onnx.TensorProto.DataType.Name(elem_type)
        raise NodeError(f"the element type {name} is not supported", "cast it outside the model") from None
    return dtype


def declared_shape(tensor: onnx.TypeProto.Tensor) -> list[int | str] | None:
    """The extents of a tensor type, names for symbolic ones, `None` when the rank is unknown."""
    if not tensor.HasField("shape"):
        return None
    shape: list[int | str] = []
    for dim in tensor.shape.dim:
        known = dim.HasField("dim_value") and dim.dim_value >= 0
        shape.append(int(dim.dim_value) if known else dim.dim_param)
    return shape


def value_type(proto: onnx.TypeProto, undeclared: bool = False) -> ir.Type:
    """The MLIR type of an ONNX type; unknown extents are dynamic. Where its rank may be `undeclared`, a tensor without
    one has rank 0: what is inserted into a sequence says more, and what is taken out of one is looked at by the run.
    """
    kind = proto.WhichOneof("value")
    if kind == "sequence_type":
        return sequence_of(value_type(proto.sequence_type.elem_type, undeclared))
    if kind == "optional_type":
        return optional_of(value_type(proto.optional_type.elem_type, undeclared))
    if kind != "tensor_type":
        raise NodeError(f"the type {kind or 'missing'} is not supported")
    shape = declared_shape(proto.tensor_type)
    if shape is None and not undeclared:
        raise NodeError("a tensor of unknown rank", "give its shape in the model")
    extents = [extent if isinstance(extent, int) else DYNAMIC for extent in shape or []]
    return ir.RankedTensorType.get(extents, types.element_type(elem_dtype(proto.tensor_type.elem_type)))


def sequence_of(element: ir.Type) -> ir.Type:
    """`!mlc.seq<element>`."""
    return ir.Type.parse(f"!mlc.seq<{element}>")


def optional_of(element: ir.Type) -> ir.Type:
    """`!mlc.optional<element>`."""
    return ir.Type.parse(f"!mlc.optional<{element}>")
