"""NumPy arrays, DLPack objects, lists and strings as `mlc_value`s, and back."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import abi
from .dtypes import DTYPES, accepted_name, numpy_dtype
from .errors import InputError
from .tensors import exportable, is_cuda_tensor


@dataclass(frozen=True)
class ValueInfo:
    """One input or output of an entry.

    `dims` holds an extent, the name of a dimension, or None (dynamic, without a name) per dimension; it is None
    when any rank is accepted. `kind` goes from the outside in, for instance ("optional", "sequence", "tensor").
    An output with `keys` is a matrix with a key for each column: Python gets a list of dictionaries. Inputs with
    the name of a `map` are its keys and its values: Python may give a dictionary instead. An output that `shares` may
    be given the memory of the input of that name, which it continues. What an output `continues` is the input as which
    the next run gets it; an input with a `default` may be left out where its extents are known: all its elements are
    that number then.
    """

    name: str
    dtype: str
    dims: tuple[int | str | None, ...] | None
    kind: tuple[str, ...] = ("tensor",)
    keys: tuple[int | str, ...] = ()
    map: str = ""
    shares: str = ""
    continues: str = ""
    default: int | float | None = None

    def __str__(self) -> str:
        dims = "..." if self.dims is None else ",".join("?" if d is None else str(d) for d in self.dims)
        text = f"{self.dtype}[{dims}]"
        if self.keys:
            more = ", ..." if len(self.keys) > 4 else ""
            text += f", a map a row: {', '.join(map(str, self.keys[:4]))}{more}"
        if self.default is not None:
            text += f", {self.default:g} if not given"
        if self.continues and self.continues != self.shares:
            text += f", continues {self.continues}"
        if self.shares:
            text += f", may share {self.shares}"
        for kind in reversed(self.kind[:-1]):
            text = f"{kind}({text})"
        return text


# --- Python to C ---------------------------------------------------------------------------------------------


class _ManagedTensor(ctypes.Structure):
    """The head of DLPack's DLManagedTensor."""

    _fields_ = [("tensor", abi.Tensor)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def fill_value(target: abi.Value, source: Any, info: ValueInfo, keep: list[Any], level: int = 0) -> None:
    """Describes `source` in `target`; what must stay alive for the run is added to `keep`.

    Raises InputError when `source` cannot be expressed at all; whether it fits is the runtime's business.
    """
    target.struct_size = ctypes.sizeof(abi.Value)
    kind = info.kind[level]
    if kind == "sequence":
        if not isinstance(source, (list, tuple)):
            raise InputError(f"input '{info.name}': expected {info}, got {type(source).__name__}; pass a list")
        _fill_items(target, abi.SEQUENCE, source, info, keep, level)
    elif kind == "optional":
        items = [] if source is None else [source]
        _fill_items(target, abi.OPTIONAL, items, info, keep, level)
    else:
        target.kind = abi.TENSOR
        _fill_tensor(target, source, info, keep)


def _fill_items(
    target: abi.Value, kind: int, items: Sequence[Any], info: ValueInfo, keep: list[Any], level: int
) -> None:
    target.kind = kind
    target.num_items = len(items)
    array = (abi.Value * len(items))()
    keep.append(array)
    target.items = ctypes.cast(array, ctypes.POINTER(abi.Value))
    for slot, item in zip(array, items, strict=True):
        fill_value(slot, item, info, keep, level + 1)


def _fill_tensor(target: abi.Value, source: Any, info: ValueInfo, keep: list[Any]) -> None:
    if isinstance(source, np.ndarray):
        fill_array(target, source, info, keep)
    elif hasattr(source, "__dlpack__") and not isinstance(source, np.generic):
        source = exportable(source)
        try:
            capsule = source.__dlpack__()
        except Exception as error:
            raise InputError(f"input '{info.name}': its object does not export DLPack: {error}") from error
        # The capsule owns the tensor and stays unused: dropping it frees the export.
        pointer = _capsule_pointer(capsule, b"dltensor")
        target.tensor = ctypes.cast(pointer, ctypes.POINTER(_ManagedTensor)).contents.tensor
        keep.append(capsule)
    else:
        fill_array(target, _from_python(source, info), info, keep)


def is_on_device(buffer: Any) -> bool:
    """Whether an array lives outside of the CPU's memory."""
    if is_cuda_tensor(buffer):
        return True
    if isinstance(buffer, np.ndarray) or not hasattr(buffer, "__dlpack_device__"):
        return False
    return bool(buffer.__dlpack_device__()[0] != 1)


def fill_buffer(target: abi.Value, buffer: Any, info: ValueInfo, keep: list[Any]) -> None:
    """Describes a caller's buffer for an output: a NumPy array, or DLPack memory of a GPU."""
    if isinstance(buffer, np.ndarray):
        fill_array(target, buffer, info, keep)
        return
    target.struct_size, target.kind = ctypes.sizeof(abi.Value), abi.TENSOR
    _fill_tensor(target, buffer, info, keep)


def _from_python(source: Any, info: ValueInfo) -> np.ndarray:
    """Numbers and nested lists take the type that the model wants; NumPy scalars keep theirs."""
    if source is None:  # NumPy takes it for a NaN
        raise InputError(f"input '{info.name}': expected {info}, got None")
    try:
        if isinstance(source, np.generic):
            return np.asarray(source)
        return np.asarray(source, dtype=numpy_dtype(info.dtype))
    except (ValueError, TypeError, OverflowError) as error:
        text = f"{type(source).__name__} cannot become an array: {error}"
        raise InputError(f"input '{info.name}': expected {info}; {text}") from error


def fill_array(target: abi.Value, array: np.ndarray, info: ValueInfo, keep: list[Any]) -> None:
    """Describes a NumPy array; `target.kind` becomes a tensor."""
    if array.dtype == numpy_dtype(info.dtype):
        name = info.dtype
    elif array.dtype.hasobject and info.dtype != "string":
        raise InputError(f"input '{info.name}': expected {info}, got an array of Python objects")
    else:
        try:
            name = accepted_name(array.dtype)
        except ValueError as error:
            raise InputError(f"input '{info.name}': expected {info}; {error}") from error
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if name == "string":
        array = _strings(array, info, keep)
    itemsize = array.itemsize
    if any(stride % itemsize for stride in array.strides):
        array = np.ascontiguousarray(array)
    tensor = target.tensor
    target.kind = abi.TENSOR
    tensor.data = array.ctypes.data
    tensor.device_type, tensor.device_id = 1, 0
    tensor.ndim = array.ndim
    (tensor.code, tensor.bits), tensor.lanes = DTYPES[name], 1
    # Shape and strides in one block; NumPy's own are not reachable without a cast that costs more.
    extents = (ctypes.c_int64 * (2 * array.ndim))(*array.shape, *(s // itemsize for s in array.strides))
    tensor.shape = ctypes.addressof(extents)
    tensor.strides = tensor.shape + 8 * array.ndim if not array.flags.c_contiguous else None
    tensor.byte_offset = 0
    keep.append((array, extents))


def _strings(array: np.ndarray, info: ValueInfo, keep: list[Any]) -> np.ndarray:
    """The elements as mlc_string records."""
    texts = []
    for item in array.ravel().tolist():
        if isinstance(item, str):
            texts.append(item.encode())
        elif isinstance(item, bytes):
            texts.append(item)
        else:
            raise InputError(f"input '{info.name}': expected strings, got {type(item).__name__}")
    blob = ctypes.create_string_buffer(b"".join(texts))
    keep.append(blob)
    records = np.zeros(len(texts), dtype=[("data", np.uint64), ("size", np.int64)])
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    records["size"] = lengths
    records["data"] = ctypes.addressof(blob) + np.cumsum(lengths) - lengths
    return records.reshape(array.shape)


# --- C to Python ---------------------------------------------------------------------------------------------


class Owner:
    """Keeps a value of the runtime, and the library whose code frees it, until no array needs it any more."""

    def __init__(self, value: abi.Value, library: Any) -> None:
        self._value = abi.Value.from_buffer_copy(value)
        self._library = library
        library.acquire()

    def __del__(self) -> None:
        self._value.deleter(self._value)
        self._library.release()


class _Memory:
    """NumPy's array interface on memory that an Owner owns."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, owner: Owner, pointer: int, shape: tuple[int, ...], typestr: str) -> None:
        self._owner = owner
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": typestr, "data": (pointer, False)}


def shared(owner: Owner, pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array of `dtype` on memory that `owner` frees with the last view of it, and that has some elements."""
    if dtype.isbuiltin == 1:  # one that the interface can name
        return np.asarray(_Memory(owner, pointer, shape, dtype.str))
    raw = np.asarray(_Memory(owner, pointer, (math.prod(shape) * dtype.itemsize,), "|u1"))
    return raw.view(dtype).reshape(shape)


def to_python(value: abi.Value, info: ValueInfo, owner: Owner) -> Any:
    """An output: arrays share the runtime's memory, sequences are lists, an empty optional is None."""
    if value.kind == abi.SEQUENCE:
        return [to_python(value.items[i], info, owner) for i in range(value.num_items)]
    if value.kind == abi.OPTIONAL:
        return to_python(value.items[0], info, owner) if value.num_items else None
    tensor = value.tensor
    shape = tuple((ctypes.c_int64 * tensor.ndim).from_address(tensor.shape)) if tensor.ndim else ()
    count = math.prod(shape)
    if info.dtype == "string":
        return _text_array(tensor, shape, count)
    dtype = numpy_dtype(info.dtype)
    if not count:
        return np.empty(shape, dtype)
    return shared(owner, tensor.data, shape, dtype)


def _text_array(tensor: abi.Tensor, shape: tuple[int, ...], count: int) -> np.ndarray:
    result = np.empty(count, dtype=object)
    records = (abi.String * count).from_address(tensor.data) if count else ()
    for i, record in enumerate(records):
        data = ctypes.string_at(record.data, record.size)
        result[i] = data.decode(errors="surrogateescape")
    return result.reshape(shape)
