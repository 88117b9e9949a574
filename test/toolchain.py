"""What tests need of the machine that they run on."""

from __future__ import annotations

import pytest

from mlc.codegen.ptxas import PtxasError, find_ptxas


def _has_ptxas() -> bool:
    try:
        find_ptxas()
    except PtxasError:
        return False
    return True


needs_ptxas = pytest.mark.skipif(not _has_ptxas(), reason="ptxas is not installed (`pip install nvidia-cuda-nvcc`)")
