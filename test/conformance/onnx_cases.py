"""The cases of ONNX's backend test suite and its rules for equal results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx_loader import load_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
DataSet = tuple[list[Any], list[Any]]  # inputs, outputs


@dataclass(frozen=True)
class Case:
    """One case; `source` is what the suite's loader gave."""

    name: str
    kind: str
    rtol: float
    atol: float
    operators: list[str]
    source: Any


def load_cases(light: bool = False) -> list[Case]:
    """All cases of the installed package, by kind. `light` adds the topologies of well-known models."""
    cases = []
    for kind in (*KINDS, "real") if light else KINDS:
        for found in load_tests(kind):
            if kind == "real" and not (found.url or "").startswith("onnx/backend/test/data/light/"):
                continue
            cases.append(Case(found.name, kind, found.rtol, found.atol, _operators(found), found))
    return cases


def _operators(found: Any) -> list[str]:
    """The operators that a case is about: those of a single-node model."""
    nodes = [] if found.model is None else found.model.graph.node
    return sorted({node.op_type for node in nodes})


def load_data(case: Case) -> tuple[onnx.ModelProto, list[DataSet]]:
    """The model of a case and its data sets as NumPy arrays, lists (sequences) and None (empty optionals)."""
    source = case.source
    if source.model is not None:
        graph = source.model.graph
        return source.model, [
            (
                [_value(item, info) for item, info in zip(inputs, graph.input, strict=False)],
                [_value(item, info) for item, info in zip(outputs, graph.output, strict=True)],
            )
            for inputs, outputs in source.data_sets
        ]
    if case.kind == "real":
        return _light(case)
    folder = Path(source.model_dir)
    model = onnx.load(folder / "model.onnx")
    return model, [_read_set(model, place) for place in sorted(folder.glob("test_data_set_*"))]


@lru_cache(maxsize=1)
def _models() -> dict[str, onnx.ModelProto]:
    """The models of all cases that come with one."""
    return {case.name: case.source.model for case in load_cases() if case.source.model is not None}


def single_node_model(case: Case, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model of one node that a case whose function body is expanded stands for, else its own."""
    return _models().get(case.name.removesuffix("_expanded"), model)


def _value(item: Any, info: onnx.ValueInfoProto) -> Any:
    """A value of the loader; what it gives as a protobuf becomes an array."""
    if isinstance(item, onnx.TensorProto):
        return numpy_helper.to_array(item)
    if item is None or isinstance(item, (list, dict)):
        return [_value(part, info) for part in item] if isinstance(item, list) else item
    return np.asarray(item)


def _read_set(model: onnx.ModelProto, folder: Path) -> DataSet:
    initialised = {tensor.name for tensor in model.graph.initializer}
    counted = len(list(folder.glob("input_*.pb")))
    infos = list(model.graph.input)
    if counted < len(infos):
        infos = [info for info in infos if info.name not in initialised]
    inputs = [_read(folder / f"input_{i}.pb", infos[i]) for i in range(counted)]
    outputs = [_read(folder / f"output_{i}.pb", info) for i, info in enumerate(model.graph.output)]
    return inputs, outputs


def _read(path: Path, info: onnx.ValueInfoProto) -> Any:
    kind = info.type.WhichOneof("value")
    data = path.read_bytes()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _light(case: Case) -> tuple[onnx.ModelProto, list[DataSet]]:
    """A topology that comes without weights worth the name: the suite makes up its input."""
    from onnx.backend.test.loader import DATA_DIR
    from onnx.backend.test.runner import Runner

    path = Path(DATA_DIR) / "light" / os.path.basename(case.source.url)
    model = onnx.load(path)
    initialised = {tensor.name for tensor in model.graph.initializer}
    infos = [info for info in model.graph.input if info.name not in initialised]
    inputs = [Runner.generate_dummy_data(info, seed=0, name=case.source.model_name) for info in infos]
    outputs = [_read(path.with_name(f"{path.stem}_output_{i}.pb"), o) for i, o in enumerate(model.graph.output)]
    return model, [(inputs, outputs)]


def compare(got: list[Any], wanted: list[Any], rtol: float, atol: float) -> None:
    """AssertionError unless the results are those of the suite: same number, kinds, shapes, dtypes, and elements within
    the tolerance of the case (two units in the last place of bfloat16 where that is more, as the suite's own runner)."""
    assert len(got) == len(wanted), f"{len(got)} results, not {len(wanted)}"
    for number, (have, want) in enumerate(zip(got, wanted, strict=True)):
        where = f"result {number}"
        if isinstance(want, list):
            assert isinstance(have, list), f"{where} is no sequence"
            compare(have, want, rtol, atol)
        elif want is None or have is None:
            assert have is want, f"{where}: only one of the two is empty"
        else:
            _compare_arrays(np.asarray(have), np.asarray(want), rtol, atol, where)


def _compare_arrays(have: np.ndarray, want: np.ndarray, rtol: float, atol: float, where: str) -> None:
    assert have.shape == want.shape, f"{where}: shape {have.shape}, not {want.shape}"
    if want.dtype.kind in "OUST":
        assert have.dtype.kind in "OUST", f"{where}: {have.dtype} instead of strings"
        same = np.array_equal(have.astype(object), want.astype(object))
        assert same, f"{where}: {have.ravel()[:8].tolist()}, not {want.ravel()[:8].tolist()}"
        return
    assert have.dtype == want.dtype, f"{where}: {have.dtype}, not {want.dtype}"
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(have, want, err_msg=where)
        return
    if want.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)
    if want.dtype.kind not in "fc":  # a type of ml_dtypes
        have, want = have.astype(np.float32), want.astype(np.float32)
    np.testing.assert_allclose(have, want, rtol=rtol, atol=atol, err_msg=where)
