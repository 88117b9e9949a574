"""Products of matrices: what they are, their libraries, and PyTorch's.

Floats of eight bits come with a scale for each operand, are multiplied by it, and give bf16; the peers
are `torch._scaled_mm` with the same scales, with fast and with exact sums: ours are exact with precision fp32. Peers of
products with an epilogue are eager and compiled PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, error_of, sets_of, timed

TYPES = {"float32": 1, "float16": 10, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19}  # ONNX's
SCALES = {"a": 0.5, "b": 0.25}
FEWEST_ROWS = 16  # of a product of floats of eight bits, in PyTorch


@dataclass(frozen=True)
class Product:
    """y = a b for matrices of `rows` x `depth` and `depth` x `columns`, `batch` times; `a` and `b` may be stored
    transposed. With the epilogue `gate` y = silu(a b) * (a c), for a `c` like `b`."""

    rows: int
    columns: int
    depth: int
    dtype: str = "bfloat16"
    turned_left: bool = False
    turned_right: bool = False
    batch: int = 1
    precision: str = "fp32"
    epilogue: str = ""

    @property
    def name(self) -> str:
        letters = ("t" if self.turned_left else "n") + ("t" if self.turned_right else "n")
        batch = f"{self.batch}x" if self.batch > 1 else ""
        tail = f"_{self.epilogue}" if self.epilogue else ""
        return f"{batch}{self.rows}x{self.columns}x{self.depth}_{self.dtype}_{self.precision}_{letters}{tail}"

    @property
    def is_float8(self) -> bool:
        """Are the operands floats of eight bits?"""
        return self.dtype.startswith("float8")

    @property
    def result(self) -> str:
        """The type of the result."""
        return "bfloat16" if self.is_float8 else self.dtype

    @property
    def bytes(self) -> int:
        """Of operands and result."""
        sizes = {"float32": 4, "float16": 2, "bfloat16": 2}
        result = sizes[self.result] * self.batch * self.rows * self.columns
        return sizes.get(self.dtype, 1) * sum(math.prod(s) for s in self.shapes) + result

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.rows * self.columns * self.depth * (len(self.shapes) - 1)

    @property
    def is_gated(self) -> bool:
        """Are there two products?"""
        return self.epilogue == "gate"

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of a, b and, where there is one, c as they are stored."""
        outer = (self.batch,) if self.batch > 1 else ()
        a, b = [self.rows, self.depth], [self.depth, self.columns]
        right = (*outer, *(b[::-1] if self.turned_right else b))
        return [(*outer, *(a[::-1] if self.turned_left else a)), right, *([right] if self.is_gated else [])]


def product_model(product: Product) -> Any:
    """The ONNX model of a product."""
    import numpy as np
    from onnx import helper, numpy_helper

    kind, outer = TYPES[product.dtype], (product.batch,) if product.batch > 1 else ()
    nodes, names, constants = [], [], []
    turned = {"a": product.turned_left, "b": product.turned_right, "c": product.turned_right}
    for name, is_turned in list(turned.items())[: len(product.shapes)]:
        names.append(f"{name}_turned" if is_turned else name)
        if is_turned:
            order = [*range(len(outer)), len(outer) + 1, len(outer)]
            nodes.append(helper.make_node("Transpose", [name], [names[-1]], perm=order))
        if product.is_float8:
            constants.append(numpy_helper.from_array(np.float32(SCALES[name]), f"{name}_scale"))
            nodes.append(helper.make_node("DequantizeLinear", [names[-1], f"{name}_scale"], [f"{name}_real"]))
            names[-1] = f"{name}_real"
    nodes.append(helper.make_node("MatMul", names[:2], ["p" if product.epilogue or product.is_float8 else "y"]))
    if product.is_gated:
        nodes += [
            helper.make_node("MatMul", [names[0], names[2]], ["q"]),
            helper.make_node("Sigmoid", ["p"], ["s"]),
            helper.make_node("Mul", ["p", "s"], ["g"]),
            helper.make_node("Mul", ["g", "q"], ["y"]),
        ]
    elif product.epilogue:
        bias = np.linspace(-1, 1, product.columns, dtype=np.float32)
        constants.append(numpy_helper.from_array(bias, "bias"))
        nodes += [
            helper.make_node("Cast", ["p"], ["wide"], to=1),
            helper.make_node("Add", ["wide", "bias"], ["biased"]),
            helper.make_node("Gelu", ["biased"], ["g"]),
            helper.make_node("Cast", ["g"], ["y"], to=TYPES[product.result]),
        ]
    elif product.is_float8:
        nodes.append(helper.make_node("Cast", ["p"], ["y"], to=TYPES[product.result]))
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in zip("abc", product.shapes, strict=False)]
    result = helper.make_tensor_value_info("y", TYPES[product.result], [*outer, product.rows, product.columns])
    graph = helper.make_graph(nodes, "product", inputs, [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


class ProductRun:
    """A product on the GPU: sets of inputs, the library, and what torch says."""

    def __init__(self, folder: Path, product: Product, sets: int) -> None:
        import torch

        from mlc.runtime.loader import load

        torch.backends.cuda.matmul.allow_tf32 = product.precision == "tf32"
        self.product = product
        torch.manual_seed(product.rows)
        kind = getattr(torch, product.dtype)
        self.inputs = [[torch.randn(s, device="cuda").to(kind) for s in product.shapes] for _ in range(sets)]
        shape = (*product.shapes[0][:-2], product.rows, product.columns)
        result = getattr(torch, product.result)
        self.results = [torch.empty(shape, device="cuda", dtype=result) for _ in range(sets)]
        self.scales = [torch.tensor(s, device="cuda") for s in SCALES.values()]
        self.bias = torch.linspace(-1, 1, product.columns, device="cuda")
        self.padded = torch.zeros(FEWEST_ROWS, product.depth, device="cuda").to(kind)
        self.last: Any = None
        self.context = load(folder / f"{product.name}.so").context()

    def operands(self, number: int) -> list[Any]:
        """a, b and, where there is one, c of a set in mathematical order."""
        a, *others = self.inputs[number]
        return [a.mT if self.product.turned_left else a, *(b.mT if self.product.turned_right else b for b in others)]

    def mlc(self, number: int) -> None:
        """Runs the library."""
        import torch

        number %= len(self.inputs)
        stream = torch.cuda.current_stream().cuda_stream
        self.context.run(self.inputs[number], out=[self.results[number]], stream=stream)

    def peers(self) -> dict[str, Callable[[int], None]]:
        """What PyTorch has for it."""
        import torch

        if self.product.is_float8:
            return {"fast": partial(self._scaled, True), "exact": partial(self._scaled, False)}
        if not self.product.epilogue:
            return {"torch": self._plain}
        # One compiled function for every product would be specialised for the first, and then made general.
        torch.compiler.reset()
        modes = {"compiled": None, "autotuned": "max-autotune-no-cudagraphs"}
        made = {name: torch.compile(self._function(), mode=mode, dynamic=False) for name, mode in modes.items()}
        return {"eager": self._eager, **{n: partial(self._compiled, f) for n, f in made.items()}}

    def _plain(self, number: int) -> None:
        import torch

        number %= len(self.inputs)
        torch.matmul(*self.operands(number), out=self.results[number])

    def _eager(self, number: int) -> None:
        number %= len(self.inputs)
        self.results[number].copy_(self._function()(*self._arguments(number)))

    def _compiled(self, function: Callable[..., Any], number: int) -> None:
        self.last = function(*self._arguments(number % len(self.inputs)))

    def _function(self) -> Callable[..., Any]:
        """The product and what comes after it in PyTorch."""
        return gated if self.product.is_gated else with_epilogue

    def _arguments(self, number: int) -> list[Any]:
        """What that takes."""
        return [*self.operands(number), *([] if self.product.is_gated else [self.bias])]

    def _scaled(self, fast: bool, number: int) -> None:
        """`torch._scaled_mm`, which wants the right operand by columns and at least 16 rows."""
        import torch

        a, b = self.operands(number % len(self.inputs))
        if len(a) < FEWEST_ROWS:
            a = self.padded
        self.last = torch._scaled_mm(a, b, *self.scales, out_dtype=torch.bfloat16, use_fast_accum=fast)

    def error(self) -> float:
        """||y - y64|| / ||y64|| of the library; NaN counts as infinite."""
        import torch

        expected = torch.matmul(*(x.double() for x in self.operands(0)[:2]))
        if self.product.is_float8:
            expected *= math.prod(SCALES.values())
        if self.product.is_gated:
            a, _, c = (x.double() for x in self.operands(0))
            expected = torch.nn.functional.silu(expected) * (a @ c)
        elif self.product.epilogue:
            expected = torch.nn.functional.gelu(expected + self.bias.double())
        return error_of(self.results[0], expected, self.mlc)


def with_epilogue(a: Any, b: Any, bias: Any) -> Any:
    """A product, a bias and an exact GELU, in PyTorch."""
    import torch

    return torch.nn.functional.gelu((a @ b).float() + bias).to(a.dtype)


def gated(a: Any, b: Any, c: Any) -> Any:
    """A product through a SiLU, times another one, in PyTorch."""
    import torch

    return torch.nn.functional.silu(a @ b) * (a @ c)


def compile_products(products: list[Product], folder: Path) -> None:
    """Writes their libraries."""
    for product in dict.fromkeys(products):
        compile_to(product_model(product), folder / f"{product.name}.so", product.precision)
        print(product.name, flush=True)


def time_products(products: list[Product], folder: Path) -> list[dict[str, Any]]:
    """Checks and times every product."""
    import gc

    rows = []
    for product in products:
        needed = product.bytes
        gc.collect()
        run = ProductRun(folder, product, sets_of(needed))
        rows.append(timed(product.name, run, product.flops))
        del run
    return rows
