"""Weights of few bits with scales in blocks: a product of `MatMulNBits`, and the weight in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Weight:
    """A weight `[columns, depth]` of `bits`, its scales by blocks and its zero points where it has some."""

    bits: int
    block: int
    depth: int
    columns: int
    has_zeros: bool = False

    def draw(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Inputs of `MatMulNBits`, and the weight in float64."""
        rng, blocks = np.random.default_rng(self.depth + self.bits), -(-self.depth // self.block)
        codes = rng.integers(0, 1 << self.bits, (self.columns, blocks * self.block))
        zeros = rng.integers(0, 1 << self.bits, (self.columns, blocks))
        scales = (rng.random((self.columns, blocks)) + 0.1).astype(np.float32)
        given = {"b": _packed(codes, self.bits).reshape(self.columns, blocks, -1), "s": scales.reshape(-1)}
        if self.has_zeros:
            each = 8 // self.bits
            given["z"] = _packed(np.pad(zeros, [(0, 0), (0, -blocks % each)]), self.bits).reshape(-1)
        offset = zeros.repeat(self.block, 1) if self.has_zeros else 1 << (self.bits - 1)
        weight = (codes - offset) * scales.astype(np.float64).repeat(self.block, 1)
        return given, weight[:, : self.depth].T

    def model(self, rows: int | str, level: int, lead: tuple[str, ...] = ()) -> tuple[onnx.ModelProto, np.ndarray]:
        """The product of `x [*lead, rows, depth]`, whose rows may be rounded at accuracy `level` 4; and the weight."""
        given, weight = self.draw()
        attributes = {"K": self.depth, "N": self.columns, "bits": self.bits, "block_size": self.block}
        node = helper.make_node(
            "MatMulNBits", ["x", *given], ["y"], domain="com.microsoft", accuracy_level=level, **attributes
        )
        graph = helper.make_graph(
            [node],
            "product",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*lead, rows, self.depth])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*lead, rows, self.columns])],
            [numpy_helper.from_array(value, name) for name, value in given.items()],
        )
        domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=10), weight


def _packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of `bits` bits in bytes, the lowest bits first."""
    parts = values.reshape(values.shape[0], -1, 8 // bits)
    return (parts << (bits * np.arange(8 // bits))).sum(-1).astype(np.uint8)
