"""What comes with the compiler as measured: every entry is for a kernel of the benchmark, and its template takes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mlir import ir

import mlc.compiler_setup  # noqa: F401
from mlc.compilation import Compilation
from mlc.kernels.common.constants import CONSTANTS
from mlc.kernels.common.frame import kernel_source
from mlc.options import make_options
from mlc.passes.fuse.dedupe_kernels import kernel_text
from mlc.passes.schedule.assign_gpu_schedules import finished, packaged_entries
from mlc.passes.schedule.assign_schedules import gpu_target_text, read_schedule
from mlc.targets.nvidia import H200
from mlc.tuning import cache
from mlc.tuning.gpu_candidates import TUNED, is_legal

FILE = cache.PACKAGED / "sm_90a.json"
ENTRIES = cache.read(FILE)


@pytest.fixture(scope="module")
def models(request: pytest.FixtureRequest) -> dict[tuple[str, str], list[Any]]:
    """The models of the benchmark by the shapes of their first input and their result."""
    patch = pytest.MonkeyPatch()
    request.addfinalizer(patch.undo)
    patch.syspath_prepend(str(Path(__file__).parents[3] / "bench"))
    from gpu_parts import tune

    found: dict[tuple[str, str], list[Any]] = {}
    for _, model, precision in tune.models():
        shapes = [
            ",".join(str(d.dim_value) for d in value.type.tensor_type.shape.dim)
            for value in (model.graph.input[0], model.graph.output[0])
        ]
        found.setdefault((shapes[0], shapes[1]), []).append((model, precision))
    return found


def _scheduled(model: Any, precision: str, folder: Path) -> tuple[ir.Operation, Compilation]:
    """The one kernel of a model on the GPU after phase `schedule`."""
    compilation = Compilation(make_options(target="cuda", precision=precision, emit="schedule"))
    compilation.run(model, folder / "m.mlir")
    kernels = [v.operation for v in compilation.module.body.operations if "mlc.kernel" in v.operation.attributes]
    return kernels[0], compilation


@pytest.mark.parametrize("key", sorted(ENTRIES))
def test_entries_are_schedules_of_their_kernels(
    key: str, models: dict[tuple[str, str], list[Any]], tmp_path: Path
) -> None:
    entry = ENTRIES[key]
    shapes = re.findall(r"\[(.*?)\]", entry.kernel)
    for model, precision in models[shapes[0], shapes[-1]]:
        kernel, compilation = _scheduled(model, precision, tmp_path)
        taken = read_schedule(kernel)
        for noted in {"mlc.schedule", CONSTANTS} & set(kernel.attributes):  # behind the question for a schedule
            del kernel.attributes[noted]
        if cache.entry_key(kernel_text(kernel), taken, gpu_target_text(H200, precision)) != key:
            continue
        assert taken == finished(entry.schedule, H200) and taken["template"] in TUNED
        with compilation.context, ir.Location.unknown():
            assert is_legal(kernel_source(kernel), taken, H200, precision)
        return
    raise AssertionError(f"no model of the benchmark has the kernel {entry.kernel}")


def test_what_is_packaged_helps() -> None:
    """An entry that is no faster than the cost model's schedule would only be one more thing to go out of date."""
    assert ENTRIES and all(e.microseconds < 0.98 * e.default and e.target.startswith("sm_90a") for e in ENTRIES.values())
    assert packaged_entries("sm_90a") == ENTRIES and not packaged_entries("sm_80")
