"""Every node and simple case of the ONNX backend suite: imported, evaluated by `mlc.interp`, compared with its outputs.

`expected.txt` lists the cases that do not pass, each with the reason; a listed case that passes fails the test.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from conformance.onnx_loader import load_tests
from evaluate import run
from harness import assert_like, imported, signless

from mlc.frontends.report import ModelError

EXPECTED = Path(__file__).with_name("expected.txt")


@functools.cache
def cases() -> dict[str, Any]:
    """The suite's cases by name."""
    found = [case for kind in ("node", "simple") for case in load_tests(kind)]
    return {case.name: case for case in found if case.model is not None and case.data_sets}


def expected() -> dict[str, str]:
    """Case name to reason, for those that do not pass."""
    lines = [line.split("#")[0].strip() for line in EXPECTED.read_text().splitlines()]
    return dict(line.split(": ", 1) for line in lines if line)


def check(case: Any) -> None:
    """Fails unless the imported case gives the suite's outputs."""
    module, store = imported(case.model)
    # Half precision is rounded at other places than in the reference.
    half = any(word in case.name for word in ("bf16", "fp16"))
    rtol, atol = (2e-2, 2e-2) if half else (case.rtol or 1e-3, max(case.atol or 0, 1e-5))
    for inputs, outputs in case.data_sets:
        pairs = zip(case.model.graph.input, inputs, strict=False)
        values = {entry.name: signless(value, entry.type) for entry, value in pairs}
        got = run(module, store, values)
        for entry, want in zip(case.model.graph.output, outputs, strict=True):
            assert_like(got[entry.name], want, rtol, atol)


def families() -> list[str]:
    """First letters of the cases: one test each keeps the list of tests short."""
    return sorted({name.removeprefix("test_")[0] for name in cases()})


@pytest.mark.parametrize("letter", families())
def test_cases(letter: str) -> None:
    """The cases whose operator starts with a letter."""
    reasons = expected()
    wrong = []
    for name, case in cases().items():
        if not name.removeprefix("test_").startswith(letter):
            continue
        try:
            check(case)
        except (ModelError, AssertionError) as error:
            if name not in reasons:
                wrong.append(f"{name}: {' '.join(str(error).split())[:300]}")
        else:
            if name in reasons:
                wrong.append(f"{name}: passes, but is listed as: {reasons[name]}")
    assert not wrong, "\n".join(wrong)


def test_expected_names_exist() -> None:
    """A name that the suite does not have is a typing error."""
    assert set(expected()) <= set(cases())
