"""After the importer failed where it should not: what is wrong with the model, if something is.

These checks would cost more than an import, so nobody asks them of models that import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import onnx
from onnx import external_data_helper, numpy_helper

from mlc.frontends.onnx import load
from mlc.frontends.report import Problem

HINT = "the file is damaged, or was written by a tool that does not keep to ONNX"


def blame(model: load.Model) -> list[Problem]:
    """The first thing that is wrong with `model`; empty when it is a good one."""
    checks: list[Callable[[onnx.ModelProto], Iterator[str]]] = [_texts, _data, _rules]
    for check in checks:
        found = next(check(model.proto), None)
        if found is not None:
            return [Problem(found, HINT)]
    return []


def _texts(message: Any) -> Iterator[str]:
    """Texts that are not UTF-8: protobuf gives them as bytes."""
    for field, value in message.ListFields():
        for item in value if hasattr(value, "append") else [value]:
            if field.type == field.TYPE_STRING and isinstance(item, bytes):
                yield f"a {field.containing_type.name} has a {field.name} that is no text: {item!r}"
            elif field.type == field.TYPE_MESSAGE:
                yield from _texts(item)


def _data(proto: onnx.ModelProto) -> Iterator[str]:
    """Tensors whose data do not have the size or the type that they say."""
    for tensor in load.tensors_of(proto.graph):
        if external_data_helper.uses_external_data(tensor):
            continue
        if tensor.data_type not in onnx.TensorProto.DataType.values():
            yield f'tensor "{tensor.name}": its data type is {tensor.data_type}, which no version of ONNX knows'
        try:
            numpy_helper.to_array(tensor)
        except Exception:  # whatever the data make of the reader
            yield f'tensor "{tensor.name}": its data do not make an array of shape {list(tensor.dims)}'


def _rules(proto: onnx.ModelProto) -> Iterator[str]:
    """What the checker says, and strict inference of shapes."""
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception as error:  # its own errors, and those of the parser behind it
        yield f"onnx.checker: {load.one_line(error)}"
