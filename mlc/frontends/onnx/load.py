"""Reads an ONNX model from a file, bytes or a proto, and checks what can be checked without importing it."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import stat
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import external_data_helper, numpy_helper

from mlc.frontends.onnx.detach import detach
from mlc.frontends.report import ModelError, NodeError, Problem

Source: TypeAlias = Path | str | bytes | onnx.ModelProto
_SIZE_LIMIT = 2**31 - 1
_BAD_NODE = re.compile(r"Bad node spec for node\. Name: (.*?) OpType: (\w+)")
_LARGE = 1 << 20  # bytes of a file that is mapped, and hashed in a thread


@dataclass
class Model:
    """A model that parsed: its proto, where it came from, and its content hash, which a thread works out meanwhile.

    `serialized` is the message to check, until the model has been checked. The initializers `detached` are in the file
    that the model came from, and external data in the proto.
    """

    proto: onnx.ModelProto
    title: str
    folder: Path | None
    hashing: Future[str]
    serialized: bytes = field(repr=False)
    detached: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        """SHA-256 of the serialized model, 64 hexadecimal digits."""
        return self.hashing.result()


def load(source: Source) -> Model:
    """The model of `source`; raises `ModelError` for a file that is missing, truncated or no ONNX model."""
    if isinstance(source, onnx.ModelProto):
        data = source.SerializeToString(deterministic=True)
        return Model(source, source.graph.name or "model", None, _hashed(data), data)
    if isinstance(source, bytes):
        return Model(_parse(source, "model"), "model", None, _hashed(source), source)
    path, title = Path(source), str(source)
    try:
        with path.open("rb") as file:
            mapped = _mapped(file)
            data = b"" if mapped else file.read()
    except OSError as error:
        raise ModelError(title, [Problem(f"cannot be read: {error.strerror or error}")]) from error
    if mapped is None:
        return Model(_parse(data, title), title, path.parent, _hashed(data), data)
    hashing = _hashed_file(path)
    split = detach(memoryview(mapped), path.name, tensor_bytes)
    if split is not None:
        return Model(_parse(split.parse, title), title, path.parent, hashing, split.check, split.names)
    data = mapped[:]
    return Model(_parse(data, title), title, path.parent, hashing, data)


def _mapped(file: BinaryIO) -> mmap.mmap | None:
    """The content of a file where mapping it pays."""
    status = os.fstat(file.fileno())
    if status.st_size < _LARGE or not stat.S_ISREG(status.st_mode):
        return None
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _hashed(data: bytes) -> Future[str]:
    done: Future[str] = Future()
    done.set_result(hashlib.sha256(data).hexdigest())
    return done


def _hashed_file(path: Path) -> Future[str]:
    """The hash of a file, by a thread. It reads: nobody waits for it when the import fails, and touching a mapping of a
    file that has become shorter by then would end the process.
    """

    def work() -> str:
        digest, buffer = hashlib.sha256(), memoryview(bytearray(1 << 20))
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                digest.update(buffer[:count])
        return digest.hexdigest()

    pool = ThreadPoolExecutor(1, thread_name_prefix="mlc-hash")
    hashing = pool.submit(work)
    pool.shutdown(wait=False)
    return hashing


def _parse(data: bytes, title: str) -> onnx.ModelProto:
    hint = "give a file that onnx.checker accepts"
    if not data:
        raise ModelError(title, [Problem("the file is empty", hint)])
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        reason = "not an ONNX model, or truncated: the protobuf message does not parse"
        raise ModelError(title, [Problem(reason, hint)]) from error
    if not proto.ir_version or not proto.HasField("graph") or not proto.opset_import:
        reason = "not an ONNX model: it parses, but has no ir_version, opset_import or graph"
        raise ModelError(title, [Problem(reason, hint)])
    return proto


def opset(proto: onnx.ModelProto, domain: str = "") -> int:
    """The version of an operator set that the model imports; 0 when it does not."""
    for entry in proto.opset_import:
        if (entry.domain or "") in (domain, "ai.onnx" if domain == "" else domain):
            return entry.version
    return 0


def newer_opset(proto: onnx.ModelProto) -> list[Problem]:
    """What is wrong with a version of ONNX's operators that is not known: they may mean something else by then."""
    version, newest = opset(proto), onnx.defs.onnx_opset_version()
    if version <= newest:
        return []
    hint = f"export the model with opset_version={newest} or an older one, or upgrade the package onnx"
    return [Problem(f"the model uses opset {version}, and {newest} is the newest that is known", hint)]


def check(model: Model) -> list[Problem]:
    """What `onnx.checker` says about the model, as at most one problem. To be asked once: it gives up the serialized
    model.
    """
    data, model.serialized = model.serialized, b""
    if len(data) > _SIZE_LIMIT or has_external_data(model):
        return []
    found = _checker_says(data)
    if any(field in found for field in _DISPENSABLE):
        found = _checker_says(_completed(data))
    return [Problem(found)] if found else []


# What the checker asks for and an import does not need. Inputs of unknown rank get their shapes from the caller, or, as
# those without a type, a report of their own; types of outputs are inferred. All operators are known by then: what the
# checker does not know are onnxruntime's, which has some of them in ONNX's own domain.
_DISPENSABLE = (
    "Field 'shape' of 'type'", "Field 'type' of 'value_info'", "Field 'name' of 'graph'", "No Op registered for",
)  # fmt: skip
_ELSEWHERE = "com.microsoft"


def _checker_says(data: bytes) -> str:
    try:
        onnx.checker.check_model(data)
    except onnx.checker.ValidationError as error:
        return f"onnx.checker: {one_line(error)}"
    return ""


def _completed(data: bytes) -> bytes:
    """A serialized model with something in every field that an import does without, and onnxruntime's operators in its
    domain: for the checker, which stops at the first that is missing or not known.
    """
    proto = onnx.ModelProto.FromString(data)
    if not opset(proto, _ELSEWHERE):
        proto.opset_import.add(domain=_ELSEWHERE, version=1)
    for graph in graphs_of(proto.graph):
        for node in graph.node:
            if node.domain in ("", "ai.onnx") and not onnx.defs.has(node.op_type):
                node.domain = _ELSEWHERE
        graph.name = graph.name or "graph"
        for value in (*graph.input, *graph.output):
            if value.type.WhichOneof("value") is None:
                value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.shape.SetInParent()
    return bytes(proto.SerializeToString())


def one_line(error: BaseException) -> str:
    """The message of an error of the checker on one line; of the node that it prints the name and the operator."""
    text, _, context = str(error).partition("==> Context:")
    node = _BAD_NODE.search(context)
    place = f' (node "{node[1]}", {node[2]})' if node and node[1] else ""
    return " ".join(text.split()) + place


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and the graphs nested in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for nested in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from graphs_of(nested)


def tensors_of(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """All initializers and tensor attributes of a graph and of the graphs nested in it."""
    for part in graphs_of(graph):
        yield from part.initializer
        for node in part.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors


def has_external_data(model: Model) -> bool:
    """Whether any tensor lives outside the model file."""
    external = (tensor for tensor in tensors_of(model.proto.graph) if external_data_helper.uses_external_data(tensor))
    return any(tensor.name not in model.detached for tensor in external)


def external_problems(model: Model) -> list[Problem]:
    """Everything wrong with the model's external data files: missing, too short, or outside the model's folder."""
    problems = []
    for tensor in tensors_of(model.proto.graph):
        if external_data_helper.uses_external_data(tensor):
            reason = _external_problem(model, tensor)
            if reason:
                problems.append(Problem(f'tensor "{tensor.name}": {reason[0]}', reason[1]))
    return problems


def _external_problem(model: Model, tensor: onnx.TensorProto) -> tuple[str, str] | None:
    info = external_data_helper.ExternalDataInfo(tensor)
    if model.folder is None:
        return "has external data, but the model was not given as a file", "give the path of the model"
    path = _file_of(model, info.location)
    if path is None:
        reason = f'its external data "{info.location}" lies outside the model\'s folder'
        return reason, "keep the data beside the model"
    if not path.is_file():
        return f'its external data file "{info.location}" is missing', "put it beside the model"
    end = (info.offset or 0) + tensor_bytes(tensor)
    if path.stat().st_size < end:
        reason = f'its external data file "{info.location}" has {path.stat().st_size} bytes, but needs {end}'
        return reason, "the file is truncated: copy it again"
    return None


def _file_of(model: Model, location: str) -> Path | None:
    """The file of an external tensor, or nothing when it is not inside the model's folder; the model's own file is."""
    if model.folder is None:
        return None
    if model.detached and location == Path(model.title).name:
        return Path(model.title)
    return external_path(model.folder, location)


def external_path(folder: Path, location: str) -> Path | None:
    """The file of an external tensor, or nothing when it is not inside `folder`."""
    root = folder.resolve()
    path = (root / location).resolve()
    return path if path.is_relative_to(root) and not Path(location).is_absolute() else None


def tensor_bytes(tensor: onnx.TensorProto) -> int:
    """The size of a tensor's raw data."""
    dtype = numpy_dtype(tensor.data_type)
    count = int(np.prod(tensor.dims, dtype=np.int64))
    bits = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}.get(dtype.name, 8 * dtype.itemsize)
    return (count * bits + 7) // 8


def numpy_dtype(elem_type: int) -> np.dtype:
    """The NumPy dtype of an ONNX element type."""
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type))


def dtype_name(elem_type: int) -> str:
    """The dtype name of an ONNX element type; `string` for strings."""
    return "string" if elem_type == onnx.TensorProto.STRING else numpy_dtype(elem_type).name


@dataclass(frozen=True)
class ExternalTensor:
    """Maps a tensor's data from its file when called."""

    path: Path
    offset: int
    elem_type: int
    shape: tuple[int, ...]

    def __call__(self) -> np.ndarray:
        """The elements."""
        dtype = numpy_dtype(self.elem_type)
        tensor = onnx.TensorProto(data_type=self.elem_type, dims=self.shape)
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        if tensor_bytes(tensor) == int(np.prod(self.shape, dtype=np.int64)) * dtype.itemsize:
            return np.memmap(self.path, dtype, "r", self.offset, self.shape)
        # Elements narrower than a byte are packed.
        with self.path.open("rb") as file:
            file.seek(self.offset)
            tensor.raw_data = file.read(tensor_bytes(tensor))
        return numpy_helper.to_array(tensor)


def texts_of(tensor: onnx.TensorProto) -> np.ndarray:
    """The elements of a tensor of strings, as objects; `NodeError` for what is no UTF-8."""
    result = np.empty(len(tensor.string_data), object)
    try:
        result[:] = [item.decode() for item in tensor.string_data]
        return result.reshape(tuple(tensor.dims))
    except ValueError as error:
        raise NodeError(f'the strings of the tensor "{tensor.name}" cannot be read: {error}') from error


def array_of(model: Model, tensor: onnx.TensorProto) -> np.ndarray | ExternalTensor:
    """The elements of a tensor: an array, or for external data a function that maps the file when called."""
    if not external_data_helper.uses_external_data(tensor):
        return numpy_helper.to_array(tensor)
    info = external_data_helper.ExternalDataInfo(tensor)
    path = _file_of(model, info.location)
    assert path is not None, "external_problems was not asked"
    return ExternalTensor(path, info.offset or 0, tensor.data_type, tuple(tensor.dims))
