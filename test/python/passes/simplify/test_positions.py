"""Values that coordinates decide: drawn programs are what they were, and models as exporters write them are right."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from mlir import ir
from onnx import helper, numpy_helper

import mlc
from mlc.compiler_setup import new_context
from mlc.interp.module import run_function
from mlc.passes.base import run_pipeline

PASSES = ["mlc-fold-positions", "canonicalize", "cse"]
LINE = "tensor<1x{n}xi64>"


class Drawn:
    """A program of operations on positions of `[1, n]`, and on what they decide."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.n = self.draw.choice([1, 2, 7, 70])
        self.lines: list[str] = []
        self.values = [self.add(f"mlc.iota [1, {self.n}] {{axis = 1 : i64}} : {self.type()}")]
        for _ in range(self.draw.randint(4, 14)):
            self.step()

    def type(self, element: str = "i64") -> str:
        return f"tensor<1x{self.n}x{element}>"

    def add(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def number(self, least: int = -3) -> str:
        return self.add(f"mlc.constant dense<{self.draw.randint(least, 3)}> : tensor<i64>")

    def step(self) -> None:
        kind = self.draw.choice(["binary", "number", "shift", "turn", "grow", "ask", "scan", "pick", "table"])
        one, other = (self.draw.choice(self.values) for _ in range(2))
        whole, n = self.type(), self.n
        if kind == "binary":
            made = f"mlc.binary {self.draw.choice(['add', 'sub'])} {one}, {other} : {whole}"
        elif kind == "number":
            operator = self.draw.choice(["add", "sub", "mul", "max", "min"])
            made = f"mlc.binary {operator} {one}, {self.number()} : {whole}, tensor<i64> -> {whole}"
        elif kind == "shift":  # one position in front, the last one left out
            part = self.add(f"mlc.slice {one} [0, 0] [1, 1] [1, 1] : {whole} -> tensor<1x1xi64>")
            less = self.add(f"mlc.binary sub {part}, {self.number()} : tensor<1x1xi64>, tensor<i64> -> tensor<1x1xi64>")
            more = f"tensor<1x{n + 1}xi64>"
            both = self.add(f"mlc.concat {less}, {one} {{axis = 1 : i64}} : tensor<1x1xi64>, {whole} -> {more}")
            made = f"mlc.slice {both} [0, {self.draw.randint(0, 1)}] [1, {n}] [1, 1] : {more} -> {whole}"
        elif kind == "turn":
            turned = f"tensor<{n}x1xi64>"
            across = self.add(f"mlc.transpose {one} {{permutation = array<i64: 1, 0>}} : {whole} -> {turned}")
            made = f"mlc.reshape {across} [1, {n}] : {turned} -> {whole}"
        elif kind == "grow":  # along a dimension that goes again
            row = self.add(f"mlc.broadcast {one} [3, {n}] : {whole} -> tensor<3x{n}xi64>")
            made = f"mlc.slice {row} [{self.draw.randint(0, 2)}, 0] [1, {n}] [1, 1] : tensor<3x{n}xi64> -> {whole}"
        elif kind == "ask":
            predicate = self.draw.choice(["eq", "ne", "lt", "le", "gt", "ge"])
            asked = self.add(f"mlc.compare {predicate} {one}, {other} : {whole} -> {self.type('i1')}")
            made = f"mlc.cast {asked} : {self.type('i1')} -> {whole}"
        elif kind == "scan":
            made = f"mlc.scan sum {one} {{axis = 1 : i64}} : {whole}"
        elif kind == "table":
            numbers = ", ".join(str(self.draw.randint(-2, 2) + i * self.draw.choice([0, 1, 1])) for i in range(n))
            made = f"mlc.constant dense<[[{numbers}]]> : {whole}"
        else:  # picked by places in range
            zero = self.add(f"mlc.iota [1, 1, {n}, 1] {{axis = 0 : i64}} : tensor<1x1x{n}x1xi64>")
            place = self.add(f"mlc.iota [1, 1, {n}, 1] {{axis = 2 : i64}} : tensor<1x1x{n}x1xi64>")
            types = f"tensor<1x1x{n}x1xi64>, tensor<1x1x{n}x1xi64> -> tensor<1x1x{n}x2xi64>"
            at = self.add(f"mlc.concat {zero}, {place} {{axis = 3 : i64}} : {types}")
            picked = f"mlc.gather_nd {one}, {at} : {whole}, tensor<1x1x{n}x2xi64> -> tensor<1x1x{n}xi64>"
            made = f"mlc.reshape {self.add(picked)} [1, {n}] : tensor<1x1x{n}xi64> -> {whole}"
        self.values.append(self.add(made))

    def text(self) -> str:
        """The program, with a mask of its last two values for rows and columns, and parts of that."""
        n, square = self.n, f"tensor<{self.n}x{self.n}xi1>"
        row, key = self.draw.sample(self.values, 2)
        column = self.add(f"mlc.reshape {row} [{n}, 1] : {self.type()} -> tensor<{n}x1xi64>")
        predicate = self.draw.choice(["le", "lt", "ge", "gt", "eq", "ne"])
        mask = self.add(f"mlc.compare {predicate} {key}, {column} : {self.type()}, tensor<{n}x1xi64> -> {square}")
        begin = self.draw.randint(0, n - 1)
        part = f"tensor<{n - begin}x{n}xi1>"
        cut = self.add(f"mlc.slice {mask} [{begin}, 0] [{n - begin}, {n}] [1, 1] : {square} -> {part}")
        turned = f"tensor<{n}x{n - begin}xi1>"
        last = self.add(f"mlc.transpose {cut} {{permutation = array<i64: 1, 0>}} : {part} -> {turned}")
        results = [(v, self.type()) for v in self.values] + [(mask, square), (last, turned)]
        body = "\n".join(self.lines)
        types = ", ".join(t for _, t in results)
        return f"func.func @f() -> ({types}) {{\n{body}\nreturn {', '.join(v for v, _ in results)} : {types}\n}}"


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_drawn_programs(first: int) -> None:
    """25 programs each, interpreted before and after."""
    for seed in range(first, first + 25):
        program = Drawn(seed)
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(program.text())
            function = module.body.operations[0]
            before = run_function(function, [])
            run_pipeline(module, PASSES)
            for have, want in zip(run_function(module.body.operations[0], []), before, strict=True):
                np.testing.assert_array_equal(have, want, err_msg=f"seed {seed}")


def masked(mask: np.ndarray, hidden: float) -> onnx.ModelProto:
    """Scores of a mask's shape, to which it is added as floats, or which it chooses from."""
    n, value = helper.make_node, helper.make_tensor_value_info
    weights = [numpy_helper.from_array(mask, "mask")]
    nodes = [n("Add", ["x", "mask"], ["s"])]
    if mask.dtype == bool:
        weights.append(numpy_helper.from_array(np.array(hidden, np.float32), "hidden"))
        nodes = [n("Where", ["mask", "x", "hidden"], ["s"])]
    nodes.append(n("Softmax", ["s"], ["y"], axis=-1))
    shape = [2, *mask.shape[-2:]]
    graph = helper.make_graph(nodes, "g", [value("x", 1, shape)], [value("y", 1, shape)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


LOWEST = float(np.finfo(np.float32).min)
AWAY = np.arange(24) - np.arange(20)[:, None]
MASKS = {
    "causal": AWAY <= 0,
    "window": (AWAY <= 2) & (AWAY > -5),
    "rows_without_keys": AWAY < 0,
    "no_band": (AWAY <= 0) & (AWAY != -3),
    "of_rows": np.arange(20)[:, None] + AWAY * 0 > 4,
    "of_keys": np.arange(24)[None] + AWAY * 0 > 4,
}
BANDS, SEEN = ("causal", "window", "rows_without_keys"), ("causal", "window")


@pytest.mark.parametrize("form", ["where", "lowest", "infinite"])
@pytest.mark.parametrize("name", MASKS)
def test_masks_of_models(name: str, form: str, tmp_path: Path) -> None:
    """Masks that are stored are computed from coordinates where they are bands, and chosen by where each row sees a key;
    what onnxruntime computes of them stays."""
    shown = MASKS[name]
    hidden = -np.inf if form == "infinite" else LOWEST
    if form == "infinite" and not shown.any(1).all():
        shown = shown | (AWAY == 0)  # no NaN in rows without a key
    mask = shown if form == "where" else np.where(shown, np.float32(0), np.float32(hidden))
    model = masked(mask, hidden)
    mlc.compile(model, output=tmp_path / "m.mlir", emit="simplify", load=False)
    text = (tmp_path / "m.mlir").read_text()
    assert ("mlc.weight" not in text) == (name in BANDS)
    assert ("mlc.binary add %arg0" in text) == (form != "where" and name not in (BANDS if form == "infinite" else SEEN))
    x = np.random.default_rng(1).standard_normal((2, *shown.shape)).astype(np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(mlc.compile(model, output=tmp_path / "m.so")(x)[0], want, rtol=1e-5, atol=1e-6)
