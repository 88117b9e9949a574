"""Kernels in which threads work together, without a GPU: their threads in step, in NumPy."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu.lockstep import run_case
from models.gpu_cases import cases

SOME = (
    "sum_all", "max_columns_odd", "top_k_least_half", "top_k_integers", "argmax_rows", "argmax_columns",
    "argmax_vocabulary", "argmax_vocabulary_half", "argmax_wide", "argmin_wide_last", "argmax_double", "argmin_bytes",
    "argmax_few_columns", "argmin_few_columns_last", "argmax_pixels", "argmax_dynamic", "argmin_and_value",
    "argmax_odd", "argmax_odd_columns", "argmax_last_ties", "argmin_last_odd", "argmin_last_odd_columns", "argmin_ties",
)  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_results_of_threads_in_step(name: str, tmp_path: Path) -> None:
    (case,) = [c for c in cases() if c.name == name]
    assert run_case(case, tmp_path) == ""
