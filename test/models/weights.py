"""Weights for model topologies: seeded He-normal filters, BatchNorm statistics that fit the activations."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from models import drawn

_CONTRACTIONS = ("Conv", "Gemm", "MatMul")
LOGIT_SPREAD = 2.5


class _Walk:
    """Evaluates a graph node by node, so that the parameters of each node can be fitted to what reaches it."""

    def __init__(self, model: onnx.ModelProto, seed: int) -> None:
        self.model = model
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.weights: dict[str, np.ndarray] = {}
        self.deviations: dict[str, float] = {}  # of the filters
        self.computed: set[str] = set()
        self.consumers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)

    def run(self, node: onnx.NodeProto) -> None:
        """Computes the node's outputs with onnxruntime."""
        import onnxruntime

        feeds = {name: self.values[name] for name in dict.fromkeys(node.input) if name}
        typed = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in feeds.items()
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", typed, results)
        single = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(single.SerializeToString(), options, ["CPUExecutionProvider"])
        for output, value in zip([out.name for out in session.get_outputs()], session.run(None, feeds), strict=True):
            self.values[output] = value
            self.computed.add(output)

    def assign(self, name: str, value: np.ndarray) -> None:
        """Gives a weight its values."""
        self.weights[name] = self.values[name] = value.astype(self.values[name].dtype)

    def draw(self, name: str, deviation: float) -> None:
        """Gives a weight normal numbers that its name stands for."""
        self.deviations[name] = deviation
        self.assign(name, drawn.filters(self.seed, name, self.values[name].shape, deviation))

    def normal(self, shape: tuple[int, ...], deviation: float, mean: float = 0.0) -> np.ndarray:
        """Normal numbers."""
        return self.rng.normal(mean, deviation, shape)


def reweight(model: onnx.ModelProto, seed: int, image: np.ndarray) -> onnx.ModelProto:
    """A copy of `model` with weights: filters He-normal and scaled so that `image` gives outputs of spread 1, biases,
    BatchNorm statistics those of the activations, channel scales near 1. Weights that `ConstantOfShape` made become
    initializers.
    """
    walk = _Walk(model, seed)
    generated = _generated(model, walk)
    known = {tensor.name for tensor in model.graph.initializer}
    entries = [value.name for value in model.graph.input if value.name not in known]
    walk.values[entries[0]] = image
    kept = []
    for node in model.graph.node:
        if node.output[0] in generated:
            continue
        _fit(walk, node)
        walk.run(node)
        kept.append(node)
    return _rebuilt(model, walk, kept)


def _generated(model: onnx.ModelProto, walk: _Walk) -> set[str]:
    """The weights that nodes make: a constant filled into a constant shape, which may be reshaped."""
    names = set()
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in walk.values:
            walk.values[node.output[0]] = np.zeros(walk.values[node.input[0]], np.float32)
            names.add(node.output[0])
        elif node.op_type == "Reshape" and node.input[0] in names:
            walk.values[node.output[0]] = np.zeros(walk.values[node.input[1]], np.float32)
            names.add(node.output[0])
    return names


def _fit(walk: _Walk, node: onnx.NodeProto) -> None:
    """Chooses the parameters of one node."""
    free = [name for name in node.input if name in walk.values and _is_weight(walk, name)]
    if node.op_type in _CONTRACTIONS and len(free) > 0:
        _fit_contraction(walk, node)
    elif node.op_type == "BatchNormalization":
        x = walk.values[node.input[0]]
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        channels = (x.shape[1],)
        walk.assign(node.input[1], walk.rng.uniform(0.7, 1.3, channels))
        walk.assign(node.input[2], walk.normal(channels, 0.1))
        walk.assign(node.input[3], x.mean(axes) + walk.normal(channels, 0.02))
        walk.assign(node.input[4], x.var(axes) * walk.rng.uniform(0.8, 1.25, channels) + 1e-3)
    elif node.op_type in ("Unsqueeze", "Mul", "Add") and free:
        # Channel scales and shifts, directly or through an Unsqueeze.
        for name in free:
            users = [node.op_type] + [user.op_type for user in walk.consumers.get(node.output[0], [])]
            if node.op_type == "Unsqueeze":
                users = users[1:]
            shape = walk.values[name].shape
            value = walk.rng.uniform(0.7, 1.3, shape) if "Mul" in users[:1] else walk.normal(shape, 0.1)
            walk.assign(name, value)


def _is_weight(walk: _Walk, name: str) -> bool:
    value = walk.values[name]
    return name not in walk.computed and value.dtype == np.float32 and value.size > 1 and name not in walk.weights


def _fit_contraction(walk: _Walk, node: onnx.NodeProto) -> None:
    shape = walk.values[node.input[1]].shape
    transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    fan_in = int(np.prod(shape[1:])) if node.op_type == "Conv" or transposed else shape[0]
    deviation = float(np.sqrt(2 / fan_in))
    walk.draw(node.input[1], deviation)
    if len(node.input) > 2 and node.input[2]:
        walk.assign(node.input[2], np.zeros(walk.values[node.input[2]].shape))
    walk.run(node)
    wanted = LOGIT_SPREAD if _feeds_softmax(walk, node.output[0]) else 1.0
    scale = wanted / max(float(walk.values[node.output[0]].std()), 1e-6)
    walk.draw(node.input[1], deviation * scale)
    if len(node.input) > 2 and node.input[2]:
        walk.assign(node.input[2], walk.normal(walk.values[node.input[2]].shape, 0.1))


def _feeds_softmax(walk: _Walk, name: str) -> bool:
    """Whether a value reaches the output or a Softmax without another contraction."""
    pending = [name]
    while pending:
        users = walk.consumers.get(pending.pop(), [])
        if not users or any(user.op_type == "Softmax" for user in users):
            return True
        pending += [user.output[0] for user in users if user.op_type in ("Reshape", "GlobalAveragePool", "Relu")]
    return False


def _rebuilt(model: onnx.ModelProto, walk: _Walk, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used and tensor.name not in walk.weights]
    del result.graph.initializer[:]
    result.graph.initializer.extend(kept)
    for name, value in walk.weights.items():
        result.graph.initializer.append(numpy_helper.from_array(value, name))
    # Weights stay inputs as well, as the models of IR version 3 have them.
    known = {value.name for value in result.graph.input}
    named = {tensor.name for tensor in result.graph.initializer}
    inputs = [value for value in model.graph.input if value.name in used or value.name in named]
    del result.graph.input[:]
    result.graph.input.extend(inputs)
    for tensor in result.graph.initializer:
        if tensor.name not in known:
            result.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    drawn.note(result, walk.seed, walk.deviations)
    return result
