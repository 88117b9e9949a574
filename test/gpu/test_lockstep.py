"""Kernels in which threads work together, without a GPU: their threads in step, in NumPy."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu.lockstep import run_case
from models.gpu_cases import cases
from spread import EVERY

SOME = (
    "sum_all", "softmax_across", "softmax_across_half", "softmax_across_dynamic",
    "max_columns_odd", "top_k_least_half", "top_k_integers", "argmax_rows", "argmax_columns",
    "argmax_vocabulary", "argmax_vocabulary_half", "argmax_wide", "argmin_wide_last", "argmax_double", "argmin_bytes",
    "argmax_few_columns", "argmin_few_columns_last", "argmax_pixels", "argmax_dynamic", "argmin_and_value",
    "scatter_last", "scatter_last_rows", "scatter_last_columns", "scatter_few", "scatter_bools",
    "scatter_last_dynamic", "scatter_add_columns", "scatter_mul", "scatter_max_odd", "scatter_add_bytes",
    "scatter_add_longs", "scatter_max_words", "scatter_nd", "scatter_nd_last", "scatter_nd_points", "scatter_nd_cache",
    "scatter_nd_add", "scatter_nd_dynamic", "scatter_nd_wrong", "scatter_chained", "scatter_counts", "scatter_weight", "scatter_max_bytes",
    "scan_few", "scan_short_reverse", "scan_warp_odd", "scan_rows_odd", "scan_long", "scan_long_odd", "scan_half_odd",
    "scan_wide_odd", "scan_products_columns", "scan_dynamic", "scan_dynamic_reverse", "scan_columns", "scan_columns_odd",
    "scan_columns_few", "scan_columns_three", "scan_columns_many", "scan_columns_dynamic", "scan_columns_half",
    "scan_parts", "scan_parts_exclusive", "scan_parts_reverse", "scan_parts_odd", "scan_parts_odd_both",
    "scan_parts_even_rest", "scan_parts_chunks", "scan_parts_half", "scan_parts_half_odd", "scan_parts_double",
    "scan_parts_wide", "scan_parts_words", "scan_parts_products", "scan_parts_products_both", "scan_parts_columns",
    "scan_parts_columns_both", "scan_parts_columns_odd", "scan_parts_columns_wide", "scan_parts_columns_half",
    "top_k_parts", "top_k_parts_ties_least", "top_k_parts_odd", "top_k_parts_half", "top_k_parts_columns",
    "top_k_signed_bytes_least", "top_k_bytes_least",
    "argmax_odd", "argmax_odd_columns", "argmax_last_ties", "argmin_last_odd", "argmin_last_odd_columns", "argmin_ties",
    "max_rows_cut", "parts_sum", "parts_sum_half", "parts_sum_row", "parts_mean_three", "parts_mean_sixty_four",
    "parts_prod", "parts_l1", "parts_l2", "parts_log_sum_exp", "parts_max_bytes", "parts_min_longs", "parts_min_odd_half",
    "parts_weighted", "parts_weighted_lines", "parts_softmax", "parts_statistics_8", "parts_statistics_7",
    "parts_argmax", "parts_argmax_last", "parts_argmin", "parts_argmin_last", "parts_argmax_words",
    "parts_argmin_words_last", "parts_argmax_bytes", "parts_argmin_half", "parts_argmin_row_last",
    "columns_softmax_alone", "columns_softmax_alone_pixels", "columns_softmax_warp", "columns_softmax_block",
    "columns_softmax_block_odd", "columns_softmax_full_block", "columns_softmax_full_block_half",
    "columns_softmax_first", "columns_softmax_log", "columns_softmax_log_half", "columns_norm_pixels",
    "columns_norm_pixels_half", "columns_norm_channels", "columns_norm_images", "columns_norm_double",
    "columns_norm_too_long", "columns_norm_dynamic_images",
)  # fmt: skip


# Neighbours are much alike.
@pytest.mark.parametrize("name", SOME if EVERY else SOME[::2])
def test_results_of_threads_in_step(name: str, tmp_path: Path) -> None:
    (case,) = [c for c in cases() if c.name == name]
    assert run_case(case, tmp_path) == ""
