"""The part `rows`: what memory bounds, against eager and compiled PyTorch.

Softmax, norms, elementwise chains, transpositions and reductions, where tensors are 256 MB and at the sizes of models.
The yardstick is a copy of as many bytes as a case reads and writes: `share` is its time over that of the library.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, error_of, measure, sets_of

TYPES = {"float32": 1, "bfloat16": 16}
BOUNDS = {"float32": 1e-5, "bfloat16": 1e-2}
EPSILON = 1e-5
_NUMBERS = {"half": 0.5, "epsilon": EPSILON}  # that nodes name


@dataclass(frozen=True)
class Case:
    """`kind` of tensors of `shape`."""

    kind: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def name(self) -> str:
        return f"{self.kind}_{'x'.join(map(str, self.shape))}_{self.dtype}"

    @property
    def inputs(self) -> list[tuple[int, ...]]:
        """Shapes of the inputs; the first has the shape of the case."""
        return [self.shape, *[self.shape for w in _KINDS[self.kind].others if w == "same"]]

    def weights(self) -> list[Any]:
        """What the model has as constants, each with an element for a column."""
        import numpy as np

        count = sum(w == "row" for w in _KINDS[self.kind].others)
        return [np.linspace(0.5 - i, 1.5, self.shape[-1], dtype=np.float32) for i in range(count)]

    @property
    def result(self) -> tuple[int, ...]:
        """Shape of the result."""
        return _KINDS[self.kind].result(self.shape)

    @property
    def bytes(self) -> int:
        """What must be read and written."""
        each = 4 if self.dtype == "float32" else 2
        weights = len(_KINDS[self.kind].others) + 1 - len(self.inputs)
        return each * (sum(math.prod(s) for s in self.inputs) + weights * self.shape[-1] + math.prod(self.result))


@dataclass(frozen=True)
class _Kind:
    """ONNX nodes as (operator, inputs, attributes), each named by its number, and the same in PyTorch."""

    nodes: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...]
    torch: Callable[..., Any]
    others: tuple[str, ...] = ()
    result: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda shape: shape


def _functions() -> dict[str, Callable[..., Any]]:
    """What PyTorch computes; the module is imported where it is needed only."""
    import torch
    import torch.nn.functional as f

    return {
        "softmax": lambda x: torch.softmax(x, -1),
        "layer_norm": lambda x, s, b: f.layer_norm(x, x.shape[-1:], s, b, EPSILON),
        "rms_norm": lambda x, s: f.rms_norm(x, x.shape[-1:], s, EPSILON),
        "bias_gelu": lambda x, b: f.gelu(x + b),
        "swiglu": lambda x, y: f.silu(x) * y,
        "residual": lambda x, y, b: torch.relu(x + y * 0.5 + b),
        "residual_norm": lambda x, y, s, b: f.layer_norm(x + y, x.shape[-1:], s, b, EPSILON),
        "turn": lambda x: x.transpose(-1, -2).contiguous(),
        "heads": lambda x: x.transpose(1, 2).contiguous(),
        "channels": lambda x: x.permute(0, 2, 3, 1).contiguous(),
        "sum_rows": lambda x: x.sum(-1),
        "sum_columns": lambda x: x.sum(0),
        "mean_pixels": lambda x: x.mean((1, 2)),
        "all_max": lambda x: x.amax(),
        "softmax_columns": lambda x: torch.softmax(x, 0),
        "mean_squares": lambda x: (x * x).mean(0),
        "variance_columns": lambda x: x.var(0, correction=0),
        "softmax_middle": lambda x: torch.softmax(x, 1),
        "log_softmax_middle": lambda x: torch.log_softmax(x, 1),
        "norm_channels": lambda x: _normalized(x, (1,)),
        "norm_pixels": lambda x: _normalized(x, (1, 2)),
    }


def _normalized(x: Any, axes: tuple[int, ...]) -> Any:
    """A tensor of mean 0 and variance 1 over `axes`."""
    difference = x - x.mean(axes, keepdim=True)
    return difference / ((difference * difference).mean(axes, keepdim=True) + EPSILON).sqrt()


def _on_torch(kind: str) -> Callable[..., Any]:
    return lambda *inputs: _functions()[kind](*inputs)


def _permuted(*order: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    return lambda shape: tuple(shape[i] for i in order)


def _kind(nodes: Sequence[Any], kind: str, others: Sequence[str] = (), result: Any = lambda shape: shape) -> _Kind:
    return _Kind(tuple(nodes), _on_torch(kind), tuple(others), result)


def _norm(axes: str) -> list[Any]:
    """The nodes of `_normalized`."""
    return [
        ("ReduceMean", ("x0", axes), {}), ("Sub", ("x0", "0"), {}), ("Mul", ("1", "1"), {}),
        ("ReduceMean", ("2", axes), {}), ("Add", ("3", "epsilon"), {}), ("Sqrt", ("4",), {}), ("Div", ("1", "5"), {}),
    ]  # fmt: skip


_NORM = {"axis": -1, "epsilon": EPSILON}
_KINDS = {
    "softmax": _kind([("Softmax", ("x0",), {"axis": -1})], "softmax"),
    "layer_norm": _kind([("LayerNormalization", ("x0", "x1", "x2"), _NORM)], "layer_norm", ("row", "row")),
    "rms_norm": _kind([("RMSNormalization", ("x0", "x1"), _NORM)], "rms_norm", ("row",)),
    "bias_gelu": _kind([("Add", ("x0", "x1"), {}), ("Gelu", ("0",), {})], "bias_gelu", ("row",)),
    "swiglu": _kind(
        [("Sigmoid", ("x0",), {}), ("Mul", ("0", "x0"), {}), ("Mul", ("1", "x1"), {})], "swiglu", ("same",)
    ),
    "residual": _kind(
        [("Mul", ("x1", "half"), {}), ("Add", ("x0", "0"), {}), ("Add", ("1", "x2"), {}), ("Relu", ("2",), {})],
        "residual", ("same", "row"),
    ),
    "residual_norm": _kind(
        [("Add", ("x0", "x1"), {}), ("LayerNormalization", ("0", "x2", "x3"), _NORM)],
        "residual_norm", ("same", "row", "row"),
    ),
    "turn": _kind([("Transpose", ("x0",), {"perm": [1, 0]})], "turn", (), _permuted(1, 0)),
    "heads": _kind([("Transpose", ("x0",), {"perm": [0, 2, 1, 3]})], "heads", (), _permuted(0, 2, 1, 3)),
    "channels": _kind([("Transpose", ("x0",), {"perm": [0, 2, 3, 1]})], "channels", (), _permuted(0, 2, 3, 1)),
    "sum_rows": _kind([("ReduceSum", ("x0", "axes:-1"), {"keepdims": 0})], "sum_rows", (), lambda s: s[:-1]),
    "sum_columns": _kind([("ReduceSum", ("x0", "axes:0"), {"keepdims": 0})], "sum_columns", (), lambda s: s[1:]),
    "mean_pixels": _kind(
        [("ReduceMean", ("x0", "axes:1,2"), {"keepdims": 0})], "mean_pixels", (), lambda s: (s[0], s[3])
    ),
    "all_max": _kind([("ReduceMax", ("x0",), {"keepdims": 0})], "all_max", (), lambda s: ()),
    "softmax_columns": _kind([("Softmax", ("x0",), {"axis": 0})], "softmax_columns"),
    "mean_squares": _kind(
        [("Mul", ("x0", "x0"), {}), ("ReduceMean", ("0", "axes:0"), {"keepdims": 0})],
        "mean_squares", (), lambda s: s[1:],
    ),
    "variance_columns": _kind(
        [("ReduceMean", ("x0", "axes:0"), {}), ("Sub", ("x0", "0"), {}), ("Mul", ("1", "1"), {}),
         ("ReduceMean", ("2", "axes:0"), {"keepdims": 0})],
        "variance_columns", (), lambda s: s[1:],
    ),
    "softmax_middle": _kind([("Softmax", ("x0",), {"axis": 1})], "softmax_middle"),
    "log_softmax_middle": _kind([("LogSoftmax", ("x0",), {"axis": 1})], "log_softmax_middle"),
    "norm_channels": _kind(_norm("axes:1"), "norm_channels"),
    "norm_pixels": _kind(_norm("axes:1,2"), "norm_pixels"),
}  # fmt: skip


def cases() -> list[Case]:
    """What is timed: at 256 MB of f32 or bf16, and at the sizes of models."""
    found = []
    for dtype, scale in (("float32", 1), ("bfloat16", 2)):
        rows = [(scale * (1 << 26) // n, n) for n in (4096, 1024, 128, 32768)]
        found += [Case("softmax", (m, n), dtype) for m, n in [*rows, (scale * 67000, 1000), (1024 * scale, 50257)]]
        found += [Case("layer_norm", (m, n), dtype) for m, n in [*rows[:2], (scale * 87000, 768)]]
        found += [Case("rms_norm", rows[0], dtype), Case("residual_norm", (scale * 16384, 4096), dtype)]
        found += [Case(kind, rows[0], dtype) for kind in ("bias_gelu", "swiglu", "residual")]
        found += [Case("bias_gelu", (scale * 67000, 1001), dtype)]
        found += [Case("turn", (8192, 8192 * scale), dtype), Case("heads", (64, 1024 * scale, 16, 64), dtype)]
        found += [Case("channels", (32 * scale, 256, 64, 128), dtype)]
        found += [Case(kind, rows[0], dtype) for kind in ("sum_rows", "sum_columns", "all_max")]
        found += [Case("mean_pixels", (256 * scale, 32, 32, 256), dtype)]
        small = [(12 * 128, 128), (32 * 12 * 197, 197), (16 * 1024, 1024), (1, 50257)]
        found += [Case("softmax", s, dtype) for s in small]
        found += [Case(kind, s, dtype) for kind in ("layer_norm", "residual_norm") for s in [(128, 768), (6304, 768)]]
        found += [Case("rms_norm", (512, 2048), dtype), Case("rms_norm", (1, 4096), dtype)]
        found += [Case("bias_gelu", (128, 3072), dtype), Case("swiglu", (512, 5504), dtype)]
        found += [Case("residual", (3136, 256), dtype), Case("mean_pixels", (32, 7, 7, 2048), dtype)]
        found += [Case("heads", (1, 128, 12, 64), dtype), Case("turn", (768, 3072), dtype)]
        few = [(100_000, 4), (100_000, 64), (1_000_000, 3), (1_000_003, 4)]
        found += [Case("sum_columns", s, dtype) for s in few]
        found += [Case("mean_squares", few[1], dtype), Case("variance_columns", few[2], dtype)]
        found += [Case("softmax_columns", few[0], dtype), Case("sum_rows", (1, 1_000_003), dtype)]
        found += [Case("softmax_middle", s, dtype) for s in [(512, 200, 300), (64, 1000, 512), (2048, 64, 256)]]
        found += [Case("log_softmax_middle", (8, 21, 512, 512), dtype)]
        found += [Case("norm_channels", s, dtype) for s in [(8, 64, 56, 56), (32, 768, 196)]]
        found += [Case("norm_pixels", s, dtype) for s in [(32, 56, 56, 64), (32, 14, 14, 512)]]
    return found


def model(case: Case) -> Any:
    """The ONNX model of a case."""
    import numpy as np
    from onnx import helper, numpy_helper

    kind, code = _KINDS[case.kind], TYPES[case.dtype]
    nodes, constants = [], {}
    for number, weight in enumerate(case.weights(), len(case.inputs)):
        shape, values = weight.shape, weight.astype(np.float64).tolist()
        constants[f"x{number}"] = helper.make_tensor(f"x{number}", code, shape, values)
    for number, (operator, names, attributes) in enumerate(kind.nodes):
        for name in names:
            if name.startswith("axes:"):
                axes = np.array([int(a) for a in name[5:].split(",")])
                constants[name] = numpy_helper.from_array(axes, name)
            elif name in _NUMBERS:
                constants[name] = helper.make_tensor(name, code, [], [_NUMBERS[name]])
        output = "y" if number == len(kind.nodes) - 1 else str(number)
        nodes.append(helper.make_node(operator, names, [output], **attributes))
    inputs = [helper.make_tensor_value_info(f"x{i}", code, shape) for i, shape in enumerate(case.inputs)]
    result = helper.make_tensor_value_info("y", code, case.result)
    graph = helper.make_graph(nodes, case.kind, inputs, [result], list(constants.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    for case in cases():
        compile_to(model(case), folder / f"{case.name}.so")
        print(case.name, flush=True)


class CaseRun:
    """A case on the GPU: sets of inputs, the library, and what PyTorch has for it."""

    def __init__(self, folder: Path, case: Case) -> None:
        import torch

        from mlc.runtime.loader import load

        self.case, kind = case, getattr(torch, case.dtype)
        torch.manual_seed(len(case.name))
        sets = range(sets_of(case.bytes))
        self.inputs = [[torch.randn(s, device="cuda").to(kind) for s in case.inputs] for _ in sets]
        self.weights = [torch.from_numpy(w).cuda().to(kind) for w in case.weights()]
        self.results = [torch.empty(case.result, device="cuda", dtype=kind) for _ in sets]
        self.copied = [torch.randn(-(-case.bytes // 4096) * 512, device="cuda") for _ in sets]
        self.copies = [torch.empty_like(c) for c in self.copied]
        self.context = load(folder / f"{case.name}.so").context()
        self.function = _functions()[case.kind]
        # Results of a peer are kept as ours are: memory that is used again would be in the cache.
        self.theirs: dict[tuple[str, int], Any] = {}
        self.compiled = torch.compile(self.function, dynamic=False)

    def mlc(self, number: int) -> None:
        """Runs the library."""
        import torch

        number %= len(self.inputs)
        stream = torch.cuda.current_stream().cuda_stream
        self.context.run(self.inputs[number], out=[self.results[number]], stream=stream)

    def eager(self, number: int) -> None:
        """PyTorch's operators one after the other."""
        number %= len(self.inputs)
        self.theirs["eager", number] = self.function(*self.inputs[number], *self.weights)

    def inductor(self, number: int) -> None:
        """What torch.compile makes of them."""
        number %= len(self.inputs)
        self.theirs["inductor", number] = self.compiled(*self.inputs[number], *self.weights)

    def copy(self, number: int) -> None:
        """A copy of as many bytes."""
        number %= len(self.inputs)
        self.copies[number].copy_(self.copied[number])

    def error(self) -> float:
        """||y - y64|| / ||y64|| of the library."""
        expected = self.function(*(x.double() for x in (*self.inputs[0], *self.weights)))
        return error_of(self.results[0], expected, self.mlc)

    def engines(self) -> dict[str, Callable[[int], None]]:
        """By name; compiled where PyTorch's compiler works."""
        return {"mlc": self.mlc, "copy": self.copy, "eager": self.eager, "inductor": self.inductor}


def run_part(folder: Path, only: Callable[[Case], bool] = lambda _: True) -> list[dict[str, Any]]:
    """Checks and times the cases, and prints the geometric mean of the ratios to compiled PyTorch."""
    import torch

    rows = []
    for case in filter(only, cases()):
        gc.collect()
        torch.cuda.empty_cache()
        torch.compiler.reset()
        run = CaseRun(folder, case)
        rows.append(_timed(case, run))
        del run
    ratios = [row["inductor"]["median"] / row["mlc"]["median"] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(rows)} cases: x{mean:.3f} of compiled PyTorch, none under x{min(ratios):.3f}", flush=True)
    return rows


def _timed(case: Case, run: CaseRun) -> dict[str, Any]:
    error, repeats = run.error(), max(2, min(50, int(2e-3 * 4e12 / case.bytes)))
    times = measure(run.engines(), repeats)
    own = times["mlc"].median
    rate, share = case.bytes / own / 1e6, times["copy"].median / own
    peers = "  ".join(f"{n} {times[n].median:8.2f} x{times[n].median / own:5.3f}" for n in ("eager", "inductor"))
    print(f"{case.name:42s} {own:8.2f} us {rate:5.2f} TB/s share {share:5.3f}  {peers}  err {error:.1e}", flush=True)
    return {"name": case.name, "error": error, "right": error < BOUNDS[case.dtype], "share": share,
            **{n: asdict(t) for n, t in times.items()}}  # fmt: skip
