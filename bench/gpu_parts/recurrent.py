"""The part `recurrent`: layers of LSTMs, GRUs and plain recurrent networks against PyTorch's, which are cuDNN's.

Weights and states of products are rounded to bf16 (or multiplied as tf32), sums are f32. PyTorch's layer is bf16 or f16
as a whole, or f32 with tf32 allowed; the library's results are compared with PyTorch's in float64.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, error_of, sets_of, timed

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# Where ONNX has the gates that PyTorch has one after the other.
ORDER = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}


@dataclass(frozen=True)
class Case:
    """A layer of `hidden` elements over `steps` of `batch` sequences, in one or two directions."""

    kind: str
    steps: int
    batch: int
    width: int
    hidden: int
    directions: int = 1
    precision: str = "bf16"

    @property
    def name(self) -> str:
        both = "_both" if self.directions == 2 else ""
        return f"{self.kind.lower()}_{self.steps}x{self.batch}x{self.width}_{self.hidden}{both}_{self.precision}"

    @property
    def flops(self) -> int:
        rows = self.directions * GATES[self.kind] * self.hidden
        return 2 * self.steps * self.batch * rows * (self.width + self.hidden)

    @property
    def bytes(self) -> int:
        """Of a sequence and its results."""
        return 4 * self.steps * self.batch * (self.width + self.directions * self.hidden)

    def weights(self) -> dict[str, Any]:
        """As ONNX has them."""
        import numpy as np

        rng, rows = np.random.default_rng(3), GATES[self.kind] * self.hidden
        shapes = {"w": (rows, self.width), "r": (rows, self.hidden), "b": (2 * rows,)}
        bound = 1 / math.sqrt(self.hidden)
        return {n: rng.uniform(-bound, bound, (self.directions, *s)).astype(np.float32) for n, s in shapes.items()}


def cases() -> list[Case]:
    """Lines and columns of images (Sequencer2D), speech and text, time series; one sequence and many; tf32 as well."""
    found = [
        Case("LSTM", 32, 256, 192, 48, 2), Case("LSTM", 14, 112, 384, 96, 2), Case("LSTM", 128, 1, 256, 64),
        Case("LSTM", 128, 1, 128, 128), Case("LSTM", 128, 1, 256, 256), Case("LSTM", 128, 32, 256, 128, 2),
        Case("LSTM", 200, 16, 512, 256, 2), Case("LSTM", 100, 256, 64, 128), Case("LSTM", 100, 2048, 16, 64),
        Case("LSTM", 128, 32, 512, 512), Case("LSTM", 128, 1, 1024, 1024), Case("GRU", 128, 1, 256, 256),
        Case("GRU", 100, 32, 64, 128), Case("GRU", 100, 64, 256, 192, 2), Case("GRU", 50, 512, 80, 64, 2),
        Case("RNN", 100, 32, 64, 128), Case("RNN", 256, 8, 256, 256, 2),
    ]  # fmt: skip
    tf32 = [Case("LSTM", 14, 112, 384, 96, 2, "tf32"), Case("LSTM", 128, 1, 128, 128, 1, "tf32"),
            Case("GRU", 100, 32, 64, 128, 1, "tf32")]  # fmt: skip
    return found + tf32


def model(case: Case) -> Any:
    """The ONNX model of a case."""
    from onnx import TensorProto, helper, numpy_helper

    direction = "bidirectional" if case.directions == 2 else "forward"
    linear = {"linear_before_reset": 1} if case.kind == "GRU" else {}
    node = helper.make_node(
        case.kind, ["x", "w", "r", "b"], ["y"], hidden_size=case.hidden, direction=direction, **linear
    )
    ends = [("x", (case.steps, case.batch, case.width)), ("y", (case.steps, case.directions, case.batch, case.hidden))]
    given, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends)
    stored = [numpy_helper.from_array(value, name) for name, value in case.weights().items()]
    graph = helper.make_graph([node], case.name, [given], [result], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    for case in cases():
        compile_to(model(case), folder / f"{case.name}.so", precision=case.precision)
        print(case.name, flush=True)


class CaseRun:
    """A case on the GPU: sets of sequences, the library, and PyTorch's layer."""

    def __init__(self, folder: Path, case: Case) -> None:
        import torch

        from mlc.runtime.loader import load

        self.case = case
        torch.manual_seed(len(case.name))
        shape, sets = (case.steps, case.batch, case.width), sets_of(case.bytes)
        self.inputs = [torch.randn(shape, device="cuda") for _ in range(sets)]
        result = (case.steps, case.directions, case.batch, case.hidden)
        self.results = [torch.empty(result, device="cuda") for _ in range(sets)]
        self.context = load(folder / f"{case.name}.so").context()

    def _layer(self, dtype: Any) -> Any:
        import torch

        case = self.case
        layer = getattr(torch.nn, case.kind)(case.width, case.hidden, bidirectional=case.directions == 2)
        for name, value in case.weights().items():
            for direction, own in enumerate(torch.from_numpy(value)):
                gates = torch.stack(own.split(case.hidden)).unflatten(0, (-1, GATES[case.kind]))
                order = (
                    gates[:, ORDER[case.kind]].flatten(0, 2)
                    if name == "b"
                    else gates[0, ORDER[case.kind]].flatten(0, 1)
                )
                parts = order.chunk(2) if name == "b" else [order]
                names = {"w": ["weight_ih"], "r": ["weight_hh"], "b": ["bias_ih", "bias_hh"]}[name]
                for target, part in zip(names, parts, strict=True):
                    getattr(layer, f"{target}_l0{'_reverse' * direction}").data.copy_(part)
        layer = layer.to("cuda", dtype).eval()
        layer.flatten_parameters()  # as cuDNN wants them
        return layer

    def mlc(self, number: int) -> None:
        """Runs the library."""
        import torch

        number %= len(self.inputs)
        stream = torch.cuda.current_stream().cuda_stream
        self.context.run([self.inputs[number]], out=[self.results[number]], stream=stream)

    def peers(self) -> dict[str, Callable[[int], None]]:
        """PyTorch's layer; that of f16 is the faster one, as PyTorch moves weights of bf16 together in every call."""
        import torch

        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cuda.matmul.allow_tf32 = True

        def layer_of(dtype: Any) -> Callable[[int], None]:
            layer, given = self._layer(dtype), [x.to(dtype) for x in self.inputs]

            def run(number: int) -> None:
                with torch.no_grad():
                    layer(given[number % len(given)])

            return run

        if self.case.precision == "tf32":
            return {"cudnn": layer_of(torch.float32)}
        return {"cudnn": layer_of(torch.bfloat16), "cudnn_f16": layer_of(torch.float16)}

    def error(self) -> float:
        """Of the library, against PyTorch's layer in float64."""
        import torch

        with torch.no_grad():
            y, *_ = self._layer(torch.float64)(self.inputs[0].double())
        expected = y.unflatten(2, (self.case.directions, self.case.hidden)).transpose(1, 2)
        return error_of(self.results[0], expected, self.mlc)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks and times all cases, and prints the geometric mean of the ratios."""
    import torch

    rows = []
    for case in cases():
        gc.collect()
        torch.cuda.empty_cache()
        rows.append(timed(case.name, CaseRun(folder, case), case.flops))
    for peer in ("cudnn", "cudnn_f16"):
        ratios = [row[peer]["median"] / row["mlc"]["median"] for row in rows if peer in row]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} layers: x{mean:.3f} of {peer}, none under x{min(ratios):.3f}", flush=True)
    return rows
