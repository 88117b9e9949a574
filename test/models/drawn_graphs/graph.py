"""A graph of ONNX operators that grows by steps, each of which adds an operator, or a few, to a value that is there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64)
MOST = 60_000
"""The largest number of elements of a value."""
F32, F16, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL
I64, I32, I8, U8 = TensorProto.INT64, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8
INTEGERS = (I64, I32)
"""What has arithmetic in onnxruntime."""
EVERY_TYPE = (F32, F16, I64, I32, I8, U8, BOOL)


@dataclass(frozen=True)
class Value:
    """A tensor in a graph; `moved` when its elements are exact: those of an input or a constant, or integers of such."""

    name: str
    shape: tuple[int, ...]
    moved: bool
    dtype: int = F32

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def fit(x: Value, y: Value) -> bool:
    """Whether two values broadcast."""
    pairs = zip(x.shape[::-1], y.shape[::-1], strict=False)
    return all(1 in pair or pair[0] == pair[1] for pair in pairs)


@dataclass
class Graph:
    """A graph that grows by steps; `outer` has what the body of a loop or of a branch may read."""

    rng: np.random.Generator
    numbers: Iterator[int] = field(default_factory=itertools.count)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    depth: int = 0

    def body(self, given: Sequence[Value]) -> Graph:
        """A graph inside of this one, whose steps begin with the values given."""
        return Graph(self.rng, self.numbers, values=list(given), depth=self.depth + 1)

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def axis(self, x: Value) -> int:
        return int(self.rng.integers(x.rank))

    def often(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def new_name(self, kind: str) -> str:
        return f"{kind}{next(self.numbers)}"

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = self.new_name("c")
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def number(self, value: float, dtype: int = F32) -> str:
        return self.constant(value, helper.tensor_dtype_to_np_dtype(dtype))

    def weight(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant(self.rng.standard_normal(shape) * scale, np.float32)

    def data(self, dtype: int, shape: Sequence[int]) -> np.ndarray:
        """Numbers as inputs have them: small."""
        if dtype in (F32, F16):
            drawn = self.rng.standard_normal(tuple(shape))
        elif dtype == BOOL:
            drawn = self.rng.random(tuple(shape)) < 0.5
        else:
            drawn = self.rng.integers(0 if dtype == U8 else -9, 10, tuple(shape))
        return np.asarray(drawn).astype(helper.tensor_dtype_to_np_dtype(dtype))

    def constant_like(self, x: Value, shape: Sequence[int]) -> str:
        """Numbers of the type of a value."""
        data = self.data(x.dtype, shape)
        return self.constant(data, data.dtype)

    def pick(self, fits: Callable[[Value], bool] = lambda _: True, dtype: int | None = F32) -> Value | None:
        """One of the youngest values of a type (None: of any) that fit."""
        of_type = [v for v in self.values if dtype is None or v.dtype == dtype]
        found = [v for v in of_type[-8:] if fits(v)] or [v for v in of_type if fits(v)]
        return self.one_of(found) if found else None

    def companion(self, x: Value) -> Value:
        """What can be combined with a value: another one, or a constant of fewer dimensions or extents of 1."""
        other = self.pick(lambda y: fit(x, y), x.dtype) if self.often(0.7) else None
        if other is None or math.prod(np.broadcast_shapes(x.shape, other.shape)) > MOST:
            kept = [n if self.often(0.6) else 1 for n in x.shape][int(self.rng.integers(x.rank + 1)) :]
            other = Value(self.constant_like(x, kept), tuple(kept), True, x.dtype)
        return other

    def reduced(self, x: Value) -> tuple[str, list[int], dict[str, int]]:
        """Some axes of a value as a constant, the shape without them or with ones, and the attribute that says which."""
        axes, keep = [axis for axis in range(x.rank) if self.often(0.5)] or [self.axis(x)], self.often(0.5)
        shape = [1 if axis in axes else n for axis, n in enumerate(x.shape) if keep or axis not in axes]
        return self.constant(axes), shape, {"keepdims": int(keep)}

    def intermediate(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node whose result is no value for other steps."""
        name = self.new_name("t")
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        shape: Sequence[int],
        moved: bool = False,
        *,
        dtype: int = F32,
        unread: int = 0,
        **attributes: Any,
    ) -> Value:
        """A node, and its result; it has so many more that nobody reads."""
        value = Value(self.new_name("v"), tuple(int(n) for n in shape), moved, dtype)
        others = [f"{value.name}_{number}" for number in range(unread)]
        self.nodes.append(helper.make_node(op, list(inputs), [value.name, *others], **attributes))
        self.values.append(value)
        return value

    def move(self, x: Value, op: str, others: Sequence[str], shape: Sequence[int], **attributes: Any) -> Value:
        """A node whose result has elements of a value, and constants."""
        return self.add(op, [x.name, *others], shape, x.moved, dtype=x.dtype, **attributes)

    def add_input(self, dtype: int = F32) -> None:
        shape = (MOST + 1,)
        while math.prod(shape) > MOST:
            shape = tuple(self.one_of(EXTENTS) for _ in range(int(self.rng.integers(1, 5))))
        value = Value(f"x{len(self.inputs)}", shape, True, dtype)
        self.inputs.append(value)
        self.values.append(value)

    def grow(self, steps: Sequence[Step], count: int) -> None:
        """Until there are so many nodes."""
        while len(self.nodes) < count:
            x = self.pick(dtype=None)
            assert x is not None
            self.one_of(steps)(self, x)


Step = Callable[[Graph, Value], None]


class Steps(list[Step]):
    """Steps of one family, each as often as it shall be drawn."""

    def __call__(
        self, times: int = 1, ranks: Collection[int] = range(6), dtypes: Collection[int] = (F32,)
    ) -> Callable[[Step], Step]:
        """Registers a step for values of some ranks and types."""

        def register(function: Step) -> Step:
            def guarded(g: Graph, x: Value) -> None:
                if x.rank in ranks and x.dtype in dtypes:
                    function(g, x)

            self.extend([guarded] * times)
            return function

        return register
