"""The part `conv`: convolutions with channels last, bias and ReLU, against cuDNN's."""

from __future__ import annotations

import gc
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, error_of, sets_of, timed


@dataclass(frozen=True)
class Convolution:
    """A convolution of `images` of `size` x `size` pixels with channels last, a bias and a ReLU, in bf16."""

    images: int
    size: int
    channels: int
    filters: int
    kernel: int
    stride: int = 1
    dilation: int = 1

    @property
    def name(self) -> str:
        tail = f"s{self.stride}d{self.dilation}"
        return f"conv{self.images}x{self.size}x{self.channels}_{self.filters}_{self.kernel}{tail}"

    @property
    def padding(self) -> int:
        return self.dilation * (self.kernel - 1) // 2

    @property
    def out(self) -> int:
        """Pixels of a line of the result."""
        return (self.size + 2 * self.padding - self.dilation * (self.kernel - 1) - 1) // self.stride + 1

    @property
    def flops(self) -> int:
        return 2 * self.images * self.out**2 * self.filters * self.kernel**2 * self.channels


def convolutions() -> list[Convolution]:
    """The shapes of ResNet-50 that are timed."""
    sizes = [(56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 256, 3), (7, 512, 512, 3), (56, 64, 256, 1),
             (14, 1024, 256, 1)]  # fmt: skip
    found = [Convolution(n, *size) for size in sizes for n in (1, 32)]
    return [*found, Convolution(32, 56, 128, 128, 3, stride=2), Convolution(32, 56, 256, 512, 1, stride=2)]


def convolution_model(conv: Convolution) -> Any:
    """The ONNX model of a convolution whose input and result have channels last, as the GPU keeps them."""
    import numpy as np
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    shape = (conv.filters, conv.channels, conv.kernel, conv.kernel)
    weights = rng.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))
    constants = [
        numpy_helper.from_array(weights.astype(np.float32), "w"),
        numpy_helper.from_array(rng.standard_normal(conv.filters).astype(np.float32), "bias"),
    ]
    both = {"strides": [conv.stride] * 2, "dilations": [conv.dilation] * 2, "pads": [conv.padding] * 4}
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=1),
        helper.make_node("Transpose", ["wide"], ["first"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["first", "w", "bias"], ["c"], **both),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Transpose", ["r"], ["last"], perm=[0, 2, 3, 1]),
        helper.make_node("Cast", ["last"], ["y"], to=16),
    ]
    x = helper.make_tensor_value_info("x", 16, [conv.images, conv.size, conv.size, conv.channels])
    y = helper.make_tensor_value_info("y", 16, [conv.images, conv.out, conv.out, conv.filters])
    graph = helper.make_graph(nodes, "convolution", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


class ConvolutionRun:
    """A convolution on the GPU: sets of inputs, the library, and torch with channels last."""

    def __init__(self, folder: Path, conv: Convolution, sets: int) -> None:
        import torch

        from mlc.runtime.loader import load

        self.conv = conv
        model = convolution_model(conv)
        weights, bias = (torch.from_numpy(_array(t)).cuda() for t in model.graph.initializer)
        self.weights = weights.bfloat16().to(memory_format=torch.channels_last)
        self.bias = bias
        torch.manual_seed(0)
        shape = (conv.images, conv.size, conv.size, conv.channels)
        self.inputs = [torch.randn(shape, device="cuda").bfloat16() for _ in range(sets)]
        out = (conv.images, conv.out, conv.out, conv.filters)
        self.results = [torch.empty(out, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
        self.context = load(folder / f"{conv.name}.so").context()

    def mlc(self, number: int) -> None:
        """Runs the library."""
        import torch

        number %= len(self.inputs)
        stream = torch.cuda.current_stream().cuda_stream
        self.context.run([self.inputs[number]], out=[self.results[number]], stream=stream)

    def torch(self, number: int) -> None:
        """cuDNN's convolution with bias and ReLU in one."""
        import torch

        conv = self.conv
        x = self.inputs[number % len(self.inputs)].permute(0, 3, 1, 2)
        both = ([conv.stride] * 2, [conv.padding] * 2, [conv.dilation] * 2)
        torch.ops.aten.cudnn_convolution_relu(x, self.weights, self.bias.bfloat16(), *both, 1)

    def error(self) -> float:
        """||y - y64|| / ||y64|| of the library; NaN counts as infinite."""
        import torch

        conv = self.conv
        x = self.inputs[0].permute(0, 3, 1, 2).double()
        y = torch.nn.functional.conv2d(
            x, self.weights.double(), self.bias.double(), conv.stride, conv.padding, conv.dilation
        )
        expected = y.relu().permute(0, 2, 3, 1)
        return error_of(self.results[0], expected, self.mlc)


def _array(tensor: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.to_array(tensor).copy()


def compile_convolutions(convolutions: list[Convolution], folder: Path) -> None:
    """Writes their libraries."""
    for conv in convolutions:
        compile_to(convolution_model(conv), folder / f"{conv.name}.so", "bf16")
        print(conv.name, flush=True)


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    compile_convolutions(convolutions(), folder)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks and times every convolution."""
    rows = []
    for conv in convolutions():
        gc.collect()
        needed = 2 * conv.images * (conv.size**2 * conv.channels + conv.out**2 * conv.filters)
        run = ConvolutionRun(folder, conv, sets_of(needed, 8))
        rows.append(timed(conv.name, run, conv.flops))
        del run
    return rows
