"""The part `selection`: the best elements of lines, where extreme ones are, updates that go where indices say, and
running sums, against eager PyTorch.

Results are integers, or elements as they are: they must be equal; sums of floats that are scattered are in order, those
of running sums are compared with sums in float64. Peers write into tensors
that they are given; of updates of one element PyTorch takes any, and adds floats in any order.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, measure, sets_of, wait

TYPES = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "float16": 10, "float64": 11, "bfloat16": 16}


@dataclass(frozen=True)
class Case:
    """`kind` of a tensor of `shape` along `axis`; `count` elements of a line are selected, or updated."""

    kind: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    axis: int = -1
    count: int = 1

    @property
    def name(self) -> str:
        selected = f"_{self.count}" if self.count > 1 else ""
        return f"{self.kind}_{'x'.join(map(str, self.shape))}_axis{self.axis % len(self.shape)}{selected}_{self.dtype}"

    @property
    def result(self) -> list[int]:
        """Shape of the results."""
        return list(self.shape) if self.kind in (*_REDUCTIONS, "cumsum") else self.counted

    @property
    def counted(self) -> list[int]:
        """The shape with `count` elements in each line."""
        axis = self.axis % len(self.shape)
        return [self.count if i == axis else extent for i, extent in enumerate(self.shape)]

    @property
    def indices(self) -> list[int]:
        """Shape of the indices of updates."""
        return [self.count, 1] if self.kind == "put" else self.counted

    @property
    def bytes(self) -> int:
        """What must be read and written, nearly."""
        each = _bytes(self.dtype)
        if self.kind == "cumsum":
            return 2 * math.prod(self.shape) * each
        if self.kind in _REDUCTIONS:
            return 2 * math.prod(self.shape) * each + math.prod(self.counted) * each + 8 * math.prod(self.indices)
        return math.prod(self.shape) * each + 8 * math.prod(self.result)


def _bytes(dtype: str) -> int:
    return int("".join(c for c in dtype if c.isdigit())) // 8


def cases() -> list[Case]:
    """A language model's next word, classes of many images, the best of a whole tensor, classes of pixels, boxes;
    sorted logits put back, a router's choices, histograms, rows of a cache; running sums of long and of many lines."""
    rows: list[tuple[int, ...]] = [(1, 50257), (1, 128256), (32, 50257), (8, 128256), (512, 50257)]
    found = [Case("argmax", shape, dtype) for dtype in ("float32", "bfloat16") for shape in rows]
    rows = [(1, 1000), (256, 1000), (65536, 1000), (100_000, 10), (8192, 128), (16384, 4096), (4, 1 << 20), (1 << 24,)]
    found += [Case("argmax", shape) for shape in rows]
    found += [Case("argmin", (32, 50257)), Case("argmax", (32, 50257), "int64"), Case("argmax", (64, 20000), "float64")]
    found += [Case("argmax", (256, 8192), "uint8"), Case("argmax", (4096, 1001), "float16")]
    found += [Case("argmax", shape, axis=1) for shape in ((1, 21, 512, 512), (8, 150, 128, 128), (1, 8400, 80))]
    found += [Case("argmax", (4096, 64), axis=0)]
    found += [Case("argmax", (n, m), axis=0) for n, m in ((100_000, 4), (100_000, 64), (1_000_000, 3), (1_000_003, 4))]
    found += [Case("argmax", (8, 50_000, 4), axis=1), Case("argmax", (1, 1 << 20)), Case("argmax", (1, 1_000_003))]
    found += [Case("scatter", (32, 50257), count=50257), Case("scatter", (4096, 64), count=8)]
    found += [Case("scatter", (1, 1 << 20), count=1 << 20), Case("scatter", (100_000, 64), axis=0, count=100_000)]
    found += [
        Case("scatter_add", (1000,), "int64", count=1 << 20),
        Case("scatter_add", (1 << 20,), "int32", count=1 << 20),
    ]
    found += [Case("scatter_add", (2000, 4096), axis=0, count=1000), Case("scatter_add", (1024, 512), count=300)]
    found += [Case("put", (8192, 1024), axis=0, count=n) for n in (1, 60, 5000)]
    best = [(1, 50257, 50), (32, 50257, 50), (1, 8400, 300), (64, 4096, 128), (256, 1024, 10), (1024, 256, 8)]
    best += [(1, 131072, 1024), (1, 128256, 50), (8, 128256, 64), (64, 128256, 50), (4, 1_000_000, 256)]
    found += [Case("topk", shape, count=k) for *shape, k in best]  # type: ignore[arg-type]
    found += [Case("topk", (n, 128256), "bfloat16", count=50) for n in (1, 8, 32)]
    rows = [(4096, 4096), (64, 32000), (65536, 100), (1000, 1003)]
    rows += [(1, n) for n in (50_000, 200_000, 1_000_000, 1_000_003, 10_000_000)]
    rows += [(4, 1_000_000), (16, 65536), (32, 65536), (64, 100_000)]
    found += [Case("cumsum", shape) for shape in rows]
    found += [Case("cumsum", (1, 1_000_000), dtype) for dtype in ("bfloat16", "float64", "int64")]
    found += [Case("cumsum", (8, 100_000), "int64"), Case("cumsum", (2048, 2048), "bfloat16")]
    found += [Case("cumsum", shape, axis=0) for shape in ((100_000, 4), (1_000_000, 4), (100_000, 64), (4096, 4096))]
    return found


def model(case: Case) -> Any:
    """The ONNX model of a case."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    code, constants, outputs = TYPES[case.dtype], [], ["y"]
    if case.kind in _REDUCTIONS:
        return _scatter_model(case)
    if case.kind == "cumsum":
        constants = [numpy_helper.from_array(np.array(case.axis), "axis")]
        nodes = [helper.make_node("CumSum", ["x", "axis"], outputs)]
    elif case.kind == "topk":
        constants, outputs = [numpy_helper.from_array(np.array([case.count]), "k")], ["v", "y"]
        nodes = [helper.make_node("TopK", ["x", "k"], outputs, axis=case.axis)]
    else:
        nodes = [helper.make_node(_OPERATORS[case.kind], ["x"], outputs, axis=case.axis)]
    kinds = {"v": code, "y": code if case.kind == "cumsum" else TensorProto.INT64}
    results = [helper.make_tensor_value_info(name, kinds[name], case.result) for name in outputs]
    inputs = [helper.make_tensor_value_info("x", code, case.shape)]
    graph = helper.make_graph(nodes, case.kind, inputs, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


_OPERATORS = {"argmax": "ArgMax", "argmin": "ArgMin"}
_REDUCTIONS = {"scatter": "none", "put": "none", "scatter_add": "add"}


def _scatter_model(case: Case) -> Any:
    from onnx import TensorProto, helper

    code, reduction = TYPES[case.dtype], _REDUCTIONS[case.kind]
    inputs = [
        helper.make_tensor_value_info("x", code, case.shape),
        helper.make_tensor_value_info("i", TensorProto.INT64, case.indices),
        helper.make_tensor_value_info("u", code, case.counted),
    ]
    operator, axis = ("ScatterND", {}) if case.kind == "put" else ("ScatterElements", {"axis": case.axis})
    node = helper.make_node(operator, ["x", "i", "u"], ["y"], reduction=reduction, **axis)
    graph = helper.make_graph([node], case.kind, inputs, [helper.make_tensor_value_info("y", code, case.shape)])
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

        self.case, self.kind = case, getattr(torch, case.dtype)
        torch.manual_seed(len(case.name))
        self.inputs = [self._drawn(case.shape) for _ in range(sets_of(case.bytes))]
        self.updates = [self._updates() for _ in self.inputs]
        self.results = [self._empty() for _ in self.inputs]
        self.theirs = [self._empty() for _ in self.inputs]
        self.context = load(folder / f"{case.name}.so").context()

    def _drawn(self, shape: Sequence[int]) -> Any:
        import torch

        if self.kind.is_floating_point:
            return torch.randn(shape, device="cuda").to(self.kind)
        high = 256 if self.kind == torch.uint8 else 1 << 30
        return torch.randint(0, high, shape, device="cuda").to(self.kind)

    def _updates(self) -> list[Any]:
        """Indices and updates of what has any."""
        import torch

        if self.case.kind not in _REDUCTIONS:
            return []
        extent = self.case.shape[self.case.axis]
        return [torch.randint(0, extent, self.case.indices, device="cuda"), self._drawn(self.case.counted)]

    def _empty(self) -> list[Any]:
        """Results before a run: poison."""
        import torch

        if self.case.kind in (*_REDUCTIONS, "cumsum"):
            return [torch.full(self.case.result, -77, device="cuda", dtype=self.kind)]
        places = torch.full(self.case.result, -77, device="cuda", dtype=torch.int64)
        if self.case.kind != "topk":
            return [places]
        return [torch.full(self.case.result, -77, device="cuda", dtype=self.kind), places]

    def mlc(self, number: int) -> None:
        """Runs the library."""
        import torch

        number %= len(self.inputs)
        stream = torch.cuda.current_stream().cuda_stream
        self.context.run([self.inputs[number], *self.updates[number]], out=self.results[number], stream=stream)

    def eager(self, number: int) -> None:
        """PyTorch's operator."""
        import torch

        number %= len(self.inputs)
        x, axis, out = self.inputs[number], self.case.axis, self.theirs[number]
        if self.case.kind == "put":
            index, values = self.updates[number]
            out[0].copy_(x)
            out[0].index_put_((index[:, 0],), values)
        elif self.case.kind in _REDUCTIONS:
            getattr(torch, self.case.kind)(x, axis, *self.updates[number], out=out[0])
        elif self.case.kind == "cumsum":
            torch.cumsum(x, axis, out=out[0])
        elif self.case.kind == "topk":
            torch.topk(x, self.case.count, axis, out=tuple(out))
        else:
            getattr(torch, self.case.kind)(x, axis, True, out=out[0])

    def is_right(self) -> bool:
        """Are the results those of NumPy, which takes the first of equal elements, or sums of float64?"""
        import numpy as np
        import torch

        for number in range(len(self.inputs)):
            self.mlc(number)
        wait()
        found = self.results[0]
        if self.case.kind == "cumsum":
            return self._sums_are_right()
        x = self.inputs[0].float().cpu().numpy() if self.kind == torch.bfloat16 else self.inputs[0].cpu().numpy()
        axis = self.case.axis
        if self.case.kind in _REDUCTIONS:
            return np.array_equal(found[0].cpu().numpy(), self._scattered(x))
        if self.case.kind == "topk":
            want = np.take(np.argsort(-x, axis, kind="stable"), range(self.case.count), axis)
            values = torch.gather(self.inputs[0], axis, found[1])
            return bool((values == found[0]).all()) and np.array_equal(found[1].cpu().numpy(), want)
        want = getattr(np, self.case.kind)(x, axis, keepdims=True)
        return np.array_equal(found[0].cpu().numpy(), want)

    def _sums_are_right(self) -> bool:
        import torch

        exact = torch.float64 if self.kind.is_floating_point else self.kind
        want = torch.cumsum(self.inputs[0].to(exact), self.case.axis)
        apart = (self.results[0][0].to(exact) - want).abs().max()
        tolerance = {torch.float32: 1e-5, torch.bfloat16: 2.0**-8}.get(self.kind, 0)
        return bool(apart <= tolerance * want.abs().max())

    def _scattered(self, x: Any) -> Any:
        """What NumPy makes of the updates, one after the other."""
        import numpy as np

        index, values = (t.cpu().numpy() for t in self.updates[0])
        y = x.copy()
        if self.case.kind == "put":
            at = [index[:, 0]]
        else:
            at = list(np.indices(index.shape))
            at[self.case.axis] = index
        if self.case.kind == "scatter_add":
            np.add.at(y, tuple(at), values)
        else:
            y[tuple(at)] = values
        return y


def run_part(folder: Path, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Checks and times the cases, those named `only` if any are, and prints the geometric mean of the ratios."""
    import torch

    rows = []
    for case in cases():
        if only and case.name not in only:
            continue
        gc.collect()
        torch.cuda.empty_cache()
        rows.append(_timed(case, CaseRun(folder, case)))
    ratios = [row["eager"]["median"] / row["mlc"]["median"] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(rows)} cases: x{mean:.3f} of PyTorch, none under x{min(ratios):.3f}", flush=True)
    return rows


def _timed(case: Case, run: CaseRun) -> dict[str, Any]:
    is_right, repeats = run.is_right(), max(2, min(40, int(2e-3 * 4e12 / case.bytes)))
    times = measure({"mlc": run.mlc, "eager": run.eager}, repeats)
    own, ratio = times["mlc"].median, times["eager"].median / times["mlc"].median
    said = "" if is_right else "  WRONG"
    rate = case.bytes / own / 1e6
    print(f"{case.name:40s} {own:8.2f} us {rate:5.2f} TB/s  eager {times['eager'].median:8.2f} x{ratio:5.3f}{said}",
          flush=True)  # fmt: skip
    return {"name": case.name, "right": is_right, **{n: asdict(t) for n, t in times.items()}}
