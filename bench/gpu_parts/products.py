"""Products of matrices: what they are, their libraries, and PyTorch's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, error_of, sets_of, timed


@dataclass(frozen=True)
class Product:
    """y = a b for matrices of `rows` x `depth` and `depth` x `columns`, `batch` times; `a` and `b` may be stored
    transposed."""

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
    def flops(self) -> int:
        return 2 * self.batch * self.rows * self.columns * self.depth

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of a and b as they are stored."""
        outer = (self.batch,) if self.batch > 1 else ()
        a, b = [self.rows, self.depth], [self.depth, self.columns]
        return [(*outer, *(a[::-1] if self.turned_left else a)), (*outer, *(b[::-1] if self.turned_right else b))]


def product_model(product: Product) -> Any:
    """The ONNX model of a product."""
    import numpy as np
    from onnx import helper, numpy_helper

    types = {"bfloat16": 16, "float16": 10, "float32": 1}
    kind, outer = types[product.dtype], (product.batch,) if product.batch > 1 else ()
    nodes, names = [], []
    for name, is_turned in (("a", product.turned_left), ("b", product.turned_right)):
        names.append(f"{name}_turned" if is_turned else name)
        if is_turned:
            order = [*range(len(outer)), len(outer) + 1, len(outer)]
            nodes.append(helper.make_node("Transpose", [name], [names[-1]], perm=order))
    nodes.append(helper.make_node("MatMul", names, ["p" if product.epilogue else "y"]))
    constants = []
    if product.epilogue:
        bias = np.linspace(-1, 1, product.columns, dtype=np.float32)
        constants = [numpy_helper.from_array(bias, "bias")]
        nodes += [
            helper.make_node("Cast", ["p"], ["wide"], to=1),
            helper.make_node("Add", ["wide", "bias"], ["biased"]),
            helper.make_node("Gelu", ["biased"], ["g"]),
            helper.make_node("Cast", ["g"], ["y"], to=kind),
        ]
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in zip("ab", product.shapes, strict=True)]
    result = helper.make_tensor_value_info("y", kind, [*outer, product.rows, product.columns])
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
        self.results = [torch.empty(shape, device="cuda", dtype=kind) for _ in range(sets)]
        self.context = load(folder / f"{product.name}.so").context()

    def operands(self, number: int) -> list[Any]:
        """a and b of a set in mathematical order."""
        a, b = self.inputs[number]
        return [a.mT if self.product.turned_left else a, b.mT if self.product.turned_right else b]

    def mlc(self, number: int) -> None:
        """Runs the library."""
        import torch

        number %= len(self.inputs)
        stream = torch.cuda.current_stream().cuda_stream
        self.context.run(self.inputs[number], out=[self.results[number]], stream=stream)

    def torch(self, number: int) -> None:
        """Runs what PyTorch has for it."""
        import torch

        number %= len(self.inputs)
        a, b = self.operands(number)
        if self.product.epilogue:
            wide = (a @ b).float() + self.bias()
            self.results[number].copy_(torch.nn.functional.gelu(wide))
        else:
            torch.matmul(a, b, out=self.results[number])

    def bias(self) -> Any:
        import torch

        return torch.linspace(-1, 1, self.product.columns, device="cuda")

    def error(self) -> float:
        """||y - y64|| / ||y64|| of the library; NaN counts as infinite."""
        import torch

        expected = torch.matmul(*(x.double() for x in self.operands(0)))
        if self.product.epilogue:
            expected = torch.nn.functional.gelu(expected + self.bias().double())
        return error_of(self.results[0], expected, self.mlc)


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
        size = 4 if product.dtype == "float32" else 2
        needed = size * sum(math.prod(s) for s in product.shapes) + size * product.rows * product.columns
        gc.collect()
        run = ProductRun(folder, product, sets_of(needed))
        rows.append(timed(product.name, run, product.flops))
        del run
    return rows
