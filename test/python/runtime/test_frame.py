"""What a call tells the runtime of the arrays it makes for results: in the first run, and in those that only change
addresses.
"""

from __future__ import annotations

import numpy as np
import pytest

from mlc.runtime.frame import Frame
from mlc.runtime.values import ValueInfo


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int64", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (), (300, 1000)], ids=str)
def test_new_results(shape: tuple[int, ...], dtype: str) -> None:
    value = ValueInfo("y", dtype, shape, ("tensor",))
    frame = Frame([], [value, value])
    kept = []  # else an array may be where the one before was
    for _ in range(3):
        arrays, _keep = frame.fill([], None)
        kept.append(arrays)
        for number, array in enumerate(arrays):
            tensor = frame.outputs[number].tensor
            assert array.shape == shape and array.flags.carray
            assert tensor.data == array.__array_interface__["data"][0]
            assert tensor.ndim == len(shape)
    if np.prod(shape) * kept[0][0].itemsize >= 1 << 18:
        assert all(array.__array_interface__["data"][0] % 4096 == 0 for arrays in kept for array in arrays)
