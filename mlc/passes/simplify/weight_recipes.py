"""Recipes in the IR: the module attribute `mlc.recipes`, and the store that a module names.

```mlir
module attributes {mlc.store = "<key>", mlc.recipes = {
  "w#1f0c2a77" = {steps = [{op = "mlc.transpose", inputs = ["w"], attrs = {permutation = array<i64: 1, 0>},
                            results = [tensor<64x32xf32>]}],
                  result = array<i64: 0, 0>, node = "encoder/MatMul"}}}
```
An input is the name of a weight (in an array of its own for one of a stack), `array<i64: step, result>` for an earlier
step, an `index` integer for a size, or unit for an absent operand. `stack` says how many weights the steps make. Names
come from the content, so equal recipes are one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir import ir

from mlc.interp import ResultType
from mlc.interp.from_ir import python_value, result_type
from mlc.weights import Recipe, Step, Store, registry
from mlc.weights.recipe import Input

RECIPES, STORE = "mlc.recipes", "mlc.store"

Stack = tuple[ir.Value, int]
"""An index, and of how many weights."""

# What has been read or written, both ways: passes read and write the same recipes again and again.
_MOST = 1 << 16
_RECIPES: dict[ir.Attribute, Recipe] = {}
_ATTRIBUTES: dict[int, tuple[Recipe, ir.Attribute]] = {}  # by the identity of the recipe, which it holds


def weight_of(name: str, type_: ir.Type, index: ir.Value | None = None, count: int | None = None) -> ir.Value:
    """`mlc.weight`; with an index one of a stack of `count`."""
    attributes: dict[str, ir.Attribute] = {"name": ir.StringAttr.get(name)}
    if count is not None:
        attributes["count"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)
    return ir.Operation.create("mlc.weight", [type_], [] if index is None else [index], attributes).result


def stack_of(weight: ir.Operation) -> Stack | None:
    """Which one of how many an `mlc.weight` is, where it is one of a stack."""
    return (weight.operands[0], ir.IntegerAttr(weight.attributes["count"]).value) if len(weight.operands) else None


def read_recipes(module: Any) -> dict[str, Recipe]:
    """The recipes of a module by name."""
    attributes = module.operation.attributes
    if RECIPES not in attributes:
        return {}
    found = ir.DictAttr(attributes[RECIPES])
    return {found[i].name: _from_attr(found[i].attr) for i in range(len(found))}


def write_recipes(module: Any, recipes: Mapping[str, Recipe]) -> None:
    """Makes `recipes` the recipes of a module."""
    with module.operation.context:
        if recipes:
            attr = ir.DictAttr.get({name: _to_attr(recipe) for name, recipe in recipes.items()})
            module.operation.attributes[RECIPES] = attr
        elif RECIPES in module.operation.attributes:
            del module.operation.attributes[RECIPES]


def forget_recipes() -> None:
    """Lets go of what has been read and written, and of its contexts: the next compilation has other recipes."""
    _RECIPES.clear()
    _ATTRIBUTES.clear()


def recipe_name(recipe: Recipe, source: str = "constant") -> str:
    """A name made of that of a weight that a recipe reads and of the recipe's content."""
    return f"{source.split('#')[0]}#{recipe.digest()[:10]}"


def store_of(module: Any) -> Store:
    """The weight store that a module names in `mlc.store`, with the module's recipes added.

    Raises `WeightError` when no such store is registered (`mlc.weights.registry`).
    """
    attributes = module.operation.attributes
    key = ir.StringAttr(attributes[STORE]).value if STORE in attributes else ""
    store = registry.lookup(key)
    store.add_recipes(read_recipes(module))
    return store


def _to_attr(recipe: Recipe) -> ir.Attribute:
    known = _ATTRIBUTES.get(id(recipe))
    if known is not None and known[0] is recipe and known[1].context == ir.Context.current:
        return known[1]
    attr = _make_attr(recipe)
    _remember(attr, recipe)
    return attr


def _make_attr(recipe: Recipe) -> ir.Attribute:
    steps = [
        ir.DictAttr.get(
            {
                "op": ir.StringAttr.get(step.op),
                "inputs": ir.ArrayAttr.get([_input_attr(i) for i in step.inputs]),
                "attrs": ir.DictAttr.get({name: value_attr(value) for name, value in step.attrs.items()}),
                "results": ir.ArrayAttr.get([ir.TypeAttr.get(_type(r)) for r in step.results]),
            }
        )
        for step in recipe.steps
    ]
    number, result = recipe.result
    result_attr = ir.DenseI64ArrayAttr.get([number % len(steps), result])
    more: dict[str, ir.Attribute] = {"node": ir.StringAttr.get(recipe.node)} if recipe.node else {}
    if recipe.stack is not None:
        more["stack"] = value_attr(recipe.stack)
    return ir.DictAttr.get({"steps": ir.ArrayAttr.get(steps), "result": result_attr, **more})


def _type(result: ResultType) -> ir.Type:
    return ir.RankedTensorType.get(list(result.shape), ir.Type.parse(result.dtype))


def _input_attr(source: Input) -> ir.Attribute:
    if source is None:
        return ir.UnitAttr.get()
    if "weight" in source:
        name = ir.StringAttr.get(source["weight"])
        return ir.ArrayAttr.get([name]) if source.get("stacked") else name
    if "index" in source:
        return ir.IntegerAttr.get(ir.IndexType.get(), source["index"])
    return ir.DenseI64ArrayAttr.get([source["step"], source.get("result", 0)])


def value_attr(value: Any) -> ir.Attribute:
    """The attribute of a plain value, after the conventions of the dialect (docs/ir.md §1)."""
    from mlc.dialects import builders
    from mlc.interp.shape import constant_of

    if value is True:
        return ir.UnitAttr.get()
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], str):
            return ir.ArrayAttr.get([ir.StringAttr.get(v) for v in value])
        return ir.DenseI64ArrayAttr.get(list(value))
    return builders.elements(constant_of(value))


def _from_attr(attr: ir.Attribute) -> Recipe:
    recipe = _RECIPES.get(attr)
    if recipe is None:
        recipe = _make_recipe(ir.DictAttr(attr))
        _remember(attr, recipe)
    return recipe


def _make_recipe(attr: ir.DictAttr) -> Recipe:
    number = ir.DenseI64ArrayAttr(attr["result"])
    node = ir.StringAttr(attr["node"]).value if "node" in attr else ""
    steps = tuple(_step(ir.DictAttr(step)) for step in _entries(attr["steps"]))
    stack = ir.IntegerAttr(attr["stack"]).value if "stack" in attr else None
    return Recipe(steps, (number[0], number[1]), node, stack)


def _remember(attr: ir.Attribute, recipe: Recipe) -> None:
    if len(_RECIPES) >= _MOST:
        forget_recipes()
    _RECIPES[attr] = recipe
    _ATTRIBUTES[id(recipe)] = recipe, attr


def _entries(attr: ir.Attribute) -> list[ir.Attribute]:
    """The entries of an array. (Iterating over one ends by a C++ exception: twice as long.)"""
    array = ir.ArrayAttr(attr)
    return [array[i] for i in range(len(array))]


def _step(attr: ir.DictAttr) -> Step:
    results = tuple(result_type(ir.TypeAttr(t).value) for t in _entries(attr["results"]))
    inputs = tuple(_input(a) for a in _entries(attr["inputs"]))
    return Step(ir.StringAttr(attr["op"]).value, inputs, _plain_attrs(ir.DictAttr(attr["attrs"])), results)


def _plain_attrs(attr: ir.DictAttr) -> dict[str, Any]:
    return {attr[i].name: python_value(attr[i].attr) for i in range(len(attr))}


def _input(attr: ir.Attribute) -> Input:
    if isinstance(attr, ir.UnitAttr):
        return None
    if isinstance(attr, ir.StringAttr):
        return {"weight": attr.value}
    if isinstance(attr, ir.ArrayAttr):
        return {"weight": ir.StringAttr(attr[0]).value, "stacked": True}
    if isinstance(attr, ir.IntegerAttr):
        return {"index": attr.value}
    step = ir.DenseI64ArrayAttr(attr)
    return {"step": step[0], "result": step[1]}
