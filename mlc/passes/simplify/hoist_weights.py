"""Pass `mlc-hoist-weights`: maximal subgraphs that depend on weights only become recipes of the weight store.

    %w = mlc.weight "w" : tensor<32x64xf32>
    %t = mlc.transpose %w {permutation = array<i64: 1, 0>} : tensor<32x64xf32> -> tensor<64x32xf32>
becomes
    %t = mlc.weight "w#1f0c2a77e1" : tensor<64x32xf32>
with the transpose as a recipe in the module's `mlc.recipes`.

Nothing is evaluated here: `mlc.weights` does that when the weight image is written. A result that is much larger than
the weights that it comes from (a broadcast, a mask made of constants) is better computed at run time: it is hoisted
only up to `limit` bytes, and never when a broadcast or an iota is all that it is. Recipes that nothing reads are
dropped.

What depends on one of a stack of weights becomes one of a stack, whose recipe is that of each:

    %w = mlc.weight "w"[%i of 8] : tensor<32x64xf32>
    %t = mlc.transpose %w {permutation = array<i64: 1, 0>} : tensor<32x64xf32> -> tensor<64x32xf32>
becomes
    %t = mlc.weight "w#a0b1c2d3e4"[%i of 8] : tensor<64x32xf32>
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from mlir import ir

from mlc.interp.dtypes import numpy_dtype
from mlc.interp.from_ir import attributes, result_type
from mlc.kernels.common.streamed import STREAMED
from mlc.passes.adaptor import defining_op
from mlc.passes.base import Pass
from mlc.passes.host.nodes import node_name
from mlc.passes.simplify.rewrite import (
    constant_index,
    element_count,
    is_pure_mlc,
    is_static,
    is_unused,
)
from mlc.passes.simplify.weight_recipes import Stack, read_recipes, recipe_name, stack_of, weight_of, write_recipes
from mlc.passes.walk import functions, operations
from mlc.weights import Recipe, Step
from mlc.weights.recipe import Input

_LEAVES = {"mlc.weight", "mlc.constant"}
_NEVER = {"mlc.random"}
_CHEAP = {"mlc.broadcast", "mlc.iota"}


class HoistWeights(Pass):
    """Moves computations on weights into the weight store."""

    dialects = ("mlc",)
    statistics = {"hoisted": "values that became weights"}

    limit: int = 4194304
    """Largest size in bytes of a weight that is more than twice as large as those that it is computed from."""

    def run(self, op: Any) -> None:
        recipes = read_recipes(op)
        for function in functions(op):
            self._hoist(function, recipes)
        write_recipes(op, _used(op, recipes))

    def _hoist(self, function: ir.Operation, recipes: dict[str, Recipe]) -> None:
        stacks = _weight_only(function)
        found = list(stacks)
        roots = [value for op in found for value in op.results if op.name not in _LEAVES]
        hoisted: set[ir.Operation] = set()
        # Users come after what they use: from the end on, a value used by hoisted operations only is inside a recipe.
        for value in reversed(roots):
            op = value.owner.operation
            outside = [use for use in value.uses if use.owner.operation not in hoisted]
            if not outside:
                if list(value.uses):
                    hoisted.add(op)
                continue
            if self._is_worth_it(op, value):
                hoisted.add(op)
                self._replace(value, stacks[op], recipes, hoisted)
        for op in reversed(found):
            if is_unused(op):
                op.erase()

    def _is_worth_it(self, op: ir.Operation, value: ir.Value) -> bool:
        if op.name in _CHEAP:
            return False
        size = _bytes(value.type)
        return size <= self.limit or size <= 2 * sum(_bytes(leaf.type) for leaf in _leaves(op))

    def _replace(
        self, value: ir.Value, stack: Stack | None, recipes: dict[str, Recipe], hoisted: set[ir.Operation]
    ) -> None:
        op = value.owner.operation
        index, count = stack or (None, None)
        recipe = recipe_of(value, count)
        name = recipe_name(recipe, _main_weight(op))
        recipes[name] = recipe
        with ir.InsertionPoint(op), op.location:
            weight = weight_of(name, value.type, index, count)
        for use in list(value.uses):
            if use.owner.operation not in hoisted:
                use.owner.operation.operands[use.operand_number] = weight
        self.count("hoisted")


def _bytes(type_: ir.Type) -> int:
    return element_count(type_) * numpy_dtype(result_type(type_).dtype).itemsize


def _weight_only(function: ir.Operation) -> dict[ir.Operation, Stack | None]:
    """Operations that depend on weights and constants only, in order, each with the stack that some of them are of."""
    found: dict[ir.Operation, Stack | None] = {}
    for op in operations(function):
        if not is_pure_mlc(op) or op.name in _NEVER or STREAMED in op.attributes:
            continue
        if not all(is_static(r.type) for r in op.results):
            continue
        if op.name in _LEAVES:
            found[op] = stack_of(op)
        elif len(op.operands) and all(_is_known(v, found) for v in op.operands):
            stacks = {s for s in (found.get(v.owner.operation) for v in op.operands) if s is not None}
            if len(stacks) < 2:
                found[op] = next(iter(stacks), None)
    return found


def _is_known(value: ir.Value, known: Container[ir.Operation]) -> bool:
    op = defining_op(value)
    return op is not None and (op in known or constant_index(value) is not None)


def _leaves(op: ir.Operation) -> list[ir.Value]:
    """The weights and constants that a weight-only operation comes from, each once."""
    seen: dict[ir.Operation, None] = {}
    leaves: list[ir.Value] = []
    stack = [op]
    while stack:
        current = stack.pop()
        for operand in current.operands:
            source = defining_op(operand)
            if source is None or source in seen or not isinstance(operand.type, ir.RankedTensorType):
                continue
            seen[source] = None
            if source.name in _LEAVES:
                leaves.append(operand)
            else:
                stack.append(source)
    return leaves


def _main_weight(op: ir.Operation) -> str:
    """The name of the largest weight that a weight-only operation comes from."""
    weights = [leaf for leaf in _leaves(op) if leaf.owner.operation.name == "mlc.weight"]
    names = [(-element_count(w.type), ir.StringAttr(w.owner.operation.attributes["name"]).value) for w in weights]
    return min(names)[1] if names else "constant"


def recipe_of(value: ir.Value, count: int | None = None) -> Recipe:
    """The recipe of a result of a weight-only operation, or of a stack of `count` such results."""
    op = value.owner.operation
    steps: list[Step] = []
    numbers: dict[ir.Operation, int] = {}

    def reference(value: ir.Value) -> Input:
        source = value.owner.operation
        if source.name == "mlc.weight":
            stacked = {"stacked": True} if len(source.operands) else {}
            return {"weight": ir.StringAttr(source.attributes["name"]).value, **stacked}
        if source in numbers:
            return {"step": numbers[source], "result": list(source.results).index(value)}
        number = constant_index(value)
        assert number is not None
        return {"index": number}

    def sources_of(current: ir.Operation) -> list[ir.Operation]:
        """The operations that `current` reads and that become steps, the last one first."""
        sources = [(v, v.owner.operation) for v in reversed(current.operands)]
        return [s for v, s in sources if s.name != "mlc.weight" and constant_index(v) is None]

    stack = [(op, sources_of(op))]
    while stack:
        current, sources = stack[-1]
        waiting = [s for s in sources if s not in numbers]
        if waiting:
            stack.extend((s, sources_of(s)) for s in waiting)
            continue
        stack.pop()
        if current in numbers:
            continue
        numbers[current] = len(steps)
        types = tuple(result_type(r.type) for r in current.results)
        attrs = {name: value for name, value in attributes(current).items() if not name.startswith("mlc.")}
        steps.append(Step(current.name, tuple(reference(v) for v in current.operands), attrs, types))
    return Recipe(tuple(steps), (numbers[op], list(op.results).index(value)), node_name(op.location), count)


def _used(module: Any, recipes: dict[str, Recipe]) -> dict[str, Recipe]:
    """The recipes that a weight of the module reads, directly or through others."""
    wanted: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "mlc.weight":
            wanted.append(ir.StringAttr(op.attributes["name"]).value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    used: dict[str, Recipe] = {}
    while wanted:
        name = wanted.pop()
        if name in recipes and name not in used:
            used[name] = recipes[name]
            wanted.extend(recipes[name].inputs())
    return used
