"""The part `conv`: convolutions with channels last, bias and ReLU, against cuDNN's."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, error_of, measure, sets_of
from gpu_parts.weights import write_weights


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
    groups: int = 1

    @property
    def name(self) -> str:
        tail = f"s{self.stride}d{self.dilation}" + (f"g{self.groups}" if self.groups > 1 else "")
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
        return 2 * self.images * self.out**2 * self.filters * self.kernel**2 * self.channels // self.groups

    @property
    def bytes(self) -> int:
        """Of input and result."""
        return 2 * self.images * (self.size**2 * self.channels + self.out**2 * self.filters)


BATCHES = (32, 1)


def resnet50() -> list[tuple[int, ...]]:
    """The layers of ResNet-50: size, channels, filters, kernel, stride, dilation and groups."""
    found: list[tuple[int, ...]] = [(224, 3, 64, 7, 2), (56, 64, 64, 1)]
    size, before = 56, 64
    for inner, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        small = size // stride
        found += [(size, before, inner, 1), (size, inner, inner, 3, stride), (small, inner, 4 * inner, 1)]
        found += [(size, before, 4 * inner, 1, stride), (small, 4 * inner, inner, 1), (small, inner, inner, 3)]
        size, before = small, 4 * inner
    return list(dict.fromkeys(tuple((*layer, 1, 1, 1)[:7]) if len(layer) == 4 else (*layer, 1, 1) for layer in found))


def mobilenet_v2() -> list[tuple[int, ...]]:
    """The layers of MobileNetV2, likewise."""
    found: list[tuple[int, ...]] = [(224, 3, 32, 3, 2, 1, 1)]
    size, before = 112, 32
    for factor, after, times, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    ):  # fmt: skip
        for number in range(times):
            wide, stride = factor * before, first if number == 0 else 1
            if factor > 1:
                found.append((size, before, wide, 1, 1, 1, 1))
            found.append((size, wide, wide, 3, stride, 1, wide))
            size, before = size // stride, after
            found.append((size, wide, after, 1, 1, 1, 1))
    return list(dict.fromkeys([*found, (size, before, 1280, 1, 1, 1, 1)]))


def resnext50() -> list[tuple[int, ...]]:
    """The layers in groups of ResNeXt-50 (32 groups of 4 channels and more), likewise."""
    found: list[tuple[int, ...]] = [(56, 128, 128, 3, 1, 1, 32)]
    for size, wide in ((56, 256), (28, 512), (14, 1024)):
        found += [(size, wide, wide, 3, 2, 1, 32), (size // 2, wide, wide, 3, 1, 1, 32)]
    return found


def convolutions() -> list[Convolution]:
    """All layers of the networks, each once."""
    layers = list(dict.fromkeys([*resnet50(), *mobilenet_v2(), *resnext50()]))
    return [Convolution(n, *layer) for n in BATCHES for layer in layers]


def convolution_model(conv: Convolution) -> Any:
    """The ONNX model of a convolution whose input and result have channels last, as the GPU keeps them."""
    import numpy as np
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    shape = (conv.filters, conv.channels // conv.groups, conv.kernel, conv.kernel)
    weights = rng.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))
    constants = [
        numpy_helper.from_array(weights.astype(np.float32), "w"),
        numpy_helper.from_array(rng.standard_normal(conv.filters).astype(np.float32), "bias"),
    ]
    both = {"strides": [conv.stride] * 2, "dilations": [conv.dilation] * 2, "pads": [conv.padding] * 4,
            "group": conv.groups}  # fmt: skip
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
        self.last: Any = None
        model = convolution_model(conv)
        weights, bias = (torch.from_numpy(_array(t)).cuda() for t in model.graph.initializer)
        self.weights = weights.bfloat16().to(memory_format=torch.channels_last)
        self.bias, self.narrow = bias, bias.bfloat16()
        torch.manual_seed(0)
        shape = (conv.images, conv.size, conv.size, conv.channels)
        self.inputs = [torch.randn(shape, device="cuda").bfloat16() for _ in range(sets)]
        out = (conv.images, conv.out, conv.out, conv.filters)
        self.results = [torch.empty(out, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
        library = folder / f"{conv.name}.so"
        if not library.with_suffix(".safetensors").exists():
            write_weights(library, {t.name: _array(t) for t in model.graph.initializer})
        self.context = load(library, verify_weights=False).context()
        torch.backends.cudnn.benchmark = True

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
        torch.ops.aten.cudnn_convolution_relu(x, self.weights, self.narrow, *both, conv.groups)

    def fused(self) -> dict[str, Callable[[int], None]]:
        """cuDNN's engine by name, where it takes the convolution."""
        try:
            self.torch(0)
        except RuntimeError:
            return {}
        return {"fused": self.torch}

    def plain(self, number: int) -> None:
        """PyTorch's convolution with bias; the ReLU is a kernel of its own."""
        import torch

        conv = self.conv
        x = self.inputs[number % len(self.inputs)].permute(0, 3, 1, 2)
        both = (conv.stride, conv.padding, conv.dilation, conv.groups)
        torch.nn.functional.conv2d(x, self.weights, self.narrow, *both).relu_()

    def compiled(self, mode: str) -> Callable[[int], None]:
        """PyTorch's convolution with bias and ReLU, compiled in `mode`."""
        import torch

        conv = self.conv
        both = (conv.stride, conv.padding, conv.dilation, conv.groups)

        def whole(x: Any, weights: Any, bias: Any) -> Any:
            return torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), weights, bias, *both).relu()

        torch._dynamo.config.recompile_limit = 64  # the function is the same one for every layer
        found = torch.compile(whole, mode=mode, dynamic=False)

        def run(number: int) -> None:
            self.last = found(self.inputs[number % len(self.inputs)], self.weights, self.narrow)

        run(0)
        return run

    def error(self) -> float:
        """||y - y64|| / ||y64|| of the library; NaN counts as infinite."""
        import torch

        conv = self.conv
        x = self.inputs[0].permute(0, 3, 1, 2).double()
        y = torch.nn.functional.conv2d(
            x, self.weights.double(), self.bias.double(), conv.stride, conv.padding, conv.dilation, conv.groups
        )
        expected = y.relu().permute(0, 2, 3, 1)
        return error_of(self.results[0], expected, self.mlc)


def _array(tensor: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.to_array(tensor).copy()


def compile_convolutions(convolutions: list[Convolution], folder: Path) -> None:
    """Writes their libraries."""
    for conv in convolutions:
        library = folder / f"{conv.name}.so"
        compile_to(convolution_model(conv), library, "bf16", "external")
        library.with_suffix(".safetensors").unlink()
        print(conv.name, flush=True)


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    compile_convolutions(convolutions(), folder)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks and times every convolution."""
    rows = []
    for conv in convolutions():
        gc.collect()
        rows.append(run_one(folder, conv))
    ratios = [row["ratio"] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.3f}, least {min(ratios):.3f}", flush=True)
    return rows


def run_one(folder: Path, conv: Convolution) -> dict[str, Any]:
    """Checks and times a convolution, against the faster of cuDNN's fused one and PyTorch's with a ReLU behind it."""
    return _timed(prepared(folder, conv), {})


def prepared(folder: Path, conv: Convolution) -> ConvolutionRun:
    """A convolution on the GPU, with as many sets of inputs as no cache holds."""
    return ConvolutionRun(folder, conv, sets_of(conv.bytes, 8))


def run_searched(
    folder: Path, chosen: Sequence[Convolution], mode: str, ready: Callable[[], None]
) -> list[dict[str, Any]]:
    """The same, and against PyTorch's compiler in `mode`; `ready` is called when all that is timed is compiled."""
    runs = [prepared(folder, conv) for conv in chosen]
    searched = [run.compiled(mode) for run in runs]
    ready()
    return [_timed(run, {mode: peer}) for run, peer in zip(runs, searched, strict=True)]


def _timed(run: ConvolutionRun, more: dict[str, Callable[[int], None]]) -> dict[str, Any]:
    conv = run.conv
    error, repeats = run.error(), max(4, min(40, int(1e9 / conv.bytes)))
    times = measure({"mlc": run.mlc, "plain": run.plain, **run.fused(), **more}, repeats)
    ratio = min(time.median for engine, time in times.items() if engine != "mlc") / times["mlc"].median
    shown = "  ".join(f"{engine} {time.median:8.2f}" for engine, time in times.items())
    print(f"{conv.name:36s} {shown} us  x{ratio:5.3f}  err {error:.1e}", flush=True)
    row = {"name": conv.name, "error": error, "right": error < 5e-3, "ratio": ratio}
    return {**row, **{name: asdict(time) for name, time in times.items()}}
