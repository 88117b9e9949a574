"""What is tried for a kernel, and what wins."""

from __future__ import annotations

import pytest
from mlir import ir

import mlc.compiler_setup  # noqa: F401
from mlc.kernels.common.frame import kernel_source
from mlc.passes.schedule.cost import VectorUnit, choose
from mlc.tuning import search
from mlc.tuning.cache import Schedule, fixed_part
from mlc.tuning.candidates import MOST, candidates
from mlc.tuning.measure import Timing

AVX512, AVX2 = VectorUnit(512, 32), VectorUnit(256, 16)
PRODUCT = """
module @k attributes {{mlc.kernel}} {{
  func.func @k(%a: tensor<{m}x{k}xf32>, %b: tensor<{k}x{n}xf32>, %o: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
    %r = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
        affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
        ins(%a, %b : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) outs(%f : tensor<{m}x{n}xf32>) attrs = {{mlc.contraction}} {{
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    }} -> tensor<{m}x{n}xf32>
    return %r : tensor<{m}x{n}xf32>
  }}
}}
"""


def _product(m: int, n: int, k: int, packed: bool, unit: VectorUnit = AVX512) -> tuple[Schedule, list[Schedule]]:
    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        module = ir.Module.parse(f"module {{ {PRODUCT.format(m=m, n=n, k=k)} }}")
        source = kernel_source(module.body.operations[0].operation)
        schedule = choose(source, unit, {1} if packed else set())
        return schedule, candidates(source, schedule, [m, n], unit.registers)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", [(256, 256, 256), (1, 1000, 512), (49, 512, 60)])
def test_candidates_of_a_product(shape: tuple[int, int, int], packed: bool) -> None:
    schedule, found = _product(*shape, packed)
    assert 0 < len(found) <= MOST
    assert schedule not in found and all(found.count(one) == 1 for one in found)
    for one in found:
        assert fixed_part(one) == fixed_part(schedule)  # formats of weights above all
        assert int(one["rows"]) * int(one["vectors"]) + int(one["vectors"]) <= 32
    # A copy of the right side pays for itself over several rows.
    assert any(one["template"] == "panel_copy" for one in found) == (not packed and shape[0] > 1)


@pytest.mark.parametrize(
    "shape, names",
    [
        ((319, 49, 36), {"beside"}),
        ((300, 1600, 500), {"fetched"}),  # 3 MB
        ((300, 1600, 1000), {"fetched", "joined"}),
        ((300, 1600, 1700), {"fetched"}),  # two panels are too much for the stack
    ],
)
def test_a_product_without_its_copy_fits_its_default(shape: tuple[int, int, int], names: set[str]) -> None:
    """What only copies have is no part of what tuning leaves alone, else a kernel would refuse what was measured."""
    schedule, found = _product(*shape, False, AVX2)
    assert schedule["template"] == "panel_copy" and {"beside", "fetched", "joined"} & schedule.keys() == names
    plain = next(one for one in found if one["template"] == "contraction")
    assert not {*names, "vector_operand"} & plain.keys()
    assert fixed_part(plain) == fixed_part(schedule)
    times = {n: Timing(t, t) for n, t in enumerate([1.0, 0.8, 0.9])}
    assert search._together([schedule, plain, {**schedule, "unroll": 1}], times) == {**plain, "unroll": 1}


def test_work_for_several_threads_is_kept() -> None:
    schedule, found = _product(256, 256, 256, True)
    items = [4 * -(-256 // (int(s["rows"]) * int(s["block"]))) for s in (schedule, *found)]
    assert min(items) >= min(items[0], 16)


@pytest.mark.parametrize("shape", [(1, 2048, 2048), (4, 4096, 512), (31, 300, 64)])
def test_candidates_of_a_product_in_lines(shape: tuple[int, int, int]) -> None:
    schedule, found = _product(*shape, False, AVX2)
    assert schedule["template"] == "line_product"
    changed = {name for one in found for name in one if one[name] != schedule[name]}
    assert changed == {"item", "steps", "line", "vectors"}
    for one in found:
        item, tile = int(one["item"]), int(one["lanes"]) * int(one["vectors"])
        assert fixed_part(one) == fixed_part(schedule)
        assert item % tile == 0 and int(one["line"]) % item == 0
        assert (int(one["rows"]) + 1) * int(one["vectors"]) <= 16
        assert -(-shape[1] // item) >= min(16, -(-shape[1] // int(schedule["item"])))


def test_only_what_is_clearly_faster_wins() -> None:
    default = Timing(1e-3, 1.0)
    assert search._best({0: default, 1: Timing(0.98e-3, 0.98)}) == 0
    assert search._best({0: default, 1: Timing(0.99e-3, 0.5)}) == 0  # once lucky
    assert search._best({0: default, 1: Timing(0.9e-3, 0.9), 2: Timing(0.8e-3, 0.8)}) == 2


def test_changes_that_win_alone_are_tried_together() -> None:
    default: Schedule = {"template": "contraction", "rows": 6, "unroll": 4, "block": 8}
    tried = [default, {**default, "rows": 8, "block": 6}, {**default, "unroll": 1}, {**default, "block": 4}]
    times = {n: Timing(t, t) for n, t in enumerate([1.0, 0.8, 0.9, 0.85])}
    assert search._together(tried, times) == {**default, "rows": 8, "block": 6, "unroll": 1}
    assert search._together(tried, {0: times[0], 1: times[1]}) is None


def test_a_winner_has_to_win_twice() -> None:
    times = {0: Timing(1.0, 1.0), 1: Timing(0.8, 0.8)}
    asked: list[int] = []

    def again(result: dict[int, Timing]) -> tuple[int, dict[int, Timing]]:
        return search._confirmed(times, lambda n: asked.append(n) or result)

    second = {0: Timing(1.1, 1.0), 1: Timing(0.9, 0.82)}
    assert again(second) == (1, second)
    assert again({0: Timing(0.8, 1.0), 1: Timing(0.8, 1.0)}) == (0, times)
    assert again({}) == (0, times)  # it does not run any more
    assert asked == [1, 1, 1]
    assert search._confirmed({0: times[0]}, again) == (0, {0: times[0]})  # nothing to ask
