"""Recipes: weights computed from other weights by a list of `mlc` operations, evaluated by `mlc.interp`.

The JSON form, which is what files and metadata hold:
```json
{"steps": [{"op": "mlc.transpose", "inputs": [{"weight": "w"}], "attrs": {"permutation": [1, 0]},
            "results": [["f32", [64, 32]]]}],
 "result": [0, 0]}
```
An input is a weight, the result of an earlier step (`{"step": 0, "result": 0}`), a number for an `index`
operand
(`{"index": 3}`) or null for an absent optional operand. A dense attribute is `{"dtype", "shape", "data"}` with its
bytes in hexadecimal.

With `"stack": 8` the steps are those of each of 8 weights, which lie in a stack: an input `{"weight": "w", "stacked":
true}` is one of the stack `w`, and the weight is the stack of their results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mlc.interp import ResultType, evaluate, mlir_dtype

Input = dict[str, Any] | None
"""One operand of a step, as in the JSON form."""


@dataclass(frozen=True)
class Step:
    """One operation: its full name, operands, attributes as plain Python values, and result types."""

    op: str
    inputs: tuple[Input, ...]
    attrs: Mapping[str, Any]
    results: tuple[ResultType, ...]


@dataclass(frozen=True)
class Recipe:
    """Steps in order; the weight is `result` = (step, result number)."""

    steps: tuple[Step, ...]
    result: tuple[int, int] = (-1, 0)
    node: str = field(default="", compare=False)
    """The source node of the last step, for messages; no part of the content."""
    stack: int | None = None
    """How many weights the steps make, each from one of the stacks that they read; None for one that is no stack."""

    @property
    def type(self) -> ResultType:
        """Shape and dtype of the weight."""
        one = self.steps[self.result[0]].results[self.result[1]]
        return one if self.stack is None else ResultType([self.stack, *one.shape], one.dtype)

    def inputs(self) -> list[str]:
        """Names of the weights that it reads, in order of first use."""
        names = (i["weight"] for step in self.steps for i in step.inputs if i is not None and "weight" in i)
        return list(dict.fromkeys(names))

    def evaluate(self, weight: Callable[[str], np.ndarray]) -> np.ndarray:
        """The array, with `weight(name)` giving the inputs; intermediate results live until their last
        use.
        """
        if self.stack is None:
            return self._evaluate(weight, None)
        first = self._evaluate(weight, 0)
        found = np.empty((self.stack, *first.shape), first.dtype)
        found[0] = first
        for number in range(1, self.stack):
            found[number] = self._evaluate(weight, number)
        return found

    def _evaluate(self, weight: Callable[[str], np.ndarray], at: int | None) -> np.ndarray:
        """What the steps make, of weight `at` of the stacks that they read."""
        last_use: dict[int, int] = {self.result[0] % len(self.steps): len(self.steps)}
        for number, step in enumerate(self.steps):
            for source in step.inputs:
                if source is not None and "step" in source:
                    last_use[source["step"]] = max(number, last_use.get(source["step"], 0))
        values: dict[int, list[np.ndarray]] = {}
        for number, step in enumerate(self.steps):
            operands = [_operand(source, values, weight, at) for source in step.inputs]
            values[number] = evaluate(step.op, operands, step.attrs, step.results)
            for done in [n for n in values if last_use.get(n, -1) <= number]:
                del values[done]
        return values[self.result[0] % len(self.steps)][self.result[1]]

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        steps = [
            {
                "op": step.op,
                "inputs": list(step.inputs),
                "attrs": {name: _plain(value) for name, value in sorted(step.attrs.items())},
                "results": [[r.dtype, list(r.shape)] for r in step.results],
            }
            for step in self.steps
        ]
        stack = {} if self.stack is None else {"stack": self.stack}
        return {"steps": steps, "result": [self.result[0] % len(self.steps), self.result[1]], **stack}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Recipe:
        """The recipe of a JSON form. Raises `KeyError` or `TypeError` when that is malformed."""
        steps = tuple(
            Step(
                entry["op"],
                tuple(entry["inputs"]),
                dict(entry["attrs"]),
                tuple(ResultType(shape, dtype) for dtype, shape in entry["results"]),
            )
            for entry in data["steps"]
        )
        number, result = data["result"]
        return Recipe(steps, (int(number), int(result)), stack=data.get("stack"))

    def digest(self) -> str:
        """Hash of the recipe's text, 64 hexadecimal digits; equal recipes have equal ones."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def _operand(
    source: Input,
    values: Mapping[int, list[np.ndarray]],
    weight: Callable[[str], np.ndarray],
    at: int | None,
) -> Any:
    if source is None:
        return None
    if "weight" in source:
        array = weight(source["weight"])
        return array[at] if source.get("stacked") else array
    if "index" in source:
        return int(source["index"])
    return values[source["step"]][source.get("result", 0)]


def _plain(value: Any) -> Any:
    """An attribute value as JSON: arrays as their bytes, NumPy scalars as numbers."""
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value)
        return {"dtype": mlir_dtype(value.dtype), "shape": list(value.shape), "data": data.tobytes().hex()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
