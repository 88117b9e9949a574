#!/usr/bin/env python3
"""Libraries for NVIDIA GPUs against PyTorch: compiled on one machine, run on another that has the GPU.

    python bench/gpu.py compile FOLDER [PART…] [--model NAME=FILE.onnx]   # where the compiler is
    python bench/gpu.py run FOLDER [PART…]                                # where GPU and PyTorch are; mlc needs NumPy

Parts: `check` (many small products and convolutions: right or wrong), `gemm` (products of matrices against
torch.matmul), `conv` (convolutions with channels last against torch's), `models`.
A model's library has its weights outside; `run` makes random ones of the same seed for each precision and compares
results with those of the same model in fp32, which another template computes. Times are medians of replays of
CUDA graphs, the engines in turn; inputs are normal random numbers, several sets of them where one would stay in the
cache; outputs are poisoned, and products compared with float64.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HOST = "x86-64-v3"  # the machine with the GPU may be an older one
CACHE = 150_000_000  # bytes that no cache holds
ROUNDS = 9
PATIENCE = 20.0  # seconds after which a launch counts as hanging
PARTS = ("check", "gemm", "conv", "models")


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


def checks() -> list[Product]:
    """Products whose extents are no multiples of anything, in every order and type."""
    found = []
    for dtype in ("bfloat16", "float16"):
        for turned_left in (False, True):
            for turned_right in (False, True):
                found.append(Product(200, 328, 120, dtype, turned_left, turned_right))
    found += [Product(m, n, k) for m, n, k in ((1, 512, 768), (7, 64, 64), (130, 1000, 264), (1000, 24, 4096))]
    found += [Product(100, 200, 1000), Product(33, 520, 4104, "float16"), Product(5, 2048, 2048, turned_right=True)]
    found += [Product(257, 136, 72, batch=5), Product(64, 256, 128, turned_right=True, batch=3)]
    found += [Product(200, 328, 120, "float32", turned_right=True, precision="tf32")]
    found += [Product(300, 521, 88), Product(300, 520, 88, epilogue="gelu"), Product(4096, 1024, 512, epilogue="gelu")]
    return found


def products() -> list[Product]:
    """The shapes that are timed."""
    sizes = [
        (8192, 8192, 8192), (4096, 4096, 4096), (1024, 4096, 4096), (128, 4096, 4096), (4096, 768, 768),
        (4096, 3072, 768), (4096, 768, 3072), (6304, 3072, 768), (512, 8192, 2048), (128, 768, 768),
        (128, 3072, 768), (128, 768, 3072),
    ]  # fmt: skip
    found = [Product(m, n, k, turned_right=turned) for m, n, k in sizes for turned in (False, True)]
    found += [Product(4096, 3072, 768, epilogue="gelu"), Product(1, 8192, 2048), Product(16, 4096, 4096)]
    found += [Product(4096, 4096, 4096, "float16")]
    found += [
        Product(m, n, k, "float32", turned_right=True, precision="tf32") for m, n, k in ((4096,) * 3, (128, 768, 768))
    ]
    return found


def odd_convolutions() -> list[Convolution]:
    """Convolutions with edges everywhere."""
    return [
        Convolution(2, 9, 24, 40, 3), Convolution(3, 17, 64, 72, 3, stride=2), Convolution(2, 15, 136, 64, 5),
        Convolution(1, 20, 64, 64, 3, dilation=2), Convolution(5, 14, 32, 48, 1, stride=2),
    ]  # fmt: skip


def convolutions() -> list[Convolution]:
    """The shapes of ResNet-50 that are timed."""
    sizes = [(56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 256, 3), (7, 512, 512, 3), (56, 64, 256, 1),
             (14, 1024, 256, 1)]  # fmt: skip
    found = [Convolution(n, *size) for size in sizes for n in (1, 32)]
    return [*found, Convolution(32, 56, 128, 128, 3, stride=2), Convolution(32, 56, 256, 512, 1, stride=2)]


# --- Where the compiler is --------------------------------------------------------------------------------------------


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


def compile_all(folder: Path, parts: Sequence[str], models: dict[str, Path]) -> None:
    """Writes the libraries of all parts."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [p for part, group in (("check", checks()), ("gemm", products())) if part in parts for p in group]
    for product in dict.fromkeys(chosen):
        _compile(product_model(product), folder / f"{product.name}.so", product.precision, "embed")
        print(product.name, flush=True)
    windows = [c for part, group in (("check", odd_convolutions()), ("conv", convolutions())) if part in parts
               for c in group]  # fmt: skip
    for conv in windows:
        _compile(convolution_model(conv), folder / f"{conv.name}.so", "bf16", "embed")
        print(conv.name, flush=True)
    for name, path in models.items() if "models" in parts else ():
        for precision in ("fp32", "bf16", "tf32"):
            _compile(path, folder / f"{name}.{precision}.so", precision, "external")
            (folder / f"{name}.{precision}.safetensors").unlink()  # `run` makes its own
            print(name, precision, flush=True)


def _compile(source: Any, output: Path, precision: str, weights: str) -> None:
    from mlc.compilation import Compilation
    from mlc.driver import make_options

    options = make_options(target="cuda", cpu=HOST, precision=precision, weights=weights)
    Compilation(options).run(source, output)


# --- Where the GPU is -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Time:
    """Microseconds of one run: median, least and most over the rounds."""

    median: float
    least: float
    most: float


def wait() -> None:
    """Waits for the GPU; a process whose kernel hangs ends here."""
    import os

    import torch

    event = torch.cuda.Event()
    event.record()
    began = time.monotonic()
    while not event.query():
        if time.monotonic() - began > PATIENCE:
            print("HANG", flush=True)
            os._exit(7)
        time.sleep(0.001)


def captured(work: Callable[[int], None], repeats: int) -> Any:
    """A CUDA graph of `repeats` runs."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for number in range(3):
            work(number)
    gc.collect()  # memory that is freed while a stream is captured spoils the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for number in range(repeats):
            work(number)
    return graph


def measure(engines: dict[str, Callable[[int], None]], repeats: int) -> dict[str, Time]:
    """The times of all engines, replayed in turn."""
    import torch

    graphs = {name: captured(work, repeats) for name, work in engines.items()}
    for graph in graphs.values():
        graph.replay()
        wait()
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / repeats)
    return {n: Time(statistics.median(t), min(t), max(t)) for n, t in times.items()}


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
        self.results[0].fill_(float("nan"))
        self.mlc(0)
        wait()
        error = ((self.results[0].double() - expected).norm() / expected.norm()).item()
        return math.inf if math.isnan(error) else error


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
        self.results[0].fill_(float("nan"))
        self.mlc(0)
        wait()
        error = ((self.results[0].double() - expected).norm() / expected.norm()).item()
        return math.inf if math.isnan(error) else error


def _array(tensor: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.to_array(tensor).copy()


def run_checks(folder: Path) -> bool:
    """Checks every product; whether all are right."""
    right = True
    for product in checks():
        error = ProductRun(folder, product, 1).error()
        is_right = error < (1e-3 if product.dtype != "bfloat16" else 5e-3)
        right = right and is_right
        print(f"{'right' if is_right else 'WRONG'} {product.name:48s} {error:.1e}", flush=True)
    for conv in odd_convolutions():
        error = ConvolutionRun(folder, conv, 1).error()
        right = right and error < 5e-3
        print(f"{'right' if error < 5e-3 else 'WRONG'} {conv.name:48s} {error:.1e}", flush=True)
    return right


def run_convolutions(folder: Path) -> list[dict[str, Any]]:
    """Times every convolution."""
    rows = []
    for conv in convolutions():
        run = None
        gc.collect()
        needed = 2 * conv.images * (conv.size**2 * conv.channels + conv.out**2 * conv.filters)
        run = ConvolutionRun(folder, conv, max(1, min(8, CACHE // needed + 1)))
        rows.append(timed(conv.name, run, conv.flops))
    return rows


def timed(name: str, run: Any, flops: int) -> dict[str, Any]:
    """A row of the report: the check, and the times of the library and of torch."""
    error, repeats = run.error(), max(4, min(60, int(4e-3 * 700e12 / flops)))
    times = measure({"mlc": run.mlc, "torch": run.torch}, repeats)
    ratio = times["torch"].median / times["mlc"].median
    rate = flops / times["mlc"].median / 1e6
    own, peer = (f"{engine} {times[engine].median:9.2f} us" for engine in ("mlc", "torch"))
    print(f"{name:44s} {own} {rate:6.1f} TF  {peer}  x{ratio:5.3f}  err {error:.1e}", flush=True)
    return {"name": name, "error": error, **{n: asdict(t) for n, t in times.items()}}


def run_products(folder: Path) -> list[dict[str, Any]]:
    """Times every product."""
    rows = []
    for product in products():
        size = 4 if product.dtype == "float32" else 2
        needed = size * sum(math.prod(s) for s in product.shapes) + size * product.rows * product.columns
        run = None
        gc.collect()
        run = ProductRun(folder, product, max(1, min(24, CACHE // needed + 1)))
        rows.append(timed(product.name, run, product.flops))
    return rows


def run_models(folder: Path) -> list[dict[str, Any]]:
    """Times every model in bf16, and compares its results with those in fp32."""
    rows = []
    for path in sorted(folder.glob("*.bf16.so")):
        name = path.name.removesuffix(".bf16.so")
        runs = {p: ModelRun(folder / f"{name}.{p}.so") for p in ("fp32", "bf16", "tf32")}
        for run in runs.values():
            run.run(0)
        wait()
        errors = {p: _difference(runs["fp32"].results, runs[p].results) for p in ("bf16", "tf32")}
        times = measure({p: run.run for p, run in runs.items()}, 4)
        shown = "  ".join(f"{p} {t.median / 1e3:.3f} ms" for p, t in times.items())
        print(f"{name:24s} {shown}  difference {errors}", flush=True)
        print(runs["bf16"].profile(), flush=True)
        rows.append({"name": name, "difference": errors, **{p: asdict(t) for p, t in times.items()}})
    return rows


def _difference(exact: Sequence[Any], rounded: Sequence[Any]) -> float:
    """The largest ||a - b|| / ||a|| over the results."""
    pairs = zip(exact, rounded, strict=True)
    return max(((a.double() - b.double()).norm() / a.double().norm()).item() for a, b in pairs)


class ModelRun:
    """A model with random weights on the GPU, with inputs and results there."""

    def __init__(self, library: Path) -> None:
        import torch

        from mlc.runtime.loader import load

        weights = library.with_suffix(".safetensors")
        if not weights.exists():
            command = [sys.executable, "-m", "mlc.cli.run", str(library), "--init-weights", "0"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.model = load(library, verify_weights=False)
        torch.manual_seed(0)
        self.inputs = [self._tensor(info) for info in self.model.inputs]
        self.context = self.model.context()
        self.results = [
            torch.full(info.dims, float("nan"), device="cuda", dtype=getattr(torch, info.dtype))
            for info in self.model.outputs
        ]

    @staticmethod
    def _tensor(info: Any) -> Any:
        import torch

        kind = getattr(torch, info.dtype)
        if kind.is_floating_point:
            return torch.randn(info.dims, device="cuda").to(kind)
        return torch.randint(0, 2 if "mask" in info.name or "type" in info.name else 1000, info.dims, device="cuda",
                             dtype=kind)  # fmt: skip

    def run(self, _: int) -> None:
        """One run."""
        import torch

        self.context.run(self.inputs, out=self.results, stream=torch.cuda.current_stream().cuda_stream)

    def profile(self, most: int = 14) -> str:
        """The kernels that take longest, by a context that times every launch."""
        with self.model.context(profile=True) as context:
            for _ in range(3):
                context.run(self.inputs, out=self.results)
            kernels = context.profile()["kernels"]
        kernels.sort(key=lambda k: -k["ns"])
        lines = []
        for kernel in kernels[:most]:
            each = kernel["ns"] / kernel["calls"] / 1e3
            lines.append(f"  {kernel['name']:8s} {kernel['template']:20s} {kernel['calls']:5d} x {each:8.2f} us")
        return "\n".join(lines)


def main() -> None:
    """Compiles or runs; ends with status 1 when a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("compile", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=f"some of {', '.join(PARTS)} [all]")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE", help="an ONNX file to compile")
    options = parser.parse_args()
    parts = options.parts or list(PARTS)
    if options.action == "compile":
        models = dict(text.split("=", 1) for text in options.model)
        compile_all(options.folder, parts, {name: Path(path) for name, path in models.items()})
        return
    right = run_checks(options.folder) if "check" in parts else True
    report: dict[str, Any] = {}
    if "gemm" in parts:
        report["gemm"] = run_products(options.folder)
    if "conv" in parts:
        report["conv"] = run_convolutions(options.folder)
    if "models" in parts:
        report["models"] = run_models(options.folder)
    (options.folder / "report.json").write_text(json.dumps(report, indent=1))
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
