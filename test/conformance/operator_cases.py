"""ONNX's operators, each with a small model of its own from the backend suite, in every type that its schema allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import onnx
from onnx import TensorProto, defs
from onnx_cases import Case, load_cases

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
TYPES = {
    "bool": "BOOL",
    "string": "STRING",
    "double": "DOUBLE",
    "float": "FLOAT",
    **{name: name.upper() for name in ("float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2")},
    **{name: name.upper() for name in ("float8e5m2fnuz", "float8e8m0", "float4e2m1", "complex64", "complex128")},
    **{f"{sign}int{bits}": f"{sign}int{bits}".upper() for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)},
}
"""Names of element types in schemas, and in TensorProto."""


@dataclass(frozen=True)
class Operator:
    """An operator in its newest version, and the cases of the suite that are about it (expanded ones too)."""

    domain: str
    name: str
    schema: defs.OpSchema
    cases: tuple[Case, ...]

    @property
    def label(self) -> str:
        """How tables and tests call it."""
        return f"{self.domain}.{self.name}" if self.domain else self.name


def _about(case: Case, plain: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
    """Domain and name of the operator that a case is about: the node of its model, or of the model that was expanded."""
    if case.source.model is None:
        return None
    before = case.name.split("_expanded")[0]
    if "_expanded" in case.name:
        return plain.get(before)
    nodes = case.source.model.graph.node
    if len(nodes) == 1:
        return nodes[0].domain, nodes[0].op_type
    wanted = before.removeprefix("test_").replace("_", "")
    named = [node for node in nodes if wanted.startswith(node.op_type.lower())]
    return (named[0].domain, named[0].op_type) if named else None


@lru_cache(maxsize=1)
def operators() -> dict[tuple[str, str], Operator]:
    """Every operator of the installed package that is not deprecated, by domain and name."""
    cases = [case for case in load_cases() if case.kind == "node"]
    plain = {c.name: about for c in cases if "_expanded" not in c.name and (about := _about(c, {}))}
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        about = _about(case, plain)
        if about is not None:
            found[about].append(case)
    schemas = [s for s in defs.get_all_schemas() if s.domain in DOMAINS and not s.deprecated]
    keys = sorted((schema.domain, schema.name) for schema in schemas)
    by_key = {(schema.domain, schema.name): schema for schema in schemas}
    return {key: Operator(*key, by_key[key], tuple(found[key])) for key in keys}


def smallest(operator: Operator) -> Case | None:
    """The case with the smallest single-node model, None where the suite has none."""
    own = [c for c in operator.cases if "_expanded" not in c.name and len(c.source.model.graph.node) == 1]
    return min(own, key=lambda c: (c.source.model.ByteSize(), c.name)) if own else None


def _elem_type(text: str) -> int | None:
    name = text.removeprefix("tensor(").removesuffix(")")
    return TensorProto.DataType.Value(TYPES[name]) if text.startswith("tensor(") and name in TYPES else None


def retyped(operator: Operator, case: Case) -> Iterator[tuple[str, str, onnx.ModelProto]]:
    """The case's model with each type parameter of the schema bound to each type that it allows: parameter, type, model.
    What another parameter says stays as it is."""
    model = case.source.model
    node = model.graph.node[0]
    schema = defs.get_schema(node.op_type, _version(model, node.domain), node.domain)
    for constraint in schema.type_constraints:
        names = _bound(schema, node, constraint.type_param_str)
        values = [v for v in [*model.graph.input, *model.graph.output] if v.name in names]
        if not values or any(not v.type.HasField("tensor_type") for v in values):
            continue
        for text in sorted(constraint.allowed_type_strs):
            kind = _elem_type(text)
            if kind is None:
                continue
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            for value in [*changed.graph.input, *changed.graph.output]:
                if value.name in names:
                    value.type.tensor_type.elem_type = kind
            if kind == onnx.TensorProto.STRING:
                _spell(changed.graph.node[0])
            yield constraint.type_param_str, text.removeprefix("tensor(").removesuffix(")"), changed


def is_valid(model: onnx.ModelProto) -> bool:
    """Whether the types of a model fit together."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception:  # the checker raises several kinds
        return False
    return True


def _spell(node: onnx.NodeProto) -> None:
    """Makes words of the numbers in an attribute that has one form for each."""
    for attribute in node.attribute:
        if attribute.name == "pool_int64s":
            words = onnx.helper.make_attribute("pool_strings", [f"w{number}" for number in attribute.ints])
            attribute.CopyFrom(words)


def _version(model: onnx.ModelProto, domain: str) -> int:
    return next(entry.version for entry in model.opset_import if entry.domain == domain)


def _bound(schema: defs.OpSchema, node: onnx.NodeProto, parameter: str) -> set[str]:
    """The operands and results of a node whose type a parameter of the schema stands for."""
    names = set()
    for formals, given in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for place, name in enumerate(given):
            formal = formals[min(place, len(formals) - 1)]
            if name and formal.type_str == parameter:
                names.add(name)
    return names
