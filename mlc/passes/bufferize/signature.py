"""The signature of an entry as attributes that outlive the tensors: names, dtypes, shapes and dimension names.

```mlir
mlc.entries = [{name = "forward",
                inputs = [{name = "x", dtype = "float32", shape = array<i64: -1, 32>, dims = ["batch", ""]}],
                outputs = [{name = "y", dtype = "float32", shape = array<i64: -1, 64>, dims = ["batch", ""]}]}]
```
"""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.bufferize.sizes import Size, SizeAnalysis
from mlc.passes.bufferize.types import is_handle_type
from mlc.runtime.dtypes import DTYPES

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DTYPES = {"i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i128": "string"}


def _attributes(function: ir.Operation, which: str, index: int) -> dict[str, ir.Attribute]:
    if which not in function.attributes:
        return {}
    entry = ir.DictAttr(ir.ArrayAttr(function.attributes[which])[index])
    return {named.name: named.attr for named in entry}


def _text(attributes: dict[str, ir.Attribute], key: str, default: str) -> str:
    return ir.StringAttr(attributes[key]).value if key in attributes else default


def _dims(attributes: dict[str, ir.Attribute], rank: int) -> list[str]:
    if "mlc.dims" not in attributes:
        return [""] * rank
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(attributes["mlc.dims"])]


def argument_dim_names(function: ir.Operation) -> dict[tuple[int, int], str]:
    """The named dynamic dimensions of the arguments: {(argument, axis): name}."""
    names: dict[tuple[int, int], str] = {}
    for number, argument in enumerate(function.regions[0].blocks[0].arguments):
        if not isinstance(argument.type, ir.ShapedType):
            continue
        for axis, name in enumerate(_dims(_attributes(function, "arg_attrs", number), argument.type.rank)):
            if name and argument.type.is_dynamic_dim(axis):
                names[number, axis] = name
    return names


def _value(
    name: str, dtype: str, tensor: ir.Type, dims: list[str], attributes: dict[str, ir.Attribute]
) -> ir.Attribute:
    shape = [-1 if extent == _DYNAMIC else extent for extent in tensor.shape]
    described = {
        "name": ir.StringAttr.get(name),
        "dtype": ir.StringAttr.get(dtype),
        "shape": ir.DenseI64ArrayAttr.get(shape),
        "dims": ir.ArrayAttr.get([ir.StringAttr.get(d) for d in dims]),
    }
    if place := _text(attributes, "mlc.placement", ""):
        described["placement"] = ir.StringAttr.get(place)
    for key in ("keys", "map", "shares", "continues", "default"):
        if f"mlc.{key}" in attributes:
            described[key] = attributes[f"mlc.{key}"]
    return ir.DictAttr.get(described)


def innermost(kind: ir.Type) -> tuple[list[str], ir.Type]:
    """What a type is from the outside in (`["optional", "sequence", "tensor"]`), and its tensors' element
    type.
    """
    text, kinds = str(kind), []
    while text.startswith(("!mlc.seq<", "!mlc.optional<")):
        kinds.append("sequence" if text.startswith("!mlc.seq<") else "optional")
        text = text[text.index("<") + 1 : -1]
    return [*kinds, "tensor"], ir.RankedTensorType(ir.Type.parse(text)).element_type


def handle_dtypes(function: ir.Operation) -> dict[str, str]:
    """The dtype of tensors in sequences, by element type: what the arguments say, as types have no sign."""
    dtypes: dict[str, str] = {}
    for number, argument in enumerate(function.regions[0].blocks[0].arguments):
        if is_handle_type(argument.type):
            element = innermost(argument.type)[1]
            dtype = _text(_attributes(function, "arg_attrs", number), "mlc.dtype", "")
            if dtype in DTYPES:
                dtypes.setdefault(str(element), dtype)
    return dtypes


def _handle(name: str, kind: ir.Type, dtypes: dict[str, str]) -> ir.Attribute:
    kinds, element = innermost(kind)
    return ir.DictAttr.get(
        {
            "name": ir.StringAttr.get(name),
            "dtype": ir.StringAttr.get(dtypes.get(str(element), default_dtype(element))),
            "kind": ir.ArrayAttr.get([ir.StringAttr.get(k) for k in kinds]),
        }
    )


def default_dtype(element: ir.Type) -> str:
    """The dtype that an element type has when nothing else says so: signed."""
    text = str(element)
    return _DTYPES.get(text, f"int{text[1:]}" if text.startswith("i") else text)


def entry_signature(function: ir.Operation) -> ir.Attribute:
    """The signature of `function`, whose arguments and results are still tensors."""
    entry = function.regions[0].blocks[0]
    names = argument_dim_names(function)
    sizes = SizeAnalysis(names)
    by_size: dict[Size, str] = {}
    for (argument, axis), name in names.items():
        by_size.setdefault(sizes.dim(entry.arguments[argument], axis), name)
    dtypes = handle_dtypes(function)
    inputs = []
    for number, argument in enumerate(entry.arguments):
        attributes = _attributes(function, "arg_attrs", number)
        name = _text(attributes, "mlc.name", f"input{number}")
        if is_handle_type(argument.type):
            inputs.append(_handle(name, argument.type, dtypes))
            continue
        dtype = _text(attributes, "mlc.dtype", default_dtype(argument.type.element_type))
        inputs.append(_value(name, dtype, argument.type, _dims(attributes, argument.type.rank), attributes))
    outputs = []
    for number, value in enumerate(entry.operations[len(entry.operations) - 1].operands):
        attributes = _attributes(function, "res_attrs", number)
        name = _text(attributes, "mlc.name", f"output{number}")
        if is_handle_type(value.type):
            outputs.append(_handle(name, value.type, dtypes))
            continue
        dtype = _text(attributes, "mlc.dtype", default_dtype(value.type.element_type))
        dims = [by_size.get(sizes.dim(value, axis), "") for axis in range(value.type.rank)]
        outputs.append(_value(name, dtype, value.type, dims, attributes))
    return ir.DictAttr.get(
        {
            "name": ir.StringAttr(function.attributes["sym_name"]),
            "inputs": ir.ArrayAttr.get(inputs),
            "outputs": ir.ArrayAttr.get(outputs),
        }
    )
