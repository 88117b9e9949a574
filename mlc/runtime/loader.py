"""Runs compiled models from Python. Needs NumPy only.

    model = load("model.so", threads=4)
    outputs = model.run({"x": x})          # {"y": array}
    y, = model(x)                          # positional, a list

Inputs are NumPy arrays, anything with `__dlpack__`, or numbers and nested lists. A model may be called from
several threads at once: each call takes a context of its own.
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import abi
from .dtypes import dtype_name, numpy_dtype
from .errors import ArgumentError, InputError, LoadError, error_of
from .values import Owner, ValueInfo, fill_array, fill_value, to_python


@dataclass(frozen=True)
class DimInfo:
    """A named dimension: lowest and highest extent (-1: unbounded), and what extents are multiples of."""

    name: str
    lowest: int
    highest: int
    multiple: int


class _Library:
    """A loaded file; unloaded when the last model, context and output that need it are gone.

    They say so with `acquire` and `release`: the order in which Python's collector finalises a cycle of garbage is not
    one in which code may be unloaded.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._users: list[None] = []
        self._dll = _open(path)
        query = self._dll.mlc_model_query
        query.argtypes, query.restype = [ctypes.c_uint32], ctypes.POINTER(abi.Api)
        table = query(abi.ABI_VERSION)
        if not table:
            _ctypes.dlclose(self._dll._handle)
            raise LoadError(
                f"'{path}' was compiled by a version of mlc whose ABI this one does not speak: compile it again"
            )
        self.api = table.contents

    def acquire(self) -> None:
        """One more object needs the code."""
        self._users.append(None)  # a list: appending and popping are atomic

    def release(self, dlclose: Callable[[int], object] = _ctypes.dlclose) -> None:
        """One object less needs the code."""
        self._users.pop()
        if not self._users:
            dlclose(self._dll._handle)

    def check(self, code: int, status: abi.Status) -> None:
        if code:
            raise error_of(code, status.message.decode(errors="replace"))


def _open(path: Path) -> ctypes.CDLL:
    if not path.exists():
        raise LoadError(f"there is no file '{path}'")
    if path.is_dir():
        raise LoadError(f"'{path}' is a folder, not a compiled model")
    try:
        dll = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise LoadError(f"'{path}' is not a compiled model that this machine can load: {reason}") from error
    if not hasattr(dll, "mlc_model_query"):
        _ctypes.dlclose(dll._handle)
        raise LoadError(f"'{path}' is a shared library, but not a model compiled by mlc")
    return dll


class Entry:
    """An entry point of a model; call it as the model itself."""

    def __init__(self, model: Model, index: int, name: str) -> None:
        self._model = model
        self.index = index
        self.name = name
        self.inputs: list[ValueInfo] = []
        self.outputs: list[ValueInfo] = []

    def __call__(self, *arrays: Any, **named: Any) -> list[Any]:
        """Runs the entry; see `Model.__call__`."""
        with self._model._any_context() as context:
            return context._run(self, self.arguments(arrays, named), None)

    def run(
        self, inputs: Mapping[str, Any] | Sequence[Any], *, out: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> dict[str, Any]:
        """Runs the entry; see `Model.run`."""
        with self._model._any_context() as context:
            return context.run(inputs, out=out, entry=self)

    def arguments(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The inputs in order, out of positional and named ones. ArgumentError when they do not add up."""
        names = [info.name for info in self.inputs]
        if len(arrays) > len(names):
            raise ArgumentError(f"entry '{self.name}' takes {len(names)} inputs, got {len(arrays)}")
        given = dict(zip(names, arrays, strict=False))
        for name, value in named.items():
            if name not in names:
                known = ", ".join(names) or "none"
                raise ArgumentError(f"entry '{self.name}' has no input '{name}'; its inputs are: {known}")
            if name in given:
                raise ArgumentError(f"input '{name}' is given twice")
            given[name] = value
        for info in self.inputs:
            if info.name not in given and info.kind[0] == "optional":
                given[info.name] = None
        missing = [name for name in names if name not in given]
        if missing:
            raise ArgumentError(f"entry '{self.name}' needs the inputs {', '.join(missing)} as well")
        return [given[name] for name in names]


class Context:
    """What one run at a time needs: an arena, scratch memory, timings. Used by one thread at a time."""

    def __init__(self, model: Model, profile: bool = False) -> None:
        self._model = model
        self._library = model._library
        self._status = abi.new_status()
        self._handle = ctypes.c_void_p()
        options = abi.ContextOptions(ctypes.sizeof(abi.ContextOptions), int(profile))
        code = self._library.api.context_create(
            model._handle, ctypes.byref(options), ctypes.byref(self._handle), ctypes.byref(self._status)
        )
        self._library.check(code, self._status)
        self._library.acquire()

    def close(self) -> None:
        """Frees the context. It cannot be used afterwards."""
        if self._handle:
            self._library.api.context_destroy(self._handle)
            self._handle = ctypes.c_void_p()
            self._library.release()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        out: Mapping[str, Any] | Sequence[Any] | None = None,
        entry: str | Entry | None = None,
    ) -> dict[str, Any]:
        """Runs an entry in this context; see `Model.run`."""
        chosen = entry if isinstance(entry, Entry) else self._model.entry(entry)
        if isinstance(inputs, Mapping):
            arguments = chosen.arguments([], inputs)
        else:
            arguments = chosen.arguments(inputs, {})
        results = self._run(chosen, arguments, out)
        return {info.name: result for info, result in zip(chosen.outputs, results, strict=True)}

    def profile(self) -> dict[str, Any]:
        """Times since the last call, in nanoseconds: {"runs", "ns", "kernels": [{"id", "calls", "ns", …}]}.

        Kernels get their names from the model's metadata. Empty unless the context was created with
        `profile=True`.
        """
        text = self._library.api.profile(self._handle)
        if text is None:
            return {"runs": 0, "ns": 0, "kernels": []}
        result = json.loads(text)
        known = self._model.metadata.get("kernels", [])
        for kernel in result["kernels"]:
            row = known[kernel["id"]] if kernel["id"] < len(known) else {}
            kernel["name"] = row.get("name", f"k{kernel['id']}") if isinstance(row, dict) else str(row)
        return result

    def _run(self, entry: Entry, arguments: Sequence[Any], out: Any) -> list[Any]:
        if not self._handle:
            raise ArgumentError("the context is closed")
        keep: list[Any] = []
        inputs = (abi.Value * len(arguments))()
        for value, argument, info in zip(inputs, arguments, entry.inputs, strict=True):
            fill_value(value, argument, info, keep)
        outputs = (abi.Value * len(entry.outputs))()
        buffers = self._buffers(entry, inputs, out)
        for value, buffer, info in zip(outputs, buffers, entry.outputs, strict=True):
            value.struct_size = ctypes.sizeof(abi.Value)
            if buffer is not None:
                fill_array(value, buffer, info, keep)
        status = self._status
        code = self._library.api.run(
            self._handle, entry.index, inputs, len(inputs), outputs, len(outputs), None, ctypes.byref(status)
        )
        self._library.check(code, status)
        return [
            self._result(value, info) if buffer is None else buffer
            for value, buffer, info in zip(outputs, buffers, entry.outputs, strict=True)
        ]

    def _result(self, value: abi.Value, info: ValueInfo) -> Any:
        owner = Owner(value, self._library)
        return to_python(value, info, owner)

    def _buffers(self, entry: Entry, inputs: ctypes.Array[abi.Value], out: Any) -> list[np.ndarray | None]:
        """The caller's buffers, new ones where the shape is known by now, None where the runtime
        allocates."""
        given = _given_buffers(entry, out)
        extents: dict[str, int] = {}
        for value, info in zip(inputs, entry.inputs, strict=True):
            if info.kind == ("tensor",) and info.dims and value.tensor.ndim == len(info.dims):
                shape = (ctypes.c_int64 * value.tensor.ndim).from_address(value.tensor.shape)
                extents.update({d: n for d, n in zip(info.dims, shape, strict=True) if isinstance(d, str)})
        result = []
        for buffer, info in zip(given, entry.outputs, strict=True):
            if buffer is None and info.kind == ("tensor",) and info.dims is not None and info.dtype != "string":
                shape = [extents.get(d, -1) if isinstance(d, str) else d for d in info.dims]
                if all(n is not None and n >= 0 for n in shape):
                    buffer = np.empty(tuple(shape), numpy_dtype(info.dtype))
            result.append(buffer)
        return result


def _given_buffers(entry: Entry, out: Any) -> list[np.ndarray | None]:
    names = [info.name for info in entry.outputs]
    if out is None:
        return [None] * len(names)
    if isinstance(out, Mapping):
        unknown = [name for name in out if name not in names]
        if unknown:
            raise ArgumentError(f"entry '{entry.name}' has no output '{unknown[0]}'; it has {', '.join(names)}")
        buffers = [out.get(name) for name in names]
    else:
        buffers = list(out)
        if len(buffers) != len(names):
            raise ArgumentError(f"entry '{entry.name}' has {len(names)} outputs, got {len(buffers)} buffers")
    for name, buffer in zip(names, buffers, strict=True):
        if buffer is None:
            continue
        if not isinstance(buffer, np.ndarray) or not buffer.flags.writeable or not buffer.dtype.isnative:
            raise InputError(f"output '{name}': a buffer is a writable NumPy array in native byte order")
        if any(stride % buffer.itemsize for stride in buffer.strides):
            raise InputError(f"output '{name}': the buffer's strides are not whole elements")
    return buffers


class Model:
    """A compiled model: its signature, its weights (mapped once) and its threads.

    `entries` are its entry points by name, `dims` its named dimensions, `metadata` what the compiler
    recorded.
    """

    def __init__(self, path: Path, threads: int | None, weights: Path | None, verify_weights: bool) -> None:
        self._handle = ctypes.c_void_p()
        self._library = _Library(path)
        self._library.acquire()
        self._idle: list[Context] = []
        self._lock = threading.Lock()
        api = self._library.api
        self.path = path
        self.metadata: dict[str, Any] = json.loads(api.metadata() or b"{}")
        self.dims = {dim.name: dim for dim in _read_dims(api)}
        self.entries = {entry.name: entry for entry in _read_entries(self, api, list(self.dims))}
        self._create(threads, weights, verify_weights)

    def _create(self, threads: int | None, weights: Path | None, verify_weights: bool) -> None:
        options = abi.InstanceOptions(ctypes.sizeof(abi.InstanceOptions))
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads is {threads}; it must be at least 1")
        options.num_threads = threads or 0
        options.weights_path = os.fsencode(weights) if weights else None
        options.skip_weights_hash = int(not verify_weights)
        status = abi.new_status()
        code = self._library.api.instance_create(
            ctypes.byref(options), ctypes.byref(self._handle), ctypes.byref(status)
        )
        self._library.check(code, status)

    @property
    def num_threads(self) -> int:
        """How many threads a run uses, the caller's included."""
        return int(self._library.api.num_threads(self._handle))

    @property
    def inputs(self) -> list[ValueInfo]:
        """The inputs of the first entry."""
        return self.entry().inputs

    @property
    def outputs(self) -> list[ValueInfo]:
        """The outputs of the first entry."""
        return self.entry().outputs

    def entry(self, name: str | None = None) -> Entry:
        """The entry `name`, or the first. ArgumentError when there is none of that name."""
        if name is None:
            return next(iter(self.entries.values()))
        if name not in self.entries:
            raise ArgumentError(f"the model has no entry '{name}'; it has {', '.join(self.entries)}")
        return self.entries[name]

    def context(self, *, profile: bool = False) -> Context:
        """A context of one's own, for a thread that calls often or for profiling. Close it, or use `with`."""
        return Context(self, profile)

    def __call__(self, *arrays: Any, **named: Any) -> list[Any]:
        """Runs the first entry: inputs by position or by name; returns its outputs in order.

        Raises an MlcError: ArgumentError, InputError, ModelError, OutOfMemoryError.
        """
        return self.entry()(*arrays, **named)

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        out: Mapping[str, Any] | Sequence[Any] | None = None,
        entry: str | None = None,
    ) -> dict[str, Any]:
        """Runs an entry (default: the first) and returns its outputs by name.

        `inputs` are in order, or by name (any string, unlike keyword arguments). `out` gives writable
        arrays for some (None: not this one) or all outputs, which are then returned themselves.
        """
        return self.entry(entry).run(inputs, out=out)

    @contextlib.contextmanager
    def _any_context(self) -> Iterator[Context]:
        with self._lock:
            context = self._idle.pop() if self._idle else None
        if context is None:
            context = Context(self)
        try:
            yield context
        finally:
            with self._lock:
                self._idle.append(context)

    def __del__(self) -> None:
        library = getattr(self, "_library", None)
        if library is None:
            return
        # Contexts keep the instance alive in the runtime for as long as they need it.
        library.api.instance_destroy(self._handle)
        library.release()

    def __repr__(self) -> str:
        return f"<mlc model '{self.path.name}': {', '.join(self.entries)}>"


def _read_dims(api: abi.Api) -> Iterator[DimInfo]:
    for i in range(api.num_dims()):
        info = abi.DimInfo(ctypes.sizeof(abi.DimInfo))
        api.dim_info(i, ctypes.byref(info))
        yield DimInfo(info.name.decode(), info.lowest, info.highest, info.multiple)


def _read_entries(model: Model, api: abi.Api, dims: Sequence[str]) -> Iterator[Entry]:
    for number in range(api.num_entries()):
        info = abi.EntryInfo(ctypes.sizeof(abi.EntryInfo))
        api.entry_info(number, ctypes.byref(info))
        entry = Entry(model, number, info.name.decode())
        for read, count, target in (
            (api.input_info, info.num_inputs, entry.inputs),
            (api.output_info, info.num_outputs, entry.outputs),
        ):
            for i in range(count):
                value = abi.ValueInfo(ctypes.sizeof(abi.ValueInfo))
                read(number, i, ctypes.byref(value))
                target.append(_value_info(value, dims))
        yield entry


def _value_info(value: abi.ValueInfo, names: Sequence[str]) -> ValueInfo:
    kinds = []
    kind = value.kind
    while kind:
        kinds.append(abi.KIND_NAMES[kind & 15])
        kind >>= 4
    dims: list[int | str | None] = []
    for i in range(max(value.rank, 0)):
        identity = value.dim_ids[i] if value.dim_ids else -1
        extent = value.dims[i]
        dims.append(extent if extent >= 0 else names[identity] if identity >= 0 else None)
    shape = None if value.rank < 0 else tuple(dims)
    return ValueInfo(value.name.decode(), dtype_name(value.dtype), shape, tuple(kinds))


def load(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    weights: str | os.PathLike[str] | None = None,
    verify_weights: bool = True,
) -> Model:
    """Loads a compiled model.

    `threads`: how many threads a run may use, the caller's included; default MLC_NUM_THREADS, else the
    physical cores that the process may use. `weights`: the file of external weights, when it is not beside
    the model. `verify_weights=False` trusts an external weight file of the right size without hashing it.
    Raises LoadError, DeviceError or WeightsError.
    """
    full = Path(os.path.abspath(path))
    return Model(full, threads, Path(weights) if weights is not None else None, verify_weights)
