"""What a caller keeps for a model from run to run: caches of keys and values, counters, states of recurrent layers.

A model keeps nothing. Where an output is what the next run gets as an input, the metadata say so (`continues`,
`shares`); a `State` has these arrays, gives them to each run and takes the new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .dim_sums import extent_among
from .dtypes import numpy_dtype
from .errors import ArgumentError
from .tensors import is_cuda_tensor
from .values import ValueInfo

if TYPE_CHECKING:
    from .loader import Entry


class State:
    """The arrays that runs of an entry continue, by the names of its inputs; `Model.state` makes it.

    Used by one thread at a time. Outputs that may have the memory of their input are written into its array of NumPy,
    so that a cache is not copied. Tensors of PyTorch on a GPU stay there: what a run continues has two that take turns.
    Other results are taken as they come. So later runs may write what `arrays` hold now: `copy` keeps it.
    """

    def __init__(self, entry: Entry, arrays: Mapping[str, Any]) -> None:
        self._entry, self._sources = entry, continued(entry)
        self.arrays = dict(arrays)
        self._spare: dict[str, Any] = {}

    def run(self, inputs: Mapping[str, Any], *, stream: int | None = None) -> dict[str, Any]:
        """Runs the entry on `inputs` and what was kept, keeps what continues that, and returns the other outputs by
        name. Raises what `Model.run` does; after a failure the arrays hold what they held, but for the stretch that the
        run was to write.
        """
        out = [self._buffer(info) for info in self._entry.outputs]
        results = self._entry.run({**self.arrays, **inputs}, out=out, stream=stream)
        for name, source in self._sources.items():
            before, self.arrays[source] = self.arrays[source], results.pop(name)
            if is_cuda_tensor(before):
                self._spare[source] = before
        return results

    def _buffer(self, info: ValueInfo) -> Any:
        """What a run is to write an output into; None: an array of its own."""
        source = self._sources.get(info.name, "")
        array: Any = self.arrays.get(source)
        if is_cuda_tensor(array):
            spare = self._spare.get(source)
            return spare if spare is not None else array.new_empty(array.shape)
        writable = isinstance(array, np.ndarray) and array.flags.writeable
        return array if writable and info.shares == source else None

    def copy(self) -> State:
        """A state of its own with the same contents: runs of one do not change the other."""
        arrays = {name: a.clone() if hasattr(a, "clone") else np.array(a) for name, a in self.arrays.items()}
        return State(self._entry, arrays)


def continued(entry: Entry) -> dict[str, str]:
    """The outputs that the next run gets, and as which input."""
    pairs = {info.name: info.continues or info.shares for info in entry.outputs}
    return {name: source for name, source in pairs.items() if source}


def first_state(entry: Entry, arrays: Mapping[str, Any], dims: Mapping[str, int]) -> State:
    """The state before the first run: `arrays`, and for what they leave out the inputs' defaults, or zeros where only
    what runs write is read. Raises ArgumentError.
    """
    sources = set(continued(entry).values())
    if not sources:
        raise ArgumentError(f"entry '{entry.name}' has no state: no output of it continues an input")
    for name in arrays:
        if name not in sources:
            known = ", ".join(sorted(sources))
            raise ArgumentError(f"input '{name}' is no part of the state of entry '{entry.name}', which is: {known}")
    shared = {info.shares for info in entry.outputs}
    kept = dict(arrays)
    for info in entry.inputs:
        if info.name in sources and info.name not in kept:
            if info.default is None and info.name not in shared:
                raise ArgumentError(f"input '{info.name}' ({info}) has no default: give its first value to state()")
            array = filled(info, dims)
            if array is None:
                reason = f"input '{info.name}' is {info}: its extents are not known"
                raise ArgumentError(f"{reason}; give dims={{'NAME': EXTENT}}, or the array itself")
            kept[info.name] = array
    return State(entry, kept)


def filled(info: ValueInfo, dims: Mapping[str, int]) -> np.ndarray | None:
    """An array of the input's default, or of zeros, with `dims` for named dimensions; None if an extent is missing."""
    known = [extent if isinstance(extent, int) else extent_among(extent or "", dims) for extent in info.dims or ()]
    shape = [extent for extent in known if extent is not None]
    if info.dims is None or len(shape) < len(known):
        return None
    return np.full(shape, info.default or 0, numpy_dtype(info.dtype))
