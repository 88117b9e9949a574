"""Models of PyTorch packages as peers of what is compiled of their ONNX: built here and there, with random weights.

A twin is `NAME_bBATCH`, such as `resnet50_b32`, or `PACKAGE@NAME_bBATCH` of any of `bench/architectures.py`. The
machine with the compiler exports it; the machine with the GPU builds it again, gives its weights to the library, and
runs it by PyTorch, eager and compiled. Small vectors become constants of the library, so those that could differ
between two machines come from NumPy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_parts.weights import write_weights

TWINS = ("bert_base", "vit_b_16", "resnet50", "mobilenet_v2")
BATCHES = (1, 32)
TOKENS = 128
AT = "@"  # between package and architecture in the name of a twin that is no one of these
LEAST_WEIGHT, MOST_CONSTANT = 64, 4096  # elements of what travels apart from a library, and of what may be part of it
MODES = ("eager", "default", "max-autotune")


def twin_names() -> list[str]:
    """All twins."""
    return [f"{name}_b{batch}" for name in TWINS for batch in BATCHES]


def is_twin(name: str) -> bool:
    """Is `name` that of a twin?"""
    return name in twin_names() or AT in name


def build(name: str) -> tuple[Any, Any]:
    """The module of a twin in f32 on the CPU, and its input. Raises ValueError for a model of several inputs."""
    import torch

    model, batch = name.rsplit("_b", 1)
    torch.manual_seed(0)
    if AT in name:
        return _architecture(model.replace(AT, "/"), int(batch))
    if model == "bert_base":
        return _bert(), torch.randint(0, 1000, (int(batch), TOKENS))
    import torchvision

    module = getattr(torchvision.models, model)(weights=None).eval()
    _set_statistics(module)
    return module, torch.randn(int(batch), 3, 224, 224)


def _architecture(name: str, batch: int) -> tuple[Any, Any]:
    """A model of `bench/architectures.py` and `batch` inputs for it."""
    import torch
    from architectures import first_result, make

    module, inputs = make(name)
    if len(inputs) != 1:
        raise ValueError(f"{name} has {len(inputs)} inputs")
    shape = (batch, *inputs[0].shape[1:])
    x = torch.randn(shape) if inputs[0].dtype.is_floating_point else torch.randint(0, 1000, shape)
    _set_statistics(module)
    _set_vectors(module)
    return (module if name.startswith(("timm/", "torchvision/")) else first_result(module)).eval(), x


def _set_vectors(module: Any) -> None:
    """Draws what is random in small tensors, the constants of a library."""
    import numpy as np
    import torch

    for name, tensor in module.named_parameters():
        if tensor.numel() <= MOST_CONSTANT and tensor.is_floating_point() and tensor.min() != tensor.max():
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            values = float(tensor.mean()) + float(tensor.std()) * rng.standard_normal(tensor.shape)
            tensor.data.copy_(torch.from_numpy(values))


def _bert() -> Any:
    import torch
    from transformers import BertConfig, BertModel
    from transformers.models.bert import modeling_bert

    # Nothing is hidden, which a traced model would say by a mask that the eager one does without.
    modeling_bert.create_bidirectional_mask = lambda **_: None

    class FromTokens(torch.nn.Module):
        """The model with its tokens as the only input."""

        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel(BertConfig())

        def forward(self, tokens: Any) -> Any:
            return self.model(tokens, return_dict=False)

    return FromTokens().eval()


def _set_statistics(module: Any) -> None:
    """Batch norms and last layers that do something."""
    import numpy as np
    import torch

    rng = np.random.default_rng(0)
    for part in module.modules():
        if isinstance(part, torch.nn.Linear) and not part.weight.any():
            torch.nn.init.normal_(part.weight, std=part.in_features**-0.5)
        if isinstance(part, torch.nn.BatchNorm2d):
            mean, variance = part.running_mean, part.running_var
            ranges = ((part.weight, 0.5, 1.0), (part.bias, -0.2, 0.2), (mean, -0.2, 0.2), (variance, 0.5, 1.5))
            for tensor, low, high in ranges:
                tensor.data.copy_(torch.from_numpy(rng.uniform(low, high, tensor.shape)))


def export(name: str, path: Path) -> tuple[Any, Any]:
    """Writes the ONNX file of a twin, whose weights have the names that the module gives them. Returns the module and
    its input."""
    import torch

    module, x = build(name)
    with torch.no_grad():
        program = torch.onnx.export(module, (x,), dynamo=True, optimize=False, verbose=False)
    assert program is not None
    program.save(str(path), external_data=True)
    return module, x


def save_constants(module: Any, path: Path, library: Path) -> None:
    """Writes what the ONNX file of a twin has beside the module's weights: positions that its exporter has computed."""
    import numpy as np
    import onnx

    model = onnx.load(path, load_external_data=False)
    known, found = {*module.state_dict(), *dict(module.named_buffers())}, {}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    for tensor in model.graph.initializer:
        if tensor.name not in known:
            found[tensor.name] = onnx.numpy_helper.to_array(tensor, str(path.parent))
    np.savez_compressed(library.with_suffix(".npz"), **{k: v for k, v in found.items() if v.size > LEAST_WEIGHT})


def give_weights(module: Any, library: Path) -> None:
    """Writes the weight file of `library` from the twin's weights."""
    import numpy as np

    tensors = {**module.state_dict(), **dict(module.named_buffers())}
    arrays = {name: value.detach().contiguous().numpy() for name, value in tensors.items()}
    beside = library.with_suffix(".npz")
    write_weights(library, {**arrays, **(dict(np.load(beside)) if beside.exists() else {})})


def engine(module: Any, x: Any, precision: str, mode: str) -> tuple[Callable[[int], None], list[Any]]:
    """Runs of a twin by PyTorch on the GPU, and a list that holds the results of the last one.

    Compiled modules are captured into the graph that is timed: the kernels of `reduce-overhead` and `max-autotune`
    without the copies of inputs that these make. Batch norms are part of the convolutions, and channels are last.
    """
    import torch

    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    if any(isinstance(part, torch.nn.BatchNorm2d) for part in module.modules()):
        from torch.fx.experimental.optimization import fuse

        try:
            module = fuse(module)
        except Exception as error:  # a module that cannot be traced, for one
            print(f"batch norms stay by themselves: {type(error).__name__}", flush=True)
    module, x = module.cuda().to(kind), x.cuda()
    if x.dtype.is_floating_point:
        module, x = module.to(memory_format=torch.channels_last), x.to(kind)
        x = x.to(memory_format=torch.channels_last) if x.dim() == 4 else x
    asked = {"default": None, "max-autotune": "max-autotune-no-cudagraphs"}
    work = module if mode == "eager" else torch.compile(module, mode=asked[mode])
    last: list[Any] = []

    def run(_: int) -> None:
        with torch.inference_mode():
            found = work(x)
            found = tuple(found.values()) if isinstance(found, dict) else found
            last[:] = found if isinstance(found, tuple) else [found]

    return run, last
