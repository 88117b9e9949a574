"""The part `masks`: attention that sees a part of the keys, as models write it, against PyTorch's fused attention with
that mask, FlexAttention, and what `torch.compile` makes of attention with a sink."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, error_of, timed

FLOAT, LONG = 16, 7  # bf16 and int64 in ONNX
HIDDEN = -3.3895313892515355e38  # the lowest number of bf16, as models add it


@dataclass(frozen=True)
class Masked:
    """Attention of `heads` with `rows`, whose `keys` keys and values `owners` heads have. A row sees the keys up to its
    number, or, with `places`, up to a place of a cache that the run says; with a `window` so many. With a `sink`
    each head has a score that belongs to no key, and attention is written out, as gpt-oss is."""

    heads: int
    owners: int
    rows: int
    keys: int
    depth: int
    window: int = 0
    sink: bool = False
    places: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        parts = ["masks", f"{self.heads}of{self.owners}x{self.rows}x{self.keys}x{self.depth}"]
        parts += [f"window{self.window}"] if self.window else []
        return "_".join([*parts, *(["sink"] if self.sink else []), *(["places"] if self.places else [])])

    def seen(self, place: int) -> int:
        """Pairs of a row and a key that it sees, where the first row is at `place`."""
        lasts = [min(place + row, self.keys - 1) for row in range(self.rows)]
        return sum(min(last + 1, self.window or last + 1) for last in lasts)


def checks() -> list[Masked]:
    """Extents and windows that are no multiples of anything."""
    found = [Masked(4, 2, 300, 300, 64, window=w) for w in (1, 37, 128, 299)]
    found += [Masked(2, 2, 130, 130, 128, window=50, sink=True), Masked(4, 1, 201, 201, 64, sink=True)]
    found.append(Masked(8, 2, 1, 1500, 128, places=(0, 1, 63, 64, 700, 1499)))
    found.append(Masked(2, 1, 40, 600, 64, places=(0, 250, 560)))
    return [*found, Masked(4, 2, 20, 900, 64, window=100, places=(0, 77, 500, 880))]


def timings() -> list[Masked]:
    """The shapes that are timed."""
    found = [Masked(32, 8, 4096, 4096, 128), *(Masked(32, 8, 4096, 4096, 128, window=w) for w in (128, 1024))]
    found += [Masked(64, 8, 2048, 2048, 64, sink=True), Masked(64, 8, 2048, 2048, 64, window=128, sink=True)]
    return [*found, Masked(32, 8, 1, 16384, 128, places=(100, 5000, 16383))]


def model_of(m: Masked) -> Any:
    """The ONNX model: inputs `q`, `k`, `v`, and `place [1]`, where the first row is."""
    import numpy as np
    from onnx import helper, numpy_helper

    numbers: dict[str, Any] = {n: np.array(v) for n, v in {"zero": 0, "one": 1, "rows": m.rows, "keys": m.keys}.items()}
    nodes = [
        ("Range", ["zero", "rows", "one"], "line"), ("Unsqueeze", ["line", "one"], "column"),
        ("Range", ["zero", "keys", "one"], "key"),
    ]  # fmt: skip
    nodes += [("Add", ["column", "place"], "row")] if m.places else [("Identity", ["column"], "row")]
    nodes.append(("LessOrEqual", ["key", "row"], "shown" if not m.window else "behind"))
    if m.window:
        numbers["window"] = np.array(m.window)
        nodes += [("Sub", ["row", "window"], "front"), ("Greater", ["key", "front"], "ahead")]
        nodes.append(("And", ["behind", "ahead"], "shown"))
    weights = [numpy_helper.from_array(value, name) for name, value in numbers.items()]
    shapes = {"q": (1, m.heads, m.rows, m.depth), **dict.fromkeys("kv", (1, m.owners, m.keys, m.depth))}
    inputs = [helper.make_tensor_value_info(n, FLOAT, s) for n, s in shapes.items()]
    inputs += [helper.make_tensor_value_info("place", LONG, [1])] if m.places else []
    made = [helper.make_node(name, given, [result]) for name, given, result in nodes]
    made += _written_out(m, weights) if m.sink else [helper.make_node("Attention", ["q", "k", "v", "shown"], ["y"])]
    graph = helper.make_graph(made, "masks", inputs, [helper.make_tensor_value_info("y", FLOAT, shapes["q"])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def _written_out(m: Masked, weights: list[Any]) -> list[Any]:
    """Attention with a column of scores that no key belongs to, of heads whose keys are repeated."""
    from onnx import helper

    def tensor(name: str, kind: int, shape: list[int], values: list[Any]) -> None:
        weights.append(helper.make_tensor(name, kind, shape, values))

    groups, n = m.heads // m.owners, helper.make_node
    tensor("scale", FLOAT, [], [m.depth**-0.5])
    tensor("shows", FLOAT, [], [0.0])
    tensor("hides", FLOAT, [], [HIDDEN])
    tensor("sinks", FLOAT, [1, m.heads, 1, 1], sinks(m.heads))
    tensor("column_of", LONG, [4], [1, m.heads, m.rows, 1])
    tensor("grouped", LONG, [5], [1, m.owners, groups, m.keys, m.depth])
    tensor("flat", LONG, [4], [1, m.heads, m.keys, m.depth])
    for name, value in (("begin", 0), ("end", -1), ("last", 3), ("two", 2)):
        tensor(name, LONG, [1], [value])
    nodes = []
    for name in "kv":
        nodes += [n("Unsqueeze", [name, "two"], [f"{name}1"]), n("Expand", [f"{name}1", "grouped"], [f"{name}2"])]
        nodes.append(n("Reshape", [f"{name}2", "flat"], [f"{name}3"]))
    return [
        *nodes, n("Transpose", ["k3"], ["k4"], perm=[0, 1, 3, 2]), n("MatMul", ["q", "k4"], ["s0"]),
        n("Mul", ["s0", "scale"], ["s1"]), n("Where", ["shown", "shows", "hides"], ["mask"]),
        n("Add", ["s1", "mask"], ["s2"]), n("Expand", ["sinks", "column_of"], ["c"]),
        n("Concat", ["s2", "c"], ["s3"], axis=3), n("Softmax", ["s3"], ["p0"], axis=3),
        n("Slice", ["p0", "begin", "end", "last"], ["p1"]), n("MatMul", ["p1", "v3"], ["y"]),
    ]  # fmt: skip


def sinks(heads: int) -> list[float]:
    """The scores without a key: numbers that bf16 has."""
    return [head % 13 / 2 - 2 for head in range(heads)]


def _running(work: Callable[[], Any]) -> Callable[[int], None]:
    def run(_: int) -> None:
        work()

    return run


class MaskedRun:
    """One of them on the GPU, its first row at `place`."""

    def __init__(self, folder: Path, m: Masked, place: int) -> None:
        import torch

        from mlc.runtime.loader import load

        self.m, self.place = m, place
        torch.manual_seed(m.rows + m.keys)
        shapes = ((m.heads, m.rows), (m.owners, m.keys), (m.owners, m.keys))
        self.given = [torch.randn(1, h, n, m.depth, device="cuda").to(torch.bfloat16) for h, n in shapes]
        at = torch.tensor([place], device="cuda")
        self.inputs = [*self.given, *([at] if m.places else [])]
        rows, keys = torch.arange(m.rows, device="cuda")[:, None] + place, torch.arange(m.keys, device="cuda")
        self.shown = (keys <= rows) & (keys > rows - (m.window or m.keys + place + m.rows))
        self.result = torch.empty_like(self.given[0])
        self.sinks = torch.tensor(sinks(m.heads), device="cuda", dtype=torch.bfloat16).view(1, -1, 1, 1)
        self.context = load(folder / f"{m.name}.so").context()

    def mlc(self, number: int) -> None:
        """Runs the library."""
        import torch

        self.context.run(self.inputs, out=[self.result], stream=torch.cuda.current_stream().cuda_stream)

    def peers(self) -> dict[str, Callable[[int], None]]:
        """PyTorch's ways to compute the same."""
        import torch

        (query, key, value), m = self.given, self.m
        if m.sink:
            compiled = torch.compile(self._eager)
            return {"eager": _running(self._eager), "inductor": _running(compiled)}
        mask, wide = self.shown[None, None], [x.repeat_interleave(m.heads // m.owners, 1) for x in (key, value)]
        attend = torch.nn.functional.scaled_dot_product_attention
        found = {"sdpa": _running(partial(attend, query, *wide, attn_mask=mask))}
        return found if m.places else {**found, "flex": _running(self._flex())}

    def _eager(self) -> Any:
        """As gpt-oss writes it."""
        import torch

        (query, key, value), m = self.given, self.m
        key, value = (x.repeat_interleave(m.heads // m.owners, 1) for x in (key, value))
        scores = query @ key.transpose(2, 3) * m.depth**-0.5
        scores = scores + torch.where(self.shown, 0.0, torch.finfo(scores.dtype).min).to(scores.dtype)
        joined = torch.cat([scores, self.sinks.expand(1, -1, m.rows, 1)], -1)
        shares = torch.softmax(joined - joined.max(-1, keepdim=True).values, -1)
        return shares[..., :-1] @ value

    def _flex(self) -> Callable[[], Any]:
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        (query, key, value), m = self.given, self.m

        def seen(_: Any, __: Any, row: Any, column: Any) -> Any:
            return (column <= row) & (column > row - (m.window or m.keys))

        block = create_block_mask(seen, None, None, m.rows, m.keys, device="cuda")
        return partial(torch.compile(flex_attention), query, key, value, block_mask=block, enable_gqa=True)

    def error(self) -> float:
        """||y - y64|| / ||y64||, a head at a time."""
        import torch

        (query, key, value), m = self.given, self.m
        expected = torch.empty(query.shape, device="cuda", dtype=torch.float64)
        for h, sink in enumerate(sinks(m.heads)):
            owner = h * m.owners // m.heads
            scores = query[0, h].double() @ key[0, owner].double().T / math.sqrt(m.depth)
            scores = scores.masked_fill(~self.shown, -math.inf)
            if m.sink:
                scores = torch.cat([scores, torch.full_like(scores[:, :1], sink)], -1)
            expected[0, h] = scores.softmax(-1)[:, : m.keys] @ value[0, owner].double()
        return error_of(self.result, expected, self.mlc)


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    for masked in [*checks(), *timings()]:
        compile_to(model_of(masked), folder / f"{masked.name}.so")
        print(masked.name, flush=True)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks everything, and times what is to be timed."""
    rows = []
    for masked in checks():
        for place in masked.places or (0,):
            error = MaskedRun(folder, masked, place).error()
            print(f"{'right' if error < 5e-3 else 'WRONG'} {masked.name:40s} {place:6d} {error:.1e}", flush=True)
            rows.append({"name": f"{masked.name}_{place}", "error": error, "right": error < 5e-3})
    for masked in timings():
        for place in masked.places or (0,):
            flops = 4 * masked.heads * masked.depth * masked.seen(place)
            rows.append(timed(f"{masked.name}_{place}", MaskedRun(folder, masked, place), flops))
    return rows
