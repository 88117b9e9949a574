"""Takes the weights out of a serialized model before it is parsed.

Parsing copies every byte, and so do the checker and every access to a tensor's data. The messages of a model file are
therefore read by hand down to the data of large initializers (the wire format of protocol buffers: a key, a length, the
bytes). They become external data in the model file itself, which is how they are mapped instead of read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import onnx

SMALLEST = 1 << 16  # bytes of data; less stays in the model
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
# Keys (field number and wire type) in ModelProto, GraphProto and TensorProto.
_GRAPH, _INITIALIZER, _RAW_DATA = (number << 3 | _BYTES for number in (7, 5, 9))


@dataclass(frozen=True)
class Detached:
    """A model without its large weights: `parse` has them as external data of the file, `check` as tensors without
    elements; `names` are theirs.
    """

    parse: bytes
    check: bytes
    names: frozenset[str]


class _MalformedError(Exception):
    """Not what a model looks like; whoever parses it says why."""


def detach(data: memoryview, location: str, size_of: Callable[[onnx.TensorProto], int]) -> Detached | None:
    """The model `data`, the content of the file called `location`, without its large initializers; None when it has
    none or is not well formed. `size_of` gives the bytes that a tensor's data must have.
    """
    pieces = _Pieces(data, location, size_of)
    try:
        pieces.model()
    except (_MalformedError, ValueError, KeyError, TypeError):
        return None
    if not pieces.names:
        return None
    return Detached(b"".join(pieces.parse), b"".join(pieces.check), frozenset(pieces.names))


class _Pieces:
    """Both versions of the model while they are put together."""

    def __init__(self, data: memoryview, location: str, size_of: Callable[[onnx.TensorProto], int]) -> None:
        self.parse: list[bytes | memoryview] = []
        self.check: list[bytes | memoryview] = []
        self.names: set[str] = set()
        self._data = data
        self._location = location
        self._size_of = size_of

    def model(self) -> None:
        """The whole message, whose graph is put together first: its length goes in front of it."""
        graphs = 0
        for key, begin, content, end in _fields(self._data, 0, len(self._data)):
            if key != _GRAPH:
                self._both(self._data[begin:end])
                continue
            graphs += 1
            outer, self.parse, self.check = (self.parse, self.check), [], []
            self._graph(content, end)
            inner, (self.parse, self.check) = (self.parse, self.check), outer
            for version, parts in zip(outer, inner, strict=True):
                version += [_varint(_GRAPH), _varint(sum(len(part) for part in parts)), *parts]
        if graphs != 1:
            raise _MalformedError

    def _graph(self, begin: int, end: int) -> None:
        for key, start, content, stop in _fields(self._data, begin, end):
            detached = self._initializer(content, stop) if key == _INITIALIZER else None
            if detached is None:
                self._both(self._data[start:stop])
                continue
            for version, tensor in zip((self.parse, self.check), detached, strict=True):
                version += [_varint(_INITIALIZER), _varint(len(tensor)), tensor]

    def _both(self, piece: memoryview) -> None:
        self.parse.append(piece)
        self.check.append(piece)

    def _initializer(self, begin: int, end: int) -> tuple[bytes, bytes] | None:
        """Both versions of a tensor whose data are large and all that it has; None for any other."""
        if end - begin < SMALLEST:
            return None
        rest, data = [], []
        for key, start, content, stop in _fields(self._data, begin, end):
            if key == _RAW_DATA:
                data.append((content, stop - content))
            else:
                rest.append(self._data[start:stop])
        tensor = onnx.TensorProto()
        tensor.ParseFromString(b"".join(rest))
        if len(data) != 1 or data[0][1] < SMALLEST or data[0][1] != self._size_of(tensor) or tensor.external_data:
            return None
        if tensor.data_type == onnx.TensorProto.STRING or not tensor.name or tensor.name in self.names:
            return None
        self.names.add(tensor.name)
        empty = onnx.TensorProto()
        empty.CopyFrom(tensor)
        empty.dims[:] = [0]
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for name, value in (("location", self._location), ("offset", str(data[0][0])), ("length", str(data[0][1]))):
            tensor.external_data.add(key=name, value=value)
        return tensor.SerializeToString(), empty.SerializeToString()


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _MalformedError


def _fields(data: memoryview, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of the message in `data[begin:end]`: key, where it begins, where its content begins, its end.
    The content of numbers is none. Raises _MalformedError.
    """
    at = begin
    while at < end:
        start = at
        key, at = _read_varint(data, at, end)
        kind, content = key & 7, at
        if kind == _BYTES:
            length, content = _read_varint(data, at, end)
            at = content + length
        elif kind == _VARINT:
            at = content = _read_varint(data, at, end)[1]
        elif kind in (_FIXED64, _FIXED32):
            at = content = at + (8 if kind == _FIXED64 else 4)
        else:
            raise _MalformedError
        if at > end:
            raise _MalformedError
        yield key, start, content, at
