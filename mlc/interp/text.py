"""`extern`: host calls of C routines, evaluated by Python functions that are registered for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.interp.registry import Call, InterpError, evaluates

_ROUTINES: dict[str, Callable[[str, Sequence[Any]], Sequence[Any]]] = {}


def register_routine(callee: str, function: Callable[[str, Sequence[Any]], Sequence[Any]]) -> None:
    """Lets `mlc.extern` evaluate `callee` with `function(config, inputs) -> results`; replaces an earlier
    one.
    """
    _ROUTINES[callee] = function


@evaluates("mlc.extern", "inputs*")
def extern(call: Call, inputs: list[Any]) -> list[Any]:
    """The results of the routine `callee`. Raises `InterpError` when no Python function is registered for
    it.
    """
    callee = call.need("callee")
    if callee not in _ROUTINES:
        raise InterpError(f"mlc.extern: no Python function is registered for the routine '{callee}'")
    return list(_ROUTINES[callee](call.attr("config", ""), inputs))


# --- The runtime's routines on strings --------------------------------------------------------------------------------


def _fields(config: str) -> list[str]:
    """A configuration's fields: each has its length in bytes in front."""
    data, found = config.encode(), []
    while data:
        size, _, rest = data.partition(b":")
        found.append(rest[: int(size)].decode())
        data = rest[int(size) :]
    return found


def _objects(items: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    result = np.empty(len(items), object)
    result[:] = items
    return result.reshape(shape)


def _equal(_: str, inputs: Sequence[Any]) -> list[Any]:
    return [np.asarray(np.equal(inputs[0], inputs[1]), bool)]


def _concat(_: str, inputs: Sequence[Any]) -> list[Any]:
    return [np.asarray(np.add(inputs[0], inputs[1]), object)]


def _split(config: str, inputs: Sequence[Any]) -> list[Any]:
    delimiter, most = _fields(config)
    parts = [text.split(delimiter or None, int(most)) for text in inputs[0].ravel()]
    width = max((len(part) for part in parts), default=0)
    filled = [text for part in parts for text in [*part, *[""] * (width - len(part))]]
    counts = np.array([len(part) for part in parts], np.int64)
    return [_objects(filled, [*inputs[0].shape, width]), counts.reshape(inputs[0].shape)]


def _lookup(config: str, inputs: Sequence[Any]) -> list[Any]:
    keys = _fields(config)
    places = [keys.index(text) if text in keys else len(keys) for text in inputs[0].ravel()]
    return [np.array(places, np.int64).reshape(inputs[0].shape)]


def _table(config: str, _: Sequence[Any]) -> list[Any]:
    texts = _fields(config)
    return [_objects(texts, [len(texts)])]


def _normalize(config: str, inputs: Sequence[Any]) -> list[Any]:
    change, sensitive, *words = _fields(config)
    plain = (lambda text: text) if sensitive == "1" else str.lower
    stopwords = {plain(word) for word in words}
    kept = [text for text in inputs[0].ravel() if plain(text) not in stopwords] or [""]
    changed = {"0": kept, "1": [text.lower() for text in kept], "2": [text.upper() for text in kept]}[change]
    return [_objects(changed, [1, len(changed)][2 - inputs[0].ndim :])]


def _match(config: str, inputs: Sequence[Any]) -> list[Any]:
    """Runs the program of a regular expression (mlc/frontends/common/regex.py) on all of each text."""
    count, *numbers = map(int, _fields(config))
    code = numbers[count:]
    program = [code[at : at + 2 + code[at + 1]] for at in numbers[:count]]
    found = [_matches(program, text) for text in inputs[0].ravel()]
    return [np.array(found, bool).reshape(inputs[0].shape)]


def _matches(program: list[list[int]], text: str) -> bool:
    words = [False, *((c.isascii() and c.isalnum()) or c == "_" for c in text), False]
    places = [0]
    for at in range(len(text) + 1):
        held = {3: at == 0, 4: at == len(text), 5: words[at] != words[at + 1], 6: words[at] == words[at + 1]}
        for place in places:  # grows
            op, _, *rest = program[place]
            reached = rest if op == 1 else [place + 1] if held.get(op) else []
            places += [to for to in dict.fromkeys(reached) if to not in places]
        if at < len(text):
            pairs = [(place, program[place][2:]) for place in places if program[place][0] == 2]
            hits = [
                place + 1
                for place, bounds in pairs
                if any(low <= ord(text[at]) <= high for low, high in zip(bounds[::2], bounds[1::2], strict=True))
            ]
            places = list(dict.fromkeys(hits))
    return any(program[place][0] == 0 for place in places)


_WHOLE = re.compile(r"[ \t-\r]*[+-]?\d+[ \t-\r]*", re.A)
_REAL = re.compile(r"[ \t-\r]*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)[ \t-\r]*", re.A | re.I)


def _parse(config: str, inputs: Sequence[Any]) -> list[Any]:
    """Whole numbers are exact; others are cut off where integers are wanted."""
    wide, wanted = _fields(config)
    numbers = np.empty(inputs[0].size, "float64" if wide == "float64" else "int64")
    for place, text in enumerate(inputs[0].ravel()):
        try:
            numbers[place] = _number(text, wide)
        except (ValueError, OverflowError) as error:
            raise InterpError(f"element {place}, '{text}', is no number of type {wanted}") from error
    return [numbers.reshape(inputs[0].shape)]


def _number(text: str, wide: str) -> float | int:
    """A float, or an integer whose bits are those of `int64`; ValueError or OverflowError when it is neither."""
    if not _REAL.fullmatch(text):
        raise ValueError(text)
    if wide == "float64":
        return float(text)
    value = int(text) if _WHOLE.fullmatch(text) else int(float(text))
    if not -(2**63) <= value < (2**64 if wide == "uint64" else 2**63):
        raise OverflowError(text)
    return value - 2**64 if value >= 2**63 else value


def _print(config: str, inputs: Sequence[Any]) -> list[Any]:
    """The fewest digits from which a number can be read, plain from 0.0001 to below 1e16."""
    kind = np.dtype(_fields(config)[0])
    numbers = np.asarray(inputs[0])
    if kind.kind == "u":
        numbers = numbers.astype(kind)
    return [_objects([_printed(number, kind) for number in numbers.ravel()], numbers.shape)]


def _printed(number: Any, kind: np.dtype) -> str:
    if kind.kind != "f":
        return str(int(number))
    if np.isnan(number):
        return "NaN"
    size = abs(number)
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    if size == 0 or 1e-4 <= size < 1e16:
        return np.format_float_positional(number, unique=True, trim="-")
    return np.format_float_scientific(number, unique=True, trim="-", exp_digits=2)


for _name, _function in {
    "equal": _equal,
    "concat": _concat,
    "split": _split,
    "lookup": _lookup,
    "table": _table,
    "normalize": _normalize,
    "match": _match,
    "parse": _parse,
    "print": _print,
}.items():
    register_routine(f"mlc_text_{_name}", _function)
