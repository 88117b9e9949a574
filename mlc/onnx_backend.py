"""mlc as an ONNX backend: the interface that ONNX's own test suite runs against.

    import mlc.onnx_backend as backend
    outputs = backend.run_model(model, [x])
    prepared = backend.prepare(model)
    outputs = prepared.run([x])

`backend.prepare(model, "CPU", cpu="x86-64-v3", …)` takes the options of `mlc.compile`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from mlc.driver import compile as compile_model


class MlcBackendRep(BackendRep):
    """A compiled model, ready to run."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Runs the model on inputs in order, by name, or on a single array; returns all outputs in order.

        Raises `mlc.runtime.errors.MlcError` for inputs that do not fit or data that the model cannot process.
        """
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, Mapping):
            inputs = list(inputs)
        return tuple(self.model.run(inputs).values())


class MlcBackend(Backend):
    """Compiles for the CPU of this machine."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> bool:
        """Whether the model can be imported; nothing is compiled."""
        from mlc.compiler_setup import new_context
        from mlc.frontends.onnx import import_model
        from mlc.frontends.report import ModelError
        from mlc.weights import Store

        if not cls.supports_device(device):
            return False
        try:
            import_model(model, new_context(), store=Store())
        except ModelError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> MlcBackendRep:
        """Compiles `model`. Raises what `mlc.compile` raises, and ValueError for another device than the CPU."""
        if not cls.supports_device(device):
            raise ValueError(f"mlc's ONNX backend runs on the CPU, not on '{device}'")
        return MlcBackendRep(compile_model(model, **options))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """Compiles `model` and runs it once."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Compiles and runs a single node on arrays; `outputs_info` gives dtype and shape of its outputs."""
        opset = options.pop("opset_version", onnx.defs.onnx_opset_version())
        arrays = [np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        types = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in arrays]
        values = [
            helper.make_tensor_value_info(name, kind, array.shape)
            for name, kind, array in zip(names, types, arrays, strict=True)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output]
        if outputs_info is not None:
            results = [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
                for name, (dtype, shape) in zip(node.output, outputs_info, strict=True)
            ]
        graph = helper.make_graph([node], node.op_type, values, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.prepare(onnx.shape_inference.infer_shapes(model), device, **options).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only CPUs."""
        return Device(device).type == DeviceType.CPU


is_compatible = MlcBackend.is_compatible
prepare = MlcBackend.prepare
run_model = MlcBackend.run_model
run_node = MlcBackend.run_node
supports_device = MlcBackend.supports_device
