"""Optimizer steps (`ai.onnx.preview.training`): new parameters and state from gradients, tensor by tensor."""

from __future__ import annotations

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

DOMAIN = "ai.onnx.preview.training"


def _columns(node: Node, groups: int) -> list[tuple[Tensor, ...]]:
    """The operands after learning rate and step count, one tuple a parameter tensor."""
    rest = node.present()[2:]
    count = len(rest) // groups
    if count * groups != len(rest):
        raise NodeError(f"{len(rest)} tensors cannot be split into groups of {groups}")
    return [tuple(rest[group * count + number] for group in range(groups)) for number in range(count)]


def _regularized(b: Builder, node: Node, x: Tensor, gradient: Tensor) -> Tensor:
    return ew.binary(b, "add", ew.scaled(b, x, float(node.attr("norm_coefficient", 0.0))), gradient)


def _rate(b: Builder, node: Node, x: Tensor) -> tuple[Tensor, Tensor]:
    """Learning rate and step count as scalars of the dtype of `x`."""
    rate, step = (ew.cast(b, shape.reshape(b, node[place], []), x.dtype) for place in (0, 1))
    return rate, step


def _transposed(rows: list[tuple[Tensor, ...]]) -> list[Tensor]:
    return [value for column in zip(*rows, strict=True) for value in column]


@onnx_op("Adagrad", domain=DOMAIN)
def adagrad(g: GraphImporter, node: Node) -> list[Tensor]:
    """x - r / (1 + t * decay) * gradient / (sqrt(h) + epsilon)."""
    b = g.b
    rows: list[tuple[Tensor, ...]] = []
    for x, gradient, squares in _columns(node, 3):
        rate, step = _rate(b, node, x)
        slowed = ew.binary(b, "add", ew.scaled(b, step, float(node.attr("decay_factor", 0.0))), b.like(1, x))
        slope = _regularized(b, node, x, gradient)
        total = ew.binary(b, "add", squares, ew.binary(b, "mul", slope, slope))
        epsilon = b.like(float(node.attr("epsilon", 1e-6)), x)
        root = ew.binary(b, "add", ew.unary(b, "sqrt", total), epsilon)
        change = ew.binary(b, "div", ew.binary(b, "mul", ew.binary(b, "div", rate, slowed), slope), root)
        rows.append((ew.binary(b, "sub", x, change), total))
    return _transposed(rows)


@onnx_op("Momentum", domain=DOMAIN)
def momentum(g: GraphImporter, node: Node) -> list[Tensor]:
    """Gradient descent with (standard or Nesterov) momentum."""
    b = g.b
    alpha, beta = float(node.required("alpha")), float(node.required("beta"))
    rows: list[tuple[Tensor, ...]] = []
    for x, gradient, velocity in _columns(node, 3):
        rate, step = _rate(b, node, x)
        slope = _regularized(b, node, x, gradient)
        # At the first step the gradient counts fully.
        started = ew.compare(b, "gt", step, b.like(0, x))
        share = ew.select(b, started, b.like(beta, x), b.like(1, x))
        new = ew.binary(b, "add", ew.scaled(b, velocity, alpha), ew.binary(b, "mul", share, slope))
        direction = new
        if node.required("mode") == "nesterov":
            direction = ew.binary(b, "add", slope, ew.scaled(b, new, alpha))
        rows.append((ew.binary(b, "sub", x, ew.binary(b, "mul", rate, direction)), new))
    return _transposed(rows)


@onnx_op("Adam", domain=DOMAIN)
def adam(g: GraphImporter, node: Node) -> list[Tensor]:
    """Adam with bias correction after the first step."""
    b = g.b
    alpha, beta = float(node.attr("alpha", 0.9)), float(node.attr("beta", 0.999))
    rows: list[tuple[Tensor, ...]] = []
    for x, gradient, mean, squares in _columns(node, 4):
        rate, step = _rate(b, node, x)
        slope = _regularized(b, node, x, gradient)
        new_mean = ew.binary(b, "add", ew.scaled(b, mean, alpha), ew.scaled(b, slope, 1 - alpha))
        square = ew.binary(b, "mul", slope, slope)
        new_squares = ew.binary(b, "add", ew.scaled(b, squares, beta), ew.scaled(b, square, 1 - beta))
        root = ew.binary(b, "add", ew.unary(b, "sqrt", new_squares), b.like(float(node.attr("epsilon", 1e-6)), x))
        moved = ew.binary(b, "mul", _corrected(b, rate, step, alpha, beta), ew.binary(b, "div", new_mean, root))
        kept = 1 - float(node.attr("norm_coefficient_post", 0.0))
        rows.append((ew.scaled(b, ew.binary(b, "sub", x, moved), kept), new_mean, new_squares))
    return _transposed(rows)


def _corrected(b: Builder, rate: Tensor, step: Tensor, alpha: float, beta: float) -> Tensor:
    """The learning rate with the bias of the running means taken out; as it is at step 0."""
    one, zero = b.like(1, rate), b.like(0, rate)
    powers = [ew.binary(b, "sub", one, ew.binary(b, "pow", b.like(base, rate), step)) for base in (alpha, beta)]
    started = ew.compare(b, "gt", step, zero)
    divisor = ew.select(b, started, powers[0], one)
    factor = ew.select(b, started, ew.unary(b, "sqrt", powers[1]), one)
    return ew.binary(b, "div", ew.binary(b, "mul", rate, factor), divisor)
