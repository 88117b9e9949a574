"""Imports every operator family, which registers their importers."""

from __future__ import annotations

import importlib

FAMILIES = (
    "attention",
    "contrib_attention",
    "contrib_elementwise",
    "contrib_linalg",
    "contrib_normalization",
    "contrib_quantization",
    "contrib_recurrent",
    "contrib_experts",
    "contrib_state",
    "control_flow",
    "conv",
    "elementwise",
    "indexing",
    "linalg",
    "ml",
    "ml_maps",
    "ml_vectors",
    "normalization",
    "pool",
    "quantization",
    "random",
    "recurrent",
    "reduction",
    "sequence",
    "shape",
    "signal",
    "text",
    "training",
    "vision",
)

for _family in FAMILIES:
    importlib.import_module(f"mlc.frontends.onnx.{_family}")
