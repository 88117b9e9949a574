#!/usr/bin/env python3
"""Whole models with drawn weights, made from the architectures of other packages, as ONNX files.

    python bench/architectures.py --list                             # every name
    python bench/architectures.py torchvision/swin_t swin_t.onnx     # exports one

Names are `package/architecture`: all of `timm`, those of `torchvision` that classify or segment images, the ones of
`transformers` in `transformer_models.py`, most of them some layers at their usual width, and those of `diffusers`,
`monai`, `segmentation_models_pytorch`, `ultralytics` and `x_transformers` in `library_models.py`. Weights are those of
a new model, but statistics of batch normalizations are drawn, so that nothing is multiplied with one. Shapes are fixed,
the batch is one.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from library_models import LIBRARIES, Drawn
from transformer_models import IMAGE, TOKENS, TRANSFORMERS, WORDS

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


def names() -> list[str]:
    """Every architecture of the packages that are installed, in order."""
    found = []
    for package, (listed, _) in _packages().items():
        if importlib.util.find_spec(package):
            found += [f"{package}/{name}" for name in listed()]
        else:
            print(f"{package} is not installed: pip install {package}", file=sys.stderr)
    return found


def _packages() -> dict[str, tuple[Callable[[], Sequence[str]], Callable[[str], Drawn]]]:
    """By the name of a package: what lists its architectures, and what makes one."""
    return {
        "timm": (_timm_names, _timm),
        "torchvision": (_torchvision_names, _torchvision),
        "transformers": (lambda: sorted(TRANSFORMERS), _own),
        **LIBRARIES,
    }


def _timm_names() -> list[str]:
    import timm

    return list(timm.list_models())


def _torchvision_names() -> list[str]:
    from torchvision import models

    return [*models.list_models(module=models), *models.list_models(module=models.segmentation)]


# --- Making ---------------------------------------------------------------------------------------------------------


def make(name: str) -> Drawn:
    """The model of a name, and inputs for it. Raises KeyError when there is none, ImportError without its package."""
    import torch

    package, _, architecture = name.partition("/")
    if package not in _packages() or not architecture:
        raise KeyError(name)
    _, maker = _packages()[package]
    torch.manual_seed(0)
    model, inputs = maker(architecture)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d) and module.running_var is not None:
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
    return model.eval(), inputs


def _timm(name: str) -> Drawn:
    import timm
    import torch

    if not timm.is_model(name):
        raise KeyError(name)
    model = timm.create_model(name, pretrained=False, exportable=True)
    return model, (torch.randn(1, *model.pretrained_cfg["input_size"]),)


def _torchvision(name: str) -> Drawn:
    import torch
    from torchvision import models

    if name not in _torchvision_names():
        raise KeyError(name)
    weights = {"weights_backbone": None} if name in models.list_models(module=models.segmentation) else {}
    return models.get_model(name, weights=None, **weights), (torch.randn(IMAGE),)


def _own(name: str) -> Drawn:
    import torch
    import transformers

    kind, fields, shape = TRANSFORMERS[name]
    if kind == "WhisperEncoder":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder

        return WhisperEncoder(transformers.WhisperConfig(**fields)), (torch.randn(shape),)
    model = getattr(transformers, kind)
    inputs = torch.randn(shape) if shape else torch.randint(0, WORDS, (1, TOKENS))
    config = model.config_class(**fields)
    config.use_cache = False
    return model(config), (inputs,)


def first_result(model: Module) -> Module:
    """`model` with the first of its results only: logits, an image, the last layer's states."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Tensor) -> Any:
            results = self.model(*inputs)
            while not isinstance(results, torch.Tensor):
                results = next(iter(results.values() if isinstance(results, dict) else results))
            return results

    return First()


def export(name: str, path: Path) -> None:
    """Writes the ONNX file of a name. Raises KeyError, ImportError, and what `torch.onnx` raises."""
    import torch

    model, inputs = make(name)
    model = model if name.startswith("timm/") else first_result(model)
    with torch.no_grad():  # with gradients attention has other strides, which some exports stumble over
        torch.onnx.export(model, inputs, path, dynamo=True, verbose=False, external_data=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="package/architecture")
    parser.add_argument("output", nargs="?", type=Path, metavar="OUT.onnx")
    parser.add_argument("--list", action="store_true", help="print every name")
    options = parser.parse_args()
    if options.list:
        print(*names(), sep="\n")
        return 0
    if options.name is None or options.output is None:
        parser.error("a name and an .onnx file to write, or --list")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    try:
        export(options.name, options.output)
    except KeyError as error:
        print(f"there is no architecture {error}: --list shows them", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"{options.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
