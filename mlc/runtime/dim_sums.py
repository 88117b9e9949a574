"""Names of dimensions that are sums of others, as exporters write them: `past + 1`, `past + new`, `2*width - 1`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

# A minus in the midst has space around it: `batch-size` is a name.
_SIGN = r"(?:\s*(?P<plus>\+)\s*|\s+(?P<minus>-)\s+|^\s*(?P<first>-?)\s*)"
_TERM = re.compile(_SIGN + r"(?:(\d{1,9})\s*\*\s*)?(?:(\d{1,18})|([^\W\d]\w*))(?:\s*\*\s*(\d{1,9}))?")


@dataclass(frozen=True)
class DimSum:
    """A `constant` and the factor of each dimension, by name."""

    constant: int
    factors: Mapping[str, int]

    def value(self, extents: Mapping[str, int]) -> int:
        """The sum for these extents of its dimensions."""
        return self.constant + sum(factor * extents[name] for name, factor in self.factors.items())

    def given(self, extents: Mapping[str, int]) -> DimSum:
        """The same sum where some dimensions are numbers."""
        constant = self.constant + sum(f * extents[name] for name, f in self.factors.items() if name in extents)
        return DimSum(constant, {name: f for name, f in self.factors.items() if name not in extents})

    def renamed(self, names: Mapping[str, str]) -> DimSum:
        """The same sum with other names for dimensions."""
        factors: dict[str, int] = {}
        for name, factor in self.factors.items():
            new = names.get(name, name)
            factors[new] = factors.get(new, 0) + factor
        return DimSum(self.constant, factors)

    @property
    def extent(self) -> int | str:
        """The number that is left, if it is one that an extent can be; else the sum as a dimension's name."""
        return str(self) if self.factors or self.constant < 0 else self.constant

    def __str__(self) -> str:
        """As `parse_sum` reads it."""
        terms = [(factor, name) for name, factor in self.factors.items()]
        if self.constant or not terms:
            terms.append((self.constant, ""))
        text = ""
        for number, name in terms:
            sign = "-" if number < 0 else "+"
            text += f" {sign} " if text else sign.replace("+", "")
            text += name if name and abs(number) == 1 else f"{abs(number)}*{name}" if name else str(abs(number))
        return text


def parse_sum(name: str) -> DimSum | None:
    """The sum that a dimension's name stands for; None for a name, and for what is no sum of whole multiples."""
    constant, position, name = 0, 0, name.rstrip()
    factors: dict[str, int] = {}
    if name.isidentifier():
        return None
    while position < len(name):
        found = _TERM.match(name, position)
        if found is None:
            return None
        before, number, part, behind = found.groups()[3:]
        factor = int(before or 1) * int(behind or 1) * (-1 if found["minus"] or found["first"] else 1)
        if part:
            factors[part] = factors.get(part, 0) + factor
        else:
            constant += factor * int(number)
        position = found.end()
    factors = {part: factor for part, factor in factors.items() if factor}
    return DimSum(constant, factors) if factors else None


def sum_of(name: str, known: Collection[str]) -> DimSum | None:
    """The sum that `name` stands for where all of its dimensions are among the `known` ones."""
    found = parse_sum(name)
    return found if found is not None and all(part in known for part in found.factors) else None


def extent_by(name: str, known: Collection[str], extent: Callable[[str], int]) -> int:
    """What `extent` says of dimension `name`, or of those of the `known` ones that it is a sum of."""
    found = sum_of(name, known)
    return extent(name) if found is None else max(0, found.value({part: extent(part) for part in found.factors}))


def extent_among(name: str, extents: Mapping[str, int]) -> int | None:
    """The extent of dimension `name`, or of those that it is the sum of; None where they have none."""
    if name in extents:
        return extents[name]
    found = sum_of(name, extents)
    return None if found is None else found.value(extents)
