"""Kernels of `mma.sync` without a GPU: what the assembler says of every form, on every architecture that has them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from gpu.assembled import assemble
from gpu.test_tensor_cores import ATTENTIONS, SHARED_KEYS, _attention, _compile, _convolution, _product
from models.gpu_cases import build, cases
from spread import EVERY, spread
from toolchain import needs_ptxas

from mlc.passes.schedule import ampere_cost
from mlc.targets.nvidia import NAMED

pytestmark = needs_ptxas

ARCHITECTURES = [name for name, target in NAMED.items() if not target.has_wgmma]
OTHERS = [name for name in ARCHITECTURES if name != "sm_80"]
FORMS = [((4096, 4096, 4096), ""), ((4096, 4096, 4096), "b"), ((304, 520, 136), "a"), (("m", 520, 136), "")]
TYPED = [(shape, turned, dtype) for shape, turned in FORMS for dtype in ("bfloat16", "float16")]
CONVOLUTIONS = [(56, 64, 64, 3, 1), (17, 24, 40, 5, 2), (28, 512, 256, 1, 2)]


def _check(folder: Path, arch: str, names: str, spilled: int = 0) -> None:
    """One kernel of the tensor cores in a folder of cubins, or some for few rows too, which fit and spill nothing, or at
    most `spilled` bytes."""
    kernels = [k for k in json.loads((folder / "launch.json").read_text()) if k["shared"]]
    assert len(kernels) == 1 or kernels and "'m'" in names
    for kernel in kernels:
        assert kernel["maps"] == [] and kernel["warnings"] == []
        assert kernel["shared"] <= NAMED[arch].shared_memory_per_block
        resources = kernel["resources"]
        assert max(resources["spill_stores"], resources["spill_loads"], resources["stack"]) <= spilled, names


@pytest.mark.parametrize(("arch", "form"), spread(TYPED, "sm_80", OTHERS, 3), ids=str)
def test_ptxas_takes_every_form(arch: str, form: tuple[tuple[int | str, int, int], str, str], tmp_path: Path) -> None:
    shape, turned, dtype = form
    model = _product(*shape, dtype=dtype, turned=turned)
    _check(_compile(model, tmp_path / "product", gpu=arch, emit="cubin"), arch, f"{shape} {turned}")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_ptxas_takes_tf32(arch: str, tmp_path: Path) -> None:
    """Both operands along the sum: others are not for tensor cores."""
    for shape in ((4096, 4096, 4096), (304, 520, 136)):
        model = _product(*shape, "float32", "b")
        _check(_compile(model, tmp_path / "product", gpu=arch, emit="cubin", precision="tf32"), arch, f"{shape}")


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_90a"])
@pytest.mark.parametrize("name", ["matmul_tiles_1111", "matmul_tiles_4100"])
def test_ptxas_takes_exact_products(name: str, arch: str, tmp_path: Path) -> None:
    """Large products of f32 with a weight, with edges in every dimension, are tiles of the ordinary units."""
    model = build(next(case for case in cases() if case.name == name))
    assembly = assemble(model, tmp_path / "product", gpu=arch)
    _check(tmp_path / "product", arch, name)
    text = assembly.ptx
    assert "cp.async" in text and "fma.rn.f32" in text and "mma.sync" not in text


@pytest.mark.parametrize(("arch", "form"), spread(CONVOLUTIONS, "sm_80", OTHERS, 3), ids=str)
def test_ptxas_takes_convolutions(arch: str, form: tuple[int, int, int, int, int], tmp_path: Path) -> None:
    folder = _compile(_convolution(*form), tmp_path / "convolution", gpu=arch, emit="cubin", precision="bf16")
    _check(folder, arch, str(form))


@pytest.mark.parametrize("form", [(112, 128, 128, 3, 1)], ids=str)
def test_ptxas_takes_exact_convolutions(form: tuple[int, int, int, int, int], tmp_path: Path) -> None:
    """Addresses of windows take registers: blocks beside each other leave them to a thread."""
    _check(_compile(_convolution(*form), tmp_path / "convolution", emit="cubin"), "sm_90a", str(form))


WIDE: dict[str, tuple[int, tuple[int | str, int | str], int, dict[str, object]]] = {
    "many": (128, (512, 512), 64, {"causal": True}),
    "widest": (4, (300, 300), 256, {"causal": True}),
    "odd": (4, (100, 190), 72, {"kind": 10}),
}


# What ptxas makes of the widest has differed between chips.
@pytest.mark.parametrize(("arch", "form"), spread([*ATTENTIONS, *WIDE], "sm_80", ["sm_86"], 3, ["widest"]))
def test_ptxas_takes_attention(arch: str, form: str, tmp_path: Path) -> None:
    heads, lengths, depth, options = (ATTENTIONS | WIDE)[form]
    folder = _compile(_attention(heads, lengths, depth, **options), tmp_path / "attention", gpu=arch, emit="cubin")
    assert len(json.loads((folder / "launch.json").read_text())) == 1
    _check(folder, arch, form)


@pytest.mark.parametrize(("arch", "form"), spread([*ATTENTIONS, *WIDE], "sm_90a", ["sm_86"], 8, ["widest"]))
def test_ptxas_takes_attention_of_tf32(arch: str, form: str, tmp_path: Path) -> None:
    """On Hopper too, whose own instructions take f32 along the sum only."""
    heads, lengths, depth, options = (ATTENTIONS | WIDE)[form]
    model = _attention(heads, lengths, depth, **{**options, "kind": 1})
    folder = _compile(model, tmp_path / "attention", gpu=arch, emit="cubin", precision="tf32")
    assert len(json.loads((folder / "launch.json").read_text())) == 1
    _check(folder, arch, form)


EXACT: dict[str, tuple[int, tuple[int | str, int | str], int, dict[str, object]]] = {
    "narrow": (48, (128, 128), 64, {}), "many_wide": (64, (512, 512), 96, {}), "least": (2, (40, 50), 8, {}),
}


# Scores of 64 keys at a time: the powers of the second 32 wait while those of the first 32 are multiplied, and under a
# mask ptxas keeps 25 of them in memory: 50 of 19,000 instructions, none of them in a loop that multiplies. In return a
# thread loads 448 instead of 576 times 16 bytes for 8,192 products.
LONG = {"long": (32, (2048, 2048), 128, {}), "long_causal": (32, (2048, 2048), 128, {"causal": True})}
SPILLED = {("sm_90a", "long"): 48, ("sm_90a", "long_causal"): 384, ("sm_90a", "many_wide"): 48}
EXACT |= LONG

EXACT_ON = spread([*ATTENTIONS, *WIDE, *EXACT], "sm_90a", ["sm_80", "sm_86", "sm_89"], 12, ["widest"])


@pytest.mark.parametrize(("arch", "form"), EXACT_ON)
def test_ptxas_takes_exact_attention(arch: str, form: str, tmp_path: Path) -> None:
    """That of f32 which is not rounded, by the ordinary units."""
    heads, lengths, depth, options = (ATTENTIONS | WIDE | EXACT)[form]
    model = _attention(heads, lengths, depth, **{**options, "kind": 1})
    folder = _compile(model, tmp_path / "attention", gpu=arch, emit="cubin")
    assert len(json.loads((folder / "launch.json").read_text())) == 1
    _check(folder, arch, form, SPILLED.get((arch, form), 0))


@pytest.mark.parametrize("form", list(SHARED_KEYS))
def test_few_queries_with_many_keys_stay_three_kernels(form: str, tmp_path: Path) -> None:
    heads, lengths, depth, options = SHARED_KEYS[form]
    folder = _compile(_attention(heads, lengths, depth, **options), tmp_path / "attention", gpu="sm_80", emit="cubin")
    kernels = json.loads((folder / "launch.json").read_text())
    assert [k["warnings"] for k in kernels] == [[]] * 3
    assert not any(k["resources"]["spill_stores"] for k in kernels)


@pytest.mark.parametrize("arch", ["sm_89", "sm_100a"])
def test_ptxas_takes_attention_of_f16(arch: str, tmp_path: Path) -> None:
    model = _attention(4, (200, 264), 128, kind=10, causal=True, mask=1, shared=2)
    _check(_compile(model, tmp_path / "attention", gpu=arch, emit="cubin"), arch, "f16")


def test_few_queries_stay_three_kernels(tmp_path: Path) -> None:
    folder = _compile(_attention(4, (8, 2048), 64), tmp_path / "few", gpu="sm_80", emit="ptx")
    assert len(json.loads((folder / "launch.json").read_text())) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "tile"), spread(ampere_cost.TILES, "sm_80", ["sm_86"], 3), ids=str)
def test_ptxas_takes_every_tile(
    arch: str, tile: tuple[int, int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both orders of the right operand, and the left one turned; tiles of few rows or columns only along the sum. Each
    with a product that has ends everywhere, and one without any.
    """
    monkeypatch.setattr(ampere_cost, "TILES", (tile,))
    found = 0
    for turned in ("b", "", "a"):
        across = [extent for extent, name in zip(tile, "ab", strict=False) if (name in turned) == (name == "a")]
        if any(extent % 64 for extent in across):
            continue
        for shape in ((304, 520, 136), (4096, 4096, 4096)) if turned == "b" or EVERY else ((304, 520, 136),):
            folder = _compile(_product(*shape, turned=turned), tmp_path / "product", gpu=arch, emit="cubin")
            _check(folder, arch, f"{tile} {turned}")
            found += 1
    assert found


def test_chips_with_little_shared_memory_have_fewer_stages(tmp_path: Path) -> None:
    """What a multiprocessor holds decides: the same tile has its stages cut."""
    small = replace(NAMED["sm_80"], shared_memory_per_block=NAMED["sm_86"].shared_memory_per_block)
    for target in (NAMED["sm_80"], small):
        for s in ampere_cost._candidates("bf16", False, False, 4, target, 0):
            assert s.blocks * (s.shared_bytes + 1024) <= target.shared_memory_per_block + 1024
            assert s.stages >= 2 and s.threads * s.blocks <= 2048
