"""Which of two lists of cases meet: each pair would take the tests much longer, and seldom find more."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Form = TypeVar("Form")
Way = TypeVar("Way")

# Every pair, on every architecture and in every type: half an hour more.
EVERY = bool(os.environ.get("MLC_EVERY_CASE"))


def spread(
    forms: Sequence[Form], whole: Way, others: Sequence[Way], step: int, always: Sequence[Form] = ()
) -> list[tuple[Way, Form]]:
    """Pairs of a way and a form: all forms the way that is `whole`, each of the other ways one form of `step`, in turns,
    and those that are `always` wanted; with MLC_EVERY_CASE=1 all of them.
    """
    pairs = [(whole, form) for form in forms]
    for turn, way in enumerate(others):
        chosen = [f for n, f in enumerate(forms) if EVERY or f in always or n % step == turn % step]
        pairs += [(way, form) for form in chosen]
    return pairs
