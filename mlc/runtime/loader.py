"""Runs compiled models from Python. Needs NumPy only.

    model = load("model.so", threads=4)
    outputs = model.run({"x": x})          # {"y": array}
    y, = model(x)                          # positional, a list

Inputs are NumPy arrays, anything with `__dlpack__`, or numbers and nested lists. A model may be called from
several threads at once: each call takes a context of its own.
"""

from __future__ import annotations

import _ctypes
import ctypes
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import abi, elf
from .dtypes import dtype_name
from .errors import ArgumentError, BusyError, LoadError, error_of
from .frame import Frame
from .maps import dictionaries, split_maps
from .state import State, filled, first_state
from .values import Owner, ValueInfo, to_python


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
        self._name = _NAMES.take(path)
        try:
            self._dll = _open(path, self._name)
        except BaseException:
            _NAMES.give_back(self._name)
            raise
        query = self._dll.mlc_model_query
        query.argtypes, query.restype = [ctypes.c_uint32], ctypes.POINTER(abi.Api)
        table = query(abi.ABI_VERSION)
        if not table:
            _ctypes.dlclose(self._dll._handle)
            _NAMES.give_back(self._name)
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
            _NAMES.give_back(self._name)

    def check(self, code: int, status: abi.Status) -> None:
        if code:
            raise error_of(code, status.message.decode(errors="replace"))


class _Names:
    """The names under which files are open. The dynamic loader takes a file that has replaced another one of the same
    name for the one that it has loaded: such a file gets another spelling of its path.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[tuple[int, int], int]] = {}  # name -> (device, inode), users

    def take(self, path: Path) -> str:
        """The name to load `path` by."""
        try:
            status = os.stat(path)
        except OSError:
            return str(path)  # opening it will say what is wrong
        identity, name, folder = (status.st_dev, status.st_ino), str(path), str(path.parent)
        with self._lock:
            while self._open.get(name, (identity, 0))[0] != identity:
                folder += "/."
                name = f"{folder}/{path.name}"
            self._open[name] = (identity, self._open.get(name, (identity, 0))[1] + 1)
        return name

    def give_back(self, name: str) -> None:
        """One user less."""
        with self._lock:
            if name in self._open:
                identity, users = self._open.pop(name)
                if users > 1:
                    self._open[name] = (identity, users - 1)


_NAMES = _Names()


def _open(path: Path, name: str) -> ctypes.CDLL:
    if not path.exists():
        raise LoadError(f"there is no file '{path}'")
    if path.is_dir():
        raise LoadError(f"'{path}' is a folder, not a compiled model")
    try:
        problem = elf.problem_of(path)
    except OSError as error:
        raise LoadError(f"'{path}' cannot be read: {error.strerror}") from error
    if problem:
        raise LoadError(f"'{path}' is not a compiled model that this machine can load: {problem}")
    try:
        dll = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        reason = str(error).removeprefix(f"{name}: ")
        raise LoadError(f"'{path}' is not a compiled model that this machine can load: {reason}") from error
    if not hasattr(dll, "mlc_model_query"):
        _ctypes.dlclose(dll._handle)
        raise LoadError(f"'{path}' is a shared library, but not a model compiled by mlc")
    return dll


class Entry:
    """An entry point of a model; call it as the model itself."""

    def __init__(
        self, model: Signature, index: int, name: str, inputs: list[ValueInfo], outputs: list[ValueInfo]
    ) -> None:
        self._model = model
        self.index = index
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self._input_names = [info.name for info in inputs]
        self._output_names = [info.name for info in outputs]
        self._maps = any(info.map for info in inputs)
        self.keyed = [number for number, info in enumerate(outputs) if info.keys]

    def __call__(self, *arrays: Any, **named: Any) -> list[Any]:
        """Runs the entry; see `Model.__call__`."""
        return self._model._run(self, self.arguments(arrays, named), None)

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        out: Mapping[str, Any] | Sequence[Any] | None = None,
        stream: int | None = None,
    ) -> dict[str, Any]:
        """Runs the entry; see `Model.run`."""
        results = self._model._run(self, self.bind(inputs), out, stream)
        return dict(zip(self._output_names, results, strict=True))

    def bind(self, inputs: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
        """The inputs in order, out of a mapping or a sequence. ArgumentError when they do not add up."""
        if type(inputs) is not dict and not isinstance(inputs, Mapping):
            if not isinstance(inputs, Sequence):
                kind = type(inputs).__name__
                raise ArgumentError(f"inputs are a dictionary by name, or a list in order, and not of type {kind}")
            return self.arguments(inputs, {})
        if self._maps:
            return self.arguments([], inputs)
        if len(inputs) == len(self._input_names):
            try:  # not contextlib.suppress, which takes longer than the rest
                return [inputs[name] for name in self._input_names]
            except KeyError:
                pass
        return self.arguments([], inputs)

    def arguments(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The inputs in order, out of positional and named ones. ArgumentError when they do not add up."""
        if self._maps:
            arrays, named = split_maps(self.inputs, arrays, named)
        if not named and len(arrays) == len(self.inputs):
            return list(arrays)
        names = self._input_names
        if len(arrays) > len(names):
            plural = "" if len(names) == 1 else "s"
            raise ArgumentError(f"entry '{self.name}' takes {len(names)} input{plural}, got {len(arrays)}")
        given = dict(zip(names, arrays, strict=False))
        for name, value in named.items():
            if name not in names:
                known = ", ".join(names) or "none"
                raise ArgumentError(f"entry '{self.name}' has no input '{name}'; its inputs are: {known}")
            if name in given:
                raise ArgumentError(f"input '{name}' is given twice")
            given[name] = value
        for info in self.inputs:
            if info.name in given:
                continue
            if info.kind[0] == "optional":
                given[info.name] = None
            elif info.default is not None and (array := filled(info, {})) is not None:
                given[info.name] = array
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
        self._status_at = ctypes.addressof(self._status)
        self._call = abi.run_by_address(model._library.api)
        self._frames: dict[int, Frame] = {}
        self._lock = threading.Lock()
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
        stream: int | None = None,
    ) -> dict[str, Any]:
        """Runs an entry in this context; see `Model.run`."""
        chosen = entry if isinstance(entry, Entry) else self._model.entry(entry)
        results = self._run(chosen, chosen.bind(inputs), out, stream)
        return dict(zip(chosen._output_names, results, strict=True))

    def profile(self) -> dict[str, Any]:
        """Times since the last call, in nanoseconds: {"runs", "ns", "kernels": [{"id", "calls", "ns", …}]}.

        Names, templates and source nodes of kernels come from the model's metadata. Empty unless the context
        was created with `profile=True`.
        """
        text = self._library.api.profile(self._handle)
        if text is None:
            return {"runs": 0, "ns": 0, "kernels": []}
        result = json.loads(text)
        known = self._model.metadata.get("kernels", [])
        for kernel in result["kernels"]:
            row = known[kernel["id"]] if kernel["id"] < len(known) else {}
            kernel["name"] = row.get("name", f"k{kernel['id']}")
            kernel["template"] = row.get("template", "")
            kernel["nodes"] = row.get("nodes", [])
        return result

    def _run(self, entry: Entry, arguments: Sequence[Any], out: Any, stream: int | None = None) -> list[Any]:
        if not self._handle:
            raise ArgumentError("the context is closed")
        if not self._lock.acquire(False):  # by position: a name takes a twentieth of a microsecond
            raise BusyError("the context is running in another thread; use a context for each thread")
        try:
            return self._run_locked(entry, arguments, out, stream)
        finally:
            self._lock.release()

    def _run_locked(self, entry: Entry, arguments: Sequence[Any], out: Any, stream: int | None) -> list[Any]:
        frame = self._frames.get(entry.index)
        if frame is None:
            frame = self._frames[entry.index] = Frame(entry.inputs, entry.outputs)
        buffers, keep = frame.fill(arguments, out, stream)
        values, at = frame.outputs, (frame.inputs_at, frame.outputs_at)
        code = self._call(
            self._handle, entry.index, at[0], len(arguments), at[1], len(values), stream, self._status_at
        )
        del keep
        if code:
            self._library.check(code, self._status)
        results = buffers
        for i, buffer in enumerate(buffers):
            if buffer is None:
                taken = frame.taken(i, self._library)
                if taken is None:
                    taken = to_python(values[i], entry.outputs[i], Owner(values[i], self._library))
                results[i] = taken
        for number in entry.keyed:
            if not frame.is_given(number, out):
                results[number] = dictionaries(entry.outputs[number].keys, results[number])
        return results


class Signature:
    """What a compiled model takes and gives, wherever it runs.

    `entries` are its entry points by name, `dims` its named dimensions, `metadata` what the compiler
    recorded.
    """

    def __init__(self, path: Path) -> None:
        self._library = _Library(path)
        self._library.acquire()
        api = self._library.api
        self.path = path
        self.metadata: dict[str, Any] = json.loads(api.metadata() or b"{}")
        self.dims = {dim.name: dim for dim in _read_dims(api)}
        told = self.metadata.get("entries", [])
        self.entries = {entry.name: entry for entry in _read_entries(self, api, list(self.dims), told)}

    def _run(self, entry: Entry, arguments: Sequence[Any], out: Any, stream: int | None = None) -> list[Any]:
        raise ArgumentError(f"the signature of '{self.path}' cannot run: load the model")

    def __del__(self) -> None:
        library = getattr(self, "_library", None)
        if library is not None:
            library.release()


class Model(Signature):
    """A compiled model: its signature, its weights (mapped once) and its threads."""

    def __init__(
        self, path: Path, threads: int | None, weights: Path | None, verify_weights: bool, device: int | None
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._idle: list[Context] = []
        super().__init__(path)
        self._create(threads, weights, verify_weights, device)

    def _create(self, threads: int | None, weights: Path | None, verify_weights: bool, device: int | None) -> None:
        options = abi.InstanceOptions(ctypes.sizeof(abi.InstanceOptions))
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads is {threads}; it must be at least 1")
        if weights is not None and self.metadata.get("weights", {"file": True})["file"] is None:
            raise ArgumentError(f"the weights of '{self.path}' are inside of it: it cannot read '{weights}'")
        if device is not None and (device < 0 or "gpu" not in self.metadata):
            reason = "a GPU has a number from 0 on" if device < 0 else "the model runs on the CPU"
            raise ArgumentError(f"device is {device}: {reason}")
        options.num_threads = threads or 0
        options.device = 0 if device is None else device + 1
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

    def state(
        self,
        arrays: Mapping[str, Any] | None = None,
        *,
        dims: Mapping[str, int] | None = None,
        entry: str | None = None,
    ) -> State:
        """What runs of an entry (default: the first) continue, before the first one: for a model with caches.

            state = model.state()
            logits = state.run({"input_ids": ids, "cache_position": position})["logits"]

        `arrays` are first values by the names of inputs; others are the inputs' defaults, or zeros. `dims` are the
        extents of named dimensions. Raises ArgumentError.
        """
        return first_state(self.entry(entry), arrays or {}, dims or {})

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
        stream: int | None = None,
    ) -> dict[str, Any]:
        """Runs an entry (default: the first) and returns its outputs by name.

        `inputs` are in order, or by name (any string, unlike keyword arguments). `out` gives writable
        arrays for some (None: not this one) or all outputs, which are then returned themselves. For an output that
        `shares` an input (`entry(None).outputs`) it may be the array of that input.

        A model for GPUs takes DLPack tensors of its GPU without copying them, as inputs and in `out`. `stream`, the
        number of a CUDA stream, is where it launches: what made the inputs must be in it, or be done.
        """
        return self.entry(entry).run(inputs, out=out, stream=stream)

    def _run(self, entry: Entry, arguments: Sequence[Any], out: Any, stream: int | None = None) -> list[Any]:
        """Runs in a context that is free at the moment, or in a new one."""
        try:
            context = self._idle.pop()  # popping and appending are atomic
        except IndexError:
            context = Context(self)
        try:
            return context._run(entry, arguments, out, stream)
        finally:
            self._idle.append(context)

    def __del__(self) -> None:
        library = getattr(self, "_library", None)
        if library is None:
            return
        # Contexts keep the instance alive in the runtime for as long as they need it.
        library.api.instance_destroy(self._handle)
        super().__del__()

    def __repr__(self) -> str:
        return f"<mlc model '{self.path.name}': {', '.join(self.entries)}>"


def _read_dims(api: abi.Api) -> Iterator[DimInfo]:
    for i in range(api.num_dims()):
        info = abi.DimInfo(ctypes.sizeof(abi.DimInfo))
        api.dim_info(i, ctypes.byref(info))
        yield DimInfo(info.name.decode(), info.lowest, info.highest, info.multiple)


def _read_entries(
    model: Signature, api: abi.Api, dims: Sequence[str], told: Sequence[Mapping[str, Any]]
) -> Iterator[Entry]:
    """The entries; `told` is what the metadata say of them: which values stand for maps."""
    for number in range(api.num_entries()):
        info = abi.EntryInfo(ctypes.sizeof(abi.EntryInfo))
        api.entry_info(number, ctypes.byref(info))
        values: list[list[ValueInfo]] = [[], []]
        reads = (("inputs", api.input_info, info.num_inputs), ("outputs", api.output_info, info.num_outputs))
        for (side, read, count), target in zip(reads, values, strict=True):
            more = told[number].get(side, []) if number < len(told) else []
            for i in range(count):
                value = abi.ValueInfo(ctypes.sizeof(abi.ValueInfo))
                read(number, i, ctypes.byref(value))
                target.append(_value_info(value, dims, more[i] if i < len(more) else {}))
        yield Entry(model, number, info.name.decode(), *values)


def _value_info(value: abi.ValueInfo, names: Sequence[str], told: Mapping[str, Any]) -> ValueInfo:
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
    more = {key: told[key] for key in ("map", "shares", "continues", "default") if key in told}
    keys = tuple(told.get("keys", ()))
    return ValueInfo(value.name.decode(), dtype_name(value.dtype), shape, tuple(kinds), keys, **more)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the compiler recorded in a compiled model. Its weights and this machine's features are not looked at.
    Raises LoadError.
    """
    library = _Library(Path(os.path.abspath(path)))
    library.acquire()
    try:
        return dict(json.loads(library.api.metadata() or b"{}"))
    finally:
        library.release()


def read_signature(path: str | os.PathLike[str]) -> Signature:
    """What a compiled model takes and gives. Its weights and this machine's features are not looked at, and it need not
    be able to run here. Raises LoadError.
    """
    return Signature(Path(os.path.abspath(path)))


def load(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    weights: str | os.PathLike[str] | None = None,
    verify_weights: bool = True,
    device: int | None = None,
) -> Model:
    """Loads a compiled model.

    `threads`: how many threads a run may use, the caller's included; default MLC_NUM_THREADS, else the
    physical cores that the process may use. `weights`: the file of external weights, when it is not beside
    the model. `verify_weights=False` trusts an external weight file of the right size without hashing it.
    `device`: the number of the GPU, for models that run on one; default MLC_DEVICE, else 0. Raises LoadError,
    DeviceError or WeightsError.
    """
    full = Path(os.path.abspath(path))
    return Model(full, threads, Path(weights) if weights is not None else None, verify_weights, device)
