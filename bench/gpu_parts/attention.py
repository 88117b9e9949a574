"""The part `attention`: attention in one kernel against PyTorch's flash and cuDNN back ends, and that of f32, exact or
rounded to tf32, against its memory-efficient one and plain products, which may round where mlc may."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, error_of, measure, sets_of

TYPES = {"bfloat16": 16, "float16": 10, "tf32": 1, "float32": 1}
BOUND = {"bfloat16": 5e-3, "float16": 5e-3, "tf32": 1e-3, "float32": 2e-6}
F32 = ("tf32", "float32")


@dataclass(frozen=True)
class Attention:
    """Attention of `heads` heads with `queries` and `keys`, whose keys and values `shared` heads have; `mask` is bool
    (batch x 1 x queries x keys), float (queries x keys) or none."""

    batch: int
    heads: int
    queries: int
    keys: int
    depth: int
    causal: bool = False
    shared: int = 0
    dtype: str = "bfloat16"
    mask: str = ""

    @property
    def name(self) -> str:
        parts = ["attention", f"{self.batch}x{self.heads}x{self.queries}x{self.keys}x{self.depth}", self.dtype]
        parts += [f"of{self.shared}"] if self.shared else []
        parts += ["causal"] if self.causal else []
        return "_".join([*parts, *([self.mask] if self.mask else [])])

    @property
    def peers(self) -> tuple[str, ...]:
        """PyTorch's back ends for the type."""
        return ("EFFICIENT_ATTENTION", "MATH") if self.dtype in F32 else ("FLASH_ATTENTION", "CUDNN_ATTENTION")

    @property
    def owners(self) -> int:
        """Heads of keys and values."""
        return self.shared or self.heads

    @property
    def flops(self) -> int:
        """Half of them where a causal mask hides half."""
        whole = 4 * self.batch * self.heads * self.queries * self.keys * self.depth
        return whole // 2 if self.causal else whole

    @property
    def mask_shape(self) -> tuple[int, ...]:
        matrix = (self.queries, self.keys)
        return (self.batch, 1, *matrix) if self.mask == "bool" else matrix


def checks() -> list[Attention]:
    """Extents that are no multiples of anything, every kind of mask, all widths."""
    found = [Attention(2, 3, 100, 77, 64), Attention(1, 2, 513, 1000, 128), Attention(2, 4, 300, 300, 64, causal=True)]
    found += [Attention(1, 3, 300, 300, 128, causal=True), Attention(2, 8, 100, 333, 64, causal=True, shared=2)]
    found += [Attention(1, 8, 200, 264, 128, shared=1, dtype="float16"), Attention(1, 2, 333, 100, 64, causal=True)]
    found += [Attention(2, 2, 70, 130, 64, dtype="float16"), Attention(1, 2, 64, 64, 64), Attention(3, 1, 1, 200, 64)]
    found += [Attention(2, 4, 200, 264, d) for d in (8, 40, 80, 96, 256)]
    found += [Attention(1, 3, 200, 200, d, causal=True) for d in (80, 256)]
    found += [Attention(2, 4, 130, 200, 64, mask=m) for m in ("bool", "float")]
    found += [Attention(2, 4, 130, 201, 128, mask=m) for m in ("bool", "float")]
    found += [Attention(1, 4, 256, 256, 128, causal=True, mask="float", shared=2)]
    found += [Attention(2, 8, 1, 1000, 64, shared=2), Attention(1, 8, 1, 4096, 128, shared=2, mask="bool")]
    found += [Attention(1, 16, 1, 777, 128, shared=1, dtype="float16"), Attention(3, 4, 20, 1300, 64, mask="float")]
    found += [Attention(1, 8, 70, 333, 64, shared=1), Attention(2, 6, 40, 264, 64, causal=True, shared=1)]
    found += [Attention(1, 16, 1, 40001, 128, shared=1), Attention(1, 8, 5, 70000, 64, shared=2, dtype="float16")]
    found += [Attention(1, 2, 5, 2000, 128), Attention(1, 2, 60, 640, 64, causal=True), Attention(1, 5, 1, 530, 80)]
    for dtype in F32:
        found += [Attention(2, 3, 100, 77, 64, dtype=dtype), Attention(24, 24, 300, 300, 64, causal=True, dtype=dtype)]
        found += [Attention(2, 4, 200, 264, d, dtype=dtype) for d in (8, 40, 80, 96, 128, 256)]
        found += [Attention(2, 4, 130, 201, 128, mask=m, dtype=dtype) for m in ("bool", "float")]
        found += [Attention(1, 8, 333, 100, 128, causal=True, shared=2, dtype=dtype)]
    found += [Attention(1, 2, 70, 130, d, causal=c, dtype="float32") for d in (24, 72, 200) for c in (False, True)]
    found += [Attention(2, 64, 300, 301, d, mask="bool", dtype="float32") for d in (64, 96)]
    return [*found, Attention(16, 24, 200, 230, 64, dtype="float32"), Attention(1, 5, 1, 77, 64, dtype="float32")]


def decoding() -> list[Attention]:
    """One query for the keys of a cache: bound by the time in which these are read."""
    found = [Attention(1, 32, 1, keys, 128, shared=8) for keys in (1024, 2048, 4096, 8192, 32768)]
    found += [Attention(1, 32, 1, keys, 128) for keys in (1024, 4096)]
    found += [Attention(1, 32, 1, 32768, 128, shared=owners) for owners in (4, 2, 1)]
    return [*found, Attention(1, 32, 1, 1024, 64, shared=8), Attention(8, 32, 1, 4096, 128, shared=8)]


def timings() -> list[Attention]:
    """The shapes that are timed."""
    found = []
    for depth in (64, 128):
        for causal in (False, True):
            for batch, length in ((32, 128), (16, 256), (16, 512), (8, 1024), (4, 2048), (2, 4096), (1, 8192)):
                found.append(Attention(batch, 16, length, length, depth, causal))
    found += [Attention(1, 12, 128, 128, 64), Attention(1, 12, 512, 512, 64, True), Attention(32, 12, 197, 197, 64)]
    found += [Attention(2, 32, 2048, 2048, 128, True, 8)]
    for dtype in F32:
        found += [Attention(batch, 12, length, length, 64, dtype=dtype) for batch in (1, 32) for length in (128, 197)]
        found += [Attention(4, 16, 2048, 2048, d, c, dtype=dtype) for d in (64, 128) for c in (False, True)]
    return found


def model_of(attention: Attention) -> Any:
    """The ONNX model."""
    from onnx import helper

    kind, a = TYPES[attention.dtype], attention
    shapes = {
        "q": (a.batch, a.heads, a.queries, a.depth),
        "k": (a.batch, a.owners, a.keys, a.depth),
        "v": (a.batch, a.owners, a.keys, a.depth),
    }
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in shapes.items()]
    if a.mask:
        inputs.append(helper.make_tensor_value_info("mask", 9 if a.mask == "bool" else kind, a.mask_shape))
    names = [i.name for i in inputs]
    node = helper.make_node("Attention", names, ["y"], is_causal=int(a.causal))
    graph = helper.make_graph([node], "attention", inputs, [helper.make_tensor_value_info("y", kind, shapes["q"])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


class AttentionRun:
    """Attention on the GPU: sets of inputs, the library, and torch."""

    def __init__(self, folder: Path, attention: Attention, sets: int) -> None:
        import torch

        from mlc.runtime.loader import load

        self.a = a = attention
        torch.manual_seed(a.queries + a.keys)
        kind = torch.float32 if a.dtype in F32 else getattr(torch, a.dtype)
        torch.backends.cuda.matmul.allow_tf32 = a.dtype == "tf32"

        def drawn(heads: int, rows: int) -> Any:
            return torch.randn(a.batch, heads, rows, a.depth, device="cuda").to(kind)

        self.inputs = [
            [drawn(a.heads, a.queries), drawn(a.owners, a.keys), drawn(a.owners, a.keys)] for _ in range(sets)
        ]
        if a.mask:
            mask: Any = torch.rand(a.mask_shape, device="cuda") < 0.6
            mask[..., 0] = True
            for one in self.inputs:
                one.append(mask if a.mask == "bool" else torch.randn(a.mask_shape, device="cuda").to(kind))
        self.results = [torch.empty_like(one[0]) for one in self.inputs]
        self.context = load(folder / f"{a.name}.so").context()

    def mlc(self, number: int) -> None:
        """Runs the library."""
        import torch

        number %= len(self.inputs)
        stream = torch.cuda.current_stream().cuda_stream
        self.context.run(self.inputs[number], out=[self.results[number]], stream=stream)

    def peer(self, name: str) -> Callable[[int], None]:
        """What runs one of PyTorch's back ends."""
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        backend = getattr(SDPBackend, name)

        def run(number: int) -> None:
            query, key, value = self.inputs[number % len(self.inputs)][:3]
            with sdpa_kernel(backend), torch.no_grad():
                torch.nn.functional.scaled_dot_product_attention(
                    query, key, value, is_causal=self.a.causal, enable_gqa=self.a.shared > 0
                )

        return run

    def expected(self) -> Any:
        """The result in float64, a head at a time."""
        import torch

        a, (query, key, value, *mask) = self.a, self.inputs[0]
        result = torch.empty(query.shape, device="cuda", dtype=torch.float64)
        groups = a.heads // a.owners
        for b in range(a.batch):
            for h in range(a.heads):
                scores = query[b, h].double() @ key[b, h // groups].double().T / math.sqrt(a.depth)
                if a.mask == "float":
                    scores += mask[0].double()
                if a.mask == "bool":
                    scores.masked_fill_(~mask[0][b, 0], -math.inf)
                if a.causal:
                    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
                    scores.masked_fill_(hidden, -math.inf)
                result[b, h] = scores.softmax(-1) @ value[b, h // groups].double()
        return result

    def error(self) -> float:
        """||y - y64|| / ||y64||; infinite when two runs differ in a bit."""
        import torch

        error = error_of(self.results[0], self.expected(), self.mlc)
        before = self.results[0].clone()
        again = error_of(self.results[0], before.double(), self.mlc)
        return error if again == 0 and torch.equal(before, self.results[0]) else math.inf


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    for attention in dict.fromkeys([*checks(), *timings(), *decoding()]):
        precision = "tf32" if attention.dtype == "tf32" else "fp32"
        compile_to(model_of(attention), folder / f"{attention.name}.so", precision)
        print(attention.name, flush=True)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks everything, and times what is to be timed."""
    rows = []
    for attention in checks():
        error = AttentionRun(folder, attention, 1).error()
        right = error < BOUND[attention.dtype]
        print(f"{'right' if right else 'WRONG'} {attention.name:56s} {error:.1e}", flush=True)
        rows.append({"name": attention.name, "error": error, "right": right})
    ratios = []
    for attention in timings() if "MLC_DECODING_ONLY" not in os.environ else []:
        row, ratio = _timed(folder, attention)
        rows.append(row)
        ratios += [ratio] if attention.dtype not in F32 else []
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"best peer / mlc: geometric mean {mean:.3f}, least {min(ratios):.3f}")
    rows += [_timed(folder, attention)[0] for attention in decoding()]
    return rows


def _timed(folder: Path, attention: Attention) -> tuple[dict[str, Any], float]:
    """A row of the report, and how many times as long the best of the peers takes."""
    gc.collect()
    needed = 2 * attention.batch * attention.depth * (
        2 * attention.heads * attention.queries + 2 * attention.owners * attention.keys
    )  # fmt: skip
    run = AttentionRun(folder, attention, sets_of(needed))
    error = run.error()
    repeats = max(4, min(40, int(3e-3 * 500e12 / attention.flops)))
    times = measure({"mlc": run.mlc, **{name: run.peer(name) for name in attention.peers}}, repeats)
    own, best = times["mlc"].median, min(times[name].median for name in attention.peers)
    shown = "  ".join(f"{name.split('_')[0].lower()} {t.median:8.2f}" for name, t in times.items())
    rate = attention.flops / own / 1e6
    right = error < BOUND[attention.dtype]
    said = "" if right else "WRONG"
    print(f"{attention.name:48s} {shown} us  {rate:6.1f} TF  x{best / own:5.3f}  err {error:.1e} {said}", flush=True)
    row = {"name": attention.name, "error": error, "right": right}
    return {**row, **{name: asdict(t) for name, t in times.items()}}, best / own
