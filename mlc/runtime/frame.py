"""The argument arrays of a run, filled in anew for each: a call of a small model is mostly this."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import abi
from .dtypes import DTYPES, numpy_dtype
from .errors import ArgumentError, InputError
from .reuse import ResultMemory, address, as_buffer
from .tensors import CPU, place_of
from .values import Owner, ValueInfo, fill_buffer, fill_value, is_on_device, shared

# mlc_value as one record: struct_size, kind; data, device, device_id, ndim, code, bits, lanes, shape, strides, offset;
# items, num_items, deleter, manager.
_VALUE = struct.Struct("<IiQiiiBBHQQQQqQQ")
_SIZE = _VALUE.size
_NONE = _VALUE.pack(_SIZE, abi.NONE, *[0] * 14)
_MAX_RANK = 64


class _Slot:
    """An input or output: what does not change between runs."""

    def __init__(self, info: ValueInfo, number: int, shapes: int) -> None:
        self.info = info
        self.number = number
        self.offset = number * _SIZE
        self.plain = info.kind == ("tensor",) and info.dtype != "string" and info.dims is not None
        self.dtype = numpy_dtype(info.dtype)
        self.code, self.bits = DTYPES[info.dtype]
        self.rank = len(info.dims or ())
        self.shape_at = shapes
        self.extents = struct.Struct(f"<{self.rank}q")
        self.word = self.offset // 8 + 1  # where the data pointer is
        self.shape: tuple[int, ...] | None = None  # of an output, where it is the same in every run
        self.small = False  # is such an output made without thought of where it begins?
        self.last: tuple[int, ...] | None = None  # the shape of the array that the value describes by now
        self.last_tensor: tuple[tuple[int, int], tuple[int, ...]] | None = None  # device and shape, of a tensor


_NO_BUFFER = (TypeError, ValueError, BufferError)  # of `as_buffer`

_WORTH_SHARING = 1 << 16  # bytes of a result from which on its memory is shared: before that, a copy takes less time
# Bytes of an array that is stored faster where a page begins (`support.h`), and where an earlier result was.
_WORTH_ALIGNING = 1 << 17


def _is_small(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    return dtype.hasobject or math.prod(shape) * dtype.itemsize < _WORTH_ALIGNING


def address_of(array: Any) -> int:
    """Where the data of a contiguous array are."""
    if array.flags.writeable:
        try:
            return address(as_buffer(array))
        except _NO_BUFFER:
            pass
    data: int = array.__array_interface__["data"][0]
    return data


class Frame:
    """The inputs and outputs of one entry in one context. Not thread-safe, as contexts are not."""

    def __init__(self, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo]) -> None:
        self._memory = ResultMemory()
        self.names = [info.name for info in outputs]
        count = sum(len(info.dims or ()) for info in (*inputs, *outputs))
        self._shapes = (ctypes.c_int64 * max(count, 1))()
        self._shapes_at = ctypes.addressof(self._shapes)
        self.inputs = (abi.Value * len(inputs))()
        self.outputs = (abi.Value * len(outputs))()
        words = _SIZE // 8
        self.inputs_at, self.outputs_at = ctypes.addressof(self.inputs), ctypes.addressof(self.outputs)
        self._input_words = (ctypes.c_uint64 * (words * len(inputs))).from_buffer(self.inputs)
        self._output_words = (ctypes.c_uint64 * (words * len(outputs))).from_buffer(self.outputs)
        used = 0
        self._slots: list[list[_Slot]] = []
        for infos in (inputs, outputs):
            self._slots.append([])
            for number, info in enumerate(infos):
                self._slots[-1].append(_Slot(info, number, used))
                used += len(info.dims or ())
        self._rules = [_shape_rule(info, inputs) for info in outputs]
        for slot, rule in zip(self._slots[1], self._rules, strict=True):
            slot.shape = _fixed_shape(rule)
            slot.small = slot.shape is not None and _is_small(slot.shape, slot.dtype)
        self._reuses = not all(slot.small for slot in self._slots[1])

    def fill(self, arguments: Sequence[Any], out: Any, stream: int | None = None) -> tuple[list[Any], list[Any]]:
        """Describes `arguments` and output buffers in `inputs` and `outputs`, for a run in `stream`.

        Returns the buffers (None where the runtime is to allocate), and what must stay alive during the run.
        Raises InputError or ArgumentError.
        """
        keep: list[Any] = [arguments]
        if self._reuses:
            self._memory.begin()
        for slot, argument in zip(self._slots[0], arguments, strict=True):
            if not self._pack(self._input_words, slot, argument, stream):
                slot.last = slot.last_tensor = None
                value = self.inputs[slot.number]
                _VALUE.pack_into(value, 0, _SIZE, *[0] * 15)
                fill_value(value, argument, slot.info, keep)
        if out is None:
            return [self._new_output(slot) for slot in self._slots[1]], keep
        buffers: list[Any] = self._given(out)
        for slot in self._slots[1]:
            buffer = buffers[slot.number]
            if buffer is None:
                buffers[slot.number] = self._new_output(slot)
            elif not self._pack(self._output_words, slot, buffer, stream):
                self._clear(slot)
                fill_buffer(self.outputs[slot.number], buffer, slot.info, keep)
        return buffers, keep

    def _new_output(self, slot: _Slot) -> np.ndarray | None:
        """An array for an output, described; None where the runtime is to allocate."""
        shape = slot.shape
        if shape is not None and shape == slot.last:  # mostly: nothing but its address is new
            array = np.empty(shape, slot.dtype) if slot.small else self._memory.array(shape, slot.dtype)
            try:
                self._output_words[slot.word] = address(as_buffer(array))
            except _NO_BUFFER:
                self._output_words[slot.word] = address_of(array)
            return array
        if shape is None:
            shape = self._shape_of_output(slot.number)
        if shape is None:
            self._clear(slot)
            return None
        small = _is_small(shape, slot.dtype)
        array = np.empty(shape, slot.dtype) if small else self._memory.array(shape, slot.dtype)
        if not self._pack(self._output_words, slot, array):
            raise AssertionError(f"output '{slot.info.name}' is no plain tensor")
        return array

    def _pack(self, words: Any, slot: _Slot, array: Any, stream: int | None = None) -> bool:
        """The common case, quickly: a contiguous array of the right type and rank. False when it is not."""
        if type(array) is not np.ndarray:
            return self._pack_tensor(words, slot, array, stream)
        dtype = array.dtype
        if dtype is not slot.dtype and dtype != slot.dtype:
            return False
        if array.flags.carray:
            try:
                data = address(as_buffer(array))
            except _NO_BUFFER:
                data = address_of(array)
        elif array.flags.c_contiguous:
            data = address_of(array)
        else:
            return False
        shape = array.shape
        if shape == slot.last:
            words[slot.word] = data
            return True
        if not slot.plain or len(shape) != slot.rank:
            return False
        slot.last, slot.last_tensor = shape, None
        self._describe(words, slot, data, CPU, shape)
        return True

    def _pack_tensor(self, words: Any, slot: _Slot, tensor: Any, stream: int | None) -> bool:
        """The same of a tensor of PyTorch, wherever it lies."""
        found = place_of(tensor, slot.info.dtype, stream) if slot.plain else None
        if found is None:
            return False
        data, device = found
        described = device, tensor.shape
        if described == slot.last_tensor:
            words[slot.word] = data
            return True
        if len(tensor.shape) != slot.rank:
            return False
        slot.last, slot.last_tensor = None, described
        self._describe(words, slot, data, device, tensor.shape)
        return True

    def _describe(
        self, words: Any, slot: _Slot, data: int, device: tuple[int, int], shape: tuple[int, ...]
    ) -> None:
        slot.extents.pack_into(self._shapes, slot.shape_at * 8, *shape)
        head = (_SIZE, abi.TENSOR, data, *device, slot.rank, slot.code, slot.bits, 1)
        shape_at = self._shapes_at + slot.shape_at * 8
        _VALUE.pack_into(words, slot.offset, *head, shape_at, 0, 0, 0, 0, 0, 0)

    def taken(self, number: int, library: Any) -> np.ndarray | None:
        """Output `number`, which the runtime has allocated: copied and freed, or sharing its memory where it is large.
        None for what is no plain tensor."""
        slot = self._slots[1][number]
        if not slot.plain:
            return None
        _, kind, data, _, _, rank, *_, shape_at = _VALUE.unpack_from(self.outputs, slot.offset)[:10]
        if kind != abi.TENSOR or rank != slot.rank:
            return None
        shape = slot.extents.unpack(ctypes.string_at(shape_at, 8 * rank))
        size = math.prod(shape) * slot.dtype.itemsize
        if size > _WORTH_SHARING:
            return shared(Owner(self.outputs[number], library), data, shape, slot.dtype)
        array = np.empty(shape, slot.dtype)
        if size:
            try:
                to = address(as_buffer(array))
            except _NO_BUFFER:
                to = address_of(array)
            ctypes.memmove(to, data, size)
        value = self.outputs[number]
        value.deleter(value)
        return array

    def is_given(self, number: int, out: Any) -> bool:
        """Whether the caller's `out` has a buffer for an output."""
        return out is not None and self._given(out)[number] is not None

    def _clear(self, slot: _Slot) -> None:
        slot.last = slot.last_tensor = None
        ctypes.memmove(ctypes.addressof(self.outputs) + slot.offset, _NONE, _SIZE)

    def _shape_of_output(self, number: int) -> tuple[int, ...] | None:
        """The shape of an output, when those of the inputs tell it."""
        rule = self._rules[number]
        if rule is None:
            return None
        shape = []
        for extent, source, axis in rule:
            if source >= 0:
                known = self._slots[0][source].last or self._described_shape(source)
                if axis >= len(known):
                    return None  # a wrong rank: the runtime will say so
                extent = known[axis]
            if extent < 0:
                return None
            shape.append(extent)
        return tuple(shape)

    def _described_shape(self, number: int) -> tuple[int, ...]:
        tensor = self.inputs[number].tensor
        if not tensor.shape or not 0 <= tensor.ndim <= _MAX_RANK:
            return ()
        return tuple((ctypes.c_int64 * tensor.ndim).from_address(tensor.shape))

    def _given(self, out: Any) -> list[Any]:
        """The caller's buffers in order."""
        if isinstance(out, Mapping):
            unknown = [name for name in out if name not in self.names]
            if unknown:
                known = ", ".join(self.names)
                raise ArgumentError(f"the entry has no output '{unknown[0]}'; its outputs are: {known}")
            buffers: list[Any] = [out.get(name) for name in self.names]
        else:
            buffers = list(out)
            if len(buffers) != len(self.names):
                raise ArgumentError(f"the entry has {len(self.names)} outputs, got {len(buffers)} buffers")
        for name, buffer in zip(self.names, buffers, strict=True):
            if type(buffer) is np.ndarray and buffer.flags.carray and buffer.dtype.isnative:
                continue
            if buffer is None or is_on_device(buffer):
                continue
            if not isinstance(buffer, np.ndarray) or not buffer.flags.writeable or not buffer.dtype.isnative:
                raise InputError(f"output '{name}': a buffer is a writable NumPy array in native byte order")
            if any(stride % buffer.itemsize for stride in buffer.strides):
                raise InputError(f"output '{name}': the buffer's strides are not whole elements")
        return buffers


def _fixed_shape(rule: list[tuple[int, int, int]] | None) -> tuple[int, ...] | None:
    """The shape of an output that is the same in every run."""
    if rule is None or any(extent < 0 for extent, _, _ in rule):
        return None
    return tuple(extent for extent, _, _ in rule)


def _shape_rule(output: ValueInfo, inputs: Sequence[ValueInfo]) -> list[tuple[int, int, int]] | None:
    """Per dimension (extent, -1, -1) or (-1, input, axis) that has it; None when only the run can tell."""
    if output.kind != ("tensor",) or output.dims is None or output.dtype == "string":
        return None
    places: dict[str, tuple[int, int]] = {}
    for number, info in enumerate(inputs):
        if info.kind == ("tensor",):
            for axis, dim in enumerate(info.dims or ()):
                if isinstance(dim, str):
                    places.setdefault(dim, (number, axis))
    rule = []
    for dim in output.dims:
        if isinstance(dim, int):
            rule.append((dim, -1, -1))
        elif dim is not None and dim in places:
            rule.append((-1, *places[dim]))
        else:
            return None
    return rule
