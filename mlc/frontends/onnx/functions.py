"""Functions: model-local ones, and the bodies that ONNX gives for operators without an importer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from mlir import ir
from onnx import defs, helper, numpy_helper

from mlc.frontends.common import types
from mlc.frontends.common.builder import DYNAMIC, Tensor
from mlc.frontends.onnx.registry import Node, find
from mlc.frontends.report import NodeError

if TYPE_CHECKING:
    from mlc.frontends.onnx.graph import GraphImporter


def inline(g: GraphImporter, proto: onnx.NodeProto, node: Node, function: onnx.FunctionProto) -> list[Tensor | None]:
    """Imports the body of `function` in place of a node that calls it."""
    from mlc.frontends.onnx.graph import PoisonedError, Scope, opsets_of, sorted_nodes

    given = {attribute.name: attribute for attribute in proto.attribute}
    defaults = {attribute.name: attribute for attribute in function.attribute_proto}
    outer = g.scope
    names: dict[str, Tensor | None] = dict.fromkeys(function.input)
    names.update(zip(function.input, node.inputs, strict=False))
    prefix = f"{outer.prefix}{node.name}/"
    # Bodies in schemas do not always name every operator set that they use.
    opsets = opsets_of(g.model.proto.opset_import) | opsets_of(function.opset_import)
    g.scope = Scope(None, names, set(), opsets, defaults | given, prefix)
    before = len(g.problems)
    try:
        g.body(sorted_nodes(function.node), function.output)
        results = []
        for name in function.output:
            try:
                results.append(g.scope.lookup(name))
            except KeyError:
                results.append(None)
    except PoisonedError:
        if len(g.problems) > before:
            raise
        raise NodeError(f"the body of {node.op} could not be imported") from None
    finally:
        g.scope = outer
    return results


def expand(g: GraphImporter, proto: onnx.NodeProto, node: Node) -> list[Tensor | None]:
    """Imports a node of an operator without an importer through the function body in its ONNX schema."""
    function = schema_function(proto, node)
    if function is None:
        raise NodeError(*unknown(node.domain, node.op, node.version))
    return inline(g, proto, node, function)


def unknown(domain: str, op: str, version: int) -> tuple[str, str]:
    """Reason and hint for an operator that nothing can import."""
    if domain == "" and not defs.has(op):
        return f"no such operator in ONNX opset {version}", "check the spelling and the domain"
    where = f' of domain "{domain}"' if domain else f" (opset {version})"
    return (
        f"the operator {op}{where} is not supported",
        "export the model without it, or give it as a model-local function",
    )


def is_known(domain: str, op: str, version: int) -> bool:
    """Whether an operator has an importer, or at least a function body in its schema."""
    if find(domain, op, version) is not None:
        return True
    try:
        schema = defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def schema_function(proto: onnx.NodeProto, node: Node) -> onnx.FunctionProto | None:
    """The function body that the schema of a node's operator gives for these inputs, or nothing."""
    try:
        schema = defs.get_schema(node.op, node.version, node.domain)
    except defs.SchemaError:
        return None
    function = onnx.FunctionProto()
    if schema.has_function:
        function.CopyFrom(schema.function_body)
    elif schema.has_context_dependent_function:
        types = [type_proto(value).SerializeToString() for value in node.inputs]
        try:
            text = schema.get_context_dependent_function(proto.SerializeToString(), types)
        except Exception as error:  # the builder raises whatever its C++ threw
            raise NodeError(f"ONNX gives no decomposition for these types: {error}") from error
        if not text:
            return None
        function.ParseFromString(text)
    else:
        return None
    _complete(function, schema, proto)
    return function


def _complete(function: onnx.FunctionProto, schema: defs.OpSchema, proto: onnx.NodeProto) -> None:
    """Adds the defaults of the schema's attributes, which function bodies refer to without repeating them."""
    present = {attribute.name for attribute in function.attribute_proto}
    for name, attribute in schema.attributes.items():
        default = attribute.default_value
        if default.name and name not in present:
            function.attribute_proto.append(default)


def type_proto(value: Tensor | None) -> onnx.TypeProto:
    """The ONNX type of an imported tensor; the empty type for an absent one."""
    if value is None:
        return onnx.TypeProto()
    if not isinstance(value.value.type, ir.RankedTensorType):
        raise NodeError(f"ONNX's decomposition does not apply to {value.value.type}")
    elem_type = helper.np_dtype_to_tensor_dtype(types.numpy_dtype(value.dtype))
    shape = [None if extent == DYNAMIC else extent for extent in value.type.shape]
    return helper.make_tensor_type_proto(elem_type, shape)


def densified(sparse: onnx.SparseTensorProto) -> np.ndarray:
    """The dense array of a sparse tensor in COO form."""
    values = numpy_helper.to_array(sparse.values)
    indices = numpy_helper.to_array(sparse.indices)
    shape = tuple(sparse.dims)
    result = np.zeros(shape, values.dtype)
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
    result.reshape(-1)[flat] = values
    return result
