"""List the operators that ONNX models use: `python scan.py MODEL.onnx...`.

One line per operator: how often, and the attributes with the values seen.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import helper


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes of `graph` and of the graphs nested in its attributes, in order."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)
            for nested in attribute.graphs:
                yield from nodes_of(nested)


def scan(path: Path) -> str:
    """A table of the operators of the model at `path`."""
    model = onnx.load(path, load_external_data=False)
    opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import)
    lines = [f"{path}  ir {model.ir_version}  opset {opsets}"]
    for title, values in (("in", model.graph.input), ("out", model.graph.output)):
        for value in values:
            shape = value.type.tensor_type.shape
            dims = [dim.dim_param or str(dim.dim_value) for dim in shape.dim]
            lines.append(f"  {title:3} {value.name} {value.type.tensor_type.elem_type} {dims}")
    counts: Counter[str] = Counter()
    attributes: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for node in nodes_of(model.graph):
        op = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        counts[op] += 1
        for attribute in node.attribute:
            value = helper.get_attribute_value(attribute)
            text = type(value).__name__ if isinstance(value, onnx.GraphProto | onnx.TensorProto) else repr(value)
            attributes[op][attribute.name].add(text[:40])
    for op, count in sorted(counts.items()):
        seen = "; ".join(f"{name}={sorted(values)[:6]}" for name, values in sorted(attributes[op].items()))
        lines.append(f"  {count:5} {op}  {seen}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the table of every model named on the command line."""
    for argument in arguments:
        print(scan(Path(argument)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
