"""The CPU and CUDA compile the same operators: each one of ONNX's, in one of the types that its schema allows, goes through
both pipelines down to machine code (of the CPU) and PTX. Both must accept it, or refuse it where refused_types.txt or the
list of expected failures says so.

The type is another one for each operator, so that all types meet all kinds of operators without compiling every pair;
`MLC_EVERY_CASE=1` compiles every pair (some minutes).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from spread import EVERY

from mlc.driver import compile as compile_model
from mlc.frontends.report import ModelError
from mlc.options import UsageError

sys.path.insert(0, str(Path(__file__).parent))
from onnx_judge import NEARER, RANDOM
from onnx_suite import expected_failures
from operator_cases import Operator, is_valid, operators, retyped, smallest

NOT_HELD = ("complex64", "complex128")
STAGES = {"cpu": ("object", ".objects"), "cuda": ("ptx", ".ptx")}


def accepted(model: onnx.ModelProto, target: str, folder: Path) -> bool:
    """Whether a target compiles a model; what is neither success nor a clear refusal is raised."""
    stage, suffix = STAGES[target]
    try:
        compile_model(model, output=folder / f"{target}{suffix}", target=target, emit=stage, cache=False, jobs=1)
    except (ModelError, UsageError):
        return False
    return True


def models(place: int, operator: Operator) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The models of an operator that are compiled, by type: one chosen by its place in the list, or all."""
    case = smallest(operator)
    assert case is not None
    found = [
        (f"{parameter}={kind}", model)
        for parameter, kind, model in retyped(operator, case)
        if kind not in NOT_HELD and is_valid(model)
    ] or [("as it is", case.source.model)]
    yield from found if EVERY else [found[place % len(found)]]


def refused_types() -> set[str]:
    """The lines of refused_types.txt without their reasons: operator, parameter, type."""
    lines = Path(__file__).with_name("refused_types.txt").read_text(encoding="utf-8").splitlines()
    return {line.split(":")[0] for line in lines if line and not line.startswith("#")}


REFUSED = refused_types()
REJECTED = {name for name, reason in expected_failures().items() if reason.split(":")[0] not in (RANDOM, NEARER)}
FAILING = {o.label for o in operators().values() if (case := smallest(o)) and case.name in REJECTED}
OPERATORS = [operator for operator in operators().values() if smallest(operator)]


@pytest.mark.parametrize("place", range(len(OPERATORS)), ids=[operator.label for operator in OPERATORS])
def test_both_targets_compile_an_operator(place: int, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, model in models(place, OPERATORS[place]):
            verdicts = {target: accepted(model, target, tmp_path) for target in STAGES}
            label = OPERATORS[place].label
            listed = f"{label} {kind}".replace("=", " ") in REFUSED or label in FAILING
            assert set(verdicts.values()) == {not listed}, f"{label}, {kind}: {verdicts}"


def test_the_list_is_long() -> None:
    """Nearly all operators have a case of their own; the types differ."""
    assert len(OPERATORS) >= 190
