"""Operators without an importer, as PyTorch decomposes them.

PyTorch says of most of its operators what they are in terms of others: an importer is written for those that mlc does
better as a whole, and for those that nothing simpler makes up. Source: PyTorch documentation, "torch.export",
`ExportedProgram.run_decompositions`; `torch._decomp.decomposition_table`, which has more of them than the former takes
by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlc.frontends.torch import files
from mlc.frontends.torch.registry import find

_ROUNDS = 8
"""How often what a decomposition consists of is decomposed."""


def without_unknown(torch: Any, program: Any) -> Any:
    """The program with every operator decomposed that has no importer, as far as PyTorch can. What is left is reported
    when the graph is walked.
    """
    tried: set[Any] = set()
    for _ in range(_ROUNDS):
        unknown = set(_unknown(torch, program)) - tried
        if not unknown:
            break
        tried |= unknown
        tables = (torch.export.default_decompositions(), torch._decomp.decomposition_table)
        known = {op: table[op] for table in reversed(tables) for op in unknown if op in table}
        program = _decomposed(program, known)
    return program


def decomposed_from(node: Any) -> str:
    """The operator that the program had where `node` is, as in `aten::copysign`; "" where PyTorch does not say."""
    target, sources = "", node.meta.get("from_node")
    while sources:
        target, sources = str(sources[-1].target), sources[-1].from_node
    parts = target.split(".")
    return "::".join(parts[:2]) if len(parts) == 3 else ""


def _decomposed(program: Any, table: dict[Any, Callable[..., Any]]) -> Any:
    """The program with the operators of `table` decomposed, and by the way those that share memory with an argument
    and are made of others. What cannot be decomposed is left as it is.
    """
    try:
        with files.quiet():
            return _without_effects(program.run_decompositions(dict(table)))
    except Exception:  # of any kind: what PyTorch runs are its own decompositions. What is left is reported by name
        if len(table) < 2:
            return program
    for op, made in table.items():
        program = _decomposed(program, {op: made})
    return program


def _without_effects(program: Any) -> Any:
    """The program without the order of what only checks or prints something, which decomposing it has added."""
    if not program.graph_signature.input_tokens:
        return program
    from torch.export._remove_effect_tokens_pass import _remove_effect_tokens  # as torch.export.export does

    return _remove_effect_tokens(program)


def _unknown(torch: Any, program: Any) -> Iterator[Any]:
    """The operators without an importer, once each."""
    graphs = (part.graph for part in program.graph_module.modules() if hasattr(part, "graph"))
    nodes = (node for graph in graphs for node in graph.nodes if node.op == "call_function" and node.users)
    targets = {node.target: None for node in nodes}
    for target in targets:
        if isinstance(target, torch._ops.OpOverload) and find(target._schema.name) is None:
            yield target
