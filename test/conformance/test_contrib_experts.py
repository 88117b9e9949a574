"""Mixtures of experts of onnxruntime's domain: one library for any number of tokens, compared with float64 NumPy, and
with onnxruntime where it has the form on CPUs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.frontends.report import ModelError
from mlc.runtime.errors import MlcError

EXPERTS = 5
GATED = ("swiglu", "geglu")


@dataclass
class Experts:
    """A node, and all that makes up its model: weights are drawn."""

    name: str
    attributes: dict[str, Any] = field(default_factory=dict)
    bits: int = 0
    block: int = 0
    third: bool = False
    bias: bool = True
    zeros: bool = False
    given_shares: bool = False
    dtype: str = "float32"
    peer: bool = True
    hidden: int = 64
    inner: int = 96

    @property
    def fused(self) -> int:
        return self.attributes.get("swiglu_fusion", 0)

    def __str__(self) -> str:
        return self.name


SWIGLU = {"activation_type": "swiglu", "activation_alpha": 1.702, "activation_beta": 1.0, "k": 2}
FUSED = {**SWIGLU, "swiglu_fusion": 1}
CASES = [
    Experts("relu"),
    Experts("gelu", {"activation_type": "gelu", "k": 2, "normalize_routing_weights": 1}, bias=False),
    Experts("silu", {"activation_type": "silu", "k": 5}),
    Experts("identity", {"activation_type": "identity", "k": 3}),
    Experts("swiglu", FUSED),
    Experts("swiglu_limit", {**FUSED, "swiglu_limit": 0.5, "normalize_routing_weights": 1}),
    Experts("half", FUSED, dtype="float16"),
    Experts("gate_beside", {"activation_type": "silu", "k": 2}, third=True, peer=False),
    Experts("swiglu_beside", SWIGLU, third=True, peer=False),
    Experts("swiglu_halves", {**SWIGLU, "swiglu_fusion": 2, "swiglu_limit": 0.5}, peer=False),
    Experts("swiglu_late", {**FUSED, "swiglu_limit": 0.2, "swiglu_limit_after_activation": 1}, peer=False),
    Experts("geglu", {"activation_type": "geglu", "swiglu_fusion": 1, "k": 2}, peer=False),
    Experts("relu2", {"activation_type": "relu2"}, peer=False),
    Experts("bits_4", FUSED, bits=4, block=32),
    Experts("bits_4_zeros", FUSED, bits=4, block=32, zeros=True),
    Experts("bits_4_rows", {"activation_type": "silu", "k": 2}, bits=4),
    Experts("bits_4_rows_zeros", FUSED, bits=4, zeros=True, bias=False),
    Experts("bits_2", FUSED, bits=2, block=16, zeros=True),
    Experts("bits_8_rows", FUSED, bits=8),
    Experts("bits_8", FUSED, bits=8, block=32, peer=False),  # onnxruntime rounds rows to eight bits
    Experts("bits_4_of_half", FUSED, bits=4, block=32, dtype="float16"),
    Experts("bits_4_beside", SWIGLU, bits=4, block=32, third=True, peer=False),
    Experts("shares", {"activation_type": "silu", "k": 3}, bits=4, given_shares=True),
    Experts("shares_sum", {**FUSED, "normalize_routing_weights": 1}, bits=4, block=32, given_shares=True),
    Experts("rounded_rows", {**FUSED, "accuracy_level": 4}, bits=4, block=32),
]


class Drawn:
    """The weights of a node, what they stand for, and its model."""

    def __init__(self, case: Experts, seed: int = 3) -> None:
        self.case, self.rng = case, np.random.default_rng(seed)
        self.initializers: list[onnx.TensorProto] = []
        self.layers: list[tuple[np.ndarray, np.ndarray] | None] = []
        hidden, inner = case.hidden, case.inner
        shapes = [(inner * (2 if case.fused else 1), hidden), (hidden, inner), (inner, hidden) if case.third else None]
        rows = [self._layer(number + 1, shape) for number, shape in enumerate(shapes)]
        inputs = ["x", "router", *(name for layer in rows for name in layer[:-1]), *(layer[-1] for layer in rows)]
        if not case.bits:
            inputs = ["x", "router", *(name for layer in rows for name in (layer[0], layer[2]))]
        inputs += ["shares"] if case.given_shares else []
        while not inputs[-1]:
            inputs.pop()
        self.model = self._model(inputs)

    def _keep(self, name: str, array: np.ndarray) -> str:
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def _layer(self, number: int, shape: tuple[int, int] | None) -> tuple[str, str, str, str]:
        """The names of a layer's weights, scales, biases and zero points; `layers` gets what they are."""
        if shape is None:
            self.layers.append(None)
            return "", "", "", ""
        case, (rows, depth) = self.case, shape
        bias = self.rng.standard_normal((EXPERTS, rows)).astype(case.dtype) * case.bias
        names = ["", "", self._keep(f"bias{number}", bias) if case.bias else "", ""]
        if case.bits:
            weight = self._quantized(number, rows, depth, names)
        else:
            array = (self.rng.standard_normal((EXPERTS, rows, depth)) / depth**0.5).astype(case.dtype)
            names[0], weight = self._keep(f"weight{number}", array), array.astype(np.float64)
        self.layers.append((weight, bias.astype(np.float64)))
        return names[0], names[1], names[2], names[3]

    def _quantized(self, number: int, rows: int, depth: int, names: list[str]) -> np.ndarray:
        """Codes, scales and zero points under their names, and the weight that they stand for."""
        case, bits = self.case, self.case.bits
        blocks = depth // case.block if case.block else 1
        codes = self.rng.integers(0, 1 << bits, (EXPERTS, rows, depth), dtype=np.uint8)
        scales = ((self.rng.random((EXPERTS, rows, blocks)) + 0.5) / (depth**0.5 * (1 << bits))).astype(case.dtype)
        zeros = np.full((EXPERTS, rows, blocks), 1 << (bits - 1), np.uint8)
        names[0] = self._keep(f"weight{number}", packed(codes, bits))
        names[1] = self._keep(f"scale{number}", scales if case.block else scales[..., 0])
        if case.zeros:
            zeros = self.rng.integers(0, 1 << bits, (EXPERTS, rows, blocks), dtype=np.uint8)
            names[3] = self._keep(f"zero{number}", packed(zeros if case.block else zeros[..., 0], bits))
        spread = partial(np.repeat, repeats=depth // blocks, axis=2)
        return (codes.astype(np.float64) - spread(zeros)) * spread(scales.astype(np.float64))

    def _model(self, inputs: list[str]) -> onnx.ModelProto:
        case, attributes = self.case, dict(self.case.attributes)
        if case.bits:
            attributes |= {"expert_weight_bits": case.bits} | ({"block_size": case.block} if case.block else {})
        kind = "QMoE" if case.bits else "MoE"
        node = helper.make_node(kind, inputs, ["y"], name="experts", domain="com.microsoft", **attributes)
        element = helper.np_dtype_to_tensor_dtype(np.dtype(case.dtype))
        value = helper.make_tensor_value_info
        tables = ["router", "shares"] if case.given_shares else ["router"]
        given = [
            value("x", element, ["tokens", case.hidden]),
            *(value(n, element, ["tokens", EXPERTS]) for n in tables),
        ]
        graph = helper.make_graph([node], "g", given, [value("y", element, ["tokens", case.hidden])], self.initializers)
        domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=10)

    def inputs(self, tokens: int) -> dict[str, np.ndarray]:
        x = self.rng.standard_normal((tokens, self.case.hidden)).astype(self.case.dtype)
        inputs = {"x": x, "router": self.rng.standard_normal((tokens, EXPERTS)).astype(self.case.dtype)}
        if self.case.given_shares:
            inputs["shares"] = self.rng.random((tokens, EXPERTS)).astype(self.case.dtype)
        return inputs

    def expected(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """What the node says, in float64."""
        case, x = self.case, inputs["x"].astype(np.float64)
        k, result = case.attributes.get("k", 1), np.zeros(x.shape)
        for token, scores in enumerate(inputs["router"].astype(np.float64)):
            chosen = np.argsort(-scores, kind="stable")[:k]
            shares = np.exp(scores - scores.max())
            shares = shares[chosen] / (shares[chosen] if case.bits else shares).sum()
            if case.given_shares:
                shares = inputs["shares"][token, chosen].astype(np.float64)
            if case.attributes.get("normalize_routing_weights"):
                shares = shares / shares.sum()
            for expert, share in zip(chosen, shares, strict=True):
                result[token] += share * self._expert(x[token], expert)
        return result

    def _expert(self, x: np.ndarray, expert: int) -> np.ndarray:
        first, second, third = (layer and (layer[0][expert], layer[1][expert]) for layer in self.layers)
        assert first is not None and second is not None
        made = first[0] @ x + first[1]
        half = self.case.inner
        gate, line = made, third and third[0] @ x + third[1]
        if self.case.fused:
            gate, line = (made[::2], made[1::2]) if self.case.fused == 1 else (made[:half], made[half:])
        return second[0] @ activated(self.case.attributes, gate, line) + second[1]


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes of so many bits as bytes along the last dimension, the lowest ones first."""
    each = 8 // bits
    padded = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % each)])
    parts = padded.reshape(*padded.shape[:-1], -1, each).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (bits * np.arange(each, dtype=np.uint8)), axis=-1).astype(np.uint8)


def activated(attributes: dict[str, Any], gate: np.ndarray, line: np.ndarray | None) -> np.ndarray:
    """The activation of the first product, and what it is multiplied by."""
    kind, limit = attributes.get("activation_type", "relu"), attributes.get("swiglu_limit", np.inf)
    if kind == "swiglu" and line is not None:
        late = bool(attributes.get("swiglu_limit_after_activation"))
        gate = gate if late else np.minimum(gate, limit)
        made = gate / (1 + np.exp(-attributes["activation_alpha"] * gate))
        return (np.minimum(made, limit) if late else made) * (
            np.clip(line, -limit, limit) + attributes["activation_beta"]
        )
    inner = 0.7978845608 * (gate + 0.044715 * gate**3)
    made = {
        "relu": np.maximum(gate, 0), "relu2": np.maximum(gate, 0) ** 2, "identity": gate,
        "silu": gate / (1 + np.exp(-gate)), "gelu": gate * (1 + np.tanh(inner)) / 2,
        "geglu": gate * (1 + np.tanh(inner)) / 2,
    }[kind]  # fmt: skip
    return made if line is None else made * line


def compiled(model: onnx.ModelProto, folder: Path, **options: Any) -> mlc.Model:
    onnx.save(model, folder / "experts.onnx")
    return mlc.compile(folder / "experts.onnx", output=folder / "experts.so", **options)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_experts(case: Experts, tmp_path: Path) -> None:
    drawn = Drawn(case)
    model = compiled(drawn.model, tmp_path)
    session = onnxruntime.InferenceSession(drawn.model.SerializeToString()) if case.peer else None
    tolerance = 0.02 if case.attributes.get("accuracy_level") else {"float32": 2e-6, "float16": 2e-3}[case.dtype]
    for tokens in (1, 7, 40):
        inputs = drawn.inputs(tokens)
        y, expected = model.run(inputs)["y"].astype(np.float64), drawn.expected(inputs)
        np.testing.assert_allclose(y, expected, rtol=0, atol=tolerance * np.abs(expected).max())
        if session is not None:
            other = session.run(None, inputs)[0].astype(np.float64)
            np.testing.assert_allclose(y, other, rtol=0, atol=2 * tolerance * np.abs(expected).max())


def test_all_tokens_to_one_expert_and_none(tmp_path: Path) -> None:
    drawn = Drawn(Experts("one", {"activation_type": "silu"}))
    model = compiled(drawn.model, tmp_path)
    inputs = drawn.inputs(6)
    inputs["router"][:] = [0, 0, 3, 0, 0]
    np.testing.assert_allclose(model.run(inputs)["y"], drawn.expected(inputs), rtol=0, atol=1e-5)
    empty = {name: array[:0] for name, array in inputs.items()}
    assert model.run(empty)["y"].shape == (0, drawn.case.hidden)


def test_the_dense_form_and_what_it_verifies(tmp_path: Path) -> None:
    drawn = Drawn(Experts("dense", FUSED, bits=4, block=32))
    for value in (drawn.model.graph.input[0], drawn.model.graph.output[0]):
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, [2, 3, 64]))
    drawn.model.graph.input[1].CopyFrom(helper.make_tensor_value_info("router", TensorProto.FLOAT, [6, EXPERTS]))
    model = compiled(drawn.model, tmp_path, verify=True)
    inputs = drawn.inputs(6)
    y = model.run({**inputs, "x": inputs["x"].reshape(2, 3, 64)})["y"]
    expected = drawn.expected(inputs)
    np.testing.assert_allclose(y.reshape(6, 64), expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("block", [0, 32])
def test_weights_are_kept_in_few_bits(zeros: bool, block: int, tmp_path: Path) -> None:
    """Also with zero points: products scale codes on the way, no kernel makes a copy of a weight."""
    case = Experts("small", {**FUSED, "k": 1}, bits=4, block=block, bias=False, zeros=zeros, hidden=256, inner=512)
    model = compiled(Drawn(case).model, tmp_path)
    codes, depth = EXPERTS * 3 * case.hidden * case.inner, block or case.hidden
    stored = codes / 2 if block else codes  # one scale a row: a byte for each code
    assert stored < model.metadata["weights"]["size"] < stored + (4 + zeros) * codes / depth + 10_000
    fixed = model.metadata["memory"]["forward"].split(" + ")[0]
    assert int(fixed) < 20_000


def test_any_phase_can_be_gone_on_from(tmp_path: Path) -> None:
    """Stacks of weights, and what is computed of each, are found again under their names."""
    drawn = Drawn(Experts("phases", FUSED, bits=4, block=32, zeros=True, hidden=256, inner=512))
    onnx.save(drawn.model, tmp_path / "experts.onnx")
    inputs = drawn.inputs(5)
    expected = drawn.expected(inputs)
    for phase in ("import", "simplify", "layout", "schedule", "buffers"):
        mlc.compile(tmp_path / "experts.onnx", output=tmp_path / "stage.mlir", emit=phase)
        model = mlc.compile(tmp_path / "stage.mlir", output=tmp_path / "experts.so", from_phase=phase)
        np.testing.assert_allclose(model.run(inputs)["y"], expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_weights_beside_the_library(tmp_path: Path) -> None:
    """The file is made again from the model's own weights, as its recipes say."""
    drawn = Drawn(Experts("beside", FUSED, bits=4, block=32, zeros=True, hidden=256, inner=512))
    compiled(drawn.model, tmp_path, weights="external")
    written = (tmp_path / "experts.safetensors").read_bytes()
    arrays = {i.name: numpy_helper.to_array(i) for i in drawn.model.graph.initializer}
    np.savez(tmp_path / "own.npz", **arrays)
    (tmp_path / "experts.safetensors").unlink()
    command = [sys.executable, "-m", "mlc.cli.run", "experts.so", "--init-weights", "own.npz"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "experts.safetensors").read_bytes() == written


REFUSED = [
    ({"use_sparse_mixer": 1}, "the sparse mixer is not supported"),
    ({"activation_type": "tanh"}, 'the activation "tanh" is not supported; use one of relu, gelu, silu, relu2'),
    ({"activation_type": "geglu"}, "geglu needs its gate in the first product"),
    ({"activation_type": "swiglu"}, "swiglu with swiglu_fusion 0 and no fc3"),
    ({"quant_type": "fp4"}, 'the quantization "fp4" of uint8 is not supported'),
    ({"weights_prepacked": 1}, "weights in the order of one provider are not supported"),
    ({"expert_weight_bits": 3}, "weights of 3 bits are not supported"),
]


@pytest.mark.parametrize(("attributes", "message"), REFUSED)
def test_refusals_say_why(attributes: dict[str, Any], message: str, tmp_path: Path) -> None:
    drawn = Drawn(Experts("refused", {"k": 1}, bits=4, block=32))
    node = drawn.model.graph.node[0]
    kept = [a for a in node.attribute if a.name not in attributes]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in attributes.items())])
    with pytest.raises(ModelError, match=message):
        compiled(drawn.model, tmp_path)


def test_scores_of_other_experts_and_tokens(tmp_path: Path) -> None:
    """The router's scores must be those of all experts and of all tokens."""
    drawn = Drawn(Experts("other", {"k": 1}))
    router = drawn.model.graph.input[1]
    router.CopyFrom(helper.make_tensor_value_info("router", TensorProto.FLOAT, ["tokens", EXPERTS + 1]))
    with pytest.raises(ModelError, match="the router has scores of 6 experts, and there are 5"):
        compiled(drawn.model, tmp_path)
    router.CopyFrom(helper.make_tensor_value_info("router", TensorProto.FLOAT, ["scored", "kinds"]))
    model = compiled(drawn.model, tmp_path)
    inputs = drawn.inputs(3)
    np.testing.assert_allclose(model.run(inputs)["y"], drawn.expected(inputs), rtol=0, atol=1e-5)
    for router_shape in ((3, EXPERTS - 1), (2, EXPERTS)):
        with pytest.raises(MlcError):
            model.run({**inputs, "router": np.zeros(router_shape, np.float32)})
