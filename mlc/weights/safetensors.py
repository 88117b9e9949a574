"""Reading and writing files in the safetensors format (little-endian header length, JSON header, data)
with NumPy.

Element types go by their MLIR names. Those that the format does not know are stored as bytes (`U8`, with
a last
dimension of the element's width) and named in the metadata under `mlc.dtypes`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mlc.interp.dtypes import numpy_dtype

_FORMAT_NAMES = {
    "i1": "BOOL",
    "i8": "I8",
    "i16": "I16",
    "i32": "I32",
    "i64": "I64",
    "f16": "F16",
    "bf16": "BF16",
    "f32": "F32",
    "f64": "F64",
    "f8E4M3FN": "F8_E4M3",
    "f8E5M2": "F8_E5M2",
    "f8E8M0FNU": "F8_E8M0",
    "complex<f32>": "C64",
}
_MLIR_NAMES = {name: dtype for dtype, name in _FORMAT_NAMES.items()} | {
    "U8": "i8",
    "U16": "i16",
    "U32": "i32",
    "U64": "i64",
}
_CHUNK = 1 << 24
DIGEST = "mlc.digest"  # of the data, in the metadata: 64 hexadecimal digits
_DATA_ALIGNMENT = 4096


class FormatError(ValueError):
    """A file that is not in the safetensors format, or is cut short."""


@dataclass(frozen=True)
class Tensor:
    """Where a tensor lies in a file: `dtype` in MLIR spelling, `begin` and `end` in bytes after the
    header.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class SafetensorsFile:
    """A file mapped read-only; arrays are views of the mapping.

    Raises `FormatError` for a malformed file, `OSError` for one that cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if len(head) < 8 or length > size - 8:
                raise FormatError(f"{self.path.name} is not a safetensors file: its header is incomplete")
            try:
                header = json.loads(file.read(length))
            except ValueError as error:
                raise FormatError(f"{self.path.name} is not a safetensors file: {error}") from None
        if not isinstance(header, dict):
            raise FormatError(f"{self.path.name} is not a safetensors file: its header is no JSON object")
        self.metadata: dict[str, str] = header.pop("__metadata__", {})
        self._start = 8 + length
        self._bytes = np.memmap(self.path, np.uint8, "r") if size else np.zeros(0, np.uint8)
        dtypes = json.loads(self.metadata.get("mlc.dtypes", "{}"))
        self.tensors = {name: self._entry(name, entry, dtypes.get(name)) for name, entry in header.items()}

    def _entry(self, name: str, entry: Mapping[str, Any], dtype: str | None) -> Tensor:
        try:
            shape, (begin, end) = tuple(int(n) for n in entry["shape"]), entry["data_offsets"]
            dtype = dtype or _MLIR_NAMES[entry["dtype"]]
        except (KeyError, TypeError, ValueError):
            raise FormatError(f"{self.path.name}: the entry of tensor '{name}' is malformed") from None
        if dtype not in _FORMAT_NAMES:
            shape = shape[:-1]
        want = int(np.prod(shape, dtype=np.int64)) * numpy_dtype(dtype).itemsize
        if end - begin != want or begin < 0:
            raise FormatError(f"{self.path.name}: tensor '{name}' has {end - begin} bytes, expected {want}")
        if self._start + end > self._bytes.size:
            have = self._bytes.size
            raise FormatError(f"{self.path.name}: {have} bytes, tensor '{name}' ends at {self._start + end}: cut short")
        return Tensor(name, dtype, shape, begin, end)

    def check(self) -> None:
        """Raises `FormatError` when the data are not those that the file was written with, as far as it says."""
        wanted = self.metadata.get(DIGEST)
        if wanted is None:
            return
        digest = hashlib.blake2b(digest_size=32)
        for chunk in byte_chunks(self._bytes[self._start :]):
            digest.update(chunk)
        if digest.hexdigest() != wanted:
            raise FormatError(f"{self.path.name} is damaged: its data do not have the hash that its header says")

    def array(self, name: str) -> np.ndarray:
        """The tensor `name` as a read-only view of the file. Raises `KeyError` when there is none."""
        tensor = self.tensors[name]
        raw = self._bytes[self._start + tensor.begin : self._start + tensor.end]
        return np.ndarray(tensor.shape, numpy_dtype(tensor.dtype), raw)


def byte_chunks(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of `array`, row-major, in pieces of bounded size."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK].data


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that appears under `path` when the block ends well, and not at all when it raises."""
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = str(path)
        raise


def header_bytes(tensors: Iterable[Tensor], metadata: Mapping[str, str]) -> bytes:
    """Length and JSON header, padded with blanks so that the data begin at a multiple of the page size."""
    tensors = list(tensors)
    foreign = {t.name: t.dtype for t in tensors if t.dtype not in _FORMAT_NAMES}
    full = dict(metadata) | ({"mlc.dtypes": json.dumps(foreign)} if foreign else {})
    header: dict[str, Any] = {"__metadata__": full} if full else {}
    for t in tensors:
        shape = list(t.shape) if t.dtype in _FORMAT_NAMES else [*t.shape, numpy_dtype(t.dtype).itemsize]
        name = _FORMAT_NAMES.get(t.dtype, "U8")
        header[t.name] = {"dtype": name, "shape": shape, "data_offsets": [t.begin, t.end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    padding = -(8 + len(text)) % _DATA_ALIGNMENT
    return (len(text) + padding).to_bytes(8, "little") + text + b" " * padding
