"""Every kernel of the GPU cases, compiled and run; without the compiler: gpu/bundle.py there, gpu/run.py here."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.gpu
@pytest.mark.slow
def test_results_of_all_cases(tmp_path: Path) -> None:
    from gpu.bundle import bundle
    from gpu.run import run_bundle
    from models.gpu_cases import cases

    names = bundle(cases(), tmp_path)
    results = run_bundle(tmp_path)
    assert [r["name"] for r in results] == names
    assert len(names) > 0.9 * len(cases())
    assert {r["name"]: r["problem"] for r in results if r["problem"]} == {}


def test_bundles_have_what_plain_launches_run(tmp_path: Path) -> None:
    from gpu.bundle import bundle
    from models.gpu_cases import cases

    some = [case for case in cases() if case.name in ("cast_int64", "matmul_half_odd", "matmul_float8", "add_half")]
    assert sorted(bundle(some, tmp_path)) == ["add_half", "cast_int64"], "the others are for whole libraries"


@pytest.mark.gpu
@pytest.mark.slow
def test_libraries_of_all_cases(tmp_path: Path) -> None:
    from gpu.libraries import compile_cases, run_cases
    from models.gpu_cases import cases

    compile_cases(tmp_path, cases())
    assert run_cases(tmp_path) == []
