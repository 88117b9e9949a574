"""The list of phases: complete, in the documented order, and every pass in it exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlir import ir
from mlir.passmanager import PassManager

import mlc.compiler_setup  # noqa: F401
from mlc import _native
from mlc.options import PHASES
from mlc.pipelines.cpu import phases
from mlc.targets.cpu import beyond_level, known_names, resolve

CPUS_OF_BF16 = {"znver5": True, "cooperlake": True, "emeraldrapids": False, "one of tomorrow": False}
ROOT = Path(__file__).parents[3]


def test_the_phases_are_those_of_the_contract() -> None:
    names = [name for name, _ in phases(resolve("native", _native.host_info()))]
    assert tuple(names) == PHASES
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "ir.md").read_text(), re.MULTILINE)
    assert [name for name in table if name in PHASES] == names


@pytest.mark.parametrize("cpu", known_names())
def test_every_pass_parses(cpu: str) -> None:
    with ir.Context():
        for _, passes in phases(resolve(cpu, _native.host_info())):
            for text in passes:
                PassManager.parse(f"builtin.module({text})")


def test_bf16_is_multiplied_where_that_is_fast() -> None:
    """The instruction for pairs of bf16 is there on Intel's cores too, half as fast as multiply-adds."""
    host = _native.host_info()
    fast = [cpu for cpu in known_names() if cpu != "native" and resolve(cpu, host).bf16_dot]
    assert fast == ["znver4", "znver5"]
    features = ["+avx2", "+avx512f", "+avx512bf16"]
    natives = {name: resolve("native", {**host, "cpu": name, "features": features}) for name in CPUS_OF_BF16}
    assert {name: target.bf16_dot for name, target in natives.items()} == CPUS_OF_BF16
    for cpu, expected in {"znver4": "", "sapphirerapids": "", "x86-64-v4": "{weights-only=true}"}.items():
        assert f"mlc-narrow-contractions{expected}" in dict(phases(resolve(cpu, host), "bf16"))["decompose"]
        assert f"bf16-dot={str(cpu == 'znver4').lower()}" in dict(phases(resolve(cpu, host)))["schedule"][0]


def test_stores_that_gain_from_lines_fetched_before() -> None:
    host = _native.host_info()
    claiming = [cpu for cpu in known_names() if cpu != "native" and resolve(cpu, host).claims]
    assert claiming == ["sapphirerapids"]
    assert resolve("native", {**host, "cpu": "emeraldrapids"}).claims
    for cpu, expected in {"sapphirerapids": "true", "znver4": "false"}.items():
        assert f"claims={expected}" in dict(phases(resolve(cpu, host)))["schedule"][0]


def test_cores_are_known_by_their_features() -> None:
    """Virtual machines may say that a CPU with matrix tiles is an older one."""
    host = {**_native.host_info(), "cpu": "rocketlake"}
    old, new = ["+avx2", "+avx512f", "-avx512fp16"], ["+avx2", "+avx512f", "+avx512fp16"]
    assert [resolve("native", {**host, "features": f}).cpu for f in (old, new)] == ["rocketlake", "sapphirerapids"]
    assert not resolve("native", {**host, "features": old}).distant
    assert resolve("native", {**host, "features": new}).distant
    later = resolve("native", {**host, "cpu": "graniterapids", "features": new})
    assert later.cpu == "graniterapids" and later.claims and later.distant


def test_scales_are_inverted_where_there_are_fused_multiply_adds() -> None:
    host = _native.host_info()
    fused = {cpu: resolve(cpu, host).fused for cpu in known_names() if cpu != "native"}
    assert not fused["x86-64-v2"] and fused["x86-64-v3"] and fused["znver4"]
    for cpu, expected in fused.items():
        assert ("mlc-invert-scales" in dict(phases(resolve(cpu, host)))["linalg"]) == expected
    assert resolve("native", {**host, "triple": "aarch64-unknown-linux-gnu", "features": ["+neon"]}).fused


def test_vector_widths() -> None:
    host = _native.host_info()
    widths = {cpu: resolve(cpu, host).vector_bits for cpu in ("x86-64", "x86-64-v3", "x86-64-v4")}
    assert widths == {"x86-64": 128, "x86-64-v3": 256, "x86-64-v4": 512}
    with pytest.raises(ValueError, match="unknown CPU 'pdp11'"):
        resolve("pdp11", host)


def test_matrix_tiles() -> None:
    """Of named CPUs Sapphire Rapids has them, in all that runs its code; this machine where it says so."""
    host = _native.host_info()
    tiles = {cpu: (resolve(cpu, host).bf16_tiles, resolve(cpu, host).int8_tiles) for cpu in known_names()}
    native = tiles.pop("native")
    assert {cpu: has for cpu, has in tiles.items() if any(has)} == {"sapphirerapids": (True, True)}
    assert native == tuple(f"+amx-{kind}" in host["features"] for kind in ("bf16", "int8"))
    assert {"+amx-tile", "+amx-bf16", "+amx-int8"} <= set(resolve("sapphirerapids", host).required.split(","))
    features = ["+avx2", "+amx-tile", "+amx-int8", "-amx-bf16"]
    target = resolve("native", {"triple": "x86_64-unknown-linux-gnu", "cpu": "x", "features": features})
    assert (target.bf16_tiles, target.int8_tiles, target.required) == (False, True, "+avx2,+amx-tile,+amx-int8")


def test_signs_are_kept_where_tiles_or_words_take_all() -> None:
    host = _native.host_info()
    for cpu, tiles, words in (
        ("sapphirerapids", "true", "false"),
        ("znver4", "false", "false"),
        ("znver3", "false", "true"),
    ):
        passes = dict(phases(resolve(cpu, host)))
        assert f"mlc-plan-integers{{tiles={tiles} words={words}}}" in passes["simplify"]
        assert f"bf16-tiles={tiles} int8-tiles={tiles}" in passes["schedule"][0]


def test_what_a_level_does_not_say() -> None:
    host = _native.host_info()
    beyond = {cpu: beyond_level(resolve(cpu, host).cpu, resolve(cpu, host).required) for cpu in known_names()}
    assert beyond["x86-64-v3"] == beyond["haswell"] == beyond["x86-64-v4"] == []
    assert beyond["cascadelake"] == ["avx512vnni"] and "avx512bf16" in beyond["znver4"]
