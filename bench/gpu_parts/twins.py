"""Models of PyTorch packages as peers of what is compiled of their ONNX: built here and there, with random weights.

A twin is `NAME_bBATCH`, such as `resnet50_b32`. The machine with the compiler exports it; the machine with the GPU
builds it again, gives its weights to the library, and runs it by PyTorch, eager and compiled. Small vectors become
constants of the library, so those that could differ between two machines come from NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_parts.weights import write_weights

TWINS = ("bert_base", "vit_b_16", "resnet50", "mobilenet_v2")
BATCHES = (1, 32)
TOKENS = 128
MODES = ("eager", "default", "max-autotune")


def twin_names() -> list[str]:
    """All twins."""
    return [f"{name}_b{batch}" for name in TWINS for batch in BATCHES]


def is_twin(name: str) -> bool:
    """Is `name` that of a twin?"""
    return name in twin_names()


def build(name: str) -> tuple[Any, Any]:
    """The module of a twin in f32 on the CPU, and its input."""
    import torch

    model, batch = name.rsplit("_b", 1)
    torch.manual_seed(0)
    if model == "bert_base":
        return _bert(), torch.randint(0, 1000, (int(batch), TOKENS))
    import torchvision

    module = getattr(torchvision.models, model)(weights=None).eval()
    _set_statistics(module)
    return module, torch.randn(int(batch), 3, 224, 224)


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


def export(name: str, path: Path) -> None:
    """Writes the ONNX file of a twin; its weights have the names that the module gives them."""
    import torch

    module, x = build(name)
    with torch.no_grad():
        program = torch.onnx.export(module, (x,), dynamo=True, optimize=False, verbose=False)
    assert program is not None
    program.save(str(path), external_data=True)


def give_weights(module: Any, library: Path) -> None:
    """Writes the weight file of `library` from the twin's weights."""
    tensors = {**module.state_dict(), **dict(module.named_buffers())}
    write_weights(library, {name: value.detach().contiguous().numpy() for name, value in tensors.items()})


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

        module = fuse(module)
    module, x = module.cuda().to(kind), x.cuda()
    if x.dtype.is_floating_point:
        module, x = module.to(memory_format=torch.channels_last), x.to(kind).to(memory_format=torch.channels_last)
    asked = {"default": None, "max-autotune": "max-autotune-no-cudagraphs"}
    work = module if mode == "eager" else torch.compile(module, mode=asked[mode])
    last: list[Any] = []

    def run(_: int) -> None:
        with torch.inference_mode():
            found = work(x)
            last[:] = found if isinstance(found, tuple) else [found]

    return run, last
