"""Maps: sequences of them are rows of a table whose columns have keys, and a map that goes in is keys and values.

No map exists at run time (docs/abi.md, section 1): an entry's inputs and outputs are tensors, and the loader for Python
makes dictionaries of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlc.frontends.common.builder import Tensor

KEYS, VALUES = ".keys", ".values"


@dataclass(frozen=True, eq=False)
class Rows(Tensor):
    """A sequence of maps: a matrix with a row for each, whose columns are the values of `keys`."""

    keys: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        return f"sequence(map({'string' if isinstance(self.keys[0], str) else 'int64'}, {self.dtype}))"


@dataclass(frozen=True, eq=False)
class Map(Tensor):
    """A map with entries that only the run knows: a vector of keys, and `entries`, their values."""

    entries: Tensor | None = None

    @property
    def values(self) -> Tensor:
        """The values, in the order of the keys."""
        assert self.entries is not None
        return self.entries

    def __str__(self) -> str:
        return f"map({self.dtype}, {self.values.dtype})"


def parts_of(name: str) -> tuple[str, str]:
    """The names of the arguments that a map `name` is made of: its keys, its values."""
    return name + KEYS, name + VALUES


def with_maps(arguments: Mapping[str, Tensor], names: Iterable[str]) -> dict[str, Tensor]:
    """The arguments by name, and with them the maps `names` that some are the parts of."""
    result = dict(arguments)
    for name in names:
        keys, values = (arguments[part] for part in parts_of(name))
        result[name] = Map(keys.value, keys.unsigned, entries=values)
    return result
