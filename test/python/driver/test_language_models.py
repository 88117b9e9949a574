"""A Llama as ONNX: right on the CPU, and in few kernels on the GPU. Decoders as onnxruntime's model builder writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from models.genai import Decoder, decoder
from models.llama import Llama, llama, random_weights

from mlc.compilation import Compilation
from mlc.options import make_options
from mlc.runtime import InputError
from mlc.runtime.loader import load

SMALL = Llama(layers=2, width=64, heads=4, groups=2, depth=16, inner=96, words=100, dtype="float32")


@pytest.mark.parametrize(("tokens", "cache"), [(12, 0), (1, 20), (3, 20)])
def test_results_are_those_of_onnxruntime(tmp_path: Path, tokens: int, cache: int) -> None:
    """Prefill, a decoding step, and one of several tokens."""
    model = llama(SMALL, tokens, cache, random_weights(SMALL).__getitem__)
    session, rng = onnxruntime.InferenceSession(model.SerializeToString()), np.random.default_rng(tokens)
    inputs = {}
    for info in session.get_inputs():
        if info.name == "ids":
            inputs[info.name] = rng.integers(0, SMALL.words, info.shape)
        elif info.name == "position":
            inputs[info.name] = np.array([7])
        else:
            inputs[info.name] = rng.standard_normal(info.shape, np.float32)
    Compilation(make_options()).run(model, tmp_path / "m.so")
    library = load(tmp_path / "m.so")
    assert [o.shares for o in library.outputs if cache and o.name != "logits"] == [n for n in inputs if "past" in n]
    results = library.context().run([inputs[i.name] for i in library.inputs])
    for info, expected in zip(session.get_outputs(), session.run(None, inputs), strict=True):
        np.testing.assert_allclose(results[info.name], expected, rtol=0, atol=3e-6, err_msg=info.name)


def test_gpus_have_few_kernels_a_layer(tmp_path: Path) -> None:
    """A decoding step: no copies of heads or of halves, no scatter, and heads that share keys are one matrix."""
    sizes = Llama(layers=3, width=256, heads=8, groups=2, depth=64, inner=512, words=512)
    model = llama(sizes, 1, 1024, random_weights(sizes).__getitem__)
    options = make_options(target="cuda", emit="nvvm", report=str(tmp_path / "report.json"))
    Compilation(options).run(model, tmp_path / "m.mlir")
    kernels = json.loads((tmp_path / "report.json").read_text())["kernels"]
    assert not [k for k in kernels if k["template"] in ("scatter_elements", "transpose")]
    assert sum(k["launches"] for k in kernels) <= 3 * 15 + 8


FEW = Decoder(layers=2, width=512, heads=8, groups=2, depth=64, inner=1024, words=1000, longest=256)
DECODERS = {
    "floats": replace(FEW, accuracy_level=0),
    "packed": replace(FEW, accuracy_level=0, packed=True, symmetric=False),
    "blocks": replace(FEW, accuracy_level=1, block=128),
    "codes": FEW,
}


@pytest.mark.parametrize("name", DECODERS)
def test_decoders_of_the_model_builder(tmp_path: Path, name: str) -> None:
    """One library begins a text, goes on with a token and with several, for two rows as well. Where the products are of
    codes, results differ as a rounding that falls the other way makes them differ."""
    model = decoder(DECODERS[name])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    Compilation(make_options()).run(model, tmp_path / "m.so")
    library = load(tmp_path / "m.so")
    assert sum(k["template"] == "scaled_blocks" for k in library.metadata["kernels"]) >= 3
    atol = 0.15 if name == "codes" else 2e-4
    for batch, past, tokens in [(1, 0, 9), (1, 9, 1), (2, 5, 1), (1, 30, 14), (2, 0, 40)]:
        extents = {"batch": batch, "past": past, "tokens": tokens, "total": past + tokens}
        rng, inputs = np.random.default_rng(past + tokens), {}
        for info in session.get_inputs():
            shape = [extents.get(extent, extent) for extent in info.shape]
            if info.name == "input_ids":
                inputs[info.name] = rng.integers(0, FEW.words, shape)
            elif info.name == "attention_mask":
                inputs[info.name] = np.ones(shape, np.int64)
            else:
                inputs[info.name] = rng.standard_normal(shape, np.float32)
        results = library.context().run([inputs[i.name] for i in library.inputs])
        for info, expected in zip(session.get_outputs(), session.run(None, inputs), strict=True):
            np.testing.assert_allclose(results[info.name], expected, rtol=0, atol=atol, err_msg=f"{info.name} {extents}")


@pytest.mark.parametrize("batch", [1, 2])
def test_caches_are_continued_in_place(tmp_path: Path, batch: int) -> None:
    """A text, several tokens and single ones in buffers of a fixed length, which are inputs and outputs (as
    onnxruntime-genai does it), and the same with caches that grow."""
    room, sizes = 40, replace(DECODERS["floats"], layers=2)
    model, rng = decoder(sizes), np.random.default_rng(batch)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    Compilation(make_options()).run(model, tmp_path / "m.so")
    library = load(tmp_path / "m.so", threads=2)
    context = library.context()
    shared = {o.name: o.shares for o in library.outputs if o.shares}
    assert len(shared) == 2 * sizes.layers
    buffers = {name: np.zeros((batch, sizes.groups, room, sizes.depth), np.float32) for name in shared.values()}
    grown = {name: buffer[:, :, :0].copy() for name, buffer in buffers.items()}
    state = library.state({name: buffer.copy() for name, buffer in buffers.items()})
    total = 0
    several = () if batch > 1 else (5, 1, room - 17)  # onnxruntime takes more than one of a single text only
    for tokens in (9, 1, 1, *several):
        total += tokens
        given = {
            "input_ids": rng.integers(0, sizes.words, (batch, tokens)),
            "attention_mask": np.ones((batch, total), np.int64),
        }
        out = {name: buffers[past] for name, past in shared.items()}
        results = context.run(given | buffers, out=out)
        wanted = dict(zip([o.name for o in session.get_outputs()], session.run(None, given | grown), strict=True))
        growing = context.run(given | grown)
        for name in wanted:
            used = results[name][:, :, :total] if name in shared else results[name]
            np.testing.assert_allclose(used, wanted[name], rtol=0, atol=2e-4, err_msg=f"{name} {total}")
            np.testing.assert_allclose(growing[name], wanted[name], rtol=0, atol=2e-4, err_msg=f"{name} {total}")
        assert all(results[name] is buffers[past] for name, past in shared.items())
        np.testing.assert_array_equal(state.run(given)["logits"], results["logits"])
        grown = {past: wanted[name] for name, past in shared.items()}
    with pytest.raises(InputError, match="the given buffer is"):  # there is no room for one more
        more = {"input_ids": given["input_ids"][:, :1], "attention_mask": np.ones((batch, room + 1), np.int64)}
        context.run(more | buffers, out=out)


def test_verifying_knows_that_rows_may_be_rounded(tmp_path: Path) -> None:
    Compilation(make_options(verify=2)).run(decoder(FEW), tmp_path / "m.so")
    assert (tmp_path / "m.so").exists()
