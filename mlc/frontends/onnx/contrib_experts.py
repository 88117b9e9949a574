"""Mixtures of experts (domain `com.microsoft`), as onnxruntime's model builder writes them.

Every expert has a product, an activation and a product; a router's scores say which `k` of them get a token. `QMoE`
has weights of few bits with scales for rows or for blocks. (onnxruntime, docs/ContribOperators.md; where its page is
silent, what its CPU kernels do.)
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import experts, linalg, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.onnx.contrib_elementwise import DOMAIN
from mlc.frontends.onnx.contrib_quantization import IN_BYTES, unpacked
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

_GATED = ("swiglu", "geglu")
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu_tanh", "silu": "silu"}
_HIDDEN = 1e-8  # a share of a token that is smaller counts as none


@dataclass(frozen=True)
class Rows:
    """Some rows of an expert's weight: from `first` on every `step`-th one, `count` in all."""

    first: int
    step: int
    count: int

    def of(self, b: Builder, x: Tensor, expert: Size) -> Tensor:
        """These rows of expert `expert` of `x [experts, rows, ...]`."""
        inner = x.type.shape[2:]
        part = shape.slice_(
            b, x, [expert, self.first, *[0] * len(inner)], [1, self.count, *inner], [1, self.step, *[1] * len(inner)]
        )
        return shape.reshape(b, part, [self.count, *inner])


class Layer:
    """The products of one of the layers (`fc1`, `fc2`, `fc3`) of all experts: `[experts, rows, depth]`."""

    def __init__(self, b: Builder, name: str, weights: Tensor, bias: Tensor | None) -> None:
        self.b, self.name, self.weights, self.bias = b, name, weights, bias
        if weights.rank != 3 or None in weights.shape:
            raise NodeError(f"the weights of {name} are {weights}", "they must have three dimensions that are known")
        self.experts, self.rows = weights.type.shape[:2]

    def weight(self, expert: Size, rows: Rows) -> Tensor:
        """Rows of an expert's weight, `[rows, depth]`."""
        return rows.of(self.b, self.weights, expert)

    def apply(self, x: Tensor, expert: Size, rows: Rows | None = None, lhs_bits: int | None = None) -> Tensor:
        """x [n, depth] times the transpose of an expert's weight (or of these rows of it), and its bias."""
        b, rows = self.b, rows or Rows(0, 1, self.rows)
        weight = self.weight(expert, rows)
        y = ew.cast(b, linalg.matmul(b, ew.cast(b, x, weight.dtype), weight, False, True, lhs_bits), x.dtype)
        return y if self.bias is None else ew.binary(b, "add", y, rows.of(b, self.bias, expert))


class QuantizedLayer(Layer):
    """The same of codes of `bits` bits, `[experts, rows, bytes]`, with a scale for each row or each block of it."""

    def __init__(
        self,
        b: Builder,
        name: str,
        weights: Tensor,
        bias: Tensor | None,
        scales: Tensor,
        zero: Tensor | None,
        bits: int,
    ) -> None:
        super().__init__(b, name, weights, bias)
        self.bits, self.depth = bits, weights.type.shape[2] * 8 // bits
        self.scales = shape.unsqueeze(b, scales, [2]) if scales.rank == 2 else scales
        blocks = self.scales.shape[2] if self.scales.rank == 3 else 0
        if not blocks or self.depth % blocks:
            raise NodeError(f"{name} of depth {self.depth} has the scales {scales}", "blocks must fill the depth")
        self.blocks = blocks
        self.packed_zero = zero

    def _zero(self, expert: Size, rows: Rows) -> Tensor:
        """The zero points `[rows, blocks]`, packed along blocks or, where a row has one, along rows; or one for all."""
        b, packed, each = self.b, self.packed_zero, 8 // self.bits
        if packed is None:
            return ew.cast(b, b.constant(1 << (self.bits - 1)), "uint8")
        if packed.rank == 3:
            full = -(-self.blocks // each) * each
            part = rows.of(b, packed, expert)
            return unpacked(b, part, self.bits, [rows.count, full], [rows.count, self.blocks])
        full = -(-self.rows // each) * each
        line = Rows(0, 1, packed.type.shape[1]).of(b, packed, expert)
        line = unpacked(b, line, self.bits, [1, full], [1, self.rows])
        return shape.reshape(
            b, shape.slice_(b, line, [0, rows.first], [1, rows.count], [1, rows.step]), [rows.count, 1]
        )

    def weight(self, expert: Size, rows: Rows) -> Tensor:
        """Rows of an expert's weight as the floats that its codes stand for."""
        b, extents = self.b, [rows.count, self.depth]
        codes = unpacked(b, rows.of(b, self.weights, expert), self.bits, extents, extents)
        scale, zero = rows.of(b, self.scales, expert), self._zero(expert, rows)
        attributes = {"axis": 1, "block_size": self.depth // self.blocks, "bits": self.bits}
        return b.op("dequantize", [codes, scale, zero], is_unsigned=ir.UnitAttr.get(), unsigned=False, **attributes)


@dataclass(frozen=True)
class Activation:
    """What is between the products: a function of one, or (`swiglu`, `geglu`) a gate for another one's elements.

    `fused` says that the first product has both: 1 in turns, gate first, 2 all of the gate first. `late` says that the
    limit is that of what the gate's function makes.
    """

    kind: str
    fused: int
    alpha: float
    beta: float
    limit: float | None
    late: bool

    @staticmethod
    def of(node: Node) -> Activation:
        """The attributes of a node; `NodeError` for a kind that is not known."""
        kind = str(node.attr("activation_type", "relu"))
        known = [*_ACTIVATIONS, "relu2", "identity", *_GATED]
        if kind not in known:
            raise NodeError(f'the activation "{kind}" is not supported', f"use one of {', '.join(known)}")
        fused, limit = int(node.attr("swiglu_fusion", 0)), node.attr("swiglu_limit")
        if kind == "geglu" and not fused:
            raise NodeError("geglu needs its gate in the first product", "set swiglu_fusion to 1 or 2")
        alpha, beta = float(node.attr("activation_alpha", 1.0)), float(node.attr("activation_beta", 0.0))
        late = bool(node.attr("swiglu_limit_after_activation", 0))
        limit = None if limit is None or float(limit) == float("inf") else float(limit)
        return Activation(kind, fused if kind in _GATED else 0, alpha, beta, limit, late)

    def apply(self, b: Builder, first: Tensor, second: Tensor | None) -> Tensor:
        """The activation of the first product, times (a function of) the second one where there is one."""
        if self.kind == "swiglu" and second is not None:
            return self._swiglu(b, first, second)
        if self.kind == "identity":
            y = first
        elif self.kind == "relu2":
            y = ew.relu(b, first)
            y = ew.binary(b, "mul", y, y)
        else:
            y = ew.activation(b, "gelu_tanh" if self.kind == "geglu" else _ACTIVATIONS[self.kind], first)
        return y if second is None else ew.binary(b, "mul", y, second)

    def _swiglu(self, b: Builder, gate: Tensor, line: Tensor) -> Tensor:
        limit = None if self.limit is None else b.like(self.limit, gate)
        low = None if self.limit is None else b.like(-self.limit, gate)
        gate = gate if self.late else ew.clamp(b, gate, None, limit)
        y = ew.binary(b, "mul", gate, ew.unary(b, "sigmoid", ew.scaled(b, gate, self.alpha)))
        y = ew.clamp(b, y, None, limit) if self.late else y
        line = ew.clamp(b, line, low, limit)
        return ew.binary(b, "mul", y, ew.binary(b, "add", line, b.like(self.beta, line)) if self.beta else line)


@dataclass(frozen=True)
class Network:
    """The layers of all experts and what is between them: `fc2(act(fc1(x)))`, or `fc2(act(fc1(x)) * fc3(x))`."""

    first: Layer
    second: Layer
    third: Layer | None
    activation: Activation
    lhs_bits: int | None

    def check(self) -> None:
        """Raises `NodeError` where the layers and the activation do not belong together."""
        gated, fused = self.activation.kind in _GATED, self.activation.fused
        if gated and bool(fused) == (self.third is not None):
            have = "no fc3" if self.third is None else "an fc3"
            raise NodeError(f"{self.activation.kind} with swiglu_fusion {fused} and {have}", "fc3 is what is not fused")
        if fused and self.first.rows % 2:
            raise NodeError(f"fc1 has {self.first.rows} rows, which are no pairs of gates and elements")
        numbers = {layer.name: layer.experts for layer in (self.first, self.second, self.third) if layer is not None}
        if len(set(numbers.values())) != 1:
            raise NodeError(f"the layers have different numbers of experts: {numbers}")

    def apply(self, b: Builder, x: Tensor, expert: Size) -> Tensor:
        """What an expert makes of its rows."""
        gate, line = self._products(x, expert)
        return self.second.apply(self.activation.apply(b, gate, line), expert, None, self.lhs_bits)

    def _products(self, x: Tensor, expert: Size) -> tuple[Tensor, Tensor | None]:
        """What the activation reads: the gate, and what it is multiplied by, if there is such."""
        first, third, half = self.first, self.third, self.first.rows // 2
        if self.activation.fused:
            step, start = (2, 1) if self.activation.fused == 1 else (1, half)
            stretches = (Rows(0, step, half), Rows(start, step, half))
            gate, other = (first.apply(x, expert, rows, self.lhs_bits) for rows in stretches)
            return gate, other
        line = None if third is None else third.apply(x, expert, None, self.lhs_bits)
        return first.apply(x, expert, None, self.lhs_bits), line


def _mixture(b: Builder, node: Node, shares: Tensor, chosen: Tensor, network: Network) -> Tensor:
    """The sum of what each token's experts make of it; leading dimensions of the input are those of tokens."""
    network.check()
    x, scores = node[0], node[1]
    extents, width, count = b.dims(x), network.second.rows, network.first.experts
    tokens = b.product(extents[:-1])
    for have, want, what in ((b.dim(scores, 1), count, "experts"), (b.dim(scores, 0), tokens, "tokens")):
        if isinstance(have, int) and isinstance(want, int) and have != want:
            raise NodeError(f"the router has scores of {have} {what}, and there are {want}")
        shape.require_same(b, have, want, f"the router has scores of another number of {what} than there are")
    rows = shape.reshape(b, x, [tokens, extents[-1]])
    y = experts.mixture(b, rows, shares, chosen, count, width, lambda part, e: network.apply(b, part, e))
    return shape.reshape(b, y, extents)


def _check(node: Node) -> None:
    """Raises `NodeError` for what no node of experts may have here."""
    if node[1].rank != 2:
        raise NodeError(f"the router's scores are {node[1]}", "they must have two dimensions, tokens and experts")
    if int(node.attr("use_sparse_mixer", 0)):
        raise NodeError("the sparse mixer is not supported", "export without use_sparse_mixer")


@onnx_op("MoE", domain=DOMAIN)
def moe(g: GraphImporter, node: Node) -> Tensor:
    """Experts of floats; shares are those of the softmax over all experts."""
    _check(node)
    b, k = g.b, int(node.attr("k", 1))
    names = ("fc1", "fc2", "fc3")
    layers = [
        None if node.optional(2 + 2 * i) is None else Layer(b, name, node[2 + 2 * i], node.optional(3 + 2 * i))
        for i, name in enumerate(names)
    ]
    first, second, third = layers
    if first is None or second is None:
        raise NodeError("the weights of fc1 or fc2 are missing", "the operator requires them")
    shares, chosen = experts.shares_of_all(b, node[1], k, bool(node.attr("normalize_routing_weights", 0)))
    return _mixture(b, node, shares, chosen, Network(first, second, third, Activation.of(node), None))


def _bits(node: Node, name: str) -> int:
    bits = int(node.attr(f"{name}_expert_weight_bits", node.attr("expert_weight_bits", 4)))
    if bits not in (2, 4, 8):
        raise NodeError(f"weights of {bits} bits are not supported", "use 2, 4 or 8 bits")
    return bits


def _quantized(b: Builder, node: Node, number: int) -> QuantizedLayer | None:
    """Layer `number` (1, 2, 3) of a node of quantized experts, if there is one."""
    name, place = f"fc{number}", 3 * number - 1
    weights = node.optional(place)
    if weights is None:
        return None
    zero, bits = node.optional(10 + number), _bits(node, name)
    return QuantizedLayer(b, name, weights, node.optional(place + 2), node[place + 1], zero, bits)


@onnx_op("QMoE", domain=DOMAIN)
def qmoe(g: GraphImporter, node: Node) -> Tensor:
    """Experts of 2, 4 or 8 bits; shares are those of the softmax over the chosen ones, or given by another table."""
    _check(node)
    b, k, kind = g.b, int(node.attr("k", 1)), node.attr("quant_type", "int")
    if kind != "int" or node[2].dtype != "uint8":
        raise NodeError(f'the quantization "{kind}" of {node[2].dtype} is not supported', 'use "int" with uint8')
    if int(node.attr("weights_prepacked", -1)) == 1:
        raise NodeError("weights in the order of one provider are not supported", "export with weights_prepacked=0")
    first, second, third = (_quantized(b, node, number) for number in (1, 2, 3))
    if first is None or second is None:
        raise NodeError("the weights of fc1 or fc2 are missing", "the operator requires them")
    table = node.optional(14)
    if table is None:
        shares, chosen = experts.shares_of_chosen(b, node[1], k)
    else:
        normalize = bool(node.attr("normalize_routing_weights", 0))
        shares, chosen = experts.shares_given(b, node[1], table, k, normalize)
        large = ew.compare(b, "gt", shares, b.like(_HIDDEN, shares))
        shares = ew.select(b, large, shares, b.like(0, shares))
    lhs_bits = 8 if int(node.attr("accuracy_level", 0)) == IN_BYTES else None
    return _mixture(b, node, shares, chosen, Network(first, second, third, Activation.of(node), lhs_bits))
